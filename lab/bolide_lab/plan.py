"""Owns what a run will do and how long it will take: trials, their order, their seconds."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from bolide_lab.model import Load, Scenario, Variant

START_S = 0.4
LINK_S = 0.4
CHECK_S = 0.1
ANSWERS_PER_S = 20_000
CONNECTIONS_PER_S = 1_000
LARGE_BYTES_PER_S = 250e6
SMALL_ON_WIRE_BYTES = 500
FILE_BYTES = {"512k": 2**19, "1m": 2**20, "10m": 10 * 2**20, "100m": 100 * 2**20, "1g": 2**30}
QUICK_SERVERS = ("bolide", "nginx", "h2o", "caddy")


@dataclass(frozen=True)
class Trial:
    """One sample that is to be taken."""

    scenario: Scenario
    server: str
    config: Variant
    repetition: int

    def key(self) -> tuple[str, str, str, int]:
        """As a sample's."""
        return (self.scenario.id, self.server, self.config, self.repetition)


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
        for repetition in range(1, several[0][0].repetitions + 1):
            chance.shuffle(several)
            out += [Trial(s, server, config, repetition) for s, server, config in several]
    return [trial for trial in out if trial.key() not in skip]


def load_seconds(load: Load, scenario: Scenario) -> float:
    """About how long a load takes."""
    if load.seconds is not None:
        held = load.connections / CONNECTIONS_PER_S if load.client == "idle" else 0.0
        return load.seconds + held
    requests = load.requests or 1
    size = FILE_BYTES.get(load.url.rpartition("/")[2], 0)
    link = scenario.link
    if link is None:
        if size:
            return requests * size / LARGE_BYTES_PER_S + 0.1
        return requests / ANSWERS_PER_S + load.connections / CONNECTIONS_PER_S
    rtt_s = link.rtt_ms / 1000
    bytes_in_all = requests * (size * 1.15 if size else SMALL_ON_WIRE_BYTES)
    by_rate = bytes_in_all * 8 / (link.rate_mbit * 1e6)
    by_rtt = requests * rtt_s / (load.connections * load.streams)
    by_cpu = requests / ANSWERS_PER_S
    return max(by_rate, by_rtt, by_cpu) * 1.15 + 4 * rtt_s


def trial_seconds(scenario: Scenario) -> float:
    """About how long one sample takes, from start to stop."""
    total = START_S + CHECK_S + load_seconds(scenario.load, scenario)
    if scenario.link is not None:
        total += LINK_S
    if scenario.warmup is not None:
        total += load_seconds(scenario.warmup, scenario)
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
        rows[scenario.id] = (scenario, names, count + 1, seconds + trial_seconds(trial.scenario))
    out = [f"{'scenario':16} {'samples':>7} {'about':>10}  title and servers (* as it was then)"]
    for name, (scenario, names, count, seconds) in rows.items():
        out.append(f"{name:16} {count:7} {duration(seconds):>10}  {scenario.title}")
        out.append(f"{'':36}{' '.join(sorted(names))}")
    whole = sum(trial_seconds(trial.scenario) for trial in trials)
    out.append(f"{'in all':16} {len(trials):7} {duration(whole):>10}")
    return "\n".join(out)
