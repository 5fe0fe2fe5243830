"""Owns: configurations with post_action, whose log lines say where and how a request ended."""

from collections.abc import Sequence
from typing import Any

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import Case, http
from .php import post

LOG = """
    log_format post '$request_uri $uri $args $status $body_bytes_sent $request_completion '
        '$request_method $request_filename $document_root $upstream_status $request_length '
        '$content_length $v';
    access_log @LOGS@/access.log post;
    uninitialized_variable_warn off;
"""
SERVER = """
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        location = /next { set $v ''; access_log off; return 204; }
        %s
    }
"""


def site(name: str, conf: str, cases: Sequence[Case], before: str = "", **more: Any) -> None:
    """Adds one server whose access log says what post_action did, mostly behind the answer."""
    more.setdefault("open", False)
    http(f"post_action {name}", LOG + before + SERVER % conf, cases, errors=True, log=True, **more)


AFTER = 'location = /after { set $v "${v}A"; return 202 after; } '
ANSWERS: list[Case] = [
    "GET /hello.txt",
    "HEAD /hello.txt",
    "GET /hello.txt?a=b",
    "GET /none",
    "GET /dir",
    "GET /dir/",
    "GET /text",
    "GET /text?a=b",
    "GET /empty",
    "GET /moved",
    "GET /gone",
    "GET /page",
    "GET /named",
    "GET /closed",
    "GET /hello.txt | Range: bytes=0-2",
    "GET /hello.txt | Range: bytes=99-",
    "GET /hello.txt | If-None-Match: *",
    "GET /hello.txt HTTP/1.0",
    "PUT /hello.txt",
    "GET /rw/x?y=z",
    "GET /try",
    "GET /denied",
    "GET /hello.txt | Connection: close",
    "GET /in/x",
    "GET /set",
    b"POST /text HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
]
PIPELINE = (
    b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\nGET /text HTTP/1.1\r\nHost: localhost\r\n"
    b"\r\n"
)
LOCATIONS = """
    location = /text { return 200 text; }
    location = /empty { return 204; }
    location = /moved { return 301 /x; }
    location = /gone { return 410; }
    location = /closed { return 444; }
    location = /page { error_page 404 /errors/404.html; return 404; }
    location = /named { error_page 404 =200 @n; return 404; }
    location @n { return 200 n; }
    location /rw/ { rewrite ^ /text last; }
    location = /try { try_files /nothing /hello.txt; }
    location = /denied { deny all; }
    location /in/ { internal; }
    location = /set { set $v "${v}S"; return 200 set; }
"""
# Wherever the way ends, it goes on from there.
site(
    "path",
    "post_action /after; "
    + AFTER.replace("{", "{ post_action @end;", 1)
    + """
        location @end { post_action /last; set $v "${v}E"; return 203; }
        location = /last { post_action /cut; set $v "${v}L"; return 201 x; }
        location = /cut { return 444; }
    """
    + LOCATIONS,
    ANSWERS,
    alone=True,
)
for where in ("/after", "@after"):
    site(
        f"per location {where}",
        f"""
        location / {{ post_action {where}; }}
        {AFTER} location @after {{ set $v "${{v}}N"; return 203 named; }}
    """
        + LOCATIONS.replace("{ return", f"{{ post_action {where}; return")
        .replace("{ error_page", f"{{ post_action {where}; error_page")
        .replace("deny all;", f"deny all; post_action {where};")
        .replace("rewrite ^", f"post_action {where}; rewrite ^"),
        [*ANSWERS, PIPELINE],
    )
