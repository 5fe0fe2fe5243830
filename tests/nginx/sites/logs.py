"""Owns: configurations about what stands in logs.

Access logs in all forms and places, and the lines of the error log about requests, from [info] on.
"""

import re
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..site import Case, http

SERVER = "server { listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;\n%s\n}"
ACCESS = "access_log @LOGS@/access.log"


def access(name: str, before: str, conf: str, cases: Sequence[Case], **more: Any) -> None:
    """Adds a server whose access log is compared."""
    http(f"logs: {name}", before + SERVER % conf, cases, log=True, **more)


def errors(name: str, conf: str, cases: Sequence[Case], before: str = "", **more: Any) -> None:
    """Adds a server whose error log is compared from [info] on."""
    http(f"error log: {name}", before + SERVER % conf, cases, errors="info", **more)


ODD: list[Case] = [
    "GET /a | X: plain",
    "GET /a | X:",
    "GET /a",
    'GET /a | X: a"b\\c',
    "GET /a | X: tab\there",
    "GET /a | X: \x01\x02\x1f\x7f",
    "GET /a | X: \u00e9\u20ac",
    "GET /a | X: </script>&'",
    "GET /%22%5c%01%7f%c3%a9/a",
    'GET /a?q="\\ | X: b',
    "GET /a | X: \\x41 \\u0041",
    "GET /a | X: a | X: b",
    ("a value of 5000", "GET /a | X: " + '"x' * 2500),
    "GET /%0a%0d%08%09%0c",
    "GET /a?%22",
]
for escape in ("default", "json", "none"):
    access(
        f"escape={escape}",
        f"""
            log_format f escape={escape}
                '[$http_x][$arg_q][$uri][$request][$cookie_none][$upstream_addr][$remote_user]'
                '[$is_args]';
            {ACCESS} f;
        """,
        "location / { return 200; }",
        ODD,
    )
