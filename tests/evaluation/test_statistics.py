"""Estimates and their intervals, against values from tables and by hand."""

import random

import pytest

from ordercast.evaluation.results import Estimate, Method
from ordercast.evaluation.statistics import exponent, mean_over_runs, quotient, share


def test_a_mean_with_students_t() -> None:
    found = mean_over_runs([2, 4, 6])  # deviation 2, t for two degrees of freedom 4.3027
    assert found is not None
    assert found.value == 4
    assert found.high - 4 == pytest.approx(4.3027 * 2 / 3**0.5, rel=1e-4)
    assert 4 - found.low == pytest.approx(found.high - 4)
    assert (found.samples, found.method) == (3, Method.STUDENT)


def test_one_run_has_no_interval_and_none_no_value() -> None:
    assert mean_over_runs([]) is None
    assert share(0, 0) is None
    found = mean_over_runs([5.0])
    assert found == Estimate(5.0, 5.0, 5.0, 1, Method.SINGLE)


def test_wilsons_interval_by_hand() -> None:
    found = share(0, 10)  # z² / (n + z²) with z = 1.96
    assert found is not None
    assert found.value == found.low == 0
    assert found.high == pytest.approx(3.8415 / 13.8415, rel=1e-4)
    half = share(5, 10)
    assert half is not None
    assert half.high - 0.5 == pytest.approx(0.5 - half.low)
    assert half.low == pytest.approx(0.2366, abs=1e-4)


@pytest.mark.parametrize("kind", ["mean", "share"])
def test_intervals_cover_the_truth_about_as_often_as_they_say(kind: str) -> None:
    chance, covered, trials = random.Random(7), 0, 400
    for _ in range(trials):
        if kind == "mean":
            found, truth = mean_over_runs([chance.gauss(10, 3) for _ in range(6)]), 10.0
        else:
            found, truth = share(sum(chance.random() < 0.1 for _ in range(200)), 200), 0.1
        assert found is not None
        covered += found.low <= truth <= found.high
    assert 0.92 <= covered / trials <= 0.98


def test_relative_errors_of_a_quotient_add_as_squares() -> None:
    upper = Estimate(10, 7, 13, 5, Method.STUDENT)
    lower = Estimate(5, 3, 7, 4, Method.STUDENT)
    found = quotient(upper, lower)
    assert found.value == 2
    assert found.high - 2 == pytest.approx(2 * 0.5)  # 0.3² + 0.4² is 0.5²


def test_the_exponent_of_a_power_and_of_noise() -> None:
    found = exponent([2, 4, 8, 16], [3 * x**2 for x in (2, 4, 8, 16)])
    assert found.value == pytest.approx(2)
    assert found.high - found.low < 1e-6
    noisy = exponent([1, 2, 4, 8], [1, 2.4, 3.6, 8.8])
    assert noisy.low < 1 < noisy.high
