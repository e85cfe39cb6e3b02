"""Estimates with 95 % confidence intervals.

Runs with different seeds are independent; what happens within one run is not. So means are taken over runs, with
Student's t; only where messages themselves are independent of each other is a share of messages a binomial one.
The quantiles are those of `scipy.stats`, which takes three times as long to import as what it calls.
"""

from collections.abc import Sequence
from math import log, sqrt

import numpy as np
from scipy.special import ndtri, stdtrit

from ordercast.evaluation.results import Estimate, Method

CONFIDENCE = 0.95
_TAIL = (1 + CONFIDENCE) / 2


def mean_over_runs(values: Sequence[float]) -> Estimate | None:
    """The mean of one value from each run, with Student's t; None if there is no run."""
    if not values:
        return None
    mean = float(np.mean(values))
    if len(values) == 1:
        return Estimate(mean, mean, mean, 1, Method.SINGLE)
    half = float(stdtrit(len(values) - 1, _TAIL)) * float(np.std(values, ddof=1)) / sqrt(len(values))
    return Estimate(mean, mean - half, mean + half, len(values), Method.STUDENT)


def share(hits: int, of: int) -> Estimate | None:
    """The share of so many independent trials that hit, with Wilson's interval; None if there is no trial."""
    if not of:
        return None
    z2 = float(ndtri(_TAIL)) ** 2
    found = hits / of
    middle = (found + z2 / (2 * of)) / (1 + z2 / of)
    half = sqrt(z2 * (found * (1 - found) / of + z2 / (4 * of * of))) / (1 + z2 / of)
    low, high = max(0.0, min(found, middle - half)), min(1.0, max(found, middle + half))
    return Estimate(found, low, high, of, Method.WILSON)


def quotient(upper: Estimate, lower: Estimate) -> Estimate:
    """One estimate divided by an independent other; relative errors add as squares."""
    value = upper.value / lower.value
    relative = sqrt(_relative(upper) ** 2 + _relative(lower) ** 2)
    half = abs(value) * relative
    return Estimate(value, value - half, value + half, min(upper.samples, lower.samples), upper.method)


def _relative(estimate: Estimate) -> float:
    return (estimate.high - estimate.low) / 2 / abs(estimate.value) if estimate.value else 0.0


def exponent(xs: Sequence[float], ys: Sequence[float]) -> Estimate:
    """The c of y ~ x^c: the slope of a straight line through the logarithms, by least squares."""
    across, up = np.array([log(x) for x in xs]), np.array([log(y) for y in ys])
    centred = across - across.mean()
    slope = float((centred * up).sum() / (centred**2).sum())
    if len(xs) < 3:
        return Estimate(slope, slope, slope, len(xs), Method.SINGLE)
    residual = up - up.mean() - slope * centred
    error = sqrt(float((residual**2).sum()) / (len(xs) - 2) / float((centred**2).sum()))
    half = float(stdtrit(len(xs) - 2, _TAIL)) * error
    return Estimate(slope, slope - half, slope + half, len(xs), Method.STUDENT)
