"""Owns the drawings: inline SVG whose colours are CSS variables, so that they follow the page.

Numbers in, text out. A server has the same colour in every drawing of a report. Across, places are
percentages of what the page leaves beside the labels, so that words keep their size on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from bolide_lab.report.data import SERVERS
from bolide_lab.report.numbers import bounds, decades, plain, short, ticks
from bolide_lab.stats import Interval

COLOURS = 11
ROW = 26
WIDTH = 760
HEIGHT = 240
LABELS = 170
LABEL_LENGTH_MAX = 25
VALUES = 64
MARKS = 64
EDGE = 20


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
    """A dash pattern for a server that may share its colour with another."""
    return "" if server in SERVERS else ' stroke-dasharray="6 3"'


def bars(rows: Sequence[Bar], unit: str, title: str) -> str:
    """Horizontal bars from zero with their intervals as whiskers and the medians in words."""
    rows = [row for row in rows if math.isfinite(row.interval.median)]
    if not rows:
        return ""
    most = max(max(row.interval.median, row.interval.high) for row in rows)
    marks = ticks(0.0, most if most > 0 else 1.0)
    scale = _linear(0.0, marks[-1], 0, 100)
    height = ROW * len(rows) + 34
    out = [_open(WIDTH, height, title, LABELS, VALUES)]
    for mark in marks:
        x = scale(mark)
        out.append(f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="4" y2="{height - 28}"/>')
        name = "tick" if mark in (marks[0], marks[-1]) else "tick inner"
        out.append(_text(f"{x:.2f}%", height - 12, plain(mark), name, "middle"))
    out.append(_text("100%", height - 12, unit, "tick", "end", VALUES - 2))
    for place, row in enumerate(rows):
        out.append(_bar(row, 4 + place * ROW, scale, unit))
    return "".join(out) + "</svg></div>"


def lines(curves: Sequence[Curve], across: Axis, up: Axis, title: str, width: int = WIDTH) -> str:
    """Curves with axes and a legend below; `width` is the most that they take."""
    curves = [_usable(curve, up.logarithmic) for curve in curves]
    curves = [curve for curve in curves if curve.points]
    if not curves:
        return ""
    bottom = HEIGHT - 40
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    at_x = [x for x, _ in across.names] or _marks(across, xs)
    at_y = _marks(up, ys)
    to_x = _scale(across, at_x, 0, 100)
    to_y = _scale(up, at_y, bottom, 22)
    out = [
        _open(width, HEIGHT, title, MARKS, EDGE),
        _text(f"{4 - MARKS}", 12, up.title, "tick", "start"),
    ]
    for mark in at_y:
        y = to_y(mark)
        out.append(f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(_text("-6", y + 4, plain(mark), "tick", "end"))
    names = dict(across.names)
    for mark in at_x:
        x = f"{to_x(mark):.2f}%"
        name = "tick" if names or mark in (at_x[0], at_x[-1]) else "tick inner"
        out.append(_text(x, bottom + 18, names.get(mark, plain(mark)), name, "middle"))
    out.append(_text("100%", HEIGHT - 4, across.title, "tick", "end"))
    for curve in curves:
        out.append(_curve(curve, to_x, to_y))
    return "".join(out) + "</svg></div>" + legend(curves)


def legend(curves: Sequence[Curve]) -> str:
    """The names of the curves with their colours."""
    keys = "".join(
        '<span><svg width="22" height="10" aria-hidden="true"><line x1="1" x2="21" y1="5" y2="5"'
        f' style="stroke:{colour(curve.colour)}" stroke-width="2"{dash(curve.colour)}/></svg>'
        f"{escape(curve.label)}</span>"
        for curve in curves
    )
    return f'<p class="legend">{keys}</p>'


def _bar(row: Bar, top: float, scale: Callable[[float], float], unit: str) -> str:
    known = row.interval
    middle = top + ROW / 2
    paint = f"fill:{colour(row.colour)}" + (";fill-opacity:.45" if row.faint else "")
    said = f"{row.label}: {short(known.median)} {unit}, {bounds(known.low, known.high)}, "
    out = [
        f"<g><title>{escape(said)}{known.count} samples</title>",
        _text("-8", middle + 4, row.label, "label", "end"),
        f'<rect x="0" y="{top + 5:.1f}" width="{scale(known.median):.2f}%" '
        f'height="{ROW - 10}" style="{paint}"/>',
    ]
    if known.high > known.low:
        low, high = f"{scale(known.low):.2f}%", f"{scale(known.high):.2f}%"
        for one, two, reach in ((low, high, 0), (low, low, 4), (high, high, 4)):
            out.append(
                f'<line class="whisker" x1="{one}" x2="{two}" '
                f'y1="{middle - reach:.1f}" y2="{middle + reach:.1f}"/>'
            )
    out.append(_text("100%", middle + 4, short(known.median) + row.mark, "value", "start", 8))
    return "".join(out) + "</g>"


def _curve(curve: Curve, to_x: Callable[[float], float], to_y: Callable[[float], float]) -> str:
    """The line is stretched to the width that there is, its dots are not."""
    path = " ".join(f"{to_x(x) * 10:.1f},{to_y(y):.1f}" for x, y in curve.points)
    out = [
        f"<g><title>{escape(curve.label)}</title>",
        f'<svg viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none" width="100%" '
        f'height="{HEIGHT}" overflow="visible"><polyline fill="none" stroke-width="2" '
        f'stroke-linejoin="round" vector-effect="non-scaling-stroke" points="{path}" '
        f'style="stroke:{colour(curve.colour)}"{dash(curve.colour)}/></svg>',
    ]
    if len(curve.points) <= 12:
        out += [
            f'<circle cx="{to_x(x):.2f}%" cy="{to_y(y):.1f}" r="3.5" '
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


def _open(width: int, height: int, title: str, left: int, right: int) -> str:
    """A drawing whose words may reach into the margins left and right of it."""
    return (
        f'<div class="plot" style="max-width:{width}px;padding:0 {right}px 0 {left}px">'
        f'<svg width="100%" height="{height}" overflow="visible" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>'
    )


def _text(x: str, y: float, text: str, name: str, anchor: str, shift: int = 0) -> str:
    """Words at a place; a long label is squeezed into the room for labels."""
    more = f' dx="{shift}"' if shift else ""
    if name == "label" and len(text) > LABEL_LENGTH_MAX:
        more += f' textLength="{LABELS - 12}" lengthAdjust="spacingAndGlyphs"'
    return (
        f'<text class="{name}" x="{x}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}'
        "</text>"
    )
