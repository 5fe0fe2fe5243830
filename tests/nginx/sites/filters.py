"""Owns: configurations about bodies that are changed on their way, and mistakes in them."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import server
from ..text import words
from .php import php, say

GZIP = " | Accept-Encoding: gzip"
VALIDATORS = [
    "GET /page.html | If-None-Match: *",
    "GET /page.html | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
    'GET /page.html | If-None-Match: "6553f100-2fea"',
]

server(
    "sub_filter",
    r"""
    sub_filter paragraph <$uri>; sub_filter "OF THE" ""; sub_filter_once off;
    location /plain/ {
        alias @DIR@/www/; sub_filter_types text/plain text/css; sub_filter 234 "[$request_method]";
        sub_filter color colour; sub_filter_last_modified on; sub_filter_once on;
    }
    location /all/ { alias @DIR@/www/; sub_filter_types *; sub_filter ab 1; sub_filter abc 2; }
    location /none/ { alias @DIR@/www/; sub_filter $arg_s $arg_r; }
    location /two/ { alias @DIR@/www/; sub_filter $arg_s $arg_r; sub_filter is 'IS$is_args'; }
    location /t {
        default_type text/html; return 200 "abcabcxyzxyz"; sub_filter abc X; sub_filter xyz abc;
        sub_filter_once on;
    }
    location /o {
        default_type text/html; return 200 "aaab aab ab b"; sub_filter aab <>; sub_filter ab !;
        sub_filter aaaab no;
    }
    location /r { return 301 /paragraph; sub_filter center CENTER; sub_filter_once off; }
    location /n { return 204; } location /e { default_type text/html; return 200 ""; }
    location /x { default_type text/html; return 200 "x=$http_x"; sub_filter x $http_x; }
    location /if {
        default_type text/html;
        if ($arg_a) { return 200 "paragraph"; }
        return 200 "no paragraph";
    }
    location /own {
        default_type text/html; add_header ETag '"own"'; add_header Last-Modified yesterday;
        return 200 paragraph;
    }
""",
    [
        f"{method} {path}{more}"
        for method in ("GET", "HEAD")
        for path in words("""
    /page.html /hello.txt /index.html /plain/digits.txt /plain/style.css /plain/page.html
    /plain/photo.jpg /plain/empty.txt /all/photo.jpg /all/big.bin /none/page.html?s=is&r=WAS
    /two/page.html?s=This /two/page.html?s=PAGE&r= /t /o /r /n /e /x /if /if?a=1 /own
    /nowhere
""")
        for more in ("", " | Range: bytes=0-5")
    ]
    + [
        "GET /none/page.html | Range: bytes=x",
        "GET /page.html HTTP/1.0",
        "GET /plain/digits.txt HTTP/1.0",
        "GET /x | X: abcx",
        "POST /page.html",
        'GET /page.html | If-Range: "6553f100-2fea" | Range: bytes=1-2',
    ]
    + VALIDATORS
    + [case.replace("/page.html", "/plain/digits.txt") for case in VALIDATORS],
)
server(
    "sub_filter and gzip",
    r"""
    sub_filter paragraph PAR; gzip on; gzip_types text/plain; gzip_min_length 100; gzip_vary on;
    sub_filter_last_modified on;
    location /s/ { alias @DIR@/www/; gzip_static on; }
    location /a/ {
        alias @DIR@/www/; gzip_static always; sub_filter_types text/plain; sub_filter plain PLAIN;
        sub_filter_once off;
    }
    location /t { default_type text/html; return 200 "a short paragraph"; }
""",
    [
        f"{method} {path}{more}"
        for method in ("GET", "HEAD")
        for path in words("""
    /page.html /index.html /hello.txt /pre.txt /s/pre.txt /a/pre.txt /t /nowhere
""")
        for more in ("", GZIP, GZIP + " | Range: bytes=0-3", " | Accept-Encoding: gzip;q=0")
    ],
    lengths="any",
)
server(
    "gunzip",
    r"""
    gunzip on; gunzip_buffers 4 4k; gzip_static always;
    location /v/ { alias @DIR@/www/; gzip_vary on; }
    location /s/ {
        alias @DIR@/www/; sub_filter_types *; sub_filter plain PLAIN; sub_filter_once off;
    }
    location /g/ { alias @DIR@/www/; gzip on; gzip_types *; gzip_min_length 0; }
    location /off/ { alias @DIR@/www/; gunzip off; }
""",
    [
        f"{method} {path}{more}"
        for method in ("GET", "HEAD")
        for path in words("""
    /pre.txt /onlygz.txt /hello.txt /v/pre.txt /v/onlygz.txt /s/pre.txt /g/pre.txt
    /off/pre.txt /none.txt
