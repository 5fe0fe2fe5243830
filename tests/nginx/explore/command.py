"""Owns: the search for situations in which Bolide and the real nginx differ.

Makes random configurations and requests from seeds, runs them on both, and prints every difference
that `known` does not explain, made small.

    tests/explore.py --bolide PATH --nginx PATH [--from SEED] [--seeds N] [--seconds N] [--text]
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .. import files, sites
from ..answers import blame
from ..origin import Origin
from ..program import Program
from ..sites import client_certs
from .run import Case, Difference, Runner, case_of, wide_case_of
from .shrink import kind_of, shrink

ROOT = Path(__file__).parents[3]


class Origins:
    """What both programs replace in their configurations."""

    def __init__(self, port: int) -> None:
        self.port, self.origin = port, f"127.0.0.1:{port}"

    def expand(self, text: str) -> str:
        """The same text: there is only the origin."""
        return text

    def normalise(self, text: str) -> str:
        """Words in place of the origin's address."""
        return text.replace(self.origin, "ORIGIN").replace(str(self.port), "OPORT")


def show(runner: Runner, case: Case, differences: Sequence[Difference], shrinking: bool) -> None:
    """Prints a case and its differences, made small first."""
    kinds = [kind_of(one, case.requests) for one in differences]
    print(f"\n=== seed {case.seed}: {'; '.join(kinds)}")
    if shrinking:
        case, differences = shrink(runner, case)
    print(case.conf.text(0))
    for at, wanted, found in differences:
        if at < len(case.requests):
            print(f"  > {case.requests[at].key()[:600]}")
            if "raw/" in case.requests[at].target:
                print(f"    origin: {origin_says(case.requests[at].target)}")
        for line in blame(wanted, found):
            print(f"    {line}")
    if len(case.requests) == 1 and not any(at == 0 for at, _, _ in differences):
        print(f"  ({case.requests[0].key()[:600]})")
    sys.stdout.flush()


def origin_says(target: str) -> str:
    """What the origin is asked to answer."""
    try:
        return repr(bytes.fromhex(target.partition("raw/")[2].partition("?")[0]))[:500]
    except ValueError:
        return "?"


class Search:
    """A search through seeds, and what was found."""

    def __init__(self, runner: Runner, options: argparse.Namespace) -> None:
        self.runner, self.options = runner, options
        self.shown: Counter[str] = Counter()
        self.odd: set[str] = set()
        self.valid = 0

    def tell_odd(self, case: Case, said: Sequence[str]) -> None:
        """Prints a case of which the two say different things with -t, once of a kind."""
        key = str(said)[:60]
        if key not in self.odd:
            print(f"\n=== seed {case.seed}: -t\n    nginx:  {said[0]}\n    bolide: {said[1]}")
            if self.options.text:
                print(case.conf.text(0))
        self.odd.add(key)

    def batch(self, seeds: range) -> None:
        """Compares the cases of these seeds."""
        make = wide_case_of if self.options.wide else case_of
        cases, odd = self.runner.valid(make(seed, self.options.requests) for seed in seeds)
        self.valid += len(cases)
        for case, said in odd:
            self.tell_odd(case, said)
        found, words = self.runner.differences(cases)
        if found is None:
            print(f"=== seeds to {seeds.stop}: does not start: {words}")
            return
        for case, differences in zip(cases, found, strict=True):
            if differences:
                kind = kind_of(differences[0], case.requests)
                self.shown[kind] += 1
                if self.shown[kind] <= self.options.each:
                    show(self.runner, case, differences, not self.options.raw)

    def run(self) -> int:
        """Searches until the seeds or the seconds are over; the exit status."""
        deadline = time.monotonic() + self.options.seconds
        seed, end = self.options.start, self.options.start + self.options.seeds
        while time.monotonic() < deadline and seed < end:
            self.batch(range(seed, min(seed + self.options.batch, end)))
            seed = min(seed + self.options.batch, end)
        print(
            f"\n{seed - self.options.start} seeds, {self.valid} valid configurations, "
            f"{self.runner.requests // 2} requests, {self.runner.starts} starts, "
            f"{self.shown.total()} cases differ"
        )
        for kind, count in self.shown.most_common():
            print(f"  {count} x {kind}")
        return 1 if self.shown or self.odd else 0


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="explore", description=__doc__)
    parser.add_argument("--bolide", default=str(ROOT / "target/debug/bolide"))
    parser.add_argument("--nginx", default=shutil.which("nginx-sid"))
    parser.add_argument(
        "--ports", nargs=2, type=int, default=[17100, 17110], help="multiples of 10"
    )
    parser.add_argument("--from", dest="start", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=25)
    parser.add_argument("--batch", type=int, default=30)
    parser.add_argument("--each", type=int, default=2, help="cases shown of one kind")
    parser.add_argument(
        "--wide", action="store_true", help="caches, TLS, HTTP/2 and HTTP/3, by turns"
    )
    parser.add_argument("--raw", action="store_true", help="do not make cases smaller")
    parser.add_argument(
        "--text", action="store_true", help="show configurations that are refused differently"
    )
    return parser.parse_args()


def main() -> int:
    """Searches; the exit status."""
    options = arguments()
    if not options.nginx or not Path(options.nginx).exists():
        sys.exit("missing tool: nginx-sid (run scripts/setup.sh test)")
    # Some of them add files.
    sites.load()
    home = Path(tempfile.mkdtemp(prefix="bolide-explore-"))
    home.chmod(0o755)
    origin = None
    try:
        files.fill(home)
        if options.wide:
            client_certs.fill(home)
        places = Origins(options.ports[0] + 8)
        origin = Origin(places.port)
        programs = [
            Program("nginx", options.nginx, options.ports[0], home, places),
            Program("bolide", options.bolide, options.ports[1], home, places),
        ]
        user = "user root;" if os.getuid() == 0 else ""
        return Search(Runner(programs, user), options).run()
    finally:
        if origin:
            origin.stop()
        shutil.rmtree(home, ignore_errors=True)
