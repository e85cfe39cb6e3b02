"""A short battery against a machine of the sequencer's broadcast: the rules, and small runs in which much goes wrong.

What is broken should not get by.
"""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from ordercast.protocols.sequencer import Sequencer
from ordercast.simulator import simulation
from tests.protocols.sequencer import (
    test_sequencer_agreement,
    test_sequencer_machine,
    test_sequencer_members,
    test_sequencer_ordering,
    test_sequencer_scripts,
    test_sequencer_views,
)
from tests.protocols.sequencer.driver import played_by
from tests.simulator.swarm import draw_config, failures, run_and_judge

RULES = (
    test_sequencer_ordering,
    test_sequencer_members,
    test_sequencer_agreement,
    test_sequencer_views,
    test_sequencer_scripts,
    test_sequencer_machine,
)
_TOO_LONG = {"test_no_well_formed_unit_brings_it_down"}
_RUNS = range(40)


def noticed_by(machine: type[Sequencer], *, runs: bool = True) -> str:
    """The first check that a machine does not pass; empty if it passes all."""
    with played_by(machine):
        for name, check in checks_of_rules():
            try:
                check()
            except (Exception, pytest.fail.Exception):  # whatever it is, it is noticed
                return name
    for number in _RUNS if runs else ():
        try:
            with patch.object(simulation, "machine_class", lambda *_: machine):
                result, verdict = run_and_judge(draw_config(number, protocol="sequencer", most_nodes=6, receipts=120))
        except Exception as error:
            return f"run {number}: {error!r}"
        if failures(result, verdict):
            return f"run {number}"
    return ""


def checks_of_rules() -> Iterator[tuple[str, Callable[[], object]]]:
    """All tests of the rules, with all their parameters."""
    for module in RULES:
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_") and name not in _TOO_LONG:
                yield from _with_parameters(module, name, test)


def _with_parameters(module: ModuleType, name: str, test: Callable[..., object]) -> Iterator[tuple[str, Any]]:
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    where = f"{module.__name__.rpartition('.')[2]}: {name}"
    if not marks:
        yield where, test
        return
    names, values = marks[0].args
    for value in values:
        yield where, lambda value=value: test(**{names: value})
