"""Owns: configurations in which requests change files: dav_methods, proxy_store and their kin."""

from collections.abc import Sequence

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import Single, http
from .php import post

SERVER = """
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @LOGS@;
        client_body_temp_path @LOGS@/bodies;
        dav_methods PUT DELETE MKCOL COPY MOVE;
        location /full/ { create_full_put_path on; dav_access user:rw group:rw all:r; }
        location /deep/ {
            min_delete_depth 3; create_full_put_path on;
            location /deep/free/ { min_delete_depth 1; create_full_put_path off; }
            location /deep/as/ { root @LOGS@; }
        }
        location /off/ { dav_methods off; }
        location /put/ { dav_methods PUT; }
        location /also/ { dav_methods MKCOL; dav_methods off PUT; }
        location /al/ { alias @LOGS@/aliased/; }
        location /limited/ { limit_except GET { deny all; } }
        location /small/ { client_max_body_size 5; }
        location /tried/ { try_files $uri =404; }
        location /failing/ { error_page 409 415 = /page; }
        location = /page { return 200 page; }
        location /passed { proxy_pass http://@ORIGIN@; }
    }
"""


def put(path: str, *fields: str, body: bytes = b"body") -> tuple[str, bytes]:
    """A PUT with a body of known length."""
    return post(path, body, *fields, method="PUT")


def move(method: str, path: str, to: str, *fields: str) -> str:
    """A COPY or MOVE."""
    return " | ".join((f"{method} {path}", f"Destination: {to}", *fields))


def moves(method: str) -> Sequence[Single]:
    """What there is to ask of COPY and MOVE, and what is there afterwards."""
    return [
        put("/one", body=b"1"),
        put("/two", body=b"2"),
        f"MKCOL /{method}/",
        put(f"/{method}/x", body=b"x"),
        f"{method} /one",
        move(method, "/one", "https://localhost/x"),
        move(method, "/one", "HTTP://localhost/x"),
        move(method, "/one", "http://else/x"),
        move(method, "/one", "http://localhost"),
        move(method, "/one", "x"),
        move(method, "/one", "/../x"),
        move(method, "/one", "/a/.."),
        move(method, "/one", "/%2e%2e/x"),
        move(method, "/one", "/two", "Overwrite: F"),
        move(method, "/one", "/two", "Overwrite: x"),
        move(method, "/one", "/three", "Depth: 1"),
        move(method, "/one", "/three", "Depth: x"),
        move(method, "/one", "/three/"),
        move(method, "/one", f"/{method}"),
        move(method, "/one", "/two/f"),
        move(method, "/none", "/three"),
        move(method, f"/{method}", "/three"),
        move(method, f"/{method}/", "/no/deep/"),
        move(method, f"/{method}/", "/two/", "Overwrite: F"),
        move(method, "/one", "http://localhost:1/s%20p?a=b"),
        "GET /one",
        "GET /s%20p",
        put("/one", body=b"1"),
        move(method, "/one", "/two", "Overwrite: T"),
        "GET /one",
        "GET /two",
        move(method, f"/{method}/", "/there/"),
        "GET /there/x",
        f"GET /{method}/x",
        move(method, "/al/x", "/elsewhere"),
        "DELETE /there/",
        "DELETE /s%20p",
        "DELETE /two",
        f"DELETE /{method}/",
    ]


