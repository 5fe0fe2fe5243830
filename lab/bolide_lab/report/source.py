"""Owns the file of a run directory: plain or compressed, whole or damaged, as lines of JSON."""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from bolide_lab.records import RecordsError

KEPT = ("run.jsonl.gz", "run.jsonl.xz")
FILES = ("run.jsonl", *KEPT)


class UnreadableError(RecordsError):
    """A run directory that nothing can be made of; the text says why and what to do."""


def file_of(directory: Path, files: Iterable[str] = FILES) -> Path:
    """The file that holds a run. Raises `UnreadableError` if there is none."""
    if not directory.is_dir():
        what = "is a file, not a run's directory" if directory.exists() else "does not exist"
        raise UnreadableError(f"{directory} {what}; runs are in lab/results/DATE-NAME")
    for name in files:
        if (directory / name).is_file():
            return directory / name
    raise UnreadableError(f"{directory} has no run.jsonl, run.jsonl.gz or run.jsonl.xz")


def text_of(path: Path) -> str:
    """The whole text of a run's file."""
    with _open(path) as file:
        return file.read()


def lines(path: Path) -> Iterator[dict[str, Any] | str | None]:
    """The lines of a run's file: None for one that cannot be read, words where the rest is lost."""
    with _open(path) as file:
        try:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    line = None
                if line is not None or text.strip():
                    yield line if isinstance(line, dict) else None
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
            yield f"{path.name} is damaged, and was read until there: {error}"


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")
