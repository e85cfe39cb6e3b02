"""The sequencer in random configurations: every run finishes, whoever crashes; and what a broadcast costs.

A run is decided by its number alone: `run_and_audit(draw_config(NUMBER, protocol="sequencer"))` brings a failure back.
"""

import msgspec
import pytest

from ordercast.model.config import MILLISECOND, GroupConfig, SequencerConfig
from ordercast.model.faults import Crash, Split
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.simulator import RunResult, simulate
from ordercast.swarm.draw import draw_config
from ordercast.swarm.draw_sequencer import BEYOND
from ordercast.swarm.run_audit import audit_rows, is_blocked
from ordercast.trace.schema import EventField, EventKind, EventRow
from tests.swarm.audited_runs import failures, run_and_audit

CHUNK = 5


def wrong_with(number: int, receipts: int) -> list[str]:
    """What is wrong with the run of a number. If too few are left for a quorum, whoever is left gives up."""
    config = draw_config(number, protocol="sequencer", receipts=receipts)
    rows: list[EventRow] = []
    result = simulate(config, rows=rows)
    verdict = audit_rows(config, rows)
    if not result.complete and is_blocked(result):
        verdict.findings.pop("complete")  # nothing more can come
        return [f"{name}" for name, finding in verdict.findings.items() if not finding.holds]
    return failures(result, verdict)


@pytest.mark.parametrize("first", range(0, 20, CHUNK))
def test_a_swarm_of_random_runs_holds(first: int) -> None:
    for number in range(first, first + CHUNK):
        assert not wrong_with(number, 500), f"number {number}"


@pytest.mark.parametrize("first", range(BEYOND, BEYOND + 20, CHUNK))
def test_a_swarm_that_loses_more_than_a_quorum_can_do_without_holds(first: int) -> None:
    for number in range(first, first + CHUNK):
        assert not wrong_with(number, 500), f"number {number}"


def test_the_swarm_is_of_all_sorts() -> None:
    """What a swarm is worth depends on what it draws."""
    configs = [draw_config(number, protocol="sequencer") for number in range(300)]
    assert {config.network.channel for config in configs} == set(Channel)
    options = [config.group.sequencer for config in configs]
    assert {option.history for option in options} >= {4, 20, 1024}
    assert {option.resilience for option in options} >= {0, 1, 2, 5}
    assert {option.direct_from for option in options} == {0, 1, 200, 1400}
    assert {config.group.window for config in configs} == {1, 2, 4, 8, 16, 32, 64}
    kinds = {type(fault).__name__ for config in configs for fault in config.faults}
    assert kinds == {"Loss", "Bursts", "Duplicates", "Pause", "Split", "Crash"}
    crashed = [[fault.node for fault in config.faults if isinstance(fault, Crash)] for config in configs]
    assert sum(config.group.sequencer.node in nodes for config, nodes in zip(configs, crashed, strict=True)) > 30
    assert max(map(len, crashed)) > 2


def test_what_is_drawn_for_others_does_not_depend_on_the_sequencer() -> None:
    for number in range(20):
        spo, sequencer = draw_config(number), draw_config(number, protocol="sequencer")
        assert (spo.protocol, spo.workload, spo.seed) == ("spo", sequencer.workload, sequencer.seed)
        assert spo.group.sequencer == SequencerConfig()


# --- what a broadcast costs without loss, n = 10 ---


