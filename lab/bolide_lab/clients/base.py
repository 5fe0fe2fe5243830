"""Owns what a load generator is to the laboratory, and the reading of units in its reports."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from bolide_lab import machine
from bolide_lab.model import Load, Outcome

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
BYTES = {"": 1, "B": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


# From this share of its cores on, a closed-loop client is taken for the limit.
SATURATED = 0.8


class ClientError(Exception):
    """The client's report is none; the text holds what it said."""


@dataclass(frozen=True)
class Address:
    """Where the server is, and a directory for files that a client needs."""

    host: str
    plain_port: int
    tls_port: int
    directory: Path

    def base(self, load: Load) -> str:
        """Scheme, host and port for the load's protocol."""
        if load.protocol == "h1":
            return f"http://{self.host}:{self.plain_port}"
        return f"https://{self.host}:{self.tls_port}"

    def url(self, load: Load) -> str:
        """The address to ask for."""
        return self.base(load) + split_url(load.url)[1]


class Client(ABC):
    """A load generator: a program that is given a load and prints a report."""

    name: str
    programs: tuple[str, ...] = ()
    install: str = "lab tools install"
    # What it says to a server beside the load's own headers.
    headers: tuple[str, ...] = ()

    def find(self) -> Path | None:
        """The program, None where it is not installed."""
        return machine.find(*self.programs)

    def program(self) -> str:
        """The program's path; the first name where it is not installed."""
        return str(self.find() or self.programs[0])

    def how_to_install(self) -> str:
        """The command that installs it."""
        return self.install

    def version(self) -> str:
        """What it says of itself."""
        return machine.first_line([self.program(), "--version"])

    def supports(self, load: Load) -> str | None:
        """Why the load cannot be made with this client; None when it can."""
        return None

    @abstractmethod
    def argv(self, load: Load, address: Address) -> list[str]:
        """The command line; files it needs are written to the address's directory."""

    @abstractmethod
    def parse(self, text: str) -> Outcome:
        """Reads the report. Raises `ClientError` when there is none in the text."""

    def was_limit(self, outcome: Outcome, busy: float) -> bool:
        """Whether the client, not the server, set the figures; `busy` is the share of its cores."""
        return busy > SATURATED

    def read_files(self, outcome: Outcome, directory: Path) -> Outcome:
        """Adds what the client wrote to files of its own."""
        return outcome


def split_url(url: str) -> tuple[str | None, str]:
    """A virtual host, if there is one, and the path: `shop.test/a` or `/a`."""
    host, slash, path = url.partition("/")
    return (host or None, slash + path if slash else "/")


def seconds(text: str) -> float:
    """`1.5ms`, `2us`, `0.25s`, `3m` as seconds."""
    found = re.fullmatch(r"\s*([\d.]+)\s*(ns|us|µs|ms|s|m|h)\s*", text)
    if not found:
        raise ClientError(f"no length of time: {text!r}")
    return float(found[1]) * SECONDS[found[2]]


def size_bytes(text: str) -> int:
    """`2.20MB`, `712B`, `1.5K` as bytes."""
    found = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)B?\s*", text)
    if not found:
        raise ClientError(f"no size: {text!r}")
    return round(float(found[1]) * BYTES[found[2]])


def tail(text: str, characters: int = 600) -> str:
    """The end of a report, for an error."""
    return text[-characters:].strip() or "it printed nothing"
