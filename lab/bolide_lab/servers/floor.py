"""Owns the floor: the kernel's share of a plain exchange, which no server can be cheaper than."""

from __future__ import annotations

import shlex
from pathlib import Path

from bolide_lab.model import Scenario, Variant
from bolide_lab.servers.base import Server

SOURCE = Path(__file__).with_suffix(".c")


class Floor(Server):
    """A C program that parses nothing; each start builds it."""

    name = "floor"
    programs = ("cc", "gcc")
    install = "apt-get install gcc"
    version_words = ("--version",)
    protocols = frozenset({"h1"})

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """Its source is all that it has."""
        return {"floor.c": SOURCE.read_text(encoding="utf-8")}

    def commands(self, directory: Path) -> list[list[str]]:
        """Builds the program and becomes it."""
        build = f"{shlex.quote(self.program())} -O2 -o floor floor.c"
        return [["sh", "-c", f"{build} && exec ./floor {self.place.plain_port}"]]

    def needs_ports(self) -> tuple[int, ...]:
        """It speaks no TLS."""
        return (self.place.plain_port,)
