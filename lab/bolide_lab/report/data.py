"""Owns what a report is made from: the lines of one or more run directories, read once.

Reads `run.jsonl`, also compressed as `.gz` or `.xz`. A line that is torn, or of a form that this
laboratory does not know, is counted and not fatal; a run without anything readable is an error.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bolide_lab import titles
from bolide_lab.model import Load, Sample, Scenario, sample_from_json
from bolide_lab.report.source import FILES, UnreadableError, file_of, lines

LINK_TEST = "link-selftest.txt"
NUMBERS = (
    "repetition",
    "started_unix_ms",
    "seconds",
    "requests",
    "failed",
    "requests_per_s",
    "server_cpu_user_s",
    "server_cpu_system_s",
    "server_cpu_us_per_request",
    "peak_rss_mib",
    "client_cpu_utilisation",
)
SERVERS = (
    "bolide",
    "nginx",
    "h2o",
    "caddy",
    "apache",
    "haproxy",
    "vinyl",
    "lighttpd",
    "litespeed",
    "openlitespeed",
    "angie",
)
DISPLAY = {
    "bolide": "Bolide",
    "nginx": "nginx",
    "h2o": "H2O",
    "caddy": "Caddy",
    "apache": "Apache",
    "haproxy": "HAProxy",
    "vinyl": "Vinyl",
    "lighttpd": "lighttpd",
    "litespeed": "LiteSpeed",
    "openlitespeed": "OpenLiteSpeed",
    "angie": "Angie",
}


@dataclass(frozen=True)
class Contestant:
    """A server in one of its configurations."""

    server: str
    config: str

    def label(self) -> str:
        """The name as a reader sees it."""
        name = display(self.server)
        return name if self.config == "best" else f"{name} ({self.config})"

    def order(self) -> tuple[int, str, int]:
        """Sorts servers in a fixed order, the best configuration first."""
        known = SERVERS.index(self.server) if self.server in SERVERS else len(SERVERS)
        return (known, self.server, 0 if self.config == "best" else 1)


@dataclass(frozen=True)
class Metric:
    """How a measured quantity is read."""

    label: str
    unit: str
    higher_is_better: bool


METRICS = {
    "requests_per_s": Metric("requests per second", "req/s", True),
    "requests": Metric("requests", "", True),
    "seconds": Metric("time", "s", False),
    "server_cpu_us_per_request": Metric("server CPU per request", "µs", False),
    "helpers_cpu_us_per_request": Metric("CPU of PHP and database per request", "µs", False),
    "peak_rss_mib": Metric("peak memory", "MiB", False),
    "bytes_per_answer": Metric("bytes per answer", "B", False),
    "kib_per_connection": Metric("memory per connection", "KiB", False),
    "failed": Metric("failed requests", "", False),
    "client_cpu_utilisation": Metric("client CPU in use", "", False),
    "latency_us_p50": Metric("latency, median", "µs", False),
    "latency_us_p90": Metric("latency, 90th percentile", "µs", False),
    "latency_us_p99": Metric("latency, 99th percentile", "µs", False),
    "latency_us_p999": Metric("latency, 99.9th percentile", "µs", False),
}


@dataclass
class Run:
    """Everything that is known of a run, or of several put together."""

    name: str
    machines: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    configs: list[dict[str, Any]] = field(default_factory=list)
    body_checks: list[dict[str, Any]] = field(default_factory=list)
    excluded: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plan: dict[str, Any] = field(default_factory=dict)
    parts_shortened: list[str] = field(default_factory=list)
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    loads: dict[str, Load] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    other: list[dict[str, Any]] = field(default_factory=list)
    link_test: str = ""
    unreadable: int = 0

    @property
    def first_ms(self) -> int:
        """When its first sample began; 0 without any."""
        return min((sample.started_unix_ms for sample in self.samples), default=0)

    @property
    def quick(self) -> bool:
        """Whether it was a quick run, whose figures say little."""
        return self.plan.get("quick") is True

    def shortened(self) -> str:
        """How the run differs from what its scenarios say; nothing if it does not."""
        said = ["shorter loads than the scenarios say" if self.quick else ""]
        for word in ("seconds", "repetitions"):
            if self.plan.get(word):
                said.append(f"{word} set to {self.plan[word]:g}")
        if self.plan.get("minutes"):
            said.append(f"loads shortened to fit into {self.plan['minutes']:g} minutes")
        workers = self.plan.get("workers", 1)
        said.append(f"{workers} workers" if workers != 1 else "")
        return ", ".join([one for one in said if one] + self.parts_shortened)

    def ids(self) -> list[str]:
        """The scenarios that have samples or an exclusion, in the catalogue's order."""
        seen = {sample.scenario for sample in self.samples}
        seen |= {str(line["scenario"]) for line in self.excluded if line.get("scenario")}
        order = {name: place for place, name in enumerate(self.scenarios)}
        return sorted(seen, key=lambda name: (order.get(stem(name), len(order)), _place(name)))

    def scenario(self, name: str) -> Scenario | None:
        """What the catalogue says of a scenario, or of an arm of it (`C1:h3`)."""
        return self.scenarios.get(stem(name))

    def of(self, scenario: str) -> dict[Contestant, list[Sample]]:
        """The samples of a scenario by contestant, each in order of repetition."""
        found: dict[Contestant, list[Sample]] = defaultdict(list)
        for sample in self.samples:
            if sample.scenario == scenario:
                found[Contestant(sample.server, sample.config)].append(sample)
        for samples in found.values():
            samples.sort(key=lambda sample: sample.repetition)
        return {one: found[one] for one in sorted(found, key=Contestant.order)}

    def contestants(self) -> list[Contestant]:
        """All that have a sample."""
        found = {Contestant(sample.server, sample.config) for sample in self.samples}
        return sorted(found, key=Contestant.order)

    def metric(self, scenario: str) -> tuple[str, bool]:
        """The scenario's own metric, and whether more of it is better."""
        known = self.scenario(scenario)
        if known is None:
            return "requests_per_s", True
        return known.metric, known.higher_is_better

    def title(self, scenario: str) -> str:
        """What was run, or the scenario's id; an arm is named."""
        known = self.scenario(scenario)
        if known is None:
            return scenario
        arm = arm_of(scenario)
        title = titles.of_run(known, self.loads.get(known.id, known.load))
        return title + (f" (here {arm})" if arm else "")


