"""ST, sound rules, when something is missing: who asks again, who helps, and when."""

from typing import Any

from ordercast.model.config import RecoveryPolicy, Timing
from ordercast.protocols.shared.backoff import MAX_FACTOR
from ordercast.protocols.spo.units import Data
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply
from tests.protocols.st.driver import E1, E2, E3, Node, Outputs, Peer
from tests.protocols.st.test_st_rules_recovery import stopped


def helper(**config: Any) -> tuple[Node, Peer, Peer, Data, Data]:
    """E1 has stopped, with two packets under way that nobody has."""
    e1, e2, e3 = Node(E1, **config), Peer(E2), Peer(E3)
    a, b = e1.submits("a", E2, E3).of(Data)[0], e1.submits("b", E3).of(Data)[0]
    e1.hears(e2.reply())
    return e1, e2, e3, a, b


def test_nothing_is_sent_again_but_what_is_asked_for() -> None:
    e1, e2, e3, a, _ = helper()
    assert e1.hears(e3.reply()).copies == []
    assert e1.hears(e2.need(e2.sends("x", E3), has=0b111, done=0b001)).units == []
    out = e1.hears(e3.need(a, has=0b111, done=0b001))
    assert out.copies == ["a"]
    assert len(out.units) == 1


def test_a_copy_is_the_same_packet_with_a_fresh_status() -> None:
    e1, _, e3, a, _ = helper()
    copy = e1.hears(e3.need(a, has=1)).of(Data)[0]
    assert (copy.packet, copy.status.epoch) == (a.packet, 0)
    assert copy.status.stamp > a.status.stamp


def test_each_thing_is_said_once_between_two_reset_timers() -> None:
    e1, e2, e3, a, b = helper()
    first, second = e3.need(a), e2.need(a, b)
    e1.fires("reset")
    assert [type(unit).__name__ for unit in e1.hears(first).units] == ["ResetReply", "Data"]
    assert [type(unit).__name__ for unit in e1.hears(second).units] == ["Data"]
    assert e1.hears(first, second).units == []
    e1.fires("reset")
    assert Outputs([*e1.hears(second), *e1.hears(first)]).copies == ["a", "b"]


def test_a_reply_that_was_just_sent_is_not_repeated() -> None:
    e1, _, e3, *_ = helper()
    assert e1.hears(e3.need()).of(ResetReply) == []
    e1.fires("reset")
    assert len(e1.hears(e3.need(), e3.need()).of(ResetReply)) == 1
    e1.fires("reset")
    assert e1.hears(e3.need(has=0b001)).of(ResetReply) == []


def test_that_it_is_done_is_repeated_to_who_does_not_know() -> None:
    e1, e2, e3 = stopped()
    assert e1.hears(e3.reply(), e2.need(has=0b111)).of(ResetDone) == [ResetDone(E1, 0)]
    e1.fires("reset")
    assert e1.hears(e2.need(has=0b111, done=0b001)).units == []
    assert e1.hears(e2.need(has=0b111), e3.need(has=0b111)).of(ResetDone) == [ResetDone(E1, 0)]


def test_who_is_not_done_does_not_say_so() -> None:
    e1, e2, _ = stopped()
    e1.fires("reset")
    assert e1.hears(e2.need(has=0b001)).units == []