access(
    "no escape named",
    f"log_format f '$http_x' ' ' \"$uri\" $status; {ACCESS} f;",
    "location / { return 200; }",
    ODD,
)
access(
    "texts in formats",
    f"""
        log_format g \'{{"a":"$status"}}\' "tab\\there\\nline" \'quote\\\'d\' ${{status}}x;
        {ACCESS} g;
    """,
    "location / { return 200; }",
    ["GET /"],
)
access(
    "combined",
    f"{ACCESS} combined;",
    "location / { return 200; }",
    ["GET /none HTTP/1.0 | Referer: http://r.test/", "GET /x"],
)
access(
    "several, off and inherited",
    f"""
        log_format a 'a $uri $status'; log_format b 'b $uri'; log_format c 'c $uri'; {ACCESS} a;
        {ACCESS} b;
    """,
    f"""
    location /in {{
        location /in/two {{ }}
        location /in/off {{
            access_log off;
            location /in/off/deep {{ }}
            location /in/off/on {{ {ACCESS} c; }}
        }}
    }}
    location /own {{ {ACCESS} c; location /own/deep {{ }} }}
    location /offon {{ access_log off; {ACCESS} c; }}
    location /onoff {{ {ACCESS} c; access_log off; }}
    location /if {{ if ($arg_x) {{ {ACCESS} c; }} if ($arg_off) {{ access_log off; }} return 200; }}
    location /except {{ limit_except GET {{ {ACCESS} c; deny all; }} }}
    location /twice {{ {ACCESS} c; {ACCESS} c; }}
""",
    [
        "GET /in/x",
        "GET /in/two",
        "GET /in/off",
        "GET /in/off/deep",
        "GET /in/off/on",
        "GET /own/x",
        "GET /own/deep",
        "GET /offon",
        "GET /onoff",
        "GET /if",
        "GET /if?x=1",
        "GET /if?off=1",
        "GET /if?x=1&off=1",
        "GET /except",
        "POST /except",
        "GET /twice",
        "GET /hello.txt",
    ],
)
access(
    "conditions",
    f"""
        map $status $bad {{ ~^[45] 1; default 0; }}
        map $arg_m $m {{ a 1; b ''; c 00; d no; default $arg_m; }}
        log_format f '$uri $args $status'; {ACCESS} f if=$bad;
    """,
    f"""
    location /m {{ {ACCESS} f if=$m; return 200; }}
    location /both {{ {ACCESS} f if=$arg_a$arg_b; return 200; }}
    location /empty {{ {ACCESS} f if=; return 200; }}
    location /text {{ {ACCESS} f if=0; return 200; }}
    location /yes {{ {ACCESS} f if=x; return 200; }}
    location /last {{ {ACCESS} f if=$arg_a if=$arg_b; return 200; }}
""",
    [
        "GET /hello.txt",
        "GET /none",
        "PUT /hello.txt",
        *[f"GET /m?m={m}" for m in "abcd01"],
        "GET /m?m=",
        "GET /m",
        "GET /both",
        "GET /both?a=0",
        "GET /both?a=0&b=0",
        "GET /both?b=1",
        "GET /empty",
        "GET /text",
        "GET /yes",
        "GET /last?a=1",
        "GET /last?b=1",
    ],
)
access(
    "redirects inside",
    f"""
        log_format f
            '$uri $request_uri $args $status $body_bytes_sent $request_method $request_completion';
        {ACCESS} f; error_page 404 /errors/404.html; error_page 403 = @named;
        error_page 405 =200 /hello.txt;
    """,
    f"""
    location @named {{ {ACCESS} f; return 200 n; }}
    location /errors/ {{ access_log off; }}
    location /deny {{ deny all; }}
    location /try {{ try_files /none /hello.txt; }}
    location /rw {{ access_log off; rewrite ^ /hello.txt last; }}
    location /idx/ {{ access_log off; alias @DIR@/www/dir/; }}
    location /ret {{ return 301 /x; }}
    location /444 {{ return 444; }}
""",
    [
        "GET /none",
        "GET /deny",
        "GET /try",
        "GET /rw?a=b",
        "GET /dir/",
        "GET /dir",
        "GET /idx/",
        "PUT /hello.txt",
        "GET /ret",
        "GET /444",
        "HEAD /hello.txt",
        "GET /hello.txt | Range: bytes=0-3",
        "GET /hello.txt | Range: bytes=99-",
        "GET /hello.txt | If-None-Match: *",
    ],
)
access(
    "variables of logs",
    f"""
        map $msec $msec_form {{ ~^\\d+\\.\\d\\d\\d$ ok; default $msec; }}
        map $request_time $rt_form {{ ~^0\\.\\d\\d\\d$ ok; default $request_time; }}
        map $time_iso8601 $iso_form {{
            ~^\\d+-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d[+-]\\d\\d:\\d\\d$ ok; default $time_iso8601;
        }}
        map $time_local $local_form {{
            "~^\\d\\d/[A-Z][a-z]{{2}}/\\d{{4}}:\\d\\d:\\d\\d:\\d\\d [+-]\\d{{4}}$" ok;
            default $time_local;
        }}
        map $connection $conn_form {{ ~^\\d+$ ok; default $connection; }}
        map $request_id $id_form {{ "~^[0-9a-f]{{32}}$" ok; default $request_id; }}
        log_format f
            '$status $body_bytes_sent $request_length $pipe $connection_requests $msec_form '
            '$rt_form $iso_form $local_form $conn_form $id_form';
        {ACCESS} f;
    """,
    "location / { }",
    [
        "GET /hello.txt",
        "GET /none",
        "HEAD /hello.txt",
        b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /hello.txt HTTP/1.0",
        "GET /hello.txt | X: " + "y" * 500,
        b"GET /hello.txt\r\n",
    ],
)
access(
    "names of files",
    "log_format f '$uri'; map $uri $file { /map @LOGS@/access.log; default ''; }",
    """
    access_log @LOGS@/$arg_f f;
    location /map { access_log $arg_d@LOGS@/access.log f; }
    location /root { root @DIR@/none; }
    location /alias { alias @DIR@/www/dir; }
    location /cache { open_log_file_cache max=2; access_log @LOGS@/$arg_f f; }
""",
    [
        "GET /hello.txt?f=access.log",
        "GET /none?f=access.log",
        "GET /root?f=access.log",
        "GET /alias?f=access.log",
        "GET /hello.txt?f=none/a",
        "GET /map",
        *["GET /cache?f=access.log"] * 3,
    ],
    errors=True,
    alone=True,
)

access(
    "requests inside",
    "log_format f '$uri $status $args $request_method $request_uri $request_length';",
    f"""
        {ACCESS} f;
        location /auth/ {{ alias @DIR@/www/; auth_request /ask; }}
        location = /ask {{ return 204; }}
        location /logged/ {{ log_subrequest on; alias @DIR@/www/; auth_request /ask2; }}
        location = /ask2 {{ log_subrequest on; return 204; }}
        location /no/ {{ auth_request /ask3; }}
        location = /ask3 {{ log_subrequest on; {ACCESS} f if=$arg_x; return 403; }}
        location /ssi {{
            ssi on; ssi_types *; default_type text/html;
            return 200 '<!--# include virtual="/in?a=b" -->|<!--# include virtual="/quiet" -->|<!--# include virtual="/none" -->';
        }}
        location /in {{ log_subrequest on; return 200 in; }}
        location /quiet {{ return 200 quiet; }}
    """,  # noqa: E501
    [
        "GET /auth/hello.txt",
        "GET /logged/hello.txt",
        "GET /no/x",
        "GET /no/x?x=1",
        "GET /ssi",
        "HEAD /ssi",
    ],
    alone=True,
)

