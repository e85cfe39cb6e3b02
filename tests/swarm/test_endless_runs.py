"""A run counts as endless when nothing gets on any more, however many events a sound one has."""

import msgspec
import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Bursts, Pause
from ordercast.model.runs import RunConfig, Workload
from ordercast.swarm.draw import draw_config
from ordercast.swarm.run_audit import INCOMPLETE, attempt, failures_of, most_without_progress, without_progress
from ordercast.trace.schema import EventField
from tests.explorer.broken import NeverSatisfied

SMALL = RunConfig(protocol="spo", group=GroupConfig(nodes=3), workload=Workload(messages=2)).with_default_timeouts()


@pytest.mark.parametrize(
    ("protocol", "number"),
    # each has more than 60 events for each delivery and 50,000 besides
    [("prito", 83), ("prito", 161), *(pytest.param(*run, marks=pytest.mark.soak) for run in (("st", 83), ("po", 107)))],
)
def test_a_sound_run_of_many_events_is_not_accused(protocol: str, number: int) -> None:
    config = draw_config(number, protocol=protocol)
    found = attempt(config)
    assert found.failures == []
    deliveries = sum(row[EventField.EVENT] == "deliver" for row in found.rows)
    assert len(found.rows) > 50_000 + 60 * deliveries


def test_members_that_answer_each_other_for_ever_are_found() -> None:
    [failure] = failures_of(msgspec.structs.replace(SMALL, stall_timeout=10**15), NeverSatisfied)
    assert failure.kind == INCOMPLETE
    assert failure.sentence == f"{most_without_progress(SMALL):,} events without progress"


def test_progress_anywhere_in_the_last_events_counts() -> None:
    rows = attempt(SMALL).rows
    delivered = max(place for place, row in enumerate(rows) if row[EventField.EVENT] == "deliver")
    idle = [row for row in rows if row[EventField.EVENT] == "timeout"][:1] * 10
    assert not without_progress([*rows[: delivered + 1], *idle], 11)
    assert without_progress([*rows[: delivered + 1], *idle], 10)
    assert not without_progress(idle, 10)


def test_during_outages_and_in_larger_groups_more_is_said() -> None:
    usual = most_without_progress(SMALL)
    status = SMALL.group.timing.status
    paused = msgspec.structs.replace(SMALL, faults=(Pause(node=0, at=0, lasting=70 * status),))
    bursts = msgspec.structs.replace(SMALL, faults=(Bursts(well=status, bad=10 * status), *paused.faults))
    assert (most_without_progress(paused) - usual, most_without_progress(bursts) - usual) == (70 * 12, 80 * 12)
    larger = msgspec.structs.replace(SMALL, group=GroupConfig(nodes=6))
    assert most_without_progress(larger) * 12 == usual * 42
