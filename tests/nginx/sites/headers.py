"""Owns: configurations about what is added to answers and behind them, and mistakes in them."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import http, server
from ..text import words

TRAILED = r"""
    location / {
        add_trailer X-T "v $request_uri"; add_trailer X-E ""; add_trailer X-A always always;
        add_trailer X-T two;
    }
    location /r { add_trailer X-T v; return 200 abc; }
    location /e { add_trailer X-T v; return 200 ""; }
    location /204 { add_trailer X-T v; return 204; }
    location /304 { add_trailer X-T v always; return 304; }
    location /404 { add_trailer X-T v; return 404; }
    location /404a { add_trailer X-T v always; add_trailer Y z; return 404; }
    location /301 { add_trailer X-T v; return 301 /; }
    location /em { add_trailer X-T ""; return 200 abc; }
    location /emv { add_trailer X-T $arg_v; return 200 abc; }
    location /ch { add_trailer X-T v; chunked_transfer_encoding off; return 200 abc; }
    location /sent {
        add_trailer X-T "$sent_http_content_type|$sent_http_content_length|$request_completion|$status|$sent_trailer_y";
        add_trailer Y z; return 200 abc;
    }
    location /if/ {
        add_trailer A 1;
        if ($arg_a) { add_trailer B 2; }
        alias @DIR@/www/;
    }
    location /inh {
        add_trailer A 1;
        location /inh/x { return 200 x; }
        location /inh/y { add_trailer B 2; return 200 y; }
        location /inh/z { add_trailer C 3; add_trailer_inherit merge; return 200 z; }
        location /inh/o { add_trailer_inherit OFF; return 200 o; }
    }
    location /err { error_page 404 /r; return 404; }
    location /errn { error_page 404 @n; return 404; }
    location @n { add_trailer N n always; return 200 named; }
    location /s/ {
        add_trailer X v; sub_filter hello bye; sub_filter_types *; alias @DIR@/www/;
    }
    location /auto/ { add_trailer X v; autoindex on; alias @DIR@/www/list/sub/; }
"""  # noqa: E501
PATHS = words("""
    /hello.txt /empty.txt /big.bin /none /dir /dir/ /r /e /204 /404 /404a /301 /em /emv
    /emv?v=5 /ch /sent /if/hello.txt /if/hello.txt?a=1 /inh/x /inh/y /inh/z /inh/o /err
    /errn /s/hello.txt
