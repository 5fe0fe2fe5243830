"""Owns: groups of php-fpms, and what else is said of where scripts run."""

from collections.abc import Sequence
from typing import Any

from ..site import Case
from .php import DEAD, FORM, HEAD, http, php, post, server

ROUND = [(f"request {n}", "GET /pool.php") for n in range(1, 13)]
BACK = """
    location ~ \\.php$ {
        include fastcgi.conf; fastcgi_pass php;
        add_header X-U "$upstream_addr $upstream_status" always; %s
    }
"""


def group(name: str, servers: str, cases: Sequence[Case], more: str = "", **options: Any) -> None:
    """Adds a server that passes scripts to these servers."""
    before = f"upstream php {{ {servers} }}"
    server(f"group {name}", BACK % more, cases, before=before, **options)


group("of three", "server @PHPA@; server @PHPB@; server @PHPC@;", ROUND)
group("with weights", "server @PHPA@ weight=5; server @PHPB@ weight=2; server @PHPC@;", ROUND)
group("with least_conn", "least_conn; server @PHPA@ weight=2; server @PHPB@; server @PHPC@;", ROUND)
group("with ip_hash", "ip_hash; server @PHPA@; server @PHPB@; server @PHPC@ weight=2;", ROUND[:3])
group(
    "with hash",
    "hash $arg_k; server @PHPA@ weight=2; server @PHPB@; server @PHPC@;",
    [
        f"GET /pool.php?k={key}"
        for key in (
            "",
            "a",
            "b",
            "c",
            "d",
            "e",
            "longer key",
            "\u00fc",
            "1",
            "2",
            "3",
            "4",
            "5",
            "6",
            "7",
            "8",
            "9",
        )
    ],
)
group(
    "with consistent hash",
    "hash $arg_k consistent; server @PHPA@ weight=2; server @PHPB@; server @PHPC@;",
    [f"GET /pool.php?k={key}" for key in ("", *"abcdefghijklmnopqrstuvwxyz")],
)
group(
    "with hash and a dead server",
    f"hash $arg_k; server @PHPA@; server {DEAD}; server @PHPB@;",
    [f"GET /pool.php?k={key}" for key in "abcdefgh"],
)
group("with backup", "server @PHPA@; server @PHPB@ backup;", ROUND[:4])
group("with backup for a dead one", f"server {DEAD}; server @PHPB@ backup;", ROUND[:4])
group("with down", "server @PHPA@ down; server @PHPB@;", ROUND[:4])
group("all down", "server @PHPA@ down; server @PHPB@ down;", ROUND[:2])
group("with a dead server", f"server {DEAD}; server @PHPB@;", ROUND[:4] + [post("/pool.php", "x")])
group(
    "with a dead server that is tried again",
    f"server {DEAD} max_fails=0; server @PHPB@;",
    ROUND[:6],
)
group(
    "with a dead server that may fail thrice",
    f"server {DEAD} max_fails=3; server @PHPB@;",
    ROUND[:8],
)
group(
    "all dead",
    f"server {DEAD}; server 127.0.0.1:@P9@;",
    ROUND[:3] + ["HEAD /pool.php", post("/pool.php", "x")],
)
group("of one dead server", f"server {DEAD};", ROUND[:3])
group(
    "next after 500",
    "server @PHPA@; server @PHPB@; server @PHPC@;",
    [
        "GET /pool.php?s=500",
        "GET /pool.php?s=503",
        "GET /pool.php?s=404",
        "GET /pool.php?s=429",
        "GET /pool.php?s=403",
        post("/pool.php?s=500", "x"),
        post("/pool.php?s=500", "x", method="PUT"),
        "GET /pool.php",
        "HEAD /pool.php?s=500",
    ],
    "fastcgi_next_upstream error timeout http_500 http_503 http_404 http_429;",
)
group(
    "next after 500 for all methods",
    "server @PHPA@; server @PHPB@;",
    [post("/pool.php?s=500", "x"), post("/pool.php", "x")],
    "fastcgi_next_upstream error http_500 non_idempotent;",
)
group(
    "next at most twice",
    "server @PHPA@; server @PHPB@; server @PHPC@;",
    ["GET /pool.php?s=500", "GET /pool.php?s=500"],
    "fastcgi_next_upstream http_500; fastcgi_next_upstream_tries 2;",
)
group("next never", f"server {DEAD}; server @PHPB@;", ROUND[:4], "fastcgi_next_upstream off;")
group(
    "that dies",
    "server @PHPA@; server @PHPB@;",
    ["GET /die.php", "GET /die.php?first=1", post("/die.php", "x"), "GET /pool.php"],
)
group(
    "with a name and a port",
    "server localhost:@P9@ down; server 127.0.0.1:@P8@ backup; server @PHPC@;",
    ROUND[:3],
)
group(
    "with intercepted errors",
    f"server {DEAD};",
    ["GET /pool.php", post("/pool.php", "x"), "HEAD /pool.php"],
    "error_page 502 /errors/50x.html; fastcgi_intercept_errors on;",
)
group(
    "falling back to another",
    f"server {DEAD};",
    ["GET /pool.php", post("/pool.php", "x"), "HEAD /pool.php"],
    "error_page 502 504 = @other; } location @other { include fastcgi.conf; fastcgi_pass @PHPB@;",
)

