"""Owns: the comparison of Bolide with the real nginx, byte for byte.

Starts both on each configuration of `sites` and sends both the same raw bytes; runs both with -t on
each of `mistakes`, and on those that are made of the reference; asks both what `explore` makes of a
few seeds. Prints every difference that `allowed` does not excuse, and every excuse that no
difference needs; either makes the exit status 1.

    tests/compare.py --bolide PATH --nginx PATH [--ports A B [C D]...] [--only WORD] [--thorough]
        [--coverage] [--effects] [--report] [--verbose] [--times]

For each pair of ports a share of the work goes on beside the others.
"""

import argparse
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from . import commands, complaints, coverage, effects, files, mistakes, report, sites
from .asking import compare_site, user_line
from .explore.run import compare_explored
from .judge import ROOT, TRIES, Judge
from .mistakes import generated
from .nameserver import NameServer
from .origin import Origin
from .php import Php
from .program import Program
from .site import SITES
from .sites import client_certs, php_applications, published

# How many mistakes are one piece of work.
CHUNK = 100
# Sites that wait for time limits begin first, so that no share waits for them alone at the end.
SLOW = ("client_header_timeout", "client_body_timeout", "keepalive_timeout", "zone ", "overrides ")
# The number of the next piece of work, for all shares.
taken: "Synchronized[int]"


@dataclass(frozen=True)
class Piece:
    """A piece of work, which needs nothing of others."""

    name: str
    do: Callable[[Sequence[Program], Judge], None]
    # How often it is done while something differs.
    tries: int = TRIES


def chunks(name: str, rows: Sequence[object], do: Callable[..., None]) -> list[Piece]:
    """Rows that are quickly compared, in pieces."""
    return [
        Piece(f"{name} {at}", partial(do, rows=rows[at : at + CHUNK]), 1)
        for at in range(0, len(rows), CHUNK)
    ]


def pieces(options: argparse.Namespace) -> list[Piece]:
    """All of the work, the longest pieces first."""
    only = options.only
    chosen = [site for site in SITES if only in site.name]
    chosen.sort(key=lambda site: not site.name.startswith(SLOW))
    found = [Piece(site.name, partial(compare_site, site)) for site in chosen]
    if only in "life":
        for steps in commands.LIVES:
            found.append(Piece(f"life {steps}", partial(commands.compare_life, steps=steps)))
    if only in "explored":
        found.insert(0, Piece("explored", partial(compare_explored, user=user_line())))
    if only in "command":
        for args in commands.COMMANDS:
            found.append(Piece(f"command {args}", partial(commands.compare_command, args=args)))
    found += chunks("mistakes", complaints.wanted(only), complaints.compare_mistakes)
    rows = generated.wanted(only, options.thorough)
    return found + chunks("generated", rows, generated.compare_generated)


@dataclass
class Share:
    """What one process found, how long each piece took, and which pieces still differ."""

    judge: Judge
    took: list[tuple[float, str]]
    differing: list[int]


def share(
    ports: tuple[int, int],
    options: argparse.Namespace,
    pattern: Path,
    again: Sequence[int] | None = None,
) -> Share:
    """Does pieces of work with two programs of its own.

    What differs is left to a second look, which is told by `again` what to look at.
    """
    done = Share(Judge(options.verbose), [], [])
    with ExitStack() as stack:
        programs = started(ports, options, pattern, stack)
        work = pieces(options)
        for number in untaken(len(work)) if again is None else again:
            piece, trial = work[number], Judge(options.verbose)
            begun = time.monotonic()
            trial.steadily(partial(piece.do, programs), programs, TRIES if again else piece.tries)
            done.took.append((time.monotonic() - begun, piece.name))
            if trial.failures and again is None:
                done.differing.append(number)
            else:
                done.judge.add(trial)
    sys.stdout.flush()
    return done


def untaken(total: int) -> Iterator[int]:
    """The numbers of pieces, each for the share that takes it first."""
    while True:
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= total:
            return
        yield number


def new_home() -> Path:
    """A new directory, by a short name: long words in tables make nginx refuse its bucket sizes."""
    return Path(tempfile.mkdtemp(prefix="c-"))


