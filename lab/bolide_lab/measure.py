"""Owns one sample: warm-up, the client's run, and what it cost the server meanwhile.

A scenario with arms gives one sample for each arm, in an order of chance, from the same server.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bolide_lab import machine, proc
from bolide_lab.clients import client as make_client
from bolide_lab.clients.base import Address, Client, ClientError
from bolide_lab.links.base import Counters, Link, LinkUnavailable
from bolide_lab.model import Load, Outcome, Sample, Scenario
from bolide_lab.plan import Trial, arms, load_seconds
from bolide_lab.sites.base import Served, SiteError

# More packets than this share late by a millisecond: it was not the link that was asked for.
LATE_SHARE = 0.01


class Unfit(Exception):
    """A contestant cannot take part in a scenario; the text is the reason that is recorded."""


class Failed(Unfit):
    """What may be chance: it is tried once more."""


@dataclass(frozen=True)
class ClientRun:
    """What a client printed, and the CPU it took."""

    text: str
    seconds: float
    cpu_s: float


@dataclass(frozen=True)
class Bench:
    """A server that is up, and all that is needed to load it."""

    client: Client
    served: Served
    address: Address
    into: tuple[str, ...]
    pids: tuple[int, ...]
    cores: frozenset[int]
    link: Link | None = None


@dataclass(frozen=True)
class Spent:
    """What a run cost beside the client's own words."""

    started_unix_ms: int
    cpu: proc.Cpu
    rows: tuple[tuple[float, float, float], ...]
    peak_rss_mib: float


def samples(bench: Bench, trial: Trial, seed: int) -> list[Sample]:
    """One sample; of a comparison one for each arm, each arm warmed up before."""
    scenario = trial.scenario
    several = arms(scenario)
    if not several:
        _warm_up(bench, scenario)
        return [_sample(bench, trial, scenario)]
    one_each = [_arm(scenario, name) for name in several]
    for arm in one_each:
        _warm_up(bench, arm)
    chance = random.Random(f"{seed}:{trial.key()}")
    out: list[Sample] = []
    for number in range(trial.repetition, trial.repetition + trial.times):
        chance.shuffle(one_each)
        turn = replace(trial, repetition=number)
        out += [_sample(bench, turn, arm) for arm in one_each]
    return out


def _arm(scenario: Scenario, name: str) -> Scenario:
    protocol: Any = name
    warmup = replace(scenario.warmup, protocol=protocol) if scenario.warmup else None
    load = replace(scenario.load, protocol=protocol)
    return replace(scenario, id=f"{scenario.id}:{name}", load=load, warmup=warmup)


def _warm_up(bench: Bench, scenario: Scenario) -> None:
    if scenario.warmup is None:
        return
    client = make_client(scenario.warmup.client)
    if client.find() is not None:
        warmer = replace(bench, client=client)
        run(warmer, with_urls(scenario.warmup, bench.served.urls), scenario)


def _sample(bench: Bench, trial: Trial, scenario: Scenario) -> Sample:
    load = with_urls(scenario.load, bench.served.urls)
    if scenario.link is not None or scenario.metric.startswith("latency"):
        load = replace(load, extra={**load.extra, "log": True})
    pids, helpers = bench.pids, bench.served.helpers
    proc.reset_peak(pids)
    resident, dropped = proc.rss_mib(pids), machine.udp_buffer_errors()
    carried = counters(bench.link)
    before, helped, stolen = proc.cpu(pids), proc.cpu(helpers), proc.steal_s()
    started = time.time_ns() // 1_000_000
    series = proc.Series(pids, 0.2 if load_seconds(load, scenario) < 10 else 1.0)
    try:
        ran = run(bench, load, scenario)
    finally:
        rows = series.stop()
    spent = Spent(started, proc.cpu(pids).since(before), rows, proc.rss_mib(pids, "VmHWM"))
    outcome = bench.client.read_files(bench.client.parse(ran.text), bench.address.directory)
    if outcome.requests == 0:
        raise Failed(f"no request succeeded, {outcome.failed} failed")
    extra: dict[str, Any] = dict(outcome.extra)
    extra["client_seconds"] = round(ran.seconds, 4)
    extra["steal_s"] = round(proc.steal_s() - stolen, 3)
    extra["udp_buffer_errors"] = machine.udp_buffer_errors() - dropped
    extra.update(link_words(carried, counters(bench.link)))
    if helpers:
        extra["helpers_cpu_s"] = proc.cpu(helpers).since(helped).exact_s
    if load.client == "idle":
        top = max([row[2] for row in rows], default=resident)
        extra["kib_per_connection"] = (top - resident) * 1024 / outcome.requests
    if ":" in scenario.id:
        extra["arm"] = load.protocol
    return made(bench, trial, scenario, outcome, spent, ran, extra)


