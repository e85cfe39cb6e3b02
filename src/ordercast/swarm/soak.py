"""Soak tests: the runs of a soak, and the tally of their results.

A number determines a run, so that a soak can be stopped and resumed, and a failure reproduced.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

import msgspec

from ordercast.model.faults import Leave, Restart, founders_of
from ordercast.model.runs import Pattern, RunConfig, TraceDetail
from ordercast.model.services import Service
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulator import RunResult
from ordercast.swarm.draw import Sizes, draw_sized
from ordercast.swarm.draw_long import draw_long
from ordercast.swarm.draw_membership import draw_changing
from ordercast.swarm.draw_restarts import draw_restarting
from ordercast.swarm.draw_sequencer import BEYOND
from ordercast.swarm.run_audit import Failure

Key = TypeVar("Key", int, str)

EVERY_PROTOCOL = tuple(sorted(PROTOCOLS))

_SMALL = Sizes()
_MIDDLING = Sizes(receipts=12_000)
_BUSY = (Pattern.EVERYBODY, Pattern.STEADY, Pattern.BURSTY)  # all nodes send
_GENTLE = (0.0, 0.001, 0.01, 0.02)
_LARGE = Sizes(least_nodes=8, most_nodes=64, receipts=30_000, batches=(1, 4, 16), rates=_GENTLE)
_PACKED = Sizes(least_nodes=8, most_nodes=32, receipts=1_000_000, batches=(64, 256), rates=_GENTLE)
_LONG = 0.03
_DRAWN = (_SMALL, _SMALL, _SMALL, _SMALL, _SMALL, _MIDDLING, _LARGE, _PACKED, _PACKED, _PACKED)


def soak_config(
    number: int, protocols: Sequence[str] = EVERY_PROTOCOL, *, views: bool = False, logs: bool = False
) -> RunConfig:
    """The run of a number: protocols alternate; half of the runs are small, some have many nodes, and a few are long.

    Of runs with large packets only sends and deliveries are recorded, so that levels are not audited. `views`: all runs
    are of small groups whose members change; `logs`: whose nodes have durable logs, and are killed and started again.
    """
    protocol = protocols[number % len(protocols)]
    if logs:
        return draw_restarting(number, protocol)
    if views:
        return draw_changing(number, protocol)
    if Random(f"soak/long/{number}").random() < _LONG:
        return draw_long(number, protocol)
    rng = Random(f"soak/{number}")
    drawn = number % BEYOND
    if protocol == Service.SEQUENCED.value and rng.random() < 0.5:
        drawn += BEYOND  # more nodes may fail than leave a quorum
    sizes = rng.choice(_DRAWN)
    config = msgspec.structs.replace(draw_sized(drawn, protocol, sizes), seed=number)
    if sizes is not _PACKED:
        return config
    busy = msgspec.structs.replace(config.workload, spread=1.0, pattern=rng.choice(_BUSY))
    return msgspec.structs.replace(config, workload=busy, record=TraceDetail.DELIVERIES)


class Soaked(msgspec.Struct, frozen=True):
    """The result of one run."""

    protocol: str
    deliveries: int
    """All of them audited."""
    with_levels: bool
    """True if the levels were recorded, and audited too."""
    nodes: int
    faults: tuple[str, ...]
    """The kinds of its faults."""
    states: tuple[str, ...]
    """Which of the situations that a soak should reach occurred in it."""
    failures: tuple[tuple[str, str], ...]
    """Kinds and sentences."""


class Tally(msgspec.Struct):
    """The results of many runs."""

    runs: int = 0
    deliveries: int = 0
    with_levels: int = 0
    """Deliveries of runs whose levels were audited too."""
    protocols: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """By protocol: runs and deliveries."""
    nodes: dict[int, int] = msgspec.field(default_factory=dict)
    """By number of nodes: runs."""
    faults: dict[str, int] = msgspec.field(default_factory=dict)
    """By kind of fault: the runs with one."""
    states: dict[str, int] = msgspec.field(default_factory=dict)
    """By situation: the runs in which it occurred."""
    failed: int = 0

    def add(self, soaked: Soaked) -> None:
        """Adds a run."""
        alone = Tally(
            runs=1,
            deliveries=soaked.deliveries,
            with_levels=soaked.deliveries if soaked.with_levels else 0,
            protocols={soaked.protocol: (1, soaked.deliveries)},
            nodes={soaked.nodes: 1},
            faults=dict.fromkeys(soaked.faults, 1),
            states=dict.fromkeys(soaked.states, 1),
            failed=bool(soaked.failures),
        )
        self.add_all(alone)

    def add_all(self, other: "Tally") -> None:
        """Adds other runs."""
        self.runs += other.runs
        self.deliveries += other.deliveries
        self.with_levels += other.with_levels
        self.failed += other.failed
        for protocol, (runs, deliveries) in other.protocols.items():
            before = self.protocols.get(protocol, (0, 0))
            self.protocols[protocol] = (before[0] + runs, before[1] + deliveries)
        self.nodes = _sum(self.nodes, other.nodes)
        self.faults = _sum(self.faults, other.faults)
        self.states = _sum(self.states, other.states)


def _sum(counts: dict[Key, int], others: dict[Key, int]) -> dict[Key, int]:
    return dict(sorted((Counter(counts) + Counter(others)).items()))


def soaked(result: RunResult, deliveries: int, failures: Iterable[Failure], *, overrun: bool) -> Soaked:
    """The result of a completed run; `overrun`: whether a buffer overran in it."""
    return _result(result.config, deliveries, _states(result, overrun=overrun), failures)


def unfinished(config: RunConfig, failure: Failure) -> Soaked:
    """The result of a run that did not end, or raised."""
    return _result(config, 0, (), (failure,))


def _result(config: RunConfig, deliveries: int, states: Iterable[str], failures: Iterable[Failure]) -> Soaked:
    return Soaked(
        protocol=config.protocol,
        deliveries=deliveries,
        with_levels=config.record is TraceDetail.ALL,
        nodes=config.group.nodes,
        faults=tuple(sorted({type(fault).__name__.lower() for fault in config.faults})),
        states=tuple(states),
        failures=tuple((failure.kind, failure.sentence) for failure in failures),
    )


def _states(result: RunResult, *, overrun: bool) -> Iterable[str]:
    counters, config = result.counters, result.config
    founders = founders_of(config.faults, config.group.nodes)
    anew = config.logs and result.view > 0 and not set(result.members).intersection(founders)
    joined = len(set(result.members).difference(founders))
    happened = {
        "units were lost": counters.lost > 0,
        "data for its receiver was lost": counters.lost_data > 0,
        "a buffer overran": overrun,
        "units were duplicated": counters.duplicated > 0,
        "a retransmission was requested": counters.requests > 0,
        "data was retransmitted": counters.retransmitted > 0,
        "units were discarded": counters.discarded > 0,
        "a window was full": counters.longest_sent >= config.group.window,
        "a new order was agreed on": counters.recoveries > 0,
        "a node crashed": bool(result.crashed),
        "the sequencer crashed": config.protocol == "sequencer" and config.group.sequencer.node in result.crashed,
        "the view changed": result.view > 0,
        "a node left": any(isinstance(fault, Leave) and fault.node in result.left for fault in config.faults),
        "a node joined": joined > 0,
        "several views followed": result.view > 2,
        "a process was started again with its log": any(isinstance(fault, Restart) for fault in config.faults),
        "a group began anew": anew,
        "a node aborted": result.aborted,
        "too few nodes were left to go on": not result.complete,
    }
    return (name for name, so in happened.items() if so)
