"""Owns the figures in the documents: what the newest kept results say, or the check fails.

Kept results are directories with a compressed `run.jsonl`, as `lab keep` leaves them: what only
lies on this machine does not count, and neither do quick runs, whose figures say too little.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path

from bolide_lab.catalogue import load_catalogue
from bolide_lab.records import RecordsError
from bolide_lab.report import data, markdown
from bolide_lab.report.source import KEPT

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
ROOT = Path(__file__).resolve().parents[2]
PAGES: dict[str, Callable[[data.Run], str]] = {
    "README.md": markdown.readme,
    "docs/PERFORMANCE.md": markdown.performance,
}
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


def section(run: data.Run | None, page: str) -> str:
    """What must stand between the markers of a page: its tables, or that there are none."""
    return NOTHING if run is None else PAGES[page](run)


def replaced(text: str, section: str) -> str:
    """A page's text with `section` between the markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CheckError(f"a page has no lines {BEGIN} and {END} in this order")
    return f"{before}{BEGIN}\n{section.strip()}\n{END}{after}"


def check(write: bool = False, root: Path = ROOT, results: Path = RESULTS) -> tuple[bool, str]:
    """Whether the pages say what they should, and in words how it is or where they differ.

    With `write` the pages are brought up to date, and then it says so.
    Raises `CheckError` if a page is missing or has no markers, or a kept run is damaged.
    """
    run = newest(directories(results))
    wanted = f"the figures of {run.name}" if run else "no generated table"
    wanted += "" if run else f", as no full run is kept in {results}"
    good, said = True, []
    for name in PAGES:
        page = root / name
        if not page.is_file():
            raise CheckError(f"{page} does not exist: `lab check` is for the source tree of Bolide")
        old = page.read_text(encoding="utf-8")
        new = replaced(old, section(run, name))
        if old == new:
            said.append(f"{name} has {wanted}")
        elif write:
            page.write_text(new, encoding="utf-8")
            said.append(f"{name} now has {wanted}")
        else:
            lines = (old.splitlines(), new.splitlines())
            diff = difflib.unified_diff(*lines, str(page), "generated", lineterm="", n=1)
            text = "\n".join(diff)
            said.append(f"{name} should have {wanted}; run: lab check --write\n{text}")
            good = False
    return good, "\n".join(said)
