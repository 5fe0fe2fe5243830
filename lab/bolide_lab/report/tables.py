"""Owns the tables that every form of a report shares: medians beside the best, places, tests.

Numbers and words only; how they look is decided by `html` and `markdown`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from bolide_lab.model import Sample
from bolide_lab.report.data import Contestant, Run, arm_of, describe, stem, value, values
from bolide_lab.stats import (
    MINIMUM,
    Comparison,
    Equivalence,
    Interval,
    Verdict,
    Welch,
    compare,
    interval,
    moments,
    tost,
    welch,
)

CPU = "server_cpu_us_per_request"
RATES = ("requests_per_s", "seconds")
SATURATED = "*"
FAILED = "†"
UP, DOWN = "↑", "↓"
# Fewer points over time are no picture.
SERIES_MIN = 8
PERCENTILES = {
    "latency_us_p50": "p50",
    "latency_us_p90": "p90",
    "latency_us_p99": "p99",
    "latency_us_p999": "p99.9",
}
BOLD = (
    "Bold: the best, and what does not clearly differ from it; nothing is bold where a server "
    f"has fewer than {MINIMUM} repetitions."
)
ARROWS = f"{UP} more is better, {DOWN} less is better."
MARKS = (
    f"{SATURATED} the client was the limit in at least one repetition: "
    "its rate says little of the server. "
    f"{FAILED} some requests failed."
)


@dataclass(frozen=True)
class Cell:
    """A contestant's median, and what can be said of it beside the best; None for the best."""

    interval: Interval
    beside_best: Comparison | None
    marks: str

    def leads(self) -> bool:
        """Whether it is the best, or nothing tells it from the best."""
        return self.beside_best is None or self.beside_best.verdict is not Verdict.WORSE


@dataclass(frozen=True)
class Line:
    """One scenario in one metric."""

    scenario: str
    title: str
    metric: str
    unit: str
    cells: dict[Contestant, Cell]
    higher_is_better: bool

    def decided(self) -> bool:
        """Whether there are repetitions enough to tell anything apart."""
        return all(cell.interval.count >= MINIMUM for cell in self.cells.values())

    def measure(self) -> str:
        """The unit, the percentile if it is one, and an arrow to where it is better."""
        percentile = PERCENTILES.get(self.metric, "")
        unit = self.unit or describe(self.metric).label
        return f"{unit} {percentile} {UP if self.higher_is_better else DOWN}".replace("  ", " ")


@dataclass
class Places:
    """How a server did over all scenarios, by the rule."""

    best: list[str] = field(default_factory=list)
    even: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Test:
    """Welch and TOST of two series of times."""

    label: str
    a: str
    b: str
    counts: tuple[int, int]
    means: tuple[float, float]
    different: Welch
    equivalent: Equivalence
    unit: str


def line(run: Run, scenario: str, metric: str | None = None, variants: bool = False) -> Line | None:
    """The contestants of a scenario beside the best of them; nothing if none has the metric."""
    own, higher = run.metric(scenario)
    chosen = metric or own
    if chosen != own:
        higher = describe(chosen).higher_is_better
    found = {
        one: (values(samples, chosen), marks(samples))
        for one, samples in run.of(scenario).items()
        if variants or one.config == "best"
    }
    found = {one: pair for one, pair in found.items() if pair[0]}
    if not found:
        return None
    known = {one: interval(numbers) for one, (numbers, _) in found.items()}
    pick = max if higher else min
    best = pick(known, key=lambda one: known[one].median)
    cells = {}
    for one, (numbers, said) in found.items():
        beside = None if one == best else compare(numbers, found[best][0], higher)
        if beside and chosen in RATES and SATURATED in said and SATURATED in found[best][1]:
            beside = replace(beside, verdict=Verdict.UNDECIDED)
        cells[one] = Cell(known[one], beside, said)
    return Line(scenario, run.title(scenario), chosen, describe(chosen).unit, cells, higher)


def lines(run: Run, metric: str | None = None) -> list[Line]:
    """A line for each scenario that has one."""
    found = [line(run, scenario, metric) for scenario in run.ids()]
    return [one for one in found if one is not None]


def marks(samples: Sequence[Sample]) -> str:
    """Signs for a saturated client and for failures."""
    said = SATURATED if any(sample.saturated for sample in samples) else ""
    return said + (FAILED if any(sample.failed for sample in samples) else "")


def columns(found: Sequence[Line]) -> list[Contestant]:
    """All contestants of some lines, in their order."""
    return sorted({one for row in found for one in row.cells}, key=Contestant.order)


def places(found: Sequence[Line]) -> dict[Contestant, Places]:
    """Per contestant: where it is best, where it is even with the best, where it is behind.

    Scenarios of one server, or with too few repetitions to tell anything, do not count.
    """
    out = {one: Places() for one in columns(found)}
    for row in found:
        if len(row.cells) < 2 or not row.decided():
            continue
        for one, cell in row.cells.items():
            if cell.beside_best is None:
                out[one].best.append(row.scenario)
            elif cell.leads():
                out[one].even.append(row.scenario)
            else:
                out[one].behind.append(row.scenario)
    return out


def tests(run: Run) -> list[Test]:
    """Welch and TOST for the curl scenarios: per server, two arms of one, or one arm in two."""
    times = {name: _times(run, name) for name in run.ids() if _group(run, name) == "C"}
    out = []
    for one, two in combinations(times, 2):
        if stem(one) != stem(two) and arm_of(one) != arm_of(two):
            continue
        for server in times[one]:
            if server in times[two]:
                unit = "ms" if run.metric(one)[0] == "seconds" else ""
                pair = times[one][server], times[two][server]
                out += _test(server.label(), one, two, *pair, unit)
    return out


def middle(samples: Sequence[Sample], metric: str) -> Sample | None:
    """The sample whose metric is the median, among those with a series."""
    ranked = sorted(
        (sample for sample in samples if len(sample.series) >= SERIES_MIN),
        key=lambda sample: (math.isnan(value(sample, metric)), value(sample, metric)),
    )
    return ranked[(len(ranked) - 1) // 2] if ranked else None


def excluded(run: Run) -> list[tuple[str, str, str]]:
    """Contestant, scenario ("all" if none is named) and reason, without repetitions."""
    found: dict[tuple[str, str, str], None] = {}
    for entry in run.excluded:
        one = Contestant(str(entry.get("server", "?")), str(entry.get("config") or "best"))
        where = str(entry.get("scenario") or "all")
        found[one.label(), where, str(entry.get("reason", "no reason given"))] = None
    return list(found)


def _group(run: Run, scenario: str) -> str:
    known = run.scenario(scenario)
    return known.group if known else scenario[:1]


def _times(run: Run, scenario: str) -> Mapping[Contestant, list[float]]:
    metric = run.metric(scenario)[0]
    scale = 1000 if metric == "seconds" else 1
    found = {
        one: [scale * number for number in values(samples, metric)]
        for one, samples in run.of(scenario).items()
    }
    return {one: times for one, times in found.items() if len(times) > 1}


def _test(
    label: str, a: str, b: str, one: Sequence[float], two: Sequence[float], unit: str
) -> list[Test]:
    left, right = moments(one), moments(two)
    different, equivalent = welch(left, right), tost(left, right)
    if different is None or equivalent is None:
        return []
    counts, means = (left.count, right.count), (left.mean, right.mean)
    return [Test(label, a, b, counts, means, different, equivalent, unit)]
