"""Owns `lab bench`: what an engineer measures on a change, server CPU per request first.

The scenarios and what Bolide may cost are in `bench.toml`. They are taken as those of the catalogue
are; medians are shown, and nothing is kept but what `--json` names.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bolide_lab import machine, plan
from bolide_lab.catalogue import CatalogueError, quick_form, read_file
from bolide_lab.model import Sample, Scenario, sample_to_json
from bolide_lab.records import Records
from bolide_lab.run import Runner, contestants
from bolide_lab.servers import SERVERS

FILE = Path(__file__).with_suffix(".toml")
OURS = "bolide"
# A million requests; only on demand.
LONG = "long"
NOTHING = "–"

# By scenario and server.
Results = Mapping[str, Mapping[str, Sequence[Sample]]]
Rows = list[list[str]]


@dataclass(frozen=True)
class Goal:
    """What Bolide may cost: a factor of another's CPU, maybe in scenario `of`, or microseconds."""

    most: float = 0.0
    server: str = ""
    of: str = ""
    most_us: float | None = None


def load_goals(path: Path = FILE) -> dict[str, list[Goal]]:
    """The goals by scenario."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))["goals"]
    return {name: [Goal(**words) for words in goals] for name, goals in table.items()}


def arguments(verb: argparse.ArgumentParser) -> None:
    """The words of the command."""
    verb.add_argument("--only", metavar="LIST", help="scenarios of bench.toml")
    verb.add_argument("--servers", metavar="LIST", help=", ".join(SERVERS))
    verb.add_argument("--reps", type=int, metavar="N", help="instead of a scenario's")
    verb.add_argument("--quick", action="store_true", help="short runs, two of each")
    verb.add_argument("--long", action="store_true", help="also 1,000,000 HTTP/3 requests")
    verb.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    verb.add_argument("--markdown", action="store_true", help="print the tables as Markdown")


def chosen(args: argparse.Namespace) -> list[Scenario]:
    """The scenarios that are asked for, in the form that is asked for."""
    scenarios = {one.id: one for one in read_file(FILE)}
    wanted = args.only.split(",") if args.only else [s for s in scenarios if s != LONG or args.long]
    for name in wanted:
        if name not in scenarios:
            raise CatalogueError(f"no scenario {name!r}; there are {', '.join(scenarios)}")
    found = [scenarios[name] for name in wanted]
    if args.quick:
        found = [form for form in map(quick_form, found) if form is not None]
    if args.reps:
        found = [replace(one, repetitions=args.reps) for one in found]
    return found


def command(args: argparse.Namespace) -> int:
    """Measures and prints the tables."""
    scenarios = chosen(args)
    servers = args.servers.split(",") if args.servers else None
    for name in servers or ():
        if name not in SERVERS:
            raise CatalogueError(f"no server {name!r}; there are {', '.join(SERVERS)}")
    several, missing = contestants(scenarios, servers, originals=False)
    for name, how in missing.items():
        print(f"lab: missing: {name}; run: {how}", file=sys.stderr)
    samples = measured(plan.order(several, random.SystemRandom().randrange(1 << 31)))
    if not samples:
        print("lab: nothing was measured", file=sys.stderr)
        return 1
    results = by_scenario(scenarios, samples)
    print(heading(results))
    for rows in tables(scenarios, results, load_goals()):
        print("\n" + shown(rows, args.markdown))
    if args.json:
        record = {"machine": machine.record(), "samples": [sample_to_json(s) for s in samples]}
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def measured(trials: Sequence[plan.Trial]) -> list[Sample]:
    """All samples; each is printed when it is there."""
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as kept:
        lines = Records.create(Path(kept), time.strftime("%Y-%m-%d", time.gmtime()), "bench")
        with lines, Runner(lines, seed=1) as runner:
            for trial in trials:
                taken = runner.take(trial)
                if isinstance(taken, str):
                    print(f"{trial.scenario.id:11} {trial.server:7} OUT: {taken}", file=sys.stderr)
                for sample in taken if isinstance(taken, list) else []:
                    print(line_of(sample), file=sys.stderr, flush=True)
                    samples.append(sample)
    return samples


def line_of(sample: Sample) -> str:
    """One sample in a line."""
    busy = (sample.server_cpu_user_s + sample.server_cpu_system_s) / sample.seconds
    return (
        f"{sample.scenario:11} {sample.server:7} run {sample.repetition}: "
        f"{sample.server_cpu_us_per_request:9.2f} us/req {sample.requests_per_s:9.0f} req/s  "
        f"busy {busy:.2f}  peak {sample.peak_rss_mib:.1f} MiB"
        + (f"  BAD {sample.failed}" if sample.failed else "")
    )


def by_scenario(scenarios: Sequence[Scenario], samples: Sequence[Sample]) -> Results:
    """The samples by scenario and server, in the order of the scenarios."""
    found: dict[str, dict[str, list[Sample]]] = {one.id: {} for one in scenarios}
    for sample in samples:
        found[sample.scenario].setdefault(sample.server, []).append(sample)
    return {name: servers for name, servers in found.items() if servers}


def names_of(results: Results) -> list[str]:
    """Who was measured, in the laboratory's order."""
    there = {name for servers in results.values() for name in servers}
    return [name for name in SERVERS if name in there]


