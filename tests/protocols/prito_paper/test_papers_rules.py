"""Section 4.1 as the printed machine has it: transmission, acceptance, PACK, ACK, and units without data."""

import pytest

from ordercast.model.config import PaperRules, PriorityReadings, Timing
from ordercast.model.machine import Deliver, Level, Output, Reached, Receive
from ordercast.protocols.prito.paper.state import Entry
from ordercast.protocols.prito.paper.units import (
    PrintedData,
    PrintedReady,
)
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.prito_paper.group import PaperGroup, ready, receipt_log

# --- transmission procedure ---


def test_transmission_a_unit_has_the_next_number_and_what_is_expected() -> None:
    group = PaperGroup(2)
    group.send(E1, "a", 3)
    group.all_hear("a")
    group.send(E1, "b", 2)
    units = [group.said(letter) for letter in "ab"]
    assert [(unit.seq, unit.packet.priority, unit.expects) for unit in units] == [(1, 3, (1, 1)), (2, 2, (2, 1))]


def test_transmission_a_unit_is_kept_until_it_is_pre_acknowledged() -> None:
    """That all have accepted x is not enough: E3 lacks z, which came before it, so that x will be rejected."""
    group = PaperGroup()
    group.send(E2, "z")
    group.send(E1, "x")
    group.miss(E3, "z")
    group.hear(E3, "x")
    for node in (E1, E2):
        group.hear(node, "z", "x")
    for node in (E3, E1, E2):
        group.ready(node)
    group.hear_rest(E1)
    machine = group.machines[E1]
    assert min(machine.accepted_below[E1]) > group.said("x").seq
    assert group.said("x") in machine.sent
    assert group.settle()
    assert machine.sent == [unit for unit in machine.sent if isinstance(unit, PrintedReady)]
    assert [sorted(letters) for letters in group.delivered] == [["x", "z"]] * 3


def test_transmission_waits_for_the_window() -> None:
    group = PaperGroup(2, window=2)
    for letter in "abc":
        group.send(E1, letter)
    assert group.labels() == ["a", "b"]
    assert group.machines[E1].log_sizes().waiting == 1
    assert group.settle()
    assert group.together() == ["a b c", "a b c"]


# --- accept procedure ---


def test_acceptance_puts_data_by_priority_and_pseudo_pdus_in_the_order_of_the_channel() -> None:
    group = PaperGroup(2)
    for letter, priority in (("a", 1), ("b", 3), ("c", 2), ("d", 3)):
        group.send(E1, letter, priority)
    group.ready(E2)
    group.hear(E2, "a", "b", "c", "d", "RR E2")
    assert receipt_log(group, E2) == "b d c a | a* b* c* d* RR*"


def test_acceptance_the_lowest_priority_of_an_application_is_above_that_of_pseudo_pdus() -> None:
    group = PaperGroup(2)
    group.send(E1, "a", 0)
    group.send(E1, "b", 0)
    group.hear(E2, "a", "b")
    assert receipt_log(group, E2) == "a b | a* b*"


def test_acceptance_own_units_come_from_the_channel() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    assert (receipt_log(group, E1), group.machines[E1].expected) == ("|", [1, 1])
    group.hear(E1, "a")
    assert (receipt_log(group, E1), group.machines[E1].expected) == ("a | a*", [2, 1])


def test_acceptance_notes_what_is_expected_of_and_by_whom() -> None:
    group = PaperGroup(2)
    machine = group.machines[E2]
    group.handle(E2, Receive(ready(E1, 1, 1, 1)))
    group.handle(E2, Receive(ready(E2, 1, 2, 1)))
    assert machine.expected == [2, 2]
    assert machine.accepted_below == [[1, 2], [1, 1]], "a row for each source, a column for each node"


def test_acceptance_looks_at_the_number_alone() -> None:
    """As printed: what it acknowledges may be missing here."""
    group = PaperGroup(2)
    group.send(E1, "a")
    unit = group.said("a")
    outputs = group.handle(E2, Receive(PrintedData(unit.packet, (1, 9))))
    assert Reached(Level.ACCEPTED, unit.packet) in outputs


def test_acceptance_of_a_duplicate_does_nothing() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    group.all_hear("a")
    before = receipt_log(group, E2)
    group.handle(E2, Receive(group.said("a")))
    assert group.discarded[E2] == [("a", "duplicate")]
    assert receipt_log(group, E2) == before


# --- PACK and ACK procedures ---


def test_pack_in_the_order_of_the_channel_as_far_as_all_have_accepted() -> None:
    group = PaperGroup(2)
    group.send(E1, "a", 1)
    group.send(E1, "b", 2)
    for taken, node in ((1, E1), (2, E2)):
        group.hear_up_to(node, taken)
        group.ready(node)
    group.hear_rest(E2)
    machine = group.machines[E2]
    assert receipt_log(group, E2) == "b a a* | b* RR* RR*", "E1 has not said that it has b"
    assert machine.own_preacknowledged_below == [2, 1]
    assert machine.preacknowledged_below == [[1, 1], [1, 1]], "what a says: nothing yet"
    assert group.levels[E2] == {"a": Level.PREACKNOWLEDGED, "b": Level.ACCEPTED}


def test_pack_pseudo_pdus_without_data_leave() -> None:
    group = PaperGroup(2)
    group.play([[1, 0, 1], [1, 1, 0], [2, 1, 0], [1, 3, 0], [2, 3, 0]])
    assert receipt_log(group, E1) == "| RR* RR*", "d0 is delivered, and both first RRs have left"
    assert group.machines[E1].own_preacknowledged_below == [3, 2]
    assert group.machines[E1].preacknowledged_below == [[2, 2], [1, 1]], "what those RRs said"