def test_a_reset_timer_says_what_is_lacking_and_becomes_rarer() -> None:
    e1, _, _ = stopped(timing=Timing(reset=1000))
    waits = []
    for backoff in (1, 2, 4, 4, 4, 4):
        waits.append(e1.running["reset"] // 1000)
        assert e1.fires("reset").of(ResetNeed) == [ResetNeed(E1, 0, 0b011, (), 0, backoff)]
    # The reply of E2 came after the first timer was set: that moved something.
    assert all(least <= wait < 2 * least for wait, least in zip(waits, (1, 1, 2, 4, 4, 4), strict=True)), waits


def test_whatever_comes_makes_needs_frequent_again() -> None:
    e1, e2, e3 = Node(E1, timing=Timing(reset=1000)), Peer(E2), Peer(E3)
    a, b = e3.sends("a", E1), e3.sends("b", E1)
    e1.hears(e2.reply(), e3.reply(sent=[a, b]))
    for unit in (a, e2.done()):
        for _ in range(3):
            e1.fires("reset")
        assert e1.running["reset"] >= 4000
        e1.hears(unit)
        e1.fires("reset")
        assert e1.running["reset"] < 2000


def test_who_asked_in_vain_is_answered_at_a_time_of_ones_own() -> None:
    """All have answered at once, and overrun it: they would again, at once or after equal times."""
    delays = set()
    for me in range(5):
        node, peer = Node(me, nodes=6, timing=Timing(reset=1000)), Peer(5, nodes=6)
        node.hears(peer.reply())
        node.fires("reset")
        assert node.hears(peer.need(backoff=2)).units == []
        delays.add(node.running["help"])
        node.hears(peer.need(backoff=2))
        helped = node.fires("help")
        assert [unit.source for unit in helped.of(ResetReply)] == [me]
        assert node.machine.recovery.delayed_needs == []
    assert len(delays) == 5
    assert all(0 <= delay < 1000 for delay in delays)


def test_who_asks_again_before_it_is_answered_is_answered_as_it_asked_last() -> None:
    """What it lacked at first may have come from elsewhere by then, and what it lacks now it did not ask for before."""
    e1, _, e3, a, b = helper()
    assert e1.hears(e3.need(a, has=0b111, backoff=2)).units == []
    assert e1.hears(e3.need(b, has=0b111, backoff=4)).units == []
    assert e1.fires("help").copies == ["b"]


def test_the_first_need_of_a_recovery_is_answered_at_once_however_rare_statuses_had_become() -> None:
    """A need with back-off says that it was asked in vain: this one was not, and its answer need not be put off."""
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    g = e3.sends("g", E1)
    e1.submits("a", E2)
    for _ in range(4):
        e1.fires("status")
    assert e1.machine.backoff.factor == MAX_FACTOR
    [need] = e1.hears(e2.reply(), e3.reply(sent=[g])).of(ResetNeed)
    assert (need.missing, need.backoff) == (((E3, 0),), 1)


def test_a_need_starts_the_timer_anew() -> None:
    """Otherwise it could fire before the answer can have come, and everything would be sent twice."""
    e1, e2, e3 = Node(E1, timing=Timing(reset=1000)), Peer(E2), Peer(E3)
    g = e3.sends("g", E1)
    e1.hears(e2.reply())
    out = e1.hears(e3.reply(sent=[g]))
    assert out.of(ResetNeed) == [ResetNeed(E1, 0, 0b111, ((E3, 0),), 0)]
    assert out.timers == ["reset"]


def test_go_back_n_keeps_what_all_have_and_throws_away_what_nobody_heard() -> None:
    """In order of source and number `own` would come first, and everything would be thrown away with it, for ever."""
    e1, e2, e3 = Node(E1, recovery=RecoveryPolicy.GO_BACK_N), Peer(E2), Peer(E3)
    b = e3.sends("b", E1, E2, E3)
    e1.submits("own", E2)
    e1.hears(b, e2.reply(b), e3.reply(b, sent=[b]))
    assert (e1.machine.recovery.order, e1.machine.recovery.removed) == (((E3, 0),), {(E1, 0)})
    out = e1.hears(e2.done(), e3.done())
    assert out.copies == ["own"]


def test_a_reply_that_is_heard_again_moves_nothing() -> None:
    e1, e2, _ = stopped(timing=Timing(reset=1000))
    e1.fires("reset")
    for least in (1, 2, 4):
        assert least <= e1.running["reset"] // 1000 < 2 * least
        e1.hears(e2.reply())
        e1.fires("reset")


def test_what_came_while_it_had_stopped_takes_a_place() -> None:
    e1, _, e3 = stopped()
    free = e1.machine.normal.free_buffers()
    e1.hears(e3.sends("late", E1))
    assert e1.machine.normal.free_buffers() == free - 1
