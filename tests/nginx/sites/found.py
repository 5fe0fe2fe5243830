"""Owns: situations that random configurations and requests found, each in its smallest form."""

from ..site import http, server


def ranged(status: str, said: str) -> bytes:
    """An answer that says this of ranges."""
    head = f"HTTP/1.1 {status}\r\nAccept-Ranges: {said}\r\nContent-Length: 5"
    return f"{head}\r\n\r\n01234".encode()


http(
    "found: whose rules a request line has",
    """
    server {
        listen 127.0.0.1:@P0@; server_name a; root @DIR@/www; error_page 400 404 /errors/404.html;
        server_tokens off; add_header X a always;
        add_header Last-Modified "$sent_http_allow-" always;
        location /v { return 200 "a $uri"; }
    }
    server {
        listen 127.0.0.1:@P0@; server_name b; merge_slashes off;
        location / { return 200 "b $uri"; }
    }
    server {
        listen 127.0.0.1:@P2@; server_name c; merge_slashes off;
        location / { return 200 "c $uri"; }
    }
    server {
        listen 127.0.0.1:@P2@ default_server; server_name d; server_tokens off;
        location / { return 200 "d $uri"; }
    }
    server { listen 127.0.0.1:@P0@; add_header X nameless always; }
    server {
        listen 127.0.0.1:@P2@; server_name e; error_page 400 /none; merge_slashes off;
        location / { return 200 "e $uri"; }
    }
""",
    [
        f"{line} | Host: {host}"
        for host in ("a", "b", "c", "d", "e", "a..b")
        for line in (
            "GET /%",
            "GET /%4",
            "GET /%00",
            "GET //v//w",
            "GET /v//../w",
            "TRACE /%",
            "TRACE /v",
            "GET /../x",
            "GET /v HTTP/9.9",
            "GET /\x01",
        )
    ]
    + ["GET http://b//x | Host: a", "GET http://b/% | Host: a", "GET /% HTTP/1.0 | -Host"],
)
server(
    "found: internal inside",
    """
    location /i/ {
        internal;
        location /i/n/ { return 200 nested; location ~ x { return 200 x; } }
        if ($arg_a) { return 200 if; }
    }
    location /j {
        internal; auth_basic a; auth_basic_user_file @DIR@/users;
        location /jj { try_files /hello.txt =404; }
    }
    location = /in { rewrite ^ /i/n/ last; }
    location = /ix { rewrite ^ /i/n/x last; }
    location = /jn { rewrite ^ /jj last; }
""",
    [
        f"GET {path}"
        for path in (
            "/i/",
            "/i/n/",
            "/i/n/x",
            "/i/?a=1",
            "/i/n/?a=1",
            "/in",
            "/ix",
            "/j",
            "/jj",
            "/jn",
        )
    ],
)
server(
    "found: the challenge of an error page",
    """
    auth_basic a; auth_basic_user_file @DIR@/users;
    location /s/ { error_page 401 /sorry/raw/@SORRY@; }
    location /c/ { error_page 401 = /sorry/raw/@SORRY@; }
    location /n/ { error_page 401 @named; }
    location /f/ { error_page 401 /open/hello.txt; }
    location /sorry/ { auth_basic off; proxy_pass http://@ORIGIN@; }
    location @named { auth_basic off; proxy_pass http://@ORIGIN@; }
    location /open/ { auth_basic off; alias @DIR@/www/; }
""".replace("@SORRY@", b"HTTP/1.1 200 OK\r\nWWW-Authenticate: own\r\n\r\nsorry".hex()),
    [f"{method} /{at}/x" for at in "scnf" for method in ("GET", "HEAD", "POST")],
    open=True,
)
server(
    "found: what origins leave out",
    """
    location /s/ { proxy_pass_header Server; proxy_pass http://@ORIGIN@; }
    location /d/ { proxy_pass_header Date; proxy_pass http://@ORIGIN@; }
    location /b/ { proxy_pass_header Server; proxy_pass_header Date; proxy_pass http://@ORIGIN@; }
""",
    [
        f"GET /{at}/raw/" + head.encode().hex()
        for at in "sdb"
        for head in (
            "HTTP/1.1 200 OK\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nServer: o\r\n\r\nx",
            (
                "HTTP/1.1 404 Not Found\r\nServer: o\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
                "Content-Length: 0\r\n\r\n"
            ),
        )
    ],
    open=True,
)
server(
    "found: what origins that hand on leave behind",
    """
    location /p/ { proxy_pass http://@ORIGIN@; }
    location /q/ { proxy_pass http://@ORIGIN@; add_header X q; }
    location /n/ { return 404; }
    location /r/ { error_page 403 /p/x; return 403; }
""",
    [
        "GET /p/raw/"
        + (f"HTTP/1.1 {status}\r\nX-Accel-Redirect: {path}\r\n{fields}Content-Length: 2\r\n\r\nxx")
        .encode()
        .hex()
        for status in ("200 OK", "500 Internal Server Error")
        for path in (
            "/q/x",
            "/hello.txt",
            "/n/",
            "/none",
            "/p/raw/"
            + (
                b"HTTP/1.1 200 OK\r\nContent-Type: a/c\r\nSet-Cookie: c=d\r\nExpires: y\r\n"
                b"Cache-Control: private\r\n\r\n"
            ).hex(),
            "/r/",
        )
        for fields in (
            "Content-Disposition: inline\r\nSet-Cookie: a=b\r\nX-R: r\r\n",
            "Cache-Control: no-cache\r\nExpires: x\r\nAccept-Ranges: none\r\n",
            "Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Language: de\r\nVary: x\r\n",
        )
    ],
    open=True,
)
server(
    "found: ranges that are forced",
    """
        location / { proxy_force_ranges on; proxy_pass http://@ORIGIN@; }
        location /o/ { proxy_pass http://@ORIGIN@; }
    """,
    [
        f"GET {at}/raw/{ranged(status, said).hex()}{more}"
        for at in ("", "/o")
        for status in ("200 OK", "404 Not Found", "302 Moved Temporarily")
        for said in ("bytes", "none")
        for more in ("", " | Range: bytes=0-1")
    ],
    open=True,
)
server(
    "found: chunks of nothing",
    "location / { proxy_pass http://@ORIGIN@; }",
    [
        f"{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode()
        for method in ("GET", "POST", "FOO")
    ],
    open=True,
)
server(
    "found: statuses in between",
    """
    error_page 403 =200 /hello.txt; error_page 405 =206 /hello.txt;
    location /forbidden { return 403; }
    location /early { rewrite ^ /t?s=$status; return 200 "$status"; }
    location /t { return 200 "$args $status"; }
    location /zero { rewrite ^ $unset; set $unset ""; }
""",
    [
        "GET /forbidden",
        "GET /forbidden | Range: bytes=0-1",
        "GET /forbidden | Range: bytes=99-",
        "GET /forbidden | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        "GET /early",
        b"GET /early\r\n",
        "GET /zero",
    ],
    log=True,
    errors=True,
)
http(
    "found: real roots of what is hidden",
    """
    server {
        listen 127.0.0.1:@P0@; add_header X "[$realpath_root][$document_root]" always;
        root @DIR@/www/linkdir;
        location / { internal; }
        location /n { root @DIR@/www; }
        location /e { return 200 e; }
    }
    server {
        listen 127.0.0.1:@P0@; server_name early; add_header X "[$realpath_root]" always;
        root @DIR@/www/linkdir; return 418 early;
    }
""",
    ["GET / | Host: early", "GET /", "GET /n", "GET /e", "GET /", "GET /n/", "GET /e"],
)
server(
    "found: bytes of a host in a target",
    "location / { return 200 '[$host]'; }",
    [
        f"GET http://{host}/x".encode() + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        for host in [f"ho{byte}st" for byte in "!$%&'()*+,;=~^|`<@"]
        + ["h.", ".h", "h-", "h:80", "h:", "h:8x", "[::1]", "[::1]:80"]
    ],
    errors="info",
)
http(
    "found: ranges that origins tell zones of",
    """
    proxy_cache_path @LOGS@/cache keys_zone=z:1m;
    add_header X "$upstream_cache_status <$sent_http_accept_ranges>" always;
    server {
        listen 127.0.0.1:@P0@; proxy_cache z; proxy_cache_valid any 1m;
        location / { proxy_pass http://@ORIGIN@/; }
        location /off/ { proxy_cache off; proxy_pass http://@ORIGIN@/; }
        location /no/ { proxy_no_cache 1; proxy_pass http://@ORIGIN@/; }
        location /past/ { proxy_cache_bypass 1; proxy_pass http://@ORIGIN@/; }
        location /twice/ { proxy_cache_min_uses 2; proxy_pass http://@ORIGIN@/; }
        location /forced/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@/; }
        location /hidden/ { proxy_hide_header Accept-Ranges; proxy_pass http://@ORIGIN@/; }
    }
""",
    [
        (
            f"{method} {at} {status} {said} {time}",
            f"{method} /{at}raw/"
            + (
                f"HTTP/1.1 {status}\r\nAccept-Ranges: {said}\r\nX-N: {at}\r\n"
                "Content-Length: 0\r\n\r\n"
            )
            .encode()
            .hex(),
        )
        for at in ("", "off/", "no/", "past/", "twice/", "forced/", "hidden/")
        for method in ("GET", "POST")
        for status in ("200 OK", "404 Not Found", "301 Moved Permanently")
        for said in ("bytes", "none")
        for time in ("first", "second", "third")
    ],
    open=True,
)
http(
    "found: zones behind answers that hand on",
    """
    proxy_cache_path @LOGS@/cache keys_zone=z:1m;
    add_header X $upstream_cache_status always;
    server {
        listen 127.0.0.1:@P0@; proxy_cache z; proxy_cache_valid any 1m;
        location /a/ { proxy_pass http://@ORIGIN@/; }
        location /b/ { proxy_pass http://@ORIGIN@/; proxy_cache_key $uri; }
        location /c/ {
            proxy_pass http://@ORIGIN@/; proxy_cache_key $uri;
            proxy_intercept_errors on; error_page 404 /c/page; error_page 500 /a/page;
        }
    }
""",
    [
        (
            f"{at} {status} to {to} {field} {time}",
            f"GET /{at}/raw/"
            + f"HTTP/1.1 {status}\r\nX-N: {at}\r\n{to}\r\nContent-Length: 1\r\n\r\nx".encode().hex()
            + f" | {field}",
        )
        for at, status, to in (
            [(at, "200 OK", f"X-Accel-Redirect: /{to}/z{at}") for at in "abc" for to in "abc"]
            + [("c", "404 Not Found", "X: x"), ("c", "500 Error", "X: x")]
        )
        for field in (
            'If-None-Match: "x"',
            "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        )
        for time in ("first", "second")
    ],
    open=True,
)
http(
    "found: names of an only server",
    "".join(
        f"server {{ listen 127.0.0.1:@P{port}@; server_name {names}; "
        'location / { return 200 "$server_name [$who]"; } }\n'
        for port, names in enumerate(
            (
                r"~^(?<who>\w+)\.test$ ~test a.test",
                r"~test ~^(?<who>\w+)\.test$ a.test",
            )
        )
    )
    + "server { listen 127.0.0.1:@P2@; location / { proxy_set_header Host $http_x; "
    "proxy_pass http://127.0.0.1:@P0@; } "
    "location /1 { proxy_set_header Host $http_x; proxy_pass http://127.0.0.1:@P1@; } }",
    [
        f"GET {at} | X: {host}"
        for at in ("/", "/1")
        for host in ("x.test", "a.test", "b", "x.y.test")
    ],
    port=2,
)
server(
    "found: compression of what has no type",
    """
    gzip on; gzip_min_length 1; gzip_types *; default_type "";
    location /p/ { proxy_pass http://@ORIGIN@/; }
    location /some/ { gzip_types text/plain; proxy_pass http://@ORIGIN@/; }
    location /text { return 200 "text that is long enough to be worth it, long enough"; }
""",
    ["GET /text | Accept-Encoding: gzip"]
    + [
        f"GET /{at}/raw/"
        + f"HTTP/1.1 200 OK\r\n{said}Content-Length: 99\r\n\r\n{'x' * 99}".encode().hex()
        + " | Accept-Encoding: gzip"
        for at in ("p", "some")
        for said in (
            "",
            "Content-Type: \r\n",
            "Content-Type: ;x\r\n",
            "Content-Type: x\r\n",
        )
    ],
    open=True,
    lengths="coded",
)
http(
    "found: connections of subrequests",
    """
    log_format f '$uri|$status|$sent_http_connection|$sent_http_keep_alive';
    server {
        listen 127.0.0.1:@P0@; root @DIR@/www; access_log @LOGS@/access.log f;
        log_subrequest on; keepalive_timeout 9s 8s;
        location /in { auth_request /none; }
        location /on { auth_request /ok; return 204; }
        location /ok { return 204; }
        location /by { mirror /hello.txt; return 204; }
    }
""",
    ["GET /in", "GET /on", "GET /by", "GET /on HTTP/1.0"],
    log=True,
)
http(
    "found: other servers without a host",
    """
    log_format f '$request|$status|$request_length|$host|$http_a|$content_length';
    server {
        listen 127.0.0.1:@P0@ ssl; server_name ~(test); access_log @LOGS@/access.log f;
        ssl_certificate @CERT@; ssl_certificate_key @KEY@;
        ssl_verify_client optional; ssl_client_certificate @DIR@/clients/root.crt;
    }
""",
    [
        b"GET /x HTTP/1.0\r\n\r\n",
        b"GET /x HTTP/1.0\r\nA: a\r\n\r\n",
        b"GET /x HTTP/1.0\r\nA: a\r\nHost: x\r\nB: b\r\n\r\n",
        b"GET http://x/ HTTP/1.0\r\nA: a\r\n\r\n",
        b"PUT http://x/ HTTP/1.0\r\nContent-Length: 1\r\n\r\nx",
        b"PUT / HTTP/1.0\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
    ],
    tls="a.test",
    alone=True,
    log=True,
)
server(
    "found: absolute targets without a version",
    "location / { return 200 '$uri $host'; }",
    [f"GET http://a{rest}\r\n".encode() for rest in ("", ":80", ":", "/", ":80/", "/x")],
    open=True,
    alone=True,
)
SAID = "$sent_http_content_type|$sent_http_content_length|$sent_http_last_modified"
http(
    "found: what a 204 does not say",
    f"""
    log_format f '$status|{SAID}';
    server {{
        listen 127.0.0.1:@P0@; root @DIR@/www; access_log @LOGS@/access.log f;
        location / {{
            add_header X "{SAID}" always;
            location /text {{ return 204 abc; }}
            location /none {{ return 204; }}
            location /type {{ return 204 abc; types {{ }} default_type a/b; charset utf-8; }}
            location /page {{ error_page 404 =204 /dir/index.html; }}
            location /raw/ {{ proxy_pass http://@ORIGIN@; }}
        }}
        location /quiet {{ return 204 abc; }}
        location /dated {{ error_page 404 =204 /again/index.html; }}
        location /again/ {{ alias @DIR@/www/dir/; add_header Last-Modified $sent_http_etag; }}
        location /typed {{ add_header Content-Type "x $sent_http_content_type"; return 204; }}
    }}
""",
    [f"GET /{path}" for path in ("text", "none", "type", "page", "quiet", "dated", "typed")]
    + ["GET /raw/" + b"HTTP/1.1 204 None\r\nContent-Type: a/b\r\n\r\n".hex()],
    log=True,
)
server(
    "found: redirects to nowhere",
    """
    location / { error_page 302 /dir/; }
    rewrite ^/caught(x)? $1 redirect;
    location /own { rewrite ^/own(x)? $1 permanent; }
    location /said { error_page 301 =200 /hello.txt; rewrite ^/said(x)? $1 permanent; }
""",
    ["GET /caught", "GET /own", "GET /said"],
)
server(
    "found: where an origin says another place",
    """
    recursive_error_pages on;
    location / { error_page 302 = @origin; return 302 /first; }
    location @origin { proxy_pass http://@ORIGIN@$request_uri; }
""",
    ["GET /raw/" + b"HTTP/1.1 200 OK\r\nETag: 1\r\nLocation: /second\r\n\r\n".hex()],
)
OUTER = """
    location /a/ {
        location /a/b/ { proxy_pass http://up/; }
        location /a/v/ { proxy_pass http://up$request_uri; }
        location /a/d/ { proxy_pass http://up/; proxy_redirect default; }
        location /a/i/ { if ($uri) { proxy_pass http://up; } }
        location /a/n/ { location /a/n/m/ { proxy_pass http://up/; } }
        if ($arg_q) { proxy_pass http://up; }
        limit_except POST { proxy_pass http://up; }
        proxy_pass http://@ORIGIN@/x/;
    }
    location /e/ {
        proxy_pass http://@ORIGIN@/x/; proxy_redirect default;
        location /e/b/ { proxy_pass http://up/; }
    }
    location /v/ {
        proxy_pass http://up$request_uri;
        location /v/b/ {
            proxy_pass http://up/;
            location /v/b/c/ { proxy_pass http://@ORIGIN@/; }
        }
    }
    location /o/ {
        proxy_redirect off; proxy_pass http://@ORIGIN@/x/;
        location /o/b/ { proxy_pass http://up/; }
    }
"""
http(
    "found: whose address proxy_redirect default replaces",
    f"""
    upstream up {{ server @ORIGIN@; }}
    server {{ listen 127.0.0.1:@P0@; {OUTER} }}
""",
    [
        f"{method} /{place}raw/" + f"HTTP/1.1 302 M\r\nLocation: {said}/1\r\n\r\n".encode().hex()
        for method in ("GET", "POST")
        for place in ("a/", "a/b/", "a/v/", "a/d/", "a/i/", "a/n/m/", "e/", "e/b/")
        + ("v/", "v/b/", "v/b/c/", "o/b/")
        for said in ("http://@ORIGIN@/x", "http://up")
    ],
)
http(
    "found: files of an alias behind a rewrite",
    """
    log_format f '$request|$status|$request_filename|$document_root';
    server {
        listen 127.0.0.1:@P0@; access_log @LOGS@/access.log f;
        add_header X $request_filename always;
        location /a { alias @DIR@/www/dir; rewrite (.*) /r?x=$1 redirect; }
        location /b { alias @DIR@/www/dir; rewrite (.*) http://x/y; }
        location /c { alias @DIR@/www/dir; rewrite none /r redirect; return 302 /x; }
        location /d { alias @DIR@/www/dir; rewrite (.*) /d/x; return 302 /x; }
        location /e { alias @DIR@/www/dir; if ($uri) { rewrite (.*) /r permanent; } }
        location /f { alias @DIR@/www/dir; rewrite ^/f$ /f/q; rewrite ^/f/q /r redirect; }
        location /g { alias @DIR@/www/dir; rewrite ^/g$ /r/$request_filename redirect; }
        location /h { alias @DIR@/www/dir; rewrite ^/h$ /h/x; }
        location /i { alias @DIR@/www/dir; rewrite ^/i$ /i/x break; }
        location /k { root @DIR@/www; rewrite (.*) /r redirect; }
    }
""",
    [f"GET /{name}" for name in "abcdefghik"],
    errors=True,
    log=True,
)
http(
    "found: lines about variables before those about a rewrite",
    """
    server {
        listen 127.0.0.1:@P0@; error_log @LOGS@/error.log notice; rewrite_log on;
        location /s { set $empty 'a b'; }
        location /a { rewrite a /r$empty last; }
        location /b { rewrite b /r$empty redirect; }
        location /c { rewrite c /r?$empty break; }
    }
""",
    ["GET /a", "GET /b", "GET /c"],
    errors="info",
)
LINE = b"GET /x HTTP/1.1\r\n"
http(
    "found: clients that leave within a head",
    """
    log_format f '$request|$status|$bytes_sent|$request_length|$host|$server_name|$uri|$http_a';
    access_log @LOGS@/access.log f; error_log @LOGS@/error.log info;
    server { listen 127.0.0.1:@P0@; server_name first; error_page 400 /hello.txt; }
    server { listen 127.0.0.1:@P0@; server_name second; root @DIR@/www; }
""",
    [
        b"\r\n",
        b"\r\n\n\r\n",
        b"\r",
        b"G",
        b"GET /a",
        b"\r\nGET /a ",
        LINE,
        LINE + b"Ho",
        LINE + b"Host: second\r\n",
        LINE + b"A: a\r\nHost: second\r\nB: b",
        LINE + b"Host: second\r\nContent-Length: 5\r\n",
        LINE + b"Host: second\r\n\r\n",
        b"POST /x?y HTTP/1.0\r\nA: a\r\n",
        b"GET http://second/x HTTP/1.1\r\nA: a\r\n",
    ],
    alone=True,
    open=False,
    errors="connections",
    log=True,
)
http(
    "found: a path that a rewrite leaves as it is, passed on",
    """
    server {
        listen 127.0.0.1:@P0@;
        rewrite ^/s(.*)$ /s$1;
        location / { proxy_pass http://@ORIGIN@; }
        location /b { rewrite ^(.*)$ $1 break; proxy_pass http://@ORIGIN@; }
        location /n { rewrite ^nothing$ /x; proxy_pass http://@ORIGIN@; }
        location /c { if ($uri ~ c) { rewrite (.*) $1 break; } proxy_pass http://@ORIGIN@; }
    }
""",
    [
        f"GET /{first}{rest}"
        for first in "sbnca"
        for rest in ("//x", "/%61?y=%61", "/./x?", "/x//../y", "/%C3%A9", "/x")
    ],
)
http(
    "found: fields that are forgotten with their head",
    """
    log_format f '$request_uri|$status|$sent_http_last_modified|$sent_http_location';
    access_log @LOGS@/access.log f; error_log @LOGS@/error.log warn;
    server {
        listen 127.0.0.1:@P0@; root @DIR@/www;
        location /raw/ { proxy_pass http://@ORIGIN@; }
        location /a/ {
            add_header Last-Modified "Tue, 14 Nov 2023 22:13:20 GMT" always;
            location /a/200 { return 200 a; }
            location /a/201 { return 201 a; }
            location /a/301 { return 301 /a; }
            location /a/404 { return 404; }
            location /a/never { add_header Last-Modified never always; return 404; }
        }
        location /to { add_header Location /other; rewrite ^/to(/.*)?$ $1 permanent; }
        location /w { if ($uri = x) { set $w y; } proxy_pass http://@ORIGIN@; add_header X -$w; }
    }
""",
    [
        "GET /raw/" + f"HTTP/1.1 {said}\r\nLast-Modified: {date}\r\n\r\n".encode().hex()
        for said in ("200 OK", "201 Created", "302 Found", "404 Not Found", "503 Never")
        for date in ("Tue, 14 Nov 2023 22:13:20 GMT", "never")
    ]
    + [f"GET /a/{said}" for said in ("200", "201", "301", "404", "never", "file")]
    + ["GET /to", "GET /to/x", b"GET /w?a=\xff HTTP/1.1\r\nHost: a\r\n\r\n"],
    errors=True,
    log=True,
)
