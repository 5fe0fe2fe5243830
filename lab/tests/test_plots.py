"""Numbers as they are printed, and drawings."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from bolide_lab.report.numbers import bounds, chance, decades, plain, short, ticks
from bolide_lab.report.plots import Axis, Bar, Curve, bars, colour, lines
from bolide_lab.stats import Interval


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12345.6, "12\u2009346"),
        (123.4, "123"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0.1234, "0.123"),
        (0, "0"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_numbers_have_about_three_digits(number: float, text: str) -> None:
    assert short(number) == text


def test_bounds_and_chances() -> None:
    assert bounds(1.0, 2.0) == "1.00–2.00" and bounds(math.nan, 2.0) == "–"
    assert chance(0.698) == "0.698" and chance(3.07e-13) == "3.1e-13"


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 7635.0), (0.0, 3e-4), (0.0, 1e9)])
def test_ticks_hold_their_range_and_are_few(low: float, high: float) -> None:
    found = ticks(low, high)
    assert found[0] <= low and found[-1] >= high * 0.999 and 2 <= len(found) <= 8


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (3.0, 40.0), (0.5, 9e6)])
def test_decades_hold_their_range(low: float, high: float) -> None:
    found = decades(low, high)
    assert found[0] <= low and found[-1] >= high and len(found) >= 2


def test_bars_are_xml_and_say_their_numbers() -> None:
    row = Bar("a <b>", Interval(10.0, 9.0, 11.0, 5), "nginx", mark="*")
    drawn = bars([row, Bar("none", Interval(math.nan, 0, 0, 0), "")], "req/s", "t")
    root = ElementTree.fromstring(drawn)
    assert len(root.findall(".//rect")) == 1 and "10.0*" in drawn
    assert bars([], "req/s", "t") == ""


def test_a_bar_of_zero_is_drawn() -> None:
    assert "<rect" in bars([Bar("a", Interval(0.0, 0.0, 0.0, 5), "nginx")], "", "t")


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show() -> None:
    curve = Curve("a", "nginx", ((0.0, 0.0), (1.0, 10.0), (2.0, math.nan)))
    drawn = lines([curve], Axis("x"), Axis("y", logarithmic=True), "t")
    assert drawn.count("<circle") == 1
    assert lines([Curve("a", "nginx", ())], Axis("x"), Axis("y"), "t") == ""


def test_a_server_keeps_its_colour_and_others_have_one() -> None:
    assert colour("nginx") == colour("nginx") != colour("bolide")
    assert colour("") == "var(--others)" and colour("hiawatha").startswith("var(--s")


def test_marks_of_an_axis_have_no_idle_zeros() -> None:
    assert [plain(mark) for mark in (0.0, 0.05, 40.0, 1500.0, 2.5, 2e7)] == [
        "0",
        "0.05",
        "40",
        "1\u2009500",
        "2.5",
        "20\u2009M",
    ]
