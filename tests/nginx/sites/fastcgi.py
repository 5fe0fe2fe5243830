"""Owns: the FastCGI configurations on which both are compared, with the same php-fpm."""

from ..site import Case, Labelled
from ..text import numbers, words
from .php import BOUNDARY, FORM, MULTIPART, chunked, php, post, say, server

PATHS: list[Case] = [
    "GET /env.php",
    "GET /env.php?",
    "GET /env.php?a=1&b=2",
    "GET /env.php?a=%20+%2b&b=\u00fc",
    "GET /env.php/",
    "GET /env.php/path/info",
    "GET /env.php/x.php",
    "GET /dir/env.php",
    "GET /./dir/../env.php",
    "GET //env.php",
    "GET /dir//env.php",
    "GET /%65nv.php",
    "GET /env%2ephp",
    "GET /env.php%00",
    "GET /env.php%00.txt",
    "GET /env.php%20",
    "GET /env.php.",
    "GET /ENV.PHP",
    "GET /with%20space.php",
    "GET /with space.php",
    "GET /none.php",
    "GET /none.php/x",
    "GET /dir",
    "GET /dir/",
    "GET /",
    "GET /style.css",
    "GET /style.css/x.php",
    "GET /style.css%00.php",
    "GET /upload.jpg/x.php",
    "GET /upload.jpg",
    "GET /env.php;x",
    "GET /env.php?x#y",
    "GET /env.php#x",
    "GET http://other.test/env.php",
    "GET http://other.test:81/env.php | Host: localhost",
    "GET /env.php HTTP/1.0",
    "GET /env.php HTTP/1.0 | Connection: keep-alive",
    "GET /env.php?" + "x" * 4000,
    "GET /dot.d/env.php",
    "GET /dot.d/env.php/a.b/c",
    "GET /a%2fb/env.php",
    "GET /..%2fenv.php",
    "GET /env.php?%",
    "GET /env.php?a=b?c=d",
    "GET /env.php??",
    'GET /env.php?"<>',
    "GET /.env.php",
    "GET /env.phtml",
]
METHODS: list[Case] = [
    f"{method} /env.php"
    for method in words("""
    HEAD POST PUT DELETE OPTIONS PATCH PROPFIND FOO TRACE foo X_Y
""")
]
FIELDS: list[Case] = [
    *(
        "GET /env.php | " + field
        for field in (
            "X: 1",
            "X: 1 | X: 2",
            "X:",
            "Cookie: a=1; b=2",
            "Cookie: a=1 | Cookie: b=2",
            "Authorization: Basic YTpi",
            "Authorization: Bearer x",
            "Proxy: http://evil/",
            "X-Forwarded-For: 1.2.3.4",
            "X-Forwarded-For: 1.2.3.4 | X-Forwarded-For: 5.6.7.8",
            "Accept: a | Accept: b",
            "A_B: 1",
            "A.B: 1",
            "Content-Type: text/x",
            "Content-Type:",
            "Content-Length: 0",
            'If-None-Match: "x"',
            "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
            "Range: bytes=0-1",
            'If-Range: "x"',
            "Connection: close",
            "Connection: keep-alive",
            "Connection: x",
            "Keep-Alive: 5",
            "TE: trailers",
            "Upgrade: h2c",
            "Upgrade: websocket | Connection: upgrade",
            "Host: Other.Test",
            "Host: other.test:123",
            "Host: localhost.",
            "User-Agent: a/1 (b)",
            "Referer: http://x/?y",
            "Accept-Encoding: gzip",
            "Date: x",
            "HTTPS: off",
            "Remote-Addr: 1.1.1.1",
            "Script-Filename: /etc/passwd",
            "X-Long: " + "x" * 3000,
            "X: \u00fc",
            "X: a\tb",
            "Via: 1.1 x",
            "Content-Encoding: gzip",
            "Expect: 100-continue",
            "Max-Forwards: 1",
            "x-lower: 1",
            "Transfer-Encoding: identity",
        )
    ),
    ("60 fields", "GET /env.php | " + " | ".join(f"X-{n}: {n}" for n in range(60))),
]
BODIES: list[Labelled | bytes] = [
    post("/echo.php", ""),
    post("/echo.php", "a=1&b=2&c[]=3", FORM),
    post("/echo.php", "x" * 1000),
    post("/echo.php?q=1", "a=ü&b=%20", FORM),
    post("/echo.php", MULTIPART, BOUNDARY),
    post("/echo.php", b"x" * 20_000, label="body of 20000"),
    post("/echo.php", b"y" * 300_000, label="body of 300000"),
    post("/echo.php", bytes(range(256)) * 4, "Content-Type: application/octet-stream"),
    post("/echo.php", "x", "Expect: 100-continue"),
    post("/echo.php", '{"a":1}', "Content-Type: application/json"),
    post("/echo.php", "put it", method="PUT"),
    post("/echo.php", "patch", method="PATCH"),
    post("/echo.php", "gone", method="DELETE"),
    post("/echo.php", "got", method="GET"),
    post("/echo.php", "odd", method="FOO"),
    post("/echo.php", "head", method="HEAD"),
    post("/none.php", "lost"),
    post("/style.css", "file"),
    chunked("/echo.php"),
    chunked("/echo.php", b"a=1&b=2", fields=FORM + "\r\n"),
    chunked("/echo.php", b"one", b"two", b"three"),
    chunked("/echo.php", *[b"z" * 10_000] * 10),
    chunked("/echo.php", b"x", end=b"0\r\nX-Trailer: 1\r\n\r\n"),
    chunked("/echo.php", b"put", method="PUT"),
    chunked("/echo.php", b"got", method="GET"),
    post("/echo.php", "x" * 100, "Connection: close"),
    b"POST /echo.php HTTP/1.0\r\nContent-Length: 3\r\n\r\nold",
    b"POST /echo.php HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /echo.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
]
ANSWERS: list[Case] = [
    say(),
    say("X-A: 1"),
    say("X-A: 1", "X-A: 2"),
    say("X-A:"),
    say("X-A: ü"),
    say("Set-Cookie: a=1", "Set-Cookie: b=2"),
    say("Content-Type: text/html"),
    say("Content-Type: text/html; charset=latin1"),
    say("Content-Type: application/json"),
    say(text=""),
    say(text="x" * 50),
    say(request="HEAD"),
    say("X: y", request="HEAD", text="x"),
    *[
        say(s=status)
        for status in numbers("""
        200 201 202 204 206 207 226 299 300 301 302 303 304 305 307 308 399 400 401 402
        403 404 405 406 408 409 410 411 412 413 414 415 416 417 418 421 422 423 425 426
        428 429 431 444 451 494 495 497 499 500 501 502 503 504 505 507 511 599
    """)
    ],
    *[say(s=status, request="HEAD") for status in (204, 304, 404, 500)],
    say("Status: 404 Not Here"),
    say("Status: 201"),
    say("HTTP/1.1 403 No way"),
    say("HTTP/1.1 200 Fine"),
    say("HTTP/1.0 404 Not Found"),
    say("Status: 299 Odd one"),
    say("Status: 200 OK", s=404),
    say("Location: /x"),
    say("Location: x"),
    say("Location: /x", s=301),
    say("Location: /x", s=303),
    say("Location: /x", s=307),
    say("Location: /x", s=308),
    say("Location: /x", s=201),
    say("Location: /x", s=200),
    say("Location: http://other.test/x"),
    say("Location: https://localhost/x"),
    say("Location: //other/x"),
    say("Location: ?x"),
    say("Location:"),
    say("Location: /say.php?b=internal"),
    say("Location: http://localhost/x y"),
    say("Location: /ü"),
    say("Location: /x", request="HEAD"),
    say("Refresh: 1; url=/x"),
    say("Content-Length: 5", text="12345"),
    say("Content-Length: 3", text="12345"),
    say("Content-Length: x", text="12345"),
    say("Content-Length: -1", text="12345"),
    say("Content-Length: 0", text=""),
    say("Content-Length: 0", s=204, text=""),
    say("Content-Length: 5", "Content-Length: 5", text="12345"),
    say("Content-Length: 5", request="HEAD", text=""),
    say("Transfer-Encoding: chunked"),
    say("Connection: close"),
    say("Connection: keep-alive"),
    say("Keep-Alive: 5"),
    say("Date: Tue, 14 Nov 2023 22:13:20 GMT"),
    say("Server: other"),
    say("X-Powered-By: PHP"),
    say("Expires: Thu, 19 Nov 1981 08:52:00 GMT", "Cache-Control: no-store"),
    say("Pragma: no-cache"),
    say('ETag: "x"'),
    say('ETag: "x"', more=' | If-None-Match: "x"'),
    say('ETag: W/"x"', more=' | If-None-Match: "x"'),
    say('ETag: "x"', more=" | If-None-Match: *"),
    say('ETag: "x"', more=' | If-Match: "y"'),
    say('ETag: "x"', more=' | If-Match: "x"'),
    say('ETag: "x"', s=404, more=' | If-None-Match: "x"'),
    say("Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"),
    say(
        "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT",
        more=" | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
    ),
    say(
        "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT",
        more=" | If-Modified-Since: Mon, 13 Nov 2023 22:13:20 GMT",
    ),
    say("Last-Modified: nonsense"),
    say(
        "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT",
        more=" | If-Unmodified-Since: Mon, 13 Nov 2023 22:13:20 GMT",
    ),
    say('ETag: "x"', "Content-Length: 5", text="12345", more=" | Range: bytes=0-1"),
    say("Accept-Ranges: bytes", "Content-Length: 5", text="12345", more=" | Range: bytes=0-1"),
    say("Content-Range: bytes 0-1/5", s=206, text="12"),
    say("Vary: Accept"),
    say("WWW-Authenticate: Basic realm=x", s=401),
    say("Allow: GET", s=405),
    say("Retry-After: 5", s=503),
    say("Content-Encoding: gzip", text="not gzip"),
    say('Content-Disposition: attachment; filename="a"'),
    say("Link: </x.css>; rel=preload"),
    say("Upgrade: x"),
    say("Trailer: X"),
    say("X_Under: 1"),
    say("Content-Language: de"),
    say("Strict-Transport-Security: max-age=1"),
    say("X-Accel-Expires: 0"),
    say("X-Long: " + "x" * 2000),
    "GET /cookies.php | Cookie: c=%201; d=2",
    "GET /exit.php",
    "GET /empty.php",
    "GET /nothing.php",
    "HEAD /empty.php",
    "GET /page.php",
    "GET /flush.php",
    "HEAD /flush.php",
    "GET /flush.php HTTP/1.0",
    "GET /say.php HTTP/1.0",
    "GET /say.php | Connection: close",
    "GET /length.php?n=100",
    "HEAD /length.php?n=100",
    "GET /length.php?n=100000",
    "GET /length.php?n=10 HTTP/1.0",
    "GET /length.php?n=10&d=-5",
    "GET /big.php?n=10",
    "GET /big.php?n=5000",
    "GET /big.php?n=100000",
    "HEAD /big.php?n=5000",
    "GET /big.php?n=5000 HTTP/1.0",
    "GET /warning.php",
    "GET /fatal.php",
    "GET /parse.php",
    "GET /stderr.php",
    "GET /stderr.php?long=900",
    "POST /say.php | Content-Length: 0",
    "DELETE /say.php",
    "OPTIONS /say.php",
]

