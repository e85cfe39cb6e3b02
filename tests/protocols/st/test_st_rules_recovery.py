"""ST, sound rules, when something is missing: stopping, replies, the agreed order, needs, help, and being done."""

from typing import Any

import pytest

from ordercast.model.config import Recovery, Timing
from ordercast.model.machine import CancelTimer, Level, Reached
from ordercast.model.reset_units import ResetDone, ResetNeed, ResetReply
from ordercast.model.units import Data, Ready, Unit
from tests.protocols.st.driver import E1, E2, E3, Group, Node, Outputs, Peer

ALL = (E1, E2, E3)


def stopped(**config: Any) -> tuple[Node, Peer, Peer]:
    """E1 has stopped in the first epoch, because E2 had; nothing was sent."""
    e1, e2, e3 = Node(E1, **config), Peer(E2), Peer(E3)
    assert e1.hears(e2.reply()).stops == ["told"]
    return e1, e2, e3


# --- stopping ---


def test_a_gap_stops_whoever_shows_it() -> None:
    for shows in ("for me", "for others", "status"):
        e1, e2 = Node(E1), Peer(E2)
        e2.sends("g", E1)  # lost
        unit: Unit = e2.ready() if shows == "status" else e2.sends("h", E1 if shows == "for me" else E3)
        out = e1.hears(unit)
        assert (out.stops, out.accepted, e1.machine.frozen) == (["gap"], [], True)
        assert len(out.of(ResetReply)) == 1
        assert out.timers == ["reset"]
        assert [packet.payload for packet in e1.machine.log] == ([b"h"] if shows == "for me" else [])


def test_an_own_echo_that_is_missing_is_a_gap() -> None:
    e1 = Node(E1)
    e1.submits("a", E1)
    assert e1.hears(*e1.fires("status").units).stops == ["gap"]


@pytest.mark.parametrize("unit", [Peer(E2).reply(), Peer(E2).need()])
def test_whoever_hears_that_another_one_has_stopped_stops(unit: Unit) -> None:
    out = Node(E1).hears(unit)
    assert out.stops == ["told"]
    assert [reply.source for reply in out.of(ResetReply)] == [E1]


def test_the_word_that_another_one_is_done_stops_nobody() -> None:
    e1 = Node(E1)
    assert list(e1.hears(Peer(E2).done())) == []
    assert not e1.machine.frozen


def test_a_long_log_stops_its_node() -> None:
    e1, e2 = Node(E1, log_limit=2), Peer(E2)
    assert e1.hears(e2.sends("a", E1), e2.sends("b", E1)).stops == []
    out = e1.hears(e2.sends("c", E1))
    assert (out.stops, out.accepted) == (["long log"], ["c"])


def test_a_node_stops_once() -> None:
    e1, e2, e3 = stopped()
    out = e1.hears(e3.reply(), e2.reply(), e2.need(has=0b111))
    assert out.stops == []


# --- the reply ---


def test_a_reply_tells_all_that_was_heard_in_its_place_and_what_may_be_lacking() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    a, b = e2.sends("a", E1), e3.sends("b", E1)
    e1.hears(a)
    e1.hears(*e1.fires("status").units)
    e1.hears(e2.expecting(0, 1, 0).ready(), b, e3.expecting(0, 1, 0).ready())
    e1.submits("own", E2)
    e3.sends("g", E1)  # lost
    reply = e1.hears(e3.sends("h", E1, E2)).of(ResetReply)[0]
    assert reply.log == ((E2, 0, 0b001), (E3, 0, 0b001), (E3, 2, 0b011))
    assert (reply.source, reply.epoch, reply.preacknowledged) == (E1, 0, 1)
    assert (reply.sent, reply.next_seq, reply.next_seq_to) == (((0, 0b010),), 1, (0, 1, 0))


def test_a_reply_never_changes() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    first = e1.hears(e2.reply()).of(ResetReply)[0]
    e1.hears(e3.sends("late", E1), e3.ready())
    e1.submits("more", E2)
    e1.fires("reset")
    assert e1.hears(e3.need()).of(ResetReply) == [first]


def test_the_first_reply_of_a_node_counts() -> None:
    e1, e2, e3 = stopped()
    a = e2.sends("a", E1)
    e1.hears(e2.reply(a))
    e1.hears(e3.reply())
    assert e1.machine.order == []


# --- while it has stopped ---


def test_a_stopped_node_sends_no_data_and_no_status() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e3.sends("a", E1))
    e1.hears(e2.reply())
    assert e1.submits("b", E2).units == []
    assert e1.drained().units == []
    assert list(e1.fires("status")) == []
    assert e1.machine.log_sizes().waiting == 1


