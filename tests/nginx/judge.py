"""Owns: the count of what was compared, and the verdict at the end."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from .allowed import headings, must_excuse, reason_for
from .answers import blame, is_same
from .program import Program

ROOT = Path(__file__).parents[2]
# On a busy machine one of the two may be late for the other; what differs, differs each time.
TRIES = 3


class Judge:
    """Counts cases and tells excused differences from others."""

    def __init__(self, verbose: bool) -> None:
        self.cases, self.configs, self.failures, self.excused = 0, 0, 0, 0
        self.used: set[tuple[str, str]] = set()
        self.verbose = verbose
        self.told: list[str] = []

    def compare(self, key: str, wanted: Sequence[str], found: Sequence[str]) -> None:
        """Counts one case, and what differs in it."""
        self.cases += 1
        if self.verbose:
            print(f"== {key}\n   " + "\n   ".join(wanted))
        if len(wanted) == len(found) and all(map(is_same, wanted, found)):
            return
        if excuse := reason_for(key):
            self.excused += 1
            self.used.add(excuse)
            return
        self.failures += 1
        self.told.append(f"DIFFERS {key}")
        self.told += [f"    {line}" for line in blame(wanted, found)]

    def add(self, other: "Judge") -> None:
        """What another found, that compared something else meanwhile."""
        self.cases, self.configs = self.cases + other.cases, self.configs + other.configs
        self.failures, self.excused = self.failures + other.failures, self.excused + other.excused
        self.used |= other.used
        self.told += other.told

    def steadily(
        self, compare: Callable[["Judge"], None], programs: Sequence[Program], tries: int = TRIES
    ) -> None:
        """Compares anew while something differs, at most `tries` times; the last counts."""
        for _ in range(tries):
            trial = Judge(self.verbose)
            try:
                compare(trial)
            except (OSError, subprocess.SubprocessError) as error:
                trial.failures += 1
                trial.told.append(f"NOT COMPARED: {error!r}")
            if not trial.failures:
                break
            for program in programs:
                program.forget()
        self.add(trial)

    def finish(self, gaps: Sequence[str] | None, thorough: bool) -> int:
        """Says what was found; the exit status. `gaps` is nothing if only a part was compared."""
        print("\n".join(self.told))
        wrong = unsaid()
        if gaps is not None:
            stale = sorted(must_excuse(thorough) - self.used)
            wrong += [*gaps, *(f"EXCUSES NOTHING {pattern} ({title})" for title, pattern in stale)]
        for line in wrong:
            print(line)
        print(
            f"{self.configs} configurations, {self.cases} cases, {self.failures} unexpected "
            f"differences, {self.excused} excused"
        )
        return 1 if self.failures or wrong else 0


def unsaid() -> list[str]:
    """Headings that the document does not have."""
    doc = (ROOT / "docs/differences-from-nginx.md").read_text()
    missing = sorted(heading for heading in headings() if f"\n## {heading}\n" not in doc)
    return [f"NOT IN docs/differences-from-nginx.md: ## {heading}" for heading in missing]
