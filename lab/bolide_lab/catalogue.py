"""Owns the reading of `scenarios/*.toml` into scenarios, and the choice among them.

A file may begin with a table `[common]`: what all its scenarios share. A scenario's own
words win, tables are merged word by word, and its `faults` are added to the common ones.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bolide_lab.model import GROUPS, PROTOCOLS, SITES, LinkSpec, Load, Published, Scenario

DIRECTORY = Path(__file__).parent / "scenarios"
LOAD_WORDS = {f.name for f in fields(Load)}
SCENARIO_WORDS = {f.name for f in fields(Scenario)}
QUICK_WORDS = LOAD_WORDS | {"repetitions", "skip", "warmup"}


class CatalogueError(Exception):
    """A scenario file says something that cannot be meant; the text says where."""


def load_catalogue(directory: Path = DIRECTORY) -> dict[str, Scenario]:
    """All scenarios by id, in the order of the catalogue: Q, B, C, M, own."""
    found: dict[str, Scenario] = {}
    for path in sorted(directory.glob("*.toml")):
        for scenario in read_file(path):
            if scenario.id in found:
                raise CatalogueError(f"{path.name}: {scenario.id} is there twice")
            found[scenario.id] = scenario
    order = sorted(found.values(), key=lambda s: GROUPS.index(s.group))
    return {s.id: s for s in order}


def read_file(path: Path) -> list[Scenario]:
    """The scenarios of one file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{path.name}: {error}") from error
    common = data.get("common", {})
    return [_scenario(merge(common, one), path.name) for one in data.get("scenario", [])]


def merge(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`own` over `common`; tables word by word; `faults` one after the other."""
    out = dict(common)
    for word, value in own.items():
        before = out.get(word)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            out[word] = merge(before, value)
        elif word == "faults":
            out[word] = [*(before or []), *value]
        else:
            out[word] = value
    return out


def _scenario(data: dict[str, Any], where: str) -> Scenario:
    name = data.get("id", "?")
    try:
        _known(data, SCENARIO_WORDS, name)
        _known(data.get("quick", {}), QUICK_WORDS, f"{name}.quick")
        load = _load(data["load"], f"{name}.load")
        link = LinkSpec(**data["link"]) if data.get("link") else None
        warmup = None
        if data.get("warmup"):
            warmup = _load(_warmup(data["load"], data["warmup"]), f"{name}.warmup")
        scenario = Scenario(
            id=name,
            title=data["title"],
            group=data["group"],
            site=data["site"],
            load=load,
            link=link,
            servers=tuple(data["servers"]),
            original_config=data.get("original_config", False),
            published=tuple(Published(**p) for p in data.get("published", [])),
            metric=data["metric"],
            higher_is_better=data["higher_is_better"],
            warmup=warmup,
            repetitions=data["repetitions"],
            quick=data.get("quick", {}),
            faults=tuple(data.get("faults", [])),
            expects_body=data.get("expects_body"),
        )
    except (KeyError, TypeError) as error:
        raise CatalogueError(f"{where}: {name}: {error}") from error
    for word, value, allowed in (
        ("group", scenario.group, GROUPS),
        ("site", scenario.site, SITES),
        ("protocol", load.protocol, PROTOCOLS),
    ):
        if value not in allowed:
            raise CatalogueError(f"{where}: {name}: {word} {value!r} is none of {allowed}")
    return scenario


def _load(data: Mapping[str, Any], where: str) -> Load:
    _known(data, LOAD_WORDS, where)
    return Load(
        **{
            "requests": None,
            "seconds": None,
            **data,
            "headers": tuple(data.get("headers", ())),
        }
    )


def _warmup(load: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The load, as long as the warm-up says: its requests or its seconds, not both."""
    words = merge(load, own)
    for said, other in (("requests", "seconds"), ("seconds", "requests")):
        if said in own and other not in own:
            words[other] = None
    return words


def _known(data: Mapping[str, Any], words: set[str], where: str) -> None:
    unknown = sorted(set(data) - words)
    if unknown:
        raise CatalogueError(f"{where}: unknown word {unknown[0]!r}")


def choose(catalogue: Mapping[str, Scenario], wanted: Iterable[str]) -> list[Scenario]:
    """Scenarios by ids (`Q1a`), beginnings of ids (`Q1`), groups (`B`); all for none.

    Raises `CatalogueError` for a word that chooses nothing.
    """
    words = list(wanted)
    if not words:
        return list(catalogue.values())
    chosen: set[str] = set()
    for word in words:
        hits = {s.id for s in catalogue.values() if word in (s.id, s.group)}
        if not hits:
            start = re.compile(re.escape(word) + r"(?![0-9])")
            hits = {i for i in catalogue if start.match(i)}
        if word == "static":
            hits = {s.id for s in catalogue.values() if s.site == "static"}
        if not hits:
            raise CatalogueError(f"no scenario {word!r}; there are {', '.join(catalogue)}")
        chosen |= hits
    return [s for s in catalogue.values() if s.id in chosen]


def quick_form(scenario: Scenario) -> Scenario | None:
    """The short form of a scenario; None when it has none."""
    if scenario.quick.get("skip"):
        return None
    load_words = {k: v for k, v in scenario.quick.items() if k in LOAD_WORDS}
    if "seconds" in load_words:
        load_words.setdefault("requests", None)
    if "requests" in load_words:
        load_words.setdefault("seconds", None)
    if "extra" in load_words:
        load_words["extra"] = {**scenario.load.extra, **load_words["extra"]}
    warmup = scenario.warmup
    if warmup is not None:
        words = dict(scenario.quick.get("warmup", {}))
        for shared in ("url", "connections", "extra"):
            if shared in load_words:
                words.setdefault(shared, load_words[shared])
        if "seconds" in words:
            words["requests"] = None
        elif "requests" in words:
            words["seconds"] = None
        warmup = replace(warmup, **words)
    return replace(
        scenario,
        load=replace(scenario.load, **load_words),
        warmup=warmup,
        repetitions=scenario.quick.get("repetitions", scenario.repetitions),
    )
