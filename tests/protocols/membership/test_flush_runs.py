"""Random groups of each order whose members change: all that those that stay sent is given once, in one view."""

import pytest

from ordercast.protocols.registry import FLUSHES
from tests.protocols.membership.campaigns import campaign

RUNS = 60
MANY = 3_000


@pytest.mark.parametrize("protocol", FLUSHES)
def test_members_come_and_go(protocol: str) -> None:
    tally = campaign(protocol, range(RUNS))
    assert tally.left_over > RUNS // 2
    assert tally.deliveries > 10 * RUNS
    if protocol not in {"spo", "po", "sequencer"}:
        assert tally.recovering > RUNS // 2
        assert tally.between_rounds > RUNS // 6


@pytest.mark.soak
@pytest.mark.parametrize("protocol", FLUSHES)
def test_members_come_and_go_for_long(protocol: str) -> None:
    print(protocol, campaign(protocol, range(RUNS, MANY)))  # noqa: T201 - how much it was
