"""Section 5 as the printed machine has it: the four steps of the run synchronisation."""

from typing import Any

import pytest

from ordercast.model.config import GroupConfig, PriorityConfig, Rules, Timing
from ordercast.model.machine import Deliver, Level, Output, Receive, Send, SetTimer, TimerFired
from ordercast.model.units import Packet
from ordercast.protocols.prito.paper.machine import PritoPaper
from ordercast.protocols.prito.paper.state import Entry
from ordercast.protocols.prito.paper.units import (
    NIL,
    PrintedData,
    Rejected,
    RunSync,
    RunSyncAck,
    RunSyncPack,
)
from tests.protocols.one_channel import E1, E2
from tests.protocols.prito_paper.group import PaperGroup, ready, receipt_log


def overtaken(**how: Any) -> PaperGroup:
    """d0 of E1 is acknowledged everywhere, and waits behind d3 of E2, which is not."""
    group = PaperGroup(2, **how)
    group.play([[1, 0, 1], [1, 1, 0], [2, 1, 0], [2, 3, 5], [1, 4, 0]])
    return group


def test_run_synchronisation_a_timer_runs_for_what_is_acknowledged_and_waits() -> None:
    group = overtaken()
    assert [timers.get("run-0-1") for timers in group.timers] == [Timing().run] * 2
    assert not any(name.startswith("run-1") for timers in group.timers for name in timers)
    for node in (E2, E1, E2):
        group.hear_rest()
        group.ready(node)
    group.hear_rest()
    assert group.together() == ["d3 d0", "d3 d0"]
    assert all(name == "ready" for timers in group.timers for name in timers), "it ends with the delivery"
    for machine in group.machines:
        assert machine.acknowledged == set()
        assert machine.handle(TimerFired("run-0-1")) == [], "what is delivered does not time out"


def test_run_synchronisation_without_it_nothing_times_out() -> None:
    group = overtaken(priority=PriorityConfig(synchronises=False))
    assert all(name == "ready" for timers in group.timers for name in timers)


def test_run_synchronisation_1_the_initiator_stops_and_says_what_has_timed_out() -> None:
    group = overtaken()
    group.fire(E1, "run-0-1")
    machine = group.machines[E1]
    unit = group.said("Run-Sync E1")
    assert (unit.timed_out, unit.preacknowledged_below) == ((1, NIL), tuple(machine.own_preacknowledged_below))
    before = receipt_log(group, E1)
    group.handle(E1, Receive(ready(E2, 3, 4, 3)))
    assert receipt_log(group, E1) == before + " RR*", "it accepts, and nothing rises"


def test_run_synchronisation_1_of_each_source_the_highest_number_counts() -> None:
    machine = overtaken().machines[E1]
    machine.expired, machine.timed_out = {(E2, 9)}, [NIL, 20]
    (sent,) = [output.unit for output in machine.handle(TimerFired("run-0-1")) if isinstance(output, Send)]
    assert isinstance(sent, RunSync)
    assert sent.timed_out == (1, 20)


def test_run_synchronisation_2_who_hears_of_it_stops_and_answers_with_what_it_knows() -> None:
    group = overtaken()
    machine = group.machines[E2]
    group.handle(E2, Receive(RunSync(E1, (NIL, NIL), (1, 1))))
    unit = group.said("Run-Sync-Pack E2")
    assert (unit.timed_out, unit.preacknowledged_below) == ((NIL, NIL), tuple(machine.own_preacknowledged_below))
    assert machine.synchronising
    group.handle(E2, Receive(RunSync(E1, (1, NIL), (1, 1))))
    assert group.labels().count("Run-Sync-Pack E2") == 1
    assert machine.timed_out == [1, NIL]


def test_run_synchronisation_2_what_has_timed_out_here_counts_too() -> None:
    group = overtaken()
    group.fire(E1, "run-0-1")
    group.fire(E2, "run-0-1")
    assert group.said("Run-Sync E2").timed_out == (1, NIL)
    group.machines[E2].timed_out = [NIL, NIL]
    group.handle(E2, Receive(RunSync(E1, (NIL, 7), (1, 1))))
    assert group.said("Run-Sync-Pack E2").timed_out == (1, 7)


def test_run_synchronisation_3_with_all_of_them_it_agrees() -> None:
    group = overtaken()
    group.fire(E1, "run-0-1")
    group.hear(E2, "Run-Sync E1")
    assert "Run-Sync-Ack E2" not in group.labels()
    group.hear(E2, "Run-Sync-Pack E2")
    assert "Run-Sync-Ack E2" in group.labels()


def test_run_synchronisation_4_what_has_timed_out_is_delivered_past_what_is_not_acknowledged() -> None:
    group = overtaken()
    group.fire(E1, "run-0-1")
    group.hear_rest()
    assert group.together() == ["d0", "d0"]
    assert [receipt_log(group, node) for node in group.nodes] == ["d3 | d3* RR*"] * 2
    assert not any(machine.synchronising for machine in group.machines)
    group.handle(E2, Receive(RunSync(E1, (NIL, NIL), (1, 1))))
    assert group.labels().count("Run-Sync-Pack E2") == 2, "and if there is another, all begins anew"
    again = group.channel[-1]
    assert isinstance(again, RunSyncPack)
    assert again.timed_out == (NIL, NIL), "what ended the last run is no end of this one"