def filled() -> Path:
    """A new directory with the files that all sites are made of."""
    home = new_home()
    home.chmod(0o755)
    files.fill(home)
    client_certs.fill(home)
    published.fill(home)
    php_applications.fill(home)
    return home


def started(
    ports: tuple[int, int], options: argparse.Namespace, pattern: Path, stack: ExitStack
) -> list[Program]:
    """Two programs with a php-fpm, an origin and a copy of all files of their own."""
    home = new_home()
    stack.callback(shutil.rmtree, home, ignore_errors=True)
    # There is a FIFO among the files, and all have their times.
    subprocess.run(["cp", "-a", f"{pattern}/.", str(home)], check=True)
    debian = Path(options.nginx).parent.parent / "sid/etc/nginx"
    php = Php(home, ports[0] + 7, debian if debian.is_dir() else Path("/etc/nginx"))
    stack.callback(php.stop)
    php.start()
    stack.callback(Origin(ports[0] + 8).stop)
    stack.callback(NameServer(ports[0] + 8).stop)
    nginx = Program("nginx", options.nginx, ports[0], home, php)
    return [nginx, Program("bolide", options.bolide, ports[1], home, php)]


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("--bolide", default=str(ROOT / "target/debug/bolide"))
    parser.add_argument("--nginx", default=shutil.which("nginx-sid"))
    parser.add_argument(
        "--ports",
        nargs="+",
        type=int,
        default=[17000 + 10 * at for at in range(8)],
        help="multiples of 10, two for each share that goes on beside the others",
    )
    parser.add_argument("--only", default="", help="only sites and mistakes whose name has this")
    parser.add_argument("--thorough", action="store_true", help="every value for every directive")
    parser.add_argument(
        "--coverage",
        action="store_true",
        help="only name directives that nothing here or in tests/ tries, and compare nothing",
    )
    parser.add_argument(
        "--effects", action="store_true", help="record which site shows the effect of a directive"
    )
    parser.add_argument("--report", action="store_true", help="write docs/nginx-compatibility.md")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--times", action="store_true", help="say how long the pieces took")
    return parser.parse_args()


def show_effects(pairs: Sequence[tuple[int, int]], options: argparse.Namespace) -> int:
    """Records the effects of directives; both programs of a pair are ours."""
    options.nginx = options.bolide
    pattern = filled()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, pattern, ignore_errors=True)
        programs = [started(pair, options, pattern, stack) for pair in pairs]
        return effects.show(programs, options.only)


def use(number: "Synchronized[int]") -> None:
    """Tells a share's process where all count what is taken."""
    global taken
    taken = number


def main() -> int:
    """Compares; the exit status."""
    options = arguments()
    sites.load()
    mistakes.load()
    if options.report:
        return report.write()
    gaps = None if options.only else coverage.gaps(site.conf for site in SITES) + report.gaps()
    if options.coverage:
        print("\n".join(gaps or []))
        return 1 if gaps else 0
    if not options.nginx or not Path(options.nginx).exists():
        sys.exit("missing tool: nginx-sid (run scripts/setup.sh test)")
    pairs = list(zip(options.ports[::2], options.ports[1::2], strict=True))
    if options.effects:
        return show_effects(pairs, options)
    forking = multiprocessing.get_context("fork")
    counter = forking.Value("i", 0)
    pattern = filled()
    try:
        do = partial(share, options=options, pattern=pattern)
        with ProcessPoolExecutor(len(pairs), forking, use, (counter,)) as pool:
            shares = list(pool.map(do, pairs))
        # Beside other shares one of the two may be late; a difference is one that stays. The
        # processes that held the ports have ended.
        if again := sorted(number for one in shares for number in one.differing):
            with ProcessPoolExecutor(1, forking) as pool:
                shares.append(pool.submit(do, pairs[0], again=again).result())
    finally:
        shutil.rmtree(pattern, ignore_errors=True)
    if options.times:
        for seconds, name in sorted(row for one in shares for row in one.took):
            print(f"{seconds:7.2f} s  {name}")
    judge = Judge(options.verbose)
    for one in shares:
        judge.add(one.judge)
    return judge.finish(gaps, options.thorough)
