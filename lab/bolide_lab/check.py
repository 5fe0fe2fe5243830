"""Owns the README's performance section: what the newest kept results say, or the check fails.

Kept results are directories with a compressed `run.jsonl`, as `lab keep` leaves them: what only
lies on this machine does not count, and neither do quick runs, whose figures say too little.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from bolide_lab.catalogue import load_catalogue
from bolide_lab.records import RecordsError
from bolide_lab.report import data, markdown
from bolide_lab.report.source import KEPT

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
RESULTS = ROOT / "lab" / "results"
NOTHING = (
    "No full run is kept in `lab/results` yet, so there is no table here: `lab run --name NAME`, "
    "`lab keep DIR` and `lab check --write` put it here."
)


class CheckError(RecordsError):
    """The check cannot be made; the text says why and what to do."""


def directories(results: Path) -> list[Path]:
    """The directories of kept runs below `results`, oldest name first."""
    if not results.is_dir():
        return []
    return sorted(
        path for path in results.iterdir() if any((path / name).exists() for name in KEPT)
    )


def newest(paths: Iterable[Path]) -> data.Run | None:
    """The newest full samples of every scenario, as one run; None if no full run is kept."""
    catalogue = load_catalogue()
    read = [data.read(path, catalogue, KEPT) for path in paths]
    for run in read:
        if run.unreadable:
            lines = f"{run.unreadable} lines are damaged or of another version"
            raise CheckError(f"{RESULTS.name}/{run.name}: {lines}")
    runs = [run for run in read if not run.quick and run.samples]
    if not runs:
        return None
    whole = data.merge(runs)
    whole.scenarios = {name: one for name, one in catalogue.items() if name in whole.scenarios}
    return whole


def section(run: data.Run | None) -> str:
    """What must stand between the markers: the tables, or that there are none."""
    return NOTHING if run is None else markdown.readme(run)


def replaced(text: str, section: str) -> str:
    """The README's text with `section` between the markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CheckError(f"the README has no lines {BEGIN} and {END} in this order")
    return f"{before}{BEGIN}\n{section.strip()}\n{END}{after}"


def check(write: bool = False, readme: Path = README, results: Path = RESULTS) -> tuple[bool, str]:
    """Whether the README says what it should, and in words how it is or where it differs.

    With `write` the README is brought up to date, and then it says so.
    Raises `CheckError` if there is no README, no markers in it, or a kept run is damaged.
    """
    if not readme.is_file():
        raise CheckError(f"{readme} does not exist: `lab check` is for the source tree of Bolide")
    old = readme.read_text(encoding="utf-8")
    run = newest(directories(results))
    new = replaced(old, section(run))
    wanted = f"the figures of {run.name}" if run else "no generated table"
    wanted += "" if run else f", as no full run is kept in {results}"
    if old == new:
        return True, f"{readme.name} has {wanted}"
    if write:
        readme.write_text(new, encoding="utf-8")
        return True, f"{readme.name} now has {wanted}"
    lines = (old.splitlines(), new.splitlines())
    diff = "\n".join(difflib.unified_diff(*lines, str(readme), "generated", lineterm="", n=1))
    return False, f"{readme.name} should have {wanted}; run: lab check --write\n{diff}"
