"""Owns: the comparison of applications by uwsgi and SCGI, which the origin plays.

Each site is one of both families: `F_` stands for its prefix.
"""

from collections.abc import Sequence
from typing import Any

from .. import site
from ..site import Case, Single
from . import overriding
from .php import chunked, post
from .proxying import answer, raw

FAMILIES = ("uwsgi", "scgi")
VARS = (
    "REQUEST_URI $request_uri",
    "REQUEST_METHOD $request_method",
    "CONTENT_LENGTH $content_length",
    "QUERY_STRING $query_string",
)
PARAMS = "".join(f"F_param {pair}; " for pair in VARS)
HEAD = (
    "listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; location = /next { return 204; }"
)


def both(name: str, conf: str, cases: Sequence[Case], **options: Any) -> None:
    """Compares a configuration of an http block with each family."""
    for family in FAMILIES:
        text = conf.replace("F_", f"{family}_")
        site.http(f"{family} {name}", text, cases, **{"open": True, "errors": True, **options})


def server(name: str, conf: str, cases: Sequence[Case], before: str = "", **options: Any) -> None:
    """The same with one server, and what stands before it."""
    whole = f"{before}\nserver {{ {HEAD} {PARAMS}\n{conf}\n}}"
    both(name, whole, cases, **options)


