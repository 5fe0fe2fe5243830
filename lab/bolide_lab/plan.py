"""Owns what a run will do and how long it will take: trials, their order, their seconds."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bolide_lab import titles
from bolide_lab.model import Load, Scenario, Variant

START_S = 0.3
LINK_S = 0.1
CHECK_S = 0.1
ARMS_TIMES = 5
ANSWERS_PER_S = 20_000
CONNECTIONS_PER_S = 1_000
IDLE_PER_S = 500
LARGE_BYTES_PER_S = 250e6
UPLOAD_BYTES_PER_S = 250e6
PAGES_PER_S = 800
PROCESS_S = 0.1
SITE_S = 0.4
SMALL_ON_WIRE_BYTES = 500
UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}
QUICK_SERVERS = ("bolide", "nginx", "h2o", "caddy")


@dataclass(frozen=True)
class Trial:
    """One sample that is to be taken."""

    scenario: Scenario
    server: str
    config: Variant
    repetition: int
    # A comparison on one server is made so often with one start of it.
    times: int = 1

    def key(self) -> tuple[str, str, str, int]:
        """As a sample's."""
        return (self.scenario.id, self.server, self.config, self.repetition)

    def keys(self) -> list[tuple[str, str, str, int]]:
        """The keys of the samples it makes: one, or one for each arm of a comparison."""
        ids = [f"{self.scenario.id}:{arm}" for arm in arms(self.scenario)] or [self.scenario.id]
        numbers = range(self.repetition, self.repetition + self.times)
        return [(name, self.server, self.config, number) for number in numbers for name in ids]

    def seconds(self) -> float:
        """About how long it takes, from the server's start to its end."""
        return trial_seconds(self.scenario, self.times)


def arms(scenario: Scenario) -> tuple[str, ...]:
    """The protocols that a scenario compares on the same server; none for most."""
    return tuple(scenario.load.extra.get("arms", ()))


def with_compared(chosen: Iterable[Scenario], catalogue: Mapping[str, Scenario]) -> list[Scenario]:
    """A scenario that only compares others has no runs of its own: those others take its place."""
    ids: set[str] = set()
    for scenario in chosen:
        compared: list[str] = scenario.load.extra.get("compare", [])
        ids |= {name.partition(":")[0] for name in compared} or {scenario.id}
    return [s for s in catalogue.values() if s.id in ids]


def order(
    contestants: Iterable[tuple[Scenario, str, Variant]],
    seed: int,
    done: Iterable[tuple[str, str, str, int]] = (),
) -> list[Trial]:
    """Scenario by scenario, in rounds of one repetition of each contestant, shuffled in a round.

    The same seed gives the same order; what is done is left out of it.
    """
    by_scenario: dict[str, list[tuple[Scenario, str, Variant]]] = {}
    for one in contestants:
        by_scenario.setdefault(one[0].id, []).append(one)
    skip = set(done)
    out: list[Trial] = []
    for name, several in by_scenario.items():
        chance = random.Random(f"{seed}:{name}")
        whole = several[0][0].repetitions
        times = ARMS_TIMES if arms(several[0][0]) else 1
        for first in range(1, whole + 1, times):
            chance.shuffle(several)
            many = min(times, whole + 1 - first)
            out += [Trial(s, server, config, first, many) for s, server, config in several]
    return [trial for trial in out if not skip.issuperset(trial.keys())]


def file_bytes(url: str) -> int:
    """The size of a large file by its name: `/10m`, `/512k`; 0 for any other address."""
    found = re.fullmatch(r"(\d+)([kmg])", url.rpartition("/")[2])
    return int(found[1]) * UNITS[found[2]] if found else 0


def load_seconds(load: Load, scenario: Scenario | None) -> float:
    """About how long a load takes."""
    if load.seconds is not None:
        held = load.connections / IDLE_PER_S if load.client == "idle" else 0.0
        return load.seconds + held
    requests = load.requests or 1
    size = file_bytes(load.url)
    link = scenario.link if scenario is not None else None
    if link is None:
        if size:
            return requests * size / LARGE_BYTES_PER_S + 0.1
        uploaded = requests * int(load.extra.get("upload_bytes", 0)) / UPLOAD_BYTES_PER_S
        made = requests / PAGES_PER_S if load.extra.get("empty_cache") else 0.0
        opened = load.connections / CONNECTIONS_PER_S
        return requests / ANSWERS_PER_S + opened + uploaded + made
    rtt_s = link.rtt_ms / 1000
    bytes_in_all = requests * (size * 1.15 if size else SMALL_ON_WIRE_BYTES)
    by_rate = bytes_in_all * 8 / (link.rate_mbit * 1e6)
    by_rtt = requests * rtt_s / (load.connections * load.streams)
    by_cpu = requests / ANSWERS_PER_S
    return max(by_rate, by_rtt, by_cpu) * 1.15 + 4 * rtt_s


def trial_seconds(scenario: Scenario, times: int = 1) -> float:
    """About how long a start of the server with so many samples takes; all arms of a comparison."""
    several = max(1, len(arms(scenario)))
    total = START_S + CHECK_S + several * times * load_seconds(scenario.load, scenario)
    if scenario.load.client == "curl":
        total += several * (times + 1) * PROCESS_S
    if scenario.site != "static":
        total += SITE_S
    if scenario.link is not None:
        total += LINK_S
    if scenario.warmup is not None:
        total += several * load_seconds(scenario.warmup, scenario)
    return total


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def table(trials: list[Trial]) -> str:
    """Scenarios with their contestants, samples and estimated time, and the sum."""
    rows: dict[str, tuple[Scenario, list[str], int, float]] = {}
    for trial in trials:
        scenario, names, count, seconds = rows.get(trial.scenario.id, (trial.scenario, [], 0, 0.0))
        name = trial.server if trial.config == "best" else f"{trial.server}*"
        if name not in names:
            names.append(name)
        count += len(trial.keys())
        rows[scenario.id] = (scenario, names, count, seconds + trial.seconds())
    out = [f"{'scenario':16} {'samples':>7} {'about':>10}  title and servers (* as it was then)"]
    for name, (scenario, names, count, seconds) in rows.items():
        out.append(f"{name:16} {count:7} {duration(seconds):>10}  {titles.full(scenario)}")
        out.append(f"{'':36}{' '.join(sorted(names))}")
    whole = sum(trial.seconds() for trial in trials)
    count = sum(len(trial.keys()) for trial in trials)
    out.append(f"{'in all':16} {count:7} {duration(whole):>10}")
    return "\n".join(out)
