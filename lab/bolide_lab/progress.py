"""Owns what a run shows while it runs: a line for each sample, a bar, the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from bolide_lab.plan import duration

WIDTH = 24


class Progress:
    """The time left is the estimate of what remains, by how right it was so far."""

    def __init__(self, estimates_s: Sequence[float], out: TextIO = sys.stderr) -> None:
        """One estimate for each sample, in their order."""
        self.estimates_s, self.out = list(estimates_s), out
        self.done = 0
        self.spent_s = 0.0
        self.expected_s = 0.0
        self.is_terminal = out.isatty()
        self._started_s = 0.0

    def begin(self, what: str) -> None:
        """A sample begins."""
        self._started_s = time.monotonic()
        if self.is_terminal:
            self.out.write(f"\r\x1b[K{bar(self.done, len(self.estimates_s))} ")
            self.out.write(f"{duration(self.left_s())} left  {what}")
            self.out.flush()

    def end(self, what: str, result: str | None) -> None:
        """A sample has ended; None shows nothing."""
        took = time.monotonic() - self._started_s
        if result is not None and not result.startswith("OUT"):
            self.spent_s += took
            self.expected_s += self.estimates_s[self.done]
        self.done += 1
        if result is None:
            return
        if self.is_terminal:
            self.out.write("\r\x1b[K")
        count = f"{self.done}/{len(self.estimates_s)}"
        self.out.write(f"[{count:>9}] {what:34} {result}  ({duration(self.left_s())} left)\n")
        self.out.flush()

    def left_s(self) -> float:
        """Seconds that the rest will take."""
        rest = sum(self.estimates_s[self.done :])
        return rest * (self.spent_s / self.expected_s if self.expected_s > 0 else 1.0)

    def close(self) -> None:
        """Nothing more is shown."""
        if self.is_terminal:
            self.out.write("\r\x1b[K")
            self.out.flush()


def bar(done: int, whole: int) -> str:
    """`[#####.....]  50 %`."""
    share = done / whole if whole else 1.0
    full = int(share * WIDTH)
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {share * 100:3.0f} %"
