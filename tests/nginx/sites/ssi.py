"""Owns: configurations about pages with other answers in them, those pages, and mistakes in them.

By `ssi` and by `addition`.
"""

from collections.abc import Sequence
from typing import Any

from ..files import FILES
from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import Case, http
from ..text import words
from .php import php, say
from .proxying import answer
from .proxying import server as proxied
from .ssi_pages import PAGES

# What others need.
NAMED = {
    "hello.html": "HELLO",
    "e.html": '<!--#echo var="uri"-->',
    "empty.html": "",
    "a.html": '[<!--#echo var="a"-->]',
    "v.html": '<!--#echo var="x"--><!--#set var="y" value="fromv"-->',
    "c.html": (
        '(<!--#echo var="1"--><!--#if expr="$uri = /(c)/"--><!--#endif--><!--#echo var="1"-->)'
    ),
    "d.html": '<!--#echo var="a" default="<" encoding="none"--><!--#foo-->',
    "s.html": '(<!--#include virtual="/empty" stub="x"-->)<!--#block name="z"-->Z<!--#endblock-->',
    "s2.html": 'S<!--#set var="k" value="v"-->',
    "dir/index.html": "DIR",
    "dir/q.html": "Q",
    "dir/p.html": (
        '<!--#include file="q.html"-->|<!--#include virtual="../e.html"-->|<!--#include '
        'virtual="q.html?a=b"-->'
    ),
    "p.html": 'a XX b<!--#echo var="uri"-->YY<!--#foo-->',
    "p.txt": 'a<!--#echo var="uri"-->',
    "v5.html": '<!--#set var="a" value="12345"--><!--#echo var="uri"--><!--#echo var="ur"-->',
    "proxied.html": '<!--#include virtual="/px/a"-->|<!--#include virtual="/no/b?c" wait="yes"-->',
    "logged.html": (
        '<!--#include virtual="/t200?a"-->|<!--#include virtual="/r403" '
        'wait="yes"-->|<!--#include virtual="/fwd"-->|<!--#include virtual="/nowhere" '
        'set="x"-->|<!--#include virtual="/cond/"-->|<!--#include '
        'virtual="/cond/?a=b"-->|<!--#include virtual="/quiet/hello.html"-->'
    ),
    "self.html": '<!--#include virtual="/self.html"-->x',
    "big.html": '<!--#include virtual="/hello.html"-->'
    + "y" * 100_000
    + '<!--#include virtual="/e.html"-->'
    + "z" * 100_000
    + '<!--#echo var="uri"-->',
    "many.html": "".join(f'<!--#include virtual="/t200/{n}"-->{n}\n' for n in range(60)),
    "nested.html": (
        '<!--#include virtual="/many.html"--><!--#include virtual="/big.html"--><!--#include '
        'virtual="/e.html"-->'
    ),
    "vars.html": (
        '<!--#include virtual="/setv" wait="yes"-->|<!--#echo var="mine"-->|<!--#include '
        'virtual="/map" wait="yes"-->|<!--#echo var="which"-->'
    ),
    "php.html": (
        '<!--#include virtual="/say.php?b=first"-->|<!--#include virtual="/say.php?b=second" '
        'wait="yes"-->|<!--#include virtual="/say.php?b=third" set="x"--><!--#echo var="x"-->'
    ),
    "php404.html": (
        '<!--#block name="x"-->STUB<!--#endblock--><!--#include virtual="/say.php?s=404&b=body" '
        'stub="x"-->|<!--#include virtual="/say.php?s=404&b=body" set="v"-->|<!--#echo '
        'var="v"-->|<!--#include virtual="/none.php"-->'
    ),
    "stubs.html": (
        '<!--#block name="x"-->[<!--#echo var="uri"-->|<!--#set var="y" '
        'value="z"-->]<!--#endblock--><!--#block name="q"--><!--#set var="y" '
        'value="w"--><!--#endblock-->'
    )
    + "".join(
        f'<!--#include virtual="{path}" stub="{stub}"-->,'
        for path in (
            "/say.php?b=",
            "/say.php?b=%3C!--%23set%20var=%22a%22%20value=%22b%22--%3E",
            "/say.php?b=more",
        )
        for stub in "xq"
    )
    + '<!--#echo var="y"-->',
}
FILES.update({f"ssi/{name}": text.encode() for name, text in NAMED.items()})
FILES.update({f"ssi/{at}.html": text.encode() for at, text in enumerate(PAGES)})


