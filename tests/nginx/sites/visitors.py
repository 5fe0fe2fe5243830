"""Owns: sites that tell clients apart by cookies and browsers, and pick files by chance."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import http, server
from ..text import words

# A cookie that has an identifier keeps it: only so can two servers say the same.
GIVEN = "AQAAf2sEcQKzHwMKAwMCAg"
SAID = "got=$uid_got set=$uid_set reset=$uid_reset"
server(
    "userid",
    f"""
        userid on; userid_mark q; userid_expires max; userid_domain example.com; userid_path /x;
        userid_p3p 'policyref="/p3p.xml", CP="CUR"'; userid_flags secure; userid_service 7;
        userid_name uid; add_header U "{SAID}" always;
        location /all {{ userid_flags httponly secure samesite=strict; return 200 "{SAID}"; }}
        location /plain {{
            userid_domain none; userid_path ''; userid_p3p none; userid_flags off;
            userid_expires off; userid_mark b; userid_name UID; userid_service 8;
            return 404;
        }}
        location /two {{ userid_flags samesite=lax; userid_flags httponly; return 302 /all; }}
        location /log {{ userid log; set $uid_reset log; return 200 "{SAID}"; }}
        location /off {{ userid off; return 200 "{SAID}"; }}
        location /v1 {{ userid v1; return 204; }}
        location /unmarked {{ userid_mark off; set $uid_reset 0; }}
        location /error {{ error_page 404 /all; return 404; }}
        location /page {{ proxy_pass http://127.0.0.1:@P0@/all; }}
    """,
    [
        f"{method} {path} | Cookie: {cookie} | Connection: close"
        for method, path in [
            *(("GET", path) for path in words("/all /plain /two /log /off /v1 /error /page")),
            *(("GET", path) for path in words("/hello.txt /unmarked /none")),
            ("HEAD", "/hello.txt"),
            ("POST", "/all"),
        ]
        for cookie in (
            f"uid={GIVEN}==",
            f"uid={GIVEN}q=",
            f"a=b; UID = {GIVEN}b=; c=d",
            f"uid={GIVEN}",
            f"uid={GIVEN}qx",
        )
    ],
    errors=True,
    alone=True,
)
http(
    "userid in the log",
    """
        log_format u '$request|$uid_got|$uid_set|$uid_reset';
        server {
            listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; userid log;
            access_log @LOGS@/access.log u; add_header U "$uid_got";
            location / { return 200 x; }
            location /off { userid off; return 200 x; }
        }
    """,
    [
        f"GET {path} | Cookie: uid={value}"
        for path in ("/hello.txt", "/off")
        for value in (f"{GIVEN}==", "short", f"{GIVEN[:-1]}!==", "A" * 24)
    ],
    log=True,
    errors=True,
)
for text in (
    "userid maybe;",
    "userid ON;",
    "userid_mark ab;",
    "userid_mark !;",
    "userid_mark '';",
    "userid_mark OFF;",
    "userid_service abc;",
    "userid_service -1;",
    "userid_service 4294967296;",
    "userid_expires MAX;",
    "userid_expires 500ms;",
    "userid_flags secure off;",
    "userid_flags samesite;",
    "userid_flags samesite=LAX;",
    "userid_flags secure secure;",
    "userid_flags samesite=lax samesite=strict;",
):
    http_mistake(text)
location_mistake("set $uid_got x;")

BROWSERS = """
    Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)
    Mozilla/4.0 (compatible; MSIE 5.0; Windows NT 5.1)
    Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; en) Opera 8.50
    Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.8.1) Gecko/20061010 Firefox/2.0
    Mozilla/5.0 (X11; U; Linux i686; en-US; rv:0.9) Gecko/20061010 Firefox/2.0
    Opera/9.80 (X11)
    Opera/
    Opera
    xOpera 10
    Mozilla/5.0 (Macintosh; U; PPC) AppleWebKit/420 (KHTML, like Gecko) Safari/420
    Mozilla/5.0 (Macintosh; U; PPC) AppleWebKit/400 (KHTML, like Gecko) Safari/412.5
    Mozilla/5.0 (compatible; Konqueror/3.5; Linux)
    Mozilla/4.08 [en]
    Mozilla/4.000
    Mozilla/4.0000
    Mozilla/0.0000000
    Lynx/2.8
    Foo/1
    Bar/1
    MSIE 7.0
    123456789012345678901234MSIE 7.0 x
    1234567890123456789012345MSIE 5.49 x
    1234567890123456789012345MSIE 7
    1234567890123456789012345MSIE x
    123456789012rv:1.9
    1234567890123rv:1.9
    1234567890123Safari/500
    123456789012Safari/500
    1234567890123456789012345Konqueror/9
    123456789012345678901234Konqueror/9
