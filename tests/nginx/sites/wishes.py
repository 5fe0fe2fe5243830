"""Owns: the comparison of what origins wish for their answers, and of where they are asked."""

from ..site import Case
from .proxying import answer, raw, server

HINT = "HTTP/1.1 103 Early Hints\n"
LAST = "HTTP/1.1 200 OK\nContent-Length: 4\n\nbody"
LINK = HINT + "Link: </a>; rel=preload\n\n"
FIELDS = (
    HINT + "Link: </a>; rel=preload\nX-Foo: 1\nX-Foo: 2\nX-Hidden: 1\nServer: s\nSet-Cookie: a=1\n"
    "Date: x\nX-Accel-Expires: 5\nContent-Type: text/a\nLast-Modified: x\nLocation: /a\n\n"
)
server(
    "early hints",
    """
    location / { proxy_pass http://@ORIGIN@; }
    early_hints $http_e $arg_e;
    location /off/ { early_hints 0; proxy_pass http://@ORIGIN@; }
    location /on/ { early_hints 0; early_hints 1; proxy_hide_header X-Hidden;
        proxy_pass http://@ORIGIN@; }
    location /small/ { early_hints on; proxy_buffer_size 200; proxy_buffers 4 200;
        proxy_busy_buffers_size 200; proxy_pass http://@ORIGIN@; }
    location /within/ { early_hints on; ssi on; ssi_types *; proxy_pass http://@ORIGIN@; }
""",
    [
        raw(text, base=base, more=more)
        for base in ("", "/off", "/on", "/small")
        for more in ("", " | E: 0", " | E: 1")
        for text in (LINK + LAST, FIELDS + LINK + LAST, LINK * 7 + LAST)
    ]
    + [
        raw(LINK + LAST, base="/on", more=" HTTP/1.0"),
        raw(LINK, base="/on"),
        raw(LINK, base="/off"),
        raw(LINK + "HTTP/1.1 304 Not Modified\n\n", base="/on"),
        raw(LINK + LAST, base="/on", request="HEAD"),
    ],
    errors="info",
)
server(
    "left behind by a break",
    """
    rewrite ^/top/(.*) /b/$1; rewrite ^/flag/(.*) /b/$1 break;
    location /b/ { rewrite ^ /other; break; proxy_pass http://@ORIGIN@/zzz/; }
    location /c/ { break; rewrite ^ /other; proxy_pass http://@ORIGIN@/zzz/; }
    location /d/ { if ($arg_a) { rewrite ^ /other; break; } proxy_pass http://@ORIGIN@/zzz/; }
    location /e/ { rewrite ^/e/(.*) /e/e/$1; if ($arg_a) { break; } proxy_pass http://@ORIGIN@/z/; }
    location /g/ { rewrite ^/g/(.*) /dir/$1; break; root @DIR@/www; }
    location /h/ { rewrite ^/none /x; break; proxy_pass http://@ORIGIN@/zzz/; }
    location /i/ { set $args z; break; proxy_pass http://@ORIGIN@/zzz/; }
    location /j/ { error_page 418 = /k/x; rewrite ^ /other; break; return 418; }
    location /k/ { proxy_pass http://@ORIGIN@/zzz/; }
    location /l/ { if (-f /none) { break; } rewrite ^ /other; break;
        proxy_pass http://@ORIGIN@/zzz/; }
    location /m/ { error_page 404 = /b/m; rewrite ^ /other; break; proxy_intercept_errors on;
        proxy_pass http://@ORIGIN@/raw/485454502f312e3120343034204e6f0d0a0d0a; }
""",
    [
        f"GET /{where}/{path}"
        for where in ("top", "flag", *"bcdeghijklm")
        for path in ("", "a%20b?c=d", "file.txt", "x?a=1", "a%2fb")
    ],
)
# nginx tells the error twice, the second time while it logs.
server(
    "left behind by a break in an alias",
    "location /f/ { rewrite ^/f/(.*) /dir/$1; break; alias @DIR@/www/; }",
    ["GET /f/", "GET /f/file.txt"],
    errors=False,
)
PACES: list[Case] = [
    answer(f"X-Accel-Redirect: {to}", *more, base=base)
    for base in ("", "/set", "/ignored")
    for to in ("/plain", "/limited", "/assigned", "@named", "/again")
    for more in (
        [],
        ["X-Accel-Limit-Rate: 20000"],
        ["X-Accel-Limit-Rate: 0"],
        ["X-Accel-Limit-Rate: 20k"],
        ["X-Accel-Limit-Rate: x"],
        ["X-Accel-Limit-Rate: "],
    )
]
server(
    "paces that origins set",
    """
    add_header X-Rate $limit_rate always; error_page 403 /limited;
    location / { proxy_pass http://@ORIGIN@; }
    location /set/ { set $limit_rate 5000; proxy_pass http://@ORIGIN@; }
    location /ignored/ { proxy_ignore_headers X-Accel-Limit-Rate; proxy_pass http://@ORIGIN@; }
    location /plain { return 200 "$limit_rate"; }
    location /limited { limit_rate 1000; return 200 "$limit_rate"; }
    location /assigned { set $limit_rate 2000; return 200 "$limit_rate"; }
    location @named { return 200 "$limit_rate"; }
    location /again { return 403; }
    location /kept/ { proxy_pass http://@ORIGIN@/; proxy_cache one; proxy_cache_valid 1m; }
    location /errors/ { proxy_intercept_errors on; error_page 404 /limited;
        proxy_pass http://@ORIGIN@; }
""",
    [
        *PACES,
        answer("X-Accel-Limit-Rate: 20000", status="404 No", base="/errors"),
        answer("X-Accel-Limit-Rate: 20000"),
        *[answer("X-Accel-Limit-Rate: 30000", "X-K: 1", base="/kept")] * 3,
        answer("X-Accel-Limit-Rate: 20000", "X-Accel-Limit-Rate: 30000"),
    ],
    before="proxy_cache_path @LOGS@/paces keys_zone=one:1m; proxy_cache_key $request_uri;",
)
SINGLE = [
    "Content-Type",
    "Date",
    "Last-Modified",
    "ETag",
    "Server",
    "Location",
    "Refresh",
    "Expires",
    "X-Accel-Expires",
    "X-Accel-Redirect",
    "X-Accel-Limit-Rate",
]
OFTEN = [
    "X-A",
    "Vary",
    "Link",
    "Cache-Control",
    "Set-Cookie",
    "WWW-Authenticate",
    "Content-Disposition",
    "Upgrade",
    "Accept-Ranges",
    "Content-Encoding",
    "X-Accel-Charset",
    "X-Accel-Buffering",
    "Content-Language",
]
server(
    "fields that come again",
    """
    location / { proxy_pass http://@ORIGIN@; proxy_pass_header Date; proxy_pass_header Server; }
    location /to { return 200 to; }
    add_header X-Rate $limit_rate;
""",
    [
        answer(f"{name}: {value}", "X-Between: 1", f"{name}: {other}")
        for name in SINGLE + OFTEN
        for value, other in (("/to", "/other"), ("5", "5"), ("", "yes"))
        if (name, value) != ("X-Accel-Redirect", "5")
    ]
    + [
        answer(*fields)
        for fields in (
            ["Expires: 0", "Expires: -1", "Expires: 1"],
            ["Content-Length: 4"],
            ["Transfer-Encoding: chunked"],
        )
    ]
    + [
        raw("HTTP/1.1 200 OK\nTransfer-Encoding: " + coding + "\n\n0\n\n")
        for coding in ("gzip", "chunked, chunked", "chunked\nTransfer-Encoding: chunked", "Chunked")
    ],
)
PROTOCOLS = ("200 OK", "426 Upgrade Required", "404 No")
server(
    "protocols that origins offer",
    """
    location / { proxy_pass http://@ORIGIN@; }
    location /hidden/ { proxy_hide_header Upgrade; proxy_pass http://@ORIGIN@; }
    location /kept/ { proxy_pass http://@ORIGIN@/; proxy_cache one; proxy_cache_valid any 1m; }
    location /own/ { error_page 426 /page; proxy_intercept_errors on; proxy_pass http://@ORIGIN@; }
    location /page { return 200 own; }
""",
    [
        answer("Upgrade: h2c, x", *more, status=status, base=base)
        for base in ("", "/hidden", "/kept", "/kept", "/own")
        for status in PROTOCOLS
        for more in ([], ["Connection: upgrade"], ["Connection: close"])
    ],
    before="proxy_cache_path @LOGS@/protocols keys_zone=one:1m; proxy_cache_key $request_uri;",
)
server(
    "charsets of redirects",
    """
    charset utf-8; charset_types text/html text/x;
    location / { proxy_pass http://@ORIGIN@; }
    location /off/ { charset off; proxy_pass http://@ORIGIN@; }
    location /over/ { override_charset on; proxy_pass http://@ORIGIN@; }
""",
    [
        answer(f"Content-Type: {kind}", *more, status=status, base=base)
        for base in ("", "/off", "/over")
        for status in ("200 OK", "301 A", "302 A", "303 A", "307 A", "308 A", "404 No")
        for kind in ("text/html", "text/html; charset=koi8-r", "image/x", "text/x; a=b")
        for more in ([], ["X-Accel-Charset: utf-8"])
    ],
    errors=False,
)