PASS = "F_pass @ORIGIN@;"
SHOWN = 'add_header X-U "$upstream_status $upstream_addr $upstream_response_length" always;'
server(
    "requests",
    f"""
    {SHOWN}
    location / {{ {PASS} }}
    location /own/ {{ {PASS} {PARAMS} F_param A "$arg_a b"; F_param HTTP_X own;
        F_param E $arg_e if_not_empty; F_param HTTP_Y $arg_e if_not_empty; F_param "" empty; }}
    location /none/ {{ {PASS} F_param REQUEST_URI /; F_pass_request_headers off; }}
    location /stream/ {{ {PASS} F_request_buffering off; }}
    location /var/ {{ F_pass $arg_to; }}
    location /group/ {{ F_pass $arg_g; }}
    """,
    [
        "GET /",
        "GET /a/b?c=d",
        "GET /%20%c3?x",
        "GET / | X: 1 | x: 2 | Cookie: a=1 | Cookie: b=2",
        "GET http://other.test/a",
        "GET / HTTP/1.0",
        "HEAD /",
        "GET /own/?a=1 | X: client | Y: client | Z: client",
        "GET /own/?e=1 | X: client | Y: client",
        "GET /none/x | X: 1",
        post("/", "body"),
        post("/", "b" * 70_000),
        post("/none/", ""),
        post("/", "", method="PUT"),
        post("/stream/", "body"),
        post("/stream/", "b" * 70_000),
        chunked("/", b"one", b"two"),
        chunked("/stream/", b"one", b"two"),
        chunked("/"),
        "DELETE / | Content-Length: 0",
        "GET /var/?to=@ORIGIN@",
        *(f"GET /var/?to={to}" for to in ("", "nope", "127.0.0.1", "http://@ORIGIN@", "unix:/x")),
        "GET /var/?to=@ORIGIN@/x",
        "GET /group/?g=both",
        "GET /group/?g=BOTH",
        "GET /group/?g=both:80",
    ],
    before="upstream both { server @ORIGIN@; }",
)
WHOLE = "HTTP/1.1 200 OK\nContent-Length: 4\n\nbody"
SHORT = "HTTP/1.1 200 OK\nContent-Length: 9\n\nbody"
LONG = "HTTP/1.1 200 OK\nContent-Length: 2\n\nbody"
BUSY = "status: 503 Busy\nRetry-After: 3\n\nbody"
SAID = [
    "HTTP/1.1 200 OK\nX-A: b\n\nbody",
    "HTTP/1.0 404 Not Here\nX-A: b\n\nbody",
    "HTTP/1.1 299 \n\nbody",
    "HTTP/1.1 299\n\nbody",
    "HTTP/1.1 xyz OK\nX-A: b\n\nbody",
    "HTTP/9 200\nX-A: b\n\nbody",
    "HTTP/1.1 2000 OK\n\nbody",
    "HTTP/1.1 20 OK\n\nbody",
    "http/1.1 200 OK\n\nbody",
    "Status: 201 Made\nX-A: b\n\nbody",
    "Status: 404\n\nbody",
    BUSY,
    "Status: abc\n\nbody",
    "Status: 20\n\nbody",
    "HTTP/1.1 200 OK\nStatus: 404 No\n\nbody",
    "X-A: b\n\nbody",
    "\nbody",
    "junk\n\nbody",
    "junk junk\n\nbody",
    "X A: b\n\nbody",
    ": b\n\nbody",
    "HTTP/1.1 200 OK\n X: b\n\nbody",
    "Content-Type: text/html\n\nbody",
    WHOLE,
    SHORT,
    LONG,
    "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "HTTP/1.1 200 OK\nContent-Length: x\n\nbody",
    "HTTP/1.1 200 OK\nContent-Length: 4\nContent-Length: 4\n\nbody",
    "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n4\nbody\n0\n\n",
    "HTTP/1.1 200 OK\nTransfer-Encoding: gzip\n\nbody",
    "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 4\n\nbody",
    "HTTP/1.1 204 None\n\n",
    'HTTP/1.1 304 Not\nETag: "a"\n\n',
    "HTTP/1.1 302 Found\nLocation: /there\n\nbody",
    "Location: /there\n\nbody",
    "Location: http://other.test/there\n\nbody",
    "Status: 401 No\nWWW-Authenticate: Basic\n\nbody",
    "HTTP/1.1 200 OK\nDate: then\nServer: mine\nX-Pad: p\nX-Powered-By: p\n\nbody",
    "HTTP/1.1 200 OK\nConnection: close\nKeep-Alive: 3\nSet-Cookie: a=1\nSet-Cookie: b=2\n\nbody",
    "HTTP/1.1 200 OK\nX-Accel-Redirect: /other\n\nbody",
    "HTTP/1.1 200 OK\nX-Accel-Redirect: @named\n\nbody",
    "HTTP/1.1 200 OK\nX-Accel-Expires: 5\nX-Accel-Foo: b\nX-Accel-Limit-Rate: 100000\n\nbody",
    "X-Accel-Buffering: no\nX-Accel-Charset: koi8-r\nContent-Type: text/plain\n\nbody",
    "HTTP/1.1 200 OK\nX-Long: " + "x" * 5000 + "\n\nbody",
    "HTTP/1.1 200 OK\nX-Lo",
    "HTTP/1.",
    "",
    "HTTP/1.1 200 OK\n\n" + "body " * 20_000,
]
server(
    "responses",
    f"""
    {SHOWN}
    location / {{ {PASS} }}
    location /small/ {{ {PASS} F_buffering off; F_buffer_size 1k; }}
    location /caught/ {{ {PASS} F_intercept_errors on; error_page 404 503 /other; }}
    location /other {{ return 200 other; }}
    location @named {{ return 200 named; }}
    """,
    [
        *(raw(text) for text in SAID),
        *(raw(text, request="HEAD") for text in (*SAID[:1], WHOLE, SHORT)),
        *(
            raw(text, base="/small")
            for text in SAID
            if text not in (SHORT, LONG) and len(text) < 2000
        ),
        *(raw(text, base="/caught") for text in (SAID[1], BUSY, WHOLE)),
        raw(SAID[0], more=" | Range: bytes=1-2"),
        raw('HTTP/1.1 200 OK\nETag: "a"\n\nbody', more=' | If-None-Match: "a"'),
    ],
)
server(
    "without a server",
    """
    add_header X-U $upstream_status always;
    location /dead/ { F_pass dead; }
    location /next/ { F_pass next; }
    location /off/ { F_pass next; F_next_upstream off; }
    location /retry/ { F_pass both; F_next_upstream error invalid_header http_503 http_404; }
    location /post/ { F_pass next; F_next_upstream error non_idempotent; }
    location /down/ { F_pass 127.0.0.1:@P9@; error_page 502 =200 /made; }
    location /none/ { F_pass unix:@DIR@/none.sock; }
    location /made { return 200 made; }
    """,
    [
        "GET /dead/a",
        "GET /next/a",
        "GET /next/b",
        "GET /off/a",
        answer(status="503 Busy", base="/retry"),
        answer(status="404 No", base="/retry"),
        raw("X A: b\n\n", base="/retry"),
        raw("", base="/retry"),
        post("/post/", "body"),
        post("/next/", "body"),
        "GET /down/a",
        "GET /none/a",
    ],
    before="""
    upstream dead { server 127.0.0.1:@P9@ max_fails=0; server 127.0.0.2:@P9@ max_fails=0; }
    upstream next { server 127.0.0.1:@P9@ max_fails=0; server @ORIGIN@ max_fails=0; }
    upstream both { server @ORIGIN@ max_fails=0; server @ORIGIN@ max_fails=0 backup; }
    """,
)
KEPT = "F_cache a; F_cache_valid any 1m; F_cache_key $uri;"
server(
    "caches",
    f"""
    add_header X-C "$upstream_cache_status $upstream_status" always;
    location / {{ {PASS} {KEPT} F_cache_valid 404 1m; }}
    location /bypass/ {{ {PASS} {KEPT} F_cache_bypass $arg_b; F_no_cache $arg_n; }}
    location /stale/ {{ {PASS} {KEPT} F_cache_use_stale http_503; F_cache_revalidate on; }}
    """,
    [
        *overriding.numbered(
            [
                "GET /a",
                "GET /a",
                "HEAD /a",
                answer("Cache-Control: max-age=60", body="long body"),
                answer("Cache-Control: max-age=60", body="long body"),
                answer("Set-Cookie: a=1"),
                answer("Set-Cookie: a=1"),
                answer("X-Accel-Expires: 0"),
                answer("X-Accel-Expires: 0"),
                answer(status="404 No"),
                answer(status="404 No"),
                raw("Status: 200 OK\n\nbody of a script"),
                raw("Status: 200 OK\n\nbody of a script"),
                post("/a", "body"),
                "GET /bypass/a",
                "GET /bypass/a?b=1",
                "GET /bypass/a",
                "GET /bypass/n?n=1",
                "GET /bypass/n",
                "GET /stale/a",
                "GET /stale/a",
            ]
        )
    ],
    before="F_cache_path @LOGS@/cache levels=1:2 keys_zone=a:1m inactive=9m;",
    lengths="any",
)
for _modifiers in ("uwsgi_modifier1 30; uwsgi_modifier2 9;", "uwsgi_modifier1 255;", ""):
    site.http(
        f"uwsgi packets {_modifiers}",
        f"""
        large_client_header_buffers 8 64k;
        server {{ {HEAD} {PARAMS.replace("F_", "uwsgi_")} {_modifiers}
            location / {{ uwsgi_pass uwsgi://@ORIGIN@; }}
            location /other/ {{ uwsgi_pass UWSGI://@ORIGIN@;
                uwsgi_modifier1 0; uwsgi_modifier2 1; }}
        }}
        """,
        [
            "GET /",
            "GET /other/",
            *(
                f"GET /{size} | " + " | ".join(f"{n}: {'x' * size}" for n in "ABC")
                for size in (20_000, 30_000)
            ),
        ],
        open=True,
        errors=True,
    )


