"""Owns: the origin's HTTP/2, which `origin` speaks with those who begin so.

`/raw/HEX` and `/keep/HEX` send those bytes as frames, `/slow/MS` answers late, and everything else
is answered with what was asked, with trailers. Blocks are read as RFC 7541 has it.
"""

import hashlib
import struct
import time
from collections.abc import Callable

from .frames import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, fields, frame, settings
from .text import words

# The lengths of the codes of RFC 7541 appendix B by byte, from 5 = "a" on: codes of one length are
# consecutive.
LENGTHS = (
    "isxxxxxxxtzxxzxxxxxxxxzxxxxxxxxxbffhibdgffdgdbbbaaabbbbbbbcdkbhf"
    "ibccccccccccccccccccccccdcdioijbkabababbbaccbbbabcbaabccccckgjix"
    "prpprrrsrssssststtrstssssqrsrsstrqprrssqsrrtqrssqqrqsrssprrrsrrs"
    "vvporsruvvvwwvtuoqvwwvwtqqvvxwwwptpqrqqsrruuttvsvwvvwwwwwxwwwwwv"
)
NAMES = """
    accept-charset accept-encoding accept-language accept-ranges accept
    access-control-allow-origin age allow authorization cache-control content-disposition
    content-encoding content-language content-length content-location content-range
    content-type cookie date etag expect expires from host if-match if-modified-since
    if-none-match if-range if-unmodified-since last-modified link location max-forwards
    proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie
    strict-transport-security transfer-encoding user-agent vary via www-authenticate
"""
# The static table of RFC 7541 appendix A, as far as requests use it.
STATIC = {
    1: (":authority", ""),
    2: (":method", "GET"),
    3: (":method", "POST"),
    4: (":path", "/"),
    5: (":path", "/index.html"),
    6: (":scheme", "http"),
    7: (":scheme", "https"),
    **{at + 15: (name, "") for at, name in enumerate(words(NAMES))},
}


def codes() -> dict[tuple[int, int], int]:
    """Bytes by the length of their code and the code."""
    found, code, before = {}, -1, 5
    for length in range(5, 31):
        for byte in (byte for byte in range(256) if ord(LENGTHS[byte]) - ord("a") + 5 == length):
            code = (code + 1) << (length - before)
            before = length
            found[length, code] = byte
    return found


CODES = codes()


class Block:
    """A block that is read, and the table that belongs to its connection."""

    def __init__(self, data: bytes, table: list[tuple[str, str]]) -> None:
        self.data, self.table = data, table

    def number(self, bits: int) -> int:
        """An integer (RFC 7541 §5.1)."""
        mask = (1 << bits) - 1
        value, self.data = self.data[0] & mask, self.data[1:]
        shift, more = 0, value == mask
        while more:
            more = self.data[0] & 128 != 0
            value += (self.data[0] & 127) << shift
            shift, self.data = shift + 7, self.data[1:]
        return value

    def text(self) -> str:
        """A string (RFC 7541 §5.2)."""
        coded = self.data[0] & 128
        size = self.number(7)
        data, self.data = self.data[:size], self.data[size:]
        if not coded:
            return data.decode("latin-1")
        out, code, length = [], 0, 0
        for bit in (byte >> at & 1 for byte in data for at in range(7, -1, -1)):
            code, length = code << 1 | bit, length + 1
            if (length, code) in CODES:
                out.append(CODES[length, code])
                code = length = 0
        return bytes(out).decode("latin-1")

    def entry(self, index: int) -> tuple[str, str]:
        """An entry of either table."""
        return self.table[index - 62] if index > 61 else STATIC[index]

    def fields(self) -> list[tuple[str, str]]:
        """All fields (RFC 7541 §6)."""
        found = []
        while self.data:
            first = self.data[0]
            if first & 128:
                found.append(self.entry(self.number(7)))
            elif first & 0xE0 == 0x20:
                self.number(5)
            else:
                index = self.number(6 if first & 64 else 4)
                name = self.entry(index)[0] if index else self.text()
                found.append((name, self.text()))
                if first & 64:
                    self.table.insert(0, found[-1])
        return found


class Talk:
    """One connection."""

    def __init__(
        self,
        take: Callable[[int], bytes],
        send: Callable[[bytes], None],
        wanted: Callable[[bytes], tuple[bytes, bytes]],
    ) -> None:
        self.take, self.send, self.wanted = take, send, wanted
        self.table: list[tuple[str, str]] = []
        self.take(len(PREFACE))
        self.send(settings(()))

    def frame(self) -> tuple[int, int, int, bytes]:
        """The next frame."""
        head = self.take(9)
        size = int.from_bytes(head[:3], "big")
        return head[3], head[4], int.from_bytes(head[5:], "big"), self.take(size)

    def request(self) -> tuple[int, list[tuple[str, str]], bytes]:
        """The stream of the next request, its fields and its body."""
        block, body, pairs = b"", b"", []
        while True:
            kind, flags, stream, payload = self.frame()
            if kind == HEADERS or kind == 9:
                block += payload
                if kind == HEADERS:
                    ends = flags & END_STREAM
                if flags & END_HEADERS:
                    pairs = Block(block, self.table).fields()
            elif kind == DATA:
                body += payload
                ends = flags & END_STREAM
                if payload:
                    room = struct.pack(">I", len(payload))
                    self.send(frame(8, 0, 0, room) + frame(8, 0, stream, room))
            else:
                continue
            if ends and pairs:
                return stream, pairs, body

    def answer(self) -> bool:
        """Answers one request; whether the connection goes on."""
        stream, pairs, body = self.request()
        value = dict(pairs)
        kind, rest = self.wanted(value[":path"].encode("latin-1"))
        if kind in (b"raw", b"keep"):
            self.send(bytes.fromhex(rest.decode()))
            return kind == b"keep"
        if kind == b"slow":
            time.sleep(int(rest) / 1000)
        lines = [f"stream {stream}", *(f"{name}: {text}" for name, text in sorted(pairs))]
        lines.append(f"body of {len(body)}: {hashlib.md5(body).hexdigest()}")
        said = [(":status", "200"), ("content-type", "text/plain"), ("x-origin", "yes")]
        head = frame(HEADERS, END_HEADERS, stream, fields(said))
        end = fields([("grpc-status", "0"), ("x-end", "yes")])
        text = frame(DATA, 0, stream, "\n".join(lines).encode("latin-1") + b"\n")
        if value[":method"] == "HEAD":
            text = b""
        self.send(head + text + frame(HEADERS, END_HEADERS | END_STREAM, stream, end))
        return True
