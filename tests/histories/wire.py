"""Owns: requests as the application reads them, and its responses as it writes them."""

import asyncio
import re
from dataclasses import dataclass, field

Fields = list[tuple[str, str]]


@dataclass
class Request:
    """A request as it arrived."""

    method: str
    target: str
    fields: dict[str, list[str]]
    body: bytes

    def first(self, name: str) -> str:
        """The first field of this name."""
        return self.fields.get(name, [""])[0]

    def cookie(self, name: str) -> str:
        """The value of a cookie."""
        for line in self.fields.get("cookie", []):
            for pair in line.split(";"):
                key, _, value = pair.strip().partition("=")
                if key == name:
                    return value
        return ""


@dataclass
class Answer:
    """A response to write; `cut` closes the connection in its middle."""

    status: int = 200
    fields: Fields = field(default_factory=list)
    body: bytes = b""
    pause: float = 0
    chunked: bool = False
    cut: bool = False


async def read(reader: asyncio.StreamReader) -> Request:
    """The next request of a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
    line, *rest = head.split("\r\n")
    method, target, _ = line.split(" ", 2)
    fields: dict[str, list[str]] = {}
    for name, colon, value in (one.partition(":") for one in rest):
        if colon:
            fields.setdefault(name.lower(), []).append(value.strip())
    size = int(fields.get("content-length", ["0"])[0])
    return Request(method, target, fields, await reader.readexactly(size))


async def write(writer: asyncio.StreamWriter, request: Request, answer: Answer) -> bool:
    """Writes a response; whether the connection goes on."""
    chunked = answer.chunked and request.method != "HEAD" and answer.status != 304
    fields = list(answer.fields)
    if chunked:
        fields.append(("Transfer-Encoding", "chunked"))
    elif answer.status != 304:
        fields.append(("Content-Length", str(len(answer.body))))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    writer.write(f"HTTP/1.1 {answer.status} Said\r\n{lines}\r\n".encode("latin1"))
    await writer.drain()
    if request.method == "HEAD" or answer.status == 304:
        return True
    half = len(answer.body) // 2
    for number, part in enumerate((answer.body[:half], answer.body[half:])):
        if number and answer.cut:
            return False
        if number and answer.pause:
            await asyncio.sleep(answer.pause)
        if part:
            writer.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
            await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def cut_out(request: Request, answer: Answer) -> None:
    """The range of the response that was requested."""
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", request.first("range"))
    if not found:
        return
    size, first = len(answer.body), int(found[1])
    if first >= size:
        answer.status, answer.body = 416, b""
        answer.fields.append(("Content-Range", f"bytes */{size}"))
        return
    last = min(int(found[2] or size), size - 1)
    answer.status, answer.body = 206, answer.body[first : last + 1]
    answer.fields.append(("Content-Range", f"bytes {first}-{last}/{size}"))
