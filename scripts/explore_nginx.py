#!/usr/bin/env python3
"""Owns: the search for situations in which Bolide and the real nginx differ.

Makes random configurations and requests from seeds, runs them on both, and prints every difference
that explore/known.py does not explain, made small.

    explore_nginx.py --bolide PATH --nginx PATH [--from SEED] [--seeds N] [--seconds N] [--show SEED]
"""
import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare import ssi  # noqa: E402, F401
from compare.answers import blame  # noqa: E402
from compare.files import fill  # noqa: E402
from compare.origin import Origin  # noqa: E402
from compare.program import Program  # noqa: E402
from explore.run import Runner, case_of, kind_of, shrink  # noqa: E402

ROOT = Path(__file__).parent.parent


class Places:
    """What both programs replace in their configurations."""

    def __init__(self, port):
        self.port, self.origin = port, f"127.0.0.1:{port}"

    def expand(self, text):
        return text

    def normalise(self, text):
        return text.replace(self.origin, "ORIGIN").replace(str(self.port), "OPORT")


def show(runner, case, differences, shrinking):
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


def origin_says(target):
    try:
        return repr(bytes.fromhex(target.partition("raw/")[2].partition("?")[0]))[:500]
    except ValueError:
        return "?"


def explore(runner, options):
    end, seed = time.monotonic() + options.seconds, options.start
    shown, odd_seen, taken = {}, set(), 0
    while time.monotonic() < end and seed < options.start + options.seeds:
        cases = [case_of(one, options.requests) for one in range(seed, min(seed + options.batch, options.start + options.seeds))]
        seed += len(cases)
        cases, odd = runner.valid(cases)
        taken += len(cases)
        for case, said in odd:
            key = str(said)[:60]
            if key not in odd_seen:
                print(f"\n=== seed {case.seed}: -t\n    nginx:  {said[0]}\n    bolide: {said[1]}")
                if "--text" in sys.argv:
                    print(case.conf.text(0))
            odd_seen.add(key)
        found, said = runner.differences(cases)
        if cases and found is None:
            print(said)
        if found is None:
            print(f"=== seeds to {seed}: does not start: {said}")
            continue
        for case, differences in zip(cases, found, strict=True):
            if differences:
                kind = kind_of(differences[0], case.requests)
                shown[kind] = shown.get(kind, 0) + 1
                if shown[kind] <= options.each:
                    show(runner, case, differences, not options.raw)
    print(f"\n{seed - options.start} seeds, {taken} valid configurations, {runner.requests // 2} requests, {runner.starts} starts, {sum(shown.values())} cases differ")
    for kind, count in sorted(shown.items(), key=lambda row: -row[1]):
        print(f"  {count} x {kind}")
    return 1 if shown or odd_seen else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bolide", default=str(ROOT / "target/debug/bolide"))
    parser.add_argument("--nginx", default=shutil.which("nginx-sid"))
    parser.add_argument("--ports", nargs=2, type=int, default=[17100, 17110], help="multiples of 10")
    parser.add_argument("--from", dest="start", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=25)
    parser.add_argument("--batch", type=int, default=30)
    parser.add_argument("--each", type=int, default=2, help="cases shown of one kind")
    parser.add_argument("--raw", action="store_true", help="do not make cases smaller")
    parser.add_argument("--text", action="store_true", help="show configurations that are refused differently")
    options = parser.parse_args()
    if not options.nginx or not Path(options.nginx).exists():
        sys.exit("missing tool: nginx-sid (run scripts/setup.sh test)")
    home = Path(tempfile.mkdtemp(prefix="bolide-explore-"))
    home.chmod(0o755)
    origin = None
    try:
        fill(home)
        places = Places(options.ports[0] + 8)
        origin = Origin(places.port)
        programs = [Program("nginx", options.nginx, options.ports[0], home, places),
                    Program("bolide", options.bolide, options.ports[1], home, places)]
        return explore(Runner(programs, "user root;" if os.getuid() == 0 else ""), options)
    finally:
        if origin:
            origin.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
