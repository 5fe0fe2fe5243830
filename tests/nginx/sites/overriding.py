"""Owns: what locations that pass requests on take over from blocks around them.

A directive stands with two values in `http`, a server and a nested location; every location is
asked.
"""

import re
from collections.abc import Sequence
from typing import Any

from ..site import Request, Single, http
from .php import post, say
from .proxying import answer, raw

# %(x)s is the outer value, %(y)s the inner one.
BLOCKS = """
    %(x)s %(more)s
    server {
        listen 127.0.0.1:@P0@; server_name one; root @DIR@/app;
        location = /next { return 204; }
        %(help)s
        location /a/ { %(pass)s }
        location /b/ { %(y)s %(pass)s
            location /b/n/ { %(pass)s }
            location /b/x/ { %(x)s %(pass)s }
            location ~ ^/b/r/ { %(x)s %(rpass)s location ~ ^/b/r/r { %(rpass)s } }
        }
        location /c/ { %(pass)s if ($http_y) { %(if_y)s } }
    }
    server {
        listen 127.0.0.1:@P0@; server_name two; root @DIR@/app;
        %(y)s location = /next { return 204; }
        %(help)s
        location /a/ { %(pass)s } location /x/ { %(x)s %(pass)s location /x/n/ { %(pass)s } }
    }
"""
ASKED = [
    ("one", "/a/"),
    ("one", "/b/"),
    ("one", "/b/n/"),
    ("one", "/b/x/"),
    ("one", "/b/r/"),
    ("one", "/b/r/r/"),
    ("one", "/c/"),
    ("two", "/a/"),
    ("two", "/x/"),
    ("two", "/x/n/"),
]


def with_host(case: Single, base: str, host: str) -> tuple[str, Request]:
    """A case below `base` that asks `host`."""
    label, case = case if isinstance(case, tuple) else (None, case)
    if isinstance(case, bytes):
        case = case.replace(b" /", b" " + base.encode(), 1)
        case = case.replace(b"Host: localhost", b"Host: " + host.encode(), 1)
    else:
        case = case.replace(" /", " " + base, 1)
        line, mark, fields = case.partition(" | ")
        case = f"{line} | Host: {host}{mark}{fields}"
    return f"{host} {base} {label or case!s}"[:160], case


def site(
    name: str,
    x: str,
    y: str,
    cases: Single | list[Single],
    passing: str,
    *,
    in_if: str = "set $z 1;",
    more: str = "",
    help: str = "",
    **options: Any,
) -> None:
    """Compares `name` with the values `x` and `y` where `passing` passes requests on."""

    def whole(value: str) -> str:
        return f"{name} {value.strip().rstrip(';')};"

    # A location given by an expression has no prefix that another path could take the place of.
    rpass = re.sub(r"(http://[^/]*)/;", r"\1;", passing)
    text = BLOCKS % {
        "x": whole(x),
        "y": whole(y),
        "pass": passing,
        "rpass": rpass,
        "more": more,
        "help": help,
        "if_y": in_if,
    }
    each = cases if isinstance(cases, list) else [cases]
    asked = [with_host(case, base, host) for host, base in ASKED for case in each]
    key = f"overrides {name.strip()} {' '.join(x.split())}"[:70]
    http(key, text, asked, **{"open": True, "errors": True, **options})


def proxy(
    name: str,
    x: str,
    y: str,
    cases: Single | list[Single] = "GET /",
    passing: str = "proxy_pass http://@ORIGIN@/;",
    **options: Any,
) -> None:
    """Compares `proxy_NAME`."""
    site("proxy_" + name, x, y, cases, passing, **options)


PARAMS = (
    "include fastcgi.conf; fastcgi_param SCRIPT_FILENAME @DIR@/app/$arg_f; "
    "fastcgi_param HOST $http_host; fastcgi_param SITE $uri;"
)


def fastcgi(
    name: str,
    x: str,
    y: str,
    cases: Single | list[Single],
    passing: str = "fastcgi_pass @PHPA@;",
    more: str = "",
    **options: Any,
) -> None:
    """Compares `fastcgi_NAME`."""
    site("fastcgi_" + name, x, y, cases, passing, more=PARAMS + more, **options)


def script(name: str, *fields: str, more: str = "", **query: Any) -> str:
    """A request for a script that does what its arguments say."""
    return say(*fields, path="/", f=name, more=more, **query)


