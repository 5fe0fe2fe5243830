"""What happened: every job with its outcome, and the times in which the server had to refuse.

Owns the record that the verdict reads; judges nothing.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any


class Failure(Exception):
    """A job did not get what it asked for."""


@dataclass
class Failed:
    """A job that failed."""

    job: str
    at: float
    seconds: float
    why: str

    def row(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self)


@dataclass
class Book:
    """The record of a soak."""

    done: Counter[str] = field(default_factory=Counter)
    failed: list[Failed] = field(default_factory=list)
    crowds: list[tuple[float, float]] = field(default_factory=list)

    async def note(self, name: str, job: Callable[[], Awaitable[None]]) -> None:
        """Runs a job and writes down what came of it."""
        start, at = time.monotonic(), time.time()
        try:
            await job()
        except Exception as why:
            text = f"{type(why).__name__}: {why}" if not isinstance(why, Failure) else str(why)
            self.failed.append(Failed(name, at, round(time.monotonic() - start, 1), text))
        else:
            self.done[name] += 1

    def in_crowd(self, at: float) -> bool:
        """Whether a crowd had all descriptors at this time, give or take what logs round."""
        return any(begin - 1.5 <= at <= end + 2.5 for begin, end in self.crowds)