# As nginx has it, these end the connection that was to be kept.
ENDS = ["nobody", "off", "empty", "relative", "url", "five", "closed", "short"]
TARGETS = {
    "query": ("/after?x=1", ""),
    "variable": ("/after$args", ""),
    "none": ("/nothing", ""),
    "nobody": ("@nobody", ""),
    "off": ("off", ""),
    "empty": ("''", ""),
    "relative": ("after", ""),
    "url": ("http://a.test/", ""),
    "denied": ("/denied", "deny all;"),
    "inside": ("/inside", "internal; return 200 i;"),
    "file": ("/hello.txt", None),
    "directory": ("/dir", None),
    "slash": ("/dir/", None),
    "list": ("/list/", None),
    "dots": ("/dir/../after", None),
    "escaped": ("/%61fter", None),
    "gone": ("/gone", "return 410;"),
    "five": ("/five", "return 500;"),
    "moved": ("/moved", "return 302 /y;"),
    "closed": ("/closed", "return 444;"),
    "bare": ("/bare", "return 204;"),
    "short": ("/short", "keepalive_timeout 0; return 200;"),
    "page": ("/page", "error_page 404 =418 /after; return 404;"),
    "page2": ("/page2", "error_page 404 = @named; return 404;"),
    "rewritten": ("/rewritten", "rewrite ^ /after?k=v last;"),
    "broken": ("/broken", "rewrite ^ /hello.txt break;"),
    "tried": ("/tried", "try_files /nothing @named;"),
    "tried2": ("/tried2", "try_files /hello.txt =404;"),
    "tried3": ("/tried3", "try_files /nothing =403;"),
    "quiet": ("/quiet", "access_log off; return 200;"),
    "iffy": ("/iffy", "if ($request_method = GET) { return 203; } return 202;"),
    "asked": ("/asked", "auth_request /no; alias @DIR@/www/hello.txt;"),
    "let": ("/let", "auth_request /yes; alias @DIR@/www/hello.txt;"),
    "word": ("/word", "auth_basic x; auth_basic_user_file @DIR@/none.pw;"),
    "included": (
        "/included",
        "ssi on; ssi_types *; return 200 '<!--# include virtual=\"/after\" -->';",
    ),
    "small": ("/small", "client_max_body_size 1; return 200;"),
    "except": ("/except", "limit_except POST { deny all; } return 203;"),
    "gif": ("/gif", "empty_gif;"),
    "status": ("/status", "stub_status;"),
    "origin": ("/origin", "proxy_pass http://@ORIGIN@/x;"),
    "dead": ("/dead", "proxy_pass http://127.0.0.1:1;"),
    "deadpage": ("/deadpage", "proxy_pass http://127.0.0.1:1; error_page 502 = /after;"),
}
conf = ""
for name, (target, body) in TARGETS.items():
    conf += f"location = /from/{name} {{ post_action {target}; return 200 ok; }} "
    if body:
        conf += f"location = {target} {{ {body} }} "
NAMED = """
    location @named { set $v n; return 203; }
    location = /no { return 403; }
    location = /yes { return 204; }
"""
site(
    "targets",
    conf + AFTER + NAMED,
    [f"GET /from/{name}?a=b" for name in TARGETS if name not in ENDS]
    + [f"HEAD /from/{name}" for name in ("origin", "file", "gone")]
    + [
        post(f"/from/{name}", "hello", label=f"POST to {name}")
        for name in ("origin", "file", "small", "except", "bare")
    ],
)
site(
    "targets that fail",
    conf + AFTER + NAMED,
    [f"{method} /from/{name}?a=b" for method in ("GET", "HEAD") for name in ENDS],
    alone=True,
)
http(
    "post_action connections",
    SERVER % (conf + AFTER + NAMED),
    [f"GET /from/{name}" for name in ENDS],
    open=False,
)
site(
    "rounds",
    """
    location = /round { post_action /round; set $v "${v}R"; return 200 r; }
    location = /cycle { post_action /after; rewrite ^ /cycle last; }
    location = /self { post_action @self; return 200; }
    location @self { post_action @self; set $v "${v}S"; return 202; }
    location = /two { post_action /three; set $v "${v}2"; return 200; }
    location = /three { post_action /two; set $v "${v}3"; return 201 x; }
    location = /pages {
        post_action /pages; error_page 404 /gone; recursive_error_pages on; return 404;
    }
    location = /gone { return 404; }
"""
    + AFTER,
    [
        "GET /round",
        "GET /cycle",
        "GET /self",
        "GET /two",
        "GET /three",
        "GET /pages",
        "GET /round HTTP/1.0",
    ],
    alone=True,
)
site(
    "inheritance",
    """
    location = /a { return 200 a; }
    location = /b { post_action /inner; return 200 b; }
    location /c { set $on 1; if ($on) { post_action /inner; return 200 c; } }
    location /d/ {
        post_action /inner;
        location /d/e { return 200 e; }
        location /d/f { post_action @end; return 200 f; }
    }
    location = /inner { post_action @end; return 203; }
    location = /outer { post_action @end; return 203; }
    location @end { post_action /last; return 202; }
    location = /last { return 444; }
    location /x { limit_except GET { deny all; } return 200 x; }
""",
    [
        "GET /a",
        "GET /b",
        "GET /c",
        "GET /d/",
        "GET /d/e",
        "GET /d/f",
        "GET /x",
        "POST /x",
        "GET /hello.txt",
        "HEAD /a",
    ],
    alone=True,
    before="post_action /outer; ",
)
site(
    "bodies",
    """
    location = /both { proxy_pass http://@ORIGIN@/first; post_action /origin; }
    location = /origin { proxy_pass http://@ORIGIN@/second; }
    location = /text { post_action /origin; return 200 t; }
    location = /limited { client_max_body_size 3; post_action /origin; proxy_pass http://@ORIGIN@; }
""",
    [f"{method} /{where}" for method in ("GET", "HEAD") for where in ("both", "text")]
    + [
        (
            f"POST to {where}",
            f"POST /{where} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello".encode(),
        )
        for where in ("both", "text", "limited")
    ],
    open=True,
)

for text in ("post_action;", "post_action /a /b;", "post_action /a; post_action /b;"):
    location_mistake(text)
    http_mistake(text)
