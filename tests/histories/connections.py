"""Owns: the connections of a history: who goes the same way shares one, and dead ones are replaced.

A request that is lost with its connection, or that the server says it has not processed, is not
sent again.
"""

import asyncio
import random
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from .h1 import H1
from .h2 import H2
from .h3 import H3
from .responses import GENEROUS, Broken, Crossed, Response, Shared
from .site import HOST, OTHER_HOST
from .ways import Protocol, Sending, Way

Key = tuple[Protocol, int]


@contextmanager
def handshakes() -> Iterator[None]:
    """A handshake of TLS that fails is a connection that breaks."""
    try:
        yield
    except ssl.SSLError as why:
        raise ConnectionError(str(why)) from why


class Connections:
    """All connections of a history to its server."""

    def __init__(self, certificate: str, draw: random.Random) -> None:
        self.certificate, self.draw = certificate, draw
        self.idle: dict[int, list[H1]] = {}
        self.shared: dict[Key, Shared] = {}
        self.locks: dict[Key, asyncio.Lock] = {}
        # With those that are shaking hands or about to end.
        self.over_quic: list[H3] = []
        self.faults: list[Broken] = []

    def context(self, protocol: str) -> ssl.SSLContext:
        """A client of TLS that speaks this protocol (RFC 7301)."""
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_alpn_protocols([protocol])
        return context

    async def fetch(self, sent: Sending) -> Response:
        """Sends a request by its way."""
        async with asyncio.timeout(GENEROUS):
            if sent.way.protocol in (Protocol.NEW, Protocol.KEPT):
                return await self.alone(sent)
            connection = await self.to_share(sent.way)
            return await connection.exchange(sent)

    async def alone(self, sent: Sending) -> Response:
        """Sends a request on a connection that nobody else has meanwhile."""
        way, goes_on = sent.way, sent.way.protocol is Protocol.KEPT
        idle = self.idle.setdefault(way.port, [])
        connection: H1 | None = None
        while idle and goes_on and not connection:
            last = idle.pop()
            connection = last if last.usable else None
        if not connection:
            context = self.context("http/1.1") if way.secure else None
            with handshakes():
                connection = await H1.opened(way.port, context, HOST)
        response = None
        try:
            response = await connection.exchange(sent, goes_on)
        except ConnectionError as why:
            if not connection.used:
                raise
            raise Crossed(str(why)) from why
        finally:
            connection.used = True
            if response and goes_on and connection.usable:
                idle.append(connection)
            else:
                connection.close()
        return response

    async def to_share(self, way: Way) -> Shared:
        """The connection of a way; a new one if there is none that a request may begin on."""
        key = (way.protocol, way.port)
        async with self.locks.setdefault(key, asyncio.Lock()):
            known = self.shared.get(key)
            if known and known.usable():
                return known
            if known:
                self.replaced(known)
            self.shared[key] = await self.opened(way)
            return self.shared[key]

    def replaced(self, old: Shared) -> None:
        """Nothing more begins on this connection."""
        old.leaving = True
        old.settle()
        if old.fault:
            self.faults.append(old.fault)

    async def opened(self, way: Way) -> Shared:
        """A new connection; whose name the handshake has does not matter."""
        name = self.draw.choice([HOST, OTHER_HOST])
        if way.protocol is not Protocol.QUIC:
            context = self.context("h2") if way.secure else None
            with handshakes():
                return await H2.opened(way.port, context, name, self.draw)
        made = H3(self.certificate, name, self.draw)
        self.over_quic = [one for one in self.over_quic if not one.closed] + [made]
        await made.shake(way.port)
        if made.leaving:
            raise made.fault or ConnectionError("no handshake")
        return made

    def died(self) -> None:
        """The server was killed, of which QUIC does not tell its peer."""
        for one in self.over_quic:
            one.fail(ConnectionError("killed"))
            one.close()

    def close(self) -> None:
        """Ends all."""
        self.faults += [one.fault for one in self.shared.values() if one.fault]
        for alone in (one for some in self.idle.values() for one in some):
            alone.close()
        for shared in self.shared.values():
            shared.close()
