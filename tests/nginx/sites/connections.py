"""Owns: directives about connections and how long they may take.

What a client that says too little gets, and when.
"""

from collections.abc import Sequence
from typing import Any

from ..site import Case, http


def timed(name: str, conf: str, cases: Sequence[Case], limit: float = 1.5, **options: Any) -> None:
    """Clients that stay and say nothing more."""
    http(name, conf, cases, open=True, alone=True, timed=limit, **options)


SERVER = "server { listen 127.0.0.1:@P0@; server_name %s; root @DIR@/www; %s }"
QUICK, SLOW = "300ms", "3s"
HALF = b"GET / HTTP/1.1\r\nHost: one\r\nX: "
WHOLE = b"GET /hello.txt HTTP/1.1\r\nHost: one\r\n\r\n"
OTHER = WHOLE.replace(b"one", b"two")
for _outer, _inner in ((QUICK, SLOW), (SLOW, QUICK)):
    timed(
        f"client_header_timeout {_outer}",
        f"client_header_timeout {_outer};"
        + SERVER % ("one", "")
        + SERVER % ("two", f"client_header_timeout {_inner};"),
        [
            ("nothing", b""),
            ("half a head", HALF),
            ("half a head for another server", HALF.replace(b"one", b"two")),
            ("a second that is half", WHOLE + HALF),
            ("a second for another that is half", OTHER + HALF),
            ("a whole one and the end", OTHER[:-2] + b"Connection: close\r\n\r\n"),
        ],
        limit=2,
        log=True,
    )
    timed(
        f"client_header_timeout within a line {_outer}",
        f"client_header_timeout {_outer};" + SERVER % ("one", ""),
        [("half a line", b"GET / HT"), ("half a method", b"G"), ("an empty line", b"\r\n")],
        limit=2,
    )
    timed(
        f"keepalive_timeout {_outer}",
        f"keepalive_timeout {_outer};"
        + SERVER
        % (
            "one",
            f"""
                location /in {{ keepalive_timeout {_inner} 7; return 200 in; }}
                location /never {{ keepalive_timeout 0; return 200 never; }}
                location /zero {{ keepalive_timeout {QUICK} 0; return 200 zero; }}
            """,
        )
        + SERVER % ("two", f"keepalive_timeout {_inner};"),
        [
            WHOLE,
            OTHER,
            WHOLE + OTHER,
            OTHER + WHOLE,
            WHOLE.replace(b"hello.txt", b"in"),
            WHOLE.replace(b"hello.txt", b"never"),
            WHOLE.replace(b"hello.txt", b"zero"),
            WHOLE.replace(b"hello.txt", b"in") + WHOLE,
        ],
        limit=2,
    )
    body = b"POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\n\r\n12345"
    timed(
        f"client_body_timeout {_outer}",
        f"client_body_timeout {_outer};"
        + SERVER
        % (
            "one",
            f"""
                location /in {{ client_body_timeout {_inner}; proxy_pass http://@ORIGIN@; }}
                location / {{ proxy_pass http://@ORIGIN@; }}
                location /thrown {{ return 200 x; }}
                location /stream {{ proxy_request_buffering off; proxy_pass http://@ORIGIN@; }}
            """,
        )
        + SERVER
        % ("two", f"client_body_timeout {_inner}; location / {{ proxy_pass http://@ORIGIN@; }}"),
        [
            body % (b"", b"one"),
            body % (b"", b"two"),
            body % (b"in", b"one"),
            body % (b"stream", b"one"),
            body.replace(
                b"Content-Length: 10\r\n\r\n12345", b"Transfer-Encoding: chunked\r\n\r\n5\r\n123"
            )
            % (b"in", b"one"),
        ],
        limit=2,
    )
    timed(
        f"lingering_timeout {_outer}",
        f"lingering_timeout {_outer}; lingering_close always;"
        + SERVER
        % (
            "one",
            f"""
                location /in {{ lingering_timeout {_inner}; return 200 in; }}
                location / {{ return 200 x; }}
                location /off {{ lingering_close off; return 200 off; }}
                location /on {{ lingering_close on; return 200 on; }}
            """,
        )
        + SERVER % ("two", f"lingering_timeout {_inner}; location / {{ return 200 x; }}"),
        [
            b"GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host)
            for path, host in (
                (b"", b"one"),
                (b"in", b"one"),
                (b"off", b"one"),
                (b"on", b"one"),
                (b"", b"two"),
            )
        ],
        limit=2,
    )
    timed(
        f"keepalive_time {_outer}",
        f"keepalive_time {_outer};"
        + SERVER
        % (
            "one",
            f"""
                location /in {{ keepalive_time {_inner}; return 200 in; }}
                location /slow/ {{ keepalive_time {_inner}; proxy_pass http://@ORIGIN@; }}
                location /base/slow/ {{ proxy_pass http://@ORIGIN@; }}
            """,
        )
        + SERVER % ("two", f"keepalive_time {_inner};"),
        [
            b"GET /base/slow/500 HTTP/1.1\r\nHost: one\r\n\r\n" + WHOLE + OTHER,
            b"GET /slow/500 HTTP/1.1\r\nHost: one\r\n\r\n" + WHOLE + OTHER,
        ],
        limit=2,
    )

