"""Random groups of each order whose members change: all that those that stay sent is given once, in one view."""

import pytest

from ordercast.model.config import RecoveryPolicy
from ordercast.protocols.registry import FLUSHES
from tests.protocols.membership.campaigns import Campaign, campaign
from tests.protocols.membership.changing_group import View

RUNS = 40


@pytest.mark.parametrize("protocol", FLUSHES)
def test_members_come_and_go(protocol: str) -> None:
    tally = campaign(protocol, range(RUNS))
    assert tally.left_over > RUNS // 2
    assert tally.deliveries > 10 * RUNS
    if protocol not in {"spo", "po", "sequencer"}:
        assert tally.recovering > RUNS // 2
        assert tally.between_rounds > RUNS // 6


def test_members_come_and_go_where_what_is_stable_and_to_all_is_delivered() -> None:
    """What is to some only is not: `missing_rules.v9`."""
    tally = campaign("spo", range(300), delivers_stable=True)
    assert tally.deliveries > 20 * RUNS


def test_members_come_and_go_where_what_is_stable_is_delivered() -> None:
    """What one that is gone was given, all that go on are given: nothing more is needed than for `known_stable`."""
    tally = campaign("st", range(2 * RUNS), delivers_stable=True)
    assert tally.deliveries > 20 * RUNS
    assert tally.recovering > RUNS
    assert tally.between_rounds > RUNS // 3


def test_members_come_and_go_where_what_was_lost_is_placed() -> None:
    """Views end while some know a generation that others do not."""
    tally = campaign("st", range(RUNS), recovery=RecoveryPolicy.PLACE)
    assert tally.deliveries > 10 * RUNS
    assert tally.recovering > RUNS // 2
    assert tally.between_rounds > RUNS // 8


@pytest.mark.parametrize("protocol", ["to", "prito"])
def test_a_view_ends_while_a_round_begins(protocol: str) -> None:
    """Some have completed a recovery of TO that carries packets into the next round, and others have not."""
    for seed in range(90):
        group = Campaign(protocol, seed)
        group.awaited, group.loss = View.has_carried, max(group.loss, 0.3)
        group.run()
