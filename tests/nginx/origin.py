"""Owns: the origin that both servers of a comparison pass requests to.

`/raw/HEX` sends exactly those bytes and closes, `/keep/HEX` sends them and waits for more,
`/slow/MS` answers late; everything else is answered with what was asked. `@ORIGIN@` in the bytes is
its address. Who says `get` speaks memcached's protocol: `/raw` and `/keep` mean the same there,
with KEY for the key, `/none` is not there, everything else is. A digit begins a request of SCGI, a
control byte or another byte beyond ASCII one of uwsgi; `REQUEST_URI` is the path. The preface of
HTTP/2 begins what `h2_origin` speaks.
"""

import hashlib
import socket
import threading
import time
from collections.abc import Callable

from .h2_origin import Talk


class ClosedError(Exception):
    """The other side has nothing more to say."""


class Reader:
    """Bytes of a connection, taken as they are needed."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer, self.bytes = peer, b""

    def more(self) -> None:
        """Waits for more."""
        data = self.peer.recv(65536)
        if not data:
            raise ClosedError
        self.bytes += data

    def until(self, mark: bytes) -> bytes:
        """What comes before a mark, which is taken as well."""
        while mark not in self.bytes:
            self.more()
        taken, _, self.bytes = self.bytes.partition(mark)
        return taken

    def take(self, size: int) -> bytes:
        """So many bytes."""
        while len(self.bytes) < size:
            self.more()
        taken, self.bytes = self.bytes[:size], self.bytes[size:]
        return taken


def read_body(reader: Reader, fields: dict[bytes, bytes]) -> bytes:
    """The body of a request with these fields."""
    if fields.get(b"transfer-encoding") == b"chunked":
        body = b""
        while size := int(reader.until(b"\r\n"), 16):
            body += reader.take(size)
            reader.take(2)
        reader.until(b"\r\n")
        return body
    return reader.take(int(fields.get(b"content-length", b"0")))


def echo(line: bytes, fields: list[bytes], body: bytes) -> bytes:
    """The request as text; the order of fields with different names means nothing."""
    lines = [line] + sorted(fields, key=lambda field: field.partition(b":")[0].lower())
    lines.append(b"body of %d: %s" % (len(body), hashlib.md5(body).hexdigest().encode()))
    return b"\n".join(lines) + b"\n"


def wanted(target: bytes) -> tuple[bytes, bytes]:
    """What a target asks for, and the rest of its path."""
    kind, _, rest = target.partition(b"?")[0].lstrip(b"/").rpartition(b"/")
    return kind.rpartition(b"/")[2], rest


def answer(peer: socket.socket, reader: Reader, own: bytes) -> bool:
    """Answers one request; whether the connection goes on."""
    line, *fields = reader.until(b"\r\n\r\n").split(b"\r\n")
    value = {
        name.lower(): text.strip() for name, _, text in (field.partition(b":") for field in fields)
    }
    body = read_body(reader, value)
    kind, rest = wanted(line.split(b" ")[1])
    if kind in (b"raw", b"keep"):
        text = bytes.fromhex(rest.decode()).replace(b"@ORIGIN@", own)
        ends = b"chunked" not in text or text.endswith(b"0\r\n\r\n")
        if kind == b"raw" and ends:
            # The end leaves with the last bytes: nginx must know of it before its next request.
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        peer.sendall(text)
        if kind == b"raw" and not ends:
            # Half a chunk and its end are two things that happen, or nginx's log tells of either.
            time.sleep(0.03)
        return kind == b"keep"
    if kind == b"slow":
        time.sleep(int(rest) / 1000)
    text = echo(line, fields, body)
    stays = value.get(b"connection") != b"close" and line.endswith(b"1.1")
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Origin: yes\r\n"
        b"Content-Length: %d\r\n%b\r\n"
    ) % (len(text), b"" if stays else b"Connection: close\r\n")
    peer.sendall(head + (b"" if line.startswith(b"HEAD ") else text))
    return stays


def recall(peer: socket.socket, reader: Reader, _own: bytes) -> bool:
    """Answers one `get` as memcached does; whether the connection goes on."""
    key = reader.until(b"\r\n")[4:]
    kind, _, rest = key.lstrip(b"/").partition(b"/")
    if kind in (b"raw", b"keep"):
        peer.sendall(bytes.fromhex(rest.decode()).replace(b"KEY", key))
        return kind == b"keep"
    text = b"value of " + key
    found = b"VALUE %b 2 %d\r\n%b\r\n" % (key, len(text), text)
    peer.sendall((b"" if kind == b"none" else found) + b"END\r\n")
    return True


def variables(reader: Reader) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """What stands before the variables of a request by uwsgi or SCGI, and these."""
    if reader.bytes[:1].isdigit():
        parts = reader.take(int(reader.until(b":"))).split(b"\0")
        reader.take(1)
        return b"scgi", list(zip(parts[::2], parts[1::2], strict=False))
    head = reader.take(4)
    rest = reader.take(int.from_bytes(head[1:3], "little"))
    parts = []
    while rest:
        size = 2 + int.from_bytes(rest[:2], "little")
        if size > len(rest):
            # The bytes of `uwsgi_string`.
            parts += [b"behind", rest]
            break
        parts.append(rest[2:size])
        rest = rest[size:]
    pairs = list(zip(parts[::2], parts[1::2], strict=False))
    return b"uwsgi %d %d" % (head[0], head[3]), pairs


def run(peer: socket.socket, reader: Reader, own: bytes) -> bool:
    """Answers the one request of a connection as an application does."""
    kind, pairs = variables(reader)
    value = dict(reversed(pairs))
    body = reader.take(int(value.get(b"CONTENT_LENGTH") or 0))
    fields = sorted(pair for pair in pairs if pair[0].startswith(b"HTTP_"))
    others = [pair for pair in pairs if not pair[0].startswith(b"HTTP_")]
    asked, rest = wanted(value.get(b"REQUEST_URI", b"/"))
    if asked in (b"raw", b"keep"):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        peer.sendall(bytes.fromhex(rest.decode()).replace(b"@ORIGIN@", own))
        return False
    if asked == b"slow":
        time.sleep(int(rest) / 1000)
    lines = [kind, *(b"%b: %b" % pair for pair in others + fields)]
    lines.append(b"body of %d: %s" % (len(body), hashlib.md5(body).hexdigest().encode()))
    peer.sendall(b"Status: 200 OK\r\nContent-Type: text/plain\r\nX-Origin: yes\r\n\r\n")
    peer.sendall(b"\n".join(lines) + b"\n")
    return False


def speaks(first: bytes) -> Callable[[socket.socket, Reader, bytes], bool]:
    """Who answers a connection that begins so."""
    if first.startswith(b"get "):
        return recall
    return run if first[0] < 32 or first[0] > 126 or first[:1].isdigit() else answer


def serve(peer: socket.socket, own: bytes) -> None:
    """Answers what comes on one connection."""
    reader = Reader(peer)
    try:
        while len(reader.bytes) < 4:
            reader.more()
        if reader.bytes.startswith(b"PRI "):
            talk = Talk(reader.take, peer.sendall, wanted)
            while talk.answer():
                pass
        else:
            speak = speaks(reader.bytes)
            while speak(peer, reader, own):
                pass
        peer.shutdown(socket.SHUT_WR)
        # What the client still sends must not turn the end into a reset.
        while peer.recv(65536):
            pass
    except (ClosedError, OSError, ValueError):
        pass
    finally:
        peer.close()


class Origin:
    """The running origin."""

    def __init__(self, port: int) -> None:
        self.own = b"127.0.0.1:%d" % port
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        """Takes connections until the end."""
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.settimeout(30)
            threading.Thread(target=serve, args=(peer, self.own), daemon=True).start()

    def stop(self) -> None:
        """Takes no more connections."""
        self.listener.close()
