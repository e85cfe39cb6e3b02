"""Scenarios of SPO: what it promises, by either rules."""

from typing import Any

from ordercast.explorer.scenario import Promise, Scenario, scripts
from ordercast.model.config import GroupConfig, PaperRules, Rules
from ordercast.model.machine import Level
from ordercast.protocols import MachineClass
from ordercast.protocols.spo import Spo
from ordercast.protocols.spo_paper import SpoPaper

PROMISE = Promise(never_less=("expected", "expected_to_me", "seen", "seen_to_me"))
GROUP = {"window", "quota", "hearsay", "first_seq"}


def spo(*lines: str, machine: MachineClass = Spo, promise: Promise = PROMISE, **how: Any) -> Scenario:
    """A group of SPO with the sound rules; `how` are fields of its configuration and of the scenario."""
    group = GroupConfig(nodes=len(lines), **{name: how.pop(name) for name in GROUP & how.keys()})
    return Scenario(machine=machine, group=group, scripts=scripts(*lines), promise=promise, **how)


def spo_as_printed(
    *lines: str, in_the_end: Level | None = None, paper: PaperRules | None = None, window: int = 8, **how: Any
) -> Scenario:
    """A group of SPO with the printed rules, of which nothing is expected in the end unless it is asked for."""
    promise = Promise(in_the_end=in_the_end, never_less=("expected", "expected_to_me"))
    group = GroupConfig(nodes=len(lines), rules=Rules.PAPER, window=window, paper=paper or PaperRules())
    return Scenario(machine=SpoPaper, group=group, scripts=scripts(*lines), promise=promise, **how)
