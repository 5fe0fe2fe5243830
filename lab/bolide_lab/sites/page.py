"""Owns two pages of PHP: one that is never kept, and one of 30 KB that every cache may keep."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from bolide_lab import machine
from bolide_lab.model import Scenario
from bolide_lab.sites.base import Served
from bolide_lab.sites.php import Fpm, Origin, Service
from bolide_lab.sites.static import write

HELLO = b"<?php header('Cache-Control: no-store'); echo 'hello';\n"
HEAD = b"<?php header('Cache-Control: public, max-age=3600'); ?>\n"
PAGE_BYTES = 30_000
# With weights that fall as those of words do, gzip makes a fifth of them, as of real pages.
LETTERS = "etaoinshrdlucmfwypvbgk"
WORDS_COUNT = 900
ORIGIN_PORT = 8090


class PageSite:
    """The pages, with their php-fpm and an origin for caches that ask by HTTP."""

    name = "page"

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._services: list[Service] = []

    def start(self, directory: Path, core: int) -> Served:
        """Starts PHP and the origin on the client's core, for their time is not measured."""
        root = directory / "site"
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o755)
        write(root / "hello.php", HELLO)
        write(root / "page.php", HEAD + page_text(random.Random(7)).encode())
        prefix = ("taskset", "-c", str(core))
        fpm = Fpm(directory / "fpm", children=4, prefix=prefix)
        port = machine.free_port(ORIGIN_PORT)
        origin = Origin(directory / "origin", root, fpm.socket, port, prefix)
        for service in (fpm, origin):
            service.start()
            self._services.append(service)
        helpers = tuple(pid for service in self._services for pid in service.pids())
        return Served(root, fpm.socket, f"127.0.0.1:{port}", helpers=helpers)

    def reset(self, scenario: Scenario) -> None:
        """Nothing is kept but by servers, each of which begins anew."""

    def during(self, scenario: Scenario, server: str, host: str, port: int) -> Callable[[], None]:
        """Nothing happens beside the load."""
        return lambda: None

    def stop(self) -> None:
        """Ends PHP and the origin."""
        for service in reversed(self._services):
            service.stop()
        self._services = []


def page_text(rng: random.Random) -> str:
    """30 KB that gzip makes a fifth of, as it does of pages of real sites."""
    words = ["".join(rng.choices(LETTERS, k=rng.randint(2, 10))) for _ in range(WORDS_COUNT)]
    weights = [1 / (n + 3) for n in range(len(words))]
    text = "<!DOCTYPE html><html><head><title>Page</title></head><body>\n"
    while len(text) < PAGE_BYTES:
        item = " ".join(rng.choices(words, weights, k=14))
        title = words[len(text) % WORDS_COUNT]
        link = f'<a href="/archive/{rng.randint(100, 999)}/" rel="bookmark">{title}</a>'
        text += (
            '<article class="post type-post status-publish">'
            f'<h2 class="entry-title">{link}</h2>'
            f'<div class="entry-content"><p>{item}</p></div></article>\n'
        )
    return text + "</body></html>\n"
