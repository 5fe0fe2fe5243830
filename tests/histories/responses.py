"""Owns: responses as a client reads them, and the streams that bring them."""

import asyncio
import zlib
from contextlib import suppress
from dataclasses import dataclass, field

from .ways import Sending

# A bound for what hangs, not for a busy machine.
GENEROUS = 60
# How long a small window stays so.
MOMENT = 0.03
# How soon somebody leaves who does not wait for a response.
SOON = 0.01


class Refused(ConnectionError):
    """The server says that it has not processed the request (RFC 9113 §8.7, RFC 9114 §4.1.1)."""


class Crossed(ConnectionError):
    """The server closed a kept connection while a request was on its way (RFC 9112 §9.5)."""


class Reset(Exception):
    """The server ended a stream without a whole response."""


class Broken(Exception):
    """The server does what the protocol forbids."""


@dataclass
class Response:
    """A response; `complete` is false if it ended early."""

    status: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    complete: bool = False

    def unpack(self) -> None:
        """Decodes the body; a part of compressed bytes is not readable."""
        if self.fields.get("content-encoding") == "gzip" and self.status != 206:
            decoder = zlib.decompressobj(31)
            with suppress(zlib.error):
                self.body = decoder.decompress(self.body)


class Stream:
    """A request on a connection that others share, and its response."""

    def __init__(self, number: int, sent: Sending) -> None:
        self.number, self.sent = number, sent
        self.response = Response()
        self.begun, self.ended = asyncio.Event(), asyncio.Event()
        self.error: Exception | None = None
        # What may still come, for HTTP/2.
        self.window = 0

    def section(self, fields: list[tuple[bytes, bytes]]) -> None:
        """Takes a field section; a later one than that of the response has trailers."""
        named = [(name.decode(), value.decode("latin1")) for name, value in fields]
        if self.response.status:
            return
        status = int(dict(named)[":status"])
        if status >= 200:
            self.response.status = status
            for name, value in named:
                self.response.fields.setdefault(name, value.strip())
            self.begun.set()

    def data(self, data: bytes) -> None:
        """Takes some of the body."""
        if not self.response.status:
            raise Broken("content before a response")
        if data and (self.sent.method == "HEAD" or self.response.status in (204, 304)):
            raise Broken("content where there is none")
        self.response.body += data

    def end(self, error: Exception | None = None) -> None:
        """Ends it, well or not."""
        if self.ended.is_set():
            return
        self.error, self.response.complete = error, error is None
        length = self.response.fields.get("content-length")
        has_length = length is not None and self.sent.method != "HEAD"
        if not error and has_length and self.response.status not in (204, 304):
            told, got = int(length or 0), len(self.response.body)
            if told != got:
                self.error = Broken(f"{got} bytes of {told}, and then the end")
        self.begun.set()
        self.ended.set()


class Shared:
    """A connection for many requests at a time; HTTP/2 and HTTP/3 say how."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        # Since when no request may begin on it.
        self.leaving = False
        # What the server did wrong.
        self.fault: Broken | None = None

    def usable(self) -> bool:
        """Whether one more request may begin."""
        return not self.leaving

    def begin(self, sent: Sending) -> Stream:
        """Sends a request."""
        raise NotImplementedError

    def leave(self, stream: Stream) -> None:
        """Wants no more of a response; the connection goes on."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the connection."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """The connection is over, and so is what is on it."""
        self.leaving = True
        if isinstance(error, Broken) and not self.fault:
            self.fault = error
        for stream in [*self.streams.values()]:
            stream.end(error)

    def refuse_from(self, first: int) -> None:
        """The server goes away, and has not processed the streams from this one on."""
        self.leaving = True
        for number, stream in [*self.streams.items()]:
            if number >= first:
                stream.end(Refused("the server goes away"))
        self.settle()

    def settle(self) -> None:
        """Ends a connection that nobody needs any more, or a server waits for its end."""
        if self.leaving and not self.streams:
            self.close()

    async def exchange(self, sent: Sending) -> Response:
        """A response; who leaves does so before it begins, or once it has begun."""
        if self.leaving:
            raise ConnectionError("closed")
        stream = self.begin(sent)
        try:
            if sent.leaves:
                await (asyncio.sleep(SOON) if sent.way.at_once else stream.begun.wait())
            else:
                await stream.ended.wait()
        finally:
            if not stream.ended.is_set():
                self.leave(stream)
            self.streams.pop(stream.number, None)
            self.settle()
        if sent.leaves:
            return Response()
        if isinstance(stream.error, Broken):
            raise stream.error
        # What comes before the connection ends counts as well.
        if stream.error and not stream.response.status:
            raise stream.error
        stream.response.unpack()
        return stream.response