http(
    "dav",
    SERVER,
    [
        "MKCOL /dir/",
        "MKCOL /put/",
        "MKCOL /also/",
        put("/new"),
        "GET /new",
        put("/new", "Date: Sun, 06 Nov 1994 08:49:37 GMT", body=b"more"),
        "GET /new",
        put("/new?a=b", body=b""),
        "GET /new",
        put("/s%20p%25"),
        put("/no/new"),
        put("/new/file"),
        put("/dir"),
        put("/dir/"),
        put("/new", "Content-Range: bytes 0-1/2"),
        put("/dir/", "Content-Range: bytes 0-1/2"),
        "PUT /new",
        (
            "PUT /chunks",
            b"PUT /chunks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\n\r\n",
        ),
        "GET /chunks",
        put("/full/a/b/c"),
        "GET /full/a/b/c",
        put("/off/a"),
        put("/put/a"),
        put("/also/a"),
        "MKCOL /also/a/",
        "DELETE /also/a",
        put("/limited/a"),
        put("/small/a", body=b"123456"),
        put("/tried/a"),
        put("/failing/"),
        put("/passed"),
        put("/al/none/a"),
        "MKCOL /made",
        "MKCOL /made/",
        "MKCOL /made/",
        "MKCOL /no/made/",
        "MKCOL /new/made/",
        "MKCOL /limited/made/",
        "DELETE /made",
        "DELETE /made/ | Depth: 0",
        "DELETE /made/ | Depth: infinity",
        "DELETE /made/",
        "DELETE /new/",
        "DELETE /new/a",
        "DELETE /new | Depth: 1",
        "DELETE /new | Depth: 0",
        "DELETE /new",
        put("/deep/a/b"),
        "DELETE /deep/",
        "DELETE /deep/a/",
        "DELETE /deep/a/b",
        put("/deep/free/a/b"),
        "MKCOL /deep/free/",
        put("/deep/free/b"),
        put("/deep/as/a/b"),
        "DELETE /deep/as/",
        "DELETE /deep/free/",
        "DELETE /full/",
        "GET /full/a/b/c",
        post("/dir/", body=b"x"),
        "OPTIONS /dir/",
    ],
    errors=True,
)
http("transfers", SERVER, [*moves("COPY"), *moves("MOVE")], errors=True)
STORE = """
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @LOGS@/mirror;
        proxy_temp_path @LOGS@/parts; proxy_set_header Host mirror; proxy_store on;
        proxy_store_access user:rw all:r; proxy_http_version 1.1; proxy_set_header Connection "";
        location /seen/ { alias @LOGS@/mirror/; }
        location / { proxy_pass http://@ORIGIN@; }
        location /own/ { proxy_pass http://@ORIGIN@; proxy_store @LOGS@/mirror/kept$arg_at;
            proxy_store_access user:rw group:r; }
        location /off/ { proxy_pass http://@ORIGIN@; proxy_store off; }
        location /direct/ { proxy_pass http://@ORIGIN@; proxy_buffering off; }
        location /mirror/ { error_page 404 = /fetch$uri; log_not_found off; }
        location /fetch/ { internal; alias @LOGS@/mirror/; proxy_pass http://@ORIGIN@/; }
        location /tried/ { try_files $uri @fetch; }
        location @fetch { internal; proxy_pass http://@ORIGIN@; }
    }
"""


def said(head: str, body: str = "abc") -> str:
    """The path at which the origin says this."""
    return "/raw/" + f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}".encode().hex()


def asked_and_seen(path: str, seen: str | None = None) -> list[str]:
    """What is asked of the origin, and what became of it."""
    return [f"GET {path}", f"GET /seen{seen or path}"]


WHOLE = "200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: "
http(
    "stored responses",
    STORE,
    [
        *asked_and_seen("/a"),
        *asked_and_seen("/a/b/c?x", "/a/b/c"),
        *asked_and_seen("/new/b/c?x", "/new/b/c"),
        *asked_and_seen(said(WHOLE + "3")),
        *asked_and_seen(said(WHOLE + "0", "")),
        *asked_and_seen(said("200 OK\r\nContent-Type: text/plain")),
        *asked_and_seen(said("203 Other\r\nContent-Length: 3")),
        *asked_and_seen(said("404 Missing\r\nContent-Length: 3")),
        *asked_and_seen(said("200 OK\r\nX-Accel-Buffering: no\r\nContent-Length: 3")),
        *asked_and_seen(said("200 OK\r\nX-Accel-Redirect: /off/x\r\nContent-Length: 3")),
        *asked_and_seen("/own/x?at=/y/z", "/kept/y/z"),
        *asked_and_seen("/off/x"),
        *asked_and_seen("/direct/x"),
        *asked_and_seen("/mirror/x"),
        "GET /mirror/x",
        *asked_and_seen("/tried/x"),
        "GET /tried/x",
    ],
    open=True,
)
for text in (
    "dav_methods;",
    "dav_methods x;",
    "dav_methods put;",
    "dav_methods off PUT;",
    "dav_methods PUT PUT;",
    "dav_access;",
    "dav_access user:rw group:r all:r user:r;",
    "dav_access user:rwx;",
    "dav_access user:w;",
    "dav_access user:;",
    "dav_access user;",
    "dav_access x:r;",
    "dav_access user:r user:rw;",
    "dav_access user:r; dav_access user:r;",
    "min_delete_depth -1;",
    "min_delete_depth x;",
    "min_delete_depth 1; min_delete_depth 1;",
    "create_full_put_path yes;",
    "proxy_store;",
    'proxy_store "";',
    "proxy_store on; proxy_store off;",
    "proxy_store off; proxy_cache off;",
    "proxy_store_access user:x;",
    "proxy_store_access user:r; proxy_store_access user:r;",
    "fastcgi_store_access all;",
    "proxy_cache_path @DIR@/z keys_zone=z:1m; proxy_cache z; proxy_store on;",
    "proxy_cache_path @DIR@/z keys_zone=z:1m; proxy_store on; proxy_cache z;",
    "proxy_cache_path @DIR@/z keys_zone=z:1m; proxy_store off; proxy_cache z;",
    "proxy_cache_path @DIR@/z keys_zone=z:1m; proxy_cache z; server { proxy_store on; }",
    "fastcgi_cache_path @DIR@/z keys_zone=z:1m; fastcgi_store on; fastcgi_cache z;",
):
    http_mistake(text)
for text in ("if ($uri) { dav_methods PUT; }", "limit_except GET { dav_methods PUT; }"):
    location_mistake(text)
