"""A short battery against machines of TO and PriTO: the rules, small searches, and walks.

What is broken should not get by.
"""

import inspect
from collections.abc import Callable, Iterator
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.priorities_scenarios import priority_total, total
from ordercast.explorer.walk import wander
from tests.protocols.prito import test_prito_rules
from tests.protocols.to import (
    test_to_machine,
    test_to_rules_back,
    test_to_rules_carried,
    test_to_rules_normal,
    test_to_rules_speaking,
)
from tests.protocols.to.driver import Machines, played_by

RULES = (
    test_to_rules_normal,
    test_to_rules_speaking,
    test_to_rules_back,
    test_to_rules_carried,
    test_prito_rules,
    test_to_machine,
)
_TOO_LONG = {"test_no_well_formed_unit_brings_it_down"}


def noticed_by(machines: Machines) -> str:
    """The first check that machines do not pass; empty if they pass all."""
    with played_by(machines):
        for name, check in checks_of_rules():
            try:
                check()
            except (Exception, pytest.fail.Exception):  # whatever it is, it is noticed
                return name
    return next((name for name, violated in checks_of_service(machines) if violated()), "")


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


def checks_of_service(machines: Machines) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Small searches and walks, judged by what the services promise alone."""

    def search(scenario: Any) -> bool:
        return explore(scenario, most=10_000).violation is not None

    yield "search: pair", lambda: search(total("a", "b", machine=machines.to, losses=1, firings=1))
    yield "search: three", lambda: search(total("a", "b", "", machine=machines.to, losses=1))
    yield "search: priorities", lambda: search(priority_total("p1 h5", "z3", machine=machines.prito, losses=1))
    for seed in range(40):
        yield f"walk {seed}", lambda seed=seed: walk(machines, seed) is not None  # type: ignore[misc]


def walk(machines: Machines, seed: int, **how: Any) -> object:
    """A long schedule at random; what it breaks, if anything."""
    chance = Random(seed)
    lines: list[list[str]] = [[] for _ in range(chance.choice([2, 3, 3, 4]))]
    for name in "abcdefghij"[: chance.randint(3, 10)]:
        chance.choice(lines).append(f"{name}{chance.choice([1, 1, 2, 5])}")
    settings: dict[str, Any] = {
        "window": chance.choice([1, 2, 8]),
        "quota": chance.choice([1, 2, 8]),
        "losses": chance.choice([0, 2, 5, 10]),
        "firings": chance.choice([5, 20, 50]),
        "drained": chance.random() < 0.3,
        "patient": chance.random() < 0.3,
        **how,
    }
    words = map(" ".join, lines)
    scenario = (
        total(*words, machine=machines.to, **settings)
        if seed % 2
        else priority_total(*words, machine=machines.prito, **settings)
    )
    return wander(scenario, seed, length=chance.choice([20, 60, 150]))