""")
server(
    "trailers",
    TRAILED,
    [f"{method} {path}" for method in ("GET", "HEAD", "POST") for path in PATHS]
    + [
        "GET /hello.txt HTTP/1.0",
        "GET /hello.txt HTTP/1.0 | Connection: keep-alive",
        "GET /hello.txt | Range: bytes=0-3",
        "GET /hello.txt | Range: bytes=0-3,5-6",
        "GET /hello.txt | Range: bytes=99-",
        "GET /hello.txt | If-None-Match: *",
        "GET /auto/",
        "GET /hello.txt | TE: trailers",
        "GET /hello.txt | Connection: close",
    ],
)
http(
    "trailers in the log",
    """
        log_format t
            '$request|$status|$sent_trailer_x_t|$sent_trailer_x_a|$sent_trailer_x_e|'
            '$sent_trailer_none|$sent_http_etag';
        access_log @LOGS@/access.log t;
        server {
            listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
            access_log @LOGS@/access.log t; %s\n
        }
    """
    % TRAILED,
    [f"GET {path}" for path in PATHS] + ["HEAD /hello.txt", "GET /hello.txt HTTP/1.0"],
    log=True,
)

for text in (
    "add_trailer;",
    "add_trailer A;",
    "add_trailer A b sometimes;",
    "add_trailer A b always x;",
    "add_trailer A $nothing;",
    "add_trailer '' b;",
    "add_trailer_inherit;",
    "add_trailer_inherit both;",
    "add_trailer_inherit on; add_trailer_inherit off;",
    "add_trailer A b; add_trailer A b;",
    "add_trailer_inherit ON;",
    "add_header_inherit Merge;",
):
    http_mistake(text)
for text in (
    "if ($arg_a) { add_trailer A b; }",
    "limit_except GET { add_trailer A b; }",
    "if ($arg_a) { add_trailer_inherit off; }",
):
    location_mistake(text)

SENT = (
    "te=[$sent_http_transfer_encoding] cl=[$sent_http_content_length] "
    "conn=[$sent_http_connection] ka=[$sent_http_keep_alive] ct=[$sent_http_content_type] "
    "lm=[$sent_http_last_modified] etag=[$sent_http_etag] srv=[$sent_http_server] "
    "date=[$sent_http_date] vary=[$sent_http_vary] ce=[$sent_http_content_encoding] "
    "link=[$sent_http_link] www=[$sent_http_www_authenticate] x=[$sent_http_x_a] "
    "xu=[$sent_http_x_A] no=[$sent_http_]"
)
http(
    "what was sent",
    f"""
        server {{
            listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; keepalive_timeout 10 20;
            add_header X-A 1; add_header X-A 2; add_header S "{SENT}" always;
            add_header T "[$sent_http_s]"; add_header Link l;
            location /cc {{
                add_header Cache-Control a; add_header Cache-Control "b"; expires epoch;
                add_header Server mine; add_header Date mine; add_header S "{SENT}"; return 200 x;
            }}
            location /o {{ return 301 /x; }}
            location /n {{ return 200 abc; }}
            location /204 {{ return 204; }}
            location /u {{ auth_basic x; auth_basic_user_file @DIR@/users; }}
            location /none {{ keepalive_timeout 0; }}
            location /ka {{ keepalive_timeout 5; return 200; }}
            location /ka0 {{ keepalive_timeout 5 0; return 200; }}
            location /rq {{ keepalive_requests 1; return 200; }}
            location /g {{ empty_gif; }}
            location /404 {{ error_page 404 /n; return 404; }}
        }}
    """,
    [
        "GET /hello.txt",
        "GET /hello.txt HTTP/1.0",
        "GET /hello.txt HTTP/1.0 | Connection: keep-alive",
        "HEAD /hello.txt",
        "GET /empty.txt",
        "GET /hello.txt | Range: bytes=0-3",
        "GET /hello.txt | If-None-Match: *",
        "GET /o",
        "GET /n",
        "GET /n HTTP/1.0 | Connection: keep-alive",
        "GET /n | Connection: close",
        "GET /n | Connection: keep-alive",
        "GET /u",
        "GET /nothere",
        "GET /cc",
        "GET /none",
        "GET /ka",
        "GET /ka0",
        "GET /rq",
        "GET /g",
        "GET /404",
        "GET /dir",
        "POST /hello.txt",
        "PUT /hello.txt",
    ],
    open=True,
    reasons=True,
)
http(
    "what was sent, in the log",
    f"""
        log_format sent
            '$request|$status|loc=[$sent_http_location] {SENT} cr=[$sent_http_content_range] '
            'ex=[$sent_http_expires] cc=[$sent_http_cache_control] ar=[$sent_http_accept_ranges]';
        access_log @LOGS@/access.log sent;
        server {{
            listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
            access_log @LOGS@/access.log sent; keepalive_timeout 10 20; add_header X-A 1;
            add_header X-A 2; add_header Link l;
            location /cc {{
                add_header Cache-Control a; add_header Cache-Control b; expires epoch;
                add_header Server mine; add_header Date mine; return 200 x;
            }}
            location /tr {{ add_trailer X 1; return 200 x; }}
            location /o {{ return 301 /x; }}
            location /n {{ return 200 abc; }}
            location /204 {{ return 204; }}
            location /u {{ auth_basic x; auth_basic_user_file @DIR@/users; }}
            location /none {{ keepalive_timeout 0; }}
            location /ka {{ keepalive_timeout 5; return 200; }}
            location /ka0 {{ keepalive_timeout 5 0; return 200; }}
            location /rq {{ keepalive_requests 1; return 200; }}
            location /g {{ empty_gif; }}
            location /404 {{ error_page 404 /n; return 404; }}
            location /sub {{
                sub_filter hello bye; sub_filter_types *; alias @DIR@/www/hello.txt;
            }}
            location /flat {{
                chunked_transfer_encoding off; sub_filter hello bye; sub_filter_types *;
                alias @DIR@/www/hello.txt;
            }}
        }}
    """,
    [
        "GET /hello.txt",
        "GET /hello.txt HTTP/1.0",
        "GET /hello.txt HTTP/1.0 | Connection: keep-alive",
        "HEAD /hello.txt",
        "GET /empty.txt",
        "GET /hello.txt | Range: bytes=0-3",
        "GET /hello.txt | If-None-Match: *",
        "GET /o",
        "GET /n",
        "GET /n HTTP/1.0 | Connection: keep-alive",
        "GET /n | Connection: close",
        "GET /n | Connection: keep-alive",
        "GET /u",
        "GET /nothere",
        "GET /cc",
        "GET /tr",
        "GET /sub",
        "GET /sub HTTP/1.0",
        "GET /flat",
        "GET /204",
        "GET /none",
        "GET /ka",
        "GET /ka0",
        "GET /rq",
        "GET /g",
        "GET /404",
        "GET /dir",
        "POST /hello.txt",
        "PUT /hello.txt",
    ],
    log=True,
    open=True,
    reasons=True,
)
http(
    "expires in all forms",
    r"""
