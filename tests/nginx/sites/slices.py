"""Owns: configurations with slice, which ask the server itself for ranges of its files."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import http

SHOW = 'add_header X-Seen "$upstream_cache_status|$upstream_status|$slice_range|$content_range";'
LOG = """
    log_format slices '$request_uri $status $http_range $slice_range $upstream_cache_status '
        '"$request_completion"';
    access_log @LOGS@/access.log slices;
    map $sent_http_content_range $content_range { default $sent_http_content_range; "" none; }
"""
ORIGIN = """
    server {
        listen 127.0.0.1:@P1@; root @DIR@/www; access_log off; gzip off;
        location = /none { return 404 "nothing here"; }
        location = /all { max_ranges 0; alias @DIR@/www/digits.txt; }
        location = /weak { add_header ETag 'W/"x"'; alias @DIR@/www/digits.txt; }
        location = /odd { add_header Content-Range "bytes 0-6/*"; return 206 "0123456"; }
        location = /bad { add_header Content-Range "bytes 6-0/100"; return 206 "0123456"; }
        location = /blank { add_header Content-Range "bytes  0 - 6 / 7 "; return 206 "0123456"; }
        location = /bare { return 206 "0123456"; }
        location = /units { add_header Content-Range "lines 0-6/7"; return 206 "0123456"; }
        location = /over { add_header Content-Range "bytes 0-8/9"; return 206 "012345678"; }
        location = /page.html { default_type text/html; alias @DIR@/www/pre.txt; }
    }
"""
WHOLE = "proxy_pass http://127.0.0.1:@P1@; proxy_set_header Range $slice_range;"
PASS = WHOLE + "slice 7;"
CACHE = """
    proxy_cache one; proxy_cache_key $uri$is_args$args$slice_range; proxy_cache_valid 200 206 1h;
"""
KEPT = CACHE + PASS
RANGES = [
    "0-6",
    "0-13",
    "3-4",
    "5-9",
    "7-7",
    "50-",
    "90-",
    "98-200",
    "100-",
    "500-600",
    "-1",
    "-20",
    "-200",
    "3-1",
    "0-1,5-6",
    "x",
    " 14-15",
    "99999999999999999999-",
]
FILES = ["/digits.txt", "/hello.txt", "/empty.txt", "/missing", "/none", "/all"]
BROKEN = ["/weak", "/odd", "/bad", "/blank", "/bare", "/units", "/over"]
CASES = [
    *(f"{method} {path}" for path in FILES for method in ("GET", "HEAD", "GET")),
    *(f"GET {path} | Range: bytes={r}" for path in FILES[:3] for r in RANGES),
    "HEAD /digits.txt | Range: bytes=20-30",
    "GET /digits.txt | Range: lines=0-1",
    'GET /digits.txt | Range: bytes=50-60 | If-Range: "x"',
    "GET /digits.txt | Range: bytes=50-60 | If-Range: Sun, 06 Nov 1994 08:49:37 GMT",
    "GET /digits.txt | If-Modified-Since: Sun, 06 Nov 2033 08:49:37 GMT",
    "GET /digits.txt | If-None-Match: *",
    *(f"GET {path}" for path in BROKEN),
]


def site(name: str, before: str, inside: str, **options: bool) -> None:
    """Two servers, one of which asks the other in slices."""
    conf = f"""
        proxy_cache_path @LOGS@/zone-{name.replace(" ", "-")} keys_zone=one:1m; {LOG} {ORIGIN}
        {before}
        server {{
            listen 127.0.0.1:@P0@; root @DIR@/www;
            {inside}
        }}
    """
    http(f"slice {name}", conf, CASES, open=True, errors=True, log=True, **options)


site("passed", "", f"location / {{ {PASS} {SHOW} }}")
site("kept", "", f"location / {{ {KEPT} {SHOW} }}")
site(
    "kept and rewritten",
    "slice 7;",
    f"location / {{ set $there x; rewrite ^(.*)$ $1?a=$there break; {KEPT} {SHOW} }}",
)
site("off", "", f"location / {{ {CACHE} {WHOLE} slice 0; {SHOW} }}")
site(
    "unread",
    "",
    f"""location / {{
        {CACHE} proxy_pass http://127.0.0.1:@P1@; slice 7; {SHOW}
        proxy_set_header Range $http_range;
    }}""",
)
site("of one range", "", f"location / {{ {KEPT} max_ranges 1; {SHOW} }}")
site("locked", "", f"location / {{ {KEPT} proxy_cache_lock on; {SHOW} }}")
site(
    "other filters",
    "gzip on; gzip_min_length 1; gzip_types *;",
    f"""
    location / {{ {KEPT} {SHOW} }}
    location = /page.html {{ {KEPT} {SHOW} sub_filter text word; sub_filter_once off; }}
    """,
)
COMPRESSED = "gzip on; gzip_min_length 1; gzip_types *; gzip_vary on;"
http(
    "slice compressed",
    f"""
    proxy_cache_path @LOGS@/zone-compressed keys_zone=one:1m;
    server {{
        listen 127.0.0.1:@P1@; root @DIR@/www; access_log off; gzip off;
        location / {{
            set $whole "";
            if ($http_range = "bytes=0-6") {{ set $whole no; }}
            if ($request_uri ~ "turns=(none|first)") {{ set $whole "$whole.$1"; }}
            if ($whole ~ "^no.first") {{
                add_header Content-Range "bytes 0-6/100"; return 206 "0123456";
            }}
            if ($whole) {{ return 200 "{"0123456789" * 10}"; }}
        }}
    }}
    server {{
        listen 127.0.0.1:@P0@; root @DIR@/www; {COMPRESSED}
        location /passed/ {{ {PASS.replace("@P1@", "@P1@/")} }}
        location /kept/ {{ {KEPT.replace("@P1@", "@P1@/")} }}
        location /both/ {{ gunzip on; {PASS.replace("@P1@", "@P1@/")} }}
    }}
    """,
    [
        f"GET /{way}/{path} | Accept-Encoding: gzip{more}"
        for way in ("passed", "kept", "both")
        for path in ("digits.txt", "hello.txt?turns=first", "hello.txt?turns=none", "empty.txt")
        for more in ("", " | Range: bytes=3-20", "")
    ],
    open=True,
    lengths="coded",
)
site("files", "", f"location / {{ slice 7; {SHOW} }}")
site(
    "by names",
    "",
    f"""
    location / {{ error_page 404 = @there; }}
    location @there {{ {KEPT} {SHOW} }}
    location = /digits.txt {{ try_files /none @there; }}
    """,
)
for text in (
    "slice;",
    "slice 1 2;",
    "slice x;",
    "slice -1;",
    "slice 1m; slice 1m;",
    "slice 1g;",
):
    http_mistake(text)
location_mistake("if ($arg_a) { slice 1; }")