http(
    "lingering_time",
    "lingering_close on;"
    + SERVER
    % ("one", "location / { return 200 x; } location /a { lingering_time 0; return 200 a; }"),
    [
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n12345",
        b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n12345",
    ],
    alone=True,
)
http(
    "keepalive_requests by server and location",
    "keepalive_requests 2;"
    + SERVER
    % (
        "one",
        """
            location /in { keepalive_requests 1; return 200 in; }
            location /many { keepalive_requests 100; return 200 many; }
        """,
    )
    + SERVER % ("two", "keepalive_requests 3;"),
    [
        WHOLE * 3,
        OTHER * 4,
        WHOLE + OTHER * 2,
        OTHER * 2 + WHOLE,
        WHOLE.replace(b"hello.txt", b"in") + WHOLE,
        WHOLE + WHOLE.replace(b"hello.txt", b"many") * 2,
    ],
    alone=True,
)
for _size in ("1k", "2 1k", "4 3k"):
    # One part of the name chooses the server before the fields are read, the other after.
    _words = f"large_client_header_buffers {'4 ' if ' ' not in _size else ''}{_size};"
    http(
        f"buffers of heads, {_words}",
        f"client_header_buffer_size 1k; {_words}"
        + SERVER
        % (
            "one",
            """
                error_page 414 /414; error_page 494 /494;
                location /414 { return 200 "414 $status"; }
                location /494 { return 200 "494 $status"; }
            """,
        )
        + SERVER
        % (
            "two",
            (
                "large_client_header_buffers 4 8k; client_header_buffer_size 4k; "
                "error_page 494 =431 /hello.txt;"
            ),
        )
        + SERVER % ("three", "large_client_header_buffers 1 2k;"),
        [
            (f"{host} {what}", case)
            for host in ("one", "two", "three")
            for what, case in (
                (
                    "line of 1500",
                    b"GET /" + b"a" * 1500 + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n",
                ),
                (
                    "line of 5000",
                    b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n",
                ),
                (
                    "absolute line of 1500",
                    b"GET http://"
                    + host.encode()
                    + b"/"
                    + b"a" * 1500
                    + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                ),
                (
                    "field of 1500 behind",
                    b"GET /hello.txt HTTP/1.1\r\nHost: "
                    + host.encode()
                    + b"\r\nX: "
                    + b"a" * 1500
                    + b"\r\n\r\n",
                ),
                (
                    "field of 1500 before",
                    b"GET /hello.txt HTTP/1.1\r\nX: "
                    + b"a" * 1500
                    + b"\r\nHost: "
                    + host.encode()
                    + b"\r\n\r\n",
                ),
                (
                    "field of 5000 behind",
                    b"GET /hello.txt HTTP/1.1\r\nHost: "
                    + host.encode()
                    + b"\r\nX: "
                    + b"a" * 5000
                    + b"\r\n\r\n",
                ),
                (
                    "field of 9000 behind",
                    b"GET /hello.txt HTTP/1.1\r\nHost: "
                    + host.encode()
                    + b"\r\nX: "
                    + b"a" * 9000
                    + b"\r\n\r\n",
                ),
                (
                    "three fields of 900",
                    b"GET /hello.txt HTTP/1.1\r\nHost: "
                    + host.encode()
                    + b"\r\n"
                    + b"".join(b"%c: " % n + b"a" * 900 + b"\r\n" for n in b"XYZ")
                    + b"\r\n",
                ),
                (
                    "POST with a field of 9000",
                    b"POST /hello.txt HTTP/1.1\r\nHost: "
                    + host.encode()
                    + b"\r\nContent-Length: 3\r\nX: "
                    + b"a" * 9000
                    + b"\r\n\r\nabc",
                ),
            )
        ],
        alone=True,
    )
http(
    "fields by server",
    "underscores_in_headers on; ignore_invalid_headers off; max_headers 3;"
    + SERVER % ("one", "return 200 '$http_a_b $http_a_c';")
    + SERVER % ("two", "underscores_in_headers off; max_headers 9; return 200 '$http_a_b';")
    + SERVER % ("three", "ignore_invalid_headers on; return 200 '$http_a_b $http_c';"),
    [
        f"GET / | Host: {host} | {fields}"
        for host in ("one", "two", "three")
        for fields in ("A_B: 1", "A.B: 1", "A.C: 1 | C: 2", "A: 1 | B: 2 | C: 3 | D: 4", "A B: 1")
    ],
    errors=True,
)
for _flag in ("on", "off"):
    http(
        f"reset_timedout_connection {_flag}",
        f"reset_timedout_connection {_flag}; send_timeout 1s;"
        + SERVER
        % (
            "one",
            """
                location /444 { return 444; }
                location /r { reset_timedout_connection off; return 444; }
            """,
        ),
        ["GET /hello.txt", "GET /444", "GET /r"],
        alone=True,
    )
http(
    "limit_rate with words",
    "log_subrequest off; "
    + SERVER
    % (
        "one",
        "location / { limit_rate $arg_r; limit_rate_after $arg_a; return 200 '[$limit_rate]'; }",
    ),
    [
        f"GET /?{words}"
        for words in ("", "r=1k", "r=x", "r=1m&a=y", "a=1m", "r=0", "r=-1", "r=1g", "r=1M&a=1k")
    ],
    errors=True,
)