def units_per_broadcast(senders: tuple[int, ...], history: int, **options: int) -> float:
    """All units, of whatever kind, for each broadcast, until the group is silent: sent one after the other."""
    group = GroupConfig(nodes=10, window=1, sequencer=SequencerConfig(history=history, **options))
    work = Workload(messages=2_000 // len(senders), pattern=Pattern.EVERYBODY, senders=senders, size=0)
    network = Network(channel=Channel.ANY)
    config = RunConfig(protocol="sequencer", group=group, workload=work, network=network).with_default_timeouts()
    result = simulate(config)
    counts = result.counters
    assert result.complete
    assert counts.retransmitted == 0
    return (counts.transmitted + counts.control) / counts.sent


@pytest.mark.parametrize("history", [20, 64, 128, 1024])
def test_one_sender_costs_two_units_and_what_eight_silent_nodes_must_say(history: int) -> None:
    """Each of the eight that never send must say something within each filling of the history: 2 + 8/H is the least."""
    cost = units_per_broadcast((1,), history)
    least = 2 + 8 / history
    assert least < cost <= least + 3 / history + 0.01
    if history >= 1024:
        assert cost <= 2.05


@pytest.mark.parametrize("history", [20, 64, 128])
def test_when_everybody_sends_acknowledgments_ride_along(history: int) -> None:
    senders = tuple(range(1, 10))
    assert 2 < units_per_broadcast(senders, history) <= 2.05


def test_the_sequencers_own_broadcasts_cost_one_unit() -> None:
    assert units_per_broadcast((0,), 1024) <= 1.05


def test_resilience_costs_its_acknowledgments_and_a_word_that_they_came() -> None:
    assert 3 + 2 <= units_per_broadcast((9,), 128, resilience=2) <= 3 + 2 + 0.2


def test_large_messages_cross_the_network_once() -> None:
    sizes = []
    for direct_from in (0, 1):
        group = GroupConfig(nodes=4, window=4, sequencer=SequencerConfig(direct_from=direct_from))
        work = Workload(messages=200, pattern=Pattern.EVERYBODY, senders=(1, 2, 3), size=5_000)
        result = simulate(RunConfig(protocol="sequencer", group=group, workload=work).with_default_timeouts())
        assert result.complete
        sizes.append(result.counters.bytes / (600 * 5_000))
    assert sizes[0] > 2
    assert 1 < sizes[1] < 1.1


# --- when nodes fail ---


def a_run(*faults: Crash | Split, nodes: int = 5, **options: int) -> tuple[RunResult, list[EventRow]]:
    group = GroupConfig(nodes=nodes, sequencer=SequencerConfig(**options), polls_to_abort=20)
    config = RunConfig(
        protocol="sequencer", group=group, workload=Workload(messages=40, gap=MILLISECOND), faults=faults
    ).with_default_timeouts()  # fmt: skip
    rows: list[EventRow] = []
    result = simulate(config, rows=rows)
    verdict = audit_rows(config, rows)
    assert verdict.holds, failures(result, verdict)
    return result, [row for row in rows if row[EventField.EVENT] in {EventKind.VIEW, EventKind.ABORT}]


def test_the_group_goes_on_without_its_sequencer() -> None:
    result, rows = a_run(Crash(node=0, at=10 * MILLISECOND))
    assert (result.crashed, result.aborted_nodes, result.left) == ((0,), (), (0,))
    assert (result.view, result.members) == (1, (1, 2, 3, 4))
    assert not is_blocked(result)
    assert {(row[EventField.NODE], row[EventField.DETAIL]) for row in rows} == {
        (node, "1: {E2,E3,E4,E5}; E1 did not answer") for node in range(1, 5)
    }


def test_a_side_without_a_majority_is_shut_out_or_gives_up() -> None:
    split = Split(side=(0, 4), at=10 * MILLISECOND, lasting=30 * MILLISECOND)
    _, rows = a_run(split, suspect_after=3)
    assert {row[EventField.DESTINATIONS] for row in rows} == {(1, 2, 3)}
    assert {row[EventField.NODE] for row in rows} == set(range(5)), "when the split ends, the two are told"
    _, rows = a_run(msgspec.structs.replace(split, lasting=10_000 * MILLISECOND))
    gave_up = {row[EventField.NODE]: row[EventField.DETAIL] for row in rows if row[EventField.EVENT] == EventKind.ABORT}
    assert set(gave_up) == {0, 4}
    assert "3 of 5 members cannot be reached: no majority; what was sent may be lost" in gave_up.values()


def test_without_a_quorum_everybody_gives_up() -> None:
    result, rows = a_run(*[Crash(node=node, at=10 * MILLISECOND) for node in range(3)])
    assert (result.crashed, result.aborted_nodes) == ((0, 1, 2), (3, 4))
    assert (result.view, result.members) == (0, (0, 1, 2, 3, 4))
    assert is_blocked(result)
    assert {row[EventField.NODE] for row in rows if row[EventField.EVENT] == EventKind.ABORT} == {3, 4}
    assert not [row for row in rows if row[EventField.EVENT] == EventKind.VIEW]


def test_a_run_can_be_repeated() -> None:
    config = draw_config(7, protocol="sequencer", receipts=300)
    first, second = (run_and_audit(config)[0] for _ in range(2))
    assert first.counters == second.counters
