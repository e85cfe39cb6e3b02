"""The examples of the paper, by number, and the golden traces and recoveries of the printed machine."""

from heapq import heapify
from typing import Any

import pytest

from ordercast.model.machine import Deliver, Level, Output
from ordercast.model.units import Packet
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.prito.paper.state import Entry, insert_by_priority
from ordercast.protocols.prito.paper.units import NIL, PrintedData, PrintedReady
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.prito_paper.group import GOLDEN, PaperGroup, SoundGroup

# --- 4.1: the priority-based insert ---


@pytest.mark.parametrize("case", GOLDEN["insert"]["cases"] + GOLDEN["insert"]["derived"])
def test_priority_based_insert(case: dict[str, Any]) -> None:
    """Of the log as one, and of the log cut anywhere into two that are one."""
    entries = [Entry(data(letter, priority), pseudo=False) for letter, priority in case["L"]]
    for cut in range(len(entries) + 1):
        one, two = entries[:cut], entries[cut:]
        insert_by_priority(Entry(data(*case["p"]), pseudo=False), one, two)
        found = [[entry.unit.packet.payload.decode(), entry.rank - 1] for entry in one + two]  # type: ignore[union-attr]
        assert found == case["out"]


def data(letter: str, priority: int) -> PrintedData:
    return PrintedData(Packet(0, 1, 1, (), 0, (1,), letter.encode(), priority), (1,))


# --- traces without loss ---


@pytest.mark.parametrize("trace", GOLDEN["traces_loss_free"], ids=lambda trace: trace["name"])
def test_traces_without_loss(trace: dict[str, Any]) -> None:
    """The units on the channel are those of the trace, and everybody is given what it says in the order it says."""
    group = PaperGroup(trace["n"])
    group.play(trace["slots"])
    units = [unit for unit in group.channel if isinstance(unit, PrintedData | PrintedReady)]
    assert len(units) == len(group.channel)
    for unit, expected in zip(units, trace["channel_pdus"], strict=True):
        assert [unit.source + 1, unit.seq, list(unit.expects)] == [expected["src"], expected["seq"], expected["ack"]]
        assert (unit.packet.priority if isinstance(unit, PrintedData) else 0) == expected["pri"]
    assert group.delivered == [trace["delivered_paper_machine_so_far"]] * trace["n"]


@pytest.mark.parametrize("trace", GOLDEN["traces_loss_free"], ids=lambda trace: trace["name"])
def test_traces_without_loss_come_to_an_end(trace: dict[str, Any]) -> None:
    group = PaperGroup(trace["n"])
    group.play(trace["slots"])
    assert group.settle()
    sent = [f"d{slot}" for slot, (_, _, priority) in enumerate(trace["slots"]) if priority]
    assert all(sorted(delivered) == sorted(sent) for delivered in group.delivered)
    assert group.broken_promises() == set()


@pytest.mark.parametrize("trace", GOLDEN["traces_loss_free"], ids=lambda trace: trace["name"])
def test_traces_without_loss_under_the_sound_rules(trace: dict[str, Any]) -> None:
    """A packet overtakes another only if it comes before the last of the first round of its acknowledgments."""
    group = SoundGroup(trace["n"])
    group.play(trace["slots"])
    assert group.delivered == [trace["delivered_normative_so_far"]] * trace["n"]
    assert group.settle()
    assert group.broken_promises() == set()


# --- recovery, whose order of broadcasting again is left to the channel ---


def orders_of(case: dict[str, Any]) -> dict[str, list[int]]:
    """Which node goes first: by the first slot that is rejected, ascending, or descending."""
    nodes = list(range(case["n"]))
    ((_, first),) = case["lost"]
    rejected = [entity - 1 for entity, _, _ in case["slots"][first:]]
    original = list(dict.fromkeys(rejected)) + [node for node in nodes if node not in rejected]
    return {"orig": original, "asc": nodes, "desc": nodes[::-1]}


