"""Owns: what directives of HTTP/2, HTTP/3 and TLS change on the wire below the answers.

Chunks of HTTP/1.1, settings, sizes of frames and records, windows, transport parameters, proofs of
addresses. A case is a line of words, `h2 data /path 1000`; `ask` does it and says what was seen as
lines.
"""

import socket
import ssl
import subprocess
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from . import quic, records
from .answers import exchange
from .frames import (
    ACK,
    DATA,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    PING,
    RST_STREAM,
    SETTINGS,
    STATUSES,
    WINDOW_UPDATE,
    Frame,
    Peer,
    fields,
    frame,
)

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
REFUSED_STREAM = 7


def number(payload: bytes) -> int:
    """A number as frames have it."""
    return int.from_bytes(payload, "big")


def open_windows(
    port: int, name: str | None = None, frame: int | None = None
) -> tuple[Peer, list[Frame]]:
    """A client that lets the server send as much as it likes, and knows the server's settings."""
    ours = [(INITIAL_WINDOW_SIZE, 1 << 24)] + ([(MAX_FRAME_SIZE, frame)] if frame else [])
    peer = Peer(port, name, ours, window=1 << 24)
    return peer, peer.sync()


def h2_settings(port: int, name: str | None = None) -> list[str]:
    """How many requests at a time, and how much of a body, a server allows."""
    peer, found = open_windows(port, name)
    peer.close()
    told = next(
        (payload for kind, flags, _, payload in found if kind == SETTINGS and not flags), None
    )
    if told is None:
        return ["no settings"]
    pairs = {
        number(told[at : at + 2]): number(told[at + 2 : at + 6]) for at in range(0, len(told), 6)
    }
    return [
        f"streams {pairs.get(MAX_CONCURRENT_STREAMS)}",
        f"window {pairs.get(INITIAL_WINDOW_SIZE)}",
    ]


def h1_chunks(port: int, path: str) -> list[str]:
    """The lines that frame the chunks of an answer over HTTP/1.1."""
    request = f"GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n".encode()
    got, _ = exchange(port, request, None, True)
    rest, lines = got.partition(b"\r\n\r\n")[2], []
    while rest:
        line, _, rest = rest.partition(b"\r\n")
        lines.append(f"size {line.decode('latin-1')}")
        rest = rest[int(line, 16) + 2 :]
    return lines


def h2_data(port: int, path: str, frame: str | None = None) -> list[str]:
    """The largest DATA frame of an answer, and all of its bytes."""
    peer, _ = open_windows(port, frame=int(frame) if frame else None)
    peer.ask(1, path)
    sizes = [len(payload) for kind, *_, payload in peer.answer(1) if kind == DATA]
    peer.close()
    return [f"largest {max(sizes, default=0)}", f"bytes {sum(sizes)}"]


def told_of(found: Sequence[Frame], stream: int) -> list[str]:
    """How a stream ended."""
    lines = []
    for kind, _, at, payload in found:
        if at == stream and kind == HEADERS:
            lines.append(f"status {STATUSES.get(payload[0] & 0x7F, 'other')}")
        if at == stream and kind == RST_STREAM:
            lines.append(f"reset {number(payload)}")
    return lines


def h2_upload(port: int, path: str, length: str, early: str = "0") -> list[str]:
    """Sends a head, then `early` bytes, then waits for a word; the rest goes if a window opens."""

    def is_word(kind: int, flags: int, at: int, _: bytes) -> bool:
        return at == 1 and (kind in (RST_STREAM, WINDOW_UPDATE) or (kind < 2 and flags & 1 > 0))

    peer, _ = open_windows(port)
    peer.ask(1, path, "POST", False, [] if length == "-" else [("content-length", length)])
    if int(early):
        peer.data(1, b"x" * int(early))
    found = peer.until(is_word)
    opens = any(kind == WINDOW_UPDATE and at == 1 for kind, _, at, _ in found)
    if opens:
        peer.data(1, b"x" * (10 if length == "-" else int(length) - int(early)), True)
        found += peer.answer(1)
    elif not any(kind == RST_STREAM for kind, *_ in found):
        # One that follows the answer at once comes before a ping does.
        found += peer.sync()
    peer.close()
    return (["window opens"] if opens else []) + told_of(found, 1)