PATHS = [
    "GET /none",
    "HEAD /none",
    "GET /none?a=b",
    "GET /noindex/",
    "GET /hello.txt/x",
    "GET /emptydir/",
    "GET / | Host: other.test",
    "GET /none | Referer: http://r.test/x",
    "GET /none | Host: UPPER.test:99",
    "GET /none HTTP/1.0",
    'GET /none | Referer: a"b\\c',
    "GET /%C3%A9",
    'GET /none?"\\',
    "GET /\u00e9",
    "POST /hello.txt",
    "PUT /hello.txt",
    "GET /%00",
    "GET /../x",
    "GET /none | User-Agent: x",
]
errors(
    "files and directories",
    """
        location /idx/ { index none.html; alias @DIR@/www/; }
        location /t { try_files /x /y =404; }
        location /u { try_files /x /none.html; }
        location /v { try_files /x @none; }
        location /w { try_files /x @n; }
        location @n { root @DIR@/none; }
    """,
    PATHS + ["GET /idx/", "GET /t", "GET /u", "GET /v", "GET /w"],
)
errors(
    "log_not_found",
    """
        log_not_found off;
        location /on { log_not_found on; }
        location /p { error_page 404 /gone; }
        location /d/ { index a; alias @DIR@/www/emptydir/; }
        location /l { autoindex on; log_not_found off; }
        location /on2 { log_not_found on; autoindex on; }
    """,
    [
        "GET /none",
        "GET /on",
        "GET /p",
        "GET /d/",
        "GET /l/x/",
        "GET /on2/x/",
        "GET /noindex/",
        "GET /hello.txt/",
    ],
)
errors(
    "access and passwords",
    """
        location /deny { deny all; }
        location /net { deny 10.0.0.0/8; allow 127.0.0.1; deny all; }
        location /auth { auth_basic x; auth_basic_user_file @DIR@/none.pw; }
        location /no { auth_basic x; auth_basic_user_file @DIR@/www/hello.txt; }
        location /any {
            satisfy any; deny all; auth_basic x; auth_basic_user_file @DIR@/www/hello.txt;
        }
        location /in { internal; }
    """,
    [
        "GET /deny",
        "HEAD /deny",
        "GET /net",
        "GET /auth",
        "GET /auth | Authorization: Basic YTpi",
        "GET /no",
        "GET /no | Authorization: Basic YTpi",
        "GET /no | Authorization: Basic !!",
        "GET /no | Authorization: Digest x",
        "GET /no | Authorization: Basic OmI=",
        "GET /any",
        "GET /any | Authorization: Basic YTpi",
        "GET /in",
    ],
)
errors(
    "rewriting",
    """
        rewrite_log on;
        location /a { rewrite ^/a/(.*)$ /hello.txt?x=$1 last; rewrite ^/none /x; }
        location /b { rewrite ^/b /c$1 break; }
        location /q { rewrite ^ /hello.txt? break; }
        location /r { rewrite ^ /x redirect; }
        location /p { rewrite ^ http://h/$uri permanent; }
        location /i {
            if ($arg_x = 1) { rewrite ^ /hello.txt break; }
            if ($uri ~ x) { set $a b; }
            if (-f $request_filename) { return 204; }
            return 200 $a;
        }
        location /off { rewrite_log off; rewrite ^ /hello.txt break; }
        location /loop { rewrite ^ /loop/x last; }
        location /un { set $z $v; return 200 $z$w; }
        location /set { set $v 1; set $w 2; return 200; }
    """,
    [
        "GET /a/b",
        "GET /a",
        "GET /b",
        "GET /q?a=b",
        "GET /r",
        "GET /p?x",
        "GET /i",
        "GET /i?x=1",
        "GET /ix",
        "GET /off",
        "GET /loop",
        "GET /un",
        "GET /set",
    ],
)
errors(
    "bodies",
    """
        client_max_body_size 10;
        location /big { client_max_body_size 1k; }
        location /none { return 200; }
    """,
    [
        b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n01234567890",
        b"POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n",
        b"POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n01234567890",
        (
            b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n"
            b"01234567890\r\n0\r\n\r\n"
        ),
    ],
)
errors(
    "heads",
    "",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
        b"GET / HTTP/2.5\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n: z\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nUnder_score: 1\r\n\r\n",
        b"GET http://h/none HTTP/1.1\r\nHost: a\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n",
        ("a long field", b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 9000 + b"\r\n\r\n"),
    ],
)
errors(
    "limits",
    """
        limit_req zone=a burst=1 nodelay; limit_conn ca 5;
        location /dry { limit_req_dry_run on; limit_req zone=b; limit_req_log_level error; }
        location /q { limit_req zone=b burst=3; limit_req_log_level notice; }
    """,
    [
        *[f"GET /hello.txt | X: {n}" for n in range(3)],
        *[f"GET /dry | X: {n}" for n in range(2)],
        "GET /q",
    ],
    before=(
        "limit_req_zone $uri zone=a:1m rate=1r/m; limit_req_zone $uri zone=b:1m rate=1000r/s; "
        "limit_conn_zone $uri zone=ca:1m;"
    ),
)
errors(
    "levels of blocks",
    """
        error_log @LOGS@/error.log crit;
        location /e {
            error_log @LOGS@/error.log error;
            location /e/c { }
            location /e/i {
                error_log @LOGS@/error.log info; rewrite_log on; rewrite ^ /none/x break;
            }
        }
        location /two { error_log @LOGS@/other.log; error_log @LOGS@/error.log; }
        location /away { error_log @LOGS@/other.log; }
        location /notice {
            error_log @LOGS@/error.log notice; rewrite_log on; rewrite a b; deny all;
        }
        location /warn {
            error_log @LOGS@/error.log warn; rewrite_log on; rewrite a b; return 200 $unset;
        }
        location /set { set $unset 1; }
        location /mem { error_log memory:32k; }
        location /emerg { error_log @LOGS@/error.log emerg; }
    """,
    [
        "GET /none",
        "GET /e/x",
        "GET /e/c/x",
        "GET /e/i/x",
        "GET /two",
        "GET /away",
        "GET /notice",
        "GET /warn",
        "GET /mem",
        "GET /emerg",
    ],
)


