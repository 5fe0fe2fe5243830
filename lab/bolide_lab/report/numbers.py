"""Owns how a number is printed: few digits, a thin space between thousands, no false exactness."""

from __future__ import annotations

import math

THIN = "\u2009"
NONE = "–"


def digits(number: float, decimals: int) -> str:
    """A number with so many decimals and thin spaces between its thousands."""
    if not math.isfinite(number):
        return NONE
    return f"{number:,.{decimals}f}".replace(",", THIN)


def short(number: float) -> str:
    """About three digits that mean something: 12 345, 123, 12.3, 1.23, 0.123."""
    size = abs(number)
    if not math.isfinite(number):
        return NONE
    if size == 0 or size >= 100:
        return digits(number, 0)
    if size >= 10:
        return digits(number, 1)
    return digits(number, 2 if size >= 1 else 3)


def plain(mark: float) -> str:
    """A round number of an axis, without zeros at its end."""
    if mark >= 10_000_000:
        return f"{mark / 1_000_000:g}\u2009M"
    return digits(mark, 0) if float(mark).is_integer() else f"{mark:g}"


def bounds(low: float, high: float) -> str:
    """An interval."""
    return (
        NONE if not (math.isfinite(low) and math.isfinite(high)) else f"{short(low)}–{short(high)}"
    )


def chance(p: float) -> str:
    """A p-value."""
    if not math.isfinite(p):
        return NONE
    return f"{p:.1e}" if p < 1e-3 else f"{p:.3f}"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about `count` of them."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low, low + 1]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Marks of a logarithmic axis: the decades about an interval of positive numbers, or 1-2-5."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    if last - first > 2:
        return [10.0**power for power in range(first, last + 1)]
    marks = [10.0**power * factor for power in range(first, last + 1) for factor in (1, 2, 5)]
    under = max((mark for mark in marks if mark <= low), default=marks[0])
    over = min((mark for mark in marks if mark >= high and mark > under), default=marks[-1])
    return [mark for mark in marks if under <= mark <= over]