"""
TELLS = 'return 200 "[$msie][$modern_browser][$ancient_browser]";'
server(
    "browsers",
    f"""
        ancient_browser_value a; modern_browser_value m; ancient_browser Foo;
        location /none {{ {TELLS} }}
        location /all {{
            modern_browser msie 5.5; modern_browser gecko 1.0.0; modern_browser opera 9.0;
            modern_browser safari 413; modern_browser konqueror 3.0; {TELLS}
        }}
        location /unlisted {{
            modern_browser unlisted; ancient_browser Links Lynx netscape4;
            modern_browser_value mod; ancient_browser_value anc; {TELLS}
        }}
        location /outer {{
            modern_browser msie 7.0; modern_browser GECKO 1.8; modern_browser unlisted; {TELLS}
            location /outer/gecko {{ modern_browser gecko 1.9; {TELLS} }}
            location /outer/bar {{ ancient_browser Bar; {TELLS} }}
            location /outer/value {{ modern_browser_value x; {TELLS} }}
        }}
        location /if {{ if ($ancient_browser) {{ return 302 /old; }} {TELLS} }}
    """,
    [
        f"GET {path} | User-Agent: {agent}"
        for path in words("/none /all /unlisted /outer /outer/gecko /outer/bar /outer/value /if")
        for agent in (line.strip() for line in BROWSERS.strip().splitlines())
    ]
    + [f"GET {path}" for path in words("/none /all /unlisted /outer /if")],
)
for text in (
    "modern_browser foo 1.0;",
    "modern_browser unlisted 1;",
    "modern_browser msie a;",
    "modern_browser msie 1..2;",
    "modern_browser msie '';",
    "modern_browser msie 99999;",
    "modern_browser msie 5; modern_browser msie 6;",
    "modern_browser_value a; modern_browser_value b;",
    "ancient_browser_value '';",
):
    http_mistake(text)

server(
    "random index",
    """
        location /dir/ {
            random_index on; add_header U $uri always;
            location /dir/sub/ { random_index off; }
        }
        location /bare/ { random_index on; add_header U $uri always; }
        location /list/sub/ { random_index on; index index.html; }
        location /none/ { random_index on; error_page 404 = /hello.txt; }
        location /gone/ { random_index on; }
        location /listed/ { random_index on; autoindex on; alias @DIR@/www/bare/; }
    """,
    [
        f"{method} {path}"
        for method in ("GET", "HEAD", "POST", "PUT")
        for path in words(
            "/bare/ /bare/?a=b /bare /bare/keep.txt /list/sub/ /none/ /gone/ /gone/x /listed/"
        )
    ],
    errors=True,
)
location_mistake("random_index maybe;")
http_mistake("random_index on;")
server(
    "flv",
    """
        etag on; add_header X y;
        location / { flv; }
        location /inner/ { flv; location /inner/plain/ { alias @DIR@/www/; } alias @DIR@/www/; }
        location /gone/ { flv; error_page 404 405 = /hello.txt; }
        location /one { flv; alias @DIR@/www/hello.txt; etag off; default_type foo/bar; }
        location /gif { flv; empty_gif; }
        location /if/ { flv; alias @DIR@/www/; if ($arg_a) { add_header If a; } }
        location /sub/ { flv; sub_filter bolide nginx; sub_filter_types *; alias @DIR@/www/; }
        location /rewritten/ { flv; rewrite ^/rewritten(.*)$ $1 break; }
    """,
    [
        f"{method} {path}"
        for method in ("GET", "HEAD", "POST", "PUT")
        for path in words(
            """
            /hello.txt /hello.txt?start=3 /hello.txt?start=13 /hello.txt?start=14
            /hello.txt?start=0 /hello.txt?start=-5 /hello.txt?start= /hello.txt?start=abc
            /hello.txt?start=3x /hello.txt?START=3 /hello.txt?a=1&start=4&start=5
            /hello.txt?start=99999999999999999999 /hello.txt?start=%33 /big.bin?start=999990
            /big.bin?start=1 /empty.txt?start=0 /empty.txt?start=1 /none.flv?start=3 /dir?start=3
            /dir/?start=3 /bare/ /inner/hello.txt?start=3 /inner/plain/hello.txt?start=3
            /gone/x?start=3 /one?start=3 /gif?start=3 /if/hello.txt?start=3
            /if/hello.txt?a=1&start=3 /sub/hello.txt?start=3 /rewritten/hello.txt?start=3
            """
        )
    ]
    + [
        f"GET {path} | {field}"
        for path in ("/hello.txt?start=3", "/big.bin?start=999000", "/hello.txt")
        for field in (
            "Range: bytes=0-3",
            "Range: bytes=10-16",
            "Range: bytes=13-",
            "Range: bytes=-2",
            "Range: bytes=9999999-",
            "If-None-Match: *",
            "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
            'If-None-Match: "6553f100-18"',
        )
    ]
    + ['GET /hello.txt?start=3 | If-Match: "6553f100-18"'],
    errors=True,
)
location_mistake("flv on;")
location_mistake("flv; flv;")
location_mistake("if ($arg_a) { flv; }")
http_mistake("flv;")