""")
        for more in (
            "",
            GZIP,
            " | Accept-Encoding: gzip;q=0",
            " | Range: bytes=0-3",
            GZIP + " | Range: bytes=0-3",
            " | Via: x" + GZIP,
            " | If-None-Match: *",
            " | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
        )
    ]
    + ["GET /pre.txt HTTP/1.0", "GET /pre.txt HTTP/1.0" + GZIP],
    lengths="any",
)
php(
    "sub_filter",
    "sub_filter x <$upstream_status>; sub_filter_once off; sub_filter_types text/plain; gunzip on;",
    [
        say(),
        say('ETag: "x"'),
        say('ETag: W/"x"', "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"),
        say("Content-Type: text/plain", text="xXx"),
        say("Content-Type: TEXT/Plain; charset=x", text="xXx"),
        say("Content-Type: image/png", text="xXx"),
        say(s=404, text="xx"),
        say(s=500, text="xx"),
        say(s=204),
        say(s=304),
        say("Accept-Ranges: bytes", text="xx"),
        say("Content-Length: 3", text="axb"),
        say("Content-Encoding: gzip", text="not gzip", more=GZIP),
        say("Content-Encoding: br", text="xx"),
        say(n=5000),
        "GET /big.php?n=5000",
        "GET /length.php?n=1000",
        "GET /flush.php",
        "HEAD /page.php",
        "GET /page.php HTTP/1.0",
        "GET /none.php",
    ],
)
php(
    "sub_filter, unbuffered",
    "fastcgi_buffering off; sub_filter x y; sub_filter_once off; sub_filter_last_modified on;",
    [
        say(),
        "GET /flush.php",
        "GET /big.php?n=5000",
        say('ETag: "x"'),
        say("ETag: x"),
        say("ETag:"),
        "GET /length.php?n=1000",
        say("Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"),
    ],
)

server(
    "add_header_inherit",
    r"""
        add_header S 2; add_header_inherit merge;
        location /a { add_header A 3; return 200; }
        location /b { return 200; }
        location /c {
            add_header C 3; add_header_inherit on; return 200;
            location /c/d { add_header D 1; return 200; }
            location /c/e { return 200; }
        }
        location /e {
            add_header_inherit off; return 200;
            location /e/f { add_header F 1; return 200; }
            location /e/g { return 200; location /e/g/h { add_header_inherit on; return 200; } }
        }
        location /h {
            add_header_inherit off; add_header H 9;
            if ($arg_a) { return 200 x; }
            if ($arg_b) { add_header B 1; return 200 x; }
            if ($arg_c) { add_header_inherit merge; return 200 x; }
            return 200;
            location /h/i { return 200; }
            location /h/j { add_header_inherit on; return 200; }
            location /h/k { add_header S 3 always; add_header_inherit merge; return 404; }
        }
    """,
    [
        f"GET {path}"
        for path in words("""
    /a /b /c /c/d /c/e /e /e/f /e/g /e/g/h /h /h?a=1 /h?b=1 /h?c=1 /h/i /h/j /h/k /none
""")
    ],
)
server(
    "auth_request",
    r"""
    location = / { auth_request /auth; } location /own { auth_request /auth; }
    location = /auth { internal; if ($arg_never) { return 200; } return 401; }
    location /w/ { auth_request /no; alias @DIR@/www/; }
    location /no { add_header WWW-Authenticate "Basic x" always; return 403; }
    location /z/ {
        auth_request /auth2?x=1; auth_request_set $m $request_method;
        auth_request_set $u "$uri|$request_uri|$args|$is_args|$sent_http_x|$status";
        add_header M "$m" always; add_header U "$u" always; add_header V "$v" always;
        alias @DIR@/www/;
    }
    location /auth2 { set $v "$request_method|$http_host|$http_x"; add_header X y; return 204; }
    location /s/ { auth_request /auth9; alias @DIR@/www/; }
    location /f/ {
        auth_request /hello.txt; alias @DIR@/www/;
        location /f/in/ { alias @DIR@/www/; }
        location /f/off/ { auth_request off; alias @DIR@/www/; }
    }
    location = /hello.txt { } location /open/ { rewrite ^/open(.*) $1 break; root @DIR@/www; }
    location /g/ { auth_request /auth4; alias @DIR@/www/; } location /auth4 { return 444; }
    location /k/ { auth_request /auth5; alias @DIR@/www/; } location /auth5 { return 302 /x; }
    location /e/ { auth_request /auth6; error_page 401 =200 /login; alias @DIR@/www/; }
    location /auth6 { return 401; }
    location /login { return 200 "login for $request_uri"; }
    location /e2/ { auth_request /auth7; alias @DIR@/www/; }
    location /auth7 { error_page 404 =204 /auth2; return 404; }
    location /x/ { auth_request /auth8; alias @DIR@/www/; }
    location /auth8 { deny all; return 200; }
    location /y/ { auth_request /auth10; alias @DIR@/www/; }
    location /auth10/ { deny all; }
    location = /auth10 { auth_request /no; try_files /hello.txt =404; root @DIR@/www; }
    location /cap/ {
        location ~ ^/cap/(.*)$ {
            auth_request /auth11; set $mine $1; add_header C "$1|$mine|$yours"; alias @DIR@/www/$1;
        }
    }
    location ~ ^/auth(11)$ { set $yours $1; return 200; }
    location /r/ { rewrite ^/r/(.*)$ /f/$1 last; }
    location /i/ { auth_request /hello.txt; alias @DIR@/www/; index index.html; }
