"""The spread of timers: within its bounds, repeatable, and no two nodes in step."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.protocols.shared.jitter import spread

T = 100_000
NODES, STAMPS = range(32), range(200)


@given(duration=st.integers(1, 10**12), me=st.integers(0, 1023), stamp=st.integers(0, 1 << 40))
def test_a_duration_is_spread_from_t_up_to_below_twice_t(duration: int, me: int, stamp: int) -> None:
    assert duration <= spread(duration, me, stamp) < 2 * duration


def test_a_draw_can_be_repeated_anywhere() -> None:
    """They are no chance: every trace depends on them."""
    drawn = [spread(T, me, stamp) for me in range(2) for stamp in range(3)]
    assert drawn == [100000, 196174, 156788, 178126, 181811, 148799]


def test_no_two_nodes_draw_in_step() -> None:
    for one, other in combinations(NODES, 2):
        equal = sum(spread(T, one, stamp) == spread(T, other, stamp) for stamp in STAMPS)
        assert equal <= 2, f"nodes {one} and {other} run equally long at {equal} of {len(STAMPS)} stamps"


def test_a_node_draws_anew_after_each_transmission() -> None:
    for me in NODES:
        assert len({spread(T, me, stamp) for stamp in STAMPS}) > 190


def test_draws_use_the_whole_spread() -> None:
    tenths = [0] * 10
    for me in NODES:
        for stamp in STAMPS:
            tenths[(spread(T, me, stamp) - T) * 10 // T] += 1
    expected = len(NODES) * len(STAMPS) / 10
    assert all(0.8 * expected < count < 1.2 * expected for count in tenths)
