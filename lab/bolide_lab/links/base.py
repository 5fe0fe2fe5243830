"""Owns what a link is to the rest of the laboratory, and which kind this machine can have.

A link is two network namespaces and a shaped way between them: the server runs in one, the client
in the other. Nothing else on the machine is touched. The namespaces have no names; they live as
long as the processes in them, and end with the laboratory however it ends.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType

from bolide_lab.model import LinkSpec

SERVER_ADDRESS = "10.77.0.1"
CLIENT_ADDRESS = "10.77.0.2"


class LinkUnavailable(Exception):
    """The link that this machine cannot have; the text says why and what would help."""


@dataclass(frozen=True)
class Direction:
    """What one direction of a link has carried; what a kind does not count is None."""

    packets: int
    bytes: int
    dropped_queue: int | None
    lost_random: int | None
    queue_packets_max: int | None = None
    late_us_max: int | None = None
    late_packets: int | None = None


@dataclass(frozen=True)
class Counters:
    """What a link has carried, and the CPU time that its own process took."""

    to_client: Direction
    to_server: Direction
    cpu_s: float | None = None


class Link(ABC):
    """A shaped link; a context manager that is up inside its block."""

    kind: str
    server_address = SERVER_ADDRESS
    client_address = CLIENT_ADDRESS

    def __init__(self, spec: LinkSpec, seed: int = 1) -> None:
        """Nothing happens before `up`; `seed` decides which packets random loss takes."""
        check(spec)
        self.spec = spec
        self.seed = seed

    @abstractmethod
    def up(self) -> None:
        """Makes namespaces and shaping; `LinkUnavailable` when that cannot be."""

    @abstractmethod
    def down(self) -> Counters | None:
        """Removes all of it and returns the last counters; a second call does nothing."""

    @abstractmethod
    def counters(self) -> Counters:
        """What has been carried since `up`."""

    @abstractmethod
    def server_namespace(self) -> str:
        """A path that names the server's namespace, as `nsenter --net=` takes it."""

    @abstractmethod
    def client_namespace(self) -> str:
        """A path that names the client's namespace."""

    def pids(self) -> list[int]:
        """Processes that relay packets, where the kernel does not: none may disturb a server."""
        return []

    def in_server(self, argv: list[str]) -> list[str]:
        """The command that runs `argv` where the server is."""
        return ["nsenter", f"--net={self.server_namespace()}", "--", *argv]

    def in_client(self, argv: list[str]) -> list[str]:
        """The command that runs `argv` where the client is."""
        return ["nsenter", f"--net={self.client_namespace()}", "--", *argv]

    def __enter__(self) -> Link:
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()


def check(spec: LinkSpec) -> None:
    """Refuses what no link can be."""
    if spec.rate_mbit <= 0 or spec.rtt_ms < 0 or spec.queue_packets < 1:
        raise LinkUnavailable(f"not a link: {spec}")
    if not 0 <= spec.loss_percent < 100:
        raise LinkUnavailable(f"loss is 0 to 100 percent: {spec}")


def needs_root() -> None:
    """Refuses to go on as another user: namespaces and devices are root's."""
    if os.geteuid() != 0:
        raise LinkUnavailable("a shaped link needs root: run it with sudo; the rest does not")
    if shutil.which("nsenter") is None:
        raise LinkUnavailable("missing: nsenter (apt-get install util-linux)")


def open_link(spec: LinkSpec, seed: int = 1, kind: str = "auto") -> Link:
    """The link for `spec`, not yet up: netem where the kernel has it, else our own over TUN."""
    from bolide_lab.links import netem, tun

    if kind not in ("auto", "netem", "tun"):
        raise LinkUnavailable(f"unknown kind of link: {kind} (auto, netem, tun)")
    needs_root()
    if kind == "netem" or (kind == "auto" and netem.is_available()):
        return netem.NetemLink(spec, seed)
    return tun.TunLink(spec, seed)
