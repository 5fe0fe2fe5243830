"""Owns the proof of a link: what round trip, rate, queue and loss it really gives.

One process has a socket in each namespace, and the kernel stamps what arrives, so each packet's own
delay is known however busy the machine is. A check holds when the figure is within its tolerance
of what was asked for.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import socket
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from bolide_lab import proc
from bolide_lab.links.base import Link, LinkUnavailable, open_link
from bolide_lab.model import LinkSpec

PAYLOAD_BYTES = 1400
# IPv4 and UDP; and the Ethernet header that both kinds of link count.
HEADERS_BYTES = 28 + 14
MARK = struct.Struct("!IQ")
TIMESPEC = struct.Struct("@qq")
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33

SPECS: tuple[LinkSpec, ...] = (
    LinkSpec(100, 20, 333),
    LinkSpec(100, 100, 1000),
    LinkSpec(5, 20, 7),
    LinkSpec(50, 10, 200, 2.0),
)


@dataclass(frozen=True)
class Arrival:
    """One packet: its number, and when it left and arrived."""

    number: int
    sent_ns: int
    got_ns: int


@dataclass(frozen=True)
class Figure:
    """One measured property of a link beside what was asked for."""

    name: str
    unit: str
    wanted: float
    measured: float
    tolerance: float

    def holds(self) -> bool:
        """Whether the link gives what it was asked for."""
        return abs(self.measured - self.wanted) <= self.tolerance


def packet_ms(spec: LinkSpec) -> float:
    """How long one of our packets is on the wire."""
    return (PAYLOAD_BYTES + HEADERS_BYTES) * 8 / spec.rate_mbit / 1000


def rtt_figure(spec: LinkSpec, rtts_ms: list[float]) -> Figure:
    """The round trip of small packets on an idle link."""
    measured = statistics.median(rtts_ms) if rtts_ms else float("nan")
    return Figure("rtt", "ms", spec.rtt_ms, measured, max(1.0, spec.rtt_ms * 0.05))


def rate_figure(spec: LinkSpec, arrivals: list[Arrival]) -> Figure:
    """The rate at which a flood came out, headers included.

    Only packets that had to wait count: before others the wire was idle, as the sender was late.
    """
    packets, taken_ns = 0, 0
    for before, arrival in pairwise(arrivals):
        waited_ms = (arrival.got_ns - arrival.sent_ns) / 1e6 - spec.rtt_ms / 2
        if waited_ms > 2 * packet_ms(spec):
            packets += 1
            taken_ns += arrival.got_ns - before.got_ns
    bits = packets * (PAYLOAD_BYTES + HEADERS_BYTES) * 8
    measured = bits * 1000 / taken_ns if taken_ns else float("nan")
    return Figure("rate", "Mbit/s", spec.rate_mbit, measured, spec.rate_mbit * 0.05)


def queue_figure(spec: LinkSpec, arrivals: list[Arrival]) -> Figure:
    """The depth of the queue: the most that a packet of a flood waited, in packets."""
    measured = float("nan")
    if arrivals:
        delays_ms = [(arrival.got_ns - arrival.sent_ns) / 1e6 for arrival in arrivals]
        # A few late wakes of the relay must not count as packets.
        worst = sorted(delays_ms)[int(len(delays_ms) * 0.98)]
        measured = (worst - spec.rtt_ms / 2) / packet_ms(spec)
    # A millisecond of the machine's own is many packets on a fast link.
    return Figure(
        "queue",
        "packets",
        spec.queue_packets,
        measured,
        max(1.0, spec.queue_packets * 0.05) + 1.0 / packet_ms(spec),
    )


def loss_figure(spec: LinkSpec, sent: int, received: int) -> Figure:
    """The share of packets lost on a link that is not full; four standard errors are allowed."""
    share = spec.loss_percent / 100
    measured = 100 * (sent - received) / sent if sent else float("nan")
    allowed = 400 * (share * (1 - share) / max(sent, 1)) ** 0.5
    return Figure("loss", "%", spec.loss_percent, measured, allowed + 0.01)


def table(rows: Iterable[tuple[str, LinkSpec, Figure]]) -> str:
    """The figures as text, one line each."""
    lines = [f"{'link':30} {'kind':6} {'figure':8} {'asked':>9} {'measured':>9}  unit"]
    for kind, spec, figure in rows:
        name = f"{spec.rate_mbit:g} Mbit/s {spec.rtt_ms:g} ms q{spec.queue_packets}"
        name += f" loss {spec.loss_percent:g} %" if spec.loss_percent else ""
        verdict = "" if figure.holds() else f"  NOT within {figure.tolerance:.3g}"
        lines.append(
            f"{name:30} {kind:6} {figure.name:8} {figure.wanted:9.2f} {figure.measured:9.2f}"
            f"  {figure.unit}{verdict}"
        )
    return "\n".join(lines)


# ---- sockets in both namespaces -------------------------------------------


def socket_in(namespace: str, address: str) -> socket.socket:
    """A UDP socket that lives in `namespace`: a thread goes there to make it, and ends."""
    made: list[socket.socket] = []
    errors: list[str] = []

    def make() -> None:
        library = ctypes.CDLL(None, use_errno=True)
        fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if library.setns(fd, 0x40000000):
                errors.append(os.strerror(ctypes.get_errno()))
                return
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        finally:
            os.close(fd)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not made:
        raise LinkUnavailable(f"{namespace}: {' '.join(errors) or 'no socket'}")
    made[0].bind((address, 0))
    # Beyond the machine's limit, which root may pass.
    made[0].setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    made[0].setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made[0].setblocking(False)
    return made[0]


def _receive(receiver: socket.socket) -> Arrival:
    data, control, _, _ = receiver.recvmsg(2048, 64)
    seconds, nanoseconds = TIMESPEC.unpack_from(control[0][2])
    number, sent_ns = MARK.unpack_from(data)
    return Arrival(number, sent_ns, seconds * 1_000_000_000 + nanoseconds)


def _take(receiver: socket.socket, arrivals: list[Arrival]) -> None:
    while True:
        try:
            arrivals.append(_receive(receiver))
        except BlockingIOError:
            return


def flow(
    sender: socket.socket, receiver: socket.socket, mbit: float, seconds: float, drain_s: float
) -> tuple[int, list[Arrival]]:
    """Sends at a constant rate and returns how many were sent, and what arrived."""
    target = receiver.getsockname()
    filling = bytes(PAYLOAD_BYTES - MARK.size)
    gap_ns = (PAYLOAD_BYTES + HEADERS_BYTES) * 8000 / mbit
    arrivals: list[Arrival] = []
    start, sent = time.time_ns(), 0
    while sent * gap_ns < seconds * 1e9:
        now = time.time_ns()
        if now >= start + sent * gap_ns:
            sender.sendto(MARK.pack(sent, now) + filling, target)
            sent += 1
        else:
            select.select([receiver], [], [], (start + sent * gap_ns - now) / 1e9)
        _take(receiver, arrivals)
    end = time.monotonic_ns() + int(drain_s * 1e9)
    while len(arrivals) < sent and (left := end - time.monotonic_ns()) > 0:
        select.select([receiver], [], [], left / 1e9)
        _take(receiver, arrivals)
    return sent, arrivals


def echo_ms(asker: socket.socket, answerer: socket.socket, times: int) -> list[float]:
    """Round trips of small packets, one after the other: the sum of both ways."""
    rtts: list[float] = []
    for number in range(times):
        total_ns = 0
        for sender, receiver in ((asker, answerer), (answerer, asker)):
            sender.sendto(MARK.pack(number, time.time_ns()), receiver.getsockname())
            if not select.select([receiver], [], [], 1)[0]:
                break
            arrival = _receive(receiver)
            total_ns += arrival.got_ns - arrival.sent_ns
        else:
            rtts.append(total_ns / 1e6)
    return rtts


def ping_ms(link: Link, times: int = 10) -> float | None:
    """The average that `ping` gives, where there is a ping."""
    if shutil.which("ping") is None:
        return None
    argv = link.in_client(["ping", "-q", "-i", "0.02", "-c", str(times), link.server_address])
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return parse_ping(done.stdout)


def parse_ping(text: str) -> float | None:
    """The average from the last line of ping's report."""
    for line in text.splitlines():
        if line.startswith(("rtt ", "round-trip ")):
            return float(line.split("=")[1].split("/")[1])
    return None