php("paths", "", PATHS + METHODS + FIELDS, rest="index index.php;")
php("bodies", "client_max_body_size 0;", BODIES)
php("answers", "", ANSWERS)
php(
    "reasons",
    "",
    [say(s=302), say(s=405), say("Status: 404 Not Here"), say(), say(s=404)],
    reasons=True,
)
php(
    "answers, unbuffered",
    "fastcgi_buffering off;",
    [
        "GET /big.php?n=5000",
        "GET /big.php?n=100000",
        "HEAD /big.php?n=5000",
        "GET /flush.php",
        "GET /length.php?n=100000",
        "GET /page.php",
        say(s=204),
        say(s=304),
        say(),
        "GET /stderr.php",
        "GET /flush.php HTTP/1.0",
        "GET /fatal.php",
    ],
)
php(
    "small buffers",
    (
        "fastcgi_buffer_size 1k; fastcgi_buffers 4 1k; fastcgi_busy_buffers_size 2k; "
        "fastcgi_max_temp_file_size 4k;"
    ),
    [
        "GET /big.php?n=5000",
        "GET /page.php",
        say("X-Long: " + "x" * 700),
        say("X-Long: " + "x" * 1100),
        say("X-Long: " + "x" * 3000),
        "GET /stderr.php",
        "GET /stderr.php?long=100",
        "GET /stderr.php?long=900",
        "HEAD /big.php?n=5000",
    ],
)
php(
    "no temporary file",
    "fastcgi_max_temp_file_size 0; fastcgi_buffers 4 4k;",
    ["GET /big.php?n=50000", "GET /length.php?n=100000"],
)
server(
    "Debian's snippet",
    """
        index index.php;
        location / { try_files $uri $uri/ =404; }
        location ~ \\.php$ { include snippets/fastcgi-php.conf; fastcgi_pass @PHPA@; }
        location ~ /\\.ht { deny all; }
    """,
    PATHS[:34] + ["GET /.htaccess", post("/echo.php", "a=1", FORM)],
)
server(
    "Debian's snippet with path info",
    """
        index index.php;
        location / { try_files $uri $uri/ /index.php$is_args$args; }
        location ~ [^/]\\.php(/|$) { include snippets/fastcgi-php.conf; fastcgi_pass @PHPA@; }
    """,
    PATHS[:34],
)
server(
    "path info by hand",
    """
        location ~ ^(.+\\.php)(.*)$ {
            fastcgi_split_path_info ^(.+\\.php)(.*)$; include fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param PATH_INFO $fastcgi_path_info;
            fastcgi_param PATH_TRANSLATED $document_root$fastcgi_path_info; fastcgi_pass @PHPA@;
        }
    """,
    [
        "GET /env.php",
        "GET /env.php/",
        "GET /env.php/a/b?c",
        "GET /env.php/a%20b",
        "GET /env.php/x.php/y",
        "GET /none.php/x",
        "GET /dot.d/env.php/x",
        "GET /env.phpx",
        "GET /style.css/x.php",
        "GET /env.php%2fx",
        "GET /env.php/%2e%2e/x",
    ],
)
server(
    "split that does not match",
    """
        location / {
            fastcgi_split_path_info ^(/x)(.*)$; include fastcgi.conf;
            fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_pass @PHPA@;
        }
    """,
    ["GET /env.php", "GET /env.php/a", "GET /xenv.php", "GET /"],
)
server(
    "fastcgi_index",
    """
        location / { fastcgi_index env.php; include fastcgi.conf; fastcgi_pass @PHPA@; }
        location /wp/ {
            fastcgi_index index.php; include fastcgi.conf; fastcgi_pass @PHPA@;
        }
        location /dir/ { include fastcgi.conf; fastcgi_pass @PHPA@; }
    """,
    ["GET /", "GET /?a=b", "GET /wp/", "GET /dir/", "GET /env.php", "GET /wp/none/", "GET /dir"],
)

