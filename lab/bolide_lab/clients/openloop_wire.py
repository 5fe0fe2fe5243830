"""Owns the wire of the open-loop client: connections of HTTP/1.1 and HTTP/2 that count answers.

Only as much of the protocols as a benchmark of GET needs: no redirects, no trailers of interest,
of HPACK the static table. A connection that breaks fails what is open on it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
WINDOW = 1 << 30

# An answer: the token that its request had, whether it was good, and its bytes.
Answered = Callable[[int, bool, int], None]


class Wire(asyncio.Protocol):
    """A connection that takes requests while it has room."""

    def __init__(self, answered: Answered) -> None:
        self.answered = answered
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes requests from now on."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.is_open = True

    def has_room(self) -> bool:
        """Whether `send` may be called."""
        raise NotImplementedError

    def send(self, token: int) -> None:
        """Sends one request; `answered` always gets the token later."""
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Writes if the connection is still there."""
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """Ends the connection."""
        self.is_open = False
        if self.transport is not None:
            self.transport.close()


class WireH1(Wire):
    """One request at a time on a kept connection."""

    def __init__(self, answered: Answered, request: bytes) -> None:
        super().__init__(answered)
        self.request = request
        self.token: int | None = None

    def has_room(self) -> bool:
        """Whether the last answer is complete."""
        return self.is_open and self.token is None

    def send(self, token: int) -> None:
        """Writes the request."""
        self.token = token
        self.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Takes bytes; an answer is complete when its head and body are there."""
        self.buffer += data
        length = answer_length(self.buffer)
        if length is None or len(self.buffer) < length or self.token is None:
            return
        token, self.token = self.token, None
        is_good = bytes(self.buffer[9:10]) in (b"2", b"3") and self.buffer[:5] == b"HTTP/"
        if b"connection: close" in bytes(self.buffer[:2048]).lower():
            self.close()
        del self.buffer[:length]
        self.answered(token, is_good, length)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails the request that is open."""
        self.is_open = False
        if self.token is not None:
            token, self.token = self.token, None
            self.answered(token, False, 0)


def answer_length(buffer: bytearray) -> int | None:
    """The bytes of the answer that begins the buffer; None while that cannot be known."""
    head = buffer.find(b"\r\n\r\n")
    if head < 0:
        return None
    fields = bytes(buffer[:head]).lower()
    at = fields.find(b"\r\ncontent-length:")
    if at >= 0:
        return head + 4 + int(fields[at + 17 :].split(b"\r\n", 1)[0])
    if b"\r\ntransfer-encoding: chunked" not in fields:
        return head + 4
    place = head + 4
    while True:
        line = buffer.find(b"\r\n", place)
        if line < 0:
            return None
        size = int(bytes(buffer[place:line]).split(b";")[0], 16)
        place = line + 2 + size + 2
        if size == 0:
            return place
        if place > len(buffer):
            return None


class WireH2(Wire):
    """Up to `streams` requests at a time; a new stream for each."""

    def __init__(self, answered: Answered, block: bytes, streams: int) -> None:
        super().__init__(answered)
        self.block = block
        self.streams = streams
        self.next_stream = 1
        self.open: dict[int, tuple[int, bool, int]] = {}
        self.unacknowledged = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Says hello: no push, large windows."""
        super().connection_made(transport)
        no_push = b"\x00\x02\x00\x00\x00\x00"
        window = b"\x00\x04" + WINDOW.to_bytes(4)
        hello = frame(SETTINGS, 0, 0, no_push + window)
        self.write(PREFACE + hello + frame(WINDOW_UPDATE, 0, 0, WINDOW.to_bytes(4)))

    def has_room(self) -> bool:
        """Whether another stream may be opened."""
        return self.is_open and len(self.open) < self.streams and self.next_stream < 1 << 31

    def send(self, token: int) -> None:
        """Opens a stream with the request."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.open[stream] = (token, False, 0)
        self.write(frame(HEADERS, END_STREAM | END_HEADERS, stream, self.block))

    def data_received(self, data: bytes) -> None:
        """Takes whole frames."""
        self.buffer += data
        place = 0
        while len(self.buffer) - place >= 9:
            size = int.from_bytes(self.buffer[place : place + 3])
            end = place + 9 + size
            if len(self.buffer) < end:
                break
            kind, flags = self.buffer[place + 3], self.buffer[place + 4]
            stream = int.from_bytes(self.buffer[place + 5 : place + 9]) & 0x7FFFFFFF
            self._take(kind, flags, stream, bytes(self.buffer[place + 9 : end]))
            place = end
        del self.buffer[:place]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload) - 5, 6):
                if payload[at : at + 2] == b"\x00\x03":
                    limit = int.from_bytes(payload[at + 2 : at + 6])
                    self.streams = min(self.streams, max(limit, 1))
            self.write(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self.write(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self.close()
        elif stream in self.open:
            self._take_answer(kind, flags, stream, payload)

    def _take_answer(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        token, is_good, total = self.open[stream]
        total += 9 + len(payload)
        if kind == HEADERS and not is_good:
            at = (1 if flags & PADDED else 0) + (5 if flags & PRIORITY else 0)
            is_good = status_is_good(payload[at:])
        elif kind == DATA:
            self.unacknowledged += len(payload)
            if self.unacknowledged > WINDOW // 4:
                self.write(frame(WINDOW_UPDATE, 0, 0, self.unacknowledged.to_bytes(4)))
                self.unacknowledged = 0
        if kind == RESET or (kind in (DATA, HEADERS) and flags & END_STREAM):
            del self.open[stream]
            self.answered(token, is_good and kind != RESET, total)
        else:
            self.open[stream] = (token, is_good, total)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails all open streams."""
        self.is_open = False
        streams, self.open = self.open, {}
        for token, _, _ in streams.values():
            self.answered(token, False, 0)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame of HTTP/2 (RFC 9113 section 4.1)."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def status_is_good(block: bytes) -> bool:
    """Whether a header block begins with a 2xx or 304 of HPACK's static table (RFC 7541 A).

    Changes of the table's size may come first. Servers send these statuses in no other way.
    """
    place = 0
    while place < len(block) and block[place] & 0xE0 == 0x20:
        is_long = block[place] & 0x1F == 0x1F
        place += 1
        while is_long and place < len(block):
            is_long = block[place] & 0x80 != 0
            place += 1
    return place < len(block) and block[place] in (0x88, 0x89, 0x8A, 0x8B)


def request_h1(host: str, path: str, headers: tuple[str, ...]) -> bytes:
    """The bytes of a request."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def request_h2(host: str, path: str, headers: tuple[str, ...]) -> bytes:
    """The header block of a request: indexed where it can be, nothing for the dynamic table."""
    block = bytes((0x82, 0x87)) + literal(4, path) + literal(1, host)
    for header in headers:
        name, _, value = header.partition(":")
        block += b"\x00" + text(name.strip().lower()) + text(value.strip())
    return block


def literal(name: int, value: str) -> bytes:
    """A field with a name of the static table, not indexed (RFC 7541 section 6.2.2)."""
    return bytes((name,)) + text(value)


def text(value: str) -> bytes:
    """A string of HPACK without Huffman's code."""
    data = value.encode()
    if len(data) < 127:
        return bytes((len(data),)) + data
    rest, more = len(data) - 127, deque[int]()
    while rest >= 128:
        more.append(rest % 128 + 128)
        rest //= 128
    return bytes((127, *more, rest)) + data
