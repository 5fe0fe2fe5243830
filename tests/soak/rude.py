"""Clients that are slow, hostile or gone: it matters only that the server gets rid of them.

Owns what such a client may cost: it is answered or sent away in time, and others are served.
"""

import asyncio
import contextlib
import random
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.quic.configuration import QuicConfiguration

from .book import Failure
from .place import DESCRIPTORS, Place
from .server import GENEROUS

HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GONE = (OSError, asyncio.IncompleteReadError, ssl.SSLError)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2 (RFC 9113 §4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def get_block(path: bytes) -> bytes:
    """The fields of a request, as HPACK's literals and static entries (RFC 7541 §6)."""
    named = b"\x04" + bytes([len(path)]) + path
    return b"\x82\x87" + named + b"\x01\x09localhost"


class Rude:
    """Such clients of a place."""

    def __init__(self, place: Place, seed: int) -> None:
        """Their chance is seeded."""
        self.place, self.chance = place, random.Random(seed)

    @contextlib.asynccontextmanager
    async def stream(
        self, port: int, alpn: str = ""
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection, over TLS if there is a protocol to be agreed on."""
        context = None
        if alpn:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols([alpn])
        opened = asyncio.open_connection("127.0.0.1", port, ssl=context)
        reader, writer = await asyncio.wait_for(opened, GENEROUS)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def is_sent_away(self, reader: asyncio.StreamReader, who: str) -> None:
        """Waits for the end of a connection."""
        with contextlib.suppress(*GONE):
            async with asyncio.timeout(GENEROUS):
                while await reader.read(1 << 16):
                    pass
                return
        if not reader.at_eof() and reader.exception() is None:
            raise Failure(f"{who} may stay")

    async def slow_head(self) -> None:
        """A head that comes letter by letter has its time, then the client is sent away."""
        alpn = self.chance.choice(["", "http/1.1"])
        port = self.place.slow_tls if alpn else self.place.slow
        # Who is slow to shake hands is sent away sooner.
        with contextlib.suppress(*GONE):
            async with self.stream(port, alpn) as (reader, writer):
                writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
                deadline = time.monotonic() + GENEROUS
                while not reader.at_eof() and not writer.transport.is_closing():
                    if time.monotonic() > deadline:
                        raise Failure("a slow head may stay")
                    with contextlib.suppress(*GONE):
                        writer.write(b"x")
                        await writer.drain()
                    with contextlib.suppress(TimeoutError, *GONE):
                        async with asyncio.timeout(0.5):
                            if not await reader.read(1 << 16):
                                break

    async def slow_body(self) -> None:
        """A body that stops in the middle."""
        alpn = self.chance.choice(["", "http/1.1"])
        port = self.place.slow_tls if alpn else self.place.slow
        # Who is slow to shake hands is sent away sooner.
        with contextlib.suppress(*GONE):
            async with self.stream(port, alpn) as (reader, writer):
                writer.write(b"POST /origin/sink HTTP/1.1\r\nHost: localhost\r\n")
                writer.write(b"Content-Length: 100000\r\n\r\nsome of it")
                await self.is_sent_away(reader, "who sends half a body")

    async def slow_reader(self) -> None:
        """Somebody who asks for much and takes nothing of it."""
        alpn = self.chance.choice(["", "http/1.1"])
        port = self.place.slow_tls if alpn else self.place.slow
        # Who is slow to shake hands is sent away sooner.
        with contextlib.suppress(*GONE):
            async with self.stream(port, alpn) as (reader, writer):
                writer.write(b"GET /big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await asyncio.sleep(6)
                # What lies in buffers still comes; the whole does not.
                await self.is_sent_away(reader, "who takes nothing")

    async def garbage(self) -> None:
        """Bytes that mean nothing, over TCP and UDP."""
        for port in (self.place.http, self.place.https, self.place.slow_tls):
            with contextlib.suppress(*GONE):
                async with self.stream(port) as (_, writer):
                    writer.write(self.chance.randbytes(self.chance.randrange(1, 3000)))
                    await writer.drain()
                    await asyncio.sleep(0.2)
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            for _ in range(50):
                noise = bytearray(self.chance.randbytes(self.chance.randrange(1, 1400)))
                if self.chance.random() < 0.5:
                    # As an Initial packet begins (RFC 9000 §17.2.2).
                    noise[:6] = b"\xc3\0\0\0\1\x08"
                udp.sendto(noise, ("127.0.0.1", self.place.https))

    async def half_handshakes(self) -> None:
        """TLS that is begun and left."""
        for cut in (1, 5, 60, 200):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            context = ssl.create_default_context()
            client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
            with contextlib.suppress(*GONE):
                async with self.stream(self.place.https) as (_, writer):
                    writer.write(outgoing.read()[:cut])
                    await writer.drain()
                    await asyncio.sleep(0.2)

    async def resets(self) -> None:
        """Connections that are reset in the middle of an answer."""
        for path in (b"/big.bin", b"/origin/chunked?n=3000000", b"/page.php?n=1"):
            with contextlib.suppress(*GONE):
                async with self.stream(self.place.http) as (reader, writer):
                    writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    await reader.read(100)
                    plug: socket.socket = writer.get_extra_info("socket")
                    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def rapid_reset(self) -> None:
        """HTTP/2 requests that are taken back at once, hundreds of them."""
        with contextlib.suppress(*GONE):
            async with self.stream(self.place.https, "h2") as (reader, writer):
                writer.write(HTTP2 + frame(4, 0, 0))
                block = get_block(self.chance.choice([b"/small.txt", b"/origin/length?n=9"]))
                for stream in range(1, 1000, 2):
                    headers = frame(1, 5, stream, block)
                    writer.write(headers + frame(3, 0, stream, struct.pack(">I", 8)))
                await writer.drain()
                async with asyncio.timeout(5):
                    while await reader.read(1 << 16):
                        pass
        # A server that goes on has not been harmed either; whether it was is seen at the rest.

    async def vanished(self) -> None:
        """HTTP/2 and HTTP/3 clients that ask for much and are gone without a word."""
        with contextlib.suppress(*GONE):
            async with self.stream(self.place.https, "h2") as (reader, writer):
                writer.write(HTTP2 + frame(4, 0, 0) + frame(1, 5, 1, get_block(b"/big.bin")))
                await reader.read(1000)
        await self.quic(self.place.https, [b"/big.bin"] * 3, leaves=True)

    async def outstayed(self) -> None:
        """An HTTP/3 client that has asked as much as it may, and stays."""
        await self.quic(self.place.slow_tls, [b"/small.txt"] * 6, leaves=False)

    async def quic(self, port: int, paths: list[bytes], leaves: bool) -> None:
        """Asks over HTTP/3; then is gone, or stays for a while."""
        configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"])
        configuration.verify_mode = ssl.CERT_NONE
        configuration.server_name = "localhost"
        client: QuicConnectionProtocol
        with contextlib.suppress(ConnectionError):
            async with connect("127.0.0.1", port, configuration=configuration) as client:
                h3 = H3Connection(client._quic)
                for path in paths:
                    stream = client._quic.get_next_available_stream_id()
                    names = [b":method", b":scheme", b":authority", b":path"]
                    values = [b"GET", b"https", b"localhost", path]
                    h3.send_headers(stream, list(zip(names, values, strict=True)), True)
                    client.transmit()
                    await asyncio.sleep(0.05)
                await asyncio.sleep(0.3 if leaves else 5)
                if leaves:
                    if client._transport:
                        client._transport.abort()
                    client._quic.close()

    async def crowd(self, hold: float) -> tuple[float, float]:
        """Takes all descriptors of the server for a while; from when to when."""
        begin, crowd = time.time(), []
        for _ in range(DESCRIPTORS + 200):
            one = socket.socket()
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(("127.0.0.1", self.place.http))
            crowd.append(one)
            await asyncio.sleep(0)
        await asyncio.sleep(1)
        for one in crowd:
            with contextlib.suppress(OSError):
                one.send(b"GET / HTTP/1.1\r\n")
        await asyncio.sleep(hold)
        for one in crowd:
            one.close()
        return begin, time.time()