def server(name: str, conf: str, cases: Sequence[Case], **options: Any) -> None:
    """Adds one server of the pages."""
    head = "server { listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www/ssi;"
    http(name, f"{head}\n{conf}\n}}", cases, **options)


LOCATIONS = r"""
    ssi on;
    location /t200 {
        ssi off; default_type text/plain;
        return 200 "[t200 $uri|$request_uri|$args|$request_method|$request|$is_args|$arg_a|$document_uri|$query_string]";
    }
    location /r301 { return 301 /x; }
    location /r403 { return 403; }
    location /r204 { return 204; }
    location /r404 { default_type text/plain; return 404 "nope"; }
    location /empty { default_type text/plain; return 200 ""; }
    location /int { internal; return 200 internal; }
    location /deny { deny all; }
    location /q404.html { error_page 404 /e.html; }
    location /fwd { rewrite ^ /hello.html last; }
    location /auth {
        auth_basic x; auth_basic_user_file /none; deny all; try_files /hello.html =404;
    }
    location /rewr/ { rewrite ^/rewr/(.*)$ /t200/$1?b=2 last; }
"""  # noqa: E501
MORE = [
    "",
    " | If-None-Match: *",
    " | Range: bytes=0-2",
    " | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
]

server(
    "ssi",
    LOCATIONS.replace("location /empty {", "location = /empty {"),
    [f"GET /{at}.html" for at in range(len(PAGES))],
    errors=True,
)
server(
    "ssi here and there",
    LOCATIONS.replace("location /empty {", "location = /empty {")
    + r"""
        location /setv { ssi off; set $mine "of a part"; return 200 "[$mine]"; }
        location /map { ssi off; set $which xyz; return 200 x; }
        location /silent/ { ssi_silent_errors on; alias @DIR@/www/ssi/; }
        location /lm/ { ssi_last_modified on; alias @DIR@/www/ssi/; }
        location /short/ { ssi_value_length 4; alias @DIR@/www/ssi/; }
        location /all/ {
            ssi_types *; alias @DIR@/www/ssi/;
            location /all/lm/ { ssi_last_modified on; alias @DIR@/www/ssi/; }
        }
        location /txt/ { ssi_types text/plain; alias @DIR@/www/ssi/; }
        location /off/ { ssi off; alias @DIR@/www/ssi/; }
        location /if/ { ssi off; alias @DIR@/www/ssi/; if ($arg_on) { ssi on; } }
        location /sub/ {
            sub_filter XX '<!--#echo var="request_method"-->'; sub_filter_once off;
            sub_filter YY included; alias @DIR@/www/ssi/;
        }
        location /text { default_type text/html; return 200 'a<!--#echo var="args"-->b'; }
        location /err { default_type text/html; return 500 '<!--#echo var="status"-->'; }
    """,
    [
        f"{method} {path}{more}"
        for method in ("GET", "HEAD")
        for path in words("""
    /p.html /p.txt /silent/p.html /lm/p.html /short/v5.html /all/p.txt /all/lm/p.txt
    /txt/p.txt /txt/p.html /off/p.html /if/p.html /if/p.html?on=1 /sub/p.html /text?x
    /empty.html /nowhere /r301 /err
""")
        for more in MORE
    ]
    + [
        "GET /self.html",
        "GET /big.html",
        "GET /many.html",
        "GET /nested.html",
        "GET /dir/p.html",
        "GET /dir/",
        "GET /dir",
        "POST /p.html",
        "GET /p.html HTTP/1.0",
        "GET /vars.html",
    ],
)
server(
    "ssi, logged",
    LOCATIONS
    + """
        log_subrequest on;
        location /quiet/ { log_subrequest off; alias @DIR@/www/ssi/; }
        location /cond/ { access_log @LOGS@/access.log all if=$arg_a; return 200 cond; }
    """,
    [
        "GET /dir/p.html",
        "GET /logged.html",
        "GET /fwd",
        "HEAD /logged.html",
        "GET /quiet/logged.html",
    ],
    log=True,
)
server(
    "ssi and gzip",
    LOCATIONS + "gzip on; gzip_min_length 0; gzip_vary on;",
    [
        f"{method} {path} | Accept-Encoding: {coding}"
        for method in ("GET", "HEAD")
        for path in ("/p.html", "/big.html", "/many.html", "/empty.html", "/nowhere")
        for coding in ("gzip", "identity")
    ],
    lengths="any",
)
php(
    "ssi",
    "ssi on; root @DIR@/www;",
    [
        say(text='a<!--#echo var="uri"-->b<!--#include virtual="/t"-->c'),
        say(
            "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT",
            'ETag: "x"',
            "Accept-Ranges: bytes",
            text='<!--#echo var="uri"-->',
        ),
        say("Content-Type: text/plain", text='<!--#echo var="uri"-->'),
        say("Content-Length: 22", text='<!--#echo var="uri"-->'),
        say(s=404, text='<!--#echo var="status"-->'),
        say(
            text=(
                '<!--#include virtual="/say.php?b=inner"-->|<!--#include '
                'virtual="/say.php?b=%3C!--%23echo var=%22args%22--%3E"-->'
            )
        ),
        "HEAD /say.php?b=x",
        "GET /php.html",
        "GET /php404.html",
        "GET /stubs.html",
    ],
    """
        location /t { return 200 "[t $request_uri]"; }
        location ~ \\.html$ { ssi on; root @DIR@/www/ssi; }
    """,
)
HTML = "Content-Type: text/html"
proxied(
    "ssi",
    r"""
    location / { ssi on; proxy_pass http://@ORIGIN@; }
    location /t { return 200 "[$uri $request_method]"; }
    location ~ \.html$ { ssi on; root @DIR@/www/ssi; }
    location /px/ { proxy_pass http://@ORIGIN@/base/; }
    location /no/ { proxy_pass http://@ORIGIN@; }
    location /add/ {
        proxy_pass http://@ORIGIN@/; add_before_body /t; add_after_body /px/after?x;
    }
""",
    [
        answer(HTML, body='a<!--#echo var="uri"--><!--#include virtual="/t"-->'),
        answer(
            HTML,
            'ETag: "x"',
            "Accept-Ranges: bytes",
            body='<!--#echo var="sent_http_etag"-->',
            more=" | Range: bytes=0-2",
        ),
        answer(HTML, status="404 Not Found", body='<!--#echo var="status"-->'),
        answer("Content-Type: text/plain", body='<!--#echo var="uri"-->'),
        answer(
            HTML,
            body='<!--#include virtual="/px/a b%20c?d=%41"-->|<!--#include virtual="/no/a%3fb"-->',
        ),
        answer(
            HTML,
            body='<!--#include virtual="/no/e" set="x"-->[<!--#echo var="x" encoding="none"-->]',
        ),
        answer(HTML, body='<!--#include virtual="/px/e"-->', request="HEAD"),
        answer(
            HTML,
            body='<!--#include virtual="/px/e"--><!--#echo var="request_method"-->',
            request="POST",
        ),
        answer(
            HTML,
            body='<!--#include virtual="/px/e"-->',
            request="POST",
            more=" | Content-Length: 0",
        ),
        "GET /q404.html",
        answer(HTML, body="body", base="/add"),
        answer(HTML, status="201 Created", body="body", base="/add"),
        "GET /add/x",
        "POST /proxied.html | X: y",
    ],
)
server(
    "addition",
    r"""
        location /t {
            ssi off; default_type text/plain;
            return 200 "[$uri|$args|$request_uri|$request_method]";
        }
        location /b/ { add_before_body /t; alias @DIR@/www/ssi/; }
        location /a/ { add_after_body /t?x=y; alias @DIR@/www/ssi/; }
        location /ab/ {
            add_before_body /t1; add_after_body /t2; alias @DIR@/www/ssi/;
            location /ab/off/ { add_before_body ""; alias @DIR@/www/ssi/; }
            location /ab/txt/ { addition_types text/plain; alias @DIR@/www/ssi/; }
            location /ab/all/ { addition_types *; alias @DIR@/www/ssi/; }
            location /ab/own/ { add_after_body /t3; alias @DIR@/www/ssi/; }
        }
        location /s/ {
            ssi on; add_before_body /e.html; add_after_body /e.html; alias @DIR@/www/ssi/;
        }
        location = /e.html { ssi on; }
        location /sub/ { sub_filter XX xx; add_before_body /t; alias @DIR@/www/ssi/; }
        location /miss/ {
            add_before_body /nowhere; add_after_body /r; alias @DIR@/www/ssi/;
        }
        location /r { return 301 /x; }
        location /cycle/ { add_before_body /cycle/hello.html; alias @DIR@/www/ssi/; }
        location /text { default_type text/html; add_after_body /t; return 200 text; }
        location /201 { default_type text/html; add_after_body /t; return 201 text; }
        location /rel/ { add_before_body t; alias @DIR@/www/ssi/; }
    """,
    [
        f"{method} {path}{more}"
        for method in ("GET", "HEAD")
        for path in words("""
    /b/p.html /a/p.html /a/p.txt /ab/p.html /ab/off/p.html /ab/txt/p.txt /ab/all/p.txt
    /ab/own/p.html /s/p.html /sub/p.html /b/empty.html /miss/p.html /b/nowhere.html
    /cycle/hello.html /text /201 /b/dir/ /b/dir
""")
        for more in MORE
    ]
    + ["POST /b/p.html", "GET /a/p.html HTTP/1.0", "GET /rel/p.html"],
)
server(
    "addition and gzip",
    r"""
    gzip on; gzip_min_length 0; gzip_vary on; add_before_body /t; add_after_body /p.txt;
    location /t { default_type text/plain; return 200 "[t]"; }
""",
    [
        f"{method} {path} | Accept-Encoding: {coding}"
        for method in ("GET", "HEAD")
        for path in ("/p.html", "/p.txt", "/empty.html", "/nowhere")
        for coding in ("gzip", "identity")
    ],
    lengths="any",
)

