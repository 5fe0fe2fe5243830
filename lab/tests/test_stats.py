"""The arithmetic against published figures, scipy and hand-made samples."""

import math

import pytest
from scipy import stats as scipy_stats

from bolide_lab import stats
from bolide_lab.stats import Moments, Verdict

ONE = [10.0, 10.2, 9.9, 10.1, 10.0, 9.8, 10.3]
TWO = [12.0, 12.1, 11.9, 12.2, 12.0, 12.3, 11.8]


def test_the_interval_holds_its_median_and_stays_in_the_range() -> None:
    found = stats.interval(ONE)
    assert found.median == 10.0 and found.count == 7
    assert min(ONE) <= found.low <= found.median <= found.high <= max(ONE)


def test_the_interval_is_the_same_each_time() -> None:
    assert stats.interval(ONE) == stats.interval(ONE)


def test_five_values_give_their_whole_range() -> None:
    found = stats.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.high) == (1.0, 5.0)


def test_one_value_and_none_do_not_fail() -> None:
    assert stats.interval([3.0]) == stats.Interval(3.0, 3.0, 3.0, 1)
    assert math.isnan(stats.interval([]).median)


def test_more_requests_are_better_and_more_seconds_are_worse() -> None:
    assert stats.compare(TWO, ONE, higher_is_better=True).verdict is Verdict.BETTER
    assert stats.compare(TWO, ONE, higher_is_better=False).verdict is Verdict.WORSE
    assert stats.compare(ONE, TWO, higher_is_better=True).verdict is Verdict.WORSE


def test_a_tight_pair_shows_no_difference() -> None:
    again = [value * 1.001 for value in ONE]
    assert stats.compare(again, ONE, True).verdict is Verdict.SAME


def test_noise_is_not_called_equality() -> None:
    wide = [5.0, 8.0, 10.0, 13.0, 16.0]
    assert stats.compare(wide, list(reversed(wide)), True).verdict is Verdict.UNDECIDED


def test_few_repetitions_decide_nothing() -> None:
    assert stats.compare(TWO[:4], ONE[:4], True).verdict is Verdict.UNDECIDED


def test_a_clear_but_small_difference_is_no_difference() -> None:
    small = [value * 1.02 for value in [10.0, 10.001, 10.002, 9.999, 9.998]]
    assert stats.compare(small, [10.0, 10.001, 10.002, 9.999, 9.998], True).verdict is Verdict.SAME


def test_zero_and_empty_samples_are_undecided() -> None:
    assert stats.compare([], ONE, True).verdict is Verdict.UNDECIDED
    assert stats.compare(ONE, [0.0] * 5, True).verdict is Verdict.UNDECIDED
    assert stats.compare(ONE, [0.0, 0.0, 1.0, 1.0, 1.0], True).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("a", "b", "t", "p"),
    [
        (Moments(222.43, 108.19, 30), Moments(223.867, 299.22, 30), -0.390, 0.698),
        (Moments(227.67, 120.44, 30), Moments(286.57, 757.77, 30), -10.89, 3.07e-13),
        (Moments(222.43, 108.19, 30), Moments(227.67, 120.44, 30), -1.898, 0.0627),
    ],
)
def test_welch_of_the_published_curl_figures(a: Moments, b: Moments, t: float, p: float) -> None:
    found = stats.welch(a, b)
    assert found is not None
    assert found.t == pytest.approx(t, abs=5e-3)
    assert found.p == pytest.approx(p, rel=5e-3)
    assert found.low < found.difference < found.high


def test_welch_agrees_with_scipy() -> None:
    found = stats.welch(stats.moments(ONE), stats.moments(TWO))
    theirs = scipy_stats.ttest_ind(ONE, TWO, equal_var=False)
    assert found is not None
    assert found.t == pytest.approx(float(theirs.statistic))
    assert found.p == pytest.approx(float(theirs.pvalue))
    bounds = theirs.confidence_interval(stats.LEVEL)
    assert (found.low, found.high) == pytest.approx((float(bounds.low), float(bounds.high)))


def test_the_first_curl_scenario_is_equivalent_within_five_percent_but_not_within_two() -> None:
    a, b = Moments(222.43, 108.19, 30), Moments(223.867, 299.22, 30)
    wide, narrow = stats.tost(a, b), stats.tost(a, b, margin=4.5)
    assert wide is not None and wide.equivalent
    assert narrow is not None and not narrow.equivalent
    different = stats.welch(a, b)
    assert different is not None
    assert stats.read_tests(different, wide) == "equivalent within the margin"
    assert stats.read_tests(different, narrow) == "neither a difference nor equivalence shown"


def test_a_real_difference_is_not_equivalent() -> None:
    a, b = stats.moments(ONE), stats.moments(TWO)
    different, equivalent = stats.welch(a, b), stats.tost(a, b)
    assert different is not None and equivalent is not None
    assert stats.read_tests(different, equivalent) == "a difference"


def test_constant_samples_have_no_test() -> None:
    same = stats.moments([1.0, 1.0, 1.0])
    assert stats.welch(same, same) is None and stats.tost(same, same) is None
