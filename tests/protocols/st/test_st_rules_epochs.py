"""ST, sound rules, from one epoch to the next: what is left, what comes early, who is late; and whole recoveries."""

from typing import Any

import pytest

from ordercast.model.config import RecoveryPolicy, Timing
from ordercast.model.machine import Resumed, Submit
from ordercast.model.units import Unit
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.units import ResetDone, ResetReply
from tests.protocols.st.driver import E1, E2, E3, E4, Group, Node, Outputs, Peer

ALL = (E1, E2, E3)


class Change:
    """E1 goes from the first epoch to the second, with `g` of E3 that it has only as a copy."""

    def __init__(self, **config: Any) -> None:
        self.e1, self.e2, self.e3 = Node(E1, **config), Peer(E2), Peer(E3)
        self.g = self.e3.sends("g", E1, E3)
        self.e1.hears(self.e2.reply(), self.e3.reply(self.g, sent=[self.g]), self.g, self.e2.done())

    def finish(self) -> Outputs:
        out = self.e1.hears(self.e3.done())
        assert self.e1.machine.normal.epoch == 1
        for peer in self.e2, self.e3:
            peer.epoch = 1
            peer.preacknowledging(0, 0, 1)
        return out


# --- a new epoch ---


def test_numbers_go_on_from_what_all_have_said() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.submits("own", E2)
    e2.sends("x", E3)
    e2.sends("y", E2)
    g = e3.sends("g", E1)
    e1.hears(e2.reply(), e3.reply(sent=[g]), g, e2.done(), e3.done())
    machine = e1.machine
    assert (machine.normal.expected, machine.normal.expected_to_me) == ([1, 2, 1], [0, 0, 1])
    assert machine.normal.accepted.acknowledged_below == [(1, 2, 1)] * 3
    assert machine.normal.preacknowledged.acknowledged_below[1:] == [(1, 2, 1)] * 2
    assert (machine.normal.next_seq, machine.normal.next_seq_to) == (1, [0, 1, 0])
    assert (machine.normal.log, machine.normal.unplaced, machine.recovery.missing, machine.recovery.done) == (
        [],
        {},
        set(),
        0,
    )
    assert machine.recovery.replies == [None] * 3
    e2.epoch = 1
    assert e1.hears(e2.sends("z", E1)).accepted == ["z"]


def test_in_a_new_epoch_everybody_speaks_at_once() -> None:
    out = Change().finish()
    ready = out.of(Ready)
    assert [(unit.status.epoch, unit.status.expects) for unit in ready] == [(1, (0, 0, 1))]


def test_in_a_new_epoch_what_waited_is_sent_instead() -> None:
    change = Change()
    change.e1.submits("later", E2)
    out = change.finish()
    assert [(unit.packet.payload, unit.status.epoch) for unit in out.of(Data)] == [(b"later", 1)]
    assert out.of(Ready) == []


def test_who_goes_on_tells_how_much_it_asked_for_and_put_in() -> None:
    """One packet is put in its place; with two, all from the first of them on are sorted."""
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    a, b, c, d, e = (e3.sends(name, E1) for name in "abcde")
    e1.hears(a, c, b)
    out = e1.hears(e2.reply(), e3.reply(sent=[a, b, c, d, e]), d, e, e2.done(), e3.done())
    assert out.resumes == [Resumed(2, 3, 4)]
    assert Change().finish().resumes == [Resumed(1, 1, 0)]


def test_what_was_sent_in_a_finished_epoch_takes_no_place_in_the_window() -> None:
    e1, e2, e3 = Node(E1, window=1), Peer(E2), Peer(E3)
    e1.submits("a", E2)
    e1.submits("b", E2)
    out = e1.hears(e2.reply(), e3.reply(), e2.done(), e3.done())
    assert [unit.packet.payload for unit in out.of(Data)] == [b"b"]


@pytest.mark.parametrize(("recovery", "left"), [(RecoveryPolicy.SELECTIVE, set()), (RecoveryPolicy.GO_BACK_N, {0})])
def test_that_something_is_to_all_matters_until_all_have_it(recovery: RecoveryPolicy, left: set[int]) -> None:
    """After a recovery they have it, unless it is taken back and sent again."""
    e1, e2, e3 = Node(E1, recovery=recovery), Peer(E2), Peer(E3)
    e1.handle(Submit(0b111, (1,), b"x", to_all=True))
    e1.hears(e2.reply(), e3.reply(), e2.done(), e3.done())
    assert e1.machine.normal.epoch == 1
    assert e1.machine.normal.to_all == left


