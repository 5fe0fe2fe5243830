"""Owns the arithmetic of a verdict: medians with intervals, Welch, equivalence, the rule.

Pure functions of numbers; chance comes from a fixed seed, so that a report can be made again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

LEVEL = 0.95
ALPHA = 0.05
MARGIN = 0.05
MINIMUM = 5
RESAMPLES = 9999
SEED = 20190723

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Interval:
    """A median and the bounds of its bootstrap interval at `LEVEL`."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Welch:
    """Welch's t-test of two means; `low` and `high` bound `difference` (a minus b) at `LEVEL`."""

    difference: float
    low: float
    high: float
    t: float
    degrees: float
    p: float


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests: whether the means differ by less than `margin`."""

    margin: float
    p: float
    equivalent: bool


@dataclass(frozen=True)
class Moments:
    """All that is often printed of a sample: enough for Welch and TOST."""

    mean: float
    variance: float
    count: int


class Verdict(Enum):
    """What can be said of A beside B."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "no difference"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Comparison:
    """A beside B: the ratio of their medians with its interval, and the verdict on A."""

    ratio: float
    low: float
    high: float
    verdict: Verdict


RULE = (
    f"A and B are compared by the ratio of their medians with a {LEVEL:.0%} percentile bootstrap "
    f"interval ({RESAMPLES} resamples, fixed seed). A is “better” or “worse” if the whole "
    f"interval lies on one side of 1 and the ratio is at least {MARGIN:.0%} away from 1. There is "
    f"“no difference” if the whole interval lies within ±{MARGIN:.0%} of 1. Everything "
    f"else is “undecided”, and so is any pair with fewer than {MINIMUM} repetitions on a side, "
    "and any two rates that were both limited by the client. Nothing is corrected for the number "
    "of comparisons: of twenty pairs of equal servers one may look different."
)


def median(values: Sequence[float]) -> float:
    """The median; not a number for no values."""
    return float(np.median(np.asarray(values, dtype=np.float64))) if values else math.nan


def interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """The median with its percentile bootstrap interval.

    With five values the interval is the whole range, which holds the true median in 15 of 16 cases.
    """
    middle = median(values)
    if len(values) < 2:
        return Interval(middle, middle, middle, len(values))
    low, high = _quantiles(_medians(values, SEED), level)
    return Interval(middle, low, high, len(values))


def compare(
    a: Sequence[float], b: Sequence[float], higher_is_better: bool, margin: float = MARGIN
) -> Comparison:
    """Applies `RULE` to two samples of positive numbers."""
    below = median(b)
    if not a or not b or not below > 0:
        return Comparison(math.nan, math.nan, math.nan, Verdict.UNDECIDED)
    ratio = median(a) / below
    divisors = _medians(b, SEED + 1)
    if float(divisors.min()) <= 0:
        return Comparison(ratio, 0.0, math.inf, Verdict.UNDECIDED)
    low, high = _quantiles(_medians(a, SEED) / divisors, LEVEL)
    return Comparison(
        ratio, low, high, _judge(ratio, low, high, min(len(a), len(b)), higher_is_better, margin)
    )


def moments(values: Sequence[float]) -> Moments:
    """Mean and unbiased variance of a sample of two or more."""
    array = np.asarray(values, dtype=np.float64)
    return Moments(float(array.mean()), float(array.var(ddof=1)), len(values))


def welch(a: Moments, b: Moments) -> Welch | None:
    """Welch's two-tailed t-test; nothing if a variance cannot be had."""
    error, degrees = _error(a, b)
    if not error > 0:
        return None
    difference = a.mean - b.mean
    t = difference / error
    reach = float(scipy_stats.t.ppf(0.5 + LEVEL / 2, degrees)) * error
    p = 2 * float(scipy_stats.t.sf(abs(t), degrees))
    return Welch(difference, difference - reach, difference + reach, t, degrees, p)


def tost(a: Moments, b: Moments, margin: float | None = None) -> Equivalence | None:
    """Two one-sided Welch tests of equivalence; the default margin is `MARGIN` of B's mean."""
    error, degrees = _error(a, b)
    bound = abs(b.mean) * MARGIN if margin is None else margin
    if not error > 0:
        return None
    difference = a.mean - b.mean
    above = float(scipy_stats.t.sf((difference + bound) / error, degrees))
    under = float(scipy_stats.t.cdf((difference - bound) / error, degrees))
    p = max(above, under)
    return Equivalence(bound, p, p < ALPHA)


def read_tests(different: Welch, equivalent: Equivalence) -> str:
    """What both tests say together, in words."""
    if different.p < ALPHA and equivalent.equivalent:
        return "a difference, and smaller than the margin"
    if different.p < ALPHA:
        return "a difference"
    if equivalent.equivalent:
        return "equivalent within the margin"
    return "neither a difference nor equivalence shown"


def _judge(
    ratio: float, low: float, high: float, count: int, higher_is_better: bool, margin: float
) -> Verdict:
    if count < MINIMUM:
        return Verdict.UNDECIDED
    if 1 - margin <= low and high <= 1 + margin:
        return Verdict.SAME
    if (low > 1 or high < 1) and abs(ratio - 1) >= margin:
        return Verdict.BETTER if (ratio > 1) == higher_is_better else Verdict.WORSE
    return Verdict.UNDECIDED


@lru_cache(maxsize=32)
def _chosen(count: int, seed: int) -> Indices:
    return np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))


def _medians(values: Sequence[float], seed: int) -> Floats:
    return _resampled(tuple(values), seed)


@lru_cache(maxsize=512)
def _resampled(values: tuple[float, ...], seed: int) -> Floats:
    """The medians of the resamples; the middle values are found by a partition of each row."""
    array = np.asarray(values, dtype=np.float64)
    count = len(array)
    below, above = (count - 1) // 2, count // 2
    drawn = np.partition(array[_chosen(count, seed)], sorted({below, above}), axis=1)
    medians: Floats = (drawn[:, below] + drawn[:, above]) / 2
    return medians


def _quantiles(values: Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _error(a: Moments, b: Moments) -> tuple[float, float]:
    """Standard error of the difference and the Welch-Satterthwaite degrees of freedom."""
    if a.count < 2 or b.count < 2:
        return 0.0, 0.0
    one, two = a.variance / a.count, b.variance / b.count
    if one + two <= 0:
        return 0.0, 0.0
    degrees = (one + two) ** 2 / (one**2 / (a.count - 1) + two**2 / (b.count - 1))
    return math.sqrt(one + two), degrees
