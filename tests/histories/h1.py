"""Owns: HTTP/1.1: a request at a time on a connection, which may go on or not (RFC 9112)."""

import asyncio
import ssl

from .responses import Broken, Response
from .ways import Sending

BODILESS = (204, 304)


class Reading(asyncio.StreamReaderProtocol):
    """Closes its side as soon as the server has closed its own."""

    def eof_received(self) -> bool:
        """Nothing more comes, and nothing more is wanted."""
        super().eof_received()
        return False


class H1:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        # Whether it has had a request before.
        self.used = False

    @classmethod
    async def opened(cls, port: int, context: ssl.SSLContext | None, name: str) -> "H1":
        """A new connection."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, protocol = await loop.create_connection(
            lambda: Reading(reader),
            *("127.0.0.1", port),
            ssl=context,
            server_hostname=name if context else None,
        )
        return cls(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    @property
    def usable(self) -> bool:
        """Whether the server has not closed it."""
        return not self.reader.at_eof() and not self.writer.is_closing()

    def close(self) -> None:
        """Ends it."""
        self.writer.close()

    async def exchange(self, sent: Sending, goes_on: bool) -> Response:
        """A response; who leaves reads no more than the first bytes, and closes."""
        fields = list(sent.fields)
        if sent.body is not None:
            fields.append(("Content-Length", str(len(sent.body))))
        if not goes_on:
            fields.append(("Connection", "close"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        head = f"{sent.method} {sent.target} HTTP/1.1\r\n{lines}\r\n"
        self.writer.write(head.encode() + (sent.body or b""))
        await self.writer.drain()
        response = Response()
        if sent.leaves:
            await self.reader.read(1)
            self.close()
            return response
        # What comes before a reset counts as well.
        try:
            await self.read(sent.method, response)
        except (ValueError, asyncio.LimitOverrunError) as why:
            raise Broken(f"HTTP/1.1: {why}") from why
        except (ConnectionError, asyncio.IncompleteReadError) as why:
            self.close()
            if not response.status:
                raise ConnectionError(str(why)) from why
        self.after(response, goes_on)
        return response

    async def read(self, method: str, response: Response) -> None:
        """Reads the head and the body."""
        line = b"HTTP/1.1 100 "
        while line.startswith(b"HTTP/1.1 1"):
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, *rest = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        if not line.startswith(b"HTTP/1.1 "):
            raise Broken(f"not a status line: {line!r}")
        for name, _, value in (one.decode("latin1").partition(":") for one in rest):
            response.fields.setdefault(name.lower(), value.strip())
        response.status = int(line.split()[1])
        if method == "HEAD" or response.status in BODILESS:
            pass
        elif response.fields.get("transfer-encoding") == "chunked":
            await self.chunks(response)
        elif length := response.fields.get("content-length"):
            await self.take(response, int(length))
        else:
            while more := await self.reader.read(65536):
                response.body += more
            self.close()
        response.complete = True

    async def take(self, response: Response, size: int) -> None:
        """So much of the body; if the connection ends before, what there is."""
        while size:
            more = await self.reader.read(size)
            if not more:
                raise ConnectionError("cut")
            response.body += more
            size -= len(more)

    async def chunks(self, response: Response) -> None:
        """The body in chunks, without trailers."""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            await self.take(response, size)
            await self.reader.readuntil(b"\r\n")
        if await self.reader.readuntil(b"\r\n") != b"\r\n":
            raise Broken("a trailer section that nobody wants")

    def after(self, response: Response, goes_on: bool) -> None:
        """Closes a connection that does not go on."""
        said = response.fields.get("connection", "").lower()
        if not goes_on or said == "close" or not response.complete:
            self.close()
        if getattr(self.reader, "_buffer", b""):
            self.close()
            raise Broken("more bytes than a response has")
        response.unpack()
