"""Owns: sites that send parts of videos."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import server
from ..text import words

FILES = words(
    """
    one both late long tail cut head twice bare empty junk short nothing chunks runs cmov
    """
)
server(
    "mp4",
    """
        etag on; add_header X y;
        location / { mp4; }
        location /key/ { mp4; mp4_start_key_frame on; alias @DIR@/www/v/; }
        location /small/ {
            mp4; mp4_buffer_size 600; mp4_max_buffer_size 1000; alias @DIR@/www/v/;
            location /small/more/ { mp4; mp4_max_buffer_size 2000; alias @DIR@/www/v/; }
            location /small/all/ { mp4; mp4_buffer_size 1m; alias @DIR@/www/v/; }
        }
        location /gone/ { mp4; error_page 404 405 500 = /hello.txt; }
        location /one { mp4; alias @DIR@/www/v/one.mp4; etag off; default_type foo/bar; }
        location /if/ { mp4; alias @DIR@/www/v/; if ($arg_a) { add_header If a; } }
        location /outer/ {
            mp4; mp4_start_key_frame on; alias @DIR@/www/v/;
            location /outer/inner/ { mp4; mp4_start_key_frame off; alias @DIR@/www/v/; }
            location /outer/same/ { mp4; alias @DIR@/www/v/; }
        }
    """,
    [
        f"GET /v/{name}.mp4{query}"
        for name in FILES
        for query in ("", "?start=1.55", "?start=1&end=3")
    ]
    + [
        f"{method} {path}"
        for method in ("GET", "HEAD", "POST")
        for path in words(
            """
            /v/one.mp4?start=0 /v/one.mp4?start=.5 /v/one.mp4?start=1. /v/one.mp4?start=1.23456
            /v/one.mp4?start=9.95 /v/one.mp4?start=10 /v/one.mp4?start=10.001
            /v/one.mp4?start=2&end=1
            /v/one.mp4?end=2 /v/one.mp4?end=100 /v/one.mp4?end=0 /v/one.mp4?start=2&end=2
            /v/one.mp4?start= /v/one.mp4?start=abc /v/one.mp4?start=-1 /v/one.mp4?start=1x
            /v/one.mp4?start=. /v/one.mp4?start=1.5.5 /v/one.mp4?start=x&end=2 /v/one.mp4?START=1
            /v/one.mp4?start=9223372036854775 /v/one.mp4?start=9223372036854776
            /v/one.mp4?start=1&end=1.01 /v/late.mp4?start=0 /v/both.mp4?start=9.99
            /v/both.mp4?start=2.3&end=7.7 /v/long.mp4?end=4 /v/none.mp4?start=3
            /v?start=3 /v/?start=3
            /key/one.mp4?start=2.5 /key/one.mp4?start=3 /key/both.mp4?start=3&end=4.2
            /key/both.mp4?start=1 /key/long.mp4?start=3 /small/one.mp4?start=1 /small/one.mp4
            /small/more/one.mp4?start=1 /small/all/one.mp4?start=1 /small/more/both.mp4?start=1
            /gone/x?start=3 /one?start=3 /if/one.mp4?start=3 /if/one.mp4?a=1&start=3
            /outer/one.mp4?start=3 /outer/inner/one.mp4?start=3 /outer/same/one.mp4?start=3
            """
        )
    ]
    + [
        f"GET {path} | {field}"
        for path in ("/v/one.mp4?start=3", "/v/both.mp4?start=3&end=6", "/v/one.mp4")
        for field in (
            "Range: bytes=0-3",
            "Range: bytes=100-1100",
            "Range: bytes=1000-",
            "Range: bytes=-2",
            "Range: bytes=9999999-",
            "If-None-Match: *",
            "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
            'If-None-Match: "6553f100-18"',
        )
    ]
    + ["GET /v/one.mp4?start=3 | Range: bytes=0-1,3-4"],
    errors=True,
)
location_mistake("mp4 on;")
location_mistake("mp4; mp4;")
location_mistake("mp4; flv;")
location_mistake("if ($arg_a) { mp4; }")
http_mistake("mp4;")
