"""Scenarios of ST: one channel, and one order of delivery at all nodes together."""

from typing import Any

from ordercast.explorer.scenario import Promise, Scenario, scripts
from ordercast.model.config import GroupConfig
from ordercast.model.runs import Channel
from ordercast.protocols import MachineClass
from ordercast.protocols.st import St

PROMISE = Promise(one_order=True, never_less=("expected", "expected_to_me", "stamps", "epoch_seen"))
GO_BACK = Promise(one_order=True, never_less=("stamps", "epoch_seen"))
"""With go-back-n what was thrown away is expected again."""
GROUP = {"window", "quota", "first_seq", "log_limit", "recovery", "hearsay"}


def selective_total(*lines: str, machine: MachineClass = St, promise: Promise = PROMISE, **how: Any) -> Scenario:
    """A group of ST with the sound rules; `how` are fields of its configuration and of the scenario."""
    group = GroupConfig(nodes=len(lines), **{name: how.pop(name) for name in GROUP & how.keys()})
    return Scenario(machine=machine, group=group, scripts=scripts(*lines), promise=promise, channel=Channel.ONE, **how)
