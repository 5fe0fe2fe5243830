"""Clients of HTTP/1 and 2 that reach a limit and stay open afterwards.

`lifetimes.py CERT CASE@PORT…`: all run side by side, each in a thread of its own. A case tells in one
line what it got when it has reached its limit, and keeps its connection until standard input ends.
The names begin with the protocol: `h1.`, `h1s.` (over TLS), `h2.`.
"""

import contextlib
import json
import os
import select
import socket
import ssl
import sys
import threading
import time

LIMIT = 60.0
CASES = {}
KEPT = []

DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8


def case(name):
    def register(function):
        CASES[name] = function
        return function

    return register


# ---- HTTP/1 ------------------------------------------------------------------


class Plain:
    """A connection on which nothing is read that is not asked for."""

    def __init__(self, port, cert, alpn=None, buffer=None):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(LIMIT)
        self.socket.connect(("127.0.0.1", port))
        if alpn:
            context = ssl.create_default_context(cafile=cert)
            context.set_alpn_protocols([alpn])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        KEPT.append(self)
        self.held = b""

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def read(self):
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        self.held += data
        return bool(data)

    def until(self, mark):
        """What comes up to `mark`, or all there is until the end."""
        while mark not in self.held and self.read():
            pass
        at = self.held.find(mark)
        end = len(self.held) if at < 0 else at + len(mark)
        out, self.held = self.held[:end], self.held[end:]
        return out

    def status(self):
        """The status of the next answer, whose body is read; 0 for the end."""
        head = self.until(b"\r\n\r\n").decode("latin-1")
        if " " not in head:
            return 0
        for line in head.split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                size = int(value)
                while len(self.held) < size and self.read():
                    pass
                self.held = self.held[size:]
        return int(head.split(" ")[1])

    def end(self):
        """Reads to the end."""
        while self.read():
            pass
        return "end"

    def is_open(self):
        """Whether the kernel counts the connection as open."""
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\1"


def get(path, fields=""):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode()


def post(path, length):
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


def over_h1(name):
    """A case over HTTP/1 in the clear and over TLS."""

    def register(function):
        for proto, alpn in (("h1", None), ("h1s", "http/1.1")):
            CASES[f"{proto}.{name}"] = lambda port, cert, alpn=alpn: function(
                Plain(port, cert, alpn)
            )
        return function

    return register


@over_h1("silence")
def h1_silence(conn):
    return conn.end()


@over_h1("head")
def h1_head(conn):
    conn.send(b"GET /hello.txt HTTP/1.1\r\nHost: loc")
    return conn.end()


@over_h1("body")
def h1_body(conn):
    conn.send(post("/upload", 9) + b"abc")
    return conn.end()


@over_h1("idle")
def h1_idle(conn):
    conn.send(get("/hello.txt"))
    return f"{conn.status()} {conn.end()}"


@over_h1("requests")
def h1_requests(conn):
    got = []
    for _ in range(3):
        conn.send(get("/hello.txt"))
        got.append(conn.status())
    return f"{got} {conn.end()}"


@over_h1("age")
def h1_age(conn):
    conn.send(get("/hello.txt"))
    conn.status()
    time.sleep(1.2)
    conn.send(get("/hello.txt"))
    # Where the first came late, it was the last.
    return f"{'its last' if conn.status() in (0, 200) else 'other'} {conn.end()}"


@over_h1("large_body")
def h1_large_body(conn):
    conn.send(post("/small", 100_000) + b"abc")
    return f"{conn.status()} {conn.end()}"


@over_h1("large_head")
def h1_large_head(conn):
    conn.send(get("/hello.txt", f"X: {'x' * 9000}\r\n"))
    return f"{conn.status()} {conn.end()}"


@over_h1("origin")
def h1_origin(conn):
    conn.send(get("/silent"))
    return str(conn.status())


@over_h1("fastcgi")
def h1_fastcgi(conn):
    conn.send(get("/application"))
    return str(conn.status())


@over_h1("unreachable")
def h1_unreachable(conn):
    conn.send(get("/unreachable"))
    return str(conn.status())


@over_h1("unreachable_fastcgi")
def h1_unreachable_fastcgi(conn):
    conn.send(get("/unreachable_fastcgi"))
    return str(conn.status())