FRONTS: list[Case] = [
    "GET /",
    "GET /?a=b",
    "GET /hello/world",
    "GET /hello/world?a=b",
    "GET /style.css",
    "GET /dir",
    "GET /dir/",
    "GET /env.php",
    "GET /none.php",
    "GET /env.php/x",
    "GET /wp/",
    "GET /wp/a/b?c=d",
    "GET /index.php",
    "GET /index.php/a",
    "GET /a%20b/%3f?x=%20",
    "POST /hello",
    "GET //x",
    "GET /secret/",
    "GET /.env",
    "HEAD /hello",
    post("/hello/there", "a=1", FORM),
]
for name, rule in (
    ("WordPress", "try_files $uri $uri/ /index.php?$args;"),
    ("Laravel", "try_files $uri $uri/ /index.php?$query_string;"),
    ("Symfony", "try_files $uri /index.php$is_args$args;"),
    ("Drupal", "try_files $uri /index.php?q=$uri&$args;"),
    ("named", "try_files $uri @php;"),
    ("fallback", "try_files $uri $uri/index.php =404;"),
):
    named = (
        """
            location @php {
                include fastcgi.conf; fastcgi_param SCRIPT_FILENAME $document_root/index.php;
                fastcgi_param SCRIPT_NAME /index.php; fastcgi_pass @PHPA@;
            }
        """
        if name == "named"
        else ""
    )
    php(
        f"front controller of {name}",
        "",
        FRONTS,
        rest=f"index index.php; location / {{ {rule} }} {named}",
    )