def heading(results: Results) -> str:
    """Where and when, and which versions."""
    said = machine.record()
    lines = [
        f"{said['cores']} × {said['cpu']}, Linux {said['kernel']}; "
        f"{time.strftime('%Y-%m-%d')}; medians"
    ]
    lines += [f"  {name}: {SERVERS[name]().version()}" for name in names_of(results)]
    return "\n".join(lines)


def middle(samples: Sequence[Sample], word: str) -> float:
    """The median of one figure."""
    return median(float(getattr(sample, word)) for sample in samples)


def cost_us(samples: Sequence[Sample]) -> float:
    """The median of what a request cost the server."""
    return middle(samples, "server_cpu_us_per_request")


def cell(scenario: Scenario, samples: Sequence[Sample]) -> str:
    """What a request cost, or a connection that does nothing."""
    if not samples:
        return NOTHING
    if scenario.metric == "kib_per_connection":
        return f"{median(float(s.extra['kib_per_connection']) for s in samples):.1f} KiB"
    cost = cost_us(samples)
    text = f"{cost / 1000:.0f} ms" if plan.file_bytes(scenario.load.url) else f"{cost:.1f}"
    bad = sum(sample.failed for sample in samples)
    return text + (f" ({bad} failed)" if bad else "")


def verdicts(name: str, goals: Sequence[Goal], results: Results) -> str:
    """Which goals of a scenario are reached."""
    out = []
    ours = results[name].get(OURS)
    for goal in goals if ours else ():
        cost = cost_us(ours or ())
        if goal.most_us is not None:
            out.append(f"≤ {goal.most_us:g} µs {mark(cost <= goal.most_us)}")
            continue
        theirs = results.get(goal.of or name, {}).get(goal.server)
        if theirs:
            ratio = cost / cost_us(theirs)
            who = f"{goal.server} {goal.of}".strip()
            out.append(f"{ratio:.3f} × {who} (≤ {goal.most:g}) {mark(ratio <= goal.most)}")
    return "; ".join(out)


def mark(is_reached: bool) -> str:
    """A word for it."""
    return "ok" if is_reached else "MISSED"


def tables(
    scenarios: Sequence[Scenario], results: Results, goals: Mapping[str, Sequence[Goal]]
) -> list[Rows]:
    """What requests cost, how many there were in a second, and the memory."""
    names = names_of(results)
    there = [one for one in scenarios if one.id in results]
    cost: Rows = [["server CPU µs per request", *names, "goal"]]
    rate: Rows = [["requests per second", *names]]
    memory: Rows = [["peak RSS, MiB", *names]]
    for one in there:
        found = results[one.id]
        cells = [cell(one, found.get(name, ())) for name in names]
        cost.append([one.title, *cells, verdicts(one.id, goals.get(one.id, ()), results)])
        if one.load.client != "idle" and not plan.file_bytes(one.load.url):
            rate.append([one.title, *figures(found, names, "requests_per_s", ",.0f")])
        memory.append([one.title, *figures(found, names, "peak_rss_mib", ".1f")])
    return [cost, rate, memory]


def figures(
    found: Mapping[str, Sequence[Sample]], names: Sequence[str], word: str, form: str
) -> list[str]:
    """The medians of one figure, a cell for each server."""
    return [format(middle(found[n], word), form) if n in found else NOTHING for n in names]


def shown(rows: Rows, markdown: bool) -> str:
    """A table as text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [[t.ljust(w) for t, w in zip(row, widths, strict=True)] for row in rows]
    padded.insert(1, ["-" * width for width in widths])
    if markdown:
        return "\n".join(f"| {' | '.join(row)} |" for row in padded)
    return "\n".join("  ".join(row).rstrip() for row in padded)


def register(verbs: Any) -> None:
    """Adds the command to those of the laboratory."""
    verb = verbs.add_parser("bench", help="what an engineer measures on a change")
    arguments(verb)
    verb.set_defaults(command=command)
