"""Owns the comparison of two runs: what got better, what worse, by the rule of `stats`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bolide_lab import stats
from bolide_lab.catalogue import load_catalogue
from bolide_lab.report import data, tables
from bolide_lab.report.data import Contestant, Run, describe, values
from bolide_lab.report.markdown import table
from bolide_lab.report.numbers import bounds, short
from bolide_lab.stats import Comparison, Verdict

CALM = ("load_1m", "python", "cores_allowed")


@dataclass(frozen=True)
class Change:
    """One contestant's metric in the old run and in the new one."""

    scenario: str
    contestant: Contestant
    metric: str
    old: float
    new: float
    comparison: Comparison


def changes(old: Run, new: Run) -> list[Change]:
    """What both runs measured: each scenario's own metric, and the server's CPU per request."""
    found = []
    for scenario in new.ids():
        own, higher = new.metric(scenario)
        before, after = old.of(scenario), new.of(scenario)
        for one in after:
            for metric in dict.fromkeys((own, tables.CPU)):
                up = higher if metric == own else describe(metric).higher_is_better
                was, is_ = values(before.get(one, []), metric), values(after[one], metric)
                if was and is_:
                    told = stats.compare(is_, was, up)
                    pair = stats.median(was), stats.median(is_)
                    found.append(Change(scenario, one, metric, *pair, told))
    return found


def conditions(old: Run, new: Run) -> list[str]:
    """What else differs between the runs, in sentences: machine, versions, what is missing."""
    said = []
    before, after = _machine(old), _machine(new)
    for name in sorted(before.keys() | after.keys()):
        if name not in CALM and before.get(name) != after.get(name):
            said.append(f"{name} of the machine: {before.get(name)} → {after.get(name)}")
    for name in sorted(old.versions.keys() | new.versions.keys()):
        was, is_ = old.versions.get(name, "not there"), new.versions.get(name, "not there")
        if was != is_:
            said.append(f"{data.display(name)}: {was} → {is_}")
    for which, here, there in (("old", old, new), ("new", new, old)):
        only = sorted(_measured(here) - _measured(there))
        if only:
            said.append(f"only in the {which} run: {', '.join(only)}")
    if old.quick != new.quick:
        said.append("one of the runs is a quick one")
    return said


def report(old: Path, new: Path) -> str:
    """Both directories compared, as Markdown."""
    catalogue = load_catalogue()
    first, second = data.read_full(old, catalogue), data.read_full(new, catalogue)
    found = changes(first, second)
    rows = [
        [
            change.scenario,
            change.contestant.label(),
            f"{describe(change.metric).label}, {describe(change.metric).unit}".rstrip(", "),
            short(change.old),
            short(change.new),
            f"×{short(change.comparison.ratio)}",
            bounds(change.comparison.low, change.comparison.high),
            change.comparison.verdict.value,
        ]
        for change in found
    ]
    counts = {verdict: 0 for verdict in Verdict}
    for change in found:
        counts[change.comparison.verdict] += 1
    head = ["scenario", "server", "metric", "old", "new", "ratio", "95 %", "new beside old"]
    summary = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
    differs = "\n".join(f"- {line}" for line in conditions(first, second))
    parts = [
        f"# {first.name} → {second.name}",
        f"{summary}.",
        f"What else differs:\n\n{differs}" if differs else "",
        table(head, rows) if rows else "The runs have nothing in common.",
        "The rule: " + stats.RULE,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _machine(run: Run) -> dict[str, object]:
    return dict(run.machines[-1]) if run.machines else {}


def _measured(run: Run) -> set[str]:
    return {f"{one.scenario} ({Contestant(one.server, one.config).label()})" for one in run.samples}
