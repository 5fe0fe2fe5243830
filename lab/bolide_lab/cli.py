"""Owns the command `lab`: its words, what it prints, its exit codes.

0 is success, 1 a failure that is named, 2 a wrong command line, 130 an interruption.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bolide_lab import __version__, bench, install, machine, plan, records, run, shorten
from bolide_lab.catalogue import CatalogueError, choose, load_catalogue, quick_form
from bolide_lab.model import Sample, Scenario
from bolide_lab.progress import Progress
from bolide_lab.servers import SERVERS

RESULTS = Path(__file__).resolve().parents[1] / "results"
PAGE = "report.html"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code."""
    args = parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = args.command
    try:
        return command(args)
    except BrokenPipeError:
        # Whoever read this has seen enough, and Python must not complain of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (CatalogueError, records.RecordsError, install.InstallError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(f"lab: missing: {error.name}; run: pip install {error.name}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nlab: interrupted", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = argparse.ArgumentParser(
        prog="lab", description="Repeats the published tests of web servers, side by side."
    )
    out.add_argument("--version", action="version", version=f"bolide-lab {__version__}")
    verbs = out.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("plan", _plan, "show what a run would do and how long it would take"),
        ("run", _run, "measure"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("ids", nargs="*", metavar="ID", help="ids, Q B C M own, or static")
        verb.add_argument("--servers", metavar="LIST", help=", ".join(SERVERS))
        verb.add_argument("--quick", action="store_true", help="short runs, two of each")
        verb.add_argument("--best-only", action="store_true", help="no old configurations")
        verb.add_argument("--repetitions", type=int, metavar="N", help="instead of a scenario's")
        verb.add_argument("--seconds", type=float, metavar="S", help="where a load has a time")
        verb.add_argument("--minutes", type=float, metavar="M", help="shorten loads to fit in")
        verb.add_argument("--seed", type=int, metavar="N", help="of the order; recorded")
        verb.set_defaults(command=command)
        if name == "run":
            verb.add_argument("--name", default="run", help="ends the directory's name")
            verb.add_argument("--resume", type=Path, metavar="DIR", help="go on with a run")
            verb.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
            verb.add_argument("--workers", type=int, default=1, metavar="N")
            verb.add_argument("--report", action="store_true", help="make the page as well")
    bench.register(verbs)
    verb = verbs.add_parser("report", help="make a page of a run")
    verb.add_argument("directory", type=Path)
    verb.add_argument("-o", type=Path, metavar="FILE", dest="output")
    verb.add_argument("--markdown", action="store_true", help="a table instead of a page")
    verb.set_defaults(command=_report)
    verb = verbs.add_parser("keep", help="put a run and its page among the results that are kept")
    verb.add_argument("directory", type=Path)
    verb.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    verb.set_defaults(command=_keep)
    verb = verbs.add_parser("compare", help="what changed between two runs")
    verb.add_argument("old", type=Path)
    verb.add_argument("new", type=Path)
    verb.set_defaults(command=_compare)
    verb = verbs.add_parser("check", help="whether the documents have the newest kept figures")
    verb.add_argument("--write", action="store_true", help="write it")
    verb.set_defaults(command=_check)
    for name, command in (("peers", _peers), ("tools", _tools)):
        verb = verbs.add_parser(name, help=f"show or install {name}")
        verb.add_argument("action", nargs="?", choices=["install"])
        verb.set_defaults(command=command)
    verb = verbs.add_parser("link", help="test the shaped link of this machine")
    verb.add_argument("action", choices=["selftest"])
    verb.add_argument("--kind", choices=["auto", "netem", "tun"], default="auto")
    verb.add_argument("-o", type=Path, metavar="FILE", dest="output", help="keep the figures")
    verb.set_defaults(command=_link)
    return out


def scenarios_of(args: argparse.Namespace) -> tuple[list[Scenario], list[str] | None]:
    """The scenarios in the form that is asked for, and the servers."""
    catalogue = load_catalogue()
    wanted = args.servers.split(",") if args.servers else None
    for name in wanted or ():
        if name not in SERVERS:
            raise CatalogueError(f"no server {name!r}; there are {', '.join(SERVERS)}")
    ids = args.ids
    if args.quick and not ids:
        ids = ["static"]
        wanted = wanted or list(plan.QUICK_SERVERS)
    chosen = plan.with_compared(choose(catalogue, ids), catalogue)
    if args.quick:
        chosen = [form for form in map(quick_form, chosen) if form is not None]
    return [_changed(s, args.repetitions, args.seconds) for s in chosen], wanted


def _changed(scenario: Scenario, repetitions: int | None, seconds: float | None) -> Scenario:
    if repetitions:
        scenario = replace(scenario, repetitions=repetitions)
    if seconds and scenario.load.seconds is not None:
        scenario = replace(scenario, load=replace(scenario.load, seconds=seconds))
    return scenario


def _trials(
    args: argparse.Namespace, seed: int, done: set[tuple[str, str, str, int]]
) -> tuple[list[plan.Trial], list[str]]:
    """What is to be measured, and what was shortened."""
    chosen, wanted = scenarios_of(args)
    originals = not args.quick and not args.best_only
    several, missing = run.contestants(chosen, wanted, originals)
    for name, how in missing.items():
        print(f"lab: missing: {name}; run: {how}", file=sys.stderr)
    notes: list[str] = []
    if args.minutes:
        several, notes = shorten.to_minutes(several, args.minutes)
        print(f"lab: {notes[0]}", file=sys.stderr)
    return plan.order(several, seed, done), notes


def _plan(args: argparse.Namespace) -> int:
    print(plan.table(_trials(args, args.seed or 0, set())[0]))
    return 0


def _run(args: argparse.Namespace) -> int:
    done: set[tuple[str, str, str, int]] = set()
    if args.resume:
        done = records.done_keys(args.resume)
        _as_before(args)
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 31)
    trials, notes = _trials(args, seed, done)
    if not trials:
        print("lab: nothing to measure", file=sys.stderr)
        return 0 if done else 1
    print(plan.table(trials), file=sys.stderr)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if any(t.scenario.link for t in trials) and os.geteuid() != 0:
        print("lab: shaped links need root: those scenarios are left out", file=sys.stderr)
    date = time.strftime("%Y-%m-%d", time.gmtime())
    opened = (
        records.Records.resume(args.resume)
        if args.resume
        else records.Records.create(args.results, date, args.name)
    )
    with opened as lines:
        if not args.resume:
            lines.append("note", text=_plan_text(args, seed), plan=_plan_words(args, seed))
            for text in notes:
                lines.append("note", text=text)
        lines.append("machine", **machine.record())
        try:
            taken = _take_all(trials, lines, seed, args.workers)
        except KeyboardInterrupt:
            print(f"\nlab: go on with: lab run --resume {lines.directory}", file=sys.stderr)
            raise
    print(lines.directory)
    if taken and args.report:
        _page(lines.directory, lines.directory / PAGE)
    return 0 if taken else 1