server(
    "sockets that are dead",
    f"""
location /none/ {{ fastcgi_pass {DEAD}; }}
location /refused/ {{ fastcgi_pass 127.0.0.1:@P9@; }}
location /file/ {{ fastcgi_pass unix:@DIR@/not-a-socket; }}
location /dir/ {{ fastcgi_pass unix:@DIR@/app; }}
location /deep/ {{ fastcgi_pass unix:@DIR@/none/none.sock; }}
    location /shown/ {{ error_page 502 =200 /errors/50x.html; fastcgi_pass {DEAD}; }}
    location /quiet/ {{ log_not_found off; fastcgi_pass {DEAD}; }}""",
    [
        f"{method} /{name}/x.php?a=b"
        for method in ("GET", "HEAD")
        for name in ("none", "refused", "file", "dir", "deep", "shown", "quiet")
    ]
    + [post("/none/x", "body")],
)
server(
    "variables in fastcgi_pass",
    """
        location ~ ^/(\\w+)/(.*\\.php)$ {
            set $to $1; include fastcgi.conf; fastcgi_param SCRIPT_FILENAME $document_root/$2;
            fastcgi_pass unix:@DIR@/$to.sock;
        }
        location = /group {
            set $g php; include fastcgi.conf; fastcgi_param SCRIPT_FILENAME $document_root/pool.php;
            fastcgi_pass $g;
        }
        location = /address {
            set $g @PHPC@; include fastcgi.conf;
            fastcgi_param SCRIPT_FILENAME $document_root/pool.php; fastcgi_pass $g;
        }
        location = /empty { fastcgi_pass $arg_none; }
        location = /name { fastcgi_pass $arg_n:9; }
    """,
    [
        "GET /a/pool.php",
        "GET /b/pool.php",
        "GET /none/pool.php",
        "GET /group",
        "GET /address",
        "GET /empty",
        "GET /name?n=no-such-host.invalid",
        "GET /name?n=127.0.0.1",
    ],
    before="upstream php { server @PHPB@; }",
)
php(
    "slow",
    "fastcgi_read_timeout 700ms;",
    [
        "GET /slow.php?ms=300",
        "GET /slow.php?ms=1500",
        "GET /slow.php?ms=1500&first=1",
        post("/slow.php?ms=1500", "x"),
        "HEAD /slow.php?ms=1500",
    ],
    rest="error_page 504 /errors/50x.html;",
)
php(
    "stderr",
    "",
    [
        "GET /stderr.php",
        "GET /warning.php",
        "GET /fatal.php",
        "GET /parse.php",
        "GET /stderr.php?long=900",
    ],
)
php(
    "stderr that is an error",
    "fastcgi_catch_stderr 'PHP Fatal error'; fastcgi_catch_stderr 'two';",
    ["GET /stderr.php", "GET /warning.php", "GET /fatal.php", "GET /say.php"],
)
php(
    "children that die",
    "",
    [
        "GET /die.php",
        "GET /die.php?first=1",
        "HEAD /die.php",
        post("/die.php", "x"),
        "GET /say.php",
    ],
)
php(
    "lengths that lie",
    "",
    [
        "GET /length.php?n=10&d=5",
        "GET /length.php?n=10&d=-5",
        "GET /length.php?n=1000&d=-6999",
        "HEAD /length.php?n=10&d=5",
        "GET /length.php?n=10&d=5 HTTP/1.0",
    ],
)
server(
    "under limits",
    """
        location / { include fastcgi.conf; fastcgi_pass @PHPA@; }
        location /deny/ { deny all; fastcgi_pass @PHPA@; }
    """,
    ["GET /say.php", "POST /say.php | Content-Length: 0", "HEAD /say.php", "GET /deny/x.php"],
)
server(
    "aliases",
    """
        location /al/ {
            alias @DIR@/app/dir/;
            location ~ \\.php$ {
                include fastcgi.conf; fastcgi_param SCRIPT_FILENAME $request_filename;
                fastcgi_pass @PHPA@;
            }
        }
    """,
    ["GET /al/env.php", "GET /al/", "GET /al/none.php"],
)
http(
    "two servers",
    """
        server { listen 127.0.0.1:@P0@ default_server; server_name _; return 444; }
        server {
            listen 127.0.0.1:@P0@; server_name localhost next *.example.test; root @DIR@/app;
            location / { include fastcgi.conf; fastcgi_pass @PHPA@; }
            location = /next { return 204; }
        }
    """,
    [
        "GET /env.php",
        "GET /env.php | Host: a.example.test",
        "GET /env.php | Host: A.Example.Test:80",
        "GET /env.php | Host: other",
    ],
)
http(
    "a log of origins",
    """
        log_format up
            '$upstream_addr|$upstream_status|$request_length|$status|$uri|$request_uri|'
            '$request_body';
        server {
            %s access_log @LOGS@/access.log up;
            location ~ \\.php$ {
                include fastcgi.conf; fastcgi_pass php; fastcgi_next_upstream error http_500;
            }
        }
        upstream php { server %s; server @PHPA@; server @PHPB@; }
    """
    % (HEAD, DEAD),
    [
        "GET /pool.php",
        "GET /pool.php?s=500",
        post("/echo.php", "a=1", FORM),
        "GET /none.txt",
        "GET /none.php",
    ],
    log=True,
)
