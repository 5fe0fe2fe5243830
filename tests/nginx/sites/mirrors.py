"""Owns: configurations with mirror, whose log lines say which copies of requests were made."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import http
from ..text import words
from .php import post

LOG = """
    log_format copy '$request_uri $uri $is_args$args $status $request_method $http_x $remote_user '
        '$content_type $request_body_file';
    access_log @LOGS@/access.log copy;
"""
SERVER = """
    server {
        listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; log_subrequest on;
        location = /next { access_log off; return 204; }
        mirror /copy; mirror_request_body on;
        location /copy { return 202 "nobody reads this"; }
        location = /two { mirror /copy?x=1; mirror /none; mirror /copy; alias @DIR@/www/hello.txt; }
        location = /off { mirror off; alias @DIR@/www/hello.txt; }
        location = /literal { mirror /copy$arg_a; alias @DIR@/www/hello.txt; }
        location = /again { mirror /again; alias @DIR@/www/hello.txt; }
        location = /denied { deny all; }
        location = /toDenied { mirror /denied.txt; alias @DIR@/www/hello.txt; }
        location = /denied.txt { deny all; alias @DIR@/www/hello.txt; }
        location = /toInternal { mirror /in; alias @DIR@/www/hello.txt; }
        location = /in { internal; return 203; }
        location = /returns { return 200 x; }
        location = /rewritten { rewrite ^ /hello.txt; }
        location = /missing { error_page 404 /page; }
        location = /page { mirror /copy; alias @DIR@/www/hello.txt; }
        location = /triedNone { try_files /none =404; }
        location = /triedFile { try_files /hello.txt =404; }
        location = /loud { mirror /fails; alias @DIR@/www/hello.txt; }
        location = /fails { error_page 404 = /copy; alias @DIR@/www/none; }
        location = /body { proxy_pass http://@ORIGIN@; mirror /bodies; }
        location = /nobody { proxy_pass http://@ORIGIN@; mirror /copy; mirror_request_body off; }
        location = /unread { mirror /copy; alias @DIR@/www/hello.txt; }
        location = /bodies { return 202; }
        location = /small { client_max_body_size 3; mirror /copy; alias @DIR@/www/hello.txt; }
        location = /smallCopy { mirror /tiny; alias @DIR@/www/hello.txt; }
        location = /tiny { client_max_body_size 3; return 202; }
    }
"""
PATHS = words(
    "/hello.txt /hello.txt?a=b /none /dir /dir/ /two /two?a=b /off /literal?a=b /again "
    "/denied /toDenied /toInternal /returns /rewritten /rewritten?a /missing /triedNone "
    "/triedFile /loud /in"
)
http(
    "mirror",
    LOG + SERVER,
    [f"{method} {path} | X: y" for method in ("GET", "HEAD") for path in PATHS]
    + [
        post(path, body=b"a body")
        for path in ("/body", "/nobody", "/unread", "/small", "/smallCopy", "/off", "/two")
    ],
    errors=True,
    log=True,
)
for text in (
    "mirror;",
    "mirror /a /b;",
    'mirror "";',
    "mirror off; mirror off;",
    "mirror off; mirror /a;",
    "mirror /a; mirror off;",
    "mirror /a; mirror /a;",
    "mirror_request_body;",
    "mirror_request_body x;",
    "mirror_request_body on; mirror_request_body on;",
    "mirror @a;",
):
    http_mistake(text)
location_mistake("if ($arg_a) { mirror /x; }")
location_mistake("limit_except GET { mirror /x; }")
location_mistake("mirror a; mirror $a; mirror_request_body off;")
