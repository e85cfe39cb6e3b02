"""ST in random configurations: every run finishes, falls silent and keeps one order; and what recovery costs.

A run is decided by its number alone: `run_and_audit(draw_config(NUMBER, protocol="st"))` brings a failure back.
"""

from math import sqrt
from random import Random

import pytest

from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, RecoveryPolicy
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.simulator import simulate
from ordercast.simulator.fault_rules import Flight
from ordercast.swarm.draw import draw_config
from ordercast.trace.schema import EventField, EventKind, EventRow
from tests.swarm.audited_runs import failures, run_and_audit

CHUNK = 5


@pytest.mark.parametrize("first", range(0, 5, CHUNK))
def test_a_swarm_of_random_runs_holds(first: int) -> None:
    for number in range(first, first + CHUNK):
        result, verdict = run_and_audit(draw_config(number, protocol="st", receipts=1_500))
        assert not failures(result, verdict), f"number {number}"
        assert result.counters.delivered > 0


def test_the_swarm_is_of_all_sorts() -> None:
    """What a swarm is worth depends on what it draws."""
    configs = [draw_config(number, protocol="st") for number in range(200)]
    assert {config.protocol for config in configs} == {"st"}
    assert {config.network.channel for config in configs} == {Channel.ONE}
    assert {config.group.log_limit for config in configs} == {2, 20, 100, 400}
    assert {config.group.quota for config in configs} >= {1, 2, 256}
    assert {config.group.recovery for config in configs} == set(RecoveryPolicy)
    kinds = {type(fault).__name__ for config in configs for fault in config.faults}
    assert kinds == {"Loss", "Bursts", "Duplicates", "Pause", "Split"}
    assert all(config.group.timing == config.workload.timing(config.network, config.group.nodes) for config in configs)
    assert len({config.name() for config in configs}) == 200


def test_what_is_drawn_for_spo_does_not_depend_on_st() -> None:
    for number in range(20):
        spo, total = draw_config(number), draw_config(number, protocol="st")
        assert (spo.protocol, spo.workload, spo.seed) == ("spo", total.workload, total.seed)
        assert spo.group.log_limit == GroupConfig(nodes=2).log_limit


# --- much loss where what is lost is placed: generations that nodes miss are rare with less ---


def _lossy(seed: int, rate: float) -> RunConfig:
    chance = Random(f"place/{seed}")
    nodes = chance.choice([2, 3, 4, 5])
    network = Network(channel=Channel.ONE, propagation=chance.choice([5, 50, 200]) * MICROSECOND)
    work = Workload(
        messages=chance.choice([6, 12]), spread=chance.choice([0.3, 0.5, 1.0]), pattern=chance.choice(list(Pattern))
    )
    window = chance.choice([2, 4, 16])
    return RunConfig(
        protocol="st",
        group=GroupConfig(nodes=nodes, window=window, recovery=RecoveryPolicy.PLACE, polls_to_abort=10**9),
        network=network,
        workload=work,
        faults=(Loss(rate=rate),),
        seed=seed,
    ).with_default_timeouts()


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 500), marks=pytest.mark.soak)])
@pytest.mark.parametrize("rate", [0.15, 0.25])
def test_what_is_lost_is_placed_where_much_is_lost(seeds: range, rate: float) -> None:
    for seed in seeds:
        result, verdict = run_and_audit(_lossy(seed, rate))
        assert not failures(result, verdict), f"seed {seed}"
        assert result.counters.delivered > 0


# --- selective retransmission: R_S = L (1 - F) ---

NODES, SPREAD, RUNS = 10, 0.5, 2


class LosesFirstTransmissions:
    """Each receiver loses each data unit with this chance the first time; copies and control units arrive."""

    def __init__(self, rate: float, seed: int) -> None:
        self._rate, self._chance = rate, Random(f"first transmissions/{seed}")

    def apply(self, flight: Flight, receiver: int) -> str | None:
        """One draw for each receiver, the sender's own echo included."""
        del receiver
        lost = self._chance.random() < self._rate
        return "scripted" if lost and not flight.control and not flight.copy else None


def messages_repaired(rate: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Of one run: messages sent, those that some destination lost, and those that were sent again."""
    monkeypatch.setattr("ordercast.simulator.network.rules_for", lambda *_: [LosesFirstTransmissions(rate, seed)])
    network, work = Network(channel=Channel.ONE), Workload(messages=100, spread=SPREAD, gap=2 * MILLISECOND)
    group = GroupConfig(nodes=NODES, timing=work.timing(network, NODES))
    rows: list[EventRow] = []
    result = simulate(RunConfig(protocol="st", group=group, network=network, workload=work, seed=seed), rows=rows)
    assert result.complete
    sent = {
        (row[EventField.SOURCE], row[EventField.SEQ]): row[EventField.DESTINATIONS] or ()
        for row in rows
        if row[EventField.EVENT] == EventKind.SEND
    }
    losses = [
        row
        for row in rows
        if row[EventField.EVENT] == EventKind.LOSE
        and row[EventField.SOURCE] is not None
        and row[EventField.NODE] in sent[row[EventField.SOURCE], row[EventField.SEQ]]
    ]
    lost = {(row[EventField.SOURCE], row[EventField.SEQ]) for row in losses}
    lost_by_others = {
        (row[EventField.SOURCE], row[EventField.SEQ])
        for row in losses
        if row[EventField.NODE] != row[EventField.SOURCE]
    }
    again = {
        (row[EventField.SOURCE], row[EventField.SEQ]) for row in rows if row[EventField.EVENT] == EventKind.RETRANSMIT
    }
    assert again == lost_by_others, "sent again is what another destination lost, and nothing else"
    assert result.counters.retransmitted == len(again), "and once"
    return len(sent), len(lost), len(again)


@pytest.mark.parametrize("rate", [pytest.param(0.005, marks=pytest.mark.soak), 0.01])
def test_retransmissions_are_those_of_the_formula_with_the_exponent_n(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F = (1 - f d/n)^n. The printed exponent d lies outside the 99.9 % confidence interval of what is measured.

    A sender restores its own lost echo from its sending log, so that what is sent again follows the exponent n - 1.
    """
    runs = [messages_repaired(rate, seed, monkeypatch) for seed in range(RUNS)]
    messages, lost, again = (sum(column) for column in zip(*runs, strict=True))
    kept = 1 - rate * SPREAD

    def within(measured: int, exponent: float) -> bool:
        share: float = measured / messages
        expected: float = 1 - kept**exponent
        return abs(share - expected) <= 3.29 * sqrt(share * (1 - share) / messages)

    assert messages == RUNS * NODES * 100
    assert within(lost, NODES)
    assert not within(lost, NODES * SPREAD)
    assert within(again, NODES - 1)
    assert not within(again, NODES * SPREAD)
