"""Owns: an HTTP/2 client that is asked for frames, not for answers: it says what each frame of the
server was, so that sizes, windows and settings can be compared. Fields are sent as literals and
not decoded, but for the status."""
import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
# What every server takes.
FRAME_MAX = 16384
NAMES = {0: "DATA", 1: "HEADERS", 2: "PRIORITY", 3: "RST_STREAM", 4: "SETTINGS", 5: "PUSH_PROMISE",
         6: "PING", 7: "GOAWAY", 8: "WINDOW_UPDATE", 9: "CONTINUATION"}
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 3, 4, 5
STATUSES = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", k, v) for k, v in pairs))


def literal(text):
    text = text.encode()
    assert len(text) < 127
    return bytes([len(text)]) + text


def fields(pairs):
    return b"".join(b"\0" + literal(name) + literal(value) for name, value in pairs)


class Peer:
    """One connection. `sent` tells of frames as (kind, flags, stream, payload)."""

    def __init__(self, port, name=None, ours=(), timeout=3, window=0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host = name or "a.test"
        if name:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname=name)
        self.bytes, self.timeout, self.ended = b"", timeout, ""
        self.send(PREFACE + settings(ours))
        if window:
            self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", window)))

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.ended = self.ended or "closed"

    def ask(self, stream, path, method="GET", ends=True, more=()):
        pairs = [(":method", method), (":scheme", "http"), (":path", path), (":authority", self.host), *more]
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream, fields(pairs)))

    def data(self, stream, payload, ends=False):
        while len(payload) > FRAME_MAX:
            self.send(frame(DATA, 0, stream, payload[:FRAME_MAX]))
            payload = payload[FRAME_MAX:]
        self.send(frame(DATA, END_STREAM if ends else 0, stream, payload))

    def take(self, size):
        while len(self.bytes) < size:
            got = self.socket.recv(65536)
            if not got:
                raise ConnectionError
            self.bytes += got
        taken, self.bytes = self.bytes[:size], self.bytes[size:]
        return taken

    def next(self):
        """The next frame; none at the end, or when none comes in time."""
        try:
            head = self.take(9)
            size = struct.unpack(">I", b"\0" + head[:3])[0]
            found = head[3], head[4], struct.unpack(">I", head[5:])[0] & 0x7FFFFFFF, self.take(size)
        except socket.timeout:
            self.ended = "silent"
        except (OSError, ConnectionError):
            self.ended = "closed"
        else:
            if found[0] == SETTINGS and not found[1] & ACK:
                self.send(frame(SETTINGS, ACK, 0))
            return found
        return None

    def until(self, is_last):
        """Frames up to the one that `is_last` of, or the end."""
        found = []
        while one := self.next():
            found.append(one)
            if is_last(*one):
                break
        return found

    def answer(self, stream):
        """All frames until the stream has ended."""
        return self.until(lambda kind, flags, at, _: at == stream and (kind == RST_STREAM or kind < 2 and flags & END_STREAM) or kind == GOAWAY)

    def sync(self):
        """All frames until a ping comes back."""
        self.send(frame(PING, 0, 0, b"12345678"))
        return self.until(lambda kind, flags, *_: kind == PING and flags & ACK or kind == GOAWAY)

    def close(self):
        self.socket.close()


def said(found):
    """Frames as lines."""
    lines = []
    for kind, flags, stream, payload in found:
        text = f"{NAMES.get(kind, kind)} {stream}"
        if kind == DATA:
            text += f" {len(payload)}" + (" END" if flags & END_STREAM else "")
        elif kind == HEADERS:
            text += f" {STATUSES.get(payload[0] & 0x7F, 'other')}" + (" END" if flags & END_STREAM else "")
        elif kind == SETTINGS:
            text += " ACK" if flags & ACK else "".join(f" {k}={v}" for k, v in struct.iter_unpack(">HI", payload))
        elif kind in (RST_STREAM, WINDOW_UPDATE):
            text += f" {struct.unpack('>I', payload)[0]}"
        elif kind == GOAWAY:
            text += f" {struct.unpack('>II', payload[:8])}"
        lines.append(text)
    return lines