def stem(scenario: str) -> str:
    """The catalogue's id of a scenario: what stands before the arm."""
    return scenario.partition(":")[0]


def arm_of(scenario: str) -> str:
    """The arm that a scenario's id names, or nothing."""
    return scenario.partition(":")[2]


def display(server: str) -> str:
    """A server's name as its makers write it."""
    return DISPLAY.get(server, server)


def describe(metric: str) -> Metric:
    """How to print a metric; unknown ones by their name."""
    if metric in METRICS:
        return METRICS[metric]
    for suffix, unit in (("_us", "µs"), ("_ms", "ms"), ("_per_s", "/s"), ("_s", "s")):
        if metric.endswith(suffix):
            return Metric(metric.removesuffix(suffix).replace("_", " "), unit, suffix == "_per_s")
    return Metric(metric.replace("_", " "), "", False)


def value(sample: Sample, metric: str) -> float:
    """One sample's metric; not a number where it was not measured."""
    if metric.startswith(("latency_us_", "latency_us.")):
        percentile = metric[len("latency_us_") :]
        found = getattr(sample.latency_us, percentile, None) if sample.latency_us else None
        found = sample.extra.get(metric) if found is None else found
    elif metric == "helpers_cpu_us_per_request":
        spent = sample.extra.get("helpers_cpu_s")
        found = spent / sample.requests * 1e6 if spent is not None and sample.requests else None
    else:
        found = getattr(sample, metric, None) if hasattr(sample, metric) else None
        found = sample.extra.get(metric) if found is None else found
    return float(found) if isinstance(found, int | float) else math.nan


def values(samples: Iterable[Sample], metric: str) -> list[float]:
    """The metric of all samples that have it; a list in `extra` counts one by one."""
    found: list[float] = []
    for sample in samples:
        several = sample.extra.get(metric)
        if isinstance(several, list):
            found.extend(float(one) for one in several)
        elif not math.isnan(one := value(sample, metric)):
            found.append(one)
    return found


def read_full(directory: Path, catalogue: dict[str, Scenario]) -> Run:
    """Reads a run directory that must hold samples, or else reasons why there are none.

    Raises `UnreadableError` otherwise.
    """
    run = read(directory, catalogue)
    if run.samples or (run.excluded and not run.unreadable):
        return run
    name = file_of(directory)
    if run.unreadable:
        raise UnreadableError(
            f"{name}: no sample; lines that could not be read: {run.unreadable} (damaged, or of "
            "another version of the laboratory)"
        )
    how = f"lab run --resume {directory}" if run.plan else "begin a new one with lab run"
    raise UnreadableError(f"{name}: no sample: nothing was measured; {how}")