HELP = "location /errors/ { root @DIR@/app; } location @named { return 200 named; }"
LONG = answer("X-Long: " + "x" * 2000)
proxy("buffer_size", "1k", "8k", LONG, errors=False)
proxy(
    "buffer_size",
    "16k; proxy_busy_buffers_size 16k;",
    "1k; proxy_busy_buffers_size 8k;",
    LONG,
    errors=False,
)
proxy("read_timeout", "150ms", "5s", "GET /slow/700")
proxy("send_timeout", "150ms", "5s", post("/", "x" * 1000))
proxy("connect_timeout", "150ms", "5s", "GET /")
proxy(
    "next_upstream",
    "off",
    "error",
    passing="proxy_pass http://first_dead/;",
    more="""
        upstream first_dead { server 127.0.0.1:1 max_fails=0; server @ORIGIN@ max_fails=0; }
        add_header X-Tried $upstream_addr always;
    """,
)
proxy(
    "next_upstream",
    "error http_404",
    "http_503",
    [answer(status="404 No"), answer(status="503 Busy")],
    passing="proxy_pass http://both/;",
    more="""
        upstream both { server @ORIGIN@ max_fails=0; server @ORIGIN@ backup; }
        add_header X-Tried $upstream_status always;
    """,
)
proxy(
    "next_upstream_tries",
    "1",
    "3",
    passing="proxy_pass http://dead/;",
    more="""
        upstream dead {
            server 127.0.0.1:1 max_fails=0; server 127.0.0.2:1 max_fails=0;
            server 127.0.0.3:1 max_fails=0;
        }
        add_header X-Tried $upstream_status always;
    """,
)
proxy(
    "next_upstream_timeout",
    "1ms",
    "0",
    answer(status="503 Busy"),
    passing="proxy_next_upstream http_503; proxy_pass http://both/;",
    more="upstream both { server @ORIGIN@ max_fails=0; server @ORIGIN@ backup; }",
)
proxy("request_buffering", "off", "on", post("/", "one two"))
proxy(
    "intercept_errors",
    "on; error_page 404 /errors/404.html; error_page 503 @named;",
    "off",
    [answer(status="404 No"), answer(status="503 Busy")],
    help=HELP,
)
proxy("pass_request_headers", "off", "on", "GET / | X: y")
proxy(
    "pass_request_body",
    'off; proxy_set_header Content-Length "";',
    "on; proxy_set_header X y;",
    post("/", "body"),
)
proxy("force_ranges", "on", "off", answer("X: y", more=" | Range: bytes=1-2"))
proxy(
    "force_ranges",
    "on",
    "off",
    raw(
        'HTTP/1.1 200 OK\nContent-Length: 9\nETag: "a"\n\n123456789',
        more=' | Range: bytes=1-2,4-5 | If-Range: "b"',
    ),
)
proxy("limit_rate", "1m", "$arg_r", answer())
proxy(
    "hide_header",
    "X-A; proxy_hide_header X-C;",
    "X-B",
    answer("X-A: 1", "X-B: 2", "X-C: 3", "Server: q", "X-Pad: p"),
)
proxy(
    "pass_header",
    "Server; proxy_hide_header X-A;",
    "Date",
    answer("X-A: 1", "Server: q", "Date: then"),
)
proxy(
    "pass_header",
    "X-Pad",
    "Server; proxy_hide_header X-A;",
    answer("X-A: 1", "Server: q", "X-Pad: p"),
)
proxy(
    "ignore_headers",
    "X-Accel-Redirect",
    "X-Accel-Limit-Rate",
    answer("X-Accel-Redirect: /errors/404.html", "X-Accel-Limit-Rate: 100000"),
    help=HELP,
)
proxy("method", "POST", "$http_m", "GET / | M: PUT")
proxy("http_version", "1.0", "1.1", "GET /")
proxy("http_version", "2", "1.1", "GET /")
proxy("set_body", "outer", "$uri", post("/", "sent"))
proxy("set_body", "$http_b", '""', ["GET / | B: b", "GET /"])
proxy("set_header", "X a; proxy_set_header Host h;", "Y $host", "GET / | X: mine | Y: mine")
proxy(
    "set_header",
    'Connection ""; proxy_set_header X $arg_x;',
    "Host $host",
    ["GET /?x=1 | X: mine", "GET /"],
)
proxy(
    "redirect",
    "http://a/ /a/",
    "http://@ORIGIN@/ /o/",
    [
        answer("Location: http://a/x", status="302 Found"),
        answer("Location: http://@ORIGIN@/x", status="302 Found"),
    ],
)
proxy(
    "redirect",
    "off",
    "http://a/ /z/; proxy_redirect ~b(.) /r/$1;",
    [
        answer("Location: http://a/x", status="302 Found"),
        answer("Refresh: 1; url=http://bc", status="200 OK"),
        answer("Location: http://@ORIGIN@/x", status="302 Found"),
    ],
)
proxy(
    "redirect",
    "off",
    "http://@ORIGIN@ /o",
    answer("Location: http://@ORIGIN@/x", status="302 Found"),
)
proxy("cookie_domain", "a b", "off", answer("Set-Cookie: x=1; Domain=a"))
proxy(
    "cookie_domain",
    "a b; proxy_cookie_domain ~^c(.)$ d$1;",
    "c $host",
    [
        answer("Set-Cookie: x=1; Domain=a"),
        answer("Set-Cookie: x=1; Domain=c; path=/", "Set-Cookie: y=1; Domain=cx"),
    ],
)
proxy("cookie_path", "/a/ /b/", "off", answer("Set-Cookie: x=1; Path=/a/c"))
proxy(
    "cookie_path",
    "/a/ /b/",
    "/c/ $uri",
    [answer("Set-Cookie: x=1; Path=/a/c"), answer("Set-Cookie: x=1; Path=/c/c")],
)
proxy("cookie_flags", "x secure", "off", answer("Set-Cookie: x=1"))
proxy(
    "cookie_flags",
    "~ httponly samesite=lax",
    "$http_c samesite=none nosecure",
    answer("Set-Cookie: x=1; Secure", more=" | C: x"),
)
proxy(
    "pass_trailers",
    "on",
    "off",
    raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\na\n0\nX-T: 1\n\n"),
)
proxy(
    "buffers",
    "2 4k; proxy_busy_buffers_size 4k;",
    "8 8k; proxy_busy_buffers_size 16k;",
    answer(body="x" * 30_000),
)
proxy("buffering", "off", "on", answer(body="x" * 30_000))
proxy("max_temp_file_size", "0", "8k", answer(body="x" * 30_000))
proxy("temp_file_write_size", "8k", "16k", answer(body="x" * 30_000))
proxy("ignore_client_abort", "on", "off", "GET /")
proxy("socket_keepalive", "on", "off", "GET /")
proxy("send_lowat", "0", "0", post("/", "x"))
proxy("headers_hash_max_size", "1024", "512", "GET / | X: y")
proxy("headers_hash_bucket_size", "128", "64", "GET / | X: y")

