"""Owns the open-loop client: requests leave at a constant rate, however slow the answers are.

The time of an answer counts from when its request was due, not from when it could be sent, so a
server that stops for a second is seen by all requests of that second (no coordinated omission).

Limits: GET of one path, HTTP/1.1 (plain, TLS) and HTTP/2 (TLS), not HTTP/3. It is Python: one
process keeps its times up to some 3500 requests a second on a core of 2.5 GHz and adds 0.1 to
0.3 ms. It spins while it waits, so its core is always busy. `threads` is the number of processes.
How late requests left is in `extra["late_us_p99"]`; above 1 ms it is the client that was measured,
and the outcome says `saturated`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import resource
import ssl
import sys
import time
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bolide_lab.clients.base import Address, Client, ClientError, split_url, tail
from bolide_lab.clients.openloop_wire import Wire, WireH1, WireH2, request_h1, request_h2
from bolide_lab.model import LatencyUs, Load, Outcome

PERCENTILES = (10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0)
# Starts this module from wherever the laboratory is.
PACKAGE = Path(__file__).resolve().parents[2]
START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from bolide_lab.clients.openloop import main; main(sys.argv[1])"
)
# What has not been answered so long after the last request was due has failed.
PATIENCE_S = 5.0
LATE_US = 1000


def supports(load: Load) -> str | None:
    """Why this client cannot make the load, or None."""
    if load.protocol == "h3":
        return "the open-loop client does not speak HTTP/3"
    if not load.rate_per_s or not load.seconds:
        return "an open-loop load needs rate_per_s and seconds"
    return None


def argv(load: Load, address: str, host: str = "localhost") -> list[str]:
    """The command: this module, with the load as JSON."""
    reason = supports(load)
    if reason is not None:
        raise ValueError(reason)
    name, path = split_url(load.url)
    task = {"load": {**asdict(load), "url": path}, "address": address, "host": name or host}
    return [sys.executable, "-c", START, str(PACKAGE), json.dumps(task)]


def parse(text: str) -> Outcome:
    """Joins what the processes said, one JSON line each."""
    parts: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line]
    times = sorted(us for part in parts for us in part["latency_us"])
    late = sorted(us for part in parts for us in part["late_us"])
    seconds = max((part["seconds"] for part in parts), default=0.0)
    good = sum(part["good"] for part in parts)
    late_us_p99 = percentile(late, 99)
    latency = None
    if times:
        latency = LatencyUs(*(percentile(times, p) for p in (50, 90, 99, 99.9)))
    return Outcome(
        seconds=seconds,
        requests=good,
        failed=sum(part["failed"] for part in parts),
        requests_per_s=good / seconds if seconds else 0.0,
        latency_us=latency,
        bytes_total=sum(part["bytes"] for part in parts),
        extra={
            "curve_us": [[p, percentile(times, p)] for p in PERCENTILES] if times else [],
            "late_us_p99": late_us_p99,
            "saturated": late_us_p99 > LATE_US,
            "client_cpu_s": sum(part["cpu_s"] for part in parts),
        },
    )


def percentile(ordered: list[float], p: float) -> float:
    """The value that `p` percent do not exceed; 0 of nothing."""
    if not ordered:
        return 0.0
    return ordered[min(int(len(ordered) * p / 100), len(ordered) - 1)]


class OpenLoop(Client):
    """The open-loop client as one of the clients."""

    name = "openloop"

    def find(self) -> Path | None:
        """It is always there: this Python."""
        return Path(sys.executable)

    def version(self) -> str:
        """The laboratory's own, on this Python."""
        return f"bolide_lab.clients.openloop, Python {platform.python_version()}"

    def supports(self, load: Load) -> str | None:
        """Why the load cannot be made."""
        return supports(load)

    def argv(self, load: Load, address: Address) -> list[str]:
        """The command for the load."""
        port = address.plain_port if load.protocol == "h1" else address.tls_port
        return argv(load, f"{address.host}:{port}")

    def was_limit(self, outcome: Outcome, busy: float) -> bool:
        """It spins while it waits: only requests that left late say that it was too slow."""
        return bool(outcome.extra.get("saturated"))

    def parse(self, text: str) -> Outcome:
        """Reads the lines of all processes."""
        try:
            return parse(text)
        except (ValueError, KeyError) as error:
            raise ClientError(tail(text)) from error