def read(directory: Path, catalogue: dict[str, Scenario], files: Iterable[str] = FILES) -> Run:
    """Reads a run directory. `catalogue` says what its scenarios are.

    Raises `UnreadableError` if there is no `run.jsonl` in any of the forms.
    """
    path = file_of(directory, files)
    run = Run(name=directory.resolve().name, link_test=_link_test(directory))
    keys = set()
    for line in lines(path):
        if not isinstance(line, dict):
            run.unreadable += 1
            run.notes += [line] if line else []
            continue
        kind = line.get("kind")
        if kind == "sample":
            sample = _sample(line)
            if sample is None:
                run.unreadable += 1
            elif sample.key() not in keys:
                keys.add(sample.key())
                run.samples.append(sample)
        else:
            _keep(run, str(kind), line)
    present = {sample.scenario for sample in run.samples}
    present |= {str(line.get("scenario")) for line in run.excluded}
    stems = {stem(name) for name in present}
    run.scenarios = {
        name: one for name, one in catalogue.items() if name in stems or _compares(one, present)
    }
    notes, seconds = titles.notes_of(run.notes), run.plan.get("seconds")
    run.loads = {
        name: titles.load_of(one, notes, run.quick, seconds) for name, one in run.scenarios.items()
    }
    return run


def _link_test(directory: Path) -> str:
    """What the link's own test said: of the run, or of all runs beside it."""
    for path in (directory / LINK_TEST, directory.resolve().parent / LINK_TEST):
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


def merge(runs: Iterable[Run]) -> Run:
    """The newest samples of each scenario from several runs, as one."""
    by_age = sorted(runs, key=_newest)
    last = {sample.scenario: run.name for run in by_age for sample in run.samples}
    by_age = [run for run in by_age if run.name in last.values()]
    whole = Run(name=" + ".join(run.name for run in by_age))
    for run in by_age:
        whole.samples += [one for one in run.samples if last[one.scenario] == run.name]
        whole.excluded += [
            one for one in run.excluded if last.get(str(one.get("scenario")), run.name) == run.name
        ]
        whole.parts_shortened += [f"{run.name}: {said}"] if (said := run.shortened()) else []
        whole.scenarios.update(run.scenarios)
        newest = {stem(name) for name, where in last.items() if where == run.name}
        whole.loads.update({name: load for name, load in run.loads.items() if name in newest})
        whole.versions.update(run.versions)
        for name in ("machines", "configs", "body_checks", "notes", "other"):
            getattr(whole, name).extend(getattr(run, name))
        whole.unreadable += run.unreadable
    return whole


def _compares(scenario: Scenario, present: set[str]) -> bool:
    """Whether a scenario without runs of its own compares some that are there."""
    arms: list[str] = scenario.load.extra.get("compare", [])
    return bool(arms) and set(arms) <= present


def _place(scenario: str) -> tuple[str, bool, str]:
    return (stem(scenario), arm_of(scenario) != "h3", scenario)


def _armed(sample: Sample) -> Sample:
    """An arm that only `extra` names becomes part of the scenario's id."""
    arm = sample.extra.get("arm")
    if not arm or ":" in sample.scenario:
        return sample
    return replace(sample, scenario=f"{sample.scenario}:{arm}")


def _newest(run: Run) -> tuple[int, str]:
    return (max((sample.started_unix_ms for sample in run.samples), default=0), run.name)


def _sample(line: dict[str, Any]) -> Sample | None:
    """The line's sample; nothing if a field is missing or is not what it must be."""
    try:
        sample = sample_from_json(line)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return None
    numbers = (getattr(sample, name) for name in NUMBERS)
    sound = (
        all(isinstance(one, int | float) and math.isfinite(one) for one in numbers)
        and all(isinstance(one, str) for one in (sample.scenario, sample.server, sample.config))
        and isinstance(sample.extra, dict)
    )
    return _armed(sample) if sound else None


def _keep(run: Run, kind: str, line: dict[str, Any]) -> None:
    body = {name: found for name, found in line.items() if name != "kind"}
    if kind == "machine":
        run.machines.append(body)
    elif kind == "version":
        run.versions[str(body.get("server") or body.get("name"))] = str(body.get("version"))
    elif kind == "config":
        run.configs.append(body)
    elif kind == "body-check":
        run.body_checks.append(body)
    elif kind == "excluded":
        run.excluded.append(body)
    elif kind == "note":
        if isinstance(body.get("plan"), dict):
            run.plan = run.plan or body["plan"]
        run.notes.append(str(body.get("text") or body.get("note") or body))
    else:
        run.other.append(line)