@pytest.mark.parametrize("order", ["orig", "asc", "desc"])
@pytest.mark.parametrize("case", GOLDEN["recovery"], ids=lambda case: case["name"])
def test_recovery(case: dict[str, Any], order: str) -> None:
    """What each is given in the end depends on who is quicker, and is not always the same."""
    group = PaperGroup(case["n"])
    group.play(case["slots"], case["lost"])
    group.recover(case["slots"][case["lost"][0][1]][0] - 1, orders_of(case)[order])
    assert group.settle()
    assert group.delivered == case["paper+noflush"][order]


@pytest.mark.parametrize("case", GOLDEN["recovery"], ids=lambda case: case["name"])
def test_recovery_under_the_sound_rules(case: dict[str, Any]) -> None:
    group = SoundGroup(case["n"])
    group.play(case["slots"], case["lost"])
    assert group.settle()
    expected = case["normative+minreq"]
    assert group.delivered == expected["orig"] == expected["asc"] == expected["desc"]
    assert group.broken_promises() == set()


# --- 5: Figure 5 ---


@pytest.fixture
def figure_5() -> PaperGroup:
    """The logs of (1), with the sources and numbers of the golden file; e, f and g say that a to d are accepted."""
    fig = GOLDEN["fig5"]
    group = PaperGroup()
    units = {}
    for letter, priority in fig["arrival_order"]:
        source, seq = fig["source"][letter] - 1, fig["seq"][letter]
        packet = Packet(source, 0b111, seq, (), seq - 1, (1,), letter.encode(), priority)
        units[letter] = PrintedData(packet, (3, 2, 2) if letter in "efg" else (2, 1, 1))
        group.letters[source, seq - 1] = letter
        group.submitted[letter] = source, ""
    for node, machine in enumerate(group.machines):
        delivered = fig["already_delivered"][f"E{node + 1}"]
        held = [unit for letter, unit in units.items() if letter not in delivered]
        preacknowledged = "abcdef" if node == E1 else "abcdefg"
        for unit in held:
            insert_by_priority(Entry(unit, pseudo=False), machine.preacknowledged)
        for unit in held:
            log = machine.preacknowledged if group.letter(unit.packet) in preacknowledged else machine.accepted
            log.append(Entry(unit, pseudo=True))
        for letter in preacknowledged:
            for of, seq in enumerate(units[letter].expects):
                machine.preacknowledged_below[of][units[letter].source] = seq
            machine.own_preacknowledged_below[units[letter].source] = units[letter].seq + 1
        machine.expected = [4, 4, 3]
    for node, letter in ((E1, "a"), (E3, "b")):
        group.machines[node].acknowledged.add((units[letter].source, units[letter].seq))
        group.timers[node][f"run-{units[letter].source}-{units[letter].seq}"] = 0
    return group


def test_figure_5_1_the_timers_of_a_and_b_expire(figure_5: PaperGroup) -> None:
    figure_5.fire(E1, "run-0-1")
    figure_5.fire(E3, "run-1-1")
    assert figure_5.labels() == ["Run-Sync E1", "Run-Sync E3"]
    assert [figure_5.said(f"Run-Sync E{entity}").timed_out for entity in (1, 3)] == [(1, NIL, NIL), (NIL, 1, NIL)]
    assert [machine.synchronising for machine in figure_5.machines] == [True, False, True]
    assert figure_5.delivered == [[], [], []]


