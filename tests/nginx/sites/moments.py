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
http(
    "moments: queries of nothing",
    """
    log_format f '$request_uri|$status|$uri|$args|$is_args|$query_string';
    access_log @LOGS@/access.log f;
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        location /drop { rewrite ^ /at? last; }
        location /empty { rewrite ^ /at?$arg_none? last; }
        location /keep { rewrite ^ /at last; }
        location /add { rewrite ^ /at?b=c last; }
        location /set { set $args ""; rewrite ^ /at? last; }
        location /break { rewrite ^ /hello.txt? break; }
        location /away { rewrite ^ /at? redirect; }
        location /tried { try_files /none /at?; }
        location /jump { error_page 404 = /at?; return 404; }
        location /at { return 200 "$uri|$args|$is_args"; }
    }
""",
    [
        f"GET /{path}{query}"
        for path in (
            "drop",
            "empty",
            "keep",
            "add",
            "set",
            "break",
            "away",
            "tried",
            "jump",
        )
        for query in ("", "?", "?a=b")
    ],
    log=True,
)
server(
    "moments: what a 416 says of its origin",
    """
    location /s/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@; proxy_pass_header Server; }
    location /d/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@; proxy_pass_header Date; }
    location /n/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@; }
    location /c/ {
        proxy_force_ranges on; proxy_pass http://@ORIGIN@; proxy_pass_header Server;
        proxy_pass_header Date; add_header X "$sent_http_server-$sent_http_date";
    }
    location /o/ {
        proxy_force_ranges on; proxy_pass http://@ORIGIN@; proxy_pass_header Server;
        error_page 416 = /n/;
    }
""",
    [
        f"GET /{at}/raw/"
        + f"HTTP/1.1 200 OK\r\n{fields}Content-Length: 5\r\n\r\n01234".encode().hex()
        + f" | Range: bytes={ranges}"
        for at in "sdnco"
        for fields in (
            "",
            "Server: theirs\r\n",
            "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n",
            "Server: theirs\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n",
        )
        for ranges in ("9-", "0-1")
    ],
    open=True,
)
http(
    "moments: dates that are made of other fields",
    """
    log_format f '$request_uri|$sent_http_last_modified'; access_log @LOGS@/access.log f;
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        location / { add_header Last-Modified "$sent_http_etag$sent_http_content_type" always; }
        location /p/ {
            proxy_pass http://@ORIGIN@; add_header Last-Modified "$sent_http_content_type-" always;
        }
        location /t { add_header Last-Modified "$sent_http_content_type"; return 200 t; }
        location /u { add_header Last-Modified "$http_date_is"; try_files /hello.txt =404; }
    }
""",
    [
        f"GET /{path}{more}"
        for path in ("hello.txt", "p/x", "t", "u", "none")
        for more in (
            "",
            " | If-Modified-Since: Mon, 13 Nov 2023 22:13:20 GMT",
            " | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
            " | Range: bytes=0-1",
            " | Range: bytes=0-1 | If-Range: Tue, 14 Nov 2023 22:13:20 GMT",
            " | Range: bytes=0-1 | If-Range: Sun, 06 Nov 1994 08:49:37 GMT"
            " | Date-Is: Sun, 06 Nov 1994 08:49:37 GMT",
        )
    ],
    open=True,
    log=True,
)
http(
    "moments: groups in lines about subrequests",
    """
    map $uri $groups { default "$1-$2"; }
    log_format f '$request_uri|$uri|$status|$groups'; log_subrequest on; access_log off;
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        location ~ ^/a(.*)$ { auth_request /q/x; try_files /hello.txt =404; }
        location ~ ^/(q)/(.*)$ { access_log @LOGS@/access.log f; return 204; }
        location ~ ^/b(.*)$ { auth_request /r/x; try_files /hello.txt =404; }
        location ~ ^/(r)/(.*)$ { access_log @LOGS@/access.log f; return 403; }
    }
""",
    ["GET /ab", "GET /bc"],
    log=True,
)
http(
    "moments: roots that move",
    """
    log_format f '$request_uri|$status|$realpath_root|$document_root';
    access_log @LOGS@/access.log f;
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        location /set { root @DIR@/www/$arg_a; set $args ""; }
        location /var { root @DIR@/$x; set $x www; }
        location /if { if ($arg_a) { root @DIR@/www/dir; } }
        location /rewritten { root @DIR@/www/$arg_a; rewrite ^ /rewritten?a=dir break; }
    }
""",
    [f"PUT /{path}?a={a}" for path in ("set", "var", "if", "rewritten") for a in ("", "dir", "1")],
    log=True,
)
server(
    "moments: ranges that an origin offered before it handed on",
    """
    location /f/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@; }
    location /n/ { proxy_pass http://@ORIGIN@; }
    location /to/ { proxy_pass http://@ORIGIN@; }
    location /forced/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@; }
    location /text { return 200 text; }
""",
    [
        f"GET /{at}/raw/"
        + f"HTTP/1.1 200 OK\r\nAccept-Ranges: {said}\r\nX-Accel-Redirect: {to}\r\n"
        "Content-Length: 0\r\n\r\n".encode().hex()
        for at in "fn"
        for said in ("bytes", "none")
        for to in ("/to/x", "/forced/x", "/hello.txt", "/text", "/none")
    ],
    open=True,
)
http(
    "moments: lines that could not be read",
    """
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; ssi on; ssi_types *;
        location /added { add_header X a; }
    }
""",
    [
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /% HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /../x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2.5\r\n\r\n",
        b"get / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
http(
    "moments: types of answers that have no head",
    """
    log_format f '$request_uri|$sent_http_content_type'; access_log @LOGS@/access.log f;
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; charset utf-8;
        location / { add_header X "<$sent_http_content_type>" always; }
        location /t { return 200 text; }
        location /p/ { proxy_pass http://@ORIGIN@; }
    }
""",
    [
        (f"{target}{version}", f"GET {target}{version}\r\n{host}".encode())
        for target in ("/hello.txt", "/none", "/t", "/p/")
        for version, host in (
            ("", ""),
            (" HTTP/1.0", "\r\n"),
            (" HTTP/1.1", "Host: a\r\n\r\n"),
        )
    ],
    open=True,
    log=True,
)
server(
    "moments: bodies that wait for an answer to another question",
    """
    client_max_body_size 8;
    location /q { return 204; } location /no { return 403; }
    location /file { auth_request /hello.txt; try_files /hello.txt =404; }
    location /none { auth_request /q; }
    location /denied { auth_request /no; }
    location /origin { auth_request /q; proxy_pass http://@ORIGIN@; }
    location /caught { auth_request /q; proxy_pass http://@ORIGIN@; error_page 413 @large; }
    location /dir/ { auth_request /q; }
    location @large { return 200 large; }
""",
    [
        f"{method} /{path} HTTP/1.1\r\nHost: a\r\n{rest}".encode()
        for path in ("file", "none", "denied", "origin", "caught", "dir/")
        for method in ("GET", "POST")
        for rest in (
            "Transfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n0\r\n\r\n",
            "Content-Length: 9\r\n\r\n123456789",
        )
    ],
    open=True,
    errors=True,
)
server(
    "moments: what fields say before they leave",
    """
    add_header X "<$sent_http_content_type><$sent_http_accept_ranges><$sent_http_vary>" always;
    charset utf-8;
    location /o/ { override_charset on; proxy_pass http://@ORIGIN@; }
    location /n/ { charset off; proxy_pass http://@ORIGIN@; }
    location /p/ { proxy_pass http://@ORIGIN@; }
    location /f/ { proxy_force_ranges on; proxy_pass http://@ORIGIN@; }
    location /s/ { source_charset utf-8; proxy_pass http://@ORIGIN@; }
    location /v/ { set $x koi8-r; charset $x; proxy_pass http://@ORIGIN@; }
    location /g/ { gzip on; gzip_vary on; gzip_min_length 1; proxy_pass http://@ORIGIN@; }
    location /typed { types { "text/html; charset=x" txt; } try_files /hello.txt =404; }
    location /moved { return 301 /x; }
""",
    ["GET /hello.txt", "GET /typed", "GET /none", "GET /moved", "GET /dir"]
    + [
        f"GET /{at}/raw/"
        + f"HTTP/1.1 200 OK\r\n{fields}Content-Length: 5\r\n\r\n01234".encode().hex()
        + more
        for at in "onpfsvg"
        for fields in (
            "Content-Type: text/html\r\n",
            "Content-Type: text/html; charset=utf-8\r\nAccept-Ranges: bytes\r\n",
            "Content-Type: text/css;a=b; charset=koi8-r\r\nVary: X\r\n",
            "Content-Type: text/html\r\nX-Accel-Charset: utf-8\r\nVary: Accept-Encoding\r\n",
            "Content-Type: a/b\r\nAccept-Ranges: none\r\n",
        )
        for more in ("", " | Accept-Encoding: gzip")
    ],
    lengths="coded",
    open=True,
)
server(
    "moments: who leads to the slash",
    """
    location = /l/ { absolute_redirect off; add_header X exact always; }
    location /l/ { add_header X prefix always; proxy_pass http://@ORIGIN@; }
    location = /e/ { add_header X exact always; proxy_pass http://@ORIGIN@; }
    location /e/ { absolute_redirect off; add_header X prefix always; }
    location = /a/ { add_header X exact always; proxy_pass http://@ORIGIN@; }
    location /r {
        location = /r/ { absolute_redirect off; add_header X exact always; }
        location ^~ /r/ { add_header X prefix always; proxy_pass http://@ORIGIN@; }
    }
""",
    [f"GET /{at}{rest}" for at in "lear" for rest in ("", "?x", "/", "/x")],
    open=True,
)