def test_a_member_alone_finishes_an_epoch_by_itself() -> None:
    """Nothing is lost there; but whatever a unit that claims to be its own may say, it goes on."""
    node, forged = Node(E1, nodes=1, views=True), Peer(E1, nodes=1)
    forged.sends("never sent", E1)
    out = node.hears(forged.sends("nor this", E1))
    assert (len(out.stops), len(out.resumes)) == (1, 1)
    assert node.submits("x", E1).delivered == ["x"]


def test_a_reset_timer_that_comes_late_does_nothing() -> None:
    change = Change()
    change.finish()
    change.e1.running["reset"] = 0
    assert change.e1.fires("reset") == []


# --- what a finished epoch left ---


def test_what_is_left_is_delivered_when_all_are_seen_in_a_later_epoch() -> None:
    change = Change()
    assert change.finish().delivered == []
    assert change.e1.hears(change.e2.ready()).delivered == []
    out = change.e1.hears(change.e3.ready())
    assert (out.acknowledged, out.delivered) == (["g"], ["g"])
    assert not change.e1.machine.normal.unfinished()


def test_what_is_left_takes_a_place_until_it_is_delivered() -> None:
    change = Change(quota=4)
    assert [unit.status.free for unit in change.finish().of(Ready)] == [11]
    change.e1.hears(change.e2.ready(), change.e3.ready())
    assert change.e1.fires("status").units == [], "it has just spoken"
    change.e1.hears(change.e2.ready(wants=True))
    assert [unit.status.free for unit in change.e1.fires("status").of(Ready)] == [12]


def test_what_is_left_and_delivered_makes_statuses_frequent_again() -> None:
    change = Change(timing=Timing(status=1000))
    e1, e2, e3 = change.e1, change.e2, change.e3
    change.finish()
    e2.free = 0
    e1.hears(e2.ready())
    e1.submits("more", E2)  # which the window keeps back
    for _ in range(3):
        e1.fires("status")
    assert e1.running["status"] >= 4000
    assert e1.hears(e3.ready()).delivered == ["g"]
    e1.fires("status")
    assert e1.running["status"] < 2000


def test_who_still_has_something_left_asks() -> None:
    change = Change()
    change.finish()
    assert [unit.wants for unit in change.e1.fires("status").of(Ready)] == [0b111]


@pytest.mark.parametrize("kind", ["data", "status", "reply", "need"])
def test_every_unit_of_a_later_epoch_proves_that_its_sender_has_finished(kind: str) -> None:
    change = Change()
    change.finish()
    change.e1.hears(change.e2.ready())
    e3 = change.e3
    units: dict[str, Unit] = {"status": e3.ready(), "reply": e3.reply(), "need": e3.need(), "data": e3.sends("h", E2)}
    assert change.e1.hears(units[kind]).delivered == ["g"]


def test_the_word_of_being_done_proves_nothing() -> None:
    change = Change()
    change.finish()
    change.e1.hears(change.e2.ready())
    assert change.e1.hears(ResetDone(E3, 1)).delivered == []
    assert change.e1.machine.finished.epoch_seen == [1, 1, 0]


def test_units_that_come_early_prove_it_too() -> None:
    change = Change()
    for peer in change.e2, change.e3:
        peer.epoch = 1
        peer.preacknowledging(0, 0, 1)
        change.e1.hears(peer.ready())
    assert change.e1.machine.normal.epoch == 0
    out = change.e1.hears(ResetDone(E3, 0))
    assert out.delivered == ["g"]


def test_what_is_left_is_delivered_while_the_next_order_is_being_agreed_on() -> None:
    change = Change()
    change.finish()
    out = change.e1.hears(change.e2.reply())
    assert (out.stops, out.delivered) == (["told"], [])
    assert change.e1.hears(change.e3.reply()).delivered == ["g"]


def test_who_gives_up_delivers_what_is_left() -> None:
    change = Change(polls_to_abort=1)
    change.finish()
    out = Outputs(
        output for _ in range(3) if not change.e1.machine.normal.aborted for output in change.e1.fires("status")
    )
    assert out.aborts == ["E2 left 1 questions in a row unanswered"]
    assert out.delivered == ["g"]


# --- what comes early ---


