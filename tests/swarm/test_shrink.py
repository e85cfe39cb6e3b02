"""Runs that fail are made small: they fail in the same way, and without any single piece they do not."""

from collections.abc import Iterator

import msgspec
import pytest

from ordercast.model.config import MILLISECOND, GroupConfig, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Bursts, Duplicates, Loss, Pause
from ordercast.model.machine import Machine
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.swarm.reductions import RunSize, with_sends, without_nodes
from ordercast.swarm.run_audit import INCOMPLETE, failures_of
from ordercast.swarm.shrink import DoesNotFailError, Shrunk, shrink
from tests.explorer.broken import DeliversEarly, HoldsNothingBack, NeverPolls, SaysPackForAck, SaysSeenForExpected

replace = msgspec.structs.replace


def large(protocol: str, rules: Rules = Rules.SOUND, channel: Channel = Channel.MANY, priorities: int = 1) -> RunConfig:
    """Eight nodes that send fifty messages each, and much goes wrong."""
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=8, rules=rules),
        network=Network(channel=channel),
        workload=Workload(messages=50, spread=0.5, priorities=priorities),
        faults=(
            Loss(rate=0.05),
            Duplicates(rate=0.05),
            Bursts(well=5 * MILLISECOND, bad=MILLISECOND),
            Pause(node=3, at=MILLISECOND, lasting=MILLISECOND),
        ),
        seed=1,
    ).with_default_timeouts()


def with_one_less(config: RunConfig) -> Iterator[tuple[str, RunConfig]]:
    """Without each fault, each sending and each node."""
    for place, fault in enumerate(config.faults):
        yield f"without {fault}", replace(config, faults=(*config.faults[:place], *config.faults[place + 1 :]))
    script = config.workload.scripted_sends() or ()
    for place, sending in enumerate(script):
        kept = [other for other in range(len(script)) if other != place]
        yield f"without {sending}", with_sends(config, kept)
    for node in range(config.group.nodes if config.group.nodes > 2 else 0):
        yield f"without node {node}", without_nodes(config, {node})


def require_least(found: Shrunk, machine: type[Machine] | None = None) -> None:
    """It fails in that way, and with one piece less it does not."""
    assert found.minimal
    kinds = {failure.kind for failure in failures_of(found.config, machine)}
    assert found.failure.kind in kinds
    for what, config in with_one_less(found.config):
        left = {failure.kind for failure in failures_of(config, machine)}
        assert found.failure.kind not in left, what


PRINTED = [
    pytest.param("spo", Channel.MANY, 1, marks=pytest.mark.soak),
    ("st", Channel.ONE, 1),
    pytest.param("prito", Channel.ONE, 3, marks=pytest.mark.soak),
    ("sequencer", Channel.ANY, 1),
]


@pytest.mark.parametrize(("protocol", "channel", "priorities"), PRINTED)
def test_what_the_printed_rules_break_is_made_small(protocol: str, channel: Channel, priorities: int) -> None:
    found = shrink(large(protocol, Rules.PAPER, channel, priorities=priorities), seconds=300)
    assert found.before == RunSize(8, 400, 4)
    assert found.after.nodes <= 3
    assert found.after.messages <= 3
    assert found.after.faults <= 2
    require_least(found)


BROKEN = [
    *(DeliversEarly, HoldsNothingBack, NeverPolls, SaysPackForAck),
    pytest.param(SaysSeenForExpected, marks=pytest.mark.soak),
]


@pytest.mark.parametrize("machine", BROKEN)
def test_what_a_broken_machine_breaks_is_made_small(machine: type[Machine]) -> None:
    found = shrink(large("spo"), machine=machine, seconds=300)
    assert found.after.nodes <= 3
    assert found.after.messages <= 4
    assert found.after.faults <= 2
    require_least(found, machine)


class Raises(DeliversEarly):
    """A machine that does not take what it was given."""

    def status(self):  # type: ignore[no-untyped-def]
        if self.next_seq > 2:
            raise KeyError("two")
        return super().status()


def test_a_machine_that_raises_is_brought_to_raise_the_same() -> None:
    found = shrink(large("spo"), machine=Raises, seconds=300)
    assert found.failure.kind == "raises KeyError"
    assert found.after == RunSize(2, 3, 0), "three messages of one node, and no fault at all"
    require_least(found, Raises)


def test_the_way_of_failing_that_is_asked_for_is_kept() -> None:
    config = large("st", Rules.PAPER, Channel.ONE)
    kinds = {failure.kind for failure in failures_of(config)}
    assert {INCOMPLETE, "acknowledged_truthfully"} <= kinds
    assert shrink(config, kind=INCOMPLETE, seconds=300).failure.kind == INCOMPLETE
    with pytest.raises(ConfigError, match="does not fail by same_order; it fails by: acknowledged_truthfully, "):
        shrink(config, kind="same_order")


def test_the_same_run_is_made_small_in_the_same_way() -> None:
    config = large("st", Rules.PAPER, Channel.ONE)
    first, second = (shrink(config, kind=INCOMPLETE, seconds=300) for _ in range(2))
    assert first.config == second.config
    assert first.tried == second.tried


def test_when_time_or_runs_are_over_what_is_left_fails_too() -> None:
    config = large("st", Rules.PAPER, Channel.ONE)
    told: list[tuple[str, RunSize, int]] = []
    for most_runs, seconds in ((9, 300.0), (100, 1e-9)):
        found = shrink(config, most_runs=most_runs, seconds=seconds, progress=lambda *what: told.append(what))
        assert not found.minimal
        assert found.failure.kind in {failure.kind for failure in failures_of(found.config)}
    assert told[0][0] == "stall timeout"
    assert all(tried <= 9 for _, _, tried in told)


def test_a_run_that_does_not_fail_is_refused() -> None:
    with pytest.raises(DoesNotFailError, match="keeps all that its service promises"):
        shrink(large("spo"))