def upload(conn, path):
    """Sends more than the kernel buffers towards an origin that reads nothing, until an answer comes.

    In one thread, as an SSL object serves one at a time.
    """
    conn.send(post(path, 64 << 20))
    left, piece = 64 << 20, b"x" * 65536
    conn.socket.setblocking(False)
    waits = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
    while left and b"\r\n\r\n" not in conn.held:
        select.select([conn.socket], [conn.socket], [], LIMIT)
        try:
            with contextlib.suppress(*waits):
                left -= conn.socket.send(piece[:left])
            with contextlib.suppress(*waits):
                conn.held += conn.socket.recv(65536)
        except OSError:
            break
    conn.socket.settimeout(LIMIT)
    return str(conn.status())


@over_h1("send")
def h1_send(conn):
    return upload(conn, "/send")


@over_h1("send_fastcgi")
def h1_send_fastcgi(conn):
    return upload(conn, "/send_fastcgi")


def tries(conn, path):
    """Of six servers that do not answer, the time is enough for two at most."""
    conn.send(get(path))
    head = conn.until(b"\r\n\r\n").decode("latin-1")
    tried = next(line for line in head.split("\r\n") if line.startswith("X-Tried:"))
    return f"{head.split(' ')[1]} {'few' if tried.count(',') < 2 else 'many'}"


@over_h1("next")
def h1_next(conn):
    return tries(conn, "/next")


@over_h1("next_fastcgi")
def h1_next_fastcgi(conn):
    return tries(conn, "/next_fastcgi")


@over_h1("rate")
def h1_rate(conn):
    conn.send(get("/paced/big.bin"))
    return conn.until(b"\r\n\r\n").split(b" ")[1].decode()


@over_h1("conns")
def h1_conns(conn):
    conn.send(get("/alone/big.bin"))
    return "held" if conn.until(b"\r\n\r\n").split(b" ")[1] in (b"200", b"503") else "other"


@over_h1("pace")
def h1_pace(conn):
    for _ in range(2):
        conn.send(get("/seldom"))
    return f"{conn.status()} {conn.status()}"


@case("h1.window")
def h1_window(port, cert):
    """Takes nothing of a large answer."""
    conn = Plain(port, cert, buffer=4096)
    conn.send(get("/brief/huge"))
    for _ in range(600):
        if not conn.is_open():
            return "end"
        time.sleep(0.1)
    return "open"


@case("h1s.handshake")
def h1s_handshake(port, cert):
    conn = Plain(port, cert)
    conn.send(b"\x16\x03\x01\x02\x00\x01")
    return conn.end()


# ---- HTTP/2 ------------------------------------------------------------------


def frame(kind, flags, stream, payload=b""):
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


def text(word):
    assert len(word) < 127
    return bytes([len(word)]) + word.encode()


def head(path, method="GET"):
    """A field section of literals that are not indexed (RFC 7541 §6.2.2)."""
    fields = [(":method", method), (":scheme", "https"), (":authority", "localhost")]
    fields += [(":path", path)]
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


class Http2(Plain):
    def __init__(self, port, cert, window=65535):
        super().__init__(port, cert, "h2")
        setting = b"\0\4" + window.to_bytes(4, "big")
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, setting))
        self.got = {}
        self.is_sent_away = False
        self.pings = False

    def ask(self, stream, path, method="GET", ends=True):
        self.send(frame(HEADERS, 5 if ends else 4, stream, head(path, method)))

    def frame(self):
        """The next frame: its kind, its stream, its payload; nothing at the end."""
        while len(self.held) < 9 or len(self.held) < 9 + int.from_bytes(self.held[:3], "big"):
            if not self.read():
                return None
        size = int.from_bytes(self.held[:3], "big")
        kind, flags, stream = self.held[3], self.held[4], int.from_bytes(self.held[5:9], "big")
        self.is_sent_away |= kind == GOAWAY
        out = kind, flags, stream, self.held[9 : 9 + size]
        self.held = self.held[9 + size :]
        return out

    def outcome(self, stream):
        """How a stream ended, or the connection."""
        while (one := self.frame()) is not None:
            kind, flags, of, _ = one
            if kind == RST:
                self.got[of] = "reset"
            elif kind in (DATA, HEADERS) and flags & 1:
                self.got.setdefault(of, "whole")
            if stream in self.got:
                return self.got[stream]
        return "end"

    def goaway(self):
        while not self.is_sent_away:
            if self.frame() is None:
                return "end"
        return "goaway"

    def ping(self):
        """Keeps the connection, though not its streams, alive while it is read.

        Not from a second thread: an SSL object serves one at a time.
        """
        self.pings = True

    def read(self):
        while self.pings and not (self.socket.pending() or self.readable(0.3)):
            self.send(frame(PING, 0, 0, b"12345678"))
        return super().read()

    def readable(self, within):
        return bool(select.select([self.socket], [], [], within)[0])


