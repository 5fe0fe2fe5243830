"""Owns: configurations about charsets that bodies are recoded between, and mistakes in them."""

from ..mistake import http as http_mistake
from ..site import http
from .proxying import answer, server

MAPS = """
    charset_map koi8-r windows-1251 { E1 C0; C1 E0; 80 88; 24 A4; }
    charset_map KOI8-R utf-8 { E1 D090; C1 D0B0; 81 E2948C; 5F D19F; }
    charset_map here there { 58 59; 59 58; 5A 51; }
    proxy_cache_path @LOGS@/charsets keys_zone=one:1m;
"""
# The octets of all bytes as a type that has a charset.
OCTETS = "types { } default_type text/html; alias @DIR@/www/;"
server(
    "charset_map of files",
    f"""
    location /even/ {{ {OCTETS} charset windows-1251; source_charset koi8-r; }}
    location /back/ {{ {OCTETS} charset KOI8-R; source_charset windows-1251; }}
    location /wide/ {{ {OCTETS} charset utf-8; source_charset koi8-r; }}
    location /narrow/ {{ {OCTETS} charset koi8-r; source_charset utf-8; }}
    location /same/ {{ {OCTETS} charset koi8-r; source_charset KOI8-R; }}
    location /type/ {{ types {{ }} default_type image/x;
        alias @DIR@/www/; charset utf-8; source_charset koi8-r; }}
    location /source/ {{ {OCTETS} source_charset koi8-r; }}
    location /var/ {{ {OCTETS} charset $arg_c; source_charset $arg_s; }}
    location /swap/ {{ {OCTETS} charset there; source_charset here; sub_filter abc XYZ;
        sub_filter_types *; sub_filter_once off; }}
    location /gz/ {{ {OCTETS} charset windows-1251; source_charset koi8-r; gzip on;
        gzip_min_length 1; }}
    location /gzw/ {{ {OCTETS} charset utf-8; source_charset koi8-r; gzip on; gzip_vary on; }}
    location /static/ {{ gzip_static on; types {{ }} default_type text/html; alias @DIR@/www/;
        charset utf-8; source_charset koi8-r; }}
    location /undone/ {{ gzip_static always; gunzip on; {OCTETS}
        charset there; source_charset here; }}
    location /wider/ {{ gzip_static always; gunzip on; {OCTETS}
        charset utf-8; source_charset koi8-r; gzip_vary on; }}
    location /ret {{ charset there; source_charset here; default_type text/plain;
        return 200 "XYZ$arg_a"; }}
    location /404 {{ charset there; source_charset here; return 404; }}
    location /301 {{ charset there; source_charset here; return 301 /XYZ; }}
    location /307 {{ charset there; source_charset here; return 307 /XYZ; }}
    location /204 {{ charset there; source_charset here; return 204; }}
    location /page {{ error_page 404 /even/photo.jpg; return 404; }}
""",
    [
        f"{method} {path}{more}"
        for method in ("GET", "HEAD")
        for path in (
            *(f"/{name}/photo.jpg" for name in ("even", "back", "wide", "same", "type", "source")),
            *(f"/{name}/empty.txt" for name in ("even", "wide", "narrow")),
            *(f"/{name}/photo.jpg" for name in ("gz", "gzw")),
            "/narrow/list/umläut.txt".replace("ä", "%C3%A4"),
            "/swap/list/ten.bin",
            "/swap/hello.txt",
            "/even/list/big.bin",
            "/wide/list/ten.bin",
            "/404",
            "/301",
            "/307",
            "/204",
            "/page",
            "/nowhere",
        )
        for more in (
            "",
            " | Range: bytes=128-131",
            " | Range: bytes=0-1,225-226",
            " | Accept-Encoding: gzip",
            " | Accept-Encoding: gzip | Range: bytes=128-131",
            " | If-None-Match: *",
        )
    ]
    + [
        f"GET {path}{more}"
        for path in (
            "/static/pre.txt",
            "/static/onlygz.txt",
            *(f"/{name}/{file}.txt" for name in ("undone", "wider") for file in ("pre", "onlygz")),
            "/ret?a=XXYYZ",
        )
        for more in ("", " | Accept-Encoding: gzip", " | Accept-Encoding: gzip | Range: bytes=2-4")
    ]
    + [
        f"GET /var/photo.jpg?c={to}&s={source}{more}"
        for to in ("utf-8", "UTF-8", "windows-1251", "unknown", "here")
        for source in ("koi8-r", "utf-8", "unknown", "", "KOI8-R")
        for more in ("", " | Range: bytes=128-131")
    ],
    before=MAPS,
    lengths="coded",
    errors=True,
)
TEXT = "a\u00e1\u00c1x\u0080\u00ff"
KINDS = [
    "text/html",
    "text/html;charset=koi8-r",
    "text/html; charset=windows-1251",
    "text/html;charset=utf-8",
    "text/html;a=b",
    "text/html;charset=koi8-r;a=b",
    "text/html;a=b; charset=koi8-r",
    'text/html;  charset="KOI8-R"',
    "text/html; charset=other",
    "text/html; ;charset=koi8-r",
    "TEXT/HTML",
    "image/x",
    "image/x; charset=koi8-r",
    "",
]
server(
    "charset_map of upstream servers",
    """
    location / { proxy_pass http://@ORIGIN@; charset windows-1251; source_charset koi8-r; }
    location /over/ { proxy_pass http://@ORIGIN@; charset windows-1251; source_charset koi8-r;
        override_charset on; }
    location /source/ { proxy_pass http://@ORIGIN@; source_charset koi8-r; }
    location /none/ { proxy_pass http://@ORIGIN@; override_charset on; }
    location /deaf/ { proxy_pass http://@ORIGIN@; proxy_ignore_headers X-Accel-Charset;
        charset utf-8; override_charset on; source_charset koi8-r; }
    location /all/ { proxy_pass http://@ORIGIN@; charset_types *; charset windows-1251; }
""",
    [
        answer(f"Content-Type: {kind}", *more, body=TEXT, base=base)
        for base in ("", "/over", "/source", "/none", "/deaf", "/all")
        for kind in KINDS
        for more in (
            [],
            ["X-Accel-Charset: utf-8"],
            ["X-Accel-Charset: KOI8-R"],
            ["X-Accel-Charset: other"],
            ["X-Accel-Charset:"],
            ["Content-Encoding: gzip"],
            ["Content-Encoding: gzip", "X-Accel-Charset: utf-8"],
        )
    ]
    + [
        answer("Content-Type: text/html", *more, status=status, body=body, base=base)
        for base in ("", "/over", "/deaf")
        for status, body in (
            ("301 A", TEXT),
            ("302 A", TEXT),
            ("303 A", TEXT),
            ("404 No", TEXT),
            ("500 No", TEXT),
        )
        for more in ([], ["X-Accel-Charset: utf-8"])
    ]
    + [
        answer("Content-Type: text/html; charset=utf-8", body=body, base="/deaf")
        for body in ("\u00d0\u0090", "A\u00d0", "")
    ],
    before=MAPS,
    errors=True,
)
RANGES = (
    "",
    " | Range: bytes=0-1",
    " | Range: bytes=0-1,3-4",
    " | Accept-Encoding: gzip",
    " | Accept-Encoding: gzip | Range: bytes=0-1",
)
server(
    "charset_map of cached responses",
    """
    proxy_cache one; proxy_cache_valid any 1m; proxy_cache_key $uri;
    proxy_force_ranges on; gzip_min_length 1;
    location / { proxy_pass http://@ORIGIN@; charset windows-1251; source_charset koi8-r;
        override_charset on; }
    location /wide/ { proxy_pass http://@ORIGIN@; charset utf-8; source_charset koi8-r;
        override_charset on; }
    location /gz/ { proxy_pass http://@ORIGIN@; charset windows-1251; source_charset koi8-r;
        override_charset on; gzip on; }
    location /gzw/ { proxy_pass http://@ORIGIN@; source_charset koi8-r; gzip on; }
""",
    [
        answer(f"Content-Type: {kind}", *more, body=TEXT, base=base, more=f" HTTP/1.1{ranges}")
        for base in ("", "/wide", "/gz", "/gzw")
        for kind in ("text/html", "text/html; charset=koi8-r", "text/html; charset=utf-8")
        for more in ([], ["X-Accel-Charset: utf-8"], ["X-Accel-Charset: windows-1251"])
        for ranges in RANGES
    ],
    before=MAPS,
    lengths="coded",
)
server(
    "charset_map of parts",
    """
    types { } default_type text/html;
    location /page { ssi on; charset there; source_charset here; set $x XYZ;
        return 200 'XYZ<!--# include virtual="/part?XYZ" --><!--# echo var="x" -->'; }
    location /plain { ssi on; charset there; set $x XYZ;
        return 200 'XYZ<!--# include virtual="/part" -->'; }
    location /none { ssi on; return 200 'XYZ<!--# include virtual="/part" -->'; }
    location /inner { ssi on; charset there; source_charset here;
        return 200 'XYZ<!--# include virtual="/page" -->'; }
    location /around { add_before_body /part; add_after_body /other; charset there;
        source_charset here; return 200 XYZ; }
    location /far { add_before_body /foreign; charset there; source_charset here; return 200 XYZ; }
    location /named { add_before_body /back; charset there; source_charset here; return 200 XYZ; }
    location /part { source_charset here; return 200 (XYZ$args); }
    location /other { charset here; source_charset here; return 200 [XYZ]; }
    location /back { charset here; source_charset there; return 200 [XYZ]; }
    location /foreign { source_charset koi8-r; return 200 [XYZ]; }
    location /from { ssi on; charset there; source_charset here;
        return 200 'XYZ<!--# include virtual="$arg_u" -->'; }
    location /of/ { proxy_pass http://@ORIGIN@; }
""",
    [
        f"{method} /{path}"
        for method in ("GET", "HEAD")
        for path in ("page", "plain", "none", "inner", "around", "far", "named")
    ],
    before=MAPS,
    errors=True,
)
http(
    "charset_map without charsets",
    """
    charset_map here there { 61 62; }
    server { listen 127.0.0.1:@P0@; server_name localhost; default_type text/html;
        location /a { charset x; return 200 XYZ; } location /b { return 200 XYZ; }
    }
""",
    ["GET /a", "GET /b"],
)
for text in (
    "charset_map a a { }",
    "charset_map a A { }",
    "charset_map a b { } charset_map b a {}",
    "charset_map a b { } charset_map a B {}",
    "charset_map a b { 80 81 82; }",
    "charset_map a b { 80; }",
    "charset_map a b { 100 80; }",
    "charset_map a b { 80 100; }",
    "charset_map a b { xx 80; }",
    "charset_map a b { 80 xx; }",
    'charset_map a b { "" 81; }',
    "charset_map a b { 080 0; }",
    "charset_map a utf-8 { 80 D09; }",
    "charset_map a utf-8 { 80 xx80; }",
    "charset_map a UTF-8 { 80 80; }",
    "charset_map a utf-8 { 80 41; }",
    "charset_map a utf-8 { 80 D0D0; }",
    "charset_map a utf-8 { 80 D09081; }",
    "charset_map a utf-8 { 80 F09F9880; }",
    "charset_map a utf-8 { 80 E28; }",
    "charset_map a utf-8 { 80 C080; }",
    "charset_map a utf-8 { 80 EDA080; }",
    "charset_map a utf-8 { 80 ''; }",
    "charset_map utf-8 a { D090 80; }",
    "charset_map UTF-8 a { }",
    "charset_map a { }",
    "charset_map a b c { }",
    "charset_map a b;",
    "server { charset_map a b { } }",
    "charset_map a b { 80 81 }",
    "charset_map a b { 80 { } }",
    "charset_map a b { 80 81; 80 82; 82 81; }",
    "server { location / { charset x; source_charset y; } }",
    "charset_map a b { } server { location / { charset a; source_charset B; } }",
    "charset_map a b { } charset_map b c { } server { charset a; source_charset c; }",
    "server { charset off; source_charset a; location / { charset b; } }",
    "server { charset b; source_charset a; location / { charset off; } }",
    "server { charset b; source_charset a; }",
    "charset b; source_charset a; server { charset c; location / { source_charset c; } }",
):
    http_mistake(text)
