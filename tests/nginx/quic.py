"""Owns: a client of HTTP/3 whose datagrams are seen.

What the server allows in its transport parameters, whether it wants addresses proven, and how the
kernel got its datagrams. aioquic does the protocol; the socket and the clock are our own.
"""

import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

SOL_UDP, UDP_GRO = 17, 104
RETRY = 3
GOAWAY = 7


def varint(value: int) -> bytes:
    """A number as QUIC writes it."""
    return bytes([value]) if value < 64 else struct.pack(">H", value | 0x4000)


def number(data: bytes, at: int) -> tuple[int, int]:
    """A number of QUIC at a place, and the place behind it."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def frame(kind: int, payload: bytes) -> bytes:
    """A frame of HTTP/3."""
    return varint(kind) + varint(len(payload)) + payload


def prefixed(first: int, bits: int, value: int) -> bytes:
    """A number with a prefix (RFC 7541 §5.1), which is small."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    assert value - most < 128
    return bytes([first | most, value - most])


def wide(value: int) -> bytes:
    """A number with a prefix of seven bits that takes two bytes behind it."""
    assert 127 + 128 <= value < 127 + (1 << 14)
    return bytes([127, (value - 127) & 127 | 128, (value - 127) >> 7])


def section(pairs: Iterable[tuple[str, str]]) -> bytes:
    """A field section of literals."""
    out = b"\0\0"
    for name, value in pairs:
        out += prefixed(0x20, 3, len(name)) + name.encode() + prefixed(0, 7, len(value))
        out += value.encode()
    return out


