"""Owns: when variables are evaluated, as `$1` and the values of `map` that hold show it.

An expression of a `map` that matches replaces `$1`, so that an evaluation too early or too late
sends a request to another target.
"""

from ..site import http, server
from .php import post

DEVICE = 'map $http_user_agent $device { default desktop; "~*(mob)ile|phone" mobile; }'
ZONE = "proxy_cache_path @LOGS@/zone keys_zone=z:1m; "
http(
    "evaluation: the address of an upstream comes before the key and the conditions of its cache",
    ZONE
    + DEVICE
    + """
    map $http_cookie $known { default ""; "~(login)=" 1; }
    upstream app { server @ORIGIN@; }
    server {
        listen 127.0.0.1:@P0@; proxy_cache z; proxy_cache_valid 200 10m;
        add_header X $upstream_cache_status; add_header One $1;
        location ~ ^/key/(.*)$ {
            proxy_cache_key "$request_uri$device"; proxy_pass http://@ORIGIN@/v1/$1$is_args$args;
        }
        location ~ ^/group/(.*)$ {
            proxy_cache_key "$request_uri$device"; proxy_pass http://app/v1/$1;
            proxy_set_header One $1;
        }
        location ~ ^/bypass/(.*)$ {
            proxy_cache_key $request_uri; proxy_cache_bypass $known; proxy_no_cache $known;
            proxy_pass http://@ORIGIN@/v2/$1;
        }
        location ~ ^/fields/(.*)$ {
            proxy_cache_key $request_uri; proxy_set_header D $device; proxy_set_header One $1;
            proxy_pass http://@ORIGIN@/v3/$1;
        }
        location ~ ^/method/(.*)$ {
            proxy_cache off; proxy_method $device; proxy_pass http://@ORIGIN@/v4/$1;
        }
    }
    """,
    [
        f"GET /{where}/users?x={number} | User-Agent: {agent} | Cookie: {cookie}"
        for where in ("key", "group", "bypass", "fields", "method")
        for number, (agent, cookie) in enumerate(
            [("mobile", "a=b"), ("phone", "login=1"), ("other", "login=1"), ("x", "a=b")]
        )
        for _ in range(2)
    ],
)
TENANT = "map $http_t $tenant { ~^(\\w+)\\. $1; default www; }"
EARLIER = """
        location ~ ^/files/(.*)$ { proxy_pass http://@ORIGIN@/store/$1; }
        location ~ ^/go/(\\d+)$ { return 302 /item?id=$1; }
        location ~ ^/said/(\\d+)$ { add_header One $1; add_header Root $document_root; return 204; }
        location ~ ^/php/(\\w+)$ {
            fastcgi_pass @PHPA@; fastcgi_param REQUEST_METHOD GET; fastcgi_param ONE $1;
            fastcgi_param SCRIPT_FILENAME @DIR@/app/$1.php;
        }
"""
READS = "location /real { return 200 $realpath_root; }"
ASKED = [
    f"GET {target} | T: {tenant}"
    for target in (
        "/files/a/b.txt",
        "/go/42",
        "/said/7",
        "/php/env",
        "/hello.txt",
        "/real",
        "/?t=b",
    )
    for tenant in ("www.test", "sub.test", "none")
]
for name, reads in (("", ""), (" and a resolved one elsewhere", READS)):
    http(
        f"evaluation: a root by an expression{name}",
        TENANT
        + "server { listen 127.0.0.1:@P0@; root @DIR@/$tenant; uninitialized_variable_warn on;"
        + EARLIER
        + reads
        + "}",
        [one for one in ASKED if reads or "/real" not in one],
        errors=True,
    )
    http(
        f"evaluation: a root whose map is read before set{name}",
        "map $tenant $dir { a www; b www/sub; default none; }"
        + "server { listen 127.0.0.1:@P0@; set $tenant a; if ($arg_t) { set $tenant $arg_t; }"
        + "set $base @DIR@; root $base/$dir;"
        + EARLIER
        + reads
        + "}",
        [one for one in ASKED if "T: none" in one and (reads or "/real" not in one)],
        errors=True,
    )
