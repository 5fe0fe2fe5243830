"""Owns: how bytes are sent to a server, and how what comes back becomes comparable lines."""

import difflib
import gzip
import os
import re
import socket
import ssl
import zlib
from collections.abc import Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Protocol

from .site import Tls

TIMEOUT = 8
# Sent behind every request: whether it is answered shows what became of the connection.
NEXT = b"GET /next HTTP/1.1\r\nHost: next\r\n\r\n"
LAST = b"GET /next HTTP/1.1\r\nHost: next\r\nConnection: close\r\n\r\n"
# Longer bodies are told by their length and sum.
WHOLE_MAX = 3000
SHOWN_MAX = 200
DATE = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT")


class Named(Protocol):
    """A server whose own names are known."""

    name: str

    def normalise(self, text: str) -> str:
        """A text without these names."""


def connect(port: int, tls: Tls, address: str = "127.0.0.1") -> socket.socket:
    """A connection to a server, which need not prove who it is."""
    plain = socket.create_connection((address, port), TIMEOUT)
    if not tls:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    name, stem = tls if isinstance(tls, tuple) else (tls, None)
    if stem:
        context.load_cert_chain(f"{stem}.crt", f"{stem}.key")
    return context.wrap_socket(plain, server_hostname=name)


def exchange(
    port: int, request: bytes, tls: Tls, stay: bool = False, address: str = "127.0.0.1"
) -> tuple[bytes, str]:
    """Everything that comes back, and whether the end was clean."""
    got, end = b"", ""
    try:
        with connect(port, tls, address) as peer:
            with suppress(OSError):
                peer.sendall(request)
                if not tls and not stay:
                    peer.shutdown(socket.SHUT_WR)
            while data := peer.recv(65536):
                got += data
                is_last = b"</html>" in got or b"\n--end--" in got
                if tls and is_last and not request.endswith(NEXT):
                    break
    except TimeoutError:
        end = "TIMEOUT"
    except OSError:
        pass
    return got, end


def unchunk(data: bytes) -> tuple[bytes, bytes, str]:
    """The body of chunks, what follows them, and a note of trailers or of a cut."""
    body = b""
    while True:
        line, mark, data = data.partition(b"\r\n")
        if not mark:
            return body, b"", "cut"
        size = int(line.split(b";")[0], 16)
        body, rest = body + data[:size], data[size + 2 :]
        if size == 0:
            trailers, _, rest = (b"\r\n" + data).partition(b"\r\n\r\n")
            return body, rest, trailers.decode("latin-1").replace("\r\n", " trailer ")
        if len(data) < size:
            return body, b"", "cut"
        data = rest


def decoded(coding: str | None, body: bytes) -> bytes:
    """A body without its content coding."""
    if coding == "gzip" and body.startswith(b"\x1f\x8b\x08"):
        try:
            return gzip.decompress(body)
        except EOFError:
            return b"cut gzip"
    if coding == "deflate":
        return zlib.decompress(body)
    return body


def answers(program: Named, got: bytes, methods: list[str], lengths: str | None) -> list[str]:
    """The answers in `got` as comparable lines."""
    lines: list[str] = []
    methods = [*methods]
    while got:
        head, mark, rest = got.partition(b"\r\n\r\n")
        if not got.startswith(b"HTTP/1.1 ") or not mark:
            lines.append(f"raw {program.normalise(got.decode('latin-1'))!r}")
            return lines
        method = methods.pop(0) if methods else "GET"
        answer = Answer(program, head, lengths)
        got = answer.take(rest, method)
        lines += answer.lines()
        if head.startswith(b"HTTP/1.1 1") and method != "GET":
            methods.insert(0, method)
    return lines


def since(end: str, now: str) -> str:
    """How long after `now` a date is; nothing if it is none."""
    try:
        seconds = (parsedate_to_datetime(end) - parsedate_to_datetime(now)).total_seconds()
    except (TypeError, ValueError):
        return ""
    return f" = DATE{int(seconds):+d}"


