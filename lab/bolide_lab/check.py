"""Owns the README's performance section: it says what the newest results say, or the check fails.

Quick runs do not count: what they measure is not enough to be printed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from bolide_lab.catalogue import load_catalogue
from bolide_lab.records import RecordsError
from bolide_lab.report import data, markdown

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
RESULTS = ROOT / "lab" / "results"


class CheckError(RecordsError):
    """The check cannot be made; the text says why and what to do."""


def directories(results: Path) -> list[Path]:
    """The run directories below `results`, oldest name first."""
    if not results.is_dir():
        return []
    return sorted(
        path for path in results.iterdir() if any((path / name).exists() for name in data.FILES)
    )


def newest(paths: Iterable[Path]) -> data.Run:
    """The newest full samples of every scenario, as one run."""
    catalogue = load_catalogue()
    runs = [run for path in paths if not (run := data.read(path, catalogue)).quick and run.samples]
    if not runs:
        raise CheckError(f"no full run below {RESULTS}: `lab run --name NAME` makes one")
    whole = data.merge(runs)
    whole.scenarios = {name: one for name, one in catalogue.items() if name in whole.scenarios}
    return whole


def replaced(text: str, section: str) -> str:
    """The README's text with `section` between the markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CheckError(f"the README has no lines {BEGIN} and {END} in this order")
    return f"{before}{BEGIN}\n{section.strip()}\n{END}{after}"


def check(write: bool = False, readme: Path = README, results: Path = RESULTS) -> str:
    """The difference between the README and what it should be; "" if there is none.

    With `write` the README is brought up to date, and then there is none.
    Raises `CheckError` if there are no results or no markers.
    """
    old = readme.read_text(encoding="utf-8")
    new = replaced(old, markdown.readme(newest(directories(results))))
    if old == new:
        return ""
    if write:
        readme.write_text(new, encoding="utf-8")
        return ""
    lines = (old.splitlines(), new.splitlines())
    return "\n".join(difflib.unified_diff(*lines, str(readme), "generated", lineterm="", n=1))
