"""Back-off of repeated requests, and when a silent node is given up."""

import pytest

from ordercast.protocols.shared.backoff import MAX_FACTOR, MAX_FACTOR_SILENT, Backoff, next_factor

E1, E2, E3 = range(3)


@pytest.mark.parametrize(("factor", "after"), [(1, 2), (2, 4), (4, 8), (8, 8)])
def test_a_factor_doubles_up_to_its_limit_and_starts_over_after_progress(factor: int, after: int) -> None:
    assert next_factor(factor, progress=False, limit=8) == after
    assert next_factor(factor, progress=True, limit=8) == 1


def test_without_a_limit_of_its_own_a_factor_has_the_usual_one() -> None:
    assert [next_factor(factor, progress=False) for factor in (1, 2, 4)] == [2, 4, 4] == [2, MAX_FACTOR, MAX_FACTOR]


def test_intervals_get_longer_without_progress_and_start_over_with_it() -> None:
    backoff = Backoff(2, limit=9)
    assert (backoff.factor, backoff.progress) == (1, False)
    assert [(backoff.advance(), backoff.factor) for _ in range(3)] == [(True, 2), (True, 4), (True, 4)]
    backoff.progress = True
    assert not backoff.advance()
    assert (backoff.factor, backoff.progress) == (1, False)
    assert backoff.advance(), "progress counts once"


def test_a_new_wait_has_the_shortest_interval_and_no_progress() -> None:
    backoff = Backoff(2, limit=9)
    backoff.advance()
    backoff.count_unanswered(0b10)
    backoff.progress = True
    backoff.restart()
    assert (backoff.factor, backoff.progress) == (1, False)
    assert backoff.unanswered == [0, 1], "a node that did not answer still did not"


def test_the_first_node_above_the_limit_is_named() -> None:
    backoff = Backoff(3, limit=1)
    assert backoff.count_unanswered(0) is None
    assert backoff.count_unanswered(0b100) is None
    assert backoff.count_unanswered(0b110) == E3
    assert backoff.unanswered == [0, 1, 2]
    assert backoff.count_unanswered(0b111) == E2
    backoff.unanswered[E2] = 0
    assert backoff.count_unanswered(0b010) is None


def test_its_limit_is_no_state() -> None:
    backoff, other = Backoff(2, limit=1), Backoff(2, limit=5)
    backoff.advance()
    backoff.count_unanswered(0b01)
    other.restore(backoff.snapshot())
    assert (other.factor, other.unanswered, other.limit) == (2, [1, 0], 5)


@pytest.mark.parametrize(("interval", "most"), [(0, 32), (10_000, 32), (1_000_000, 20), (10_000_000, 4)])
def test_intervals_that_are_long_do_not_grow_for_those_that_say_nothing(interval: int, most: int) -> None:
    """At 30 % loss, over a relay, three of four questions remain unanswered."""
    backoff = Backoff(3, limit=0, interval=interval)
    for _ in range(10):
        backoff.advance()
        backoff.count_unanswered(0b110)
    assert backoff.factor == most


def test_with_views_a_node_that_says_nothing_is_asked_less_and_less() -> None:
    """One word of any of those that are waited for, and they are asked as often as others."""
    backoff = Backoff(3, limit=0)

    def factors(count: int) -> list[int]:
        found = []
        for _ in range(count):
            assert backoff.advance()
            assert backoff.count_unanswered(0b110) is None
            found.append(backoff.factor)
        return found

    assert factors(7) == [2, 4, 4, 8, 16, 32, 32]
    assert max(backoff.unanswered) <= 2
    backoff.unanswered[E2] = 0
    assert factors(4) == [MAX_FACTOR_SILENT, MAX_FACTOR, MAX_FACTOR, 2 * MAX_FACTOR]
    backoff.count_unanswered(0)
    assert not backoff.silent, "nobody is waited for"
    backoff.progress = True
    assert not backoff.advance()
    assert backoff.factor == 1
