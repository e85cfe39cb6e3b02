"""ST, sound rules, when something is missing: stopping, replies, the agreed order, needs, help, and being done."""

from typing import Any

import pytest

from ordercast.model.machine import CancelTimer, Level, Reached
from ordercast.model.units import Unit
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply
from tests.protocols.st.driver import E1, E2, E3, Group, Node, Peer

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
        assert (out.stops, out.accepted, e1.machine.recovery.active) == (["gap"], [], True)
        assert len(out.of(ResetReply)) == 1
        assert out.timers == ["reset"]
        assert [packet.payload for packet in e1.machine.normal.log] == ([b"h"] if shows == "for me" else [])


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
    before = e1.machine.snapshot()
    assert list(e1.hears(Peer(E2).done())) == []
    assert e1.machine.snapshot() == before


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
    assert e1.machine.recovery.order == ()


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
    assert [reply.preacknowledged for reply in e1.machine.recovery.replies if reply is not None] == [0, 0]


def test_what_comes_to_a_stopped_node_has_a_body_but_no_place() -> None:
    e1, _, e3 = stopped()
    late, foreign = e3.sends("late", E1), e3.sends("foreign", E2)
    out = e1.hears(late, foreign)
    assert (out.accepted, e1.machine.normal.log, set(e1.machine.normal.unplaced)) == ([], [], {(E3, 0)})
    out = e1.hears(e3.reply(sent=[late, foreign]))
    assert out.of(ResetNeed) == []
    assert out.accepted == ["late"]


def test_what_it_has_it_does_not_keep_twice() -> None:
    e1, e2 = Node(E1), Peer(E2)
    a = e2.sends("a", E1)
    e1.hears(a, e2.reply(a), a)
    assert e1.machine.normal.unplaced == {}


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
    assert e1.machine.normal.epoch == 0


def test_when_the_last_that_it_lacks_comes_it_is_done() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    a, b = e3.sends("a", E1), e3.sends("b", E1)
    e1.hears(e2.reply(), e3.reply(sent=[a, b]))
    assert e1.machine.recovery.missing == {(E3, 0), (E3, 1)}
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


# --- done ---


def test_an_epoch_is_finished_when_all_are_done() -> None:
    e1, e2, e3 = stopped()
    assert e1.hears(e2.done()).units == []
    e1.hears(e3.reply())
    assert (e1.machine.normal.epoch, e1.machine.recovery.done) == (0, 0b011)
    out = e1.hears(e3.done())
    assert (e1.machine.normal.epoch, e1.machine.recovery.active) == (1, False)
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


def test_a_reply_that_pre_acknowledges_more_than_it_holds_is_thrown_away() -> None:
    node, e2 = Node(E1, 2), Peer(E2, 2)
    before = node.machine.snapshot()
    x = e2.sends("x", E1, E2)
    assert node.hears(e2.reply(x, preacknowledged=2)).discards == ["impossible"]
    assert node.machine.snapshot() == before
    assert node.hears(e2.reply(x, preacknowledged=1)).stops == ["told"]
