"""Resilience keeps its meaning where members change: with degree r, r crashes at once lose nothing that was stable.

And a sequencer of a fixed group, which agrees on views by itself, keeps the same promises in the same runs: each is a
check of the other.
"""

from typing import Any

import pytest

from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, SequencerConfig
from ordercast.model.faults import Crash, Fault, Loss
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.protocols.membership.by_node import by_node
from ordercast.simulator.simulation import Simulation
from ordercast.trace.schema import EventField, EventRow
from tests.protocols.membership.traced_runs import audited

NODES = 5
Log = list[tuple[int | None, int | None]]


def simulated(faults: tuple[Fault, ...], resilience: int, *, views: bool = True) -> tuple[RunConfig, list[EventRow]]:
    """The rows of a run in which all send."""
    config = RunConfig(
        protocol="sequencer",
        group=GroupConfig(nodes=NODES, views=views, sequencer=SequencerConfig(resilience=resilience)),
        network=Network(),
        workload=Workload(messages=12),
        faults=faults,
        seed=1,
    )
    rows: list[EventRow] = []
    kind: Any = by_node("sequencer") if views else None
    assert not Simulation(config, rows.extend, machine=kind).run().stalled
    return config, rows


def crashes(dead: tuple[int, ...], at: int) -> tuple[Fault, ...]:
    return (Loss(rate=0.3), *(Crash(node=node, at=at) for node in dead))


def logs(rows: list[EventRow], event: str = "deliver") -> list[Log]:
    """By node: the messages that it delivered, in its order; or that are so far in another sense."""
    found: list[Log] = [[] for _ in range(NODES)]
    for row in rows:
        if row[EventField.EVENT] == event:
            found[row[EventField.NODE]].append((row[EventField.SOURCE], row[EventField.SEQ]))
    return found


def losses(rows: list[EventRow], dead: tuple[int, ...]) -> Log:
    """What a node that crashed had delivered, or knew to be stable, and a survivor does not deliver in its place."""
    delivered, stable = logs(rows), logs(rows, "preack")
    survivors = [log for node, log in enumerate(delivered) if node not in dead]
    assert all(log == survivors[0] for log in survivors)
    missing = [message for node in dead for message in stable[node] if message not in survivors[0]]
    for node in dead:
        log = delivered[node]
        missing += [message for message, other in zip(log, survivors[0], strict=False) if message != other]
        missing += log[len(survivors[0]) :]
    return missing


MOMENTS = [100 * MICROSECOND, 300 * MICROSECOND, 700 * MICROSECOND, 1500 * MICROSECOND]


@pytest.mark.parametrize("at", MOMENTS)
def test_as_many_crashes_at_once_as_the_degree_lose_nothing_that_was_stable(at: int) -> None:
    for dead in ((0, 1), (0, 4), (2, 3)):  # the sequencer and another one, or two others
        config, rows = simulated(crashes(dead, at), resilience=2)
        assert losses(rows, dead) == []
        assert [name for name, one in audited(config, rows).findings.items() if not one.holds] == []


def test_without_resilience_a_crash_may_lose_what_was_delivered() -> None:
    """So the test above can fail."""
    assert any(losses(simulated(crashes((0, 1), at), resilience=0)[1], (0, 1)) for at in MOMENTS)


@pytest.mark.parametrize("dead", [(0,), (4,), (0, 4)])
def test_the_agreement_of_a_fixed_group_keeps_the_same_promises(dead: tuple[int, ...]) -> None:
    faults = crashes(dead, MILLISECOND)
    delivered = []
    for views in (False, True):
        _, rows = simulated(faults, resilience=2, views=views)
        assert losses(rows, dead) == []
        delivered.append({message for message in logs(rows)[1] if message[0] not in dead})
    assert delivered[0] == delivered[1], "all messages of those that go on"
