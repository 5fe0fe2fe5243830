"""Owns: an HTTP/2 client that is asked for frames, not for answers.

It says what each frame of the server was, so that sizes, windows and settings can be compared.
Fields are sent as literals and not decoded, but for the status.
"""

import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

# What a frame is: its kind, flags, stream and payload.
Frame = tuple[int, int, int, bytes]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
# What every server takes.
FRAME_MAX = 16384
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 3, 4, 5
STATUSES = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame as bytes."""
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


def settings(pairs: Iterable[tuple[int, int]]) -> bytes:
    """A frame of settings."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", k, v) for k, v in pairs))


def literal(text: str) -> bytes:
    """A text of a field, which is short."""
    data = text.encode()
    assert len(data) < 127
    return bytes([len(data)]) + data


def fields(pairs: Iterable[tuple[str, str]]) -> bytes:
    """A block of fields that nothing compresses."""
    return b"".join(b"\0" + literal(name) + literal(value) for name, value in pairs)


class Peer:
    """One connection."""

    def __init__(
        self,
        port: int,
        name: str | None = None,
        ours: Iterable[tuple[int, int]] = (),
        timeout: float = 3,
        window: int = 0,
        first: bytes | None = None,
    ) -> None:
        self.socket: socket.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host = name or "a.test"
        if name:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname=name)
        self.bytes, self.timeout, self.ended = b"", timeout, ""
        self.held: bytes | None = None
        # With `first` behind the preface no settings are acknowledged, either.
        self.settles = first is None
        self.send(PREFACE + (settings(ours) if first is None else first))
        if window:
            self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", window)))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is sent within leaves at once, so that a server reads all of it in one turn."""
        self.held = b""
        yield
        held, self.held = self.held, None
        self.send(held)

    def send(self, data: bytes) -> None:
        """Sends bytes as they are."""
        if self.held is not None:
            self.held += data
            return
        try:
            self.socket.sendall(data)
        except OSError:
            self.ended = self.ended or "closed"

    def ask(
        self,
        stream: int,
        path: str,
        method: str = "GET",
        ends: bool = True,
        more: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Sends the head of a request."""
        pairs = [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", self.host),
            *more,
        ]
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream, fields(pairs)))

    def data(self, stream: int, payload: bytes, ends: bool = False) -> None:
        """Sends some of a body."""
        while len(payload) > FRAME_MAX:
            self.send(frame(DATA, 0, stream, payload[:FRAME_MAX]))
            payload = payload[FRAME_MAX:]
        self.send(frame(DATA, END_STREAM if ends else 0, stream, payload))

    def take(self, size: int) -> bytes:
        """So many bytes."""
        while len(self.bytes) < size:
            got = self.socket.recv(65536)
            if not got:
                raise ConnectionError
            self.bytes += got
        taken, self.bytes = self.bytes[:size], self.bytes[size:]
        return taken

    def next(self) -> Frame | None:
        """The next frame; none at the end, or when none comes in time."""
        try:
            head = self.take(9)
            size = struct.unpack(">I", b"\0" + head[:3])[0]
            found = head[3], head[4], struct.unpack(">I", head[5:])[0] & 0x7FFFFFFF, self.take(size)
        except TimeoutError:
            self.ended = "silent"
        except (OSError, ConnectionError):
            self.ended = "closed"
        else:
            if self.settles and found[0] == SETTINGS and not found[1] & ACK:
                self.send(frame(SETTINGS, ACK, 0))
            return found
        return None

    def until(self, is_last: Callable[[int, int, int, bytes], object]) -> list[Frame]:
        """Frames up to the one that `is_last` of, or the end."""
        found = []
        while one := self.next():
            found.append(one)
            if is_last(*one):
                break
        return found

    def answer(self, stream: int) -> list[Frame]:
        """All frames until the stream has ended."""
        return self.until(
            lambda kind, flags, at, _: (
                at == stream
                and (kind == RST_STREAM or kind < 2 and flags & END_STREAM)
                or kind == GOAWAY
            )
        )

    def sync(self) -> list[Frame]:
        """All frames until a ping comes back."""
        self.send(frame(PING, 0, 0, b"12345678"))
        return self.until(lambda kind, flags, *_: kind == PING and flags & ACK or kind == GOAWAY)

    def close(self) -> None:
        """Ends the connection."""
        self.socket.close()