def test_nothing_rises_while_it_has_stopped() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e3.sends("a", E1))
    status = e1.fires("status").units
    e1.hears(e2.reply())
    out = e1.hears(*status, e2.preacknowledging(0, 0, 1).ready(), e3.preacknowledging(0, 0, 1).ready())
    assert (out.preacknowledged, out.delivered) == ([], [])
    assert [reply.preacknowledged for reply in e1.machine.replies if reply is not None] == [0, 0]


def test_what_comes_to_a_stopped_node_has_a_body_but_no_place() -> None:
    e1, _, e3 = stopped()
    late, foreign = e3.sends("late", E1), e3.sends("foreign", E2)
    out = e1.hears(late, foreign)
    assert (out.accepted, e1.machine.log, set(e1.machine.contents)) == ([], [], {(E3, 0)})
    out = e1.hears(e3.reply(sent=[late, foreign]))
    assert out.of(ResetNeed) == []
    assert out.accepted == ["late"]


def test_what_it_has_it_does_not_keep_twice() -> None:
    e1, e2 = Node(E1), Peer(E2)
    a = e2.sends("a", E1)
    e1.hears(a, e2.reply(a), a)
    assert e1.machine.contents == {}


def test_an_own_packet_to_itself_is_not_lost_with_its_echo() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.submits("a", *ALL)
    out = e1.hears(e2.reply(), e3.reply())
    assert (out.of(ResetNeed), out.accepted) == ([], ["a"])
    assert len(out.of(ResetDone)) == 1


# --- the order is known ---


def test_when_all_have_replied_it_asks_for_what_it_lacks() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    a, b, c = e2.sends("a", E1, E2), e3.sends("b", E2), e3.sends("c", E1)
    assert e1.hears(e2.reply(a, sent=[a]), e2.done()).of(ResetNeed) == []
    out = e1.hears(e3.reply(sent=[b, c]))
    assert out.of(ResetNeed) == [ResetNeed(E1, 0, 0b111, ((E2, 0), (E3, 1)), 0b010)]
    assert out.of(ResetDone) == []


def test_when_it_lacks_nothing_it_is_done_at_once() -> None:
    e1, _, e3 = stopped()
    out = e1.hears(e3.reply())
    assert (out.of(ResetNeed), out.of(ResetDone)) == ([], [ResetDone(E1, 0)])
    assert e1.machine.epoch == 0


def test_when_the_last_that_it_lacks_comes_it_is_done() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    a, b = e3.sends("a", E1), e3.sends("b", E1)
    e1.hears(e2.reply(), e3.reply(sent=[a, b]))
    assert e1.machine.missing == {(E3, 0), (E3, 1)}
    assert e1.hears(b).of(ResetDone) == []
    out = e1.hears(b, a)
    assert out.of(ResetDone) == [ResetDone(E1, 0)]
    assert out.accepted == ["a", "b"], "in the agreed order"


def test_what_was_held_behind_a_gap_is_accepted_when_it_is_done() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    g, h = e3.sends("g", E1), e3.sends("h", E1)
    e1.hears(h)
    e1.hears(e2.reply(), e3.reply(sent=[g, h]))
    assert e1.hears(g).accepted == ["g", "h"]