for text in (
    "ssi;",
    "ssi maybe;",
    "ssi on; ssi off;",
    "ssi_silent_errors x;",
    "ssi_types;",
    "ssi_types text/html;",
    "ssi_types a/b a/b;",
    "ssi_types *;",
    "ssi_types a/b; ssi_types c/d;",
    "ssi_value_length x;",
    "ssi_value_length 1 2;",
    "ssi_value_length 0;",
    "ssi_value_length -1;",
    "ssi_min_file_chunk x;",
    "ssi_min_file_chunk 1k;",
    "ssi_ignore_recycled_buffers on;",
    "ssi_ignore_recycled_buffers maybe;",
    "ssi_last_modified maybe;",
    "add_before_body;",
    "add_before_body a;",
    "add_before_body '';",
    "add_before_body /a; add_before_body /b;",
    "add_after_body /a /b;",
    "add_after_body /a; add_after_body /b;",
    "add_after_body '';",
    "addition_types;",
    "addition_types x x;",
    "addition_types *;",
    "subrequest_output_buffer_size x;",
    "subrequest_output_buffer_size 0;",
    "subrequest_output_buffer_size 4k; subrequest_output_buffer_size 8k;",
):
    http_mistake(text)
for text in (
    "if ($uri) { ssi on; }",
    "if ($uri) { ssi_types a/b; }",
    "if ($uri) { add_before_body /a; }",
    "if ($uri) { ssi_silent_errors on; }",
    "if ($uri) { ssi_last_modified on; }",
    "limit_except GET { ssi on; }",
    "add_before_body $uri;",
    "ssi on; ssi_types a/b;",
    "set $date_local x;",
    "set $date_gmt x;",
):
    location_mistake(text)
