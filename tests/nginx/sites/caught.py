"""Owns: what `error_page` catches, and what is left of the answer that it replaces.

Statuses that it gives which mean something of their own, the parts of a redirect that are decided
where the answer is made, and bodies that nobody read before.
"""

from ..site import http, server
from ..text import numbers

FORMAT = """
    log_format f '$request|$status|$uri|$sent_http_location|$sent_http_connection|$body_bytes_sent';
"""
HEAD = """
        listen 127.0.0.1:@P0@; server_name s.test; root @DIR@/www; access_log @LOGS@/access.log f;
"""
# Statuses that close a connection, have no body, redirect, or stand for no answer at all.
GIVEN = numbers("""
    200 204 206 301 302 303 307 308 400 401 404 405 408 413 414 416 444 494 495 496 497 499 500
    501 503 599
""")
# What the status is given to.
TARGETS = {
    "file": "/hello.txt",
    "text": "/page",
    "named": "@named",
    "gone": "@gone",
    "fails": "@fails",
    "away": "http://r.test/x",
    "none": "/none",
    "empty": "@empty",
    "origin": "/p/",
}
http(
    "caught: statuses that are given",
    FORMAT
    + """
    server {"""
    + HEAD
    + """        location /page { return 200 "page $status $request_method"; }
        location /p/ { proxy_pass http://@ORIGIN@/x; }
        location @named { return 200 "named $status"; }
        location @gone { return 444; }
        location @fails { return 503; }
        location @empty { return 204; }
"""
    + "\n".join(
        f"        location /{name}/{given} {{ error_page 404 ={given} {target}; return 404; }}"
        for name, target in TARGETS.items()
        for given in GIVEN
    )
    + "\n}",
    [
        f"{method} /{name}/{given}"
        for name in TARGETS
        for given in GIVEN
        for method in (("GET", "HEAD", "POST") if given in (204, 444, 499) else ("GET",))
    ],
    open=True,
    log=True,
)
http(
    "caught: bodies that are too large",
    FORMAT
    + """
    client_max_body_size 8;
    server {"""
    + HEAD
    + """        location /page { return 200 "page $status $request_method"; }
        location /p/ { proxy_pass http://@ORIGIN@/x; }
        location @named { return 200 "named $status"; }
        location @gone { return 444; }
"""
    + "\n".join(
        f"        location /{name}/{given}/ {{ error_page 413 ={given} {target};"
        f" proxy_pass http://@ORIGIN@/; }}"
        for name, target in (
            ("named", "@named"),
            ("gone", "@gone"),
            ("page", "/page"),
            ("file", "/hello.txt"),
            ("away", "http://r.test/x"),
        )
        for given in ("", 200, 204, 301, 400, 413, 444, 499, 503)
    )
    + "\n}",
    [
        f"POST /{name}/{given}/ HTTP/1.1\r\nHost: a\r\n{rest}".encode()
        for name in ("named", "gone", "page", "file", "away")
        for given in ("", 200, 204, 301, 400, 413, 444, 499, 503)
        for rest in (
            "Content-Length: 9\r\n\r\n123456789",
            "Transfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n",
        )
    ],
    open=True,
    log=True,
)
http(
    "caught: addresses are those of who answers",
    FORMAT
    + """
    server {"""
    + HEAD
    + """        location /a/ {
            absolute_redirect off; error_page 301 302 = /page; error_page 303 = /b/303;
            error_page 307 @named; error_page 308 = /p/;
            location /a/301 { return 301 /x; }
            location /a/302 { rewrite ^ /x redirect; }
            location /a/303 { return 303 /x; }
            location /a/307 { return 307 /x; }
            location /a/308 { return 308 /x; }
            location /a/dir { alias @DIR@/www/dir; }
        }
        location /b/ {
            port_in_redirect off; error_page 301 302 303 = /other; error_page 307 @off;
            error_page 308 = /q/;
            location /b/301 { return 301 /x; }
            location /b/302 { rewrite ^ /x redirect; }
            location /b/303 { return 303 /x; }
            location /b/307 { return 307 /x; }
            location /b/308 { return 308 /x; }
            location /b/dir { alias @DIR@/www/dir; }
        }
        location /page { add_header X "<$sent_http_location>" always; return 200 page; }
        location /other { absolute_redirect off; return 200 "$sent_http_location"; }
        location /p/ { proxy_pass http://@ORIGIN@; }
        location /q/ { absolute_redirect off; proxy_pass http://@ORIGIN@; }
        location @named { server_name_in_redirect on; return 200 "$sent_http_location"; }
        location @off { absolute_redirect off; return 200 "$sent_http_location"; }
        location /none { error_page 404 /x; error_page 404 =301 /here; }
        location /here { absolute_redirect off; }
    }
""",
    [
        f"{method} /{at}/{status}{host}"
        for at in "ab"
        for status in ("301", "302", "303", "307", "308", "dir")
        for method in ("GET", "HEAD")
        for host in ("", " HTTP/1.0 | -Host")
    ]
    + ["GET /none"],
    open=True,
    log=True,
)
server(
    "caught: bodies that a text came before",
    """
    client_body_timeout 2s;
    location /text { return 404 text; error_page 404 /p/; }
    location /bare { return 404; error_page 404 /p/; }
    location /moved { return 302 http://r.test/; error_page 302 /p/; }
    location /here { return 307 /x; error_page 307 @p; }
    location /only { return http://r.test/; error_page 302 @p; }
    location /rewritten { rewrite ^ /x redirect; error_page 302 @p; }
    location /denied { deny all; error_page 403 @p; }
    location /none { error_page 404 405 @p; }
    location /dir { error_page 301 @p; }
    location /hello.txt { error_page 412 405 416 @p; }
    location /gif { empty_gif; error_page 412 405 @p; }
    location /fails/ { proxy_pass http://127.0.0.1:@P9@; error_page 502 @p; }
    location /big/ { client_max_body_size 3; error_page 413 @p; proxy_pass http://@ORIGIN@; }
    location /p/ { proxy_pass http://@ORIGIN@; }
    location @p { proxy_pass http://@ORIGIN@; }
""",
    [
        f"{method} /{path} HTTP/1.1\r\nHost: a\r\n{rest}".encode()
        for path in (
            "text",
            "bare",
            "moved",
            "here",
            "only",
            "rewritten",
            "denied",
            "none",
            "dir",
            "hello.txt",
            "gif",
            "fails/",
            "big/",
        )
        for method in ("POST", "GET", "PUT")
        for rest in (
            "Content-Length: 5\r\n\r\nhello",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        )
    ],
    open=True,
)
