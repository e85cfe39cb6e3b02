"""The window against a model that remembers every counter."""

from hypothesis import given
from hypothesis import strategies as st

from ordercast.wire.replay_window import WINDOW, ReplayWindow, ReplayWindows

LAST = 2**64 - 1


class Remembering:
    """Never forgets, and knows the rule: new, and not as far behind as the window is wide."""

    def __init__(self) -> None:
        self.taken: set[int] = set()

    def is_new(self, counter: int) -> bool:
        return counter not in self.taken and counter > max(self.taken, default=-1) - WINDOW


@st.composite
def counters(draw: st.DrawFn) -> list[int]:
    """Counters at random: a step or two, back and forth within the window and over its edges, and far jumps."""
    at = draw(st.sampled_from([0, 5, WINDOW, 2**32, LAST - 10_000]))
    found = []
    near = st.integers(-3, 3)
    edge = st.builds(int.__add__, st.sampled_from([-WINDOW, WINDOW, -2 * WINDOW, 2 * WINDOW]), near)
    for step in draw(st.lists(near | edge | st.integers(-WINDOW, WINDOW), max_size=60)):
        at = min(max(at + step, 0), LAST)
        found.append(at)
    return found


@given(counters())
def test_the_window_agrees_with_one_that_remembers_all(wanted: list[int]) -> None:
    window, model = ReplayWindow(), Remembering()
    for counter in wanted:
        new = window.is_new(counter)
        assert new == model.is_new(counter), counter
        if new:
            window.take(counter)
            model.taken.add(counter)
        assert window._taken.bit_length() <= WINDOW


def test_the_edge_of_the_window() -> None:
    window = ReplayWindow()
    window.take(10_000)
    assert window.is_new(10_000 - WINDOW + 1)
    assert not window.is_new(10_000 - WINDOW)
    window.take(10_000 - WINDOW + 1)
    assert not window.is_new(10_000 - WINDOW + 1)


def test_the_highest_counter_costs_no_memory() -> None:
    window = ReplayWindow()
    window.take(LAST)
    assert not window.is_new(LAST)
    assert window.is_new(LAST - 1)
    assert window._taken.bit_length() <= WINDOW


def test_asking_takes_nothing() -> None:
    window = ReplayWindow()
    assert window.is_new(7)
    assert window.is_new(7)


def test_what_came_late_in_the_view_before_is_not_received_twice() -> None:
    windows = ReplayWindows()
    windows.hold(1)
    windows.hold(2)
    windows.take(1, 3, None, 5)
    window = windows.find(1, 3)
    assert window is not None
    assert not window.is_new(5)
