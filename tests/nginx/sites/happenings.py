"""Owns: what the error log says of what happens every day, from [info] on.

Clients that leave, break off or are late, before, in and behind their requests; who asks for too
much; origins that are late or gone. Lines about connections that have no request belong to it.
"""

import socket
import ssl
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..site import http
from ..text import words

RESET, READ, LATE = "reset", "read", 0.6
# How long an answer may take that is waited for.
PATIENCE = 5


def connected(port: int, tls: bool) -> socket.socket:
    """A connection to a port."""
    plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
    if not tls:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname="localhost")


def answer_of(peer: socket.socket) -> list[str]:
    """The status of what comes next."""
    got = b""
    with suppress(OSError):
        while b"\r\n\r\n" not in got:
            data = peer.recv(65536)
            if not data:
                break
            got += data
        # What is left unread would make a reset of the end.
        peer.settimeout(0.1)
        while got and peer.recv(65536):
            pass
    return [got.split(b"\r\n")[0].decode("latin-1")[:12] if got else "closed"]


def play(port: int, steps: Sequence[Any], tls: bool) -> list[str]:
    """Does the steps; the statuses of answers that were read.

    Bytes are sent, numbers are seconds of rest, words say what is done.
    """
    lines: list[str] = []
    with connected(port, tls) as peer:
        for step in steps:
            if isinstance(step, bytes):
                with suppress(OSError):
                    peer.sendall(step)
            elif isinstance(step, float):
                time.sleep(step)
            elif step == READ:
                lines += answer_of(peer)
            elif step == RESET:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return lines


def happenings(
    name: str, conf: str, scripts: Mapping[str, Sequence[Any]], port: int = 0, tls: bool = False
) -> None:
    """Adds a site whose clients play these scripts."""
    http(
        f"happenings: {name}",
        conf,
        list(scripts),
        port=port,
        ask=lambda at, case: play(at, scripts[case], tls),
        errors="connections",
    )


GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
CHUNKS = b"POST /%b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%b"
PARTS = {
    "a line": b"GET /x HTTP/1.1\r\n",
    "half a field": b"GET /x HTTP/1.1\r\nHost: loc",
    "fields": b"GET /x HTTP/1.1\r\nHost: localhost\r\nX: y\r\n",
}
WHOLE = GET % b"hello.txt"
ENDS: dict[str, Sequence[Any]] = {"closes": [0.05], "resets": [0.05, RESET], "waits": [LATE]}
SERVER = """
    client_header_timeout 300ms; client_body_timeout 300ms; keepalive_timeout 300ms;
    send_timeout 300ms; client_max_body_size 64; lingering_time 500ms; lingering_timeout 200ms;
    client_header_buffer_size 256; large_client_header_buffers 2 512; reset_timedout_connection off;
    limit_req_zone $arg_k zone=r:1m rate=1r/m; limit_conn_zone $arg_k zone=c:1m;
    upstream dead { server 127.0.0.1:1; server 127.0.0.1:2; }
    upstream half { server 127.0.0.1:1 max_fails=0; server @ORIGIN@ max_fails=0; }
    server {
        listen 127.0.0.1:@P0@; listen 127.0.0.1:@P1@ ssl; listen 127.0.0.1:@P2@ proxy_protocol;
        server_name localhost; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
        root @DIR@/www; proxy_read_timeout 300ms;
        location /text { return 200 text; }
        location /p/ { proxy_pass http://@ORIGIN@/; }
        location /stream/ { proxy_request_buffering off; proxy_pass http://@ORIGIN@/; }
        location /cached/ { proxy_buffering off; proxy_pass http://@ORIGIN@/; }
        location /dead/ { proxy_pass http://dead; }
        location /half/ { proxy_pass http://half/; }
        location /none { proxy_pass http://unix:@DIR@/none.sock; }
        location /small/ { proxy_buffer_size 256; proxy_buffers 2 256;
            proxy_busy_buffers_size 256; proxy_pass http://@ORIGIN@/; }
        location /req { limit_req zone=r burst=1; return 200; }
        location /now { limit_req zone=r burst=1 nodelay; error_page 404 /text; }
        location /dry { limit_req zone=r; limit_req_dry_run on; error_page 404 /text; }
        location /conn { limit_conn c 1; limit_rate 100; alias @DIR@/www/digits.txt; }
        location /slow { limit_rate 4; alias @DIR@/www/digits.txt; }
        location /denied { deny all; }
        location /secret { auth_basic x; auth_basic_user_file @DIR@/users; }
        location /absent { auth_basic x; auth_basic_user_file @DIR@/nobody; }
        location /list { autoindex on; }
        location /loop { rewrite ^ /loop last; }
        location /cycle { error_page 404 /cycle; try_files /none =404; }
        location /inner { internal; }
        location /dir/ { index none.html; }
        location /pipe { alias @DIR@/www/fifo; }
    }
"""
happenings(
    "clients that break off",
    SERVER,
    {f"nothing and {end}": steps for end, steps in ENDS.items()}
    | {f"a request and {end}": [WHOLE, READ, *steps] for end, steps in ENDS.items()}
    | {f"{part} and waits": [sent, LATE] for part, sent in PARTS.items()}
    | {f"a request, {part} and waits": [WHOLE, READ, sent, LATE] for part, sent in PARTS.items()},
)
BODIES = {
    "half": POST % (b"%b", 10, b"12345"),
    "no": POST % (b"%b", 10, b""),
    "half a chunk": CHUNKS % (b"%b", b"5\r\n123"),
    "a bad chunk": CHUNKS % (b"%b", b"x\r\n123"),
    "too large": POST % (b"%b", 65, b"x" * 65),
    "too large in chunks": CHUNKS % (b"%b", b"41\r\n" + b"x" * 65 + b"\r\n0\r\n\r\n"),
}
happenings(
    "bodies that do not come",
    SERVER,
    {
        f"{body} body for {place} and {end}": [
            sent.replace(b"%b", place.encode()),
            *([READ] if "too" in body or "bad" in body else []),
            *steps,
        ]
        for body, sent in BODIES.items()
        for place in ("text", "hello.txt", "p/x", "stream/x")
        for end, steps in ENDS.items()
    },
)
happenings(
    "clients that leave while they are answered",
    SERVER,
    {
        f"{place} and {end}": [GET % place.encode(), 0.1, *steps]
        for place in ("p/slow/250", "cached/slow/250", "slow", "big.bin")
        for end, steps in {"closes": [], "resets": [RESET]}.items()
    },
)
RAW = {
    "no head": "",
    "no status line": "nonsense",
    "half a head": "HTTP/1.1 200 OK\r\nX: y",
    "a bad field": "HTTP/1.1 200 OK\r\nX\0: y\r\n\r\n",
    "a short body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    "a long body": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc",
    "two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "a length and chunks": (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "a bad length": "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab",
    "an unknown coding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\nab",
    "a bad chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    "half a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "an unknown charset": (
        "HTTP/1.1 200 OK\r\nX-Accel-Charset: x\r\nContent-Type: text/html\r\n\r\n"
    ),
    "a bad expiry": "HTTP/1.1 200 OK\r\nX-Accel-Expires: x\r\n\r\n",
    "a redirect to nowhere": "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /x\0y\r\n\r\n",
}
happenings(
    "origins that fail",
    SERVER,
    {
        f"{told} at {place}": [GET % f"{place}/raw/{text.encode().hex()}".encode(), READ, 0.02]
        for told, text in RAW.items()
        for place in ("p", "small", "cached", "half")
    }
    | {
        f"{place}": [GET % place.encode(), READ, 0.02]
        for place in ("p/slow/600", "dead/1", "dead/2", "half/1", "none", "small/x")
    },
)
happenings(
    "requests that fail",
    SERVER,
    {
        place: [GET % place.encode(), READ]
        for place in words("""
            req?k=a req?k=a&2 req?k=a&3 now?k=b now?k=b&2 now?k=b&3 dry?k=c dry?k=c&2 denied secret
            absent loop cycle inner dir/ pipe none.txt list/none/ hello.txt/x loop.txt/ %00 %2
            /..%2f../x
            dangling loop/ fifo emptydir noindex/ a%0ab?c%0ad
        """)
    }
    | {
        "a line that is too long": [GET % (b"x" * 600), READ],
        "a field that is too long": [WHOLE[:-2] + b"X: " + b"y" * 600 + b"\r\n\r\n", READ],
        "fields that are too long": [
            WHOLE[:-2] + (b"X: " + b"y" * 400 + b"\r\n") * 4 + b"\r\n",
            READ,
        ],
        "a wrong host": [WHOLE.replace(b"localhost", b"a/b"), READ],
        "no host": [b"GET / HTTP/1.1\r\n\r\n", READ],
        "two hosts": [WHOLE[:-2] + b"Host: b\r\n\r\n", READ],
        "a wrong method": [b"G\xe4T / HTTP/1.1\r\n\r\n", READ],
        "a wrong target": [b"GET x HTTP/1.1\r\n\r\n", READ],
        "a wrong version": [b"GET / HTTP/3.1\r\n\r\n", READ],
        "another version": [b"GET / FTP/1.1\r\n\r\n", READ],
        "TLS": [bytes.fromhex("16030100c8010000c40303") + b"\0" * 200, READ],
        "HTTP/2": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", READ],
        "CONNECT": [b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", READ],
        "TRACE": [b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", READ],
        "a bad length": [b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", READ],
        "two framings": [
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            READ,
        ],
        "a wrong password": [
            b"GET /secret HTTP/1.1\r\nHost: a\r\nAuthorization: Basic cGxhaW46eA==\r\n\r\n",
            READ,
        ],
        "an unknown user": [
            b"GET /secret HTTP/1.1\r\nHost: a\r\nAuthorization: Basic eDp5\r\n\r\n",
            READ,
        ],
    },
)
happenings(
    "connections with TLS",
    SERVER,
    {f"a request and {end}": [WHOLE, READ, *steps] for end, steps in ENDS.items()},
    port=1,
    tls=True,
)
happenings(
    "handshakes that fail",
    SERVER,
    {
        f"{what} and {end}": [sent, *steps]
        for what, sent in {
            "nothing": b"",
            "a byte": b"\x16",
            "half a hello": bytes.fromhex("16030100c8010000c40303") + b"\0" * 20,
            "no hello": bytes.fromhex("160301000401000000"),
            "nonsense": bytes.fromhex("16030100050100000155"),
            "another record": bytes.fromhex("1503030002010a"),
            "HTTP": WHOLE,
        }.items()
        for end, steps in ENDS.items()
    },
    port=1,
)
happenings(
    "headers of the PROXY protocol",
    SERVER,
    {
        f"{what} and {end}": [sent, *steps]
        for what, sent in {
            "nothing": b"",
            "half of it": b"PROXY TCP4 192.0.2.1 192",
            "none": WHOLE,
            "an unknown one": b"PROXY UNKNOWN\r\n",
            "a wrong one": b"PROXY TCP4 192.0.2.1 x 1 2\r\n",
            "one": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "one and a request": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + WHOLE,
        }.items()
        for end, steps in ENDS.items()
    },
    port=2,
)