def tls(load: Load) -> ssl.SSLContext:
    """Trusts anybody: no certificates of the system are read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"] if load.protocol == "h2" else ["http/1.1"])
    return context


class Run:
    """One process's share of a load."""

    def __init__(self, load: Load, address: str, host: str, share: int) -> None:
        self.load, self.host = load, host
        self.ip, _, self.port = address.rpartition(":")
        processes = max(load.threads, 1)
        assert load.rate_per_s is not None and load.seconds is not None
        self.gap_s = processes / load.rate_per_s
        # The processes' requests lie between each other's.
        self.offset_s = self.gap_s * share / processes
        self.count = max(int(load.seconds / self.gap_s), 1)
        self.discard = int(self.count * float(load.extra.get("discard_share", 0.1)))
        self.connections = max(load.connections // processes, 1)
        self.wires: list[Wire] = []
        self.waiting: deque[int] = deque()
        self.done: list[float] = []
        self.late: list[float] = []
        self.good = self.failed = self.bytes = 0
        self.start = self.end = 0.0
        self.turn = 0
        self.context = tls(load) if load.protocol != "h1" else None
        self.connecting: dict[int, asyncio.Task[None]] = {}

    def make_wire(self) -> Wire:
        """A connection of the load's protocol."""
        load = self.load
        if load.protocol == "h2":
            block = request_h2(f"{self.host}:{self.port}", load.url, load.headers)
            return WireH2(self.answered, block, max(load.streams, 1))
        request = request_h1(f"{self.host}:{self.port}", load.url, load.headers)
        return WireH1(self.answered, request)

    async def connect(self, at: int) -> None:
        """Opens connection number `at`."""
        context = self.context
        name = self.host if context else None
        loop = asyncio.get_running_loop()
        try:
            _, wire = await loop.create_connection(
                self.make_wire, self.ip, int(self.port), ssl=context, server_hostname=name
            )
        except OSError:
            return
        finally:
            self.connecting.pop(at, None)
        self.wires[at] = wire
        self.drain()

    def answered(self, token: int, is_good: bool, size: int) -> None:
        """Counts an answer, and sends what has waited for room."""
        now = time.perf_counter()
        if token >= self.discard:
            if is_good:
                self.good += 1
                self.done.append((now - self.due(token)) * 1e6)
            else:
                self.failed += 1
            self.bytes += size
        self.end = now
        self.drain()

    def drain(self) -> None:
        """Sends what waits, the oldest first, while there is room."""
        while self.waiting and self.send(self.waiting[0]):
            self.waiting.popleft()

    async def wait_until(self, due: float) -> None:
        """Reads answers until a request is due, and once if it is late."""
        # The loop's own timer is a millisecond late at worst: the last ones are spun away.
        wait = due - time.perf_counter()
        await asyncio.sleep(max(wait - 0.002, 0))
        while time.perf_counter() < due:
            await asyncio.sleep(0)

    def due(self, token: int) -> float:
        """When request number `token` should leave."""
        return self.start + self.offset_s + token * self.gap_s

    def send(self, token: int) -> bool:
        """Sends on the next connection with room; False if none has."""
        for _ in self.wires:
            self.turn = (self.turn + 1) % len(self.wires)
            wire = self.wires[self.turn]
            if wire.has_room():
                wire.send(token)
                return True
            if not wire.is_open and self.turn not in self.connecting:
                self.connecting[self.turn] = asyncio.ensure_future(self.connect(self.turn))
        return False

    async def go(self) -> dict[str, Any]:
        """Makes the load and says what came of it."""
        self.wires = [self.make_wire() for _ in range(self.connections)]
        await asyncio.gather(*(self.connect(at) for at in range(self.connections)))
        self.start = self.end = time.perf_counter()
        for token in range(self.count):
            await self.wait_until(self.due(token))
            if token >= self.discard:
                self.late.append((time.perf_counter() - self.due(token)) * 1e6)
            self.waiting.append(token)
            self.drain()
        until = time.perf_counter() + PATIENCE_S
        counted = self.count - self.discard
        while self.good + self.failed < counted and time.perf_counter() < until:
            await asyncio.sleep(0.01)
        for wire in self.wires:
            wire.close()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "seconds": max(self.end - self.due(self.discard), 1e-9),
            "good": self.good,
            "failed": counted - self.good,
            "bytes": self.bytes,
            "latency_us": [round(us, 1) for us in self.done],
            "late_us": [round(us, 1) for us in self.late],
            "cpu_s": usage.ru_utime + usage.ru_stime,
        }


def main(task: str) -> None:
    """Runs the load in `threads` processes and prints a line for each."""
    said = json.loads(task)
    load = Load(**{**said["load"], "headers": tuple(said["load"]["headers"])})
    pipes: list[int] = []
    for share in range(1, max(load.threads, 1)):
        read_end, write_end = os.pipe()
        if os.fork() == 0:
            line = json.dumps(asyncio.run(Run(load, said["address"], said["host"], share).go()))
            with os.fdopen(write_end, "w") as parent:
                parent.write(line + "\n")
            os._exit(0)
        os.close(write_end)
        pipes.append(read_end)
    print(json.dumps(asyncio.run(Run(load, said["address"], said["host"], 0).go())))
    for pipe in pipes:
        with os.fdopen(pipe) as child:
            sys.stdout.write(child.read())
        os.wait()
