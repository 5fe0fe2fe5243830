"""Owns: the comparison of `proxy_http_version 2`, whose origin speaks HTTP/2."""

from .. import site
from .grpc import SAID, WRONG, kept, raw
from .php import chunked, post

PASS = "proxy_pass http://@ORIGIN@;"
SHOWN = 'add_header X-U "$upstream_status $upstream_addr" always;'


def server(name: str, conf: str, cases: list[site.Single], before: str = "") -> None:
    """Compares one server."""
    text = f"""{before}
    server {{
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; proxy_http_version 2;
        {SHOWN} {conf}
    }}"""
    site.http(f"proxy_http_version 2 {name}", text, cases, open=True, errors=True)


server(
    "requests",
    f"""
    location / {{ {PASS} }}
    location /own/ {{ {PASS} proxy_set_header A "$arg_a b"; proxy_set_header X own;
        proxy_set_header Y ""; proxy_set_header TE trailers; proxy_set_header Host $host; }}
    location /host/ {{ {PASS} proxy_set_header Host ""; }}
    location /streamed/ {{ {PASS} proxy_request_buffering off; proxy_buffering off; }}
    location /uri/ {{ proxy_pass http://@ORIGIN@/other; }}
    location /var/ {{ proxy_pass $arg_to; }}
    location /trailers/ {{ {PASS} proxy_pass_trailers on; }}
    location /body/ {{ {PASS} proxy_set_body "hi $arg_a"; }}
    location /method/ {{ {PASS} proxy_method POST; }}
    location /bare/ {{ {PASS} proxy_pass_request_headers off; }}
    location /old/ {{ {PASS} proxy_http_version 1.1; }}
    location /kept/ {{ proxy_pass http://kept; }}
    location /break/ {{ rewrite ^/break/(.*) "/x y/$1?z=1" break; {PASS} }}
    """,
    [
        "GET /a%20b?c=d | X: 1 | x: 2 | TE: trailers | Cookie: a=1 | Cookie: b=2 | Upgrade: x",
        "GET http://other.test/a",
        "GET / HTTP/1.0",
        "HEAD /",
        "GET /own/?a=1 | X: client | Y: client | Z: client",
        "GET /host/",
        post("/", "body"),
        post("/", ""),
        post("/", "b" * 200_000),
        chunked("/", b"one", b"two"),
        "DELETE / | Content-Length: 0",
        post("/streamed/", "body"),
        "GET /streamed/",
        "GET /uri/x?y",
        "GET /var/?to=http://@ORIGIN@/v",
        "GET /trailers/",
        "GET /body/?a=1",
        post("/body/", "body"),
        "GET /method/",
        "GET /bare/ | X: y",
        "GET /old/",
        "GET /kept/1",
        "GET /kept/2",
        post("/kept/3", "body"),
        "GET /kept/4",
        "GET /break/a%20b?c=d",
    ],
    before="upstream kept { server @ORIGIN@; keepalive 1; }",
)
server(
    "responses",
    f"""
    location / {{ {PASS} proxy_buffering off; proxy_pass_trailers on; proxy_hide_header X-Secret; }}
    location /caught/ {{ {PASS} proxy_buffering off; proxy_intercept_errors on;
        error_page 404 503 /other; }}
    location /other {{ return 200 other; }}
    location @named {{ return 200 named; }}
    """,
    [
        *(kept(label, *said) for label, said in SAID.items()),
        *(kept(label, *SAID[label], base="/caught") for label in ("404", "503", "messages")),
    ],
)
server(
    "errors",
    f"location / {{ {PASS} }}",
    [raw(label, *said) for label, said in WRONG.items()],
)
