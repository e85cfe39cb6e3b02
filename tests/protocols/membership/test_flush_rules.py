"""Each rule of ending a view, taken out: the random groups notice it."""

from collections.abc import Callable

import pytest

from tests.protocols.membership import missing_rules
from tests.protocols.membership.campaigns import Campaign
from tests.protocols.membership.changing_group import View

TRIES = 400
"""Random groups at most until a missing rule is noticed; most are by one of the first ten."""


def notices(protocol: str) -> int:
    """How many groups it takes."""
    for seed in range(TRIES):
        group = Campaign(protocol, seed)
        if protocol in {"to", "prito"}:  # the moment at which the rules on rounds matter
            group.awaited, group.loss = View.has_carried, max(group.loss, 0.3)
        try:
            group.run()
        except (AssertionError, LookupError, ValueError):
            return seed + 1
    return 0


@pytest.mark.parametrize(
    ("protocol", "remove"),
    [
        ("spo", missing_rules.v7_nothing_is_settled),
        ("spo", missing_rules.v8_what_is_settled_does_not_count),
        ("spo", missing_rules.v9_stable_is_delivered),
        ("prito", missing_rules.v19_the_round_is_not_begun),
        ("prito", missing_rules.v20_packets_wait_over_a_view),
        ("prio", missing_rules.v20_packets_wait_over_a_view),
        ("st", missing_rules.v21_a_round_is_not_finished_first),
        ("to", missing_rules.v22_rounds_are_mixed),
        ("spo", missing_rules.v23_the_most_that_any_has),
        ("po", missing_rules.v23_the_most_that_any_has),
        ("st", missing_rules.v23_the_most_that_any_has),
        ("to", missing_rules.v23_the_most_that_any_has),
        ("prito", missing_rules.v23_the_most_that_any_has),
        ("sequencer", missing_rules.v24_the_least_that_any_has),
        ("sequencer", missing_rules.v24_any_majority_reports),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_rule_that_is_missing_is_noticed(
    protocol: str, remove: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    remove(monkeypatch)
    assert notices(protocol)