def test_run_synchronisation_then_all_goes_on() -> None:
    group = overtaken()
    group.fire(E1, "run-0-1")
    assert group.settle()
    assert group.together() == ["d0 d3", "d0 d3"]


def test_run_synchronisation_4_all_pre_acknowledge_what_any_has() -> None:
    """E2 has not heard the last RR, so it has not pre-acknowledged what E1 has."""
    group = PaperGroup(2)
    for slot, (entity, taken, priority) in enumerate([(1, 0, 1), (1, 1, 0), (2, 1, 0), (2, 3, 5), (1, 4, 0)]):
        group.take(slot, entity - 1, taken, f"d{slot}" if priority else "", priority)
    group.hear_up_to(E1, 5)
    group.hear_up_to(E2, 4)
    higher, lower = (group.machines[node].own_preacknowledged_below for node in (E1, E2))
    assert (higher, lower) == ([3, 2], [2, 1])
    for unit in (RunSync(E1, (1, NIL), tuple(higher)), RunSyncPack(E2, (NIL, NIL), tuple(lower))):
        group.handle(E2, Receive(unit))
    group.machines[E2].accepted_below = [[1, 1], [1, 1]]
    for node in group.nodes:
        group.handle(E2, Receive(RunSyncAck(node, (1, NIL), tuple(higher))))
    assert group.machines[E2].own_preacknowledged_below == [3, 2]
    assert group.delivered[E2] == ["d0"]


def test_run_synchronisation_4_what_all_accepted_meanwhile_rises_when_it_ends() -> None:
    """PACK was stopped: it takes up what it would have done, and does not wait for another unit."""
    group = PaperGroup(2)
    machine = group.machines[E1]
    group.handle(E1, Receive(RunSync(E2, (NIL, NIL), (1, 1))))
    group.send(E1, "a")
    for unit in (group.said("a"), ready(E1, 2, 2, 1), ready(E2, 1, 2, 1)):
        group.handle(E1, Receive(unit))
    assert group.levels[E1]["a"] is Level.ACCEPTED
    group.handle(E1, Receive(RunSyncPack(E1, (NIL, NIL), (1, 1))))
    for node in group.nodes:
        group.handle(E1, Receive(RunSyncAck(node, (NIL, NIL), (1, 1))))
    assert not machine.synchronising
    assert group.levels[E1]["a"] is Level.PREACKNOWLEDGED


def test_run_synchronisation_takes_the_highest_that_anybody_reports() -> None:
    machine = PritoPaper(E1, PaperGroup(2).machines[E1].config)
    machine.synchronising = machine.ack_sent = True
    machine.timed_out = [NIL, 4]
    machine.handle(Receive(RunSyncAck(E2, (3, 2), (1, 5))))
    assert (machine.timed_out, machine.highest_preacknowledged) == ([3, 4], [1, 5])


def test_run_synchronisation_what_times_out_meanwhile_begins_another() -> None:
    machine = PritoPaper(E1, PaperGroup(2).machines[E1].config)
    machine.expired = {(E2, 1)}
    machine.acknowledged = {(E2, 1)}
    machine.synchronising = machine.ack_sent = True
    machine.agreed = 0b10
    outputs = machine.handle(Receive(RunSyncAck(E1, (NIL, NIL), (1, 1))))
    sent = [output.unit for output in outputs if isinstance(output, Send)]
    assert sent == [RunSync(E1, (NIL, 1), (1, 1))]


@pytest.mark.parametrize(
    "unit",
    [RunSyncPack(E2, (NIL, NIL), (1, 1)), RunSyncAck(E2, (NIL, NIL), (1, 1)), Rejected(E2, (1, 1))],
)
def test_answers_that_nobody_asked_for_are_strays(unit: RunSyncPack | RunSyncAck | Rejected) -> None:
    group = PaperGroup(2)
    group.handle(E1, Receive(unit))
    assert group.discarded[E1] == [(group.label(unit), "stray")]
    assert not any(isinstance(output, SetTimer | Deliver) for output in group.handle(E1, Receive(unit)))


def test_5_a_run_ends_at_the_last_that_has_timed_out() -> None:
    machine = PritoPaper(E1, GroupConfig(nodes=2, rules=Rules.PAPER))
    late = [
        PrintedData(Packet(source, 0b11, 0, (), 0, (1,), name.encode(), 1), (0, 0), wants=False)
        for source, name in enumerate("pq")
    ]
    machine.preacknowledged = [Entry(unit, pseudo=False) for unit in late]
    machine.own_preacknowledged_below, machine.preacknowledged_below = [1, 1], [[1, 1], [1, 1]]
    machine.timed_out = [0, 0]
    out: list[Output] = []
    machine.end_run(out)
    assert [output.packet for output in out if isinstance(output, Deliver)] == [unit.packet for unit in late]


@pytest.mark.parametrize(("source", "answers"), [(E1, 0), (E2, 1)])
def test_5_who_began_does_not_answer_itself(source: int, answers: int) -> None:
    machine = PritoPaper(E1, GroupConfig(nodes=2, rules=Rules.PAPER))
    out = machine.handle(Receive(RunSync(source, (NIL, NIL), (0, 0))))
    assert sum(isinstance(output, Send) and isinstance(output.unit, RunSyncPack) for output in out) == answers