def test_what_comes_early_is_kept_and_heard_in_its_order() -> None:
    change = Change()
    e1, e2, e3 = change.e1, change.e2, change.e3
    e2.epoch = e3.epoch = 1
    out = e1.hears(e3.sends("h", E1), e2.sends("i", E1), e3.sends("j", E1))
    assert (out.accepted, len(e1.machine.normal.of_next_epoch)) == ([], 3)
    out = e1.hears(ResetDone(E3, 0))
    assert out.accepted == ["h", "i", "j"]
    assert e1.machine.normal.of_next_epoch == []


def test_of_early_statuses_the_newest_of_each_node_is_kept() -> None:
    change = Change()
    e1, e2, e3 = change.e1, change.e2, change.e3
    e2.epoch = e3.epoch = 1
    e1.hears(e2.ready(), e3.ready(), e2.ready())
    assert [unit.status.stamp for unit in e1.machine.normal.of_next_epoch] == [2, 2]
    e1.hears(e2.sends("h", E1), e2.ready())
    kept = [(unit.source, type(unit).__name__, unit.status.stamp) for unit in e1.machine.normal.of_next_epoch]
    assert kept == [(E3, "Ready", 2), (E2, "Data", 3), (E2, "Ready", 4)]


def test_what_came_early_may_show_a_gap_and_the_rest_is_kept_as_contents() -> None:
    change = Change()
    e1, e2, e3 = change.e1, change.e2, change.e3
    e2.epoch = e3.epoch = 1
    e2.sends("lost", E1)
    e1.hears(e2.sends("h", E1), e3.sends("i", E1), e3.ready())
    out = e1.hears(ResetDone(E3, 0))
    assert (e1.machine.normal.epoch, out.stops, out.accepted) == (1, ["gap"], [])
    assert [packet.payload for packet in e1.machine.normal.log] == [b"h"]
    assert set(e1.machine.normal.unplaced) == {(E3, 1)}


def test_what_came_early_takes_a_place() -> None:
    change = Change()
    free = change.e1.machine.normal.free_buffers()
    change.e2.epoch = 1
    change.e1.hears(change.e2.sends("h", E1))
    assert change.e1.machine.normal.free_buffers() == free - 1


def test_agreements_of_a_later_epoch_are_passed_over_for_now() -> None:
    change = Change()
    change.e2.epoch = 1
    before = change.e1.machine.recovery.replies[:]
    assert change.e1.hears(change.e2.reply(), change.e2.need(), change.e2.done()) == []
    assert change.e1.machine.recovery.replies == before
    assert change.e1.machine.finished.epoch_seen == [0, 1, 0]


@pytest.mark.parametrize("epoch", [0, 3])
def test_units_of_other_epochs_are_thrown_away(epoch: int) -> None:
    change = Change()
    change.finish()
    change.e2.epoch = epoch
    out = change.e1.hears(change.e2.sends("x", E1), change.e2.ready())
    assert (out.discards, out.accepted) == (["old", "old"], [])
    assert change.e1.machine.normal.of_next_epoch == []


# --- who is late ---


@pytest.mark.parametrize("kind", ["reply", "need"])
def test_who_is_late_is_told_that_all_is_done_once_in_a_while(kind: str) -> None:
    change = Change()
    e1, e3 = change.e1, Peer(E3)
    change.finish()
    unit: Unit = e3.reply() if kind == "reply" else e3.need()
    assert e1.hears(unit).of(ResetDone) == [ResetDone(E1, 0)]
    assert e1.hears(unit).units == []
    assert e1.fires("answer").units == []
    assert e1.hears(unit).of(ResetDone) == [ResetDone(E1, 0)]
    assert (e1.machine.normal.epoch, e1.machine.recovery.active) == (1, False)


def test_who_is_late_is_not_told_what_it_knows() -> None:
    change = Change()
    change.finish()
    assert change.e1.hears(Peer(E3).need(done=1 << E1)).units == []


def test_who_is_late_and_asked_in_vain_is_told_in_a_while() -> None:
    change = Change()
    e1 = change.e1
    change.finish()
    assert e1.hears(Peer(E3).need(backoff=2)).units == []
    assert e1.fires("help").of(ResetDone) == [ResetDone(E1, 0)]
    assert e1.machine.recovery.delayed_needs == []


def test_the_word_of_being_done_is_never_answered() -> None:
    change = Change()
    change.finish()
    assert change.e1.hears(ResetDone(E3, 0), ResetDone(E2, 0)) == []