def made(
    bench: Bench,
    trial: Trial,
    scenario: Scenario,
    outcome: Outcome,
    spent: Spent,
    ran: ClientRun,
    extra: dict[str, Any],
) -> Sample:
    """The sample from its parts."""
    user, system = spent.cpu.split()
    busy = ran.cpu_s / ran.seconds / min(scenario.load.threads, len(bench.cores))
    total = outcome.bytes_total
    return Sample(
        scenario=scenario.id,
        server=trial.server,
        config=trial.config,
        repetition=trial.repetition,
        started_unix_ms=spent.started_unix_ms,
        seconds=outcome.seconds,
        requests=outcome.requests,
        failed=outcome.failed,
        requests_per_s=outcome.requests_per_s,
        server_cpu_user_s=user,
        server_cpu_system_s=system,
        server_cpu_us_per_request=spent.cpu.exact_s / outcome.requests * 1e6,
        peak_rss_mib=spent.peak_rss_mib,
        client_cpu_utilisation=busy,
        saturated=bench.client.was_limit(outcome, busy),
        latency_us=outcome.latency_us,
        bytes_per_answer=total / outcome.requests if total is not None else None,
        series=spent.rows,
        extra=extra,
    )


def counters(link: Link | None) -> Counters | None:
    """What the link has carried so far; None where there is none or it cannot say."""
    if link is None:
        return None
    try:
        return link.counters()
    except (LinkUnavailable, OSError):
        return None


def link_words(before: Counters | None, after: Counters | None) -> dict[str, Any]:
    """What the link did during a sample; `link_late` where it was not the link asked for."""
    if before is None or after is None:
        return {}
    out: dict[str, Any] = {}
    packets = late = 0
    for name, old, new in (
        ("to_client", before.to_client, after.to_client),
        ("to_server", before.to_server, after.to_server),
    ):
        dropped = (new.dropped_queue or 0) - (old.dropped_queue or 0)
        packets += new.packets - old.packets
        late += (new.late_packets or 0) - (old.late_packets or 0)
        out[f"link_{name}_packets"] = new.packets - old.packets
        out[f"link_{name}_bytes"] = new.bytes - old.bytes
        out[f"link_{name}_dropped"] = dropped
    out["link_late_packets"] = late
    out["link_late"] = packets > 0 and late / packets > LATE_SHARE
    if after.cpu_s is not None and before.cpu_s is not None:
        out["link_cpu_s"] = round(after.cpu_s - before.cpu_s, 4)
    return out


def run(bench: Bench, load: Load, scenario: Scenario) -> ClientRun:
    """Runs the client once on its cores."""
    cores = ",".join(map(str, sorted(bench.cores)))
    argv = ["taskset", "-c", cores, *bench.into, *bench.client.argv(load, bench.address)]
    limit = 60 + 6 * load_seconds(load, scenario)
    return run_client(argv, limit, bench.address.directory)


def run_client(argv: list[str], limit_s: float, directory: Path) -> ClientRun:
    """Runs a client to its end and takes its CPU. Raises `ClientError` after `limit_s`."""
    path = directory / "client.out"
    # Clients of the laboratory's own are modules of it; others leave files in their home.
    module = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "HOME": str(directory), "PYTHONPATH": module}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    with path.open("wb") as said:
        one = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
        try:
            one.wait(limit_s)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise ClientError(f"the client did not end within {limit_s:.0f} s") from error
            raise
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return ClientRun(path.read_text(errors="replace"), max(seconds, 1e-6), cpu)


def with_urls(load: Load, urls: Mapping[str, Path]) -> Load:
    """The load with its list of addresses as a file of the site."""
    if load.urls_file is None:
        return load
    if load.urls_file not in urls:
        raise SiteError(f"the site has no list of addresses {load.urls_file}")
    return replace(load, urls_file=str(urls[load.urls_file]))
