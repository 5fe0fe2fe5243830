"""Owns: the comparison of what memcached has, and of what it should not say."""

from ..site import http

REPLIES = (
    "VALUE KEY 0 3\r\nabc\r\nEND\r\n",
    "VALUE KEY 0 0\r\n\r\nEND\r\n",
    "VALUE KEY x 3\r\nabc\r\nEND\r\n",
    "VALUE KEY  3\r\nabc\r\nEND\r\n",
    "VALUE other 0 3\r\nabc\r\nEND\r\n",
    "VALUE KEYx 0 3\r\nabc\r\nEND\r\n",
    "VALUE  KEY 0 3\r\nabc\r\nEND\r\n",
    "VALUE KEY  0 3\r\nabc\r\nEND\r\n",
    "VALUE KEY 0 x\r\nabc\r\nEND\r\n",
    "VALUE KEY 0 -3\r\nabc\r\nEND\r\n",
    "VALUE KEY 0 3 7\r\nabc\r\nEND\r\n",
    "VALUE KEY 0 99999999999999999999\r\nabc\r\nEND\r\n",
    "VALUE KEY 3\r\nabc\r\nEND\r\n",
    "VALUE KEY\r\n",
    "VALUE KEY 0 3\nabc\r\nEND\r\n",
    "value KEY 0 3\r\nabc\r\nEND\r\n",
    "END\r\n",
    "END\n",
    "END \r\n",
    "ENDX\r\n",
    "ERROR\r\n",
    "SERVER_ERROR out of memory\r\n",
    "\r\n",
    "",
    "VAL",
)
FLAGS = ("2", "3", "1", "4294967294", "x", "99999999999999999999")
CODED = "VALUE KEY %s 3\r\nabc\r\nEND\r\n"


def hexed(text: str) -> str:
    """The path that has this answered."""
    return "/raw/" + text.encode().hex()


PATHS = ("/a", "/a.html", "/none", "/sp%20ace%25", "/", "/none/page", "/%01%7f%C3%A4?x=1")
http(
    "memcached",
    """
    upstream kept { server @ORIGIN@; keepalive 2; }
    upstream dead { server 127.0.0.1:@P9@; server @ORIGIN@; }
    server { listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
        set $memcached_key $uri;
        add_header X-U "$upstream_addr $upstream_status $upstream_cache_status" always;
        location / { memcached_pass @ORIGIN@; }
        location /none/page { memcached_pass @ORIGIN@; error_page 404 = @made; }
        location @made { return 200 made; }
        location /kept/ { memcached_pass kept; }
        location /z/ { memcached_pass kept; memcached_gzip_flag 2; set $memcached_key $arg_k; }
        location /small/ { memcached_pass kept; memcached_buffer_size 24; }
        location /keyless/ { memcached_pass kept; set $memcached_key ""; }
        location /key/ { memcached_pass kept; set $memcached_key "a b%$arg_k"; }
        location /dead/ { memcached_pass dead; }
        location /next/ { memcached_pass dead; memcached_next_upstream off; }
        location /down/ { memcached_pass 127.0.0.1:@P9@; memcached_connect_timeout 5s; }
    }
""",
    [
        *(f"GET {path}" for path in PATHS),
        *(f"HEAD {path}" for path in PATHS[:3]),
        *(f"{method} /a | Content-Length: 0" for method in ("POST", "PUT", "DELETE", "OPTIONS")),
        "GET /a | Range: bytes=1-3",
        "GET /a | If-None-Match: *",
        "GET /a | If-Modified-Since: Sun, 06 Nov 2044 08:49:37 GMT",
        *(f"GET {hexed(text)}" for text in REPLIES),
        *(f"GET /kept/{n}" for n in range(3)),
        *(f"GET /z/?k={hexed(CODED % flags)}" for flags in FLAGS),
        "GET /small/value",
        "GET /keyless/x",
        *(f"GET /key/?k={key}" for key in ("", "x", "%00", "%0d%0aflush_all", "%7f")),
        *(f"GET /dead/{n}" for n in range(3)),
        *(f"GET /next/{n}" for n in range(3)),
        "GET /down/x",
    ],
    open=True,
    errors=True,
)
SILENT = "keep/" + b"VALUE KEY 0 3".hex()
http(
    "memcached with settings of outer blocks",
    """
    upstream three { server 127.0.0.1:@P9@; server @ORIGIN@; server 127.0.0.2:@P9@; }
    server { listen 127.0.0.1:@P0@; server_name localhost; set $memcached_key $uri;
        add_header X-U "$upstream_addr $upstream_status" always;
        memcached_bind 127.0.0.9; memcached_buffer_size 40; memcached_connect_timeout 5s;
        memcached_gzip_flag 2; memcached_next_upstream off; memcached_next_upstream_timeout 5s;
        memcached_next_upstream_tries 1; memcached_read_timeout 200ms; memcached_send_timeout 5s;
        memcached_socket_keepalive on;
        location / { memcached_pass @ORIGIN@; set $memcached_key $arg_k; }
        location /three/ { memcached_pass three; }
        location /inner/ {
            memcached_bind off; memcached_buffer_size 4k; memcached_connect_timeout 9s;
            memcached_gzip_flag 0; memcached_next_upstream error not_found invalid_response;
            memcached_next_upstream_timeout 9s; memcached_next_upstream_tries 3;
            memcached_read_timeout 400ms; memcached_send_timeout 9s;
            memcached_socket_keepalive off; set $memcached_key $arg_k; memcached_pass @ORIGIN@;
            location /inner/three/ { memcached_pass three; set $memcached_key /none/$arg_k; }
        }
    }
""",
    [
        *(
            f"GET {place}?k={key}"
            for place in ("/", "/inner/")
            for key in ("a", "none/x", "longer-than-the-buffer-is", SILENT)
        ),
        *(f"GET /three/{n}" for n in range(4)),
        *(f"GET /inner/three/?k={n}" for n in range(4)),
    ],
    open=True,
    errors=True,
)
