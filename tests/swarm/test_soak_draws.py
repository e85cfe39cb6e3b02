"""What a soak draws and counts; how it judges is held against the reference audit."""

import time
from unittest.mock import patch

import pytest

from ordercast.model.faults import (
    Bursts,
    Crash,
    Duplicates,
    Join,
    Leave,
    Loss,
    Pause,
    Quit,
    Return,
    Split,
    Suspicion,
    founders_of,
)
from ordercast.model.machine import Machine
from ordercast.model.runs import TraceDetail
from ordercast.pipeline.audit import run as audit_module
from ordercast.pipeline.audit.run import audit_run
from ordercast.pipeline.soak.worker import soak_one
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulator import machines, simulate
from ordercast.swarm.draw import draw_config
from ordercast.swarm.draw_sequencer import BEYOND
from ordercast.swarm.run_audit import attempt, failures_of
from ordercast.swarm.soak import EVERY_PROTOCOL, Soaked, Tally, soak_config
from ordercast.trace.schema import EventField
from tests.explorer.broken import DeliversForOthers, HoldsNothingBack


def test_a_soak_draws_all_protocols_faults_and_sizes() -> None:
    configs = [soak_config(number) for number in range(700)]
    assert set(EVERY_PROTOCOL) == set(PROTOCOLS)
    assert [config.protocol for config in configs[:7]] == list(EVERY_PROTOCOL)
    kinds = {type(fault).__name__ for config in configs for fault in config.faults}
    assert kinds == {"Loss", "Bursts", "Duplicates", "Pause", "Split", "Crash"}
    assert max(config.group.nodes for config in configs) == 64
    assert {config.workload.batch for config in configs} == {1, 3, 4, 16, 64, 256, 1024}
    assert {config.record for config in configs} == {TraceDetail.ALL, TraceDetail.DELIVERIES}
    assert len({config.name() for config in configs}) == 700
    assert all(config.seed == number for number, config in enumerate(configs))
    sequencers = [config for config in configs if config.protocol == "sequencer"]
    fatal = [config for config in sequencers if config.group.polls_to_abort == 12]
    assert 0.3 < len(fatal) / len(sequencers) < 0.7, "more may fail than a group can do without"
    assert any(isinstance(fault, Crash) for config in fatal for fault in config.faults)


def test_chosen_protocols_take_turns_and_numbers_have_no_end() -> None:
    assert [soak_config(number, ("st", "po")).protocol for number in range(4)] == ["st", "po", "st", "po"]
    assert soak_config(7 * BEYOND + 3).name() != soak_config(3).name()


def test_groups_whose_members_change_are_drawn_with_all_their_faults() -> None:
    configs = [soak_config(number, views=True) for number in range(700)]
    assert [config.protocol for config in configs[:7]] == list(EVERY_PROTOCOL)
    kinds = {type(fault) for config in configs for fault in config.faults}
    assert kinds == {Loss, Bursts, Duplicates, Pause, Split, Crash, Join, Leave, Quit, Return, Suspicion}
    members = [len(founders_of(config.faults, config.group.nodes)) for config in configs]
    assert (min(members), max(members)) == (1, 16)
    assert all(config.group.views for config in configs)
    assert {fault.rate for config in configs for fault in config.faults if isinstance(fault, Loss)} >= {0.0, 0.3}
    assert len({config.name() for config in configs}) == 700


@pytest.mark.parametrize("number", [3, 4, 5])
def test_a_soak_of_changing_groups_finds_what_the_reference_finds(number: int) -> None:
    config = soak_config(number, views=True)
    found = soak_one(config)
    assert found.failures == ()
    assert found.deliveries == simulate(config).counters.delivered > 0


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_a_soak_finds_what_the_reference_finds_and_counts_all_deliveries(protocol: str) -> None:
    for number in range(3):
        config = draw_config(number, protocol=protocol, most_nodes=5, receipts=150)
        found = soak_one(config)
        assert found.failures == ()
        assert failures_of(config) == []
        assert found.deliveries == simulate(config).counters.delivered > 0
        assert found.protocol == protocol
        assert ("units were lost" in found.states) == any(
            row[EventField.EVENT] == "lose" for row in attempt(config).rows
        )


@pytest.mark.parametrize("machine", [HoldsNothingBack, DeliversForOthers])
def test_a_soak_notices_what_a_broken_machine_does(machine: type[Machine]) -> None:
    noticed = 0
    for number in range(20):
        config = draw_config(number, most_nodes=5, receipts=100)
        with patch.object(machines, "machine_class", lambda *_: machine):
            found = {kind for kind, _ in soak_one(config).failures}
        assert found == {failure.kind for failure in failures_of(config, machine)}
        noticed += bool(found)
    assert noticed > 2


def test_a_run_that_takes_too_long_or_raises_has_failed() -> None:
    config = draw_config(0, receipts=20_000)
    [(kind, sentence)] = soak_one(config, time_limit=0.01).failures
    assert (kind, sentence) == ("incomplete", "it has not ended after 0.01 s of CPU time")
    with patch.object(audit_module, "audit_run", side_effect=KeyError("x")):
        assert soak_one(draw_config(3, receipts=20)).failures == (("raises KeyError", "'x'"),)


def test_tallies_add_up_in_any_order() -> None:
    runs = [
        Soaked("spo", 10, True, 3, ("loss",), ("units were lost", "data was retransmitted"), ()),
        Soaked("st", 5, False, 3, ("loss", "pause"), ("units were lost",), (("same_order", "x"),)),
        Soaked("spo", 1, True, 4, (), (), ()),
    ]
    whole, parts = Tally(), Tally()
    for run in runs:
        whole.add(run)
    for run in reversed(runs):
        part = Tally()
        part.add(run)
        parts.add_all(part)
    assert whole == parts
    assert (whole.runs, whole.deliveries, whole.with_levels, whole.failed) == (3, 16, 11, 1)
    assert whole.protocols == {"spo": (2, 11), "st": (1, 5)}
    assert whole.nodes == {3: 2, 4: 1}
    assert whole.faults == {"loss": 2, "pause": 1}
    assert whole.states == {"units were lost": 2, "data was retransmitted": 1}


def test_a_run_that_only_waits_for_its_turn_has_not_failed() -> None:
    """On a busy machine a second of work may take minutes."""

    def waits(*arguments: object, **options: object) -> object:
        time.sleep(0.7)
        return audit_run(*arguments, **options)  # type: ignore[arg-type]

    with patch.object(audit_module, "audit_run", waits):
        assert soak_one(draw_config(3, receipts=20), time_limit=0.5).failures == ()