def is_same(wanted: str, found: str) -> bool:
    """Whether two lines say the same; of moments, whether they are as far away or the same."""
    if wanted == found or not wanted.startswith("Expires: "):
        return wanted == found
    pairs = zip(wanted.split(" = "), found.split(" = "), strict=False)
    return any(one == other for one, other in pairs)


class Answer:
    """One answer: its head, and its body when that was taken."""

    def __init__(self, program: Named, head: bytes, lengths: str | None) -> None:
        self.program, self.lengths = program, lengths
        self.status_line, *fields = head.decode("latin-1").split("\r\n")
        self.fields = [field.partition(": ")[::2] for field in fields]
        self.value = {name.lower(): text for name, text in self.fields}
        self.status = self.status_line.split(" ")[1]
        self.coding = self.value.get("content-encoding")
        boundary = re.search(r"boundary=(\w+)", self.value.get("content-type", ""))
        self.boundary = boundary[1] if boundary else ""
        # Whether the head tells the length of a body that does not come.
        self.is_empty = False
        self.note, self.text = "", ""

    def take(self, data: bytes, method: str) -> bytes:
        """Takes the body; what is behind it."""
        if method == "HEAD" or self.status[0] == "1" or self.status in ("204", "304"):
            self.is_empty = "content-length" in self.value
            body, rest = b"", data
        elif self.value.get("transfer-encoding") == "chunked":
            body, rest, self.note = unchunk(data)
        elif "content-length" in self.value:
            size = int(self.value["content-length"])
            body, rest = data[:size], data[size:]
            self.note = "cut" if len(body) < size else ""
        else:
            body, rest = data, b""
        self.text = self.program.normalise(decoded(self.coding, body).decode("latin-1"))
        return rest

    def is_left_out(self, name: str) -> bool:
        """Whether a field is not compared."""
        if name == "allow":
            return self.status == "405"
        framing = name in ("content-length", "transfer-encoding")
        if self.coding and self.lengths == "coded" and (framing or name == "etag"):
            return True
        return self.lengths == "any" and framing

    def shown(self, name: str, field: str) -> str:
        """A field's value as it is compared."""
        field = self.program.normalise(field)
        if name == "date":
            return "DATE" if DATE.fullmatch(field) else field
        if name == "expires":
            return field + since(field, self.value.get("date", ""))
        if name == "content-type" and self.boundary:
            return field.replace(self.boundary, f"{len(self.boundary)} letters")
        if name != "content-length":
            return field
        if not self.is_empty:
            return f"{len(self.text)} {self.note}".strip()
        if self.status >= "300" and self.status != "304" and "last-modified" not in self.value:
            return self.without_name(field)
        return field

    def without_name(self, length: str) -> str:
        """The length of a page that the server wrote: the two names are not equally long."""
        if "/" in self.value.get("server", "/"):
            return str(int(length) - 12)
        return str(int(length) - (6 if self.program.name == "bolide" else 5))

    def lines(self) -> list[str]:
        """The answer as lines. The order of fields with different names means nothing."""
        fields = [
            f"{name}: {self.shown(name.lower(), field)}"
            for name, field in self.fields
            if not self.is_left_out(name.lower())
        ]
        # RFC 9110, 5.3.
        fields.sort(key=lambda line: line.partition(":")[0].lower())
        lines = [self.status_line, *fields]
        text = self.text.replace(self.boundary, "BOUNDARY") if self.boundary else self.text
        if self.note and "transfer-encoding" in self.value and self.lengths is None:
            lines.append(f"end {self.program.normalise(self.note)}")
        if len(text) < WHOLE_MAX:
            return [*lines, f"body {text!r}"]
        return [*lines, f"body of {len(text)}, crc {zlib.crc32(text.encode())}"]


def blame(wanted: Sequence[str], found: Sequence[str]) -> list[str]:
    """Lines that differ, as a small diff; of long lines the place where they do."""
    lines = [
        line
        for line in difflib.unified_diff(wanted, found, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    long = [line[1:] for line in lines if len(line) > SHOWN_MAX]
    start = max(len(os.path.commonprefix(long)) - 40, 0) if len(long) == 2 else 0
    return [
        line if len(line) <= SHOWN_MAX else f"{line[0]}...{line[1 + start : 201 + start]}"
        for line in lines
    ]
