"""Owns: the comparison of `grpc_pass`, whose origin speaks HTTP/2."""

from typing import Any

from .. import site
from ..frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    fields,
    frame,
)
from ..site import Single
from . import overriding
from .php import chunked, post

CONTINUATION = 9
PASS = "grpc_pass @ORIGIN@;"
HEAD = (
    "listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; location = /next { return 204; }"
)
SHOWN = 'add_header X-U "$upstream_status $upstream_addr $upstream_response_length" always;'


def head(*pairs: tuple[str, str], status: str = "200", ends: bool = False) -> bytes:
    """The head of a response."""
    flags = END_HEADERS | (END_STREAM if ends else 0)
    return frame(HEADERS, flags, 1, fields([(":status", status), *pairs]))


def block(*pairs: tuple[str, str]) -> bytes:
    """A head that is not as it should be."""
    return frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(pairs))


def data(text: str, ends: bool = False) -> bytes:
    """A part of a body."""
    return frame(DATA, END_STREAM if ends else 0, 1, text.encode())


def last(text: str = "") -> bytes:
    """The last part of a body."""
    return data(text, ends=True)


def trailers(*pairs: tuple[str, str]) -> bytes:
    """The end of a response."""
    return frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(pairs or [("grpc-status", "0")]))


def raw(
    label: str,
    *said: bytes,
    request: str = "GET",
    more: str = "",
    base: str = "",
    kind: str = "raw",
) -> Single:
    """A request for these frames, behind which the connection ends."""
    path = f"{base}/{kind}/{b''.join(said).hex()}"
    return f"{request} {base} {label}{more}", f"{request} {path}{more}"


def kept(label: str, *said: bytes, **rest: Any) -> Single:
    """The same over a connection that stays."""
    return raw(label, *said, kind="keep", **rest)


def answer(*pairs: tuple[str, str], status: str = "200", body: str = "body", **rest: Any) -> Single:
    """A request for a response with these fields."""
    label = f"{status} {pairs} {body[:9]}"
    return kept(label, head(*pairs, status=status), data(body), trailers(), **rest)


def server(name: str, conf: str, cases: list[Single], before: str = "", **options: Any) -> None:
    """Compares one server, and what stands before it."""
    text = f"{before}\nserver {{ {HEAD}\n{conf}\n}}"
    site.http(f"grpc {name}", text, cases, **{"open": True, "errors": True, **options})


