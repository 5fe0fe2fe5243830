"""An HTTP/3 client that sends whatever bytes it is told to, over aioquic's QUIC.

HTTP/3 and QPACK are written out here, because a library would refuse to be this rude.
"""

import asyncio

import pylsqpack
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic import events

DATA, HEADERS, CANCEL_PUSH, SETTINGS, PUSH_PROMISE, GOAWAY, MAX_PUSH_ID = 0, 1, 3, 4, 5, 7, 13
TIMEOUT = 10.0


def varint(n: int) -> bytes:
    """RFC 9000 §16."""
    for bits, prefix in ((6, 0), (14, 1), (30, 2), (62, 3)):
        if n < 1 << bits:
            size = (bits + 2) // 8
            return (n | prefix << bits).to_bytes(size, "big")
    raise ValueError(n)


def frame(kind: int, payload: bytes = b"") -> bytes:
    return varint(kind) + varint(len(payload)) + payload


def prefix_int(first: int, bits: int, n: int) -> bytes:
    """RFC 7541 §5.1 with `first` holding the flags above the prefix."""
    limit = (1 << bits) - 1
    if n < limit:
        return bytes([first | n])
    out, n = bytearray([first | limit]), n - limit
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field_section(fields) -> bytes:
    """A QPACK field section of nothing but literals (RFC 9204 §4.5.6)."""
    out = b"\0\0"
    for name, value in fields:
        name, value = (x if isinstance(x, bytes) else x.encode() for x in (name, value))
        out += prefix_int(0x20, 3, len(name)) + name + prefix_int(0, 7, len(value)) + value
    return out


PSEUDO = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/hello.txt"),
]


def head(*more, pseudo=PSEUDO) -> bytes:
    return frame(HEADERS, field_section([*pseudo, *more]))


def without(name: str):
    return [(n, v) for n, v in PSEUDO if n != name]


def replaced(name: str, value):
    return [(n, value if n == name else v) for n, v in PSEUDO]


def settings(*pairs) -> bytes:
    return frame(SETTINGS, b"".join(varint(k) + varint(v) for k, v in pairs))


class Peer(QuicConnectionProtocol):
    """A connection that records what the server does."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.streams: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.resets: dict[int, int] = {}
        self.stopped: dict[int, int] = {}
        self.closed = None
        self.news = asyncio.Event()

    def quic_event_received(self, event) -> None:
        if isinstance(event, events.StreamDataReceived):
            self.streams.setdefault(event.stream_id, bytearray()).extend(event.data)
            if event.end_stream:
                self.ended.add(event.stream_id)
        elif isinstance(event, events.StreamReset):
            self.resets[event.stream_id] = event.error_code
        elif isinstance(event, events.StopSendingReceived):
            self.stopped[event.stream_id] = event.error_code
        elif isinstance(event, events.ConnectionTerminated):
            self.closed = event.error_code
        self.news.set()

    def open(self, data: bytes, uni=False, fin=False) -> int:
        stream = self._quic.get_next_available_stream_id(is_unidirectional=uni)
        self.write(stream, data, fin)
        return stream

    def write(self, stream: int, data: bytes, fin=False) -> None:
        if self.closed is None:
            self._quic.send_stream_data(stream, data, fin)
            self.transmit()

    def control(self, *pairs) -> int:
        return self.open(b"\0" + settings(*pairs), uni=True)

    def request(self, data: bytes, fin=True) -> int:
        return self.open(data, fin=fin)

    async def until(self, ready, limit=TIMEOUT) -> bool:
        """Waits until `ready()` or the connection is closed; false when time is up."""
        end = asyncio.get_running_loop().time() + limit
        while not ready() and self.closed is None:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), left)
            except asyncio.TimeoutError:
                return ready()
        return True

    def frames(self, stream: int):
        data, at, out = bytes(self.streams.get(stream, b"")), 0, []
        while at < len(data):
            kind, at = read_varint(data, at)
            size, at = read_varint(data, at)
            out.append((kind, data[at : at + size]))
            at += size
        return out

    def status(self, stream: int):
        decoder = pylsqpack.Decoder(0, 0)
        for kind, payload in self.frames(stream):
            if kind == HEADERS:
                for name, value in decoder.feed_header(stream, payload)[1]:
                    if name == b":status":
                        return int(value)
        return None

    def body(self, stream: int) -> bytes:
        return b"".join(payload for kind, payload in self.frames(stream) if kind == DATA)

    async def outcome(self, stream=None, limit=TIMEOUT) -> str:
        """What became of a request, or of the connection when there is none."""

        def ready():
            return stream is not None and (
                stream in self.ended or stream in self.resets or stream in self.stopped
            )

        in_time = await self.until(ready, limit)
        if self.closed is not None:
            return f"conn {self.closed:#x}"
        if stream in self.ended and self.status(stream) is not None:
            return f"status {self.status(stream)}"
        if stream in self.resets:
            return f"reset {self.resets[stream]:#x}"
        if stream in self.stopped:
            return f"reset {self.stopped[stream]:#x}"
        return "silence" if not in_time else "end without an answer"


def read_varint(data: bytes, at: int):
    size = 1 << (data[at] >> 6)
    value = int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1)
    return value, at + size
