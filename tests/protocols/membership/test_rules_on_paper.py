"""The table of rules in docs/explanation/view-changes.md names a test for each, and the test is there."""

import re
from pathlib import Path
from typing import Any

from tests.protocols.membership import missing_rules, test_flush_rules, test_flush_settled, test_membership_scripts

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/explanation/view-changes.md"
_RULE = re.compile(r"^\| V(\d+) \|.*\| ([^|]*) \|$", re.MULTILINE)
_TEST = re.compile(r"([123]) `(\w+)`")


def test_every_rule_has_a_test_that_is_there() -> None:
    rules = {int(number): _TEST.findall(tests) for number, tests in _RULE.findall(PAGE.read_text())}
    assert sorted(rules) == list(range(1, 26))
    test: Any = test_flush_rules.test_a_rule_that_is_missing_is_noticed
    [asked] = [mark for mark in test.pytestmark if mark.args]
    taken_out = {remove for _, remove in asked.args[1]}
    for number, tests in rules.items():
        assert tests, f"V{number}"
        for file, name in tests:
            if file == "3":
                assert getattr(missing_rules, name) in taken_out
            else:
                module = {"1": test_membership_scripts, "2": test_flush_settled}[file]
                assert callable(getattr(module, name)), name


def test_every_rule_of_membership_has_a_mutant() -> None:
    mutants = (ROOT / "tests/mutations/semantic/membership.py").read_text()
    named = set(map(int, re.findall(r"\(V(\d+)\)", mutants)))
    assert named >= {*range(1, 7), *range(10, 19), 25}
