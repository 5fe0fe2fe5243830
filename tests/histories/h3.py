"""Owns: HTTP/3 (RFC 9114) over aioquic: one connection whose streams belong to several visitors."""

import asyncio
import random

from aioquic._buffer import Buffer, BufferReadError
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import ErrorCode, FrameType, H3Connection, H3Stream, StreamType
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicErrorCode
from aioquic.quic.packet_builder import QuicPacketBuilder
from aioquic.quic.recovery import QuicPacketSpace
from aioquic.quic.stream import QuicStream

from .responses import GENEROUS, MOMENT, Broken, Refused, Reset, Shared, Stream
from .ways import SMALL_WINDOW, Sending

WELL = (QuicErrorCode.NO_ERROR, ErrorCode.H3_NO_ERROR)
# The server's unidirectional streams (RFC 9000 §2.1).
UNIDIRECTIONAL = 3


class Quic(QuicConnection):
    """QUIC that leaves the windows of some streams as they are."""

    held: set[int]

    def _write_stream_limits(
        self, builder: QuicPacketBuilder, space: QuicPacketSpace, stream: QuicStream
    ) -> None:
        if stream.stream_id not in self.held:
            super()._write_stream_limits(builder, space, stream)


class Fields(H3Connection):
    """HTTP/3 that knows of no methods and statuses without content; `Stream` does."""

    def _check_content_length(self, stream: H3Stream) -> None:
        pass


class Peer(QuicConnectionProtocol):
    """Passes on what QUIC sees."""

    def __init__(self, quic: Quic, whole: "H3") -> None:
        super().__init__(quic)
        self.whole = whole

    def quic_event_received(self, event: events.QuicEvent) -> None:
        """Passes it on."""
        self.whole.event(event)


class H3(Shared):
    """A connection."""

    def __init__(self, authorities: str, name: str, draw: random.Random) -> None:
        super().__init__()
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=["h3"], server_name=name, idle_timeout=2 * GENEROUS
        )
        configuration.load_verify_locations(cafile=authorities)
        self.quic = Quic(configuration=configuration)
        self.quic.held = set()
        if draw.random() < 0.5:
            self.quic._local_max_stream_data_bidi_local = SMALL_WINDOW
        self.peer, self.h3 = Peer(self.quic, self), Fields(self.quic)
        self.ready, self.closed = asyncio.Event(), False
        # What the server's unidirectional streams have said, until it is understood.
        self.said: dict[int, bytes] = {}

    async def shake(self, port: int) -> None:
        """Shakes hands."""
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self.peer, local_addr=("127.0.0.1", 0))
        self.peer.connect(("127.0.0.1", port))
        await self.ready.wait()

    def close(self) -> None:
        """Ends it."""
        self.leaving = True
        if not self.closed:
            self.closed = True
            self.peer.close(ErrorCode.H3_NO_ERROR)

    def fail(self, error: Exception) -> None:
        """The connection is over, and so is what is on it."""
        super().fail(error)
        self.ready.set()

    def begin(self, sent: Sending) -> Stream:
        """Sends a request."""
        stream = Stream(self.quic.get_next_available_stream_id(), sent)
        self.streams[stream.number] = stream
        self.h3.send_headers(stream.number, sent.section(), end_stream=sent.body is None)
        if sent.body is not None:
            self.h3.send_data(stream.number, sent.body, end_stream=True)
        if sent.way.slow:
            self.quic.held.add(stream.number)
            asyncio.get_running_loop().call_later(MOMENT, self.widen, stream)
        self.peer.transmit()
        return stream

    def widen(self, stream: Stream) -> None:
        """Lets the rest of a response come."""
        self.quic.held.discard(stream.number)
        if not self.closed:
            self.peer.transmit()

    def leave(self, stream: Stream) -> None:
        """Cancels a request (RFC 9114 §4.1.1), and its field sections (RFC 9204 §4.4.2)."""
        if self.closed:
            return
        self.quic.reset_stream(stream.number, ErrorCode.H3_REQUEST_CANCELLED)
        self.quic.stop_stream(stream.number, ErrorCode.H3_REQUEST_CANCELLED)
        instructions = self.h3._local_decoder_stream_id
        if instructions is not None:
            cancelled = self.h3._decoder.cancel_stream(stream.number)
            self.quic.send_stream_data(instructions, cancelled)
        self.peer.transmit()

    def event(self, event: events.QuicEvent) -> None:
        """Takes what QUIC has seen."""
        match event:
            case events.HandshakeCompleted():
                self.ready.set()
            case events.ConnectionTerminated():
                self.closed = True
                text = f"{event.error_code:#x} {event.reason_phrase}"
                well = event.error_code in WELL
                self.fail(ConnectionError(text) if well else Broken(f"HTTP/3: {text}"))
            case events.StreamReset(stream_id=number, error_code=code):
                if stream := self.streams.get(number):
                    refused = code == ErrorCode.H3_REQUEST_REJECTED
                    stream.end((Refused if refused else Reset)(f"reset with {code:#x}"))
            case events.StreamDataReceived(stream_id=number) if number % 4 == 0:
                # What was cancelled is not read.
                if number in self.streams:
                    self.take(event)
            case _:
                self.take(event)

    def take(self, event: events.QuicEvent) -> None:
        """Takes it as HTTP/3."""
        try:
            for told in self.h3.handle_event(event):
                self.told(told)
            if isinstance(event, events.StreamDataReceived):
                self.listen(event)
        except Broken as why:
            self.fail(why)
            self.close()

    def told(self, told: H3Event) -> None:
        """Takes what HTTP/3 has seen."""
        if not isinstance(told, HeadersReceived | DataReceived):
            return
        stream = self.streams.get(told.stream_id)
        if not stream or stream.ended.is_set():
            return
        if isinstance(told, HeadersReceived):
            stream.section(told.headers)
        else:
            stream.data(told.data)
        if told.stream_ended:
            stream.end()

    def listen(self, event: events.StreamDataReceived) -> None:
        """Looks for GOAWAY on the control stream, which aioquic skips."""
        if event.stream_id % 4 != UNIDIRECTIONAL:
            return
        said = self.said.get(event.stream_id, b"") + event.data
        if said[:1] == bytes([StreamType.CONTROL]):
            said = said[:1] + self.frames(Buffer(data=said[1:]))
        self.said[event.stream_id] = said

    def frames(self, buffer: Buffer) -> bytes:
        """Takes whole frames of the control stream; what is left of it."""
        begin = 0
        try:
            while True:
                kind, size = buffer.pull_uint_var(), buffer.pull_uint_var()
                payload = Buffer(data=buffer.pull_bytes(size))
                begin = buffer.tell()
                if kind == FrameType.GOAWAY:
                    self.refuse_from(payload.pull_uint_var())
        except BufferReadError:
            return buffer.data_slice(begin, buffer.capacity)
