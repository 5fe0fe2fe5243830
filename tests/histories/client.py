"""Owns: visitors, their requests, and the responses as a client reads them."""

import asyncio
import random
import zlib
from contextlib import suppress
from dataclasses import dataclass, field

from .origin import SESSION
from .site import HOST, Kind, Page
from .wire import Fields

# A bound for what hangs, not for a busy machine.
GENEROUS = 60
USERS = ("", "alicealicealice1", "bobbobbobbobbob22")


@dataclass(frozen=True)
class Visitor:
    """What of a request responses may depend on."""

    user: str = ""
    language: str = ""
    by_field: str = ""
    password: str = ""

    @classmethod
    def drawn(cls, draw: random.Random) -> "Visitor":
        """Any visitor."""
        return cls(
            draw.choice(USERS),
            draw.choice(["", "", "de", "fr"]),
            draw.choice(["", "", "x", "y"]),
            draw.choice([*[""] * 10, "aa", "bb"]),
        )

    def fields(self, host: str = HOST) -> Fields:
        """Its request fields; an order takes no others than these."""
        named = ((SESSION, self.user), ("lang", self.language))
        cookies = [f"{name}={value}" for name, value in named if value]
        fields = [("Host", host)]
        if cookies:
            fields.append(("Cookie", "; ".join(cookies)))
        if self.password:
            fields.append(("Authorization", f"Bearer {self.password}"))
        return fields

    def may_see(self, audience: str, argument: str) -> bool:
        """Whether a body for this audience may be shown to it."""
        own = {
            "u": self.user,
            "h": self.by_field,
            "c": self.language,
            "b": f"{self.by_field}+{self.language}",
            "a": self.password,
            "q": argument,
        }
        kind, _, value = audience.partition("=")
        return audience == "pub" or own.get(kind) == value


@dataclass
class Visit:
    """A request for a page."""

    page: Page
    visitor: Visitor
    host: str
    port: int
    method: str
    target: str
    # The value of the one argument that counts.
    argument: str = ""
    fields: Fields = field(default_factory=list)
    leaves: bool = False

    def __str__(self) -> str:
        told = " ".join(f"{name}:{value}" for name, value in self.fields)
        return f"{self.method} {self.host}:{self.port}{self.target} {self.visitor} {told}"


def visit(draw: random.Random, page: Page, ports: list[int], hosts: list[str]) -> Visit:
    """A request for a page, as browsers and crawlers send them."""
    visitor = Visitor.drawn(draw)
    made = Visit(page, visitor, draw.choice(hosts), draw.choice(ports), "GET", page.path)
    if made.host != HOST:
        made.port = ports[0]
    if page.kind is Kind.BY_ARGUMENT:
        made.argument = draw.choice(["1", "2", ""])
        other = draw.choice(["", "utm_source=a&", "z=1&"])
        made.target += f"?{other}id={made.argument}" if made.argument else f"?{other}y=3"
    if visitor.by_field:
        made.fields.append(("X-Var", visitor.by_field))
    if draw.random() < 0.06:
        made.method = "HEAD"
    made.fields += conditions(draw, page)
    if draw.random() < 0.3:
        made.fields.append(("Accept-Encoding", draw.choice(["gzip", "identity"])))
    if draw.random() < 0.05:
        words = ["no-cache", "max-age=0", "no-store", "max-stale=1", "only-if-cached"]
        made.fields.append(("Cache-Control", draw.choice(words)))
    made.leaves = draw.random() < 0.05
    return made


def conditions(draw: random.Random, page: Page) -> Fields:
    """Ranges and conditions of a request, if it has any."""
    match draw.randrange(20):
        case 0:
            first = draw.choice([0, 64, 100, 128, 640])
            return [("Range", f"bytes={first}-{first + draw.choice([10, 127, 700])}")]
        case 1:
            return [("Range", "bytes=-130")]
        case 2:
            version = draw.choice([page.version, max(1, page.version - 1)])
            return [("If-None-Match", f'"{page.name}-{version}-pub"')]
        case 3:
            validator = f'"{page.name}-{page.version}-pub"'
            return [("Range", "bytes=0-127"), ("If-Range", validator)]
        case _:
            return []


@dataclass
class Response:
    """A response; `complete` is false if it ended early."""

    status: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    complete: bool = False


def unchunked(data: bytes) -> tuple[bytes, bool]:
    """The body in chunks, and whether its end is there."""
    body = b""
    while True:
        line, mark, data = data.partition(b"\r\n")
        if not mark:
            return body, False
        size = int(line, 16)
        if size == 0:
            return body, True
        body += data[:size]
        data = data[size + 2 :]


def parsed(method: str, data: bytes) -> Response:
    """The response in these bytes."""
    head, mark, body = data.partition(b"\r\n\r\n")
    if not mark:
        return Response()
    line, *rest = head.decode("latin1").split("\r\n")
    response = Response(int(line.split()[1]), complete=True)
    for name, _, value in (one.partition(":") for one in rest):
        response.fields.setdefault(name.lower(), value.strip())
    if method == "HEAD" or response.status in (204, 304):
        return response
    if response.fields.get("transfer-encoding") == "chunked":
        body, response.complete = unchunked(body)
    elif length := response.fields.get("content-length"):
        response.complete = len(body) == int(length)
    # A part of compressed bytes is not readable.
    if response.fields.get("content-encoding") == "gzip" and response.status != 206:
        decoder = zlib.decompressobj(31)
        with suppress(zlib.error):
            body = decoder.decompress(body)
    response.body = body
    return response


async def fetch(
    port: int,
    method: str,
    target: str,
    fields: Fields,
    body: bytes | None = None,
    leaves: bool = False,
) -> Response:
    """Sends a request on a connection of its own; who leaves reads no more than the first bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        if body is not None:
            fields = [*fields, ("Content-Length", str(len(body)))]
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        head = f"{method} {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"
        writer.write(head.encode() + (body or b""))
        await writer.drain()
        data = b""
        # What comes before a reset counts as well.
        with suppress(ConnectionError):
            while more := await asyncio.wait_for(reader.read(65536), GENEROUS):
                data += more
                if leaves:
                    break
    finally:
        writer.close()
    return Response() if leaves else parsed(method, data)
