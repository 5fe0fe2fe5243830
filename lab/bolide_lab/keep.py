"""Owns what is kept of a run: `run.jsonl.gz` and `report.html`, small enough for a repository.

Only the series of a second each are made coarser, and a line says so; every other line is the
run's own. The run's directory is left as it is.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bolide_lab.catalogue import load_catalogue
from bolide_lab.records import RecordsError
from bolide_lab.report import data, html, source

FILE = "run.jsonl.gz"
PAGE = "report.html"
SIZE_MAX = 3_000_000
# How many points a series keeps: the first of these with which the whole is small enough.
POINTS = (600, 300, 150, 75, 40)

Row = tuple[float, float, float]


class KeepError(RecordsError):
    """The run cannot be kept; the text says why."""


def keep(directory: Path, results: Path) -> list[str]:
    """Keeps a run below `results`, and says in sentences what was written.

    Raises `KeepError` where there is nothing to keep, where another run has the name, or where it
    does not fit into `SIZE_MAX` bytes.
    """
    catalogue = load_catalogue()
    run = data.read_full(directory, catalogue)
    path = source.file_of(directory)
    target = results / directory.resolve().name
    if path == target / FILE:
        raise KeepError(f"{directory} is kept already")
    if (target / FILE).exists() and data.read(
        target, catalogue, source.KEPT
    ).first_ms != run.first_ms:
        raise KeepError(f"{target / FILE} is another run: rename {directory}")
    for points in POINTS:
        packed = gzip.compress(thinned(source.text_of(path), points).encode(), 9, mtime=0)
        run.samples = [replace(one, series=coarser(one.series, points)) for one in run.samples]
        page = html.page(run).encode()
        if len(packed) + len(page) <= SIZE_MAX:
            break
    else:
        size = (len(packed) + len(page)) / 1e6
        raise KeepError(f"{directory} would be {size:.1f} MB, {SIZE_MAX / 1e6:.0f} are allowed")
    target.mkdir(parents=True, exist_ok=True)
    (target / FILE).write_bytes(packed)
    (target / PAGE).write_bytes(page)
    said = [f"{target / FILE} ({len(packed) / 1e6:.2f} MB), {PAGE} ({len(page) / 1e6:.2f} MB)"]
    if run.quick:
        said.append("a quick run: `lab check` does not count it")
    return said


def thinned(text: str, points: int) -> str:
    """The lines of a run, with series of at most `points` and a note if any was longer.

    Lines that are no JSON are dropped: a crash cut them.
    """
    out, most = [], 0
    for raw in text.splitlines():
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        series = line.get("series") if isinstance(line, dict) else None
        if isinstance(series, list) and len(series) > points:
            most = max(most, len(series))
            line["series"] = coarser([(row[0], row[1], row[2]) for row in series], points)
            raw = _dump(line)
        out.append(raw)
    if most:
        said = f"series over time of up to {most} points are kept as {points} at most"
        out.append(_dump({"kind": "note", "text": f"{said}: means of CPU, peaks of memory"}))
    return "\n".join(out) + "\n"


def coarser(series: Sequence[Row], points: int) -> tuple[Row, ...]:
    """At most `points` rows: each the last time, the mean CPU and the peak memory of several."""
    every = -(-len(series) // points)
    if every <= 1:
        return tuple(series)
    return tuple(_joined(series[place : place + every]) for place in range(0, len(series), every))


def _joined(rows: Sequence[Row]) -> Row:
    mean = sum(row[1] for row in rows) / len(rows)
    return (rows[-1][0], round(mean, 1), max(row[2] for row in rows))


def _dump(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))
