"""Chance that can be repeated: streams of their own, and draws that no C library has a say in."""

from decimal import Decimal, localcontext
from itertools import pairwise
from random import Random

import pytest

from ordercast.simulator.randomness import exponential, stream


class Drawn(Random):
    """Chance that draws what it is told."""

    def __init__(self, bits: int) -> None:
        super().__init__(0)
        self.bits = bits

    def getrandbits(self, k: int, /) -> int:
        assert self.bits < 1 << k
        return self.bits


def logarithm(value: Decimal) -> Decimal:
    """ln, by the series 2·artanh((v−1)/(v+1)): slow, and shares nothing with the code under test."""
    with localcontext() as context:
        context.prec = 40
        halvings = 0
        while value < Decimal("0.5"):
            value *= 2
            halvings += 1

        def near_one(near: Decimal) -> Decimal:
            ratio = (near - 1) / (near + 1)
            return 2 * sum((ratio**power / power for power in range(1, 80, 2)), Decimal(0))

        return near_one(value) - halvings * near_one(Decimal(2))


def test_the_logarithm_to_compare_with_is_right() -> None:
    assert logarithm(Decimal(1)) == 0
    assert abs(logarithm(Decimal(1) / 2) + Decimal("0.69314718055994530941723212145817656808")) < Decimal("1e-30")


@pytest.mark.parametrize("mean", [1 << 20, 1_000_000_000])
def test_each_draw_is_the_exact_logarithm_rounded_down(mean: int) -> None:
    """All 1,024 values that a draw can take, against a logarithm computed apart, in units of 2⁻²⁰ of the mean."""
    for bits in range(1024):
        middle = 1 - (Decimal(bits) + Decimal("0.5")) / 1024
        fixed_point = int(-logarithm(middle) * (1 << 20))
        assert exponential(Drawn(bits), mean) == mean * fixed_point // (1 << 20)


@pytest.mark.parametrize("mean", [0, 1_000, 200_000, 1_000_000_000])
def test_the_mean_of_all_draws_is_the_mean(mean: int) -> None:
    """Each of the 1,024 values is equally likely, so their average is the mean itself: within 0.1 % and rounding."""
    average = sum(exponential(Drawn(bits), mean) for bits in range(1024)) / 1024
    assert abs(average - mean) <= mean / 1000 + 1


def test_the_draws_are_spread_as_an_exponential_is() -> None:
    """Of 100,000 draws a share of e⁻ᵏ exceeds k times the mean: within 0.6 %, four deviations and more."""
    chance = stream(1, "draws")
    draws = [exponential(chance, 1_000_000) for _ in range(100_000)]
    for times, share in ((1, 0.367879), (2, 0.135335), (3, 0.049787)):
        assert abs(sum(draw > times * 1_000_000 for draw in draws) / len(draws) - share) < 0.006
    assert abs(sum(draws) / len(draws) - 1_000_000) < 13_000


def test_draws_rise_with_the_bits() -> None:
    values = [exponential(Drawn(bits), 1_000_000) for bits in range(1024)]
    assert all(low < high for low, high in pairwise(values))


def test_each_use_of_chance_has_a_stream_of_its_own() -> None:
    first = [stream(5, "loss").random() for _ in range(2)]
    assert first[0] == first[1]
    others = [stream(6, "loss"), stream(5, "channel"), stream(51, ""), stream(5, "1/loss")]
    assert len({first[0], *(other.random() for other in others)}) == 1 + len(others)
