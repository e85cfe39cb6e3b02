"""Section 4.2 as the printed machine has it: all say what they expect, reject what follows the loss, and go back."""

from typing import Any

from ordercast.model.machine import Output, Reached, Receive, Resumed, Stopped
from ordercast.protocols.prito.paper.state import Stage
from ordercast.protocols.prito.paper.units import (
    Lost,
    PrintedData,
    PrintedReady,
    Rejected,
)
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.prito_paper.group import PaperGroup, ready, receipt_log


def lossy_group() -> PaperGroup:
    """E2 lacks b; a, c and d are behind each other in the log of E1 and E3."""
    group = PaperGroup()
    group.send(E1, "a")
    group.all_hear("a")
    group.send(E1, "b", 2)
    group.send(E3, "c", 3)
    group.send(E1, "d", 1)
    group.miss(E2, "b")
    return group


def test_failure_a_gap_stops_its_finder_which_says_what_it_expects() -> None:
    group = lossy_group()
    group.hear(E2, "c")
    unit = group.channel[group.places[E2]]
    group.places[E2] += 1
    outputs = group.handle(E2, Receive(unit))
    assert [output for output in outputs if isinstance(output, Stopped)] == [Stopped("number 2 of E1 is missing")]
    assert group.said("LOST E2").expects == (2, 1, 2)
    assert group.discarded[E2] == [("d", "gap")]
    assert group.machines[E2].stage is Stage.AGREEING


def test_failure_who_has_stopped_neither_accepts_nor_sends() -> None:
    group = lossy_group()
    group.hear(E2, "c", "d")
    group.send(E2, "e")
    group.send(E1, "f")
    group.hear(E2, "LOST E2", "f")
    assert group.discarded[E2] == [("d", "gap"), ("f", "stopped")]
    assert group.labels() == ["a", "b", "c", "d", "LOST E2", "f"]
    group.timers[E2]["ready"] = 0
    group.fire(E2, "ready")
    assert len(group.channel) == 6


def test_failure_who_hears_of_it_stops_too_and_says_so_once() -> None:
    group = lossy_group()
    group.hear(E2, "c", "d")
    group.hear(E1, "b", "c", "d", "LOST E2")
    assert group.said("LOST E1").expects == (4, 1, 2)
    group.hear(E1, "LOST E1")
    assert group.labels().count("LOST E1") == 1
    assert group.machines[E1].waits_for()[0] == "recovery: not known what {E3} expects"


def test_failure_all_say_from_where_on_they_reject() -> None:
    """b and all behind it, whoever lacks what."""
    group = lossy_group()
    group.settle(budget=12)
    rejected = {node: group.said(f"REJECTED E{node + 1}").below for node in group.nodes}
    assert rejected == {E1: (2, 1, 1), E2: (2, 1, 2), E3: (2, 1, 1)}


def test_failure_all_go_back_and_broadcast_again_under_the_same_numbers() -> None:
    group = lossy_group()
    group.recover_from_now()
    machine = group.machines[E1]
    assert [group.machines[node].expected for node in group.nodes] == [[2, 1, 1]] * 3
    assert receipt_log(group, E1) == "a | a*"
    assert max(max(row) for row in machine.accepted_below) <= 2
    copies = group.channel[-3:]
    assert [group.label(unit) for unit in copies] == ["b", "d", "c"]
    assert [(unit.seq, unit.expects) for unit in copies if isinstance(unit, PrintedData)] == [
        (2, (2, 1, 1)),
        (3, (2, 1, 1)),
        (1, (2, 1, 1)),
    ]
    assert group.copies == ["b", "d", "c"]


def test_failure_what_was_said_of_the_rejected_is_forgotten() -> None:
    group = lossy_group()
    group.hear(E3, "b")
    group.ready(E3)
    group.hear(E1, "b", "c", "d", "RR E3")
    assert group.machines[E1].accepted_below[E1] == [2, 1, 3], "E3 has said that it has b"
    group.recover_from_now()
    assert group.machines[E1].accepted_below[E1] == [2, 1, 2], "which it has rejected"


def test_failure_what_comes_late_is_stray() -> None:
    group = lossy_group()
    machine = group.machines[E2]
    machine.stage = Stage.REJECTING
    group.handle(E2, Receive(Lost(E1, (1, 1, 1))))
    assert group.discarded[E2] == [("LOST E1", "stray")]


def test_failure_nothing_is_told_twice() -> None:
    group = lossy_group()
    outputs: list[list[Output]] = [[], [], []]
    handle = group.handle

    def recorded(node: int, event: Any) -> list[Output]:
        found = handle(node, event)
        outputs[node] += found
        return found

    group.handle = recorded  # type: ignore[method-assign]
    assert group.settle()
    for node in group.nodes:
        reached = [(output.level, output.packet) for output in outputs[node] if isinstance(output, Reached)]
        assert len(reached) == len(set(reached))
        assert len([output for output in outputs[node] if isinstance(output, Resumed)]) == 1
    assert [output.asked for node in group.nodes for output in outputs[node] if isinstance(output, Resumed)] == [
        0,
        2,
        0,
    ]
    assert [sorted(letters) for letters in group.delivered] == [["a", "b", "c", "d"]] * 3


def test_failure_a_unit_without_data_is_broadcast_again_too() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    group.all_hear("a")
    group.ready(E2)
    group.miss(E1, "RR E2")
    group.hear(E2, "RR E2")
    group.recover(E2, [E1, E2])
    again = [unit for unit in group.channel if isinstance(unit, PrintedReady)]
    assert [(unit.source, unit.seq) for unit in again] == [(E2, 1), (E2, 2), (E2, 1), (E2, 2)]
    assert group.copies == []


def test_failure_who_rejects_what_all_had_accepted_contradicts_itself() -> None:
    group = PaperGroup(2)
    group.play([[1, 0, 1], [1, 1, 0], [2, 1, 0]])
    for unit in (Lost(E2, (1, 1)), Lost(E1, (3, 2)), Rejected(E1, (3, 2)), Rejected(E2, (1, 1))):
        group.handle(E1, Receive(unit))
    assert "a node rejects what it has acknowledged" in group.aborted[E1]
    assert group.handle(E1, Receive(ready(E2, 2, 3, 2))) == []
    assert group.machines[E1].aborted