class Client:
    """One connection from a socket of its own, or from `sock`."""

    def __init__(
        self,
        port: int,
        name: str = "a.test",
        sock: socket.socket | None = None,
        token: bytes = b"",
        timeout: float = 3.0,
        **more: Any,
    ) -> None:
        self.address = ("127.0.0.1", port)
        self.tokens: list[bytes] = []
        # By stream.
        self.statuses: dict[int, str] = {}
        self.bodies: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.resets: dict[int, int] = {}
        self.unis: dict[int, bytes] = {}
        # Why the connection is over, if it is.
        self.closed = ""
        self.open = False
        # Datagrams, those that came in one piece with others, Retry packets, and rounds of waiting.
        self.datagrams = self.trains = self.retries = 0
        settings = QuicConfiguration(
            is_client=True,
            alpn_protocols=["h3"],
            server_name=name,
            verify_mode=ssl.CERT_NONE,
            **more,
        )
        settings.token = token
        self.quic = QuicConnection(configuration=settings, token_handler=self.tokens.append)
        self.h3: H3Connection | None = None
        self.socket = sock or socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(SOL_UDP, UDP_GRO, 1)
        self.quic.connect(self.address, now=time.monotonic())
        self.until(lambda: self.open, timeout)

    def flush(self) -> None:
        """Sends what QUIC has to send."""
        for data, address in self.quic.datagrams_to_send(now=time.monotonic()):
            try:
                self.socket.sendto(data, address)
            except ConnectionError:
                self.closed = self.closed or "refused"

    def until(self, is_enough: Callable[[], object], timeout: float = 3.0) -> bool:
        """Goes on until that is so, or the connection is over; whether it is so."""
        deadline = time.monotonic() + timeout
        self.flush()
        while not is_enough() and not self.closed and time.monotonic() < deadline:
            timer = self.quic.get_timer()
            end = min(deadline, timer) if timer else deadline
            ready, _, _ = select.select([self.socket], [], [], max(end - time.monotonic(), 0))
            if ready:
                self.receive()
            now = time.monotonic()
            if timer and now >= timer:
                self.quic.handle_timer(now)
            self.handle()
            self.flush()
        return bool(is_enough())

    def receive(self) -> None:
        """Takes what the kernel has: a datagram, or several of the same length in one piece."""
        try:
            data, extra, _, _ = self.socket.recvmsg(65536, 128)
        except ConnectionError:
            self.closed = self.closed or "refused"
            return
        pieces = [value for level, kind, value in extra if (level, kind) == (SOL_UDP, UDP_GRO)]
        size = struct.unpack("i", pieces[0][:4])[0] if pieces else len(data)
        self.trains += len(data) > size
        for at in range(0, len(data), size):
            self.datagrams += 1
            piece = data[at : at + size]
            self.retries += piece[0] & 0xC0 == 0xC0 and (piece[0] >> 4 & 3) == RETRY
            self.quic.receive_datagram(piece, self.address, now=time.monotonic())

    def handle(self) -> None:
        """Notes what QUIC has seen."""
        while event := self.quic.next_event():
            if isinstance(event, events.StreamDataReceived) and event.stream_id % 4 == 3:
                held = self.unis.get(event.stream_id, b"")
                self.unis[event.stream_id] = held + event.data
            if isinstance(event, events.HandshakeCompleted):
                self.open = True
                self.h3 = H3Connection(self.quic)
            elif isinstance(event, events.StreamReset):
                self.resets[event.stream_id] = event.error_code
            elif isinstance(event, events.ConnectionTerminated):
                self.closed = f"{event.error_code:#x} {event.reason_phrase}".strip()
            for told in self.h3.handle_event(event) if self.h3 else []:
                if isinstance(told, HeadersReceived):
                    status = dict(told.headers).get(b":status", b"").decode()
                    self.statuses.setdefault(told.stream_id, status)
                if isinstance(told, DataReceived):
                    self.bodies[told.stream_id] = self.bodies.get(told.stream_id, b"") + told.data
                if isinstance(told, HeadersReceived | DataReceived) and told.stream_ended:
                    self.ended.add(told.stream_id)

    def get(self, path: str, timeout: float = 5.0) -> tuple[str, int]:
        """The status of an answer and the bytes of its body."""
        if not self.h3 or self.closed:
            return self.closed, 0
        stream = self.quic.get_next_available_stream_id()
        fields = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "a.test"),
            (":path", path),
        ]
        self.h3.send_headers(
            stream, [(name.encode(), value.encode()) for name, value in fields], end_stream=True
        )
        self.until(lambda: stream in self.ended, timeout)
        return self.statuses.get(stream, self.closed or "silent"), len(self.bodies.get(stream, b""))

    def raw(self, head: bytes, data: Sequence[bytes] = (), timeout: float = 5.0) -> list[str]:
        """How a request of these frames is answered: status, text, code of a reset."""
        if not self.h3 or self.closed:
            return [f"closed {self.closed}"]
        stream = self.quic.get_next_available_stream_id()
        frames = frame(1, head) + b"".join(frame(0, piece) for piece in data)
        self.quic.send_stream_data(stream, frames, end_stream=True)
        self.until(lambda: stream in self.ended or stream in self.resets, timeout)
        lines = [f"status {self.statuses[stream]}"] if stream in self.statuses else []
        if stream in self.resets:
            lines.append(f"reset {self.resets[stream]:#x}")
        text = self.bodies.get(stream, b"")
        if text and b"<html>" not in text:
            lines.append(f"text {text.decode(errors='replace').strip()}")
        return lines + ([f"closed {self.closed}"] if self.closed else [])

    def instruct(self, instructions: bytes) -> None:
        """Sends instructions for the table of fields, and waits for what follows of them."""
        assert self.h3
        stream = self.h3._local_encoder_stream_id
        assert stream is not None
        self.quic.send_stream_data(stream, instructions)
        self.until(lambda: self.closed, 0.3)

    def goaways(self) -> list[int]:
        """What GOAWAY frames named, all numbers being small."""
        named = []
        for data in self.unis.values():
            at = 1 if data[:1] == b"\0" else len(data)
            while at + 1 < len(data):
                (kind, at), (size, _) = number(data, at), number(data, number(data, at)[1])
                at = number(data, at)[1]
                if kind == GOAWAY and at + size <= len(data):
                    named.append(number(data, at)[0])
                at += size
        return named

    def allowed(self) -> dict[str, float | None]:
        """The transport parameters of the server that its configuration speaks of."""
        quic = self.quic
        return {
            "streams": quic._remote_max_streams_bidi,
            "stream": quic._remote_max_stream_data_bidi_remote,
            "uni": quic._remote_max_stream_data_uni,
            "data": quic._remote_max_data,
            "ids": quic._remote_active_connection_id_limit,
            "idle": quic._remote_max_idle_timeout,
        }

    def close(self) -> None:
        """Says that it leaves."""
        self.quic.close()
        self.flush()
        self.socket.close()
