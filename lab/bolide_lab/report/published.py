"""Owns the meeting of old and new: the figures that others printed beside those measured here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bolide_lab.model import Published, Sample, Scenario
from bolide_lab.report.data import Contestant, display, values
from bolide_lab.stats import Interval, interval

YARDSTICKS = ("nginx", "apache")
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
    scenario: Scenario, measured: Mapping[Contestant, Sequence[Sample]], unit: str
) -> tuple[str, list[Row]]:
    """The yardstick's name ("" if there is none in common), then published and measured rows."""
    if not scenario.published:
        return "", []
    medians = {one: interval(values(samples, scenario.metric)) for one, samples in measured.items()}
    yardstick = _yardstick(scenario.published, measured)
    bases = {
        figure.source: figure.value
        for figure in reversed(scenario.published)
        if _key(figure.server) == yardstick
    }
    found = [
        Row(
            _label(figure.server),
            figure.source,
            _exact(figure.value),
            figure.unit,
            figure.note,
            _ratio(figure.value, bases.get(figure.source)),
        )
        for figure in scenario.published
    ]
    for one, known in medians.items():
        base = medians.get(Contestant(yardstick, one.config)) or medians.get(
            Contestant(yardstick, "best")
        )
        ratio = _ratio(known.median, base.median if base else None)
        found.append(Row(one.label(), HERE, known, unit, "", ratio))
    return display(yardstick) if yardstick else "", found


def same_unit(one: str, two: str) -> bool:
    """Whether two units are the same, however they are written."""
    return _unit(one) == _unit(two)


def _unit(text: str) -> str:
    plain = text.lower().strip()
    return {"requests/s": "req/s", "rps": "req/s", "seconds": "s", "sec": "s"}.get(plain, plain)


def _key(server: str) -> str:
    words = server.lower().split()
    return words[0] if words else ""


def _label(server: str) -> str:
    words = server.split()
    return " ".join([display(words[0].lower()), *words[1:]]) if words else server


def _yardstick(
    published: Sequence[Published], measured: Mapping[Contestant, Sequence[Sample]]
) -> str:
    theirs = {_key(figure.server) for figure in published}
    ours = {one.server for one in measured}
    return next((name for name in YARDSTICKS if name in theirs and name in ours), "")


def _exact(number: float) -> Interval:
    return Interval(number, number, number, 1)


def _ratio(number: float, base: float | None) -> float:
    return number / base if base else math.nan
