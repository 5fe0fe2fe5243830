"""Owns a run directory: `run.jsonl`, appended line by line, never overwritten.

Each line is one JSON object with a `kind`: machine, version, config, body-check, sample,
excluded, note. A line is on the disk before `append` returns. A line that a crash cut in two is
closed when the run resumes and skipped when it is read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from bolide_lab.model import Sample, sample_from_json, sample_to_json

FILE = "run.jsonl"
KINDS = ("machine", "version", "config", "body-check", "sample", "excluded", "note")


class RecordsError(Exception):
    """The run directory cannot be used; the text says why."""


class Records:
    """The lines of one run, open for more."""

    def __init__(self, directory: Path) -> None:
        """Opens an existing run directory; `create` and `resume` are the ways in."""
        self.directory = directory
        self.path = directory / FILE
        self._out = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        if not _ends_with_newline(self.path):
            os.write(self._out, b"\n")

    @classmethod
    def create(cls, results: Path, date: str, name: str) -> Records:
        """A new run directory DATE-NAME below `results`; numbered if that is taken."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
        for number in range(1, 1000):
            directory = results / (f"{date}-{plain}" + (f"-{number}" if number > 1 else ""))
            try:
                directory.mkdir(parents=True)
            except FileExistsError:
                continue
            return cls(directory)
        raise RecordsError(f"{results} has a thousand runs named {date}-{plain}")

    @classmethod
    def resume(cls, directory: Path) -> Records:
        """A run that was begun before."""
        if not (directory / FILE).is_file():
            raise RecordsError(f"{directory} has no {FILE}: nothing to resume")
        return cls(directory)

    def append(self, kind: str, **words: Any) -> None:
        """Writes one line and waits until it is on the disk."""
        if kind not in KINDS:
            raise RecordsError(f"no such kind of line: {kind}")
        self._write({"kind": kind, **words})

    def sample(self, sample: Sample) -> None:
        """Writes one sample."""
        self._write(sample_to_json(sample))

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        data = text.encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]
        os.fsync(self._out)

    def close(self) -> None:
        """No more lines."""
        if self._out >= 0:
            os.close(self._out)
            self._out = -1

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_lines(directory: Path) -> Iterator[dict[str, Any]]:
    """The lines of a run; what is no JSON object is skipped."""
    with (directory / FILE).open(encoding="utf-8", errors="replace") as source:
        for text in source:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line


def samples(directory: Path) -> list[Sample]:
    """The samples of a run, in the order they were taken."""
    return [sample_from_json(line) for line in read_lines(directory) if line["kind"] == "sample"]


def done_keys(directory: Path) -> set[tuple[str, str, str, int]]:
    """What a resumed run need not do again."""
    return {sample.key() for sample in samples(directory)}


def first(directory: Path, kind: str) -> dict[str, Any] | None:
    """The first line of a kind."""
    return next((line for line in read_lines(directory) if line.get("kind") == kind), None)


def _ends_with_newline(path: Path) -> bool:
    size = path.stat().st_size
    if size == 0:
        return True
    with path.open("rb") as source:
        source.seek(size - 1)
        return source.read(1) == b"\n"