# --- help ---


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
    for patience in (1, 2, 4, 4, 4, 4):
        waits.append(e1.running["reset"] // 1000)
        assert e1.fires("reset").of(ResetNeed) == [ResetNeed(E1, 0, 0b011, (), 0, patience)]
    # The reply of E2 came after the first timer was set: that moved something.
    assert all(least <= wait < 2 * least for wait, least in zip(waits, (1, 1, 2, 4, 4, 4), strict=True)), waits


def test_who_asked_in_vain_is_answered_at_a_time_of_ones_own() -> None:
    """All have answered at once, and overrun it: they would again, at once or after equal times."""
    delays = set()
    for me in range(5):
        node, peer = Node(me, nodes=6, timing=Timing(reset=1000)), Peer(5, nodes=6)
        node.hears(peer.reply())
        node.fires("reset")
        assert node.hears(peer.need(patience=2)).units == []
        delays.add(node.running["help"])
        node.hears(peer.need(patience=2))
        helped = node.fires("help")
        assert [unit.source for unit in helped.of(ResetReply)] == [me]
        assert node.machine.unhelped == {}
    assert len(delays) == 5
    assert all(0 <= delay < 1000 for delay in delays)


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
    e1, e2, e3 = Node(E1, recovery=Recovery.GO_BACK_N), Peer(E2), Peer(E3)
    b = e3.sends("b", E1, E2, E3)
    e1.submits("own", E2)
    e1.hears(b, e2.reply(b), e3.reply(b, sent=[b]))
    assert (e1.machine.order, e1.machine.removed) == ([(E3, 0)], {(E1, 0)})
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
    free = e1.machine._free()
    e1.hears(e3.sends("late", E1))
    assert e1.machine._free() == free - 1


# --- done ---


def test_an_epoch_is_finished_when_all_are_done() -> None:
    e1, e2, e3 = stopped()
    assert e1.hears(e2.done()).units == []
    e1.hears(e3.reply())
    assert (e1.machine.epoch, e1.machine.done) == (0, 0b011)
    out = e1.hears(e3.done())
    assert (e1.machine.epoch, e1.machine.frozen) == (1, False)
    assert CancelTimer("reset") in out
    assert "reset" not in e1.running


def test_what_rises_when_an_epoch_is_finished() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    own, mine = e1.submits("own", E3).of(Data)[0], e1.submits("mine", E1).of(Data)[0]
    g = e3.sends("g", E1)
    e1.hears(own, mine)
    e1.hears(e2.reply(), e3.reply(sent=[g]), g, e2.done())
    out = e1.hears(e3.done())
    assert sorted(out.preacknowledged) == ["g", "mine", "own"]
    assert (out.accepted, out.acknowledged, out.delivered) == ([], [], [])


def test_no_level_is_told_twice() -> None:
    group = Group()
    for name in "abc":
        group.submit(E1, name, *ALL)
    group.hear_all(E1, E2)
    group.lose(E3)
    group.settle()
    for node in group.nodes:
        for level in Level:
            reached = [output.packet for output in node.did if isinstance(output, Reached) and output.level is level]
            assert len(reached) == len(set(reached)) == 3
    assert group.delivered() == ["a b c"] * 3


# --- giving up ---


def test_a_channel_without_one_order_is_told_and_the_group_given_up() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    a, b = e2.sends("a", *ALL), e3.sends("b", *ALL)
    e1.hears(a, b, e2.reply(b, a))
    out = e1.hears(e3.reply())
    assert out.aborts == ["the channel did not keep one order"]
    assert e1.hears(a, e2.reply(), e2.done()) == []
    assert e1.submits("x", E2) == []


def test_who_gives_up_delivers_what_is_preacknowledged() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    a = e2.sends("a", *ALL)
    e1.hears(a)
    e1.hears(*e1.fires("status").units)
    assert e1.hears(e2.expecting(0, 1, 0).ready(), e3.expecting(0, 1, 0).ready()).preacknowledged == ["a"]
    b = e3.sends("b", *ALL)
    out = e1.hears(b, e2.reply(b, a), e3.reply())
    assert (out.aborts, out.delivered) == (["the channel did not keep one order"], ["a"])


@pytest.mark.parametrize("recovering", [False, True])
def test_who_is_silent_too_long_is_given_up(recovering: bool) -> None:
    e1, e2, e3 = Node(E1, polls_to_abort=3), Peer(E2), Peer(E3)
    e1.hears(e3.sends("a", E1))
    if recovering:
        e1.hears(e2.reply())
    timer = "reset" if recovering else "status"
    aborts, questions = [], 0
    for _ in range(6):
        out = e1.fires(timer)
        aborts += out.aborts
        if aborts:
            break
        questions += 1
        e1.hears(*out.units, e2.need(has=1) if recovering else e2.expecting(0, 0, 1).ready())
    assert aborts == ["E3 left 3 questions in a row unanswered"]
    assert questions == 3 + recovering  # that E2 stopped moved something: the first question counts nobody
    assert out.timers == []
    assert e1.hears(e2.reply(), e3.ready(wants=True)) == []


def test_a_source_that_does_not_send_what_is_missing_is_given_up_though_it_is_done() -> None:
    e1, e2, e3 = Node(E1, polls_to_abort=3), Peer(E2), Peer(E3)
    a = e3.sends("a", E1)
    e1.hears(e2.reply(), e3.reply(sent=[a]), e2.done(), e3.done())
    aborts = [why for _ in range(5) if "reset" in e1.running for why in e1.fires("reset").aborts]
    assert aborts == ["E3 left 3 questions in a row unanswered"]


def test_who_answers_in_time_is_not_given_up() -> None:
    e1, e2, e3 = Node(E1, polls_to_abort=2), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E1))
    for _ in range(8):
        out = e1.fires("status")
        assert (out.aborts, len(out.of(Ready))) == ([], 1)
        e1.hears(e2.ready(), e3.ready())