def test_epochs_before_the_last_are_nobodys_business() -> None:
    change = Change()
    change.finish()
    change.e1.machine.normal.epoch = 5
    assert change.e1.hears(Peer(E2).reply(), Peer(E3).need()).units == []


def test_its_own_words_come_back_and_say_nothing_new() -> None:
    e1, e2 = Node(E1), Peer(E2)
    reply = e1.hears(e2.reply()).of(ResetReply)
    assert e1.hears(*reply, *e1.fires("reset").units, ResetDone(E1, 0)) == []
    assert e1.machine.recovery.done == 0


def test_a_node_that_missed_the_last_word_is_brought_along() -> None:
    group = Group()
    group.submit(E1, "a", *ALL)
    group.hear_all(E1, E2)
    group.lose(E3)
    group.fire("status", E1)
    for _ in range(6):
        group.hear_all(E1, E2)
        for _ in range(len(group.queues[E3])):
            if isinstance(group.queues[E3][0], ResetDone):
                group.lose(E3)
            else:
                group.hear(E3)
    assert [node.machine.normal.epoch for node in group.nodes] == [1, 1, 0]
    assert group.delivered() == ["", "", ""]
    group.settle()
    assert group.delivered() == ["a", "a", "a"]


def test_a_log_keeps_what_was_acknowledged_without_its_messages() -> None:
    """A log is as long as its epoch: with the messages it would grow to hundreds of megabytes."""
    group = Group()
    for name in ("a", "b"):
        group.submit(E1, name, *ALL)
    group.settle()
    assert [[packet.payload for packet in node.machine.normal.log] for node in group.nodes] == [[b"", b""]] * 3
    group.submit(E2, "c", *ALL)
    group.hear_all(E1, E2)
    group.lose(E3)
    group.submit(E2, "d", *ALL)
    group.settle()
    assert [node.machine.normal.epoch for node in group.nodes] == [1, 1, 1]
    assert group.delivered() == ["a b c d"] * 3


# --- whole recoveries: the papers' cases ---

CASES = {
    # channel as (sender, name, destinations), losses as (node, name), deliveries in the end
    "S1": ([(1, "g", "13"), (2, "z", "13"), (1, "p", "13")], ["3g"], ["g z p", "", "g z p"]),
    "S2": (
        [(2, "u", "12"), (1, "v", "13"), (1, "c", "13"), (1, "d", "1")],
        ["3u", "3c"],
        ["u v c d", "u", "v c"],
    ),
    "S3": ([(2, "g", "13"), (3, "y", "13")], ["3g"], ["g y", "", "g y"]),
    "S8": ([(1, "g", "13"), (2, "z", "13"), (1, "h", "13")], ["3g", "3h"], ["g z h", "", "g z h"]),
    "all lost": ([(1, "a", "12"), (2, "b", "23"), (3, "c", "13")], ["1c", "2a", "3b"], ["a c", "a b", "b c"]),
    "heard by nobody": ([(1, "a", "123"), (2, "b", "123")], ["1a", "2a", "3a"], ["a b"] * 3),
    "four": (
        [(3, "o", "34"), (4, "g", "41"), (1, "w", "12"), (2, "m", "23")],
        ["3m"],
        ["g w", "w m", "o m", "o g"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_recovery_ends_with_everything_in_one_order(case: str) -> None:
    channel, losses, delivered = CASES[case]
    group = Group(nodes=4 if case == "four" else 3)
    for sender, name, to in channel:
        group.submit(sender - 1, name, *[int(node) - 1 for node in to])
        for node in range(len(group.nodes)):
            if f"{node + 1}{name}" in losses:
                group.lose(node)
            else:
                group.hear(node)
    group.settle()
    assert group.delivered() == delivered
    assert len({node.machine.normal.epoch for node in group.nodes}) == 1
    assert group.nodes[E1].machine.normal.epoch >= 1


def test_long_logs_are_cut_without_a_loss() -> None:
    group = Group(nodes=4, log_limit=2)
    for number in range(12):
        group.submit(number % 4, f"m{number}", E1, E2, E3, E4)
    group.settle()
    assert len(set(group.delivered())) == 1
    assert len(group.nodes[E1].did.delivered) == 12
    assert group.nodes[E1].machine.normal.epoch >= 1
    assert {why for node in group.nodes for why in node.did.stops} <= {"long log", "told"}
