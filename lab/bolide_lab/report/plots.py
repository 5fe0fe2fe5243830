"""Owns the drawings: inline SVG whose colours are CSS variables, so that they follow the page.

Numbers in, text out. A server has the same colour in every drawing of a report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from bolide_lab.report.data import SERVERS
from bolide_lab.report.numbers import bounds, decades, plain, short, ticks
from bolide_lab.stats import Interval

COLOURS = 8
ROW = 26
WIDTH = 760
LABELS = 170
VALUES = 96


@dataclass(frozen=True)
class Bar:
    """A row of a bar chart. `colour` is a server's name, or "" for a figure of others."""

    label: str
    interval: Interval
    colour: str
    faint: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Curve:
    """A line through points."""

    label: str
    colour: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Axis:
    """An axis: its title, whether it is logarithmic, and named places where it has no numbers."""

    title: str
    logarithmic: bool = False
    names: tuple[tuple[float, str], ...] = ()
    from_zero: bool = False


def colour(server: str) -> str:
    """The CSS colour of a server."""
    if not server:
        return "var(--others)"
    place = SERVERS.index(server) if server in SERVERS else sum(server.encode())
    return f"var(--s{place % COLOURS + 1})"


def dash(server: str) -> str:
    """A dash pattern for servers that share a colour."""
    known = server in SERVERS
    return ' stroke-dasharray="6 3"' if known and SERVERS.index(server) >= COLOURS else ""


def bars(rows: Sequence[Bar], unit: str, title: str) -> str:
    """Horizontal bars from zero with their intervals as whiskers and the medians in words."""
    rows = [row for row in rows if math.isfinite(row.interval.median)]
    if not rows:
        return ""
    most = max(max(row.interval.median, row.interval.high) for row in rows)
    marks = ticks(0.0, most if most > 0 else 1.0)
    left, right = LABELS, WIDTH - VALUES
    scale = _linear(0.0, marks[-1], left, right)
    height = ROW * len(rows) + 34
    out = [_open(WIDTH, height, title)]
    for mark in marks:
        x = scale(mark)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height - 28}"/>')
        out.append(_text(x, height - 12, plain(mark), "tick", "middle"))
    out.append(_text(WIDTH - 4, height - 12, unit, "tick", "end"))
    for place, row in enumerate(rows):
        out.append(_bar(row, 4 + place * ROW, scale, right, unit))
    return "".join(out) + "</svg>"


def lines(curves: Sequence[Curve], across: Axis, up: Axis, title: str, width: int = WIDTH) -> str:
    """Curves with axes and a legend below."""
    curves = [_usable(curve, up.logarithmic) for curve in curves]
    curves = [curve for curve in curves if curve.points]
    if not curves:
        return ""
    height, left, bottom = 240, 64, 200
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    at_x = [x for x, _ in across.names] or _marks(across, xs)
    at_y = _marks(up, ys)
    to_x = _scale(across, at_x, left, width - 12)
    to_y = _scale(up, at_y, bottom, 22)
    out = [_open(width, height, title), _text(4, 12, up.title, "tick", "start")]
    for mark in at_y:
        y = to_y(mark)
        out.append(f'<line class="grid" x1="{left}" x2="{width - 12}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(_text(left - 6, y + 4, plain(mark), "tick", "end"))
    names = dict(across.names)
    for mark in at_x:
        out.append(_text(to_x(mark), bottom + 18, names.get(mark, plain(mark)), "tick", "middle"))
    out.append(_text(width - 12, height - 4, across.title, "tick", "end"))
    for curve in curves:
        out.append(_curve(curve, to_x, to_y))
    return "".join(out) + "</svg>" + legend(curves)


def legend(curves: Sequence[Curve]) -> str:
    """The names of the curves with their colours."""
    keys = "".join(
        '<span><svg width="22" height="10" aria-hidden="true"><line x1="1" x2="21" y1="5" y2="5"'
        f' style="stroke:{colour(curve.colour)}" stroke-width="2"{dash(curve.colour)}/></svg>'
        f"{escape(curve.label)}</span>"
        for curve in curves
    )
    return f'<p class="legend">{keys}</p>'


def _bar(row: Bar, top: float, scale: Callable[[float], float], right: float, unit: str) -> str:
    known = row.interval
    middle, start, end = top + ROW / 2, scale(0.0), scale(known.median)
    paint = f"fill:{colour(row.colour)}" + (";fill-opacity:.45" if row.faint else "")
    said = f"{row.label}: {short(known.median)} {unit}, {bounds(known.low, known.high)}, "
    out = [
        f"<g><title>{escape(said)}{known.count} samples</title>",
        _text(LABELS - 8, middle + 4, row.label, "label", "end"),
        f'<rect x="{start:.1f}" y="{top + 5:.1f}" width="{max(end - start, 1):.1f}" '
        f'height="{ROW - 10}" rx="2" style="{paint}"/>',
    ]
    if known.high > known.low:
        low, high = scale(known.low), scale(known.high)
        out.append(
            f'<path class="whisker" d="M{low:.1f} {middle:.1f}H{high:.1f}'
            f'M{low:.1f} {middle - 4:.1f}v8M{high:.1f} {middle - 4:.1f}v8"/>'
        )
    out.append(_text(right + 8, middle + 4, short(known.median) + row.mark, "value", "start"))
    return "".join(out) + "</g>"


def _curve(curve: Curve, to_x: Callable[[float], float], to_y: Callable[[float], float]) -> str:
    path = " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in curve.points)
    out = [
        f"<g><title>{escape(curve.label)}</title>",
        f'<polyline fill="none" stroke-width="2" stroke-linejoin="round" points="{path}" '
        f'style="stroke:{colour(curve.colour)}"{dash(curve.colour)}/>',
    ]
    if len(curve.points) <= 12:
        out += [
            f'<circle cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="3.5" '
            f'style="fill:{colour(curve.colour)}"><title>{escape(curve.label)}: {short(y)}</title>'
            "</circle>"
            for x, y in curve.points
        ]
    return "".join(out) + "</g>"


def _usable(curve: Curve, logarithmic: bool) -> Curve:
    points = tuple(
        (x, y)
        for x, y in curve.points
        if math.isfinite(x) and math.isfinite(y) and (y > 0 or not logarithmic)
    )
    return Curve(curve.label, curve.colour, points)


def _marks(axis: Axis, found: Sequence[float]) -> list[float]:
    low, high = min(found), max(found)
    if axis.logarithmic:
        return decades(low, high)
    return ticks(0.0 if axis.from_zero else low, high if high > 0 else 1.0)


def _scale(
    axis: Axis, marks: Sequence[float], start: float, end: float
) -> Callable[[float], float]:
    if not axis.logarithmic:
        return _linear(marks[0], marks[-1], start, end)
    inner = _linear(math.log10(marks[0]), math.log10(marks[-1]), start, end)
    return lambda number: inner(math.log10(number))


def _linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = high - low if high > low else 1.0
    return lambda number: start + (number - low) / span * (end - start)


def _open(width: int, height: int, title: str) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'
    )


def _text(x: float, y: float, text: str, name: str, anchor: str) -> str:
    return (
        f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