CACHE = (
    "proxy_cache_path @LOGS@/cache keys_zone=a:1m; "
    "proxy_cache_path @LOGS@/cache-b keys_zone=b:1m; "
    "add_header X-Cache $upstream_cache_status always;"
)
ON = "proxy_cache a; proxy_cache_valid any 1m; proxy_cache_key $host$request_uri;"
SEEN = ["GET /x", "GET /x"]


def numbered(cases: Sequence[str | tuple[str, Request]]) -> list[Single]:
    """Cases that are told apart by where they stand."""
    pairs = [case if isinstance(case, tuple) else (case, case) for case in cases]
    return [(f"{at} {label}", case) for at, (label, case) in enumerate(pairs)]


def cached(
    name: str,
    x: str,
    y: str,
    cases: Sequence[str | tuple[str, Request]],
    more: str = ON,
    **options: Any,
) -> None:
    """Compares `proxy_NAME` with zones."""
    proxy(name, x, y, numbered(cases), more=CACHE + more, **options)


KEPT = "proxy_cache_valid any 1m; proxy_cache_key $host$request_uri;"
cached("cache", "a", "off", SEEN, KEPT)
cached("cache", "off", "$http_z", ["GET /x | Z: b", "GET /x | Z: b"], KEPT)
cached(
    "cache_key",
    "$host$request_uri; proxy_cache a;",
    "$host$uri",
    ["GET /x?1", "GET /x?2", "GET /x?1"],
    "proxy_cache_valid any 1m;",
)
cached(
    "cache_valid",
    "200 1m; proxy_cache_valid 404 0;",
    "404 1m",
    [answer(), answer(), answer(status="404 No"), answer(status="404 No")],
    "proxy_cache a; proxy_cache_key $host$request_uri;",
)
cached(
    "cache_methods",
    "GET HEAD POST",
    "HEAD",
    [post("/x", "b"), post("/x", "b"), "HEAD /y", "HEAD /y"],
)
cached("cache_min_uses", "2", "1", SEEN + SEEN)
cached(
    "cache_bypass",
    "$http_b",
    "$arg_b",
    ["GET /x?b=1 | B: 1", "GET /x?b=1", "GET /x?b=1 | B: 1", "GET /x?b=1"],
)
cached(
    "no_cache",
    "$http_n",
    "$arg_n",
    ["GET /x?n=1 | N: 1", "GET /x?n=1", "GET /x?n=1 | N: 1", "GET /x?n=1"],
)
cached("cache_lock", "on", "off", SEEN)
cached("cache_lock_age", "1s; proxy_cache_lock on;", "9s", SEEN)
cached("cache_lock_timeout", "1s; proxy_cache_lock on;", "9s", SEEN)
cached("cache_use_stale", "error http_503", "off", SEEN)
cached("cache_background_update", "on; proxy_cache_use_stale updating;", "off", SEEN)
cached("cache_revalidate", "on", "off", SEEN)
cached(
    "cache_max_range_offset",
    "2",
    "100",
    ["GET /x | Range: bytes=1-3", "GET /y | Range: bytes=5-6", "GET /y | Range: bytes=5-6"],
)
cached(
    "cache_convert_head",
    "off; proxy_cache_key $host$request_method$request_uri;",
    "on",
    ["HEAD /x", "HEAD /x", "GET /x"],
    "proxy_cache a; proxy_cache_valid any 1m;",
)

