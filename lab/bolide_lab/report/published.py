"""Owns the meeting of old and new: the figures that others printed beside those measured here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bolide_lab.model import Published, Sample, Scenario
from bolide_lab.report.data import Contestant, display, values
from bolide_lab.stats import Interval, interval

YARDSTICKS = ("nginx", "apache")
PROTOCOLS = {"h1": "HTTP/1", "h2": "HTTP/2", "h3": "HTTP/3"}
HERE = "measured here"


@dataclass(frozen=True)
class Row:
    """A figure, published or measured, and its ratio to the yardstick's from the same source."""

    label: str
    source: str
    interval: Interval
    unit: str
    note: str
    relative: float


def rows(
    scenario: Scenario, measured: Mapping[Contestant, Sequence[Sample]], unit: str, arm: str = ""
) -> tuple[str, list[Row]]:
    """The yardstick's name ("" if there is none in common), then published and measured rows.

    With an `arm` ("h3"), figures whose source names another protocol are left out.
    """
    printed = [figure for figure in scenario.published if _concerns(figure.source, arm)]
    if not printed:
        return "", []
    medians = {one: interval(values(samples, scenario.metric)) for one, samples in measured.items()}
    yardstick = _yardstick(printed, measured)
    bases = {
        figure.source: figure.value
        for figure in reversed(printed)
        if _key(figure.server) == yardstick
    }
    found = [
        Row(
            _label(figure.server),
            figure.source,
            _exact(figure.value),
            "req/s" if _unit(figure.unit)[0] == "rate" else figure.unit,
            figure.note,
            _ratio(figure.value, bases.get(figure.source)),
        )
        for figure in printed
    ]
    for one, known in medians.items():
        base = medians.get(Contestant(yardstick, one.config)) or medians.get(
            Contestant(yardstick, "best")
        )
        ratio = _ratio(known.median, base.median if base else None)
        found.append(Row(one.label(), HERE, known, unit, "", ratio))
    return display(yardstick) if yardstick else "", found


def convert(figure: Interval, unit: str, wanted: str) -> Interval | None:
    """A figure in another unit of the same kind; nothing if the kinds differ."""
    (kind, size), (other, scale) = _unit(unit), _unit(wanted)
    if kind != other:
        return None
    factor = size / scale
    return Interval(figure.median * factor, figure.low * factor, figure.high * factor, figure.count)


def _unit(text: str) -> tuple[str, float]:
    plain = text.strip().lower()
    rates = ("requests/s", "req/s", "rps")
    times = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6}
    if plain in rates:
        return "rate", 1.0
    return ("time", times[plain]) if plain in times else (plain, 1.0)


def _concerns(source: str, arm: str) -> bool:
    named = {name for name, word in PROTOCOLS.items() if word in source}
    return not arm or not named or arm in named


def _key(server: str) -> str:
    words = server.lower().split()
    return words[0] if words else ""


def _label(server: str) -> str:
    words = server.split()
    return " ".join([display(words[0].lower()), *words[1:]]) if words else server


def _yardstick(
    printed: Sequence[Published], measured: Mapping[Contestant, Sequence[Sample]]
) -> str:
    theirs = {_key(figure.server) for figure in printed}
    ours = {one.server for one in measured}
    return next((name for name in YARDSTICKS if name in theirs and name in ours), "")


def _exact(number: float) -> Interval:
    return Interval(number, number, number, 1)


def _ratio(number: float, base: float | None) -> float:
    return number / base if base else math.nan
