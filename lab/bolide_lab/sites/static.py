"""Owns the static files: pages that compress, pictures that do not, and large files."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path

from bolide_lab.model import Scenario
from bolide_lab.plan import file_bytes
from bolide_lab.sites.base import Served

MIB = 1 << 20
WORDS = (
    *("server", "page", "cache", "request", "file", "protocol", "stream", "header", "frame"),
    *("window", "worker", "time", "thread", "socket", "reply", "byte", "load", "test", "table"),
)
OLD_UNIX = 1_700_000_000


class StaticSite:
    """Files that are the same on each machine; large ones are made when a scenario wants them."""

    name = "static"

    def start(self, directory: Path, core: int) -> Served:
        """The small files."""
        self.root = directory / "site"
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)
        write(self.root / "index.html", page(163, "Lab"), packed=True)
        for name, size in (("1kstatic", 1023), ("10kstatic", 10_230), ("100kstatic", 102_300)):
            write(self.root / f"{name}.html", page(size, name), packed=True)
        # What only the server can compress.
        write(self.root / "1kdynamic.html", page(1023, "1kdynamic"))
        write(self.root / "1knogzip.jpg", random.Random(9).randbytes(1024))
        return Served(self.root)

    def reset(self, scenario: Scenario) -> None:
        """Makes the large file the scenario asks for, if it is not there yet."""
        name = scenario.load.url.rpartition("/")[2]
        if size := file_bytes(name):
            make_large(self.root / name, size)

    def during(self, scenario: Scenario, server: str, host: str, port: int) -> Callable[[], None]:
        """Nothing happens beside the load."""
        return lambda: None

    def stop(self) -> None:
        """There is nothing to end."""


def page(size: int, title: str) -> bytes:
    """An HTML page of exactly `size` bytes, which gzip makes much smaller."""
    rng = random.Random(7)
    end = "</body></html>\n"
    text = f"<!DOCTYPE html><html><head><title>{title}</title></head><body>\n"
    while len(text) < size:
        text += "<p>" + " ".join(rng.choice(WORDS) for _ in range(9)) + "</p>\n"
    return (text[: size - len(end)] + end).encode()


def write(path: Path, data: bytes, packed: bool = False) -> None:
    """The file, and its compressed form beside it, with the same old date."""
    files = {path: data}
    if packed:
        files[path.with_name(path.name + ".gz")] = gzip.compress(data, 9, mtime=0)
    for one, content in files.items():
        one.write_bytes(content)
        one.chmod(0o644)
        os.utime(one, (OLD_UNIX, OLD_UNIX))


def make_large(path: Path, size: int) -> None:
    """Random bytes, the same each time."""
    if path.exists() and path.stat().st_size == size:
        return
    rng = random.Random(7)
    with path.open("wb") as out:
        for start in range(0, size, MIB):
            out.write(rng.randbytes(min(MIB, size - start)))
    path.chmod(0o644)
    os.utime(path, (OLD_UNIX, OLD_UNIX))