def test_ack_the_top_alone_is_delivered_and_its_pseudo_pdu_leaves_with_it() -> None:
    """d0 is acknowledged, but d3 came before it and is not."""
    group = PaperGroup(2)
    group.play([[1, 0, 1], [1, 1, 0], [2, 1, 0], [2, 3, 5], [1, 4, 0]])
    assert group.levels[E2] == {"d0": Level.ACKNOWLEDGED, "d3": Level.ACCEPTED}
    assert receipt_log(group, E2) == "d3 d0 d0* | d3* RR*"
    assert group.together() == ["", ""]
    assert group.settle()
    assert group.together() == ["d3 d0", "d3 d0"]
    assert all("d" not in receipt_log(group, node) for node in group.nodes)


def test_ack_what_completes_an_acknowledgment_may_jump_the_queue() -> None:
    """It is put in its place before PACK and ACK run."""
    group = PaperGroup(2)
    group.play([[1, 0, 1], [1, 1, 0], [2, 1, 0], [1, 3, 0], [2, 3, 5]])
    assert receipt_log(group, E1) == "d4 d0 d0* | RR* d4*"
    assert group.levels[E1]["d0"] is Level.ACKNOWLEDGED


def test_ack_only_what_i_have_pre_acknowledged() -> None:
    """Whatever contradictory peers say: here they take back that they have accepted anything."""
    group = PaperGroup(2)
    group.send(E1, "w")
    group.send(E1, "x")
    machine = group.machines[E1]
    for unit in (ready(E2, 1, 9, 9), PrintedData(group.said("w").packet, (9, 9)), ready(E2, 2, 1, 1)):
        group.handle(E1, Receive(unit))
    assert group.delivered[E1] == ["w"]
    group.handle(E1, Receive(PrintedData(group.said("x").packet, (1, 1))))
    assert min(machine.preacknowledged_below[E1]) > 2 == machine.own_preacknowledged_below[E1]
    assert group.delivered[E1] == ["w"]


def test_levels_are_told_in_order() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    assert group.settle()
    assert group.levels == [{"a": Level.ACKNOWLEDGED}] * 2
    assert group.broken_promises() == set()


def test_pack_and_ack_run_in_silence_where_they_are_read_so() -> None:
    """All have accepted d0, and have said so: after every acceptance it rises at once, in silence when E1 speaks."""
    for rises_in_silence in (False, True):
        group = PaperGroup(2, paper=PaperRules(priority=PriorityReadings(rises_in_silence=rises_in_silence)))
        group.play([[1, 0, 1], [1, 1, 0], [2, 1, 0]])
        assert group.levels[E1]["d0"] is (Level.ACCEPTED if rises_in_silence else Level.PREACKNOWLEDGED)
        group.fire(E1, "ready")
        assert group.levels[E1]["d0"] is Level.PREACKNOWLEDGED


@pytest.mark.parametrize(("acknowledges_each", "delivered"), [(True, ["a"]), (False, [])])
def test_ack_after_each_that_pack_moves_where_it_is_read_so(acknowledges_each: bool, delivered: list[str]) -> None:
    """PACK moves a, which is acknowledged, and b, which is not and more urgent: ACK finds a at the top, or b."""
    readings = PriorityReadings(sorts_preacknowledged=True, acknowledges_each=acknowledges_each)
    group = PaperGroup(2, paper=PaperRules(priority=readings))
    group.send(E1, "a", 1)
    group.send(E2, "b", 5)
    machine = group.machines[E1]
    for letter, expects in (("a", (2, 1)), ("b", (2, 1))):
        unit = PrintedData(group.said(letter).packet, expects)
        machine.accepted += [Entry(unit, pseudo=True), Entry(unit, pseudo=False)]
    machine.preacknowledged_below = [[1, 2], [1, 1]]
    out: list[Output] = []
    machine.preacknowledge([2, 2], out)
    machine.acknowledge(out)
    assert [group.letter(output.packet) for output in out if isinstance(output, Deliver)] == delivered


# --- receive-ready units ---


def test_ready_is_sent_by_whoever_waits_and_by_whoever_is_asked() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    assert Timing().status <= group.timers[E1]["ready"] < 2 * Timing().status
    assert "ready" not in group.timers[E2]
    group.hear(E2, "a")
    group.fire(E2, "ready")
    unit = group.said("RR E2")
    assert (unit.seq, unit.expects, unit.wants) == (1, (2, 1), True)


def test_ready_is_put_off_by_whatever_is_sent() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    group.now += 10
    group.send(E1, "b")
    assert group.timers[E1]["ready"] >= Timing().status + 10


def test_ready_who_has_finished_answers_once_and_falls_silent() -> None:
    group = PaperGroup(2)
    assert group.handle(E2, Receive(PrintedReady(E1, 1, (1, 1), wants=True)))
    group.fire(E2, "ready")
    unit = group.said("RR E2")
    assert (unit.wants, list(group.timers[E2])) == (False, ["ready"])
    group.fire(E2, "ready")
    assert (len(group.channel), group.timers[E2]) == (1, {})


def test_ready_nobody_answers_itself() -> None:
    group = PaperGroup(2)
    assert group.handle(E1, Receive(PrintedReady(E1, 1, (1, 1), wants=True))) == []


def test_ready_whoever_sent_what_all_have_lost_speaks_until_they_see_it() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    for node in group.nodes:
        group.miss(node, "a")
    assert group.settle()
    assert group.together() == ["a", "a"]


def test_ready_that_asks_for_nothing_is_not_answered() -> None:
    group = PaperGroup(2)
    assert group.handle(E2, Receive(PrintedReady(E1, 1, (1, 1)))) == []