def h2_many(port: int, count: str, path: str) -> list[str]:
    """So many requests whose bodies do not come."""
    peer, _ = open_windows(port)
    for stream in range(1, 2 * int(count), 2):
        peer.ask(stream, path, "POST", False)
    found = peer.sync()
    peer.close()
    resets = [number(payload) for kind, *_, payload in found if kind == RST_STREAM]
    return [f"refused {resets.count(REFUSED_STREAM)}"]


def h1_body(port: int, path: str, when: str, told: str, *sizes: str) -> list[str]:
    """A body of HTTP/1.1 that is there with its head, or comes when it is asked for."""
    pieces = [b"x" * int(size) for size in sizes if int(size)]
    length = sum(map(len, pieces))
    framing = "Transfer-Encoding: chunked" if told == "chunks" else f"Content-Length: {length}"
    expects = "Expect: 100-continue\r\n" if when == "late" else ""
    head = f"POST {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{expects}{framing}"
    body = b"".join(pieces)
    if told == "chunks":
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        body += b"0\r\n\r\n"
    got = b""
    with socket.create_connection(("127.0.0.1", port), 5) as peer:
        peer.sendall(head.encode() + b"\r\n\r\n" + (b"" if when == "late" else body))
        if when == "late":
            got = peer.recv(65536)
            peer.sendall(body)
        while data := peer.recv(65536):
            got += data
    return [got.partition(b" ")[2][:3].decode(), got.rpartition(b"\r\n\r\n")[2].decode()]


