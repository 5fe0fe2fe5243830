"""Owns what a server is to the laboratory: found, configured, started pinned, ended."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from bolide_lab import machine, proc
from bolide_lab.model import Protocol, Scenario, Variant

START_LIMIT_S = 15.0
LISTEN = "0A"
MIME = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "woff2": "font/woff2",
}


class ServerError(Exception):
    """The server does not start or cannot be configured; the text says what it said."""


@dataclass(frozen=True)
class Place:
    """Where a server works and what it serves.

    `prefix` goes before its commands (a namespace). `php` is a FastCGI socket, `origin` an
    HTTP address whose answers may be cached, `rules` more configuration by the server's name.
    """

    site: Path
    certificate: Path
    key: Path
    both: Path
    host: str = "127.0.0.1"
    plain_port: int = 8080
    tls_port: int = 8443
    workers: int = 1
    prefix: tuple[str, ...] = ()
    php: Path | None = None
    origin: str | None = None
    rules: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """The configuration as written: the main file and the text of each by name."""

    main: Path
    texts: dict[str, str]


class Server(ABC):
    """A contestant. `write_config`, `start`, then `stop`; again as often as wanted."""

    name: str
    programs: tuple[str, ...]
    install = "lab peers install"
    version_words: tuple[str, ...] = ("-v",)
    protocols: frozenset[str] = frozenset({"h1", "h1-tls", "h2"})
    # Groups of experiments in which it had a configuration of its own then.
    originals: frozenset[str] = frozenset()

    def __init__(self, place: Place | None = None) -> None:
        """A server without a place can be found and asked for its version only."""
        self._place = place
        self._running: list[subprocess.Popen[bytes]] = []
        self._said: Path | None = None
        self._has_quic = False

    @property
    def place(self) -> Place:
        """Where it works."""
        if self._place is None:
            raise ServerError(f"{self.name} has no place to work")
        return self._place

    def find(self) -> Path | None:
        """The program; None where it is not installed."""
        return machine.find(*self.programs)

    def program(self) -> str:
        """The program's path. Raises `ServerError` where it is not installed."""
        path = self.find()
        if path is None:
            raise ServerError(f"missing: {self.name}; run: {self.how_to_install()}")
        return str(path)

    def how_to_install(self) -> str:
        """The command that installs it."""
        return self.install

    def version(self) -> str:
        """What it says of itself."""
        return machine.first_line([self.program(), *self.version_words])

    def speaks(self, protocol: Protocol) -> bool:
        """Whether the installed build knows the protocol."""
        return protocol in self.protocols

    def supports(self, scenario: Scenario) -> str | None:
        """Why the scenario cannot be made with this server; None when it can."""
        if not self.speaks(scenario.load.protocol):
            return f"this {self.name} has no {scenario.load.protocol}"
        return None

    def has_original(self, scenario: Scenario) -> bool:
        """Whether the original experiment had a configuration of this server."""
        return scenario.original_config and scenario.group in self.originals

    def write_config(self, scenario: Scenario, directory: Path, variant: Variant) -> Files:
        """Writes the server's configuration for the scenario below `directory`."""
        (directory / "run").mkdir(parents=True, exist_ok=True)
        texts = self.texts(scenario, directory, variant)
        for name, text in texts.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._directory = directory
        self._has_quic = "h3" in (scenario.load.protocol, *scenario.load.extra.get("arms", ()))
        self._said = directory / "run" / f"{self.name}.out"
        return Files(directory / next(iter(texts)), texts)

    @abstractmethod
    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """Configuration by file name, the main one first."""

    @abstractmethod
    def commands(self, directory: Path) -> list[list[str]]:
        """The processes that make up the server, in the order they are started."""

    def start(self, cpu: int | set[int]) -> list[int]:
        """Starts on the given cores and waits until it listens.

        Raises `ServerError` with what it said when it does not.
        """
        cores = ",".join(map(str, sorted({cpu} if isinstance(cpu, int) else cpu)))
        environment = {**os.environ, **self.environment()}
        assert self._said is not None, "write_config comes before start"
        with self._said.open("wb") as said:
            for command in self.commands(self._directory):
                argv = ["taskset", "-c", cores, *self.place.prefix, *command]
                self._running.append(
                    subprocess.Popen(
                        argv,
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=said,
                        env=environment,
                        cwd=self._directory,
                        start_new_session=True,
                    )
                )
        if not proc.wait_until(self._is_ready, START_LIMIT_S) or self._has_ended():
            text = self.said()
            self.stop()
            raise ServerError(f"{self.name} does not start: {text or 'it says nothing'}")
        return self.pids()

    def environment(self) -> dict[str, str]:
        """What its processes find in their environment beside the laboratory's own."""
        return {}

    def pids(self) -> list[int]:
        """Its processes, without their children."""
        return [one.pid for one in self._running]

    def said(self) -> str:
        """The end of what it printed."""
        if self._said is None or not self._said.exists():
            return ""
        return self._said.read_text(errors="replace").strip()[-1500:]

    def stop(self) -> None:
        """Ends it and waits until its ports are free; a second call does nothing."""
        if not self._running:
            return
        proc.end(self.pids())
        for one in self._running:
            one.wait()
        self._running = []

    def needs_ports(self) -> tuple[int, ...]:
        """TCP ports that listen when it is ready."""
        return (self.place.plain_port, self.place.tls_port)

    def _is_ready(self) -> bool:
        if self._has_ended():
            return True
        pid = self.pids()[0]
        if self._has_quic and self.place.tls_port not in bound_ports(pid):
            return False
        listening = listening_ports(pid)
        return all(port in listening for port in self.needs_ports())

    def _has_ended(self) -> bool:
        return any(one.poll() is not None for one in self._running)


def listening_ports(pid: int) -> set[int]:
    """TCP ports that listen in the network namespace of the process."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == LISTEN:
                found.add(int(words[1].rpartition(":")[2], 16))
    return found


def bound_ports(pid: int) -> set[int]:
    """UDP ports that are taken in the network namespace of the process."""
    try:
        lines = Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]
    except OSError:
        return set()
    return {int(line.split()[1].rpartition(":")[2], 16) for line in lines}


def user() -> str:
    """Who runs the workers: a server started by root needs a name."""
    return "www-data" if os.geteuid() == 0 else ""


def owned_by_user(path: Path) -> Path:
    """A directory that the workers may write."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    return path
