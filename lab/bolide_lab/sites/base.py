"""Owns what a site is to a run: something that is served, with what servers need for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from bolide_lab.model import Scenario, Variant


class SiteError(Exception):
    """The site cannot be made on this machine; the text says why and what would help."""


@dataclass(frozen=True)
class Served:
    """What a started site gives: files, PHP, an origin, and configuration for servers.

    `urls` are lists of addresses by the name that scenarios use. `helpers` are processes whose
    CPU is not the server's and is reported apart.
    """

    root: Path
    php: Path | None = None
    origin: str | None = None
    rules: dict[str, str] = field(default_factory=dict)
    urls: dict[str, Path] = field(default_factory=dict)
    helpers: tuple[int, ...] = ()


class Site(Protocol):
    """A site is started once for all scenarios of it."""

    name: str

    def start(self, directory: Path, core: int) -> Served:
        """Makes it below `directory`; helpers run on `core`. Raises `SiteError`."""
        ...

    def reset(self, scenario: Scenario) -> None:
        """Makes it as it was before the first request, between two samples."""
        ...

    def during(self, scenario: Scenario, server: str, host: str, port: int) -> Callable[[], None]:
        """Begins what happens beside the load, purges for instance; the answer ends it."""
        ...

    def stop(self) -> None:
        """Ends its helpers."""
        ...


@runtime_checkable
class TellsCaches(Protocol):
    """A site that speaks to each server's cache in its own words."""

    def serve_with(self, server: str, variant: Variant, prefix: Sequence[str] = ()) -> Served:
        """Makes the site ready for one server; `prefix` leads into the server's namespace."""
        ...


def site(name: str) -> Site:
    """The site of that name: static, wordpress, shop, page. Raises `SiteError`."""
    from importlib import import_module

    words = {
        "static": "StaticSite",
        "wordpress": "WordPressSite",
        "shop": "ShopSite",
        "page": "PageSite",
    }
    try:
        module = import_module(f"bolide_lab.sites.{name}")
        made: Site = getattr(module, words[name])()
    except (ImportError, KeyError, AttributeError) as error:
        raise SiteError(f"no site {name!r}: {error}") from error
    return made