def test_figure_5_2_all_agree(figure_5: PaperGroup) -> None:
    fig = GOLDEN["fig5"]
    figure_5.fire(E1, "run-0-1")
    figure_5.fire(E3, "run-1-1")
    figure_5.hear_rest()
    said = [*["Run-Sync-Pack E1", "Run-Sync-Pack E2", "Run-Sync-Pack E3"], *[f"Run-Sync-Ack E{n}" for n in (1, 2, 3)]]
    assert sorted(figure_5.labels()[2:]) == sorted(said)
    agreed = fig["TOSEQ_agreed"]
    timed_out = tuple(NIL if agreed[entity] is None else agreed[entity] for entity in "123")
    last_preacknowledged = {
        fig["source"][letter]: fig["seq"][letter] for letter in fig["pre_acknowledged_after_agreement"]
    }
    below = tuple(last_preacknowledged[entity] + 1 for entity in (1, 2, 3))
    for entity in "123":
        ack = figure_5.said(f"Run-Sync-Ack E{entity}")
        assert (ack.timed_out, ack.preacknowledged_below) == (timed_out, below)


def test_figure_5_3_the_run_is_delivered(figure_5: PaperGroup) -> None:
    fig = GOLDEN["fig5"]
    figure_5.fire(E1, "run-0-1")
    figure_5.fire(E3, "run-1-1")
    figure_5.hear_rest()
    for node, machine in enumerate(figure_5.machines):
        name = f"E{node + 1}"
        assert figure_5.delivered[node] == fig["delivered_by_the_synchronisation"][name]
        assert fig["already_delivered"][name] + figure_5.delivered[node] == fig["run"]
        held = [entry for entry in machine.preacknowledged if not entry.pseudo]
        preacknowledged = [
            [figure_5.label(entry.unit), entry.rank - 1] for entry in held if entry.unit.seq < below(machine, entry)
        ]
        assert preacknowledged == fig["PRL_after"]
        acknowledged = [figure_5.label(entry.unit) for entry in held if machine.is_acknowledged(entry.unit)]
        assert [*fig["run"], *acknowledged] == ["a", "d", "b", "c"]
        assert sorted([*fig["run"], *acknowledged]) == fig["acknowledged_after_agreement"]
        assert (machine.synchronising, machine.timed_out) == (False, [NIL] * 3), "and all goes on"
        assert figure_5.levels[node]["c"] is Level.ACKNOWLEDGED


def below(machine: Any, entry: Entry) -> int:
    number: int = machine.own_preacknowledged_below[entry.unit.source]
    return number


def test_figure_5_concurrent_initiators_and_one_alone_come_to_the_same(figure_5: PaperGroup) -> None:
    figure_5.fire(E3, "run-1-1")
    figure_5.hear_rest()
    assert figure_5.labels().count("Run-Sync-Pack E3") == 0, "its Run-Sync counts"
    assert figure_5.delivered[E2] == figure_5.delivered[E3] == ["b"]
    assert figure_5.delivered[E1] == ["a", "d", "b"]


def test_figure_5_under_the_sound_rules() -> None:
    """A marker that covers a and b, at one place of the sequence; what is before it there is pre-acknowledged."""
    fig = GOLDEN["fig5"]
    group = SoundGroup()
    entries = []
    for place, (letter, priority) in enumerate(fig["arrival_order"][:-1]):
        source, first = fig["source"][letter] - 1, fig["seq"][letter] - 1
        group.letters[source, first] = letter
        entries.append((-priority, place, Packet(source, 0b111, first, (), first, (1,), letter.encode(), priority)))
    for node, machine in enumerate(group.machines):
        name = f"E{node + 1}"
        policy = machine.policy
        assert isinstance(policy, PriorityOrder)
        policy.by_priority = [
            entry for entry in entries if group.letter(entry[2]) not in fig["already_delivered"][name]
        ]
        heapify(policy.by_priority)
        policy.acknowledged_count = len(fig["acknowledged_after_agreement"])
        policy.overtaken = {place for _, place, _ in policy.by_priority if place < policy.acknowledged_count}
        outputs: list[Output] = []
        policy.end_run(2, outputs)
        delivered = [group.letter(output.packet) for output in outputs if isinstance(output, Deliver)]
        assert delivered == fig["delivered_by_the_synchronisation"][name]
        held = [[group.letter(packet), -rank] for rank, _, packet in sorted(policy.by_priority)]
        assert held == fig["PRL_after"]
