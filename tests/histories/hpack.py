"""Owns: the compression of field sections of HTTP/2 (RFC 7541).

Huffman's code is that of QPACK, whose decoder does the work.
"""

import random

import pylsqpack

NAMED = """:authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https
:status 200|:status 204|:status 206|:status 304|:status 400|:status 404|:status 500|accept-charset
accept-encoding gzip, deflate|accept-language|accept-ranges|accept|access-control-allow-origin|age
allow|authorization|cache-control|content-disposition|content-encoding|content-language
content-length|content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host
if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|link|location
max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|server
set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate"""
Field = tuple[bytes, bytes]
STATIC: list[Field] = [
    (name.encode(), value.encode())
    for name, _, value in (one.partition(" ") for one in NAMED.replace("\n", "|").split("|"))
]
# What a table takes for each field beside its text, and how large it is at first.
OVERHEAD, SIZE = 32, 4096
INDEXED, INCREMENTAL, RESIZED, NEVER = 0x80, 0x40, 0x20, 0x10


def number(first: int, bits: int, value: int) -> bytes:
    """An integer behind the flags in `first` (§5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = bytearray([first | most]), value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


class Table:
    """Both tables as one list of indices."""

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.size, self.most = 0, SIZE

    def add(self, field: Field) -> None:
        """The newest one."""
        self.fields.insert(0, field)
        self.size += len(field[0]) + len(field[1]) + OVERHEAD
        self.evict()

    def resize(self, most: int) -> None:
        """Another limit."""
        self.most = most
        self.evict()

    def evict(self) -> None:
        """Drops what is too much."""
        while self.size > self.most:
            name, value = self.fields.pop()
            self.size -= len(name) + len(value) + OVERHEAD

    def at(self, index: int) -> Field:
        """The field of an index."""
        if index <= len(STATIC):
            return STATIC[index - 1]
        return self.fields[index - len(STATIC) - 1]

    def find(self, field: Field) -> tuple[int, int]:
        """The indices of a field and of its name; 0 if there is none."""
        known = [*STATIC, *self.fields]
        if field in known:
            return known.index(field) + 1, 0
        names = [name for name, _ in known]
        return 0, names.index(field[0]) + 1 if field[0] in names else 0


class Encoder:
    """What a client sends: some fields enter the table, some never do."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.table, self.resized = draw, Table(), False

    def limit(self, most: int) -> None:
        """The server's `SETTINGS_HEADER_TABLE_SIZE`."""
        if most < self.table.most:
            self.table.resize(most)
            self.resized = True

    def encode(self, fields: list[Field]) -> bytes:
        """A field block."""
        out = number(RESIZED, 5, self.table.most) if self.resized else b""
        self.resized = False
        for field in fields:
            whole, name = self.table.find(field)
            if whole:
                out += number(INDEXED, 7, whole)
                continue
            kind = self.draw.choice([INCREMENTAL, INCREMENTAL, INCREMENTAL, 0, NEVER])
            out += number(kind, 6 if kind == INCREMENTAL else 4, name)
            for text in field[1:] if name else field:
                out += number(0, 7, len(text)) + text
            if kind == INCREMENTAL:
                self.table.add(field)
        return out


class Decoder:
    """What a server sends."""

    def __init__(self) -> None:
        self.table, self.block, self.at = Table(), b"", 0

    def decode(self, block: bytes) -> list[Field]:
        """The fields of a block."""
        self.block, self.at = block, 0
        fields: list[Field] = []
        while self.at < len(block):
            first = block[self.at]
            if first & INDEXED:
                fields.append(self.table.at(self.number(7)))
            elif first & INCREMENTAL:
                fields.append(self.literal(6))
                self.table.add(fields[-1])
            elif first & RESIZED:
                self.table.resize(self.number(5))
            else:
                fields.append(self.literal(4))
        return fields

    def number(self, bits: int) -> int:
        """An integer."""
        most = (1 << bits) - 1
        value, shift = self.block[self.at] & most, 0
        self.at += 1
        while value >= most:
            value += (self.block[self.at] & 127) << shift
            shift += 7
            self.at += 1
            if not self.block[self.at - 1] & 128:
                break
        return value

    def literal(self, bits: int) -> Field:
        """A field of which at most the name is in the table."""
        index = self.number(bits)
        name = self.table.at(index)[0] if index else self.text()
        return name, self.text()

    def text(self) -> bytes:
        """A string."""
        packed = self.block[self.at] & 0x80
        size = self.number(7)
        text = self.block[self.at : self.at + size]
        self.at += size
        if not packed:
            return text
        # The same string as the value of a literal field of QPACK (RFC 9204 §4.5.6).
        section = b"\0\0\x21x" + number(0x80, 7, size) + text
        return pylsqpack.Decoder(0, 0).feed_header(0, section)[1][0][1]