ORDINARY = {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a.test"}


def pairs_of(words: Sequence[str], scheme: str) -> list[tuple[str, str]]:
    """The fields of a request: the ordinary ones, changed by the words.

    `name=value` changes or adds one, `name` alone takes one away, `+name=value` adds one behind.
    """
    pairs = dict(ORDINARY, **{":scheme": scheme})
    behind: list[tuple[str, str]] = []
    for word in words:
        at = word.find("=", 1)
        # `%` stands for bytes that no word can have.
        name, value = (unquote(word[:at]), unquote(word[at + 1 :])) if at > 0 else (word, "")
        if word.startswith("+"):
            behind.append((name[1:], value))
        elif at > 0:
            pairs[name] = value
        else:
            del pairs[name]
    return [*pairs.items(), *behind]


def whole_of(found: Sequence[Frame], stream: int) -> list[str]:
    """How an answer came: status, text, or how its stream ended without any.

    Resets behind an answer are not told: one that a body followed depends on what came with it, and
    the one behind the answer to a malformed request is ours alone.
    """
    lines = told_of(found, stream)
    text = b"".join(payload for kind, _, at, payload in found if at == stream and kind == DATA)
    if text and b"<html>" not in text:
        lines.append(f"text {text.decode(errors='replace').strip()}")
    if any(kind == GOAWAY for kind, *_ in found):
        lines.append("goaway")
    has_answer = any(line.startswith("status") for line in lines)
    return [line for line in lines if not (has_answer and line in ("reset 0", "reset 1"))]


def h2_fields(port: int, *words: str) -> list[str]:
    """A request with fields of any kind, and one behind it."""
    peer = Peer(port)
    block = fields(pairs_of(words, "http"))
    peer.send(frame(HEADERS, END_HEADERS | 1, 1, block))
    found = peer.answer(1)
    peer.ask(3, "/")
    found += peer.answer(3)
    peer.close()
    return whole_of(found, 1) + ["then"] + whole_of(found, 3)


def h2_body(port: int, path: str, length: str, *sent: str) -> list[str]:
    """A body of pieces that need not have the length that was told; `5p9` has padding, `e` no end.

    A small rest of the connection is asked for behind it.
    """
    peer = Peer(port)
    peer.sync()
    more = [] if length == "-" else [("content-length", length)]
    with peer.together():
        peer.ask(1, path, "POST", False, more)
        for number_, piece in enumerate(sent):
            size, _, padding = piece.rstrip("e").partition("p")
            ends = number_ + 1 == len(sent) and not piece.endswith("e")
            text = b"x" * int(size)
            if padding:
                text = bytes([int(padding)]) + text + b"\0" * int(padding)
            peer.send(frame(DATA, (1 if ends else 0) | (8 if padding else 0), 1, text))
    found = peer.answer(1) + peer.sync()
    peer.ask(3, "/")
    found += peer.answer(3)
    peer.close()
    return whole_of(found, 1) + ["then"] + whole_of(found, 3)


def h2_first(port: int, what: str) -> list[str]:
    """Something else than SETTINGS behind the preface."""
    frames = {
        "ack": frame(SETTINGS, ACK, 0),
        "nothing": b"",
        "ping": frame(PING, 0, 0, b"12345678"),
        "window": frame(WINDOW_UPDATE, 0, 0, b"\0\0\x10\0"),
        "priority": frame(2, 0, 1, b"\0\0\0\0\0"),
    }
    peer = Peer(port, first=frames[what])
    peer.ask(1, "/")
    found = peer.answer(1)
    peer.close()
    return whole_of(found, 1)


def h2_unsettled(port: int, method: str) -> list[str]:
    """A request before the server's settings are acknowledged."""
    peer = Peer(port, first=frame(SETTINGS, 0, 0))
    peer.ask(1, "/reads", method, method == "GET")
    if method == "POST":
        peer.data(1, b"x", True)
    found = peer.answer(1)
    peer.close()
    return whole_of(found, 1)


def h3_fields(port: int, *words: str) -> list[str]:
    """The same as `h2 fields` over HTTP/3."""
    client = quic.Client(port, "a.test")
    first = client.raw(quic.section(pairs_of(words, "https")))
    again = client.raw(quic.section(pairs_of([], "https")))
    client.close()
    return [*first, "then", *again]


def h3_section(port: int, section: str) -> list[str]:
    """A field section of any bytes, and a request behind it."""
    client = quic.Client(port, "a.test")
    first = client.raw(bytes.fromhex(section))
    again = client.raw(quic.section(pairs_of([], "https")))
    client.close()
    return [*first, "then", *again]


def h3_long(port: int, where: str, size: str) -> list[str]:
    """A string of that size, in a request or in an instruction for the table."""
    client = quic.Client(port, "a.test")
    long = quic.prefixed(0, 7, int(size)) if int(size) < 255 else quic.wide(int(size))
    long += b"a" * int(size)
    lines = []
    if where == "request":
        lines = client.raw(quic.section(pairs_of([], "https")) + b"\x21x" + long)
    else:
        client.instruct(b"\x3f\xe1\x1f\x41x" + long)
    lines += ["then", *client.raw(quic.section(pairs_of([], "https")))]
    client.close()
    # aioquic closes for a reason of its own when the server's streams end first.
    return [line.split(" 0x")[0] if line.startswith("closed") else line for line in lines]


def h3_body(port: int, path: str, length: str, *sent: str) -> list[str]:
    """The same as `h2 body` over HTTP/3."""
    client = quic.Client(port, "a.test")
    words = [":method=POST", f":path={path}"]
    words += [] if length == "-" else [f"+content-length={length}"]
    first = client.raw(
        quic.section(pairs_of(words, "https")), [b"x" * int(size.rstrip("e")) for size in sent]
    )
    again = client.raw(quic.section(pairs_of([], "https")))
    client.close()
    return [*first, "then", *again]


def h3_last(port: int, path: str, count: str) -> list[str]:
    """So many requests one behind the other, and what GOAWAY says behind each."""
    client = quic.Client(port, "a.test")
    lines = []
    for number_ in range(int(count)):
        status, _ = client.get(path)
        is_last = number_ + 1 == int(count)
        client.until(client.goaways, 1 if is_last else 0.05)
        lines.append(f"{status} {client.goaways()}")
    client.until(lambda: client.closed, 3)
    client.close()
    # Only the code counts, not the words.
    return [*lines, f"closed {client.closed.split(' ')[0]}"]


def tls_records(port: int, name: str, path: str, version: str = "1.3") -> list[str]:
    """The largest record of an answer, and all of its body."""
    client = records.Client(port, name, VERSIONS[version])
    sizes, body = client.get(path)
    client.close()
    return [f"largest {max(sizes)}", f"body {body}"]


def unproven() -> ssl.SSLContext:
    """A client that does not ask who a server is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def connected(port: int) -> socket.socket:
    """A connection that waits a little for what is to come."""
    return socket.create_connection(("127.0.0.1", port), 3)


def told_in_brackets(peer: ssl.SSLSocket) -> str:
    """What the answer to one more request has in brackets."""
    peer.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    got = b""
    while b"]" not in got and (more := peer.recv(4096)):
        got += more
    return got.partition(b"[")[2].partition(b"]")[0].decode()


def tls_session(port: int, name: str, version: str) -> list[str]:
    """What a server calls a session (its answer is `$ssl_session_id`).

    In two requests, and when it is taken up again; what the client knows it by counts in TLS 1.2
    alone.
    """
    context = unproven()
    context.minimum_version = context.maximum_version = VERSIONS[version]
    names: list[str] = []
    session: ssl.SSLSession | None = None
    resumed: bool | None = False
    wire = "-"
    for count in (2, 1):
        with context.wrap_socket(connected(port), server_hostname=name, session=session) as peer:
            names += [told_in_brackets(peer) for _ in range(count)]
            session, resumed = peer.session, peer.session_reused
            wire = session.id.hex() if version == "1.2" and session else "-"
    first, again, later = names
    return [
        f"length {len(first)}",
        "again " + ("same" if first == again else "other"),
        f"resumed {resumed}",
        f"length {len(later)}",
        "then " + ("same" if first == later else "other"),
        f"wire {wire in ('-', later)}",
    ]


def tls_protocol(port: int, name: str) -> list[str]:
    """What a client that speaks HTTP/2 and 1 is to speak."""
    context = unproven()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with context.wrap_socket(connected(port), server_hostname=name) as peer:
        return [f"protocol {peer.selected_alpn_protocol()}"]


def tls_ticket(base: int, first: str, second: str) -> list[str]:
    """Whether the second port takes up what was agreed on at the first."""
    context = unproven()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    session: ssl.SSLSession | None = None
    reused: bool | None = False
    for at in (first, second):
        with context.wrap_socket(connected(base + int(at)), session=session) as peer:
            session, reused = peer.session, peer.session_reused
    return [f"reused {reused}", f"ticket {bool(session and session.has_ticket)}"]


def openssl(port: int, name: str, *words: str) -> list[str]:
    """What openssl's client says of a handshake."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", name, *words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=5
    )
    return done.stdout.splitlines()


