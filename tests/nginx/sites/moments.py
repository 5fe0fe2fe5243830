"""Owns: configurations in which it counts when nginx evaluates something, and what it knows then.

Variables that are evaluated once, fields that are added behind what the configuration adds, heads
that were read in part; all found by random configurations and requests.
"""

from ..site import http, server

FORMAT = """
    log_format f '$request_uri|$status|$uri|$args|$request_method|$http_host|$http_x|$host|'
        '$server_protocol|$request|$sent_http_location|$sent_http_accept_ranges|$sent_http_etag|'
        '$request_completion|$request_body|$document_root';
    access_log @LOGS@/access.log f;
"""

http(
    "moments: what is evaluated once",
    FORMAT
    + """
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        location /early {
            set $a "$request_completion $sent_http_etag $sent_http_accept_ranges $request_body";
            try_files /hello.txt =404;
        }
        location /late { try_files /hello.txt =404; }
        location /added {
            add_header X "<$sent_http_accept_ranges><$sent_http_etag><$status>" always;
            try_files /hello.txt =404;
        }
        location /made { set $a $sent_http_location; return 301 /x; }
        location /moved { return 301 /x; }
        location /read { add_header X "<$sent_http_location>"; return 301 /x; }
        location /own {
            add_header X "<$sent_http_location>"; add_header Location /y; return 302 /x;
        }
        location /caught { error_page 302 /page; return 302 /x; }
        location /page { add_header X "<$sent_http_location>"; return 200 page; }
        location /away { add_header X "<$sent_http_location>"; return 301 http://r.test/x; }
        location /dir { add_header X "<$sent_http_location>"; }
        location /gone { error_page 404 http://r.test/$uri; add_header X "<$sent_http_location>"; }
    }
""",
    [
        f"{method} /{path}{fields}"
        for path in (
            *(
                "early",
                "late",
                "added",
                "made",
                "moved",
                "read",
                "own",
                "caught",
                "away",
                "dir",
            ),
            "gone",
        )
        for method in ("GET", "HEAD", "POST")
        for fields in ("", " | Range: bytes=0-1", " | Range: bytes=0-0,2-2")
    ]
    + [b"GET /moved\r\n", b"GET /late\r\n", b"GET /dir\r\n"]
    + [
        f"GET /{path} | If-Match: {tag} | Connection: close"
        for path in ("late", "early")
        for tag in ('"x"', "*")
    ],
    log=True,
)
http(
    "moments: heads that were read in part",
    FORMAT
    + """
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        error_page 400 /bad?; add_header X "[$uri][$http_x][$realpath_root]" always;
        location /bad { add_header X "[$http_x][$http_host][$server_protocol]" always; }
        location /hello.txt { }
    }
    server { listen 127.0.0.1:@P1@; add_header X "[$realpath_root]" always; root @DIR@/www; }
""",
    [
        f"GET {target} | X: before | Host: {host} | X: after{more}"
        for target in (
            "/%",
            "/%zz?a=b",
            "/hello.txt",
            "/hello.txt?c=d",
            "/../x",
            "/a%00b",
        )
        for host in ("localhost", "a..b", "a/b")
        for more in ("", " | Range: bytes=0-1")
    ]
    + [
        b"G\xe9T /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\nX: c\r\n\r\n",
    ],
    log=True,
    errors=True,
)
server(
    "moments: ranges that are not there",
    """
    location /m/ { expires modified 1d; alias @DIR@/www/; }
    location /n/ { expires modified -1d; add_header X a; alias @DIR@/www/; }
    location /f/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@/x; }
    location /p/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@; proxy_hide_header X-R; }
""",
    [
        f"{method} {path} | Range: bytes={ranges}"
        for method in ("GET", "HEAD")
        for path in (
            "/m/hello.txt",
            "/n/hello.txt",
            "/f/",
            (
                "/p/raw/"
                + (
                    b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: a\r\nX-R: r\r\nETag: "a"\r\n'
                    b"Set-Cookie: a=b\r\nCache-Control: private\r\nContent-Type: a/b\r\n\r\n01234"
                ).hex()
            ),
        )
        for ranges in ("3-1", "x", "900000-", "0-1")
    ],
    open=True,
)
server(
    "moments: where an index is looked for",
    """
    location ~ ^/f { alias @DIR@/www/hello.txt; }
    location ~ ^/n(.*) { alias @DIR@/www/none$1x; }
    location /m/ { alias @DIR@/www/none/; }
    location /t { try_files /none /fallback.html?x=$uri; }
    location /fallback { try_files /none /fallback.html?y=$uri; }
    location /named { error_page 404 @loop; return 404; }
    location @loop { try_files /none @loop; }
""",
    [
        "GET /f/",
        "GET /f",
        "GET /n/",
        "GET /n/a/",
        "GET /m/",
        "GET /m/a/",
        "GET /t",
        "GET /named",
    ],
    errors=True,
)
server(
    "moments: pictures that are compressed",
    """
    gzip on; gzip_vary on; gzip_min_length 1;
    location /all { gzip_types *; empty_gif; }
    location /gif { gzip_types image/gif; empty_gif; add_header X "$sent_http_content_length"; }
    location /none { empty_gif; }
    location /tag { gzip_types *; add_header ETag '"a"'; try_files /page.html =404; }
    location /no { gzip_types *; add_header ETag ,a; try_files /page.html =404; }
    location /weak { gzip_types *; add_header ETag W/"a"; try_files /page.html =404; }
""",
    [
        f"{method} /{path}{fields}"
        for path in ("all", "gif", "none", "tag", "no", "weak")
        for method in ("GET", "HEAD")
        for fields in (
            "",
            " | Accept-Encoding: gzip",
            " | Accept-Encoding: gzip | If-Modified-Since: Mon, 28 Sep 1970 06:00:00 GMT",
        )
    ],
    lengths="coded",
)
server(
    "moments: lines about what came of an origin",
    """
    location /p/ { proxy_pass http://@ORIGIN@; proxy_cookie_flags a secure; }
    location /e/ { proxy_pass http://@ORIGIN@; proxy_intercept_errors on; error_page 404 /none; }
    location /q/ { return 200 q; }
    location /d { proxy_pass http://127.0.0.1:@P9@; error_page 502 /none; }
    location /a/ { auth_request /asked; }
    location /asked { try_files /nothing /none; }
""",
    [
        f"GET /{at}/raw/" + (f"HTTP/1.1 {said}Content-Length: 0\r\n\r\n").encode().hex()
        for at in "pe"
        for said in (
            "200 OK\r\nX-Accel-Redirect: /none\r\n",
            "200 OK\r\nX-Accel-Redirect: /q/\r\nSet-Cookie: a=b\r\n",
            "404 Not Found\r\n",
        )
    ]
    + ["GET /d", "GET /a/b", "GET /none"],
    open=True,
    errors=True,
)
server(
    "moments: paths that an alias cannot have",
    """
    location /a/ {
        alias @DIR@/www/; rewrite ^/a/x /b break; add_header X "$request_filename" always;
        return 200 "$request_filename";
    }
""",
    ["GET /a/x", "GET /a/y"],
    errors=True,
)
server(
    "moments: redirects that error pages stand in for",
    """
    recursive_error_pages on;
    location /blank { error_page 302 /hello.txt; return 302; }
    location /empty { error_page 302 /hello.txt; return 302 $arg_a; }
    location /asked { error_page 302 /p/; return 302 /x; }
    location /p/ { proxy_pass http://@ORIGIN@; }
    location /308 { error_page 308 http://r.test/; return 308 /x; }
    location /307 { error_page 308 =307 http://r.test/; return 308 /x; }
    location /late { error_page 404 =403 @late; return 404; }
    location @late { return 408; }
    location /gone { error_page 404 =403 @gone; return 404; }
    location @gone { return 444; }
""",
    [
        f"{method} /{path}"
        for path in ("blank", "empty", "asked", "308", "307", "late", "gone")
        for method in ("GET", "HEAD")
    ],
    log=True,
)
http(
    "moments: paths that a server has rewritten",
    """
    log_format f '$request_uri|$status|$uri'; access_log @LOGS@/access.log f;
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        rewrite ^/s/(.*) /a/$1 break; rewrite ^/l/(.*) /a/$1 last; error_page 400 @named;
        location /a/ { alias @DIR@/www/; }
        location /b/ { try_files /none /a/hello.txt; }
        location @named { return 200 named; }
    }
""",
    [
        "GET /s/hello.txt",
        "GET /l/hello.txt",
        "GET /a/hello.txt",
        "GET /s/none",
        "GET /%",
        "GET /b/",
    ],
    log=True,
    errors=True,
)
http(
    "moments: bodies of nothing",
    """
    log_format f '$request_uri|$request_body|$content_length'; access_log @LOGS@/access.log f;
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        location /p/ { proxy_pass http://@ORIGIN@; }
        location /d/ { deny all; error_page 403 /hello.txt; }
        location /n/ { return 200 n; }
    }
""",
    [
        f"POST /{at}/ HTTP/1.1\r\nHost: a\r\n{length}\r\n{body}".encode()
        for at in "pdn"
        for length, body in (
            ("", ""),
            ("Content-Length: 0\r\n", ""),
            ("Content-Length: 5\r\n", "hello"),
        )
    ],
    open=True,
    log=True,
)
