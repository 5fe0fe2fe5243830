"""Owns what a scenario is called: the catalogue's title, filled with what the load says.

A title holds `{file}`, `{requests}` or `{connections}` where a shortened load changes it, so that a
shortened run cannot have the title of the full one. What is shorter stands behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from bolide_lab.catalogue import quick_form
from bolide_lab.model import Load, Scenario

SIZES = {"k": "KB", "m": "MB", "g": "GB"}
# The lines that `shorten.words` makes, as they are kept in the notes of a run.
NOTE = re.compile(r"([\w-]+): (.+)\.")
CONNECTIONS = re.compile(r"(\d+) connections, not ")
FILE = re.compile(r"the file (\S+) instead of ")
SECONDS = re.compile(r"([\d.]+) s instead of ")
REQUESTS = re.compile(r"(\d+) requests instead of ")


def full(scenario: Scenario) -> str:
    """The title of a scenario whose load is its own."""
    load = scenario.load
    return scenario.title.format(
        file=_size(load.url), requests=_requests(load), connections=f"{load.connections:,}"
    )


def of_run(scenario: Scenario, load: Load) -> str:
    """The title of a scenario that was run with this load, which may be shorter than its own."""
    title = full(replace(scenario, load=load))
    pairs = [
        (_size(load.url), _size(scenario.load.url)),
        (f"{load.connections:,} connections", f"{scenario.load.connections:,} connections"),
        (_length(load), _length(scenario.load)),
    ]
    said = [f"{now} instead of {then}" for now, then in pairs if now != then]
    return title + (f" (shortened: {', '.join(said)})" if said else "")


def load_of(
    scenario: Scenario, notes: Mapping[str, str], quick: bool, seconds: float | None
) -> Load:
    """The load that a run had by its plan and its notes, which are by scenario."""
    form = quick_form(scenario) if quick else None
    load = form.load if form else scenario.load
    if seconds and load.seconds is not None:
        load = replace(load, seconds=seconds)
    said = notes.get(scenario.id, "")
    if found := FILE.search(said):
        load = replace(load, url=f"/{found[1]}")
    if found := CONNECTIONS.search(said):
        load = replace(load, connections=int(found[1]))
    if found := SECONDS.search(said):
        load = replace(load, seconds=float(found[1]), requests=None)
    if found := REQUESTS.search(said):
        load = replace(load, requests=int(found[1]), seconds=None)
    return load


def notes_of(texts: list[str]) -> dict[str, str]:
    """What was shorter, by scenario, among the notes of a run."""
    return {found[1]: found[2] for text in texts if (found := NOTE.fullmatch(text))}


def _size(url: str) -> str:
    found = re.fullmatch(r"(\d+)([kmg])", url.rpartition("/")[2])
    return f"{found[1]} {SIZES[found[2]]}" if found else url


def _requests(load: Load) -> str:
    return _length(load) if load.requests is None else f"{load.requests:,} requests"


def _length(load: Load) -> str:
    return f"{load.seconds:g} s" if load.seconds is not None else f"{load.requests:,} requests"