fastcgi("buffer_size", "1k", "8k", script("say.php", "X-Long: " + "x" * 2000), errors=False)
fastcgi("read_timeout", "150ms", "5s", script("slow.php", ms=700), "fastcgi_pass @PHPC@;")
fastcgi("send_timeout", "150ms", "5s", script("say.php"))
fastcgi("connect_timeout", "150ms", "5s", script("say.php"))
TRIED = "add_header X-Tried $upstream_status always;"
fastcgi(
    "next_upstream",
    "off",
    "error",
    script("say.php"),
    "fastcgi_pass first_dead;",
    "upstream first_dead { server 127.0.0.1:1 max_fails=0; server @PHPA@ max_fails=0; }" + TRIED,
)
fastcgi(
    "next_upstream_tries",
    "1",
    "3",
    script("say.php"),
    "fastcgi_pass dead;",
    """
        upstream dead {
            server 127.0.0.1:1 max_fails=0; server 127.0.0.2:1 max_fails=0;
            server 127.0.0.3:1 max_fails=0;
        }
    """
    + TRIED,
)
fastcgi(
    "next_upstream_timeout",
    "1ms; fastcgi_next_upstream http_503;",
    "0",
    script("say.php", s=503),
    "fastcgi_pass both;",
    "upstream both { server @PHPA@ max_fails=0; server @PHPB@ backup; }",
)
fastcgi("request_buffering", "off", "on", post("/?f=echo.php", "body"))
fastcgi(
    "intercept_errors",
    "on; error_page 404 /errors/404.html; error_page 503 @named;",
    "off",
    [script("say.php", s=404), script("say.php", s=503)],
    help=HELP,
)
fastcgi("pass_request_headers", "off", "on", "GET /?f=env.php | X: y")
fastcgi("pass_request_body", "off", "on", post("/?f=echo.php", "body"))
fastcgi("force_ranges", "on", "off", script("length.php", more=" | Range: bytes=1-2"))
fastcgi("limit_rate", "1m", "$arg_r", script("say.php"))
fastcgi(
    "hide_header",
    "X-A; fastcgi_hide_header X-C;",
    "X-B",
    script("say.php", "X-A: 1", "X-B: 2", "X-C: 3"),
)
fastcgi(
    "pass_header",
    "Server; fastcgi_hide_header X-A;",
    "X-Accel-Expires",
    script("say.php", "X-A: 1", "Server: q", "X-Accel-Expires: 5"),
)
fastcgi(
    "ignore_headers",
    "X-Accel-Redirect",
    "X-Accel-Limit-Rate",
    script("say.php", "X-Accel-Redirect: /errors/404.html", "X-Accel-Limit-Rate: 100000"),
    help=HELP,
)
fastcgi("index", "env.php; fastcgi_param S $fastcgi_script_name;", "say.php", "GET /?f=env.php")
fastcgi(
    "split_path_info",
    (
        "^(.+\\.php)(.*)$; fastcgi_param S $fastcgi_script_name; "
        "fastcgi_param SCRIPT_FILENAME @DIR@/app/env.php; fastcgi_param P $fastcgi_path_info;"
    ),
    "^(/.)(.*)$",
    "GET /x.php/y",
)
fastcgi("keep_conn", "on", "off", "GET /?f=env.php")
fastcgi("catch_stderr", "line", "nothing", script("stderr.php"))
fastcgi(
    "param",
    "A a; fastcgi_param SCRIPT_FILENAME @DIR@/app/env.php; fastcgi_param IF $http_if if_not_empty;",
    "B b; fastcgi_param SCRIPT_FILENAME @DIR@/app/env.php;",
    ["GET /", "GET / | If: 1"],
)
fastcgi("socket_keepalive", "on", "off", script("say.php"))
fastcgi("ignore_client_abort", "on", "off", script("say.php"))
fastcgi("buffering", "off", "on", script("big.php", n=2000))
fastcgi(
    "buffers",
    "2 4k; fastcgi_busy_buffers_size 4k;",
    "8 8k; fastcgi_busy_buffers_size 16k;",
    script("big.php", n=2000),
)
fastcgi("max_temp_file_size", "0", "8k", script("big.php", n=2000))
fastcgi("temp_file_write_size", "8k", "16k", script("big.php", n=2000))
fastcgi("bind", "192.0.2.1", "127.0.0.9", script("say.php"), "fastcgi_pass @PHPC@;")
fastcgi(
    "bind",
    "127.0.0.9",
    "$arg_b",
    [script("say.php"), script("say.php", b="192.0.2.1")],
    "fastcgi_pass @PHPC@;",
)
site(
    "\nfastcgi_temp_path",
    "@LOGS@/outer",
    "@LOGS@/inner 1",
    script("big.php", n=2000),
    "fastcgi_pass @PHPA@;",
    more=PARAMS + "fastcgi_buffers 2 4k; fastcgi_busy_buffers_size 4k;",
)
fastcgi("send_lowat", "0", "0", post("/?f=echo.php", "x"))
ZONE = CACHE.replace("proxy_", "fastcgi_")
STAYS = ON.replace("proxy_", "fastcgi_")