php(
    "front controller by internal",
    "internal;",
    FRONTS[:12],
    rest="location / { try_files $uri /index.php$is_args$args; }",
)
server(
    "scripts must exist",
    """
        location ~ \\.php$ {
            try_files $uri =404; include fastcgi.conf; fastcgi_pass @PHPA@;
        }
        location ~ /\\. { deny all; }
        location ~* /(?:uploads|dir)/.*\\.php$ { deny all; }
    """,
    [
        "GET /env.php",
        "GET /none.php",
        "GET /style.css/x.php",
        "GET /upload.jpg/x.php",
        "GET /.env",
        "GET /dir/env.php",
        "GET /secret/file.txt",
    ],
)

php(
    "intercepted errors",
    "fastcgi_intercept_errors on;",
    [
        say(s=status)
        for status in (200, 304, 400, 401, 403, 404, 405, 410, 418, 429, 500, 502, 503, 504)
    ]
    + [
        say("X-A: 1", "Set-Cookie: a=1", s=404),
        say("WWW-Authenticate: Basic realm=x", s=401),
        say("Location: /y", s=302),
        say("Retry-After: 9", s=503),
        say(s=404, request="HEAD"),
        "GET /fatal.php",
        "GET /none.php",
        post("/say.php?s=404", "x"),
        say(s=403),
    ],
    rest="""
        error_page 404 /errors/404.html; error_page 500 502 503 504 /errors/50x.html;
        error_page 403 =200 /error.php; error_page 410 =404 /error.php?s=410; error_page 401 @named;
        error_page 302 /error.php;
        location @named { return 401 "own 401"; }
    """,
)
php(
    "errors that pass",
    "",
    [
        say(s=404),
        say(s=500),
        "GET /none.txt",
        "GET /none.php",
        "HEAD /none.txt",
        "POST /none.txt | Content-Length: 0",
        "GET /none.txt?a=b",
    ],
    rest="error_page 404 /error.php; error_page 500 /errors/50x.html;",
)
php(
    "error pages by PHP",
    "fastcgi_intercept_errors on;",
    [
        "GET /none.txt",
        "GET /none.txt?a=b",
        "GET /none.php",
        "HEAD /none.txt",
        post("/none.txt", "lost"),
        "GET /403",
        "GET /500",
        "DELETE /none.txt",
        say(s=404),
    ],
    rest="""
        error_page 404 = /error.php; error_page 403 =403 /error.php?s=200;
        error_page 500 /error.php?s=500;
        location /403 { return 403; }
        location /500 { return 500; }
    """,
)
php(
    "recursive error pages",
    (
        "fastcgi_intercept_errors on; recursive_error_pages on; error_page 404 /error.php?s=410; "
        "error_page 410 /errors/404.html;"
    ),
    [say(s=404), say(s=410), "GET /none.php"],
)