def over_h2(name):
    def register(function):
        CASES[f"h2.{name}"] = function
        return function

    return register


@over_h2("silence")
def h2_silence(port, cert):
    conn = Http2(port, cert)
    return f"{conn.goaway()} {conn.end()}"


@over_h2("head")
def h2_head(port, cert):
    conn = Http2(port, cert)
    conn.send(frame(HEADERS, 1, 1, head("/hello.txt")))
    return f"{conn.goaway()} {conn.end()}"


@over_h2("body")
def h2_body(port, cert):
    conn = Http2(port, cert)
    conn.ping()
    conn.ask(1, "/upload", "POST", ends=False)
    return conn.outcome(1)


@over_h2("idle")
def h2_idle(port, cert):
    conn = Http2(port, cert)
    conn.ask(1, "/hello.txt")
    return f"{conn.outcome(1)} {conn.end()}"


@over_h2("window")
def h2_window(port, cert):
    conn = Http2(port, cert, window=0)
    conn.ping()
    conn.ask(1, "/brief/hello.txt")
    return conn.outcome(1)


@over_h2("connection_window")
def h2_connection_window(port, cert):
    conn = Http2(port, cert, window=2**31 - 1)
    conn.ping()
    conn.ask(1, "/brief/big.bin")
    return conn.outcome(1)


@over_h2("slow")
def h2_slow(port, cert):
    """A window of one byte now and then: slow, but not late."""
    conn = Http2(port, cert, window=0)
    conn.ask(1, "/slowly/hello.txt")
    for _ in range(14):
        time.sleep(0.5)
        conn.send(frame(WINDOW, 0, 1, b"\0\0\0\1"))
    return conn.outcome(1)


@over_h2("requests")
def h2_requests(port, cert):
    conn = Http2(port, cert)
    for stream in (1, 3, 5):
        conn.ask(stream, "/hello.txt")
    return conn.goaway()


@over_h2("age")
def h2_age(port, cert):
    conn = Http2(port, cert)
    conn.ask(1, "/hello.txt")
    conn.outcome(1)
    time.sleep(1.2)
    conn.ask(3, "/hello.txt")
    return conn.goaway()


@over_h2("streams")
def h2_streams(port, cert):
    conn = Http2(port, cert, window=0)
    for stream in range(1, 21, 2):
        conn.ask(stream, "/hello.txt")
    return conn.outcome(19)


@over_h2("origin")
def h2_origin(port, cert):
    conn = Http2(port, cert)
    conn.ask(1, "/silent")
    return conn.outcome(1)


@over_h2("unreachable")
def h2_unreachable(port, cert):
    conn = Http2(port, cert)
    conn.ask(1, "/unreachable")
    return conn.outcome(1)


@over_h2("large_body")
def h2_large_body(port, cert):
    conn = Http2(port, cert)
    conn.ask(1, "/small", "POST", ends=False)
    conn.send(frame(DATA, 0, 1, b"x" * 16000))
    return conn.outcome(1)


@over_h2("rate")
def h2_rate(port, cert):
    conn = Http2(port, cert)
    conn.ask(1, "/paced/big.bin")
    while (one := conn.frame()) is not None and one[0] != DATA:
        pass
    return "some" if one else "none"


# ---- the run -----------------------------------------------------------------


def run(name, port, cert):
    try:
        got = CASES[name](port, cert)
    except ConnectionError:
        got = "end"
    except ssl.SSLError:
        # The time for a head is that for a handshake, which may have come to nothing in it.
        got = "end"
    except Exception as error:  # a case that breaks is a failed case, not the end
        got = f"{type(error).__name__}: {error}"
    print(json.dumps({"case": name, "got": got}) + "\n", end="", flush=True)


def main():
    cert = sys.argv[1]
    for one in sys.argv[2:]:
        name, port = one.split("@")
        threading.Thread(target=run, args=(name, int(port), cert), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