def zoned(name: str, x: str, y: str, cases: Sequence[str], more: str = STAYS) -> None:
    """Compares `fastcgi_NAME` with zones."""
    fastcgi(name, x, y, numbered(cases), more=ZONE + more, lengths="any")


COUNT = [script("zone.php", n=1), script("zone.php", n=1)]
zoned("cache", "a", "off", COUNT, KEPT.replace("proxy_", "fastcgi_"))
zoned(
    "cache_key",
    "$host$request_uri; fastcgi_cache a;",
    "$host$uri",
    [script("zone.php", n=2), script("zone.php", n=3)],
    "fastcgi_cache_valid any 1m;",
)
zoned(
    "cache_valid",
    "200 1m",
    "404 1m",
    COUNT + [script("zone.php", n=4, s=404)] * 2,
    "fastcgi_cache a; fastcgi_cache_key $host$request_uri;",
)
zoned(
    "cache_methods",
    "GET HEAD POST",
    "HEAD",
    [f"POST /?f=zone.php&n=1{'':s} | Content-Length: 0"] * 2,
)
zoned("cache_min_uses", "2", "1", COUNT + COUNT)
zoned(
    "cache_bypass",
    "$http_b",
    "$arg_b",
    [script("zone.php", n=1, b=1, more=" | B: 1"), script("zone.php", n=1, b=1)] * 2,
)
zoned(
    "no_cache",
    "$http_n",
    "$arg_m",
    [script("zone.php", n=1, m=1, more=" | N: 1"), script("zone.php", n=1, m=1)] * 2,
)
zoned(
    "cache_max_range_offset",
    "2",
    "100",
    [script("zone.php", n=1, len=200, more=" | Range: bytes=5-6")] * 2,
)
for _name, _x, _y in (
    ("cache_lock", "on", "off"),
    ("cache_lock_age", "1s; fastcgi_cache_lock on;", "9s"),
    ("cache_lock_timeout", "1s; fastcgi_cache_lock on;", "9s"),
    ("cache_use_stale", "error http_503", "off"),
    ("cache_background_update", "on; fastcgi_cache_use_stale updating;", "off"),
    ("cache_revalidate", "on", "off"),
):
    zoned(_name, _x, _y, COUNT)
