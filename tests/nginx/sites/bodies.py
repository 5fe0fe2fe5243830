"""Owns: the directives about request bodies.

What is kept in memory and what in files, and what variables say of it.
"""

from collections.abc import Sequence
from typing import Any

from ..site import Case, http
from .php import chunked, post

# Levels of directories, the name of the file, and the body where it is in memory. Files without
# names are called differently.
SHOW = (
    "add_header X-File $request_body_file always; add_header X-Body $request_body always; "
    "add_header X-Length $content_length always;"
)
HEAD = (
    "server { listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; location = /next { "
    "return 204; }"
)


def bodies(name: str, conf: str, cases: Sequence[Case], before: str = "", **options: Any) -> None:
    """Adds a server that shows what became of bodies."""
    conf = f"{SHOW}\n{before} {HEAD} {conf} }}"
    http(f"bodies: {name}", conf, cases, **{"open": True, "errors": True, **options})


PASS = "proxy_pass http://@ORIGIN@;"
SENT: list[Case] = [
    post("/", "short"),
    post("/", "x" * 3000),
    post("/", ""),
    "GET /",
    "GET / | Content-Length: 0",
    chunked("/", b"one", b"two"),
    chunked("/"),
    post("/", "y" * 20_000),
    post("/in/", "inner"),
    post("/clean/", "cleaned"),
    post("/off/", "memory"),
    post("/none/", "nobody"),
    post("/late/", "x" * 500),
    post("/back/", "behind an error"),
]
BLOCKS = f"""
    location / {{ {PASS} }}
    location /in/ {{
        client_body_temp_path @LOGS@/inner-%s 3 3;
        {PASS} location /in/deep/ {{ {PASS} }}
    }}
    location /clean/ {{ client_body_in_file_only clean; {PASS} }}
    location /off/ {{ client_body_in_file_only off; {PASS} }}
    location /none/ {{ return 200 none; }}
    location /late/ {{ client_max_body_size 100; {PASS} }}
    location /back/ {{
        proxy_intercept_errors on; error_page 502 = /in/; proxy_pass http://127.0.0.1:1;
    }}
"""
for _mode in ("on", "clean", "off"):
    bodies(
        f"in file only {_mode}",
        BLOCKS % _mode,
        SENT[:8] + SENT[8:]
        if _mode != "off"
        else [
            post("/", "short"),
            post("/in/deep/", "inner"),
            post("/clean/", "cleaned"),
            post("/clean/", ""),
        ],
        f"client_body_temp_path @LOGS@/bodies-{_mode} 1 2; client_body_in_file_only {_mode};",
    )
bodies(
    "file names",
    f"""
        location / {{ {PASS} }}
        location /one/ {{ client_body_temp_path @LOGS@/one 1; {PASS} }}
        location /no/ {{
            proxy_pass_request_body off; proxy_set_header Content-Length '';
            proxy_set_header X-File $request_body_file; {PASS}
        }}
    """,
    [post(path, "body") for path in ("/", "/one/", "/", "/one/", "/no/", "/")]
    + [post("/no/", "z" * 30_000)],
    "client_body_temp_path @LOGS@/names; client_body_in_file_only on;",
)
bodies(
    "one buffer",
    f"""
        location / {{ client_body_in_single_buffer on; client_body_buffer_size 1k; {PASS} }}
        location /big/ {{ client_body_buffer_size 64k; {PASS} }}
        location /small/ {{
            client_body_buffer_size 1; client_body_in_single_buffer on;
            client_body_in_file_only clean; {PASS}
        }}
    """,
    [
        post("/", "a" * 500),
        post("/big/", "a" * 500),
        chunked("/", b"a" * 100, b"b" * 100),
        chunked("/big/", *[b"a" * 1000] * 5),
        post("/small/", "ab"),
        post("/big/", "b" * 20_000, label="20000 to a large buffer"),
    ],
    "client_body_temp_path @LOGS@/single;",
)
bodies(
    "by FastCGI",
    """
        location / {
            include fastcgi.conf; fastcgi_param SCRIPT_FILENAME @DIR@/app/echo.php;
            fastcgi_pass @PHPA@;
        }
        location /file {
            include fastcgi.conf; fastcgi_param SCRIPT_FILENAME @DIR@/app/env.php;
            fastcgi_param BODY_FILE $request_body_file; fastcgi_pass_request_body off;
            fastcgi_pass @PHPA@;
        }
    """,
    [
        post("/", "short"),
        post("/", ""),
        post("/", "w" * 40_000),
        post("/file", "named"),
        chunked("/", b"one"),
    ],
    "client_body_temp_path @LOGS@/scripts 2; client_body_in_file_only on;",
)