def _interrupt(number: int, frame: object) -> None:
    """What ends a run ends its servers first."""
    raise KeyboardInterrupt


def _take_all(trials: list[plan.Trial], lines: records.Records, seed: int, workers: int) -> int:
    progress = Progress([trial.seconds() for trial in trials])
    taken = 0
    with run.Runner(lines, seed, workers) as runner:
        for trial in trials:
            name = trial.server if trial.config == "best" else f"{trial.server}*"
            what = f"{trial.scenario.id} {name} {trial.repetition}"
            progress.begin(what)
            result = runner.take(trial)
            if isinstance(result, list):
                taken += len(result)
                progress.end(what, _told(result))
            else:
                progress.end(what, f"OUT: {result}" if result else None)
    progress.close()
    return taken


def _told(samples: list[Sample]) -> str:
    """One or two samples in full; of many, as curl takes them, the middle time of each arm."""
    if len(samples) <= 2:
        return "; ".join(map(_short, samples))
    arms: dict[str, list[float]] = {}
    for sample in samples:
        arms.setdefault(sample.scenario, []).append(sample.seconds)
    said = [
        f"{name} {1000 * sorted(found)[len(found) // 2]:.1f} ms" for name, found in arms.items()
    ]
    return f"{len(samples)} samples: {', '.join(said)}"


