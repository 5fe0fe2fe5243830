"""The origin behind `proxy_pass`: a process of its own that answers what its address asks for.

Owns what is right: bodies are made of their length alone, so that whoever gets one can check it.
"""

import asyncio
import contextlib
import hashlib
import sys
from urllib.parse import parse_qs, urlsplit

PIECE = 16 * 1024


def content(size: int) -> bytes:
    """The body of this length."""
    line = b"%015d\n"
    lines = b"".join(line % n for n in range(size // 16 + 1))
    return lines[:size]


class Closed(Exception):
    """The connection ends here."""


async def take_body(reader: asyncio.StreamReader, head: dict[str, str]) -> bytes:
    """Reads the body of a request."""
    if head.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body
    return await reader.readexactly(int(head.get("content-length", "0")))


async def answer(writer: asyncio.StreamWriter, path: str, body: bytes) -> None:
    """Answers one request."""
    url = urlsplit(path)
    asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
    size = int(asked.get("n", "100"))
    match url.path.rsplit("/", 1)[-1]:
        case "sink":
            told = f"{len(body)} {hashlib.sha1(body).hexdigest()}".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(told) + told)
        case "chunked":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            whole = content(size)
            for at in range(0, size, PIECE):
                piece = whole[at : at + PIECE]
                writer.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        case "hints":
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
            await writer.drain()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        case "die":
            raise Closed
        case "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nbegun")
            await writer.drain()
            raise Closed
        case _:
            await asyncio.sleep(int(asked.get("ms", "0")) / 1000)
            length = b'Content-Length: %d\r\nETag: "%d"\r\n\r\n' % (size, size)
            writer.write(b"HTTP/1.1 200 OK\r\n" + length)
            whole = content(size)
            for at in range(0, size, 4 * PIECE):
                writer.write(whole[at : at + 4 * PIECE])
                await writer.drain()
    await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serves one connection."""
    gone = (Closed, OSError, asyncio.IncompleteReadError, ValueError)
    with contextlib.suppress(*gone):
        while line := await reader.readline():
            path = line.decode("latin-1").split(" ")[1]
            head: dict[str, str] = {}
            while (field := (await reader.readline()).decode("latin-1").strip()) != "":
                name, _, value = field.partition(":")
                head[name.lower()] = value.strip()
            body = await take_body(reader, head)
            await answer(writer, path, body)
    writer.close()


async def main(port: int) -> None:
    """Serves on this port until killed."""
    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=1 << 20, backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
