"""A short battery against a machine of ST: the rules, small searches, and walks. What is broken should not get by."""

import inspect
from collections.abc import Callable, Iterator
from itertools import starmap
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.st_scenarios import selective_total
from ordercast.explorer.walk import wander
from ordercast.protocols.st import St
from tests.protocols.st import (
    test_st_machine,
    test_st_rules_epochs,
    test_st_rules_help,
    test_st_rules_normal,
    test_st_rules_recovery,
)
from tests.protocols.st.driver import played_by

RULES = (test_st_rules_normal, test_st_rules_recovery, test_st_rules_help, test_st_rules_epochs, test_st_machine)
_TOO_LONG = {"test_no_well_formed_unit_brings_it_down"}


def noticed_by(machine: type[St], *, searches: bool = True) -> str:
    """The first check that a machine does not pass; empty if it passes all."""
    with played_by(machine):
        for name, check in checks_of_rules():
            try:
                check()
            except (Exception, pytest.fail.Exception):  # whatever it is, it is noticed
                return name
    for name, violated in checks_of_service(machine) if searches else ():
        if violated():
            return name
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


def checks_of_service(machine: type[St]) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Small searches and walks, judged by what the service promises alone."""

    def search(*lines: str, **how: Any) -> bool:
        return explore(selective_total(*lines, machine=machine, **how), most=30_000).violation is not None

    yield "search: pair", lambda: search("a{1,2}", "b{1,2}", losses=1, firings=1)
    yield "search: window of one", lambda: search("a{1,2} b{1,2}", "c{1}", window=1, losses=1)
    yield "search: three", lambda: search("", "g{1,3}", "y{1,3}", losses=1)
    yield "search: pairs", lambda: search("a{1,2}", "b{2,3}", "c{1,3}", losses=1)
    yield from starmap(lambda seed: (f"walk {seed}", lambda: _walk(machine, seed)), [(seed,) for seed in range(60)])


def _walk(machine: type[St], seed: int) -> bool:
    chance = Random(seed)
    nodes = chance.choice([2, 3, 3, 4])
    lines: list[list[str]] = [[] for _ in range(nodes)]
    for number in range(chance.randint(3, 8)):
        to = sorted(chance.sample(range(1, nodes + 1), chance.randint(1, nodes)))
        lines[chance.randrange(nodes)].append(f"m{number}{{{','.join(map(str, to))}}}")
    scenario = selective_total(
        *map(" ".join, lines),
        machine=machine,
        window=chance.choice([1, 2, 8]),
        quota=chance.choice([1, 8]),
        log_limit=chance.choice([1, 4, 400]),
        losses=chance.choice([2, 5, 10]),
        firings=chance.choice([0, 20, 50]),
        patient=chance.random() < 0.3,
    )
    return wander(scenario, seed, length=150) is not None