""",
    [
        f"{method} {path}"
        for method in ("GET", "HEAD", "POST")
        for path in words("""
    / /auth /w/hello.txt /z/hello.txt?b=c /s/hello.txt /own /f/hello.txt /f/in/digits.txt
    /f/off/digits.txt /hello.txt /g/x /k/x /e/x /e2/hello.txt /x/hello.txt /y/hello.txt
    /cap/hello.txt /r/hello.txt /i/ /i/dir/
""")
    ]
    + [
        "GET /z/hello.txt | X: y",
        "GET /f/hello.txt | Range: bytes=0-3",
        "GET /f/hello.txt | If-None-Match: *",
        "GET /f/hello.txt HTTP/1.0",
        "POST /z/hello.txt | Content-Length: 0",
    ],
    errors=True,
)
server(
    "auth_request and others",
    r"""
        auth_basic Staff; auth_basic_user_file @DIR@/users;
        location /yes/ { auth_request /yes; alias @DIR@/www/; }
        location /no/ { auth_request /no; alias @DIR@/www/; }
        location /who/ { auth_request /who; alias @DIR@/www/; }
        location /odd/ { auth_request /odd; alias @DIR@/www/; }
        location /any/ {
            satisfy any;
            location /any/yes/ { auth_request /yes; alias @DIR@/www/; }
            location /any/no/ { auth_request /no; alias @DIR@/www/; }
            location /any/who/ { auth_request /who; alias @DIR@/www/; }
            location /any/odd/ { auth_request /odd; alias @DIR@/www/; }
            location /any/in/ { allow all; auth_request /no; alias @DIR@/www/; }
            location /any/out/ { deny all; auth_basic off; auth_request /no; alias @DIR@/www/; }
            location /any/outyes/ { deny all; auth_request /yes; alias @DIR@/www/; }
            location /any/outwho/ {
                auth_basic off; deny all; auth_request /who; alias @DIR@/www/;
            }
        }
        location /deny/ { deny all; auth_request /yes; alias @DIR@/www/; }
        location /open/ { auth_basic off; auth_request /yes; alias @DIR@/www/; }
        location = /yes { return 204; }
        location = /no { return 403; }
        location = /who { return 401; }
        location = /odd { return 500; }
    """,
    [
        f"GET {path}hello.txt{more}"
        for path in words("""
    /yes/ /no/ /who/ /odd/ /any/yes/ /any/no/ /any/who/ /any/odd/ /any/in/ /any/out/
    /any/outyes/ /any/outwho/ /deny/ /open/
""")
        for more in ("", " | Authorization: Basic YTpi", " | Authorization: Basic eDp5")
    ],
    errors=True,
)
for text in (
    "auth_request;",
    "auth_request a b;",
    "auth_request off;",
    "auth_request /a; auth_request /b;",
    "auth_request '';",
    "auth_request_set;",
    "auth_request_set a b;",
    "auth_request_set $a;",
    "auth_request_set $a $nothing;",
    "auth_request_set $http_x 1;",
    "auth_request_set $args 1;",
    "auth_request_set $uri 1;",
    "auth_request_set $a 1; auth_request_set $a 2;",
    "auth_request_set $ 1;",
):
    http_mistake(text)
location_mistake("if ($arg_a) { auth_request /a; }")
for text in (
    "add_header_inherit on;",
    "add_header_inherit both;",
    "add_header_inherit;",
    "add_header_inherit on; add_header_inherit off;",
    "sub_filter a b;",
    "sub_filter a;",
    "sub_filter;",
    "sub_filter a b c;",
    "sub_filter '' b;",
    "sub_filter a '';",
    "sub_filter $nothing b;",
    "sub_filter a $nothing;",
    "sub_filter a b; sub_filter a b;",
    "sub_filter_once maybe;",
    "sub_filter_once on; sub_filter_once on;",
    "sub_filter_types;",
    "sub_filter_types text/html;",
    "sub_filter_types text/css text/css;",
    "sub_filter_types *;",
    "sub_filter_last_modified x;",
    "gunzip maybe;",
    "gunzip;",
    "gunzip on; gunzip off;",
    "gunzip_buffers 4;",
    "gunzip_buffers 4 x;",
    "gunzip_buffers 0 4k;",
):
    http_mistake(text)
for text in (
    "if ($arg_a) { sub_filter a b; }",
    "if ($arg_a) { gunzip on; }",
    "sub_filter a b; sub_filter_once off; sub_filter_types *;",
    "limit_except GET { sub_filter a b; }",
):
    location_mistake(text)
