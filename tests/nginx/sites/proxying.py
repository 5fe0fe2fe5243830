"""Owns: the comparison of what is passed to an HTTP origin, and of what becomes of its answers."""

from collections.abc import Sequence
from typing import Any

from .. import site
from ..site import Case
from .fastcgi import METHODS
from .php import BOUNDARY, MULTIPART, chunked, post

HEAD = """
    listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
    location = /next { return 204; }
"""


def http(name: str, conf: str, cases: Sequence[Case], **options: Any) -> None:
    """Adds a site whose configuration is all of an http block."""
    site.http(f"proxy {name}", conf, cases, **{"open": True, "errors": True, **options})


def server(name: str, conf: str, cases: Sequence[Case], before: str = "", **options: Any) -> None:
    """Adds a site with one server, and what stands before it."""
    http(name, f"{before}\nserver {{ {HEAD}\n{conf}\n}}", cases, **options)


def raw(
    text: str, request: str = "GET", more: str = "", kind: str = "raw", base: str = ""
) -> tuple[str, str]:
    """A request for these bytes."""
    data = text.replace("\n", "\r\n").encode("latin-1")
    return f"{request} {text[:70]!r} {more}", f"{request} {base}/{kind}/{data.hex()}{more}"


def answer(
    *fields: str, status: str = "200 OK", body: str = "body", **options: str
) -> tuple[str, str]:
    """A request for an answer with these fields and a length."""
    lines = "".join(field + "\n" for field in fields)
    return raw(f"HTTP/1.1 {status}\nContent-Length: {len(body)}\n{lines}\n{body}", **options)


