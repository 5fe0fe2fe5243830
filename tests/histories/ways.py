"""Owns: how a request travels: its protocol, its connection, and how its client writes and reads.

All ways lead to the same pages. A connection is shared by whoever goes the same way at that time.
"""

import random
from dataclasses import dataclass, field
from enum import StrEnum

from .wire import Fields

# Streams of small windows are blocked often; the other value is the initial one of HTTP/2.
SMALL_WINDOW, WINDOW = 500, 65_535


class Protocol(StrEnum):
    """A version of HTTP, and what it goes over."""

    NEW = "h1-new"
    KEPT = "h1-kept"
    CLEAR = "h2-clear"
    TLS = "h2-tls"
    QUIC = "h3"


WEIGHTS = {
    Protocol.NEW: 3,
    Protocol.KEPT: 3,
    Protocol.CLEAR: 4,
    Protocol.TLS: 3,
    Protocol.QUIC: 3,
}


@dataclass(frozen=True)
class Listeners:
    """The ports of a host."""

    clear: tuple[int, ...]
    # TLS and QUIC.
    secure: int


@dataclass(frozen=True)
class Way:
    """How one request travels."""

    protocol: Protocol
    port: int
    secure: bool = False
    # RFC 9113 §8.2.3: a field for each cookie.
    crumbs: bool = False
    # A `host` that equals `:authority`.
    named_twice: bool = False
    # The window of its stream stays small for a moment.
    slow: bool = False
    # Who leaves does not wait for the response to begin.
    at_once: bool = False

    @classmethod
    def drawn(cls, draw: random.Random, listeners: Listeners) -> "Way":
        """Any way to a host."""
        protocol = draw.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        secure = protocol in (Protocol.TLS, Protocol.QUIC)
        secure = secure or (protocol is Protocol.KEPT and draw.random() < 0.25)
        return cls(
            protocol,
            listeners.secure if secure else draw.choice(listeners.clear),
            secure,
            crumbs=draw.random() < 0.3,
            named_twice=draw.random() < 0.3,
            slow=draw.random() < 0.1,
            at_once=draw.random() < 0.5,
        )

    def __str__(self) -> str:
        scheme = "https" if self.secure else "http"
        return f"{self.protocol} {scheme}:{self.port}"


@dataclass
class Sending:
    """A request as it is sent; `Host` is the first of its fields."""

    way: Way
    method: str
    target: str
    fields: Fields = field(default_factory=list)
    body: bytes | None = None
    leaves: bool = False

    def section(self) -> list[tuple[bytes, bytes]]:
        """The field section of RFC 9113 §8.3 and RFC 9114 §4.3."""
        (_, host), *others = self.fields
        pairs = [
            (":method", self.method),
            (":scheme", "https" if self.way.secure else "http"),
            (":authority", host),
            (":path", self.target),
        ]
        if self.way.named_twice:
            pairs.append(("host", host))
        for name, value in others:
            split = name == "Cookie" and self.way.crumbs
            values = value.split("; ") if split else [value]
            pairs += [(name.lower(), one) for one in values]
        if self.body is not None and not self.way.crumbs:
            pairs.append(("content-length", str(len(self.body))))
        return [(name.encode(), value.encode()) for name, value in pairs]