def tls_shows(port: int, name: str) -> list[str]:
    """Whose certificate it is."""
    return [line for line in openssl(port, name) if line.startswith("subject=")] or ["none"]


def tls_staple(port: int, name: str) -> list[str]:
    """What is said of the certificate's revocation."""
    told = ("OCSP response: no", "Serial Number", "Cert Status")
    return [
        line.strip() for line in openssl(port, name, "-status") if line.strip().startswith(told)
    ]


def tls_staples(base: int, *ports: str) -> list[str]:
    """What is said at each of these ports."""
    return [line for port in ports for line in tls_staple(base + int(port), "a.test")]


def quic_allows(port: int, name: str, *wanted: str) -> list[str]:
    """What a server allows its clients."""
    client = quic.Client(port, name)
    allowed = client.allowed()
    client.close()
    return (
        [f"{word} {allowed[word]}" for word in wanted]
        if client.open
        else [f"closed {client.closed}"]
    )


def quic_get(port: int, name: str, path: str) -> list[str]:
    """An answer, and how its datagrams came."""
    client = quic.Client(port, name)
    status, size = client.get(path)
    client.close()
    return [
        f"status {status} of {size}",
        f"retries {client.retries}",
        f"trains {'yes' if client.trains else 'no'}",
    ]


def quic_speaks(port: int, name: str) -> list[str]:
    """Whether requests are answered; how one is told that they are not is not."""
    client = quic.Client(port, name)
    status, _ = client.get("/")
    client.close()
    return [f"answered {status == '200'}"]


