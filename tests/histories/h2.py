"""Owns: HTTP/2 (RFC 9113): one connection whose streams belong to several visitors.

It takes no more than the windows that it gave allow, and notices if the server sends more.
"""

import asyncio
import random
import ssl
import struct

from .hpack import Decoder, Encoder
from .responses import MOMENT, Broken, Refused, Reset, Shared, Stream
from .ways import SMALL_WINDOW, WINDOW, Sending

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY = 0, 1, 3, 4, 5, 6, 7
WINDOW_UPDATE, CONTINUATION = 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
TABLE_SIZE, ENABLE_PUSH, MAX_STREAMS, INITIAL_WINDOW = 1, 2, 3, 4
NO_ERROR, REFUSED_STREAM, CANCEL = 0, 7, 8
FRAME_MAX, HEAD = 16_384, 9


class H2(asyncio.Protocol, Shared):
    """A connection; `small` is whether its streams begin with small windows."""

    def __init__(self, draw: random.Random) -> None:
        Shared.__init__(self)
        self.draw, self.small = draw, draw.random() < 0.5
        self.encoder, self.decoder = Encoder(draw), Decoder()
        self.buffer, self.out = b"", b""
        # The field block that is not whole yet, its stream, and whether that ends with it.
        self.block, self.at, self.last = b"", 0, False
        self.next, self.window = 1, WINDOW
        # Streams that the server has ended.
        self.over: set[int] = set()
        # What the server allows.
        self.most = 100
        self.transport: asyncio.Transport | None = None

    @classmethod
    async def opened(
        cls, port: int, context: ssl.SSLContext | None, name: str, draw: random.Random
    ) -> "H2":
        """A new connection."""
        _, made = await asyncio.get_running_loop().create_connection(
            lambda: cls(draw),
            *("127.0.0.1", port),
            ssl=context,
            server_hostname=name if context else None,
        )
        return made

    def usable(self) -> bool:
        """Whether one more request may begin."""
        return not self.leaving and len(self.streams) < self.most

    def frame(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        """Sends a frame, together with those of other requests that begin now."""
        if not self.out:
            asyncio.get_running_loop().call_soon(self.flush)
        head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
        self.out += head + struct.pack(">I", stream) + payload

    def flush(self) -> None:
        """Sends what there is."""
        out, self.out = self.out, b""
        if self.transport and out and not self.transport.is_closing():
            self.transport.write(out)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the preface."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.out = PREFACE
        asyncio.get_running_loop().call_soon(self.flush)
        ours = [(ENABLE_PUSH, 0), (INITIAL_WINDOW, SMALL_WINDOW if self.small else WINDOW)]
        self.frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in ours))

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more comes."""
        self.fail(ConnectionError(str(exc)))

    def close(self) -> None:
        """Ends it."""
        self.leaving = True
        if self.transport and not self.transport.is_closing():
            self.frame(GOAWAY, 0, 0, bytes(8))
            self.flush()
            self.transport.close()

    def begin(self, sent: Sending) -> Stream:
        """Sends a request, whose head now and then takes two frames."""
        stream = Stream(self.next, sent)
        self.next += 2
        self.streams[stream.number] = stream
        stream.window = SMALL_WINDOW if self.small else WINDOW
        block = self.encoder.encode(sent.section())
        end = 0 if sent.body is not None else END_STREAM
        cut = self.draw.randrange(len(block)) if self.draw.random() < 0.1 else len(block)
        whole = END_HEADERS if cut == len(block) else 0
        self.frame(HEADERS, end | whole, stream.number, block[:cut])
        if not whole:
            self.frame(CONTINUATION, END_HEADERS, stream.number, block[cut:])
        if sent.body is not None:
            self.frame(DATA, END_STREAM, stream.number, sent.body)
        if self.small and sent.way.slow:
            asyncio.get_running_loop().call_later(MOMENT, self.widen, stream)
        elif self.small:
            self.widen(stream)
        return stream

    def widen(self, stream: Stream) -> None:
        """Lets the rest of a response come."""
        if not stream.ended.is_set() and stream.number in self.streams:
            stream.window += WINDOW
            self.frame(WINDOW_UPDATE, 0, stream.number, struct.pack(">I", WINDOW))

    def leave(self, stream: Stream) -> None:
        """Resets a stream."""
        self.frame(RST_STREAM, 0, stream.number, struct.pack(">I", CANCEL))

    def data_received(self, data: bytes) -> None:
        """Takes what the server sends."""
        self.buffer += data
        try:
            while len(self.buffer) >= HEAD:
                size = int.from_bytes(self.buffer[:3], "big")
                if size > FRAME_MAX:
                    raise Broken(f"a frame of {size} bytes")
                if len(self.buffer) < HEAD + size:
                    break
                kind, flags = self.buffer[3:5]
                number = int.from_bytes(self.buffer[5:9], "big") & 0x7FFFFFFF
                payload, self.buffer = self.buffer[HEAD : HEAD + size], self.buffer[HEAD + size :]
                self.take(kind, flags, number, payload)
        except (Broken, ValueError, IndexError, KeyError, struct.error) as why:
            self.fail(Broken(f"HTTP/2: {why!r}"))
            self.close()

    def take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """Takes a frame."""
        stream = self.streams.get(number)
        if number >= self.next or (number and number % 2 == 0):
            raise Broken(f"a frame of kind {kind} on the idle stream {number}")
        if self.at and (kind, number) != (CONTINUATION, self.at):
            raise Broken("a field block is interrupted")
        if number in self.over and kind in (DATA, HEADERS):
            raise Broken(f"stream {number} goes on after its end")
        if kind in (HEADERS, CONTINUATION):
            self.section(kind, flags, number, payload)
        elif kind == DATA:
            self.content(stream, flags, payload)
        elif kind == RST_STREAM and stream:
            code = int.from_bytes(payload, "big")
            error = Refused if code == REFUSED_STREAM else Reset
            stream.end(error(f"reset with {code}"))
        elif kind == SETTINGS and not flags & ACK:
            self.settings(payload)
        elif kind == PING and not flags & ACK:
            self.frame(PING, ACK, 0, payload)
        elif kind == GOAWAY:
            last, code = struct.unpack(">II", payload[:8])
            if code != NO_ERROR:
                raise Broken(f"GOAWAY with {code}: {payload[8:]!r}")
            self.refuse_from((last & 0x7FFFFFFF) + 1)
        elif kind == PUSH_PROMISE:
            raise Broken("a push")
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            self.over.add(number)

    def section(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """Takes a part of a field block, which changes the table even if nobody wants it."""
        if kind == HEADERS:
            self.at, self.last = number, bool(flags & END_STREAM)
            payload = unpadded(flags, payload)[5 if flags & PRIORITY else 0 :]
            self.block = b""
        self.block += payload
        if flags & END_HEADERS:
            fields = self.decoder.decode(self.block)
            self.at = 0
            if stream := self.streams.get(number):
                stream.section(fields)
                if self.last:
                    stream.end()

    def content(self, stream: Stream | None, flags: int, payload: bytes) -> None:
        """Takes some of a body, and gives its window back."""
        self.window -= len(payload)
        if self.window < 0:
            raise Broken("more than the window of the connection")
        if self.window < WINDOW // 2:
            self.frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - self.window))
            self.window = WINDOW
        if not stream or stream.ended.is_set():
            return
        stream.window -= len(payload)
        if stream.window < 0:
            raise Broken(f"more than the window of stream {stream.number}")
        stream.data(unpadded(flags, payload))
        if flags & END_STREAM:
            stream.end()
        elif SMALL_WINDOW < stream.window < WINDOW // 2:
            self.widen(stream)

    def settings(self, payload: bytes) -> None:
        """Takes what the server allows; the bodies of requests are smaller than any window."""
        for at in range(0, len(payload), 6):
            name, value = struct.unpack(">HI", payload[at : at + 6])
            if name == TABLE_SIZE:
                self.encoder.limit(value)
            elif name == MAX_STREAMS:
                self.most = value
        self.frame(SETTINGS, ACK, 0)


def unpadded(flags: int, payload: bytes) -> bytes:
    """A payload without its padding."""
    return payload[1 : len(payload) - payload[0]] if flags & PADDED else payload
