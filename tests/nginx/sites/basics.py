"""Owns: the sites of static files, and of what most servers do to requests."""

from ..site import Case, http, server
from ..text import numbers, words
from . import requests as r

server("plain", "", r.PATHS + r.METHODS + r.CONDITIONS + r.RANGES)
server("syntax", "", r.REQUEST_LINES + r.HEADERS + r.HOSTS + r.CONNECTIONS + r.BODIES)

server("names in requests", "location = / { return 200 '$host'; }", r.NAMES)
http(
    "clients that wait for 100",
    """
    server {
        listen 127.0.0.1:@P0@;
        root @DIR@/www;
        location = /file { alias @DIR@/www/hello.txt; }
        location /text { return 200 text; }
        location /moved { return 301 /; }
        location /words { return 404 words; }
        location /none { return 404; }
        location /denied { deny all; }
        location /own { error_page 403 /hello.txt; return 403; }
        location /passed { proxy_ignore_client_abort on; proxy_pass http://127.0.0.1:@P1@; }
    }
    server { listen 127.0.0.1:@P1@; location / { return 200 "origin $http_expect"; } }
""",
    r.WAITING,
)

server(
    "header options",
    "underscores_in_headers on; location / { return 200 '$http_a_b|$http_x'; }",
    [
        "GET / | A_B: 1",
        "GET / | A.B: 1",
        "GET / | a-b: 1",
        "GET / | X: 1 | X: 2",
        "GET / | X:",
        "GET / | X: \t a \t",
    ],
)
server(
    "headers that are wrong are refused",
    "ignore_invalid_headers off;",
    [
        "GET /hello.txt | A_B: 1",
        "GET /hello.txt | A.B: 1",
        "GET /hello.txt | A b: 1",
        "GET /hello.txt | @: 1",
        "GET /hello.txt | A/B: 1",
        "GET /hello.txt | \x7fA: 1",
        "GET /hello.txt | : 1",
    ],
)
server(
    "slashes stay",
    "merge_slashes off; location / { return 200 $uri; } location /a//b { return 200 two; }",
    [
        "GET //",
        "GET /a//b",
        "GET /a/b",
        "GET //a/../b",
        "GET /a//../b",
        "GET /a%2f%2fb",
        "GET /a/.//b",
    ],
)
server(
    "small buffers",
    "client_header_buffer_size 256; large_client_header_buffers 2 1k; client_max_body_size 10;",
    [
        ("line of 1000", "GET /" + "a" * 980),
        ("line of 1024 with end", b"GET /" + b"a" * 1008 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("line of 1025 with end", b"GET /" + b"a" * 1009 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("line of 2000", "GET /" + "a" * 2000),
        ("field of 900", "GET /hello.txt | A: " + "a" * 900),
        ("field of 1024 with end", b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 1019 + b"\r\n\r\n"),
        ("field of 1030", "GET /hello.txt | A: " + "a" * 1030),
        ("two fields of 900", "GET /hello.txt | A: " + "a" * 900 + " | B: " + "b" * 900),
        (
            "three fields of 900",
            "GET /hello.txt | A: " + "a" * 900 + " | B: " + "b" * 900 + " | C: " + "b" * 900,
        ),
        "POST /hello.txt | Content-Length: 11",
        b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
        b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123456789a",
        (
            b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n"
            b"0123456789a\r\n0\r\n\r\n"
        ),
        b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123456789a",
        "PUT /hello.txt | Content-Length: 11 | Expect: 100-continue",
    ],
)
server(
    "many fields",
    "max_headers 5; location / { return 200 ok; }",
    [
        "GET / | A: 1 | B: 1 | C: 1 | D: 1",
        "GET / | A: 1 | B: 1 | C: 1 | D: 1 | E: 1",
        "GET / | A_B: 1 | B_A: 1 | C: 1 | D: 1 | E: 1",
    ],
)

server(
    "index",
    """
    location / { index index.php index.html; }
    location = /exact/ { index index.html; alias @DIR@/www/dir/; }
    location /php/ { index index.php; }
    location ~ \\.php$ { return 200 "php $uri|$args"; }
    location /second/ { index first.html second.html /fallback.html; }
    location /noindex/ { index none.html /fallback.html; }
    location /indexdir/ { index index.html; }
    location /var/ { alias @DIR@/www/second/; index $arg_i.html second.html; }
    location /gone/ { index x.html; }
    location /emptydir/ { index a b c; }
""",
    [
        "GET /",
        "GET /?q=1",
        "GET /dir/",
        "GET /dir",
        "GET /dir?x=1",
        "GET /php/",
        "GET /php/?a=b",
        "GET /second/",
        "GET /noindex/",
        "GET /indexdir/",
        "GET /indexdir/index.html",
        "GET /indexdir/index.html/",
        "GET /exact/",
        "GET /exact",
        "GET /var/?i=second",
        "GET /var/?i=none",
        "GET /var/",
        "GET /gone/",
        "GET /gone/more/",
        "GET /emptydir/",
        "GET /emptydir",
        "GET /hello.txt/",
        "HEAD /",
        "POST /",
        "PUT /",
        "OPTIONS /",
        "DELETE /dir/",
        "GET /index.html/",
        "GET /nothere/",
        "GET /linkdir/",
        "GET /linkdir",
        "GET /dir%20with%20space",
        "GET /dir%20with%20space/",
        "GET /a",
        "GET /a/b?",
        "GET /loop/",
        "GET /dangling/",
        "GET /fifo/",
    ],
    log=True,
)

LISTS = [
    "GET /list/",
    "HEAD /list/",
    "GET /list/ HTTP/1.0",
    "GET /list",
    "GET /list/sub/",
    "GET /",
    "GET /emptydir/",
    "GET /list/?x=1",
    "GET /list/ | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
    "GET /list/ | Range: bytes=0-9",
    "POST /list/",
    "PUT /list/",
    "GET /nothere/",
    "GET /dir/",
    "GET /list/ | Accept-Encoding: gzip",
    "GET /a/../list/",
    "GET /list/?callback=f",
    "GET /list/?callback=f(1)",
]
server("autoindex", "autoindex on;", LISTS, lengths="any")
server(
    "autoindex rounded",
    "autoindex on; autoindex_exact_size off; autoindex_localtime on; charset utf-8;",
    LISTS[:7],
    lengths="any",
)
server("autoindex json", "autoindex on; autoindex_format json;", LISTS, lengths="any")
server("autoindex xml", "autoindex on; autoindex_format xml;", LISTS[:8], lengths="any")
server(
    "autoindex jsonp",
    "autoindex on; autoindex_format jsonp;",
    LISTS + ["GET /list/?callback=", "GET /list/?callback=a.b-c[1]"],
    lengths="any",
)
server(
    "autoindex and alias",
    """
        location /files/ { alias @DIR@/www/list/; autoindex on; }
        location ~ ^/re/(.*)$ { alias @DIR@/www/$1; autoindex on; }
    """,
    [
        "GET /files/",
        "GET /files",
        "GET /files/sub/",
        "GET /files/sub",
        "GET /files/none/",
        "GET /re/list/",
        "GET /re/list",
        "GET /re/hello.txt",
    ],
    lengths="any",
)
server(
    "autoindex and gzip",
    "autoindex on; gzip on; gzip_types application/json; chunked_transfer_encoding off;",
    LISTS[:4] + ["GET /list/ | Accept-Encoding: gzip"],
    lengths="any",
)

server(
    "error_page",
    """
    error_page 404 /errors/404.html;
    error_page 403 =200 /errors/denied.txt;
    error_page 405 = /fallback.html;
    error_page 410 http://elsewhere.test/gone;
    error_page 411 =301 http://elsewhere.test/$uri;
    error_page 412 =307 /elsewhere;
    error_page 418 =499 /fallback.html;
    error_page 420 422 =204 /fallback.html;
    error_page 500 502 503 504 /errors/50x.html;
    error_page 413 @named;
    error_page 416 =206 @named;
    error_page 423 =424 @named;
    error_page 425 /nothere.html;
    error_page 426 /code/500;
    error_page 428 @missing;
    error_page 429 /page?a=b;
    error_page 431 $uri.html;
    error_page 400 /errors/404.html;
    location @named { return 200 "named $uri $args $request_method $status"; }
    location /page { return 200 "page $uri $args $request_method"; }
    location /in { internal; return 200 inside; }
    location /code/403 { return 403; }
    location /code/404 { return 404; }
    location /code/405 { return 405; }
    location /code/410 { return 410; }
    location /code/411 { return 411; }
    location /code/418 { return 418; }
    location /code/420 { return 420; }
    location /code/500 { return 500; }
    location /code/503 { return 503; }
    location /code/413 { return 413; }
    location /code/423 { return 423; }
    location /code/425 { return 425; }
    location /code/426 { return 426; }
    location /code/428 { return 428; }
    location /code/429 { return 429; }
    location /code/431 { return 431; }
    location /code/431.html { return 200 "431 page"; }
    location /code/416 { return 416; }
    location /text { return 404 "own text"; }
    location /empty { return 404 ""; }
    location /own { error_page 404 = /own-page; } location /own-page { return 200 own; }
    location /none { error_page 599 /x; }
    location /code/408 { return 408; }
    location /code/499 { return 499; }
    location /code/444 { return 444; }
    location /code/494 { return 494; }
    location /code/497 { return 497; }
    location /code/400 { return 400; }
    location /code/304 { return 304; }
    location /code/204 { return 204; }
    location /code/599 { return 599; }
    location /code/505 { return 505; }
""",
    [
        f"GET /code/{n}"
        for n in numbers("""
    403 404 405 410 411 418 420 500 503 413 416 423 425 426 428 429 431 408 499 444 494 497
    400 304 204 599 505
""")
    ]
    + [
        "GET /nothere",
        "GET /nothere?x=y",
        "POST /nothere",
        "HEAD /nothere",
        "PUT /nothere",
        "PUT /hello.txt",
        "OPTIONS /hello.txt",
        "POST /hello.txt",
        "GET /noindex/",
        "GET /in",
        "GET /text",
        "GET /empty",
        "GET /own/x",
        "GET /none/x",
        "GET /errors/404.html",
        "HEAD /code/410",
        "HEAD /code/423",
        'GET /hello.txt | If-Match: "x"',
        "GET /hello.txt | Range: bytes=100-",
        "GET /nothere | Range: bytes=0-3",
        "GET /nothere | If-None-Match: *",
        "GET /nothere | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        "GET / HTTP/2.5",
        "GET /%00",
        "GET / | -Host",
        b"POST /nothere HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "GET /code/404 HTTP/1.0",
        "GET /code/404 | Connection: close",
    ],
)
server(
    "error pages that lead on",
    """
    recursive_error_pages on;
    error_page 404 /first; error_page 405 /third; error_page 410 @third;
    location /first { return 405; }
    location /third { return 410; }
    location @third { return 200 third; }
    location /loop { error_page 404 /loop; return 404; }
    location /named { error_page 404 = @a; return 404; }
    location @a { error_page 403 = @b; return 403; }
    location @b { return 200 b; }
""",
    ["GET /x", "GET /loop", "GET /named", "HEAD /x", "POST /x"],
)
server(
    "error page is a file that is asked for",
    "error_page 404 403 /fallback.html; location = /fallback.html { internal; }",
    [
        "GET /x",
        "GET /fallback.html",
        "GET /noindex/",
        "GET /x | Range: bytes=0-2",
        "GET /x | Accept-Encoding: gzip",
        "HEAD /x",
    ],
)

CODES = numbers("""
    200 201 202 203 204 205 206 207 226 300 301 302 303 304 305 306 307 308 309 400 401 402
    403 404 405 406 407 408 409 410 411 412 413 414 415 416 417 418 421 422 423 424 425 426
    428 429 430 431 451 494 495 496 497 498 499 500 501 502 503 504 505 506 507 508 510 511
    599 600 999
""")
server(
    "return",
    "\n".join(
        f"location = /{n} {{ return {n}; }} location = /{n}/t {{ return {n} 'text $uri'; }}"
        for n in CODES
    )
    + """
    location /url { return http://a.test/x; }
    location /url2 { return https://a.test/$args; }
    location /url3 { return $scheme://a.test$request_uri; }
    location /rel { return 302 /x/y?z; }
    location /rel2 { return 301 x/y; }
    location /rel3 { return 307 $arg_to; }
    location /303 { return 303 //host/x; }
    location /space { return 301 "/a b"; }
    location /uml { return 301 "/\u00fc"; }
    location /pct { return 302 "/%41?a=%20"; }
    location /crlf { return 302 /x$uri; }
    location /empty { return 200 ""; }
    location /nl { return 200 "a\\nb\\n"; }
    location /quote { return 200 "a\\"b'c"; }
    location /type { default_type text/html; return 200 "<p>x</p>"; }
    location /json { default_type application/json; charset utf-8; return 200 '{}'; }
    location /notype { default_type ""; return 200 x; }
    location = /t.html { return 200 html; } location = /t.css { return 404 css; }
    location /abs { absolute_redirect off; return 301 /there; }
    location /abs2 { absolute_redirect off; return 301 http://x.test/; }
    location /dollar { return 200 "$$"; }
    """.replace('location /dollar { return 200 "$$"; }', ""),
    [f"GET /{n}" for n in CODES]
    + [f"GET /{n}/t" for n in CODES]
    + [
        "GET /url",
        "GET /url2?a=b",
        "GET /url3?a",
        "GET /rel",
        "GET /rel2",
        "GET /rel3?to=/a",
        "GET /rel3?to=http://x/",
        "GET /rel3",
        "GET /303",
        "GET /space",
        "GET /uml",
        "GET /pct",
        "GET /crlf%0d%0aX:1",
        "GET /empty",
        "GET /nl",
        "GET /quote",
        "GET /type",
        "GET /json",
        "GET /notype",
        "GET /t.html",
        "GET /t.css",
        "GET /abs",
        "GET /abs2",
        "HEAD /200/t",
        "HEAD /404",
        "HEAD /301/t",
        "POST /200/t",
        "PUT /200/t",
        "DELETE /204",
        "OPTIONS /200/t",
        "GET /200/t HTTP/1.0",
        "GET /404 HTTP/1.0",
        "GET /200/t | Range: bytes=0-1",
        "GET /200/t | If-None-Match: *",
        "GET /200/t | If-Match: *",
        "GET /200/t | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        "GET /200/t | If-Unmodified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        b"POST /200/t HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        (
            b"POST /200/t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
            b"0\r\n\r\n"
        ),
        b"POST /404 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "FOO /200/t",
        "GET /rel | Host: Upper.Test:99",
        "GET /rel HTTP/1.0",
    ],
)
server(
    "return of the server",
    "return 301 https://x.test$request_uri; location / { return 200 never; }",
    ["GET /a?b", "HEAD /", "POST /", "PUT /x", "GET //a/../b", "GET /%2f", "OPTIONS * "[:-1]],
)

server(
    "try_files",
    """
    location / { try_files $uri $uri/ $uri.html =404; }
    location /named/ { try_files $uri @named; } location @named { return 200 "named $uri $args"; }
    location /fb/ { try_files $uri /fallback.html; }
    location /fbq/ { try_files $uri /show?a=b; }
    location /fbq2/ { try_files $uri /show?$args; }
    location /show { return 200 "show $uri|$args"; }
    location /code/ { try_files /none =418; }
    location /code444/ { try_files /none =444; }
    location /code200/ { try_files /none =200; } location /code301/ { try_files /none "" =301; }
    location /code308/ { error_page 404 =301 @bare; try_files /none =308; }
    location /code307/ { error_page 307 @bare; try_files /none =307; }
    location /code302/ { error_page 302 =303 ""; try_files /none =302; }
    location @bare { return 302; }
    location /al/ { alias @DIR@/www/other/; try_files $uri $uri/ /fallback.html; }
    location /al2/ { alias @DIR@/www/other/; try_files x.txt =404; }
    location ~ ^/re/(.+)$ { alias @DIR@/www/$1; try_files "" =404; }
    location ~ ^/re2/(?<f>.+)$ { root @DIR@/www; try_files /$f /dir/$f =404; }
    location /dir2/ { try_files /dir/ =404; } location /dir3/ { try_files /dir =404; }
    location /loop/ { try_files /none /loop/; }
    location /pct/ { try_files /hello%2etxt /hello.txt =404; }
    location /missing/ { try_files /none @nothere; }
    location /fbdir/ { try_files /none /dir/; } location /fbdir2/ { try_files /none /dir; }
    location /put/ { try_files /hello.txt =404; }
""",
    [
        "GET /",
        "GET /hello.txt",
        "GET /page",
        "GET /page?x=1",
        "GET /dir",
        "GET /dir/",
        "GET /noindex",
        "GET /noindex/",
        "GET /none",
        "GET /named/x?q=1",
        "GET /fb/x",
        "GET /fb/x?q",
        "GET /fbq/x?q=1",
        "GET /fbq2/x?q=1",
        "GET /fbq2/x",
        "GET /code/x",
        "GET /code444/x",
        "GET /code200/x",
        "GET /al/x.txt",
        "GET /al/sub/y.txt",
        "GET /al/sub",
        "GET /al/",
        "GET /al/none",
        "GET /al2/whatever",
        "GET /re/hello.txt",
        "GET /re/none",
        "GET /re/dir",
        "GET /re2/file.txt",
        "GET /re2/hello.txt",
        "GET /re2/x",
        "GET /dir2/",
        "GET /dir2/x",
        "GET /dir3/",
        "GET /code301/x",
        "GET /code308/x",
        "GET /code307/x",
        "GET /code302/x",
        "GET /loop/x",
        "GET /pct/",
        "GET /missing/",
        "GET /fbdir/x",
        "GET /fbdir2/x",
        "HEAD /page",
        "POST /page",
        "PUT /hello.txt",
        "PUT /none",
        "PUT /named/x",
        "GET /put/x",
        "PUT /put/x",
        "GET /hello.txt/",
        "GET /dir/file.txt/",
        "GET /dangling",
        "GET /loop",
        "GET /fifo",
        "GET /linkdir",
        "GET /with%20space.txt",
        "GET /que%3fstion.txt",
    ],
    log=True,
)
server(
    "try_files of the server",
    "try_files /none /hello.txt; location /loc { }",
    ["GET /x", "GET /loc", "GET /page.html"],
)

server(
    "alias",
    """
    location /i/ { alias @DIR@/www/other/; }
    location /j { alias @DIR@/www/other; }
    location /k/ { alias @DIR@/www/other; }
    location /l { alias @DIR@/www/other/; }
    location = /one { alias @DIR@/www/hello.txt; }
    location ~ ^/u/(\\w+)/(.*)$ { alias @DIR@/www/$1/$2; }
    location ~* \\.jpg$ { alias @DIR@/www/photo.jpg; }
    location ~ ^/noargs/ { alias @DIR@/www/dir/; }
    location /nest/ {
        alias @DIR@/www/other/;
        location ~ \\.txt$ { add_header X nested; }
        location /nest/sub/ { }
    }
    location /v/ { alias @DIR@/www/$arg_d/; }
    location /f/ { alias @DIR@/www/hello.txt; }
    location /r/ { root @DIR@; }
    location /www/ { root @DIR@; }
    location /sub/ { root @DIR@/www/$arg_r; }
    location /rel/ { root www; } location /relalias/ { alias www/dir/; }
""",
    [
        "GET /i/x.txt",
        "GET /i/",
        "GET /i",
        "GET /i/sub",
        "GET /i/sub/",
        "GET /i/sub/?q",
        "GET /i/../hello.txt",
        "GET /i../hello.txt",
        "GET /j/x.txt",
        "GET /j",
        "GET /j/",
        "GET /jx",
        "GET /k/x.txt",
        "GET /k/",
        "GET /l/x.txt",
        "GET /lx.txt",
        "GET /l",
        "GET /one",
        "GET /one/",
        "GET /one?x",
        "GET /u/other/x.txt",
        "GET /u/dir/",
        "GET /u/dir",
        "GET /u/a/b",
        "GET /x/y.JPG",
        "GET /noargs/file.txt",
        "GET /noargs/",
        "GET /nest/x.txt",
        "GET /nest/sub/y.txt",
        "GET /nest/sub",
        "GET /nest/",
        "GET /v/x?d=dir",
        "GET /v/file.txt?d=dir",
        "GET /v/file.txt",
        "GET /f/",
        "GET /f/x",
        "GET /r/x",
        "GET /www/hello.txt",
        "GET /www/dir",
        "GET /sub/x",
        "GET /sub/y.txt?r=other",
        "GET /rel/x",
        "GET /relalias/file.txt",
        "GET /relalias/",
        "GET /other",
    ],
    log=True,
)

server(
    "locations",
    """
    location / { return 200 root; }
    location = / { return 200 exact-root; }
    location = /e { return 200 exact; }
    location /e { return 200 prefix-e; }
    location /pre { return 200 pre; }
    location /pre/long { return 200 long; }
    location ^~ /stop { return 200 stop; location ~ in$ { return 200 stop-in; } }
    location ~ \\.txt$ { return 200 txt; }
    location ~* \\.JPG$ { return 200 jpg; }
    location ~ ^/(?<word>\\w+)/named { return 200 "word $word"; }
    location ~ ^/cap/(a)?(b)?$ { return 200 "[$1][$2]"; }
    location /nest/ {
        return 200 nest;
        location /nest/a { return 200 nest-a; }
        location ~ \\.php$ { return 200 nest-php; location ~ deep { return 200 deep; } }
        location = /nest/x { return 200 nest-x; }
    }
    location /internal { internal; return 200 never; }
    location "/with space" { return 200 space; }
    location /\u00fc { return 200 uml; }
    location /a%20b { return 200 pct; }
    location ~ "^/b{2}$" { return 200 bb; }
    location ~ \\x41 { return 200 A; } location /CASE { return 200 CASE; }
""",
    [
        "GET /",
        "GET /x",
        "GET /e",
        "GET /e/",
        "GET /ee",
        "GET /pre",
        "GET /prefix",
        "GET /pre/long/er",
        "GET /pre/a.txt",
        "GET /stop/a.txt",
        "GET /stop/in",
        "GET /stop",
        "GET /a.txt",
        "GET /a.TXT",
        "GET /a.jpg",
        "GET /foo/named",
        "GET /cap/",
        "GET /cap/b",
        "GET /cap/ab",
        "GET /nest/",
        "GET /nest/a",
        "GET /nest/a.txt",
        "GET /nest/z.php",
        "GET /nest/deep.php",
        "GET /nest/x",
        "GET /nest",
        "GET /internal",
        "GET /with%20space",
        "GET /with space",
        "GET /%c3%bc",
        "GET /a%20b",
        "GET /a%2520b",
        "GET /bb",
        "GET /%41",
        "GET /%41.txt",
        "GET /case",
        "GET /CASE",
        "GET /%2e",
        "GET /x/%2e%2e/e",
        "GET /e?x",
        "GET /e%3fx",
        "GET /.",
        "GET /..",
        "GET /e#x",
        "GET /e%23x",
        "GET ?x",
        "GET /e;x=1",
    ],
    log=True,
)

http(
    "hosts",
    """
    server {
        listen 127.0.0.1:@P0@; server_name first; return 200 "first $host|$http_host|$server_name";
    }
    server { listen 127.0.0.1:@P0@; server_name exact.test; return 200 "exact $host"; }
    server { listen 127.0.0.1:@P0@; server_name *.test; return 200 "star $host"; }
    server { listen 127.0.0.1:@P0@; server_name mail.*; return 200 mail; }
    server {
        listen 127.0.0.1:@P0@; server_name ~^re(?<n>\\d+)\\.; return 200 "re $n $server_name";
    }
    server {
        listen 127.0.0.1:@P0@; server_name .dot.org www.x.org; return 200 "dot $server_name";
    }
    server { listen 127.0.0.1:@P0@; server_name ""; return 200 "nameless [$host]"; }
    server {
        listen 127.0.0.1:@P0@ default_server; server_name d; return 200 "default $host|$http_host";
    }
    server {
        listen 127.0.0.1:@P0@; server_name 127.0.0.1 under_score; return 200 "ip $host";
    }
""",
    [
        f"GET / | Host: {h}"
        for h in (
            "first",
            "FIRST",
            "first.",
            "first..",
            "first:80",
            "first:",
            "first:abc",
            "first:99999",
            "exact.test",
            "Exact.Test:1",
            "a.test",
            "a.b.test",
            "test",
            ".test",
            "mail.x",
            "mail.test",
            "mail",
            "re7.x",
            "re77",
            "dot.org",
            "www.dot.org",
            "xdot.org",
            "www.x.org",
            "unknown",
            "127.0.0.1",
            "[::1]",
            "[::1]:80",
            "[::1",
            "under_score",
            "a@b",
            "a/b",
            "a\\b",
            "a b",
            "a,b",
            "a%20b",
            "\u00fc.test",
            "..",
            "a..test",
            "-",
            "*",
            "a:b:c",
            " first ",
            "\tfirst",
            "first\tx",
            "user:pw@first",
            "a;b",
            "a'b",
            'a"b',
            "a<b",
            "a#b",
            "a?b",
        )
    ]
    + [
        "GET / | -Host",
        "GET / HTTP/1.0",
        "GET / HTTP/1.0 | Host: exact.test",
        "GET / HTTP/1.0 | Host:",
        "GET / | Host:",
        "GET / | Host: a | Host: b",
        "GET / | Host: first | Host: first",
        "GET http://exact.test/ | Host: first",
        "GET http://exact.test/ | -Host",
        "GET http://exact.test | Host: first",
        "GET http://EXACT.test:77/ | Host: first",
        "GET https://exact.test/",
        "GET ftp://exact.test/",
        "GET http:///x",
        "GET http://",
        "GET HTTP://exact.test/ | Host: a",
        "GET http://exact.test?x | Host: a",
        "GET http://a_b/ | Host: a",
        "GET http://[::1]:1/x | Host: a",
        "GET http://a@b/ | Host: a",
        "GET http://exact.test/ HTTP/1.0",
        "GET http://exact.test/x%20y?z | Host: a",
        "GET //exact.test/ | Host: first",
        "GET exact.test/ | Host: a",
        "GET http:/x | Host: a",
        "GET http://a:b/ | Host: a",
        "GET http://a:/ | Host: a",
        "GET http://./ | Host: a",
    ],
)

server(
    "headers added",
    """
        add_header X-A a; add_header X-B "b $uri" always; add_header X-Empty "$arg_none";
        add_header X-A twice; add_header ETag own; add_header Last-Modified "";
        add_header Cache-Control public;
        location /inner { add_header X-C c; return 200 x; }
        location /inherit { return 200 x; }
        location /404 { return 404; }
        location /204 { return 204; }
        location /301 { return 301 /x; }
        location /500 { return 500; }
        location /201 { return 201 x; }
        location /dir/ {
            add_header Content-Type text/x; add_header Server own; add_header Date own;
            add_header Content-Length 5; add_header Connection x; add_header Vary Cookie;
            add_header Location /x; add_header Accept-Ranges none;
        }
        location /sent {
            add_header X-Sent "$sent_http_content_type|$sent_http_content_length|$sent_http_last_modified|$sent_http_etag|$status";
            return 200 abc;
        }
        location /a/ {
            add_header X-Sent "$sent_http_content_type|$sent_http_content_length|$sent_http_last_modified|$sent_http_etag|$status|$sent_http_x_a|$upstream_http_x" always;
        }
        location /exp { expires 1h; add_header X y; return 200 x; }
        location /lm {
            add_header Last-Modified "Mon, 01 Jan 2024 00:00:00 GMT"; add_header ETag '"x"';
            alias @DIR@/www/hello.txt;
        }
        location /nl { add_header X-NL "$arg_x"; return 200 x; }
        location /links { add_header Link "<a>"; add_header Link "<b>"; return 200; }
    """,  # noqa: E501
    [
        "GET /hello.txt",
        "GET /nothere",
        "GET /inner",
        "GET /inherit",
        "GET /404",
        "GET /204",
        "GET /301",
        "GET /500",
        "GET /201",
        "GET /dir/file.txt",
        "GET /dir/",
        "GET /sent",
        "GET /a/b/c.txt",
        "GET /a/none",
        "GET /exp",
        "GET /lm",
        'GET /lm | If-None-Match: "x"',
        "GET /lm | If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT",
        "GET /nl?x=a%0d%0ab",
        "GET /nl?x=a\tb",
        "GET /links",
        "GET /hello.txt | Range: bytes=0-1",
        "GET /hello.txt | Range: bytes=99-",
        "HEAD /hello.txt",
        "GET /hello.txt | If-None-Match: own",
        "GET /dir",
    ],
)
server(
    "expires",
    """
    location /max { expires max; return 200 x; }
    location /epoch { expires epoch; return 200 x; }
    location /off { expires off; return 200 x; }
    location /neg { expires -1; return 200 x; }
    location /cc { expires 1h; add_header Cache-Control x; return 200 x; }
    location /err { expires max; return 404; }
    location /var { expires $arg_e; return 200 x; }
    location /zero { expires 0; return 200 x; }
    location /30 { expires 30d; return 301 /x; }
    location /403 { expires max; return 403; }
    location /304 { expires epoch; alias @DIR@/www/hello.txt; }
    location /206 { expires epoch; alias @DIR@/www/hello.txt; }
""",
    [
        "GET /max",
        "GET /epoch",
        "GET /off",
        "GET /neg",
        "GET /err",
        "GET /var?e=max",
        "GET /var?e=epoch",
        "GET /var?e=off",
        "GET /var?e=nonsense",
        "GET /var",
        "GET /403",
        "GET /304 | If-None-Match: *",
        "GET /206 | Range: bytes=0-1",
    ],
)
server(
    "charset",
    """
    charset utf-8;
    location /koi { charset koi8-r; alias @DIR@/www/; }
    location /off { charset off; alias @DIR@/www/; }
    location /css { charset_types text/css; alias @DIR@/www/style.css; }
    location /all { charset_types *; alias @DIR@/www/; }
    location /ret { default_type text/plain; return 200 x; }
    location /bin { return 200 x; }
    location /404 { return 404; }
    location /301 { return 301 /; }
    location /var { charset $arg_c; alias @DIR@/www/hello.txt; }
    location /has { default_type "text/html; charset=x"; return 200 x; }
""",
    [
        "GET /hello.txt",
        "GET /style.css",
        "GET /app.js",
        "GET /data.json",
        "GET /photo.jpg",
        "GET /icon.svg",
        "GET /page.html",
        "GET /noext",
        "GET /odd.unknown",
        "GET /koi/hello.txt",
        "GET /off/hello.txt",
        "GET /css",
        "GET /all/photo.jpg",
        "GET /ret",
        "GET /bin",
        "GET /404",
        "GET /301",
        "GET /none",
        "GET /var?c=latin1",
        "GET /var",
        "GET /has",
        "HEAD /hello.txt",
        "GET /hello.txt | Range: bytes=0-1,3-4",
        "GET /hello.txt | If-None-Match: *",
        "GET /hello.txt | Range: bytes=99-",
    ],
)
server(
    "types",
    """
    types { text/x-one txt; text/x-two HTM Css; application/x-y two.dots; }
    default_type text/fallback;
    location /a/ { types { } default_type text/only; }
    location /dir/ { types { include types.conf; } }
    location /other/ { default_type ""; types { } }
""",
    [
        "GET /hello.txt",
        "GET /UPPER.TXT",
        "GET /dir/other.htm",
        "GET /style.css",
        "GET /page.html",
        "GET /noext",
        "GET /odd.unknown",
        "GET /a/b/c.txt",
        "GET /dir/file.txt",
        "GET /dir/",
        "GET /other/x.txt",
        "GET /.hidden",
        "GET /two.dots.txt",
    ],
)

GZ = [
    "GET /page.html | Accept-Encoding: " + e
    for e in (
        "gzip",
        "GZIP",
        "gzip;q=0",
        "gzip;q=0.0",
        "gzip;q=0.001",
        "gzip; q=1",
        "gzip ;q=1",
        "*",
        "deflate",
        "deflate, gzip",
        "gzip,deflate",
        "identity",
        "x-gzip",
        "gzipx",
        "gzip;q=2",
        "gzip;q=a",
        "gzip;q=0.0001",
        "gzip;q=1.000",
        "gzip;q=1.001",
        "br, *;q=0",
        "*;q=0, gzip",
        "",
        "gzip;foo=1",
        "gzip\t",
        "gzip;q=",
        "gzip;;q=1",
        "identity;q=0, gzip;q=0.5",
        ",gzip",
        "gzip, gzip;q=0",
        "gzip;q=0, gzip",
    )
]
server(
    "gzip",
    """
        gzip on; gzip_types text/css application/javascript; gzip_vary on; gzip_min_length 20;
        location /p/ { gzip_proxied any; alias @DIR@/www/; }
        location /10/ { gzip_http_version 1.0; alias @DIR@/www/; }
        location /d/ { gzip_disable 'bad|msie6'; alias @DIR@/www/; }
        location /all/ { gzip_types *; alias @DIR@/www/; }
        location /ret { default_type text/html; return 200 'long enough to be compressed'; }
        location /ret9 { default_type text/html; return 404 'long enough to be compressed'; }
        location /auth/ {
            gzip_proxied auth expired no-cache no-store private no_last_modified no_etag;
            alias @DIR@/www/;
        }
        location /403 { return 403; }
        location /500 { return 500; }
        location /novary/ { gzip_vary off; alias @DIR@/www/; }
    """,
    GZ
    + [
        "GET /style.css | Accept-Encoding: gzip",
        "GET /hello.txt | Accept-Encoding: gzip",
        "GET /small.css | Accept-Encoding: gzip",
        "GET /style.css",
        "GET /hello.txt",
        "GET /page.html",
        "GET /page.html HTTP/1.0 | Accept-Encoding: gzip",
        "GET /page.html | Accept-Encoding: gzip | Via: x",
        "GET /p/page.html | Accept-Encoding: gzip | Via: x",
        "GET /10/page.html HTTP/1.0 | Accept-Encoding: gzip",
        "GET /10/page.html HTTP/1.0 | Accept-Encoding: gzip | Connection: keep-alive",
        "GET /d/page.html | Accept-Encoding: gzip | User-Agent: bad",
        "GET /d/page.html | Accept-Encoding: gzip | User-Agent: Mozilla/4.0 (compatible; MSIE 6.0)",
        "GET /d/page.html | Accept-Encoding: gzip | User-Agent: good",
        "HEAD /page.html | Accept-Encoding: gzip",
        "HEAD /page.html",
        "GET /page.html | Accept-Encoding: gzip | Range: bytes=0-9",
        'GET /page.html | Accept-Encoding: gzip | If-None-Match: "6553f100-2abe"',
        "GET /page.html | Accept-Encoding: gzip | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        "GET /none | Accept-Encoding: gzip",
        "GET /403 | Accept-Encoding: gzip",
        "GET /500 | Accept-Encoding: gzip",
        "GET /ret | Accept-Encoding: gzip",
        "GET /ret9 | Accept-Encoding: gzip",
        "GET /auth/page.html | Accept-Encoding: gzip | Via: x",
        "GET /auth/page.html | Accept-Encoding: gzip | Via: x | Authorization: y",
        "GET /all/photo.jpg | Accept-Encoding: gzip",
        "GET /empty.txt | Accept-Encoding: gzip",
        "GET /all/empty.txt | Accept-Encoding: gzip",
        "GET /dir | Accept-Encoding: gzip",
        "GET /novary/page.html | Accept-Encoding: gzip",
        "POST /page.html | Accept-Encoding: gzip",
        "GET /page.html | Accept-Encoding: a | Accept-Encoding: gzip",
        "GET /page.html | Accept-Encoding: gzip | Accept-Encoding: a",
    ],
    lengths="coded",
)
server(
    "gzip_static",
    """
        gzip_static on; gzip_vary on;
        location /always/ { gzip_static always; alias @DIR@/www/; }
        location /dyn/ { gzip on; gzip_types text/plain; alias @DIR@/www/; }
        location /off/ { gzip_static off; alias @DIR@/www/; }
    """,
    [
        "GET /pre.txt",
        "GET /pre.txt | Accept-Encoding: gzip",
        "GET /pre.txt | Accept-Encoding: gzip;q=0",
        "GET /pre.txt HTTP/1.0 | Accept-Encoding: gzip",
        "HEAD /pre.txt | Accept-Encoding: gzip",
        "GET /pre.txt | Accept-Encoding: gzip | Range: bytes=0-3",
        "GET /pre.txt | Accept-Encoding: gzip | If-None-Match: *",
        "GET /onlygz.txt",
        "GET /onlygz.txt | Accept-Encoding: gzip",
        "GET /always/pre.txt",
        "GET /always/onlygz.txt",
        "GET /always/hello.txt",
        "GET /always/none",
        "GET /dyn/hello.txt | Accept-Encoding: gzip",
        "GET /dyn/pre.txt | Accept-Encoding: gzip",
        "GET /off/pre.txt | Accept-Encoding: gzip",
        "GET /pre.txt.gz",
        "GET /pre.txt | Accept-Encoding: gzip | Via: x",
        "GET /dir | Accept-Encoding: gzip",
        "GET / | Accept-Encoding: gzip",
        "GET /none | Accept-Encoding: gzip",
        "POST /pre.txt | Accept-Encoding: gzip",
        "GET /hello.txt",
        "GET /hello.txt | Accept-Encoding: gzip",
    ],
)

REDIRECTS = [
    "GET /dir",
    "GET /dir?a=b",
    "GET /ret",
    "GET /dir HTTP/1.0",
    "GET /dir | Host: other.test",
    "GET /dir | Host: Other.Test:1234",
    "GET /dir%20with%20space",
    "GET /a/b",
    "HEAD /dir",
    "POST /dir",
    "GET //dir",
    "GET /a/../dir",
    "GET http://abs.test/dir | Host: x",
    "GET /%64ir",
    "GET /dir?a=%20&b=\u00fc",
    "GET /dir | Connection: close",
]
for directive in (
    "",
    "absolute_redirect off;",
    "server_name_in_redirect on;",
    "port_in_redirect off;",
    "server_name_in_redirect on; port_in_redirect off; server_tokens off;",
):
    server(f"redirects {directive}", directive + "location /ret { return 301 /x; }", REDIRECTS)
server(
    "tokens off",
    """
        server_tokens off;
        location /301 { return 301 /x; }
        location /build { server_tokens build; }
        location /on { server_tokens on; }
    """,
    ["GET /", "GET /none", "GET /301", "GET /build", "GET /on", "PUT /", "HEAD /none", "GET /dir"],
)
server(
    "padding",
    "location /301 { return 301 /x; } location /off { msie_padding off; }",
    [
        f"GET {p} | User-Agent: {u}"
        for p in ("/none", "/301", "/off", "/dir")
        for u in (
            "Mozilla/5.0 (X11) Chrome/100.0 Safari/1",
            "Mozilla/4.0 (compatible; MSIE 7.0)",
            "Mozilla/5.0 Firefox/100",
            "Opera/9 MSIE 7.0",
        )
    ],
)
server(
    "refresh",
    'msie_refresh on; location /301 { return 301 http://x.test/?a=<b>&"c"; }',
    [
        "GET /301 | User-Agent: Mozilla/4.0 (compatible; MSIE 7.0)",
        "GET /301",
        "GET /dir | User-Agent: Mozilla/4.0 (compatible; MSIE 7.0)",
    ],
)

for mode in ("off", "exact", "before"):
    server(
        f"if_modified_since {mode}",
        f"if_modified_since {mode};",
        [
            f"GET /hello.txt | If-Modified-Since: {d}"
            for d in (
                "Tue, 14 Nov 2023 22:13:20 GMT",
                "Tue, 14 Nov 2023 22:13:19 GMT",
                "Tue, 14 Nov 2023 22:13:21 GMT",
                "nonsense",
                "Tuesday, 14-Nov-23 22:13:20 GMT",
                "Tue Nov 14 22:13:20 2023",
                "",
                "Tue, 14 Nov 2023 22:13:20",
                "14 Nov 2023 22:13:20 GMT",
            )
        ]
        + [
            (
                "GET /hello.txt | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT | "
                'If-None-Match: "x"'
            ),
            'GET /hello.txt | If-Modified-Since: nonsense | If-None-Match: "6553f100-e"',
        ],
    )
server(
    "no etag",
    "etag off;",
    [
        "GET /hello.txt",
        'GET /hello.txt | If-None-Match: "6553f100-e"',
        "GET /hello.txt | If-None-Match: *",
        "GET /hello.txt | If-Match: *",
        'GET /hello.txt | If-Match: "6553f100-e"',
        'GET /hello.txt | Range: bytes=0-1 | If-Range: "6553f100-e"',
    ],
)
server(
    "max_ranges 2",
    "max_ranges 2; location /no/ { max_ranges 0; alias @DIR@/www/; }",
    [
        "GET /digits.txt | Range: bytes=0-1,3-4",
        "GET /digits.txt | Range: bytes=0-1,3-4,6-7",
        "GET /digits.txt | Range: bytes=0-1",
        "GET /no/digits.txt | Range: bytes=0-1",
        "GET /no/digits.txt",
        "GET /digits.txt | Range: bytes=0-1,300-400,3-4",
        "GET /digits.txt | Range: bytes=0-98,0-98",
    ],
)

KEEP: list[Case] = [
    "GET /hello.txt",
    "GET /hello.txt HTTP/1.0",
    "GET /hello.txt HTTP/1.0 | Connection: keep-alive",
    "GET /hello.txt | Connection: close",
    "GET /hello.txt | Connection: keep-alive",
    "GET /none",
    "HEAD /hello.txt",
    "POST /hello.txt",
    "GET /dir",
    (
        b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /digits.txt HTTP/1.1\r\nHost: a\r\n\r\n"
        b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n"
    ),
]
for directive in (
    "keepalive_timeout 0;",
    "keepalive_timeout 10 20;",
    "keepalive_requests 2;",
    "keepalive_disable none;",
    "keepalive_disable safari;",
    "keepalive_requests 0;",
    "keepalive_timeout 10s 0;",
    "lingering_close off;",
    "lingering_close always;",
):
    server(
        directive[:-1],
        directive,
        KEEP
        + [
            (
                "GET /hello.txt | User-Agent: Mozilla/5.0 (Macintosh; "
                "Intel Mac OS X) AppleWebKit Safari/1"
            ),
            "POST /hello.txt | User-Agent: Mozilla/4.0 (compatible; MSIE 6.0)",
        ],
    )
server(
    "keep-alive per location",
    """
        location /off/ { keepalive_timeout 0; alias @DIR@/www/; }
        location /chunk/ {
            chunked_transfer_encoding off; autoindex on; alias @DIR@/www/list/sub/;
        }
    """,
    [
        "GET /off/hello.txt",
        "GET /hello.txt",
        "GET /chunk/",
        "GET /chunk/ HTTP/1.0",
        "GET /chunk/ | Connection: keep-alive",
    ],
)

VARS = (
    "$uri|$request_uri|$args|$is_args|$query_string|$document_uri|$host|$http_host|$server_name|"
    "$server_port|$server_protocol|$scheme|$https|$request_method|$request|$document_root|"
    "$request_filename|$realpath_root|$remote_addr|$content_length|$content_type|$arg_a|$arg_A|"
    "$arg_b|$cookie_c|$http_x|$http_x_y|$http_cookie|$http_user_agent|$request_body|$limit_rate|"
    "$connection_requests|$remote_user|$server_addr"
)
server(
    "variables",
    f"""
        location / {{ return 200 '{VARS}'; }}
        location /link {{ root @DIR@/www/linkdir; return 200 '$document_root $realpath_root'; }}
        location /al/ {{ alias @DIR@/www/dir/; return 200 '$document_root|$request_filename'; }}
        location /braces {{ return 200 '${{uri}}x${{arg_a}}'; }}
    """,
    [
        "GET /",
        "GET /a%20b?a=1&b=2&a=3",
        "GET /?",
        "GET /?a",
        "GET /?a=&b",
        "GET /?A=x",
        "GET /?xa=1&a=2",
        "GET /?a=%20%41",
        "GET /?a=1;b=2",
        "GET /?&&a=1",
        "GET / | Cookie: c=1; d=2",
        "GET / | Cookie: d=2;c=1",
        "GET / | Cookie: xc=3; c=4",
        "GET / | Cookie: c=1 | Cookie: c=2",
        "GET / | Cookie: C=1",
        "GET / | Cookie: c = 1",
        "GET / | Cookie: c",
        "GET / | X: a | X: b",
        "GET / | X-Y: 1 | x-y: 2",
        "GET / | Authorization: Basic YTpi",
        "GET / | Authorization: Basic !!",
        "GET / | Content-Type: text/x",
        "GET //x/../y//z",
        "GET /x?y#z",
        "GET /x#z",
        "POST / | Content-Length: 0",
        "GET /%e4?%e4",
        "GET /link",
        "GET /al/file.txt",
        "GET /al",
        "GET /braces?a=1",
        "GET / | Host: UPPER:80",
        "GET / HTTP/1.0",
        "GET http://u.test/p?q | Host: z",
        "DELETE / | Referer: x",
        "GET / | User-Agent: a | Referer: b | X-Forwarded-For: c, d",
    ],
    log=True,
)
server(
    "symlinks",
    """
        location /on/ { disable_symlinks on; alias @DIR@/www/; }
        location /owner/ { disable_symlinks if_not_owner; alias @DIR@/www/; }
        location /from/ { disable_symlinks on from=@DIR@; alias @DIR@/www/; }
    """,
    [
        f"GET /{p}/{f}"
        for p in ("on", "owner", "from")
        for f in words("""
           hello.txt link.txt linkdir/file.txt linkdir/ linkdir dangling
           list/link.txt loop none
       """)
    ],
)
server(
    "files with care",
    """
        open_file_cache max=10; open_file_cache_errors on; sendfile on; tcp_nopush on;
        output_buffers 1 4k; directio 4m;
        location /notfound { log_not_found off; }
    """,
    [
        "GET /hello.txt",
        "GET /big.bin",
        "GET /big.bin | Range: bytes=1000-200000",
        "GET /none",
        "GET /none",
        "GET /dir",
        "GET /dir/",
        "HEAD /big.bin",
        "GET /notfound",
    ],
)
server(
    "files without sendfile",
    "sendfile off; limit_rate_after 1m; limit_rate 100m;",
    ["GET /hello.txt", "GET /big.bin", "GET /big.bin | Range: bytes=0-0,-1"],
)
http(
    "error log off, two listeners",
    """
        server {
            listen 127.0.0.1:@P0@; listen 127.0.0.1:@P2@; root @DIR@/www; log_not_found off;
        }
        server { listen 127.0.0.1:@P2@; server_name b; return 200 b; }
    """,
    ["GET /hello.txt", "GET /hello.txt | Host: b", "GET /dir | Host: b"],
)
http(
    "no server name, default root",
    """
        server {
            listen 127.0.0.1:@P0@; absolute_redirect on;
            location /www/ { root .; }
            server_name_in_redirect on;
        }
    """,
    ["GET /", "GET /www/dir", "GET /www/dir HTTP/1.0", "GET /none.txt"],
)

TLS = """
    server { listen 127.0.0.1:@P0@; return 200 plain; }
    server {
        listen 127.0.0.1:@P1@ ssl; server_name localhost; ssl_certificate @CERT@;
        ssl_certificate_key @KEY@; root @DIR@/www;
        %s location /v {
            return 200 '$scheme $https $ssl_protocol $ssl_server_name $server_port $host';
        }
        location /301 { return 301 /x; }
    }
"""
http(
    "tls",
    TLS % "",
    [
        "GET /hello.txt | Connection: close",
        "GET /v | Connection: close",
        "GET /301 | Connection: close",
        "GET /dir | Connection: close",
        "GET /none | Connection: close",
        "GET /hello.txt | Host: other | Connection: close",
        "GET https://x/v | Connection: close",
        "GET http://x/v | Connection: close",
    ],
    port=1,
    tls="localhost",
    alone=True,
)
PLAIN: list[Case] = [
    "GET /hello.txt",
    "GET /hello.txt HTTP/1.0",
    "POST /x",
    "HEAD /",
    b"GET /\r\n",
    b"nonsense\r\n\r\n",
    b"\r\n\r\n",
    b"G",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / | -Host",
    "PUT /hello.txt",
    "GET /%00",
]
http("plain HTTP on the TLS port", TLS % "", PLAIN, port=1)
http(
    "plain HTTP on the TLS port with 497",
    TLS % "error_page 497 =301 https://$host$request_uri;",
    PLAIN[:4],
    port=1,
)
http(
    "plain HTTP on the TLS port with a page for 400",
    TLS % "error_page 400 /hello.txt; server_tokens off;",
    PLAIN[:4],
    port=1,
)
