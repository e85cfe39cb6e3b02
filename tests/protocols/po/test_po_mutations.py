"""Every deliberate breakage of PO is noticed by the tests of its rules, and nothing is noticed of PO as it is."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from ordercast.protocols.po import Po
from tests.protocols.po import test_po_rules
from tests.protocols.po.driver import played_by
from tests.protocols.po.mutations import MUTATIONS, Mutation, compiled


def checks() -> Iterator[tuple[str, Callable[[], object]]]:
    """All tests of the rules, with their parameters."""
    for name, test in inspect.getmembers(test_po_rules, inspect.isfunction):
        if name.startswith("test_"):
            marks = getattr(test, "pytestmark", ())
            with_values = [partial(test, value) for mark in marks for value in mark.args[1]]
            yield from [(name, check) for check in with_values or [partial(test)]]


def noticed_by_rules(machine: type[Po]) -> str:
    """The first test that fails with a machine; empty if none does."""
    with played_by(machine):
        for name, check in checks():
            try:
                check()
            except (Exception, pytest.fail.Exception):  # whatever goes wrong is noticed
                return name
    return ""


def test_nothing_is_noticed_of_the_machine_as_it_is() -> None:
    untouched = compiled()
    assert untouched is not Po
    assert noticed_by_rules(untouched) == ""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_rule_tests_notice(mutation: Mutation) -> None:
    assert noticed_by_rules(mutation.machine())


def test_mutations_have_different_names_and_are_different() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    assert len({(mutation.old, mutation.new) for mutation in MUTATIONS}) == len(MUTATIONS)