http(
    "evaluation: the root of one server says nothing to another",
    TENANT
    + "server { listen 127.0.0.1:@P1@; root @DIR@/www; "
    + READS
    + "} server { listen 127.0.0.1:@P0@; root @DIR@/$tenant;"
    + EARLIER
    + "}",
    [one for one in ASKED if "/real" not in one],
)
server(
    "evaluation: a name of set that an expression captures, too",
    """
        if ($args ~ x) { set $n 1; }
        location = /unset { return 200 "n $n"; }
        location ~ ^/q(?<n>\\d+)$ { return 200 "q $n"; }
    """,
    ["GET /unset", "GET /unset?x", "GET /q5", "GET /q5?x", "GET /none"],
    errors=True,
)
server(
    "evaluation: the method of subrequests behind an internal redirect",
    """
        ssi on; ssi_types *;
        location = /refused { error_page 404 = /asked; return 404; }
        location = /asked {
            auth_request /auth; auth_request_set $seen $upstream_http_x_seen;
            proxy_pass http://@ORIGIN@; proxy_set_header Seen $seen;
        }
        location = /direct { auth_request /auth; proxy_pass http://@ORIGIN@; }
        location = /auth {
            internal; proxy_pass http://@ORIGIN@/auth; proxy_pass_request_body off;
            proxy_set_header Content-Length ""; proxy_set_header X-Method $request_method;
            error_page 401 403 404 500 502 = /told;
        }
        location = /told { return 401 "$request_method"; }
        location = /page { error_page 404 = /ssi.html; return 404; }
        location = /ssi.html { return 200 '<!--#include virtual="/method" -->'; }
        location = /method { return 200 "method $request_method of $request"; }
    """,
    [
        one
        for path in ("/refused", "/direct", "/page", "/ssi.html")
        for one in (f"GET {path}", post(path, "a=1"), f"DELETE {path}", f"HEAD {path}")
    ],
)
http(
    "evaluation: whether requests with subrequests are complete",
    """
    log_format f '$uri|$status|$request_completion';
    server {
        listen 127.0.0.1:@P0@; root @DIR@/www; access_log @LOGS@/access.log f; ssi on;
        location /m { mirror /hello.txt; return 200 m; }
        location /file { alias @DIR@/www/; mirror /hello.txt; }
        location = /page.shtml { ssi_types *; return 200 '<!--#include virtual="/hello.txt" -->'; }
        location /logged/ { log_subrequest on; mirror /hello.txt; alias @DIR@/www/; }
    }
    """,
    ["GET /m", "GET /file/hello.txt", "GET /page.shtml", "GET /hello.txt"],
    log=True,
)
http(
    "evaluation: a clear request on a port of TLS",
    """
    log_format f '$request|$scheme|$https|$status';
    server {
        listen 127.0.0.1:@P0@ ssl; server_name localhost; access_log @LOGS@/access.log f;
        ssl_certificate @CERT@; ssl_certificate_key @KEY@;
        location / { return 200 "$scheme"; }
        error_page 497 @plain;
        location @plain { proxy_pass http://@ORIGIN@; proxy_set_header X-Proto $scheme; }
    }
    server {
        listen 127.0.0.1:@P1@ ssl; server_name localhost; ssl_certificate @CERT@;
        ssl_certificate_key @KEY@; error_page 497 =301 $scheme://$host$request_uri;
    }
    """,
    ["GET /q", "GET /q HTTP/1.0", post("/q", "a=1"), b"GET /x\r\n"],
    log=True,
)
server(
    "evaluation: a request that no upstream can be sent is no failure of a server",
    """
        location / { proxy_pass http://@ORIGIN@$uri$is_args$args; }
    """,
    ["GET /a", "GET /b?x=1"],
)
