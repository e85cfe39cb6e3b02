"""Scenarios of TO, PriTO and PriO: one channel, everything to everybody, one order of delivery."""

import re
from typing import Any

from ordercast.explorer.scenario import Promise, Scenario
from ordercast.model.config import GroupConfig, PriorityConfig
from ordercast.model.machine import Submit
from ordercast.model.nodes import everybody
from ordercast.model.runs import Channel
from ordercast.protocols import MachineClass
from ordercast.protocols.prito import Prito
from ordercast.protocols.to import To

TOTAL = Promise(one_order=True, never_less=("accepted_packets", "delivered_by"))
PRIORITY_TOTAL = Promise(one_order=True, sender_order=False, never_less=("accepted_packets", "delivered_by"))
"""A sender's packets overtake each other, if their priorities differ."""
GROUP = {"window", "quota", "first_seq"}


def broadcasts(*lines: str) -> tuple[tuple[Submit, ...], ...]:
    """By node what it sends to everybody: "p1 h5" is p of priority 1, then h of priority 5."""
    return tuple(tuple(_submission(item, len(lines)) for item in line.split()) for line in lines)


def _submission(item: str, nodes: int) -> Submit:
    match = re.fullmatch(r"([a-z]+)(\d*)", item)
    if match is None:
        raise ValueError(f"{item!r} is not written like p1")
    name, priority = match.groups()
    return Submit(everybody(nodes), (len(name),), name.encode(), int(priority or 0))


def total(*lines: str, machine: MachineClass = To, promise: Promise = TOTAL, **how: Any) -> Scenario:
    """A group of TO; `how` are fields of its configuration and of the scenario."""
    settings = {name: how.pop(name) for name in GROUP & how.keys()}
    priority = PriorityConfig(synchronises=how.pop("synchronises", True))
    group = GroupConfig(nodes=len(lines), priority=priority, **settings)
    return Scenario(
        machine=machine, group=group, scripts=broadcasts(*lines), promise=promise, channel=Channel.ONE, **how
    )


def priority_total(*lines: str, machine: MachineClass = Prito, **how: Any) -> Scenario:
    """A group of PriTO, likewise."""
    return total(*lines, machine=machine, promise=PRIORITY_TOTAL, **how)