def own(
    family: str,
    name: str,
    x: str,
    y: str,
    cases: Single | list[Single] = "GET /",
    passing: str = PASS,
    more: str = "",
    **options: Any,
) -> None:
    """Compares what inner blocks take over of one directive of one family."""

    def named(text: str) -> str:
        return text.replace("F_", f"{family}_")

    before = "\n" if name == "temp_path" else ""
    if "cache" in name:
        # Who keeps a response knows its length.
        options["lengths"] = "any"
    overriding.site(
        f"{before}{family}_{name}",
        named(x),
        named(y),
        cases,
        named(passing),
        more=named(PARAMS + more),
        **{
            key: named(value) if isinstance(value, str) else value for key, value in options.items()
        },
    )


BIG = answer(body="x" * 30_000)
ZONES = """
    F_cache_path @LOGS@/cache keys_zone=a:1m; F_cache_path @LOGS@/cache-b keys_zone=b:1m;
    add_header X-Cache $upstream_cache_status always;
"""
STAYS = "F_cache a; F_cache_valid any 1m; F_cache_key $host$request_uri;"
KEY = "F_cache_valid any 1m; F_cache_key $host$request_uri;"
TWICE = overriding.numbered(["GET /x", "GET /x"])
FOUR = overriding.numbered(["GET /x"] * 4)
TRIED = "add_header X-Tried $upstream_status always;"
DEAD = """
    upstream dead { server 127.0.0.1:1 max_fails=0; server 127.0.0.2:1 max_fails=0;
        server 127.0.0.3:1 max_fails=0; }
"""
BACKED = "upstream both { server @ORIGIN@ max_fails=0; server @ORIGIN@ backup; }"
FIRST_DEAD = "upstream first_dead { server 127.0.0.1:1 max_fails=0; server @ORIGIN@ max_fails=0; }"
for _family in FAMILIES:
    own(_family, "buffer_size", "1k", "8k", answer("X-Long: " + "x" * 2000), errors=False)
    own(_family, "read_timeout", "150ms", "5s", "GET /slow/700")
    own(_family, "send_timeout", "150ms", "5s")
    own(_family, "connect_timeout", "150ms", "5s")
    own(_family, "next_upstream", "off", "error", "GET /", "F_pass first_dead;", FIRST_DEAD + TRIED)
    own(_family, "next_upstream_tries", "1", "3", "GET /", "F_pass dead;", DEAD + TRIED)
    own(
        _family,
        "next_upstream_timeout",
        "1ms; F_next_upstream http_503;",
        "0",
        answer(status="503 Busy"),
        "F_pass both;",
        BACKED,
    )
    own(_family, "request_buffering", "off", "on", post("/", "one two"))
    own(
        _family,
        "intercept_errors",
        "on; error_page 404 /errors/404.html; error_page 503 @named;",
        "off",
        [answer(status="404 No"), answer(status="503 Busy")],
        help=overriding.HELP,
    )
    own(_family, "pass_request_headers", "off", "on", "GET / | X: y")
    own(_family, "pass_request_body", "on", "off", "GET /")
    own(_family, "force_ranges", "on", "off", answer("X: y", more=" | Range: bytes=1-2"))
    own(_family, "limit_rate", "1m", "$arg_r", answer())
    own(
        _family,
        "hide_header",
        "X-A; F_hide_header X-C;",
        "X-B",
        answer("X-A: 1", "X-B: 2", "X-C: 3"),
    )
    own(
        _family,
        "pass_header",
        "Status; F_hide_header X-A;",
        "X-Accel-Expires",
        raw("Status: 200 OK\nX-A: 1\nX-Accel-Expires: 5\n\nbody"),
    )
    own(
        _family,
        "ignore_headers",
        "X-Accel-Redirect",
        "X-Accel-Limit-Rate",
        answer("X-Accel-Redirect: /errors/404.html", "X-Accel-Limit-Rate: 100000"),
        help=overriding.HELP,
    )
    own(
        _family,
        "param",
        "A a; F_param REQUEST_URI /; F_param IF $http_if if_not_empty;",
        "B b; F_param REQUEST_URI /;",
        ["GET /", "GET / | If: 1"],
    )
    own(_family, "buffering", "off", "on", BIG)
    own(
        _family,
        "buffers",
        "2 4k; F_busy_buffers_size 4k;",
        "8 8k; F_busy_buffers_size 16k;",
        BIG,
    )
    own(_family, "max_temp_file_size", "0", "8k", BIG)
    own(_family, "temp_file_write_size", "8k", "16k", BIG)
    own(
        _family,
        "temp_path",
        "@LOGS@/outer",
        "@LOGS@/inner 1",
        BIG,
        more="F_buffers 2 4k; F_busy_buffers_size 4k;",
    )
    own(_family, "ignore_client_abort", "on", "off")
    own(_family, "socket_keepalive", "on", "off")
    own(_family, "bind", "192.0.2.1", "127.0.0.9")
    own(_family, "store", "@LOGS@/kept$uri", "off", answer())
    own(_family, "store_access", "user:rw; F_store @LOGS@/kept$uri;", "all:r", answer())
    own(_family, "cache", "a", "off", TWICE, more=ZONES + KEY)
    own(
        _family,
        "cache_key",
        "$host$request_uri; F_cache a;",
        "$host$uri",
        overriding.numbered(["GET /x?1", "GET /x?2", "GET /x?1"]),
        more=ZONES + "F_cache_valid any 1m;",
    )
    own(
        _family,
        "cache_valid",
        "200 1m",
        "404 1m",
        overriding.numbered([answer(), answer(), answer(status="404 No"), answer(status="404 No")]),
        more=ZONES + "F_cache a; F_cache_key $host$request_uri;",
    )
    own(
        _family,
        "cache_methods",
        "GET HEAD POST",
        "HEAD",
        overriding.numbered([post("/x", "b"), post("/x", "b")]),
        more=ZONES + STAYS,
    )
    own(_family, "cache_min_uses", "2", "1", FOUR, more=ZONES + STAYS)
    own(
        _family,
        "cache_bypass",
        "$http_b",
        "$arg_b",
        overriding.numbered(["GET /x?b=1 | B: 1", "GET /x?b=1"] * 2),
        more=ZONES + STAYS,
    )
    own(
        _family,
        "no_cache",
        "$http_n",
        "$arg_n",
        overriding.numbered(["GET /x?n=1 | N: 1", "GET /x?n=1"] * 2),
        more=ZONES + STAYS,
    )
    own(
        _family,
        "cache_max_range_offset",
        "2",
        "100",
        overriding.numbered(["GET /x | Range: bytes=5-6"] * 2),
        more=ZONES + STAYS,
    )
    for _name, _x, _y in (
        ("cache_lock", "on", "off"),
        ("cache_lock_age", "1s; F_cache_lock on;", "9s"),
        ("cache_lock_timeout", "1s; F_cache_lock on;", "9s"),
        ("cache_use_stale", "error http_503", "off"),
        ("cache_background_update", "on; F_cache_use_stale updating;", "off"),
        ("cache_revalidate", "on", "off"),
    ):
        own(_family, _name, _x, _y, TWICE, more=ZONES + STAYS)
own("uwsgi", "modifier1", "5", "0")
own("uwsgi", "modifier2", "255", "1")
own("uwsgi", "string", "abc", "def$uri")
