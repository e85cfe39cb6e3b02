"""What is broken on purpose is noticed: a few breakages of each suite here, all of them by `make mutants`.

Besides, every breakage of the lists can be made, is named, and is another than the rest.
"""

import ast
from itertools import chain

import pytest

from tests.mutations.mutation import Mutation, imported, source_of
from tests.mutations.suites import SUITES, Suite
from tests.mutations.systematic import every_spot, stale_names
from tests.mutations.trials import Trial, outcomes

LISTED = [mutation for suite in SUITES for mutation in suite.mutations() if suite.name != "spo in runs"]
EVERY = 40
"""One breakage in so many is tried here."""


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite.lists], ids=lambda suite: suite.name)
def test_a_few_breakages_are_noticed(suite: Suite) -> None:
    chosen = suite.mutations()[::EVERY]
    checks = suite.battery.unordered()
    found = list(outcomes(Trial(suite.name, breakage, checks, 60) for breakage in chosen))
    assert len(found) == len(chosen)
    assert [outcome.trial.breakage.name for outcome in found if outcome.noticed is None] == []


def test_what_changes_nothing_is_not_noticed() -> None:
    [suite] = [suite for suite in SUITES if suite.name == "po"]
    nothing = Mutation("nothing is changed", "protocols.po", "self.cooling = True", "self.cooling = bool(1)")
    rules = [check for check in suite.battery.unordered() if check.module.endswith("rules")]
    [outcome] = outcomes([Trial(suite.name, nothing, rules, seconds=600)])
    assert outcome.noticed is None


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite.lists], ids=lambda suite: suite.name)
def test_a_change_by_itself_is_not_noticed(suite: Suite) -> None:
    """A module that is imported anew, as it is, breaks nothing: what is noticed is the breakage."""
    modules = {mutation.module for mutation in suite.mutations()}
    same = [Mutation("as it is", module, text, text) for module in modules for text in [source_of(module)]]
    found = outcomes(Trial(suite.name, nothing, suite.battery.unordered()[:1], 600) for nothing in same)
    assert [outcome for outcome in found if outcome.noticed is not None] == []


def test_a_breakage_without_an_end_is_noticed_by_the_clock() -> None:
    [suite] = [suite for suite in SUITES if suite.name == "po"]
    endless = Mutation("it never ends", "protocols.po", "self.cooling = True", "while True: pass")
    [outcome] = outcomes([Trial(suite.name, endless, suite.battery.unordered(), 1)])
    assert outcome.noticed is not None
    assert outcome.noticed.check == "the clock"


def test_what_is_broken_is_broken_nowhere_else() -> None:
    mutation = Mutation("all is the same", "model.nodes", "return (1 << nodes) - 1", "return 0")
    assert imported("model.nodes", mutation).everybody(3) == 0
    from ordercast.model.nodes import everybody  # noqa: PLC0415

    assert everybody(3) == 7


def test_every_breakage_of_the_lists_can_be_made() -> None:
    for mutation in LISTED:
        ast.parse(mutation.text())


def test_every_breakage_has_a_name_of_its_own_and_is_another() -> None:
    assert len({(mutation.module, mutation.name) for mutation in LISTED}) == len(LISTED)
    assert len({(mutation.module, mutation.old, mutation.new) for mutation in LISTED}) == len(LISTED)


def test_every_systematic_breakage_can_be_made_and_has_a_name_of_its_own() -> None:
    for module in chain.from_iterable(suite.code for suite in SUITES):
        spots = every_spot(module)
        assert len({spot.name for spot in spots}) == len(spots)
        for spot in spots[::10]:
            ast.parse(spot.text())


def test_what_is_called_equivalent_is_there() -> None:
    assert list(stale_names()) == []