def quic_again(port: int, name: str, token: str | None = None) -> list[str]:
    """Whether a client has to prove its address, and another one that has its token.

    The token itself is not told but for the word `token`.
    """
    first = quic.Client(port, name, token=bytes.fromhex(token) if token else b"")
    first.until(lambda: first.tokens, 1)
    first.close()
    lines = [f"retries {first.retries}", f"tokens {'yes' if first.tokens else 'no'}"]
    if first.tokens and not token:
        second = quic.Client(port, name, token=first.tokens[-1])
        second.close()
        lines.append(f"then {second.retries}")
    return lines


def quic_damaged(port: int, name: str, *tokens: str) -> list[str]:
    """What is said to who has a token that is none."""
    lines = []
    for token in tokens:
        client = quic.Client(port, name, token=bytes.fromhex(token))
        client.close()
        lines.append(f"closed {client.closed} retries {client.retries}")
    return lines


def quic_elsewhere(base: int, first: str, second: str) -> list[str]:
    """Whether who proved its address at the first port has to do so at the second."""
    [token] = quic_token(base + int(first), "a.test")
    return quic_again(base + int(second), "a.test", token) if token != "none" else ["no token"]


def quic_token(port: int, name: str) -> list[str]:
    """A token for a later visit."""
    client = quic.Client(port, name)
    client.until(lambda: client.tokens, 1)
    client.close()
    return [client.tokens[-1].hex() if client.tokens else "none"]


KINDS: dict[str, Callable[..., list[str]]] = {
    "h2 settings": h2_settings,
    "h1 chunks": h1_chunks,
    "h2 data": h2_data,
    "h2 upload": h2_upload,
    "h2 many": h2_many,
    "h1 body": h1_body,
    "h2 fields": h2_fields,
    "h2 body": h2_body,
    "h2 first": h2_first,
    "h2 unsettled": h2_unsettled,
    "h3 fields": h3_fields,
    "h3 body": h3_body,
    "h3 long": h3_long,
    "h3 section": h3_section,
    "h3 last": h3_last,
    "tls records": tls_records,
    "tls session": tls_session,
    "tls protocol": tls_protocol,
    "tls ticket": tls_ticket,
    "tls shows": tls_shows,
    "tls staple": tls_staple,
    "tls staples": tls_staples,
    "quic damaged": quic_damaged,
    "quic elsewhere": quic_elsewhere,
    "quic speaks": quic_speaks,
    "quic allows": quic_allows,
    "quic get": quic_get,
    "quic again": quic_again,
    "quic token": quic_token,
}


def ask(port: int, case: str) -> list[str]:
    """Does one case with the server on `port`."""
    first, second, *words = case.split(" ")
    try:
        return KINDS[f"{first} {second}"](port, *words)
    except OSError as error:
        return [f"failed: {type(error).__name__}"]
