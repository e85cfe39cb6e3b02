"""Our own code, broken on purpose, is noticed: a few semantic mutants of each suite here, all by `make mutants`."""

import ast
import sys
from fnmatch import fnmatch
from itertools import chain

import pytest

from ordercast.model import nodes
from ordercast.model.nodes import everybody
from tests.mutations.battery import Check
from tests.mutations.mutation import ROOT, Mutant, imported_from, replace, source_of
from tests.mutations.not_broken import NOT_BROKEN
from tests.mutations.suites import SUITES, Suite
from tests.mutations.systematic import every_spot, spots_of, stale_names
from tests.mutations.trials import Trial, outcomes

EVERY = 18
"""One semantic mutant in so many is tried here."""
NOTICED_BY = {
    "a message may go to some nodes only": "test_where_everything_goes_to_all_a_subset_is_refused",
    "a sender's order is not checked": "test_an_untrue_claim_is_found",
    "older messages count as duplicates, though it is printed otherwise (S4)": (
        "test_s4_an_old_message_is_broadcast_again_and_the_table_falls"
    ),
    "partitions never overlap": "test_the_first_overlap_is_that_of_the_definition",
    "priorities are ignored": "test_the_first_goes_when_it_is_acknowledged_and_equals_keep_their_order",
    "a message may be delivered in two views": "test_a_message_is_delivered_in_one_view",
    "timers of an epoch outlive it": "test_those_that_stay_deliver_the_same_once_and_fall_silent",
    "views: everybody closes every view": "test_members_of_a_changing_group_know_of_different_numbers_of_nodes",
}
"""By mutant: a test that is tried first, since those before it take long. What it does not notice, the others may."""
PO = next(suite for suite in SUITES if suite.name == "po")


def _endless(*_: object) -> None:
    while True:
        pass


ALWAYS = {"spo", "st", "membership", "audit", "wire"}
TRIED = [pytest.param(suite, id=suite.name, marks=() if suite.name in ALWAYS else pytest.mark.soak) for suite in SUITES]
ENDLESS = Mutant("it never ends", "model.nodes", lambda: replace(nodes, "everybody", _endless))


@pytest.mark.parametrize("suite", TRIED)
def test_a_few_semantic_mutants_are_noticed(suite: Suite) -> None:
    """Those of the other suites by the soak; all of all by `make mutants`."""
    chosen, checks = suite.mutants()[::EVERY], suite.battery.unordered()
    assert chosen
    found = list(outcomes(Trial(suite.name, mutant, _ordered(checks, mutant), 120) for mutant in chosen))
    assert len(found) == len(chosen)
    assert [outcome.trial.mutation.name for outcome in found if outcome.noticed is None] == []


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_semantic_mutant_can_be_tried(suite: Suite) -> None:
    """It names methods that are still there. All of them at once: that one can be tried alone, `make mutants` tells."""

    def apply_all() -> None:
        for mutant in suite.mutants():
            mutant.change()

    together = Mutant("all of them", "model.nodes", apply_all)
    [outcome] = outcomes([Trial(suite.name, together, [], 120)])
    assert outcome.noticed is None


@pytest.mark.parametrize(
    "name", ["spo", "wire", *(pytest.param(name, marks=pytest.mark.soak) for name in ("st", "restart", "replicated"))]
)
def test_a_systematic_mutant_is_noticed(name: str) -> None:
    """One of a suite whose first tests take milliseconds; all of all are tried by the soak."""
    suite = next(each for each in SUITES if each.name == name)
    spot = next(spot for module in suite.code for spot in spots_of(module))
    [outcome] = outcomes([Trial(name, spot, suite.battery.unordered(), 120)])
    assert outcome.noticed is not None


def _ordered(checks: list[Check], mutant: Mutant) -> list[Check]:
    return sorted(checks, key=lambda check: check.test != NOTICED_BY.get(mutant.name))  # which is stable


def test_what_is_tried_first_is_there() -> None:
    chosen = [(suite, mutant.name) for suite in SUITES for mutant in suite.mutants()[::EVERY]]
    for mutant, test in NOTICED_BY.items():
        batteries = [suite.battery.unordered() for suite, name in chosen if name == mutant]
        assert test in {check.test for check in chain.from_iterable(batteries)}


def test_what_changes_nothing_is_not_noticed() -> None:
    nothing = Mutant("nothing is changed", "protocols.po.machine", lambda: None)
    rules = [check for check in PO.battery.unordered() if check.module.endswith("rules")]
    [outcome] = outcomes([Trial(PO.name, nothing, rules, seconds=600)])
    assert outcome.noticed is None


def test_a_mutation_without_an_end_is_noticed_by_the_clock() -> None:
    [outcome] = outcomes([Trial(PO.name, ENDLESS, PO.battery.unordered(), 1)])
    assert outcome.noticed is not None
    assert outcome.noticed.check == "the clock"


def test_a_check_without_an_end_is_noticed_before_the_time_of_all_is_over() -> None:
    checks = [check._replace(limit=0.2) for check in PO.battery.unordered()]
    [outcome] = outcomes([Trial(PO.name, ENDLESS, checks, seconds=600)])
    assert outcome.noticed is not None
    assert outcome.noticed.why == "no end after 0.2 s of processor time"


def test_a_changed_text_is_seen_within_and_nowhere_else() -> None:
    changed = source_of("model.nodes").replace("return (1 << nodes) - 1", "return 0")
    with imported_from("model.nodes", changed):
        from ordercast.model.nodes import everybody as broken  # noqa: PLC0415

        assert broken(3) == 0
    assert everybody(3) == 7


def test_a_changed_module_is_found_in_its_package_too() -> None:
    """Tests replace parts of a module that they got from its package: of the one that the code under test uses."""
    with imported_from("model.nodes", source_of("model.nodes")):
        from ordercast.model import nodes as changed  # noqa: PLC0415

        assert changed is sys.modules["ordercast.model.nodes"]
        assert changed is not nodes
    from ordercast.model import nodes as restored  # noqa: PLC0415

    assert restored is nodes


def test_every_mutant_has_a_name_of_its_own() -> None:
    for suite in SUITES:
        names = [mutant.name for mutant in suite.mutants()]
        assert len(set(names)) == len(names)


def test_every_systematic_mutation_can_be_made_and_has_a_name_of_its_own() -> None:
    for module in chain.from_iterable(suite.code for suite in SUITES):
        spots = every_spot(module)
        assert len({spot.name for spot in spots}) == len(spots)
        for spot in spots[::40]:
            ast.parse(spot.text())


def test_what_is_called_equivalent_is_there() -> None:
    assert list(stale_names()) == []


BROKEN_PACKAGES = ("protocols", "audit", "pipeline/audit", "live", "wire", "log")


def test_each_module_with_something_to_break_is_broken_or_named_with_the_reason_why_not() -> None:
    root = ROOT / "src" / "ordercast"
    names = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for package in BROKEN_PACKAGES
        for path in (root / package).rglob("*.py")
        if path.name != "__init__.py"
    }
    unbroken = names - {module for suite in SUITES for module in suite.code}
    unnamed = {name for name in unbroken if not any(fnmatch(name, pattern) for pattern in NOT_BROKEN)}
    assert {name for name in unnamed if spots_of(name)} == set()
    assert [pattern for pattern in NOT_BROKEN if not any(fnmatch(name, pattern) for name in unbroken)] == []
