"""Owns: the command that runs histories by seed, and tells how one came to a violation."""

import argparse
import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from .history import History
from .site import HOST, OTHER_HOST

# Histories at a time, with three ports each.
TOGETHER = 3


def report(history: History) -> None:
    """Prints what was violated, and how it came to that."""
    first = {one.check: one for one in reversed(history.journal.violations)}
    for violation in first.values():
        print(f"seed {history.seed}: `{violation.check}` is violated: {violation.text}")
        said = f"VIOLATION of `{violation.check}`: {violation.text}"
        for text in history.journal.last(violation.page, said):
            print(f"    {text}")
        page = history.pages.all.get(violation.page)
        print(f"    {page}")
    if more := len(history.journal.violations) - len(first):
        print(f"seed {history.seed}: {more} further violations")


def arguments() -> argparse.Namespace:
    """What the command was given."""
    parser = argparse.ArgumentParser(description="Random histories of cached sites, by seed")
    parser.add_argument("--bolide", required=True, help="the program, an absolute path")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--port", type=int, default=17_900, help="the first of nine free ports")
    parser.add_argument("--chaos", action="store_true", help="reloads, upgrades and kills")
    parser.add_argument(
        "--wide",
        action="store_true",
        help="also URL purges of pages with No-Vary-Search and of shared fragments, and public "
        "inlines in private pages",
    )
    parser.add_argument("--verbose", action="store_true", help="prints every event")
    return parser.parse_args()


async def lived(args: argparse.Namespace, seed: int, port: int) -> History:
    """The history of a seed, at its end."""
    home = Path(tempfile.mkdtemp(prefix="histories."))
    home.chmod(0o755)
    try:
        history = History(args, seed, home, port)
        await history.run()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return history


def certify(path: Path) -> None:
    """Makes a certificate for both hosts, in one file with its key."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-noenc", "-days", "2", "-subj", f"/CN={HOST}", "-keyout", str(path), "-out", "-"]
    command += ["-addext", f"subjectAltName=DNS:{HOST},DNS:{OTHER_HOST}"]
    made = subprocess.run(command, check=True, capture_output=True)
    with path.open("ab") as file:
        file.write(made.stdout)


async def all_of(args: argparse.Namespace) -> int:
    """Runs all seeds, a few at a time because they often wait; whether one failed."""
    counts: Counter[str] = Counter()
    failed: list[int] = []
    together = 1 if args.verbose else TOGETHER
    end = args.first + args.count
    for first in range(args.first, end, together):
        seeds = range(first, min(first + together, end))
        ports = range(args.port, args.port + 3 * together, 3)
        lives = [lived(args, seed, port) for seed, port in zip(seeds, ports, strict=False)]
        for history in await asyncio.gather(*lives):
            report(history)
            counts.update(history.counts)
            if history.journal.violations:
                failed.append(history.seed)
    happened = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if number)
    print(f"{args.count} seeds, {len(failed)} with violations {failed or ''}: {happened}")
    return 1 if failed else 0


def main() -> int:
    """The command; it leaves no server behind when it is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="histories.") as home:
        args.certificate = f"{home}/certificate"
        certify(Path(args.certificate))
        return asyncio.run(all_of(args))