php(
    "hidden headers",
    "fastcgi_hide_header X-A; fastcgi_hide_header set-cookie; fastcgi_hide_header Content-Type;",
    [
        say("X-A: 1", "X-B: 2"),
        say("Set-Cookie: a=1", "x-a: 1"),
        say("X-AB: 1"),
        say("Content-Type: text/css"),
    ],
)
php(
    "passed headers",
    (
        "fastcgi_pass_header X-Accel-Expires; fastcgi_pass_header Status; "
        "fastcgi_pass_header X-Accel-Limit-Rate; fastcgi_pass_header Server; "
        "fastcgi_pass_header Date; fastcgi_pass_header X-Accel-Redirect; "
        "fastcgi_pass_header X-Accel-Buffering; fastcgi_pass_header X-Accel-Charset;"
    ),
    [
        say("X-Accel-Expires: 5"),
        say("Status: 201 Made"),
        say("X-Accel-Limit-Rate: 100000"),
        say("X-Accel-Buffering: no"),
        say("X-Accel-Charset: utf-8"),
        say("X-Accel-Redirect: /style.css"),
        say("Server: other"),
        say("Date: Tue, 14 Nov 2023 22:13:20 GMT"),
    ],
)
php(
    "ignored headers",
    (
        "fastcgi_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate "
        "X-Accel-Buffering X-Accel-Charset Expires Cache-Control Set-Cookie Vary;"
    ),
    [
        say("X-Accel-Redirect: /style.css"),
        say("X-Accel-Charset: koi8-r"),
        say("X-Accel-Expires: 1"),
        say("X-Accel-Buffering: no"),
        say("X-Accel-Limit-Rate: 1"),
        say("Expires: 0", "Cache-Control: x", "Set-Cookie: a=1", "Vary: x"),
    ],
)
php(
    "X-Accel",
    "",
    [
        say("X-Accel-Redirect: /style.css"),
        say("X-Accel-Redirect: /internal/file.txt"),
        say(
            "X-Accel-Redirect: /internal/file.txt",
            "Content-Type: text/x",
            "Content-Disposition: attachment",
            "X-Own: 1",
            "Set-Cookie: a=1",
            "Set-Cookie: b=2",
            'ETag: "own"',
            "Cache-Control: no-store",
            "Expires: 0",
            "Last-Modified: Mon, 13 Nov 2023 22:13:20 GMT",
            "Content-Length: 5",
        ),
        say("X-Accel-Redirect: /internal/none.txt"),
        say("X-Accel-Redirect: /env.php?from=accel"),
        say("X-Accel-Redirect: /env.php?a=1", request="HEAD"),
        post("/say.php?h[]=X-Accel-Redirect:%20/env.php", "body of a post"),
        say("X-Accel-Redirect: @named"),
        say("X-Accel-Redirect: /a%20b"),
        say("X-Accel-Redirect: relative"),
        say("X-Accel-Redirect: /../x"),
        say("X-Accel-Redirect:"),
        say("X-Accel-Redirect: http://other/x"),
        say("X-Accel-Redirect: /internal/file.txt", s=404),
        say("X-Accel-Redirect: /internal/file.txt", s=403, request="HEAD"),
        say("X-Accel-Redirect: /internal/file.txt", more=" | Range: bytes=0-3"),
        say(
            "X-Accel-Redirect: /internal/file.txt",
            more=" | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        ),
        "GET /internal/file.txt",
        say("X-Accel-Redirect: /loop"),
        say("X-Accel-Charset: utf-8"),
        say("X-Accel-Charset: utf-8", "Content-Type: text/html"),
        say("X-Accel-Charset: off", "Content-Type: text/html; charset=x"),
        say("X-Accel-Buffering: no"),
        say("X-Accel-Buffering: yes"),
        say("X-Accel-Buffering: x"),
        say("X-Accel-Limit-Rate: 1000000"),
        say("X-Accel-Limit-Rate: off"),
        say("X-Accel-Limit-Rate: x"),
        say("X-Accel-Expires: 3"),
        say("X-Accel-Other: 3"),
        say("X-Accel-Buffering: no", n=100000),
        say("X-Accel-Redirect: /style.css", "Location: /x"),
        say("X-Accel-Redirect: /say.php?h[]=X-Accel-Redirect:%2520/style.css"),
    ],
    rest="""
        location /internal/ { internal; alias @DIR@/app/secret/; }
        location @named { return 200 named; }
        location /loop {
            fastcgi_pass @PHPA@; include fastcgi.conf;
            fastcgi_param SCRIPT_FILENAME @DIR@/app/say.php;
            fastcgi_param QUERY_STRING 'h[]=X-Accel-Redirect:/loop';
        }
    """,
)

KEEP: list[Case] = [
    *((f"request {n}", "GET /pool.php") for n in range(4)),
    post("/echo.php", "a=1", FORM),
    "GET /big.php?n=1000",
    say(s=204),
    say(s=304),
    "HEAD /page.php",
    "GET /fatal.php",
    "GET /stderr.php",
    post("/echo.php", b"x" * 100_000, label="100000"),
    "GET /flush.php",
    "GET /empty.php",
]
server(
    "kept connections",
    "location ~ \\.php$ { include fastcgi.conf; fastcgi_keep_conn on; fastcgi_pass php; }",
    KEEP,
    before="upstream php { server @PHPA@; keepalive 4; }",
)
server(
    "kept connections by TCP",
    """
        location ~ \\.php$ {
            include fastcgi.conf; fastcgi_keep_conn on; fastcgi_socket_keepalive on;
            fastcgi_pass @PHPC@;
        }
    """,
    KEEP,
)
php(
    "unbuffered requests",
    "fastcgi_request_buffering off; client_max_body_size 250k;",
    [case for case in BODIES if case[0] != "body of 300000"],
)
php(
    "bodies on disk",
    "client_body_buffer_size 1k; client_body_in_file_only clean; client_max_body_size 0;",
    BODIES[:8] + [chunked("/echo.php", *[b"z" * 10_000] * 10)],
)
php(
    "limits of bodies",
    "client_max_body_size 100;",
    [
        post("/echo.php", "x" * 100),
        post("/echo.php", "x" * 101),
        post("/echo.php", "x" * 101, "Expect: 100-continue"),
        chunked("/echo.php", b"x" * 100),
        chunked("/echo.php", b"x" * 60, b"x" * 60),
        post("/echo.php", ""),
        post("/echo.php", "x" * 200, method="PUT"),
    ],
)
php(
    "parts of a request",
    (
        "fastcgi_pass_request_body off; fastcgi_pass_request_headers off; "
        "fastcgi_param CONTENT_LENGTH '';"
    ),
    [
        post("/echo.php", "a=1", FORM, "X: y"),
        "GET /env.php | X: 1 | Cookie: a=b",
        "GET /auth.php | Authorization: Basic YTpi",
    ],
)
server(
    "params",
    """
        location ~ \\.php$ {
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string;
            fastcgi_param EMPTY ''; fastcgi_param ABSENT $arg_none if_not_empty;
            fastcgi_param PRESENT $arg_a if_not_empty; fastcgi_param TWICE 1; fastcgi_param TWICE 2;
            fastcgi_param HTTP_X changed; fastcgi_param HTTP_PROXY '';
            fastcgi_param HTTP_COOKIE $http_cookie; fastcgi_param HTTP_GONE '' if_not_empty;
            fastcgi_param HTTP_NEW $arg_a if_not_empty; fastcgi_param LONG '%s';
            fastcgi_param PHP_VALUE 'precision=9'; fastcgi_param PHP_ADMIN_VALUE "memory_limit=64M";
            fastcgi_param MIXED "a$request_uri b${uri}c"; fastcgi_pass @PHPA@;
        }
    """
    % ("l" * 300),
    [
        "GET /env.php?a=1",
        "GET /env.php",
        "GET /env.php | X: 1 | Proxy: x | Cookie: a=b | Gone: 1 | New: 2",
        "GET /env.php?a=1 | X: 1 | New: 2",
        "GET /page.php | Gone: 2",
    ],
)
server(
    "params are inherited or not",
    """
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        fastcgi_param REQUEST_METHOD $request_method; fastcgi_param OUTER 1;
        location / { fastcgi_pass @PHPA@; }
        location /dir/ {
            fastcgi_param INNER 1; fastcgi_param SCRIPT_FILENAME $document_root/env.php;
            fastcgi_param REQUEST_METHOD $request_method; fastcgi_pass @PHPA@;
        }
        location /wp/ { fastcgi_pass @PHPA@; fastcgi_hide_header X-A; }
    """,
    ["GET /env.php", "GET /dir/env.php", "GET /wp/index.php"],
)
server(
    "no script",
    """
        location / { fastcgi_param REQUEST_METHOD $request_method; fastcgi_pass @PHPA@; }
        location /none/ { include fastcgi.conf; fastcgi_pass @PHPA@; }
    """,
    ["GET /env.php", "GET /none/x.php", "POST / | Content-Length: 0"],
)
php(
    "authorization",
    "fastcgi_param AUTH_TYPE Basic if_not_empty;",
    [
        "GET /auth.php",
        "GET /auth.php | Authorization: Basic YTpi",
        "GET /auth.php | Authorization: basic YTpi",
        "GET /auth.php | Authorization: Bearer abc",
        'GET /auth.php | Authorization: Digest username="a"',
        "GET /auth.php | Authorization: Basic !!",
        "GET /auth.php | Authorization: Basic YTpi | Authorization: Basic Yzpk",
    ],
)

php(
    "gzip",
    "gzip on; gzip_types text/plain; gzip_min_length 100; gzip_vary on;",
    [
        f"GET {path}{more} | Accept-Encoding: gzip"
        for path in ("/page.php", "/big.php?n=100", "/say.php", "/length.php?n=100", "/flush.php")
        for more in ("", " HTTP/1.0")
    ]
    + [
        "GET /page.php",
        "HEAD /page.php | Accept-Encoding: gzip",
        say('ETag: "x"', n=500, more=" | Accept-Encoding: gzip"),
        say('ETag: W/"x"', n=500, more=" | Accept-Encoding: gzip"),
        say("Content-Encoding: br", n=500, more=" | Accept-Encoding: gzip"),
        say("Content-Type: image/png", n=500, more=" | Accept-Encoding: gzip"),
        say(s=404, n=500, more=" | Accept-Encoding: gzip"),
        say(s=403, n=500, more=" | Accept-Encoding: gzip"),
        say(s=500, n=500, more=" | Accept-Encoding: gzip"),
        say(s=204, more=" | Accept-Encoding: gzip"),
        say("Vary: Cookie", n=500, more=" | Accept-Encoding: gzip"),
        say("Cache-Control: no-transform", n=500, more=" | Accept-Encoding: gzip"),
        say(n=500, more=" | Accept-Encoding: gzip | Via: x"),
        say(
            "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT",
            n=500,
            more=" | Accept-Encoding: gzip | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        ),
    ],
    lengths="coded",
)
php(
    "gzip and caches",
    "gzip on; gzip_types *; gzip_min_length 0; gzip_proxied expired no-cache no-store private;",
    [
        say(field, n=100, more=" | Accept-Encoding: gzip | Via: x")
        for field in (
            "X: y",
            "Expires: Thu, 19 Nov 1981 08:52:00 GMT",
            "Expires: Thu, 19 Nov 2099 08:52:00 GMT",
            "Cache-Control: no-cache",
            "Cache-Control: no-store",
            "Cache-Control: private",
            "Cache-Control: public",
            "Cache-Control: max-age=0, Private",
        )
    ],
    lengths="coded",
)
php(
    "headers added",
    "add_header X-Own 1; add_header X-Always 2 always; expires max; charset utf-8; etag on;",
    [
        say(),
        say(s=404),
        say(s=500),
        say("X-Own: php"),
        say("Cache-Control: no-store"),
        say("Expires: 0"),
        say("Content-Type: text/html"),
        say("Content-Type: text/html; charset=x"),
        say(s=304),
        say("Location: /x"),
        "GET /length.php",
    ],
)
php(
    "upstream variables",
    (
        'add_header X-U "$upstream_addr|$upstream_status|$fastcgi_script_name|$fastcgi_path_info|'
        '$upstream_http_x_a|$upstream_cookie_c|$request_body|$sent_http_content_type" always;'
    ),
    [
        "GET /env.php",
        say("X-A: 1", "X-A: 2", "Set-Cookie: c=5; path=/"),
        say(s=404),
        post("/echo.php", "a=1", FORM),
        chunked("/echo.php", b"abc"),
    ],
)
php(
    "ranges",
    "fastcgi_force_ranges on;",
    [f"GET /length.php?n=20 | Range: bytes={r}" for r in ("0-3", "5-", "-4", "0-3,8-11", "500-")]
    + [
        "GET /big.php?n=100 | Range: bytes=0-3",
        say(
            'ETag: "x"',
            "Content-Length: 5",
            text="12345",
            more=' | Range: bytes=0-1 | If-Range: "x"',
        ),
        say(
            'ETag: "x"',
            "Content-Length: 5",
            text="12345",
            more=' | Range: bytes=0-1 | If-Range: "y"',
        ),
        say("Content-Length: 5", s=404, text="12345", more=" | Range: bytes=0-1"),
        "HEAD /length.php?n=20 | Range: bytes=0-3",
    ],
)
php(
    "without ranges",
    "",
    [
        "GET /length.php?n=20 | Range: bytes=0-3",
        say("Accept-Ranges: bytes", "Content-Length: 5", text="12345", more=" | Range: bytes=0-1"),
    ],
)