def _short(sample: Sample) -> str:
    out = f"{sample.requests_per_s:10,.1f} req/s {sample.server_cpu_us_per_request:10,.1f} us/req"
    out += f" {sample.peak_rss_mib:7.1f} MiB  client {sample.client_cpu_utilisation:.2f}"
    out += " SATURATED" if sample.saturated else ""
    return out + (f"  {sample.failed} failed" if sample.failed else "")


def _plan_words(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    names = ("ids", "servers", "quick", "repetitions", "seconds", "minutes")
    words = {name: getattr(args, name) for name in names}
    return {**words, "best_only": args.best_only, "workers": args.workers, "seed": seed}


def _plan_text(args: argparse.Namespace, seed: int) -> str:
    text = f"lab run {' '.join(args.ids)}".strip()
    for word in ("servers", "repetitions", "seconds", "minutes"):
        if getattr(args, word):
            text += f" --{word} {getattr(args, word)}"
    text += " --quick" if args.quick else ""
    text += " --best-only" if args.best_only else ""
    return f"{text} --workers {args.workers} --seed {seed}"


def _as_before(args: argparse.Namespace) -> None:
    """A run that goes on does what it was begun to do."""
    line = records.first(args.resume, "note")
    words = line.get("plan") if line else None
    if not isinstance(words, dict):
        raise records.RecordsError(f"{args.resume} does not say what it was to measure")
    for name, value in words.items():
        setattr(args, name, value)


def _report(args: argparse.Namespace) -> int:
    if not args.markdown:
        _page(args.directory, args.output or args.directory / PAGE)
        return 0
    found = import_module("bolide_lab.report.data").read_full(args.directory, load_catalogue())
    text = import_module("bolide_lab.report.markdown").report(found)
    if args.output:
        args.output.write_text(text, encoding="utf-8")
    print(args.output or text)
    return 0


def _page(directory: Path, output: Path) -> None:
    found = import_module("bolide_lab.report.data").read_full(directory, load_catalogue())
    output.write_text(import_module("bolide_lab.report.html").page(found), encoding="utf-8")
    print(output)


def _keep(args: argparse.Namespace) -> int:
    for line in import_module("bolide_lab.keep").keep(args.directory, args.results):
        print(line)
    return 0


def _compare(args: argparse.Namespace) -> int:
    print(import_module("bolide_lab.compare").report(args.old, args.new))
    return 0


def _check(args: argparse.Namespace) -> int:
    good, said = import_module("bolide_lab.check").check(write=args.write)
    print(f"lab: {said}", file=sys.stdout if good else sys.stderr)
    return 0 if good else 1


def _peers(args: argparse.Namespace) -> int:
    if args.action == "install":
        return _said(install.install_peers(_say))
    for name, kind in SERVERS.items():
        server = kind()
        path = server.find()
        print(f"{name:14} {server.version() if path else 'missing; run: ' + server.install}")
    return 0


def _tools(args: argparse.Namespace) -> int:
    if args.action == "install":
        return _said(install.install_tools(_say))
    from bolide_lab.clients import MODULES, client

    for name in MODULES:
        try:
            one = client(name)
        except ModuleNotFoundError:
            continue
        print(f"{name:14} {one.version() if one.find() else 'missing; run: ' + one.install}")
    return 0


def _link(args: argparse.Namespace) -> int:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code: int = import_module("bolide_lab.links.selftest").run(kind=args.kind)
    print(said.getvalue(), end="")
    if args.output:
        date = time.strftime("%Y-%m-%d", time.gmtime())
        head = f"lab link selftest, {date}, Linux {platform.release()}\n\n"
        args.output.write_text(head + said.getvalue(), encoding="utf-8")
    return code


def _say(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr, flush=True)


def _said(errors: list[str]) -> int:
    for error in errors:
        _say(error)
    return 1 if errors else 0