PATHS = [
    "GET /",
    "GET /a",
    "GET /a/b?c=d",
    "GET /a%20b",
    "GET /a%2fb",
    "GET //a",
    "GET /a/../b",
    "GET /a//b/./c",
    "GET /?x",
    "GET /a?",
    "GET /a%3fb?c",
    "GET /%c3%bc",
    "GET /a%00",
    "GET /a+b",
    "GET /a%25b",
    'GET /a"b',
    "GET /a|b",
    "GET /a%23b#c",
    "GET http://other.test/abs?q",
    "GET http://other.test | Host: localhost",
    "GET /a;b=c",
    "GET /a&b",
    "GET /ü",
    "GET /a%7Eb",
    "GET /A%41",
]
server("as it is", "location / { proxy_pass http://@ORIGIN@; }", PATHS)
server("to the root", "location / { proxy_pass http://@ORIGIN@/; }", PATHS)
server("below a path", "location / { proxy_pass http://@ORIGIN@/base; }", PATHS)
server(
    "from a prefix",
    """
    location /x/ { proxy_pass http://@ORIGIN@/; } location /y/ { proxy_pass http://@ORIGIN@/y2/; }
    location /z { proxy_pass http://@ORIGIN@/z2; }
    location = /exact { proxy_pass http://@ORIGIN@/other?fixed=1; }
    location ^~ /n/ { proxy_pass http://@ORIGIN@; }
    location ~ ^/re/(.*) { proxy_pass http://@ORIGIN@; }
    location @named { proxy_pass http://@ORIGIN@; }
    location /t/ { try_files /none @named; } location /s { proxy_pass http://@ORIGIN@/s/; }
""",
    [
        f"GET {prefix}{path}"
        for prefix in ("/x/", "/y/", "/z", "/n/", "/re/", "/t/", "/s", "/s/")
        for path in (
            "",
            "a?b=c",
            "a%20b",
            "a%2fb",
            "../x/b",
            "a//b",
            "%2e%2e/n/a",
            "a%3fb?c",
            "%e4",
        )
    ]
    + ["GET /exact", "GET /exact?a=b", "GET /x", "GET /x?a"],
)
server(
    "rewritten",
    """
    location /b/ { rewrite ^/b/(.*)$ /changed/$1 break; proxy_pass http://@ORIGIN@/base/; }
    location /c/ { rewrite ^/c/(.*)$ /c/more/$1 break; proxy_pass http://@ORIGIN@/base/; }
    location /l/ { rewrite ^/l/(.*)$ /n/$1?added=1 last; }
    location /n/ { proxy_pass http://@ORIGIN@; }
    location /m/ { proxy_pass http://@ORIGIN@/base/; rewrite ^/m/old/(.*) /m/new/$1?; }
    location /a/ { set $args "x=y"; proxy_pass http://@ORIGIN@; }
    location /e/ { error_page 404 = /n/fallback; return 404; }
    location /i/ { if ($arg_go) { rewrite ^ /i/went?z break; } proxy_pass http://@ORIGIN@; }
    location /p/ { if ($arg_go) { proxy_pass http://@ORIGIN@; } return 200 stay; }
""",
    [
        f"GET /{where}/{path}"
        for where in "bclmaeip"
        for path in ("", "d%20e?f=g", "old/x?y", "h%2fi?go=1")
    ],
)
server(
    "variables",
    """
    location /a/ { set $to @ORIGIN@; proxy_pass http://$to; }
    location /b/ { set $to @ORIGIN@; proxy_pass http://$to/fixed; }
    location /c/ { proxy_pass http://@ORIGIN@$request_uri; }
    location /d/ { proxy_pass http://group$uri?x; }
    location /e/ { proxy_pass $arg_u; }
    location /f/ { proxy_pass http://$arg_u; }
    location /g/ { set $g group; proxy_pass http://$g; }
    location /h/ { proxy_pass http://@ORIGIN@$is_args$args; }
    location /v/ {
        proxy_pass http://@ORIGIN@;
        proxy_set_header X "$proxy_host|$proxy_port|$proxy_add_x_forwarded_for";
        add_header Y "$proxy_host|$proxy_port";
    }
""",
    [f"GET /{where}/{path}" for where in "abcdegh" for path in ("", "p%20q?r=s")]
    + [
        "GET /e/?u=ftp://a",
        "GET /e/?u=",
        "GET /e/?u=http://@ORIGIN@/x",
        "GET /f/?u=",
        "GET /f/?u=none.invalid",
        "GET /f/?u=127.0.0.1:x",
        "GET /f/?u=/x",
        "GET /v/",
        "GET /v/ | X-Forwarded-For: 1.2.3.4",
        "GET /v/ | X-Forwarded-For: 1.2.3.4 | X-Forwarded-For: 5.6.7.8",
    ],
    before="upstream group { server @ORIGIN@; }",
)
FIELDS = [
    "GET / | " + field
    for field in (
        "X: 1",
        "X: 1 | X: 2",
        "X:",
        "Cookie: a=1 | Cookie: b=2",
        "Connection: close",
        "Connection: keep-alive, x",
        "Keep-Alive: 5",
        "TE: trailers",
        "TE: gzip",
        "Upgrade: websocket | Connection: upgrade",
        "Expect: 100-continue",
        "Proxy-Connection: x",
        "Proxy: x",
        "Host: Other.Test:81",
        "A_B: 1",
        "Authorization: Basic YTpi",
        'If-None-Match: "x"',
        "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        "Range: bytes=0-1",
        'If-Range: "x"',
        "Accept-Encoding: gzip",
        "Content-Type: x",
        "Content-Length: 0",
        "Trailer: x",
        "Via: 1.1 x",
        "Forwarded: for=1",
        "X-Long: " + "x" * 3000,
    )
]
server(
    "fields",
    "location / { proxy_pass http://@ORIGIN@; }",
    FIELDS
    + METHODS
    + ["GET / HTTP/1.0", "GET / HTTP/1.0 | Host: x", "GET / HTTP/1.0 | Connection: keep-alive"],
)
server(
    "fields that are set",
    """
    proxy_set_header X-Outer outer;
    location /a { proxy_pass http://@ORIGIN@; }
    location /b {
        proxy_pass http://@ORIGIN@; proxy_set_header Host $host;
        proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header Connection "";
    }
    location /c {
        proxy_pass http://@ORIGIN@; proxy_set_header Host ""; proxy_set_header Cookie "";
        proxy_set_header X 1; proxy_set_header X 2; proxy_set_header x-lower $arg_none;
        proxy_set_header Accept-Encoding "";
    }
    location /d {
        proxy_pass http://@ORIGIN@; proxy_set_header Connection close;
        proxy_set_header Expect $http_expect; proxy_set_header Upgrade $http_upgrade;
        proxy_set_header TE trailers;
    }
    location /e {
        proxy_pass http://@ORIGIN@; proxy_pass_request_headers off; proxy_pass_request_body off;
        proxy_set_header Content-Length "";
    }
    location /f { proxy_pass http://@ORIGIN@; proxy_http_version 1.0; }
    location /g {
        proxy_pass http://@ORIGIN@; proxy_http_version 1.0; proxy_set_header Connection keep-alive;
    }
    location /h {
        proxy_pass http://@ORIGIN@; proxy_method POST; proxy_set_body "body of $uri";
    }
    location /i { proxy_pass http://@ORIGIN@; proxy_method $arg_m; }
    location /j { proxy_pass http://@ORIGIN@; proxy_set_body ""; }
    location /k {
        proxy_pass http://@ORIGIN@; proxy_set_header A "$arg_a"; proxy_set_header B " b ";
    }
""",
    [
        f"GET /{where} | Cookie: a=b | X: client | Host: asked | Accept-Encoding: gzip | Expect: x"
        for where in "abcdefghjk"
    ]
    + ["GET /i?m=PUT", "HEAD /i?m=GET", "GET /k?a=%0d%0aB:c", "HEAD /h"]
    + [post(f"/{where}", "sent") for where in "adefhijk"],
)
server(
    "bodies",
    """
        location / { proxy_pass http://@ORIGIN@; }
        location /s { proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
        location /o {
            proxy_pass http://@ORIGIN@; proxy_request_buffering off; proxy_http_version 1.0;
        }
        location /f/ {
            proxy_request_buffering off; proxy_pass http://127.0.0.1:1;
            error_page 502 = @second;
        }
        location /fs/ {
            proxy_request_buffering off; proxy_pass http://127.0.0.1:1;
            error_page 502 = @streamed;
        }
        location @second { proxy_pass http://@ORIGIN@; }
        location @streamed { proxy_pass http://@ORIGIN@; proxy_request_buffering off; }
    """,
    [
        post(path, body, *fields)
        for path in ("/", "/s", "/o")
        for body, *fields in (("",), ("a=1",), ("x" * 20_000,), (MULTIPART, BOUNDARY))
    ]
    # nginx waits for ever for what comes behind the first piece.
    + [
        post(path, body, *fields)
        for path in ("/f/", "/fs/")
        for body, *fields in (("",), ("a=1",), (MULTIPART, BOUNDARY))
    ]
    + [chunked(path, b"one", b"two") for path in ("/", "/s", "/o")]
    + [
        chunked("/s"),
        chunked("/", *[b"z" * 10_000] * 10),
        post("/", b"y" * 300_000, label="body of 300000"),
    ],
)
ANSWERS = [
    answer("Content-Type: text/html"),
    answer("X: 1", "X: 2", "x:", "A_B: c"),
    answer("Connection: close", "Keep-Alive: 5", "Proxy-Connection: x", "Upgrade: x", "Trailer: x"),
    answer("Date: then", "Server: me", "X-Pad: x", "X-Powered-By: y"),
    answer("Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT", 'ETag: "x"', "Accept-Ranges: bytes"),
    answer("Set-Cookie: a=1", "Set-Cookie: b=2", "Vary: x", "Cache-Control: private", "Expires: 0"),
    answer("Content-Encoding: gzip", body="not gzip"),
    answer("Content-Type: text/html; charset=utf-8"),
    answer("Status: 404"),
    answer("X-Accel-Expires: 0"),
    answer("Content-Range: bytes 0-3/9", status="206 Part", body="0123"),
    *[
        answer(status=status)
        for status in (
            "201 Created",
            "203 X",
            "301 Moved",
            "400 Bad",
            "401 Who",
            "404 Gone",
            "405 No",
            "418 Teapot",
            "429 Slow",
            "500 Broken",
            "502 Bad",
            "503 Busy",
            "504 Late",
            "599 Odd",
            "200",
            "200 ",
        )
    ],
    answer("Location: /there", status="302 Found"),
    answer("Location: http://@ORIGIN@/there", status="302 Found"),
    answer("WWW-Authenticate: Basic realm=x", status="401 Who"),
    answer("Retry-After: 5", status="503 Busy"),
    raw("HTTP/1.1 204 None\nX: 1\n\n"),
    raw('HTTP/1.1 304 Not Modified\nETag: "x"\n\n'),
    raw("HTTP/1.1 204 None\nContent-Length: 5\n\nhello"),
    raw("HTTP/1.1 200 OK\n\nuntil the end"),
    raw("HTTP/1.0 200 OK\nX: old\n\nuntil the end"),
    raw("HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 2\n\nok"),
    raw(
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n6;ext=1\n world\n0\n"
        "X-Trailer: 1\n\n"
    ),
    raw("HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n0\n\n"),
    raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhel"),
    raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nxyz\n"),
    raw("HTTP/1.1 200 OK\nTransfer-Encoding: gzip\n\nx"),
    raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 5\n\n5\nhello\n0\n\n"),
    raw("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 5\n\nhello"),
    raw("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\nhello"),
    raw("HTTP/1.1 200 OK\nContent-Length: x\n\nhello"),
    raw("HTTP/1.1 200 OK\nContent-Length: -1\n\nhello"),
    raw("HTTP/1.1 200 OK\nContent-Length: 10\n\nshort"),
    raw("HTTP/1.1 200 OK\nContent-Length: 2\n\nlong"),
    raw("HTTP/1.1 200 OK\nX: 1"),
    raw("HTTP/1.1 200 OK\n"),
    raw(""),
    raw("HTTP/1.1 200 OK\nno colon\n\nx"),
    raw("HTTP/1.1 200 OK\n: x\n\nx"),
    raw("HTTP/1.1 200 OK\nA B: x\n\nx"),
    raw("HTTP/1.1 200 OK\nA: x\x00y\n\nx"),
    raw("HTTP/1.1 200 OK\nA : x\n\nx"),
    raw("HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    raw("HTTP/1.1 103 Early\nLink: </a>\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    raw("HTTP/1.1 102 Processing\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    raw("HTTP/1.1 101 Switching\nUpgrade: x\nConnection: upgrade\n\nraw"),
    raw("no status line\n\nx"),
    raw("HTTP/1.1 20 OK\n\nx"),
    raw("HTTP/1.1 2000 OK\n\nx"),
    raw("HTTP/2.0 200 OK\nContent-Length: 1\n\nx"),
    raw("HTTP/1.1  200 OK\nContent-Length: 1\n\nx"),
    raw("HTTP/1.1 099 OK\nContent-Length: 1\n\nx"),
    raw("http/1.1 200 OK\n\nx"),
    raw("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", kind="keep"),
    raw("HTTP/1.1 200 OK\nX-Long: " + "x" * 5000 + "\n\nx"),
    raw("HTTP/1.1 200 OK\n" + "".join(f"X-{n}: {n}\n" for n in range(60)) + "\nx"),
]
server(
    "answers",
    "location / { proxy_pass http://@ORIGIN@; }",
    ANSWERS
    + [
        raw("HTTP/1.1 200 OK\nContent-Length: 9\nX: 1\n\n", request="HEAD"),
        raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", request="HEAD"),
        raw("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", request="HEAD"),
    ],
)
server(
    "answers unbuffered",
    "location / { proxy_pass http://@ORIGIN@; proxy_buffering off; }",
    # What nginx was doing when an answer ended too early depends on what it had read by then.
    [case for case in ANSWERS[:45] if "5\\nhel'" not in case[0]],
)
REDIRECTS = [
    "/there",
    "there",
    "http://@ORIGIN@/",
    "http://@ORIGIN@/base/x?y",
    "http://@ORIGIN@",
    "https://@ORIGIN@/base/",
    "http://other/",
    "http://other/a/b",
    "",
    "//x",
    "http://localhost:1/a",
]
server(
    "redirects",
    """
    location /d/ { proxy_pass http://@ORIGIN@/base/; }
    location /n/ { proxy_pass http://@ORIGIN@; }
    location /o/ { proxy_pass http://@ORIGIN@; proxy_redirect off; }
    location /t/ {
        proxy_pass http://@ORIGIN@; proxy_redirect http://other/ /other/; proxy_redirect default;
        proxy_redirect ~^http://localhost:(\\d+)/(.*)$ http://$host:$1/re/$2;
        proxy_redirect / /root/;
    }
    location /v/ {
        set $to @ORIGIN@; proxy_pass http://$to; proxy_redirect http://$to/ $scheme://$host/v/;
        proxy_redirect ~*^(HTTP)S://(?<rest>.*) $1://$rest;
    }
    location /a/ {
        proxy_pass http://@ORIGIN@/base/; absolute_redirect off;
        proxy_redirect http://other/ /other/;
    }
""",
    [
        answer(f"{name}: {value}", status="302 Found", base=f"/{where}")
        for where in "dnotva"
        for name, value in [("Location", redirect) for redirect in REDIRECTS]
        + [("Refresh", "5; url=http://@ORIGIN@/base/x"), ("Refresh", "5; URL=/x"), ("Refresh", "5")]
    ],
)
COOKIES = [
    "a=1",
    "a=1; Path=/two/x",
    "a=1; path=/one",
    "a=1; Domain=origin.test",
    "a=1; domain=.Origin.test; Path=/two/",
    "b=2; Secure; HttpOnly; SameSite=Lax; Path=/two/",
    "session=x; Max-Age=5",
    "a=1;path=/two/;domain=origin.test;secure",
    "a",
    "=",
    "a=1; Path",
    'a="x; y"; Path=/two/',
    "a=1; Domain=sub.origin.test",
]
server(
    "cookies",
    """
    location /d/ {
        proxy_pass http://@ORIGIN@; proxy_cookie_domain origin.test example.org;
        proxy_cookie_path /two/ /;
    }
    location /r/ {
        proxy_pass http://@ORIGIN@; proxy_cookie_domain ~\\.?([a-z]+)\\.test$ $1.example;
        proxy_cookie_path ~*^/TWO/(.*) /three/$1; proxy_cookie_path /one $uri;
    }
    location /f/ {
        proxy_pass http://@ORIGIN@; proxy_cookie_flags a secure httponly samesite=strict;
        proxy_cookie_flags ~^s nosamesite secure;
    }
    location /g/ {
        proxy_pass http://@ORIGIN@; proxy_cookie_flags ~ nosecure nohttponly nosamesite;
    }
""",
    [answer(f"Set-Cookie: {cookie}", base=f"/{where}") for where in "drfg" for cookie in COOKIES],
)
server(
    "bound",
    """
    proxy_bind 127.0.0.9; add_header X-Attempt "$upstream_addr|$upstream_status" always;
    location /in/ { proxy_pass http://@ORIGIN@; }
    location /off/ { proxy_bind off; proxy_pass http://@ORIGIN@; }
    location /var/ { proxy_bind $arg_b; proxy_pass http://@ORIGIN@; }
    location /bad/ {
        proxy_bind 192.0.2.1; proxy_pass http://@ORIGIN@; error_page 500 502 /hello.txt;
    }
    location /unix/ { proxy_pass http://unix:/nowhere; }
    location /nest/ {
        proxy_bind "127.0.0.$arg_b";
        location /nest/in/ { proxy_pass http://@ORIGIN@; }
    }
""",
    ["GET /in/", "GET /off/", "GET /unix/", "GET /bad/", "GET /nest/in/?b=5", "GET /nest/in/?b=x"]
    + [
        f"GET /var/?b={b}"
        for b in (
            "",
            "127.0.0.7",
            "bad",
            "127.0.0.7:0",
            "192.0.2.1",
            "off",
            "::1",
            "[::1]",
            "[::1]:5",
            "unix:/x",
            "127.0.0.7:99999",
            "1.2.3",
        )
    ],
)
server(
    "hidden and passed",
    """
        location /a/ {
            proxy_pass http://@ORIGIN@; proxy_hide_header X-Powered-By;
            proxy_hide_header Set-Cookie; proxy_pass_header Server; proxy_pass_header Date;
            proxy_pass_header X-Accel-Expires;
        }
        location /b/ {
            proxy_pass http://@ORIGIN@; proxy_intercept_errors on; error_page 404 /hello.txt;
            error_page 503 =200 @other; error_page 401 /hello.txt;
        }
        location /c/ {
            proxy_pass http://@ORIGIN@; error_page 502 504 =200 /hello.txt;
            add_header X-Status "$upstream_status|$status|$upstream_http_x|$upstream_cookie_a|$upstream_addr" always;
        }
        location @other { return 200 other; }
        location /closed/ { deny all; error_page 403 /types/hello.txt; }
        location /locked/ { deny all; error_page 403 @other; }
        location /own/ { deny all; }
        location /types/ { types { text/first txt; } alias @DIR@/www/; }
        location /int/ { internal; alias @DIR@/www/; }
        location /i/ {
            proxy_pass http://@ORIGIN@;
            proxy_ignore_headers X-Accel-Redirect X-Accel-Charset X-Accel-Limit-Rate;
        }
        location /z/ {
            proxy_pass http://@ORIGIN@; gzip on; gzip_types text/plain; gzip_min_length 1;
            gzip_proxied any;
        }
    """,  # noqa: E501
    [
        answer(
            "X-Powered-By: x",
            "Set-Cookie: a=1",
            "Server: me",
            "Date: then",
            "X-Accel-Expires: 5",
            "X: y",
            base=f"/{where}",
        )
        for where in "abci"
    ]
    + [
        answer(*fields, base="/a")
        for fields in (["X: y"], ["Server:"], ["Date: then"], ["Server: me"])
    ]
    + [
        answer(status=status, base=f"/{where}")
        for where in "bc"
        for status in ("404 Gone", "503 Busy", "401 Who", "502 Bad", "200 OK")
    ]
    + [
        answer(
            "X-Accel-Redirect: /int/hello.txt", "X: y", "Content-Type: text/odd", base=f"/{where}"
        )
        for where in "ai"
    ]
    + [
        answer(f"X-Accel-Redirect: /{where}/x", "Content-Type: text/odd", status=status, base="/a")
        for where in ("closed", "locked", "own", "int", "types")
        for status in ("200 OK", "403 No")
    ]
    + [
        raw("", base="/c"),
        raw("bad", base="/c"),
        answer(
            "Content-Type: text/plain",
            body="compress me " * 20,
            base="/z",
            more=" | Accept-Encoding: gzip",
        ),
        answer("Content-Type: text/plain", 'ETag: "x"', body="compress me " * 20, base="/z"),
    ],
    lengths="coded",
)
DEAD = "127.0.0.1:1"
http(
    "groups",
    """
    upstream first_dead { server 127.0.0.1:1; server @ORIGIN@; }
    upstream all_dead { server 127.0.0.1:1; server 127.0.0.2:1; }
    upstream backup { server 127.0.0.1:1; server @ORIGIN@ backup; }
    upstream kept { server @ORIGIN@; keepalive 2; }
    upstream down { server @ORIGIN@ down; }
    server { %s
    add_header X-Tried "$upstream_addr|$upstream_status" always;
    location /f/ { proxy_pass http://first_dead; }
    location /a/ { proxy_pass http://all_dead; }
    location /b/ { proxy_pass http://backup/; }
    location /k/ { proxy_pass http://kept/; }
    location /d/ { proxy_pass http://down; }
    location /one/ { proxy_pass http://127.0.0.1:1/x/; }
    location /u/ { proxy_pass http://unix:@DIR@/none.sock:/u2/; }
    location /n/ { proxy_pass http://first_dead; proxy_next_upstream off; }
    location /h/ { proxy_pass http://kept; proxy_next_upstream http_503 http_404 error; }
    location /t/ { proxy_pass http://kept/; proxy_read_timeout 100ms; }
    location /FIRST/ { proxy_pass http://First_Dead; }
    }"""
    % HEAD,
    [
        "GET /f/x",
        "GET /f/y",
        "GET /a/",
        "GET /b/x",
        "GET /k/1",
        "GET /k/2",
        "GET /d/",
        "GET /one/a",
        "GET /u/a",
        "GET /t/slow/400",
        "GET /FIRST/z",
        answer(status="503 Busy", base="/h"),
        answer(status="404 Gone", base="/h"),
        raw("", base="/h"),
        post("/f/p", "body"),
    ],
)
http(
    "cache",
    """
    proxy_cache_path @DIR@/temp-@P0@ keys_zone=pages:1m; proxy_cache pages;
    proxy_cache_valid 200 1m; proxy_cache_valid 404 1s;
    server { %s add_header X-Cache $upstream_cache_status always;
    location / { proxy_pass http://@ORIGIN@/; }
    location /r/ { proxy_pass http://@ORIGIN@/; proxy_cache_revalidate on; }
    location /b/ {
        proxy_pass http://@ORIGIN@/; proxy_cache_bypass $arg_b; proxy_no_cache $arg_n;
    }
    location /m/ { proxy_pass http://@ORIGIN@/; proxy_cache_min_uses 2; }
    location /h/ {
        proxy_pass http://@ORIGIN@/; proxy_cache_convert_head off;
        proxy_cache_key "$request_method$request_uri";
    }
    location /k/ { proxy_pass http://@ORIGIN@/; proxy_cache_key $uri; }
    location /o/ { proxy_pass http://@ORIGIN@/; proxy_cache off; }
    location /i/ {
        proxy_pass http://@ORIGIN@/; proxy_ignore_headers Cache-Control Set-Cookie Expires Vary;
    }
    }"""
    % HEAD,
    [
        "GET /x",
        "GET /x",
        "GET /x | Range: bytes=0-3",
        'GET /x | If-None-Match: "x"',
        "HEAD /x",
        "HEAD /y",
        "GET /y",
        "GET /x?a",
        "POST /x | Content-Length: 0",
        "GET /b/x",
        "GET /b/x?b=1",
        "GET /b/x?n=1",
        "GET /b/x?n=1",
        "GET /m/x",
        "GET /m/x",
        "GET /m/x",
        "HEAD /h/x",
        "GET /h/x",
        "HEAD /h/x",
        "GET /k/x?1",
        "GET /k/x?2",
        "GET /o/x",
        "GET /o/x",
    ]
    + [
        case
        for fields in (
            ["Cache-Control: no-store"],
            ["Cache-Control: max-age=60"],
            ["Set-Cookie: a=b"],
            ["Expires: Thu, 01 Jan 1970 00:00:00 GMT"],
            ["Vary: X"],
            ["Vary: *"],
            ["X-Accel-Expires: 10"],
            ['ETag: "e"', "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"],
            ["Transfer-Encoding: x"],
        )
        for base in ("", "/i")
        for case in [answer(*fields, base=base)] * 2
    ],
)
TRAILERS = [
    "X-T: one\nX-T: two\nX-Hide: x\nServer: q\nX-Accel-Expires: 4\nX-Powered-By: me\n",
    "X-Empty:\n",
    'Set-Cookie: a=b\nETag: "x"\n',
    "",
]
server(
    "trailers",
    """
    proxy_pass_trailers on; proxy_hide_header X-Hide;
    add_trailer X-V "$upstream_trailer_x_t|$sent_trailer_x_t|$upstream_trailer_x_hide";
    location / { proxy_pass http://@ORIGIN@; }
    location /off { proxy_pass http://@ORIGIN@; proxy_pass_trailers off; }
    location /only { proxy_pass http://@ORIGIN@; add_trailer_inherit off; }
    location /n { proxy_pass http://@ORIGIN@; proxy_buffering off; }
    location /c { proxy_pass http://@ORIGIN@; chunked_transfer_encoding off; }
    location /e {
        proxy_pass http://@ORIGIN@; proxy_intercept_errors on; error_page 404 =200 /next;
    }
""",
    [
        raw(
            (
                f"HTTP/1.1 {status}\nTransfer-Encoding: chunked\nTrailer: X-T\n\n4\nbody\n0\n"
                f"{trailers}\n"
            ),
            base=base,
            more=more,
        )
        for base, more in (
            ("", ""),
            ("/off", ""),
            ("/only", ""),
            ("/n", ""),
            ("/c", ""),
            ("/e", ""),
            ("", " | TE: trailers"),
        )
        for trailers in TRAILERS
        for status in ("200 OK", "404 Gone")
    ]
    + [answer("Trailer: x", base=base) for base in ("", "/only")]
    + [
        raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", request="HEAD"),
        raw("HTTP/1.1 200 OK\n\nuntil the end"),
        raw("HTTP/1.1 204 None\n\n", base="/only"),
    ],
    lengths="coded",
)