server(
    "requests",
    f"""
    {SHOWN}
    location / {{ {PASS} }}
    location /own/ {{ {PASS} grpc_set_header A "$arg_a b"; grpc_set_header X own;
        grpc_set_header Y ""; grpc_set_header TE "trailers"; }}
    location /host/ {{ {PASS} grpc_set_header Host $host; }}
    location /length/ {{ {PASS} grpc_set_header Content-Length ""; }}
    location /scheme/ {{ grpc_pass grpc://@ORIGIN@; }}
    location /var/ {{ grpc_pass $arg_to; }}
    location /group/ {{ grpc_pass grpc://both; }}
    location /break/ {{ rewrite ^/break/(.*) "/x y/$1?z=1" break; {PASS} }}
    location /if/ {{ if ($arg_a) {{ {PASS} }} }}
    location /kept/ {{ grpc_pass kept; }}
    """,
    [
        "GET /",
        "GET /a.B/C?c=d",
        "GET /%20%c3/../%2f?x",
        "GET / | X: 1 | x: 2 | Cookie: a=1 | Cookie: b=2",
        "GET / | TE: trailers",
        "GET / | TE: gzip, trailers;q=1",
        "GET / | TE: gzip",
        "GET / | Connection: TE | Keep-Alive: 3 | Upgrade: a | Expect: b",
        "GET http://other.test/a",
        "GET / HTTP/1.0",
        "HEAD /",
        "GET /own/?a=1 | X: client | Y: client | Z: client",
        "GET /host/",
        post("/length/", "body"),
        "GET /scheme/",
        post("/", "body"),
        post("/", ""),
        post("/", "b" * 70_000),
        post("/", "b" * 200_000),
        post("/", "", method="PUT"),
        chunked("/", b"one", b"two"),
        chunked("/"),
        "DELETE / | Content-Length: 0",
        "GET /var/?to=@ORIGIN@",
        "GET /var/?to=grpc://@ORIGIN@",
        *(
            f"GET /var/?to={to}"
            for to in ("", "nope", "127.0.0.1", "http://@ORIGIN@", "unix:/x", "grpc://", "a:b")
        ),
        "GET /var/?to=@ORIGIN@/x",
        "GET /group/",
        "GET /break/a%20b?c=d",
        "GET /if/?a=1",
        "GET /kept/1",
        "GET /kept/2",
        post("/kept/3", "body"),
        "GET /kept/4",
    ],
    before="upstream both { server @ORIGIN@; } upstream kept { server @ORIGIN@; keepalive 1; }",
)
OK = head(("content-type", "application/grpc"))
SAID: dict[str, tuple[bytes, ...]] = {
    "messages": (OK, data("hel"), data("lo"), trailers()),
    "nothing": (OK, last()),
    "one": (OK, last("body")),
    "only trailers": (head(("grpc-status", "5"), ("grpc-message", "a%20b"), ends=True),),
    "an empty value": (head(("x-a", ""), ends=True),),
    "length": (head(("content-length", "4")), last("body")),
    "length and trailers": (head(("content-length", "4")), data("body"), trailers()),
    "length 0": (head(("content-length", "0")), trailers()),
    "404": (head(status="404"), last("none")),
    "503": (head(status="503"), last("busy")),
    "204": (head(status="204", ends=True),),
    "padded": (
        frame(HEADERS, END_HEADERS | 8, 1, b"\2" + fields([(":status", "200")]) + b"\0\0"),
        frame(DATA, 8, 1, b"\2hello\0\0"),
        trailers(),
    ),
    "priority": (
        frame(HEADERS, END_HEADERS | 32, 1, b"\0\0\0\0\5" + fields([(":status", "200")])),
        last("body"),
    ),
    "continued": (
        frame(HEADERS, 0, 1, fields([(":status", "200")])),
        frame(CONTINUATION, END_HEADERS, 1, fields([("x-a", "b")])),
        last("body"),
    ),
    "unknown": (frame(0x42, 0, 0, b"xyz"), OK, frame(0x42, 0, 1, b"xyz"), last("body")),
    "settings": (frame(SETTINGS, 0, 0, b"\0\2\0\0\0\1"), OK, last("body")),
    "ping": (frame(PING, 0, 0, b"12345678"), OK, last("body")),
    "goaway": (frame(GOAWAY, 0, 0, b"\0\0\0\1\0\0\0\0"), OK, last("body")),
    "reset behind": (OK, last("body"), frame(RST_STREAM, 0, 1, b"\0\0\0\0")),
    "own fields": (
        head(("date", "then"), ("server", "mine"), ("x-pad", "p"), ("x-powered-by", "p")),
        last("body"),
    ),
    "redirect": (head(("x-accel-redirect", "/other")), last("body")),
    "named": (head(("x-accel-redirect", "@named")), last("body")),
    "accel": (
        head(("x-accel-expires", "5"), ("x-accel-foo", "b"), ("x-accel-limit-rate", "100000")),
        last("body"),
    ),
    "underscore": (head(("fo_o", "b")), last("body")),
    "hidden trailer": (OK, data("x"), trailers(("grpc-status", "0"), ("x-secret", "1"))),
    "table of 0": (frame(HEADERS, 5, 1, b"\x20" + fields([(":status", "200")])),),
    "large": (OK, *(data("x" * 16_000) for _ in range(20)), trailers()),
}
WRONG: dict[str, tuple[bytes, ...]] = {
    "data first": (data("x"),),
    "continuation first": (frame(CONTINUATION, 4, 1, b""),),
    "interleaved": (frame(HEADERS, 0, 1, b"\x88"), frame(PING, 0, 0, b"12345678")),
    "push": (frame(5, 4, 1, b"\0\0\0\2\x88"),),
    "stream 3": (frame(HEADERS, 5, 3, b"\x88"),),
    "window 3": (frame(WINDOW_UPDATE, 0, 3, b"\0\0\0\1"),),
    "reset": (frame(RST_STREAM, 0, 1, b"\0\0\0\2"),),
    "refused": (frame(RST_STREAM, 0, 1, b"\0\0\0\7"),),
    "reset 0": (frame(RST_STREAM, 0, 1, b"\0\0\0\0"),),
    "goaway": (frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0"),),
    "goaway short": (frame(GOAWAY, 0, 0, b"\0\0\0\0"),),
    "goaway stream": (frame(GOAWAY, 0, 1, b"\0\0\0\0\0\0\0\0"),),
    "no status": (block(("content-type", "a")),),
    "late status": (block(("a", "b"), (":status", "200")),),
    "two": (block((":status", "200"), (":status", "200")),),
    "2x0": (block((":status", "2x0")),),
    "20": (block((":status", "20")),),
    "099": (block((":status", "099")),),
    "101": (block((":status", "101")),),
    "pseudo": (block((":status", "200"), (":foo", "1")),),
    "too big": (block((":status", "200"), *((f"x-{at}", "v" * 100) for at in range(60))),),
    "too large": (frame(DATA, 0, 1, b"x" * 20_000),),
    "settings 5": (frame(SETTINGS, 0, 0, b"12345"),),
    "settings stream": (frame(SETTINGS, 0, 1, b""),),
    "settings ack": (frame(SETTINGS, 1, 0, b"123456"),),
    "settings window": (frame(SETTINGS, 0, 0, b"\0\4\x80\0\0\0"),),
    "ping 7": (frame(PING, 0, 0, b"1234567"),),
    "ping stream": (frame(PING, 0, 1, b"12345678"),),
    "window": (frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"),),
    "window of 1": (frame(WINDOW_UPDATE, 0, 1, b"\x7f\xff\xff\xff"),),
    "window short": (frame(WINDOW_UPDATE, 0, 1, b"\0\0\1"),),
    "reset short": (frame(RST_STREAM, 0, 1, b"\0\0\0"),),
    "http/1": (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",),
    "many settings": (frame(SETTINGS, 0, 0, b"") * 1100,),
}
# Of these nginx has another line, or one more.
SILENT: dict[str, tuple[bytes, ...]] = {
    "length x": (block((":status", "200"), ("content-length", "x")),),
    "upper": (block((":status", "200"), ("Foo", "1")),),
    "space": (block((":status", "200"), ("fo o", "1")),),
    "empty name": (block((":status", "200"), ("", "1")),),
    "index": (frame(HEADERS, 5, 1, b"\xff\x0f"),),
    "index 0": (frame(HEADERS, 5, 1, b"\x80"),),
    "truncated": (frame(HEADERS, 5, 1, b"\x88\0\5ab"),),
    "many pings": (frame(PING, 0, 0, b"12345678") * 1100,),
    "short": (head(("content-length", "9")), last("body")),
    "long": (head(("content-length", "2")), last("body")),
    "no end": (OK, data("body"), frame(HEADERS, 4, 1, fields([("grpc-status", "0")]))),
    "status behind": (OK, data("body"), trailers((":status", "200"))),
    "reset within": (OK, data("body"), frame(RST_STREAM, 0, 1, b"\0\0\0\x08")),
    "ends within": (OK, data("body")),
    "ends at once": (),
    "another stream": (OK, frame(DATA, 0, 3, b"x")),
}
ANSWERS = f"""
    {SHOWN}
    location / {{ {PASS} grpc_hide_header X-Secret; }}
    location /caught/ {{ {PASS} grpc_intercept_errors on; error_page 404 503 /other; }}
    location /http/ {{ {PASS} error_page 502 = /unavailable; }}
    location = /unavailable {{ internal; default_type application/grpc;
        add_header grpc-status 14; return 204; }}
    location /passed/ {{ {PASS} grpc_pass_header Server; grpc_pass_header Date; }}
    location /other {{ return 200 other; }}
    location @named {{ return 200 named; }}
"""
server(
    "responses",
    ANSWERS,
    [
        *(kept(label, *said) for label, said in SAID.items()),
        kept("messages", *SAID["messages"], request="HEAD"),
        *(kept(label, *SAID[label], base="/caught") for label in ("404", "503", "messages")),
        kept("no fields", *SAID["one"], base="/passed"),
        kept("HTTP/1.0", *SAID["messages"], more=" HTTP/1.0"),
    ],
)
server("errors", ANSWERS, [raw(label, *said) for label, said in WRONG.items()])
server(
    "more errors",
    ANSWERS,
    [
        *(raw(label, *said) for label, said in SILENT.items()),
        raw("recipe", *WRONG["reset"], base="/http"),
    ],
    errors=False,
)
server(
    "without a server",
    """
    add_header X-U $upstream_status always;
    location /dead/ { grpc_pass dead; }
    location /next/ { grpc_pass next; }
    location /off/ { grpc_pass next; grpc_next_upstream off; }
    location /retry/ { grpc_pass both; grpc_next_upstream error invalid_header http_503 http_404; }
    location /usual/ { grpc_pass both; }
    location /post/ { grpc_pass next; grpc_next_upstream error non_idempotent; }
    location /down/ { grpc_pass 127.0.0.1:@P9@; error_page 502 =200 /made; }
    location /none/ { grpc_pass unix:@DIR@/none.sock; }
    location /made { return 200 made; }
    """,
    [
        "GET /dead/a",
        "GET /next/a",
        "GET /off/a",
        answer(status="503", base="/retry"),
        answer(status="404", base="/retry"),
        *(
            raw(label, *WRONG[label], base=base)
            for label in ("refused", "goaway", "no status")
            for base in ("/retry", "/usual")
        ),
        post("/post/", "body"),
        post("/next/", "body"),
        "GET /down/a",
        "GET /none/a",
    ],
    before="""
    upstream dead { server 127.0.0.1:@P9@ max_fails=0; server 127.0.0.2:@P9@ max_fails=0; }
    upstream next { server 127.0.0.1:@P9@ max_fails=0; server @ORIGIN@ max_fails=0; keepalive 0; }
    upstream both { server @ORIGIN@ max_fails=0; server @ORIGIN@ max_fails=0 backup; keepalive 0; }
    """,
)


def own(
    name: str,
    x: str,
    y: str,
    cases: Single | list[Single] = "GET /",
    passing: str = PASS,
    more: str = "",
    **options: Any,
) -> None:
    """Compares what inner blocks take over of one directive."""
    overriding.site(f"grpc_{name}", x, y, cases, passing, more=more, **options)


TRIED = "add_header X-Tried $upstream_status always;"
DEAD = """
    upstream dead { server 127.0.0.1:1 max_fails=0; server 127.0.0.2:1 max_fails=0;
        server 127.0.0.3:1 max_fails=0; }
"""
BACKED = "upstream both { server @ORIGIN@ max_fails=0; server @ORIGIN@ backup; keepalive 0; }"
FIRST_DEAD = """
    upstream first_dead { server 127.0.0.1:1 max_fails=0; server @ORIGIN@ max_fails=0;
        keepalive 0; }
"""
own("buffer_size", "1k", "8k", answer(("x-long", "x" * 120), *[("x-b", "y" * 120)] * 20))
own("read_timeout", "150ms", "5s", "GET /slow/700")
own("send_timeout", "150ms", "5s")
own("connect_timeout", "150ms", "5s")
own("next_upstream", "off", "error", "GET /", "grpc_pass first_dead;", FIRST_DEAD + TRIED)
own("next_upstream_tries", "1", "3", "GET /", "grpc_pass dead;", DEAD + TRIED)
own(
    "next_upstream_timeout",
    "1ms; grpc_next_upstream http_503;",
    "0",
    answer(status="503"),
    "grpc_pass both;",
    BACKED,
)
own(
    "intercept_errors",
    "on; error_page 404 /errors/404.html; error_page 503 @named;",
    "off",
    [answer(status="404"), answer(status="503")],
    help=overriding.HELP,
)
own(
    "hide_header",
    "X-A; grpc_hide_header X-C;",
    "X-B",
    answer(("x-a", "1"), ("x-b", "2"), ("x-c", "3")),
)
own(
    "pass_header",
    "X-Accel-Buffering; grpc_hide_header X-A;",
    "X-Accel-Expires",
    answer(("x-accel-buffering", "no"), ("x-a", "1"), ("x-accel-expires", "5")),
)
own(
    "ignore_headers",
    "X-Accel-Redirect",
    "X-Accel-Limit-Rate",
    answer(("x-accel-redirect", "/errors/404.html"), ("x-accel-limit-rate", "100000")),
    help=overriding.HELP,
)
own("set_header", "A a; grpc_set_header X-Own $uri;", "B b; grpc_set_header Host h.test;")
own("socket_keepalive", "on", "off")
own("bind", "192.0.2.1", "127.0.0.9")