def measure(link: Link, seconds: float = 0.4) -> list[Figure]:
    """All figures of a link that is up; takes about three times `seconds`."""
    spec = link.spec
    server = socket_in(link.server_namespace(), link.server_address)
    client = socket_in(link.client_namespace(), link.client_address)
    with server, client:
        drain_s = spec.rtt_ms / 1000 + 0.05
        figures = [rtt_figure(spec, echo_ms(client, server, max(5, int(400 / (spec.rtt_ms + 1)))))]
        ping = ping_ms(link)
        if ping is not None:
            figures.append(Figure("ping", "ms", spec.rtt_ms, ping, max(1.0, spec.rtt_ms * 0.1)))
        # Half the rate: whatever is missing then was lost by chance.
        sent, arrivals = flow(server, client, spec.rate_mbit / 2, seconds, drain_s)
        figures.append(loss_figure(spec, sent, len(arrivals)))
        # Twice the rate, long enough that the queue is full for most of the time.
        fill_s = spec.queue_packets * packet_ms(spec) / 1000
        drain_s += fill_s
        _, arrivals = flow(server, client, spec.rate_mbit * 2, seconds + 2 * fill_s, drain_s)
        figures += [rate_figure(spec, arrivals), queue_figure(spec, arrivals)]
    return figures


def run(kind: str = "auto", specs: tuple[LinkSpec, ...] = SPECS, seconds: float = 0.4) -> int:
    """Measures each link and prints the figures; 0 when all of them hold."""
    rows: list[tuple[str, LinkSpec, Figure]] = []
    notes: list[str] = []
    try:
        for spec in specs:
            link = open_link(spec, kind=kind)
            start, stolen = time.monotonic(), proc.steal_s()
            with link:
                rows += [(link.kind, spec, figure) for figure in measure(link, seconds)]
                counters = link.counters()
            if counters.cpu_s is not None:
                share = 100 * counters.cpu_s / (time.monotonic() - start)
                late = [way.late_us_max or 0 for way in (counters.to_client, counters.to_server)]
                notes.append(
                    f"{spec.rate_mbit:g} Mbit/s {spec.rtt_ms:g} ms: deepest queue "
                    f"{counters.to_client.queue_packets_max} packets, dropped by it "
                    f"{counters.to_client.dropped_queue} of {counters.to_client.packets}, "
                    f"by chance {counters.to_client.lost_random}; latest delivery {max(late)} us, "
                    f"{counters.to_client.late_packets} over 1 ms; CPU {share:.0f} % of one core; "
                    f"the machine's host took {proc.steal_s() - stolen:.2f} s of "
                    f"{time.monotonic() - start:.2f} s"
                )
    except LinkUnavailable as error:
        print(f"lab: {error}")
        return 1
    print(table(rows))
    print("\n".join(notes))
    return 0 if all(figure.holds() for _, _, figure in rows) else 1


if __name__ == "__main__":
    raise SystemExit(run())
