"""Missing ranges, against sets of numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ordercast.protocols.shared.gaps import missing_ranges

numbers = st.integers(-5, 25)


@given(low=numbers, high=numbers, held=st.sets(numbers))
def test_the_ranges_hold_exactly_the_numbers_that_are_not_held(low: int, high: int, held: set[int]) -> None:
    ranges = missing_ranges(low, high, held)
    named = [number for start, stop in ranges for number in range(start, stop)]
    assert named == sorted(set(range(low, high)) - held)


@given(low=numbers, high=numbers, held=st.sets(numbers))
def test_the_ranges_are_the_fewest_possible(low: int, high: int, held: set[int]) -> None:
    ranges = missing_ranges(low, high, held)
    assert all(start < stop for start, stop in ranges)
    assert all(stop < next_start for (_, stop), (next_start, _) in pairwise(ranges)), "neighbours are one range"


def test_a_range_costs_nothing_by_its_length() -> None:
    assert missing_ranges(0, 1 << 60, [7]) == ((0, 7), (8, 1 << 60))


def test_what_is_held_may_come_in_any_order_and_as_keys() -> None:
    assert missing_ranges(3, 9, {7: "b", 4: "a"}) == ((3, 4), (5, 7), (8, 9))
