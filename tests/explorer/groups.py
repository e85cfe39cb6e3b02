"""Scenarios by the names that tests know them by."""

from typing import Any

from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import scenario
from ordercast.model.config import Rules


def spo(*lines: str, **how: Any) -> Scenario:
    return scenario("spo", lines, **how)


def spo_as_printed(*lines: str, **how: Any) -> Scenario:
    return scenario("spo", lines, Rules.PAPER, **{"window": 8, **how})


def selective_total(*lines: str, **how: Any) -> Scenario:
    return scenario("st", lines, **how)


def total(*lines: str, **how: Any) -> Scenario:
    return scenario("to", lines, **how)


def priority_total(*lines: str, **how: Any) -> Scenario:
    return scenario("prito", lines, **how)


def broadcasts(*lines: str, **how: Any) -> Scenario:
    return scenario("sequencer", lines, **how)
