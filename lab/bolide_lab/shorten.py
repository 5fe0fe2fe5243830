"""Owns the shortening of a run to so many minutes: how long a sample may be, and what that changes.

No sample may take longer than a limit that is the same for all scenarios of the run. A load by time
lasts that long; a count of requests becomes a time; one large file becomes a smaller one. Links,
connections and streams stay, and every contestant keeps its repetitions, five at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bolide_lab.model import Load, Scenario, Variant
from bolide_lab.plan import file_bytes, load_seconds, order

Contestant = tuple[Scenario, str, Variant]

LEAST_REPETITIONS = 5
LEAST_S = 1.0
LONGEST_S = 120.0
WARMUP_SHARE = 0.25
WARMUP_S = 0.5
# Each user of the shop asks for each of the 20 pages before anything is timed.
PAGES_EACH = 20
FILES = (
    *("512k", "1m", "2m", "3m", "5m", "7m", "10m", "15m", "20m", "30m", "50m", "70m"),
    *("100m", "150m", "200m", "300m", "500m", "1g"),
)
# Idle connections are about their number: opening them may take longer than a sample.
IDLE_SHARE = 2.0
IDLE_HELD_S = 1.0
# What takes whole seconds.
WHOLE_SECONDS = frozenset({"wrk", "siege"})


def to_minutes(
    contestants: Sequence[Contestant], minutes: float
) -> tuple[list[Contestant], list[str]]:
    """The contestants with shortened scenarios, and in words what is shorter."""
    low, high = LEAST_S, LONGEST_S
    if _whole_s(contestants, high) <= minutes * 60:
        low = high
    while high - low > 0.05:
        middle = (low + high) / 2
        if _whole_s(contestants, middle) <= minutes * 60:
            low = middle
        else:
            high = middle
    limit_s = round(low, 2)
    before = {scenario.id: scenario for scenario, _, _ in contestants}
    after = {name: limited(scenario, limit_s) for name, scenario in before.items()}
    notes = [f"Shortened to about {minutes:g} minutes: no load is longer than about {limit_s:g} s."]
    for name, scenario in before.items():
        if said := words(scenario, after[name]):
            notes.append(f"{name}: {said}.")
    return [(after[s.id], server, config) for s, server, config in contestants], notes


def _whole_s(contestants: Sequence[Contestant], limit_s: float) -> float:
    known: dict[str, float] = {}
    total = 0.0
    for scenario, _, _ in contestants:
        if scenario.id not in known:
            short = limited(scenario, limit_s)
            known[scenario.id] = sum(trial.seconds() for trial in order([(short, "", "best")], 0))
        total += known[scenario.id]
    return total


def limited(scenario: Scenario, limit_s: float) -> Scenario:
    """The scenario with no sample longer than about `limit_s`; samples of curl stay as they are."""
    if scenario.load.client == "curl":
        return scenario
    warmup = scenario.warmup
    if warmup is not None:
        warmup = _warmup(warmup, scenario, min(limit_s * WARMUP_SHARE, WARMUP_S))
    return replace(
        scenario,
        load=_load(scenario.load, scenario, limit_s),
        warmup=warmup,
        repetitions=min(scenario.repetitions, LEAST_REPETITIONS),
    )


def _load(load: Load, scenario: Scenario, limit_s: float) -> Load:
    if load.client == "idle":
        return _idle(load, limit_s * IDLE_SHARE)
    if load.seconds is not None:
        seconds = min(load.seconds, limit_s)
        return replace(load, seconds=max(1.0, seconds // 1) if _is_whole(load) else seconds)
    estimate = load_seconds(load, scenario)
    if estimate <= limit_s or load.requests is None:
        return load
    if file_bytes(load.url):
        return _large(load, scenario, limit_s)
    if load.requests == load.connections:
        count = max(20, int(load.requests * limit_s / estimate))
        return replace(load, requests=count, connections=count)
    if load.urls_file is not None or load.extra.get("upload_bytes"):
        least = max(load.connections * load.streams, 20)
        return replace(load, requests=max(least, int(load.requests * limit_s / estimate)))
    return replace(load, requests=None, seconds=limit_s)


def _warmup(load: Load, scenario: Scenario, limit_s: float) -> Load:
    """What takes whole seconds is replaced by a client, or a count, that can be shorter."""
    if load.client == "siege":
        return replace(load, seconds=None, requests=PAGES_EACH * load.connections)
    if load.client == "wrk":
        load = replace(load, client="h2load", extra={})
    return _load(load, scenario, limit_s)


def _is_whole(load: Load) -> bool:
    return load.client in WHOLE_SECONDS


def _idle(load: Load, limit_s: float) -> Load:
    held = min(load.seconds or IDLE_HELD_S, IDLE_HELD_S)
    estimate = load_seconds(replace(load, seconds=0.0), None)
    share = min(1.0, max(limit_s - held, 0.5) / estimate) if estimate else 1.0
    count = max(500, int(load.connections * share))
    return replace(load, connections=count, requests=count, seconds=held)


def _large(load: Load, scenario: Scenario, limit_s: float) -> Load:
    """Fewer files first, then a smaller one."""
    one = load_seconds(replace(load, requests=1), scenario)
    fewer = replace(load, requests=max(1, min(load.requests or 1, int(limit_s / one))))
    if fewer.requests != 1 or one <= limit_s:
        return fewer
    path, _, name = load.url.rpartition("/")
    largest = FILES.index(name) if name in FILES else 0
    for smaller in reversed(FILES[: largest + 1]):
        fewer = replace(fewer, url=f"{path}/{smaller}")
        if load_seconds(fewer, scenario) <= limit_s:
            break
    return fewer


def words(before: Scenario, after: Scenario) -> str:
    """What is shorter, for the record; nothing if nothing is."""
    said = []
    if before.load.seconds != after.load.seconds or before.load.requests != after.load.requests:
        said.append(f"{_length(after.load)} instead of {_length(before.load)}")
    if before.load.connections != after.load.connections:
        said.append(f"{after.load.connections} connections, not {before.load.connections}")
    if before.load.url != after.load.url:
        said.append(f"the file {after.load.url[1:]} instead of {before.load.url[1:]}")
    if before.repetitions != after.repetitions:
        said.append(f"{after.repetitions} repetitions instead of {before.repetitions}")
    return ", ".join(said)


def _length(load: Load) -> str:
    if load.seconds is not None:
        return f"{load.seconds:g} s"
    return f"{load.requests} requests"
