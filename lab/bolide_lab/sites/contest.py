"""Owns a dynamic site in a run: started once; learns before each server which cache it drives."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from bolide_lab import machine
from bolide_lab.model import Scenario, Variant
from bolide_lab.sites.base import Served, SiteError
from bolide_lab.sites.pages import DynamicSite, caching

CHILDREN = 5
PURGED_TAG = "CAT_C_7"


class ContestSite:
    """A `DynamicSite` as the run knows sites."""

    name: str
    makes: ClassVar[type[DynamicSite]]
    lists: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._one: DynamicSite | None = None

    @property
    def one(self) -> DynamicSite:
        """The site that is up."""
        if self._one is None:
            raise SiteError(f"{self.name} is not started")
        return self._one

    def start(self, directory: Path, core: int) -> Served:
        """Starts PHP, on the client's core, and what it needs."""
        self._one = self.makes(directory, CHILDREN, ("taskset", "-c", str(core)))
        self.one.start()
        self._core = core
        return self._served(None, {})

    def _served(self, origin: str | None, rules: dict[str, str]) -> Served:
        one = self.one
        services = [*one.services(), *([one.origin] if one.origin else [])]
        return Served(
            root=one.root,
            php=one.fpm.socket,
            origin=origin,
            rules=rules,
            urls={name: one.urls_file(name) for name in self.lists},
            helpers=tuple(pid for service in services for pid in service.pids()),
        )

    def serve_with(self, server: str, variant: Variant, prefix: Sequence[str] = ()) -> Served:
        """Makes the site ready for one server; `prefix` leads into the server's namespace."""
        where = ("taskset", "-c", str(self._core), *prefix)
        serving = self.one.serve_with(server, variant, machine.free_port(8081), where)
        return self._served(serving.origin, serving.rules)

    def cache_of(self, server: str, variant: Variant) -> str:
        """How the server caches pages, in words."""
        return caching(server, variant)[1]

    def reset(self, scenario: Scenario) -> None:
        """No copies on disk; the servers' own caches begin empty with each start."""
        self.one.forget_copies()

    def during(self, scenario: Scenario, server: str, host: str, port: int) -> Callable[[], None]:
        """Purges beside the load, as many as `purge_per_s` says."""
        rate = float(scenario.load.extra.get("purge_per_s", 0))
        if rate <= 0:
            return lambda: None
        ended = threading.Event()

        def purge() -> None:
            while not ended.wait(1 / rate):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    purge_once(server, host, port)

        thread = threading.Thread(target=purge, daemon=True)
        thread.start()

        def end() -> None:
            ended.set()
            thread.join(10)

        return end

    def stop(self) -> None:
        """Ends all processes."""
        one, self._one = self._one, None
        if one is not None:
            one.stop()


def purge_once(server: str, host: str, port: int) -> int:
    """Says that a tag has changed, in the server's words; its status.

    nginx, HAProxy and mod_cache know no purges: with them pages only live until their time is over.
    """
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        if server == "vinyl":
            connection.request("PURGE", "/", headers={"X-Tags": PURGED_TAG})
        else:
            connection.request("GET", f"/purge.php?tag={PURGED_TAG}")
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()
