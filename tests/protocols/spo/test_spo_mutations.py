"""Every deliberate breakage of SPO is noticed, and nothing is noticed of SPO as it is.

The rule tests notice all of them; whole runs notice those that break a promise. The rest only cost units or time.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from unittest.mock import patch

import msgspec
import pytest

from ordercast.model.config import SECOND, Rules
from ordercast.model.machine import Input, Output
from ordercast.model.runs import RunConfig
from ordercast.protocols import PROTOCOLS
from ordercast.protocols.spo import Spo
from tests.protocols.spo.driver import played_by
from tests.protocols.spo.mutations import MODULES, Mutation, compiled, source_of
from tests.protocols.spo.mutations_hearing import HEARING
from tests.protocols.spo.mutations_speaking import SPEAKING
from tests.simulator.swarm import draw_config, failures, run_and_judge

MUTATIONS = (*HEARING, *SPEAKING)
RULES = ("receiving", "merge", "sending", "repair", "debt", "poll", "machine")
RUNS = range(60)
PATIENCE = 20
"""A run that takes so many times the inputs that it needs will not end well."""

FATAL = [mutation for mutation in MUTATIONS if mutation.in_runs]


def rule_tests() -> Iterator[tuple[str, Callable[[], None]]]:
    """The tests of the rules that are no search and have nothing to say but yes or no."""
    for rule in RULES:
        module = import_module(f"tests.protocols.spo.test_spo_sound_{rule}")
        for name, test in vars(module).items():
            if name.startswith("test_") and not hasattr(test, "hypothesis") and not hasattr(test, "pytestmark"):
                yield name, test


def noticed_by_rules(machine: type[Spo]) -> str:
    """The first rule test that fails with a machine; empty if none does."""
    with played_by(machine):
        for name, test in rule_tests():
            try:
                test()
            except (Exception, pytest.fail.Exception):  # whatever goes wrong is noticed
                return name
    return ""


def config_of(number: int) -> RunConfig:
    """A small run; one in three is larger, so that windows close and quotas fill."""
    config = draw_config(number, most_nodes=4 if number % 2 else 6, receipts=80 if number % 3 else 300)
    return msgspec.structs.replace(config, patience=3 * SECOND)


class TooMuch(Exception):  # noqa: N818 - a judgement, not an error
    """A run took far more inputs than it needs."""


def run_with(machine: type[Spo], number: int, most_inputs: int) -> tuple[list[str], int]:
    """What is wrong with a run, and how many inputs its machines took."""
    inputs = 0

    class Counted(machine):  # type: ignore[misc,valid-type]
        def handle(self, event: Input) -> list[Output]:
            nonlocal inputs
            inputs += 1
            if inputs > most_inputs:
                raise TooMuch
            outputs: list[Output] = super().handle(event)
            return outputs

    with patch.dict(PROTOCOLS["spo"], {Rules.SOUND: Counted}):
        result, verdict = run_and_judge(config_of(number))
    return failures(result, verdict) + (["it never fell silent"] if result.stalled else []), inputs


@cache
def inputs_needed(number: int) -> int:
    """How many inputs a run takes if nothing is broken."""
    found, inputs = run_with(Spo, number, most_inputs=10**7)
    assert found == []
    return inputs


def noticed_by_runs(machine: type[Spo]) -> str:
    """What is wrong with the first run that fails; empty if none does."""
    for number in RUNS:
        try:
            found, _ = run_with(machine, number, most_inputs=1_000 + PATIENCE * inputs_needed(number))
        except Exception as error:  # whatever goes wrong is noticed
            return f"run {number}: {error!r}"
        if found:
            return f"run {number}: {found[0]}"
    return ""


def test_nothing_is_noticed_of_the_machine_as_it_is() -> None:
    untouched = compiled(MODULES[0], source_of(MODULES[0]))
    assert untouched is not Spo
    assert noticed_by_rules(untouched) == ""
    assert noticed_by_runs(untouched) == ""


def test_mutations_have_different_names_and_are_different() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    assert len({(mutation.module, mutation.old, mutation.new) for mutation in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_rule_tests_notice(mutation: Mutation) -> None:
    assert noticed_by_rules(mutation.machine())


@pytest.mark.parametrize("mutation", FATAL, ids=lambda mutation: mutation.name)
def test_whole_runs_notice(mutation: Mutation) -> None:
    assert noticed_by_runs(mutation.machine())