map $arg_m $exp {
    default off; max max; epoch epoch; hour 1h; neg -1; day @6h; mod "modified +1h"; bad nonsense;
    empty ""; at25 @25h; atm @90m; plus +1h; two "1h 2h"; zero 0; far 10000d; frac 1.5h;
}
server { listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
location /v { expires $exp; add_header C "$sent_http_cache_control" always; return 200 x; }
location /vm { expires modified $exp; alias @DIR@/www/hello.txt; }
location /mod { expires modified +24h; alias @DIR@/www/hello.txt; }
location /modneg { expires modified -24h; alias @DIR@/www/hello.txt; }
location /modret { expires modified +1h; return 200 x; }
location /mod0 { expires modified 0; alias @DIR@/www/hello.txt; }
location /modbig { expires modified 10y; alias @DIR@/www/hello.txt; }
location /at { expires @15h30m; return 200 x; }
location /at0 { expires @0; return 200 x; }
location /ath { expires @23h59m59s; return 200 x; }
location /h { expires 1h; return 200 x; }
location /z { expires 0; return 200 x; }
location /n { expires -10d; return 200 x; }
location /plus { expires +3h; return 200 x; }
location /cc {
    expires 1h; add_header Cache-Control "public"; add_header Cache-Control "x=1"; return 200 x;
}
location /ccoff { expires off; add_header Cache-Control "public"; return 200 x; }
location /exph { expires 1h; add_header Expires "never"; return 200 x; }
location /201 { expires 1h; return 201 x; }
location /202 { expires 1h; return 202 x; }
location /203 { expires 1h; return 203 x; }
location /301 { expires 1h; return 301 /x; }
location /303 { expires 1h; return 303 /x; }
location /307 { expires 1h; return 307 /x; }
location /308 { expires 1h; return 308 /x; }
location /204 { expires 1h; return 204; }
location /300 { expires 1h; return 300 x; }
location /404 { expires 1h; return 404; }
location /500 { expires 1h; return 500; }
location /inh {
    expires 1h;
    location /inh/a { return 200 x; }
    location /inh/off { expires off; return 200 x; }
    location /inh/b { expires max; return 200 x; }
}
location /if { expires 1h; if ($arg_a) { expires max; return 200 y; } return 200 x; }
location /file/ { expires max; alias @DIR@/www/; }
}
""",
    [
        "GET /v?m=max",
        "GET /v?m=epoch",
        "GET /v?m=bad",
        "GET /v?m=empty",
        "GET /v?m=two",
        "GET /vm?m=max",
        "GET /vm?m=epoch",
        "GET /vm",
        "GET /mod",
        "GET /modneg",
        "GET /modbig",
        "GET /ccoff",
        "GET /202",
        "GET /203",
        "GET /300",
        "GET /404",
        "GET /500",
        "GET /inh/off",
        "GET /inh/b",
        "GET /if?a=1",
        "GET /file/hello.txt",
        "GET /file/hello.txt | Range: bytes=0-1",
        "GET /file/hello.txt | If-None-Match: *",
        "GET /file/",
        "GET /file/dir",
        "GET /file/hello.txt | Range: bytes=99-",
    ],
)
for text in (
    "add_header X $nothing;",
    "add_header $uri x;",
    "add_header X;",
    "add_header X y z;",
    "add_header X y always z;",
    'add_header "" y;',
    'add_header X "";',
    "add_header X y Always;",
    "add_header_inherit on off;",
    "expires;",
    "expires x;",
    "expires 1h 2h;",
    "expires modified;",
    "expires modified x;",
    "expires modified off;",
    "expires modified max;",
    "expires modified @1h;",
    "expires modified -1h;",
    "expires @;",
    "expires @24h;",
    "expires @25h;",
    "expires @x;",
    "expires -;",
    "expires -x;",
    "expires +;",
    "expires 1h30m;",
    'expires "1h 30m";',
    "expires $arg_e;",
    "expires $nothing;",
    "expires modified $arg_e;",
    "expires never max;",
    "expires OFF;",
    "expires 1.5h;",
    "expires 99999999999;",
    "expires -1 -1;",
    "expires max; expires off;",
):
    location_mistake(text)