# What both say of a request at level debug; nginx says a hundred times more.
TOLD = re.compile(r'\[debug\] \d+#\d+: \*\d+ (http request line: ".*"|using configuration ".*")$')


def text_of(port: int, path: str) -> str:
    """The text of an answer, whatever its status."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as got:
            return str(got.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.read().decode())


def marked(port: int) -> tuple[Path, int]:
    """The directory of the logs, and where the lines about a request that asks for it end."""
    mark = secrets.token_hex(8)
    logs = Path(text_of(port, f"/where?{mark}"))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        # Both lines of it: what is asked next has its lines behind them.
        text = (logs / "debug.log").read_bytes()
        end = text.find(b'using configuration "=/where"\n', text.find(mark.encode()))
        if mark.encode() in text and end >= 0:
            return logs, text.index(b"\n", end) + 1
        time.sleep(0.01)
    raise TimeoutError(f"{logs}/debug.log says nothing of /where?{mark}")


def debugged(port: int, case: str) -> list[str]:
    """The lines that both write for a request, and whether a log of a higher level has any."""
    logs, start = marked(port)
    text_of(port, case.split(" ")[1])
    _, end = marked(port)
    text = (logs / "debug.log").read_bytes()[start:end].decode(errors="replace")
    found = [told[1] for line in text.splitlines() if (told := TOLD.search(line))]
    # The last two are those of the mark.
    return [*found[:-2], f"higher {'[debug]' in (logs / 'info.log').read_text()}"]


http(
    "error log: debug",
    """
        error_log @LOGS@/debug.log debug; error_log @LOGS@/info.log info;
        server {
            listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
            location = /where { return 200 @LOGS@; }
            location = /exact { return 204; }
            location /page { error_page 404 /exact; return 404; }
            location ~ \\.txt$ { error_log @LOGS@/debug.log debug_http; }
            location /silent { error_log @LOGS@/info.log info; return 204; }
            location /rewritten { rewrite ^ /exact last; }
        }
    """,
    [
        "GET /exact HTTP/1.1",
        "GET /page?x HTTP/1.1",
        "GET /hello.txt HTTP/1.1",
        "GET /none HTTP/1.1",
        "GET /rewritten HTTP/1.1",
    ],
    ask=debugged,
)
errors(
    "lines that are too long",
    """
    location /deny { deny all; }
    location /rw { rewrite_log on; error_log @LOGS@/error.log notice; rewrite ^/rw(.*) /$1 break; }
    location /origin { proxy_pass http://127.0.0.1:1; }
    """,
    [
        *(f"GET /{'x' * size} | Referer: /{'r' * 300}" for size in (100, 800, 1000, 1985, 3000)),
        *(f"GET /{place}/{'x' * 3000}" for place in ("deny", "rw", "origin")),
        f"GET /deny/{'x' * 950} | Referer: /{'r' * 300}",
        f"GET /origin/{'x' * 960} | Referer: /{'r' * 300}",
    ],
    open=True,
)
