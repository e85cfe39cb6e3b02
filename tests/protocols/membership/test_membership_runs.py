"""Random groups: partitions, crashes, joins, leaves and wrong suspicions, then peace, in which everything ends well."""

from collections import Counter

import pytest
from msgspec.structs import replace

from ordercast.protocols.membership.order import Order, order_of
from tests.protocols.membership.group import SETTINGS, Group, disturb, make_peace
from tests.protocols.membership.orders import ONE_STREAM, STREAMS
from tests.protocols.membership.promises import check, check_end

TOTAL = ("to", "prito", "prio", "sequencer")
PARTIAL = ("spo", "po", "st")
RUNS, MANY = 25, 1_500


def run(name: str, order: Order, seed: int, counts: Counter[str], *, is_total: bool, resilience: int = 8) -> None:
    """One run; what was promised is checked in the middle and at the end. In some, coordinators hardly wait."""
    settings = replace(SETTINGS, patience=1, suspected_patience=0) if seed % 4 == 3 else SETTINGS
    group = Group(order, 1 + seed % 7, f"{name}/{seed}", is_total=is_total, resilience=resilience, settings=settings)
    disturb(group, rounds=12, joiners=seed % 4)
    check(group)
    end = make_peace(group)
    assert end != "stuck", f"{name}, seed {seed}"
    check(group)
    if end == "settled":
        check_end(group)
    counts[end] += 1
    counts.update(group.counts)


def run_all(name: str, seeds: range, *, resilience: int = 8) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        run(name, order_of(name), seed, counts, is_total=name in TOTAL, resilience=resilience)
    assert counts["settled"] > len(seeds) / 2
    assert min(counts[what] for what in ("joined", "left", "excluded", "crashes", "blocked", "no quorum")) > 0


@pytest.mark.parametrize("name", TOTAL + PARTIAL)
def test_every_order_keeps_its_promises(name: str) -> None:
    run_all(name, range(RUNS))


@pytest.mark.parametrize("resilience", [0, 1, 2])
def test_the_sequencer_keeps_what_it_promises_with_less_resilience(resilience: int) -> None:
    """Those that go on agree; who is gone may have been delivered more."""
    counts: Counter[str] = Counter()
    for seed in range(20):
        run("sequencer", order_of("sequencer"), seed, counts, is_total=True, resilience=resilience)
    assert counts["settled"] > 5


@pytest.mark.soak
@pytest.mark.parametrize("name", TOTAL + PARTIAL)
def test_every_order_keeps_its_promises_in_many_runs(name: str) -> None:
    run_all(name, range(RUNS, RUNS + MANY))


def test_small_orders_keep_their_promises_on_the_network() -> None:
    """They do not repeat what is lost: nothing is promised but safety."""
    for seed in range(60):
        for order in (ONE_STREAM, STREAMS):
            group = Group(order, 2 + seed % 4, f"small/{seed}")
            group.is_total = order is ONE_STREAM
            disturb(group, rounds=12, joiners=seed % 3)
            check(group)


def test_without_state_everybody_may_join_at_once() -> None:
    for seed in range(10):
        group = Group(order_of("to"), 1, f"stateless/{seed}", settings=replace(SETTINGS, has_state=False))
        for number in range(5):
            group.join(f"j{number}")
        assert make_peace(group) == "settled"
        [view] = {process.view for process in group.members()}
        assert view is not None
        assert len(view.members) == 6
