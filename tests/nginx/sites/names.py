"""Owns: the comparison of names of files and of hosts at their edges, and of old browsers."""

from email.utils import formatdate

from ..files import MTIME
from ..site import server

PLAIN = " | Authorization: Basic cGxhaW46cHc="
BROWSERS = [
    "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)",
    "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)",
    "Mozilla/4.0 (compatible; MSIE 5.5)",
    "MSIE 4.0",
    "MSIE 4.",
    "MSIE 7.0",
    "Mozilla/4.0 (compatible; MSIE 6.0) Opera 9",
    "Mozilla/5.0 (Macintosh; Mac OS X) Version/5 Safari/53",
    "Mozilla/5.0 (Macintosh; Mac OS X) Chrome/9 Safari/53",
    "Mozilla/5.0 (Macintosh; Mac OS X) Gecko/2 Safari/53",
    "Safari/53",
]
server(
    "browsers whose connections close",
    """
    msie_padding off;
    location / { }
    location /none/ { keepalive_disable none; return 200 none; }
    location /both/ { keepalive_disable msie6 safari; return 200 "$sent_http_connection"; }
    location /safari/ { keepalive_disable safari; return 200 safari;
        location /safari/old/ { keepalive_disable msie6; return 404; } }
    location /taken/ { error_page 418 = /both/x; return 418; }
""",
    [
        f"{method} {path} | User-Agent: {agent}{length}"
        for method, length in (("GET", ""), ("POST", " | Content-Length: 0"))
        for path in ("/hello.txt", "/none/x", "/both/x", "/safari/x", "/safari/old/x", "/taken/x")
        for agent in BROWSERS
    ],
)
server(
    "files that variables name",
    """
    location /w/ {
        auth_basic x; auth_basic_user_file $arg_f; root @DIR@/www; try_files /hello.txt =404;
    }
    location /r/ { root $arg_d; try_files /hello.txt =404; }
    location /q/ { root $arg_d$arg_e; return 200 "$document_root $request_filename"; }
    location = /a { alias $arg_d; }
    location ~ ^/b/(.*) { alias $1; }
""",
    [
        *(
            f"GET /w/x?f={name}{PLAIN}"
            for name in ("users", "none", "", "sub", "./users", "www/../users")
        ),
        *(f"GET /r/x?d={name}" for name in ("www", "www/", "./www", "", "/none", "none")),
        *(f"GET /q/x?{args}" for args in ("d=a&e=b", "d=&e=b", "d=/a", "d=a/")),
        *(f"GET /a?d={name}" for name in ("www/hello.txt", "www/none", "", "www")),
        *(f"GET /b/{name}" for name in ("www/hello.txt", "www/none", "www/")),
    ],
)
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
OWN = formatdate(MTIME, usegmt=True)
server(
    "dates that are added",
    f"""
    location / {{ add_header Last-Modified "{DATE}"; }}
    location /dir/ {{ add_header Last-Modified ""; }}
    location = /digits.txt {{ add_header Last-Modified $arg_a; add_header Last-Modified $arg_b; }}
    location /list/ {{ add_header Last-Modified "x"; }}
""",
    [
        f"GET {path} | Range: bytes=0-1{more}"
        for path in (
            "/hello.txt",
            "/dir/file.txt",
            "/list/a.txt",
            "/digits.txt",
            "/digits.txt?a=Sun,%2006",
        )
        for more in (
            "",
            f" | If-Range: {DATE}",
            f" | If-Range: {OWN}",
            " | If-Range: x",
            ' | If-Range: "x"',
            f" | If-Modified-Since: {DATE}",
        )
    ],
)
server(
    "names with a slash behind them",
    """
    location ~ ^/as/(.*)$ { alias @DIR@/www/$1; }
    location ~ ^/off/(.*)$ { disable_symlinks off; alias @DIR@/www/$1; }
    location ~ ^/on/(.*)$ { disable_symlinks on; alias @DIR@/www/$1; }
    location ~ ^/from/(.*)$ { disable_symlinks on from=@DIR@; alias @DIR@/www/$1; }
    location ~ ^/own/(.*)$ { disable_symlinks if_not_owner; alias @DIR@/www/$1; }
    location ~ ^/part/(.*)$ { disable_symlinks if_not_owner from=@DIR@/www; alias @DIR@/www/$1; }
""",
    [
        f"GET /{how}/{name}{slash}"
        for name in ("hello.txt", "link.txt", "dir", "linkdir", "linkdir/file.txt", "none")
        for how in ("own", "as", "off", "on", "as", "from", "part", "own")
        for slash in ("", "/", "//")
    ],
)
server(
    "long hosts in Referer",
    """
    valid_referers none example.test ~^x+[./];
    location / { return 200 "[$invalid_referer]"; }
""",
    [
        f"GET / | Referer: http://{'x' * (length - 2)}.x/{rest}"
        for length in (254, 255, 256, 257, 258)
        for rest in ("", "a", "a:b")
    ],
)
