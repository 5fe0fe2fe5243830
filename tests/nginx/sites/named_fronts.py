"""Owns: configurations in front of frameworks, stores and mirrors, in one start.

As in `named_applications`.
"""

from .named_applications import group
from .named_federation import BODY, edges
from .named_gateways import OK, raw
from .named_services import WEBSOCKET

LINKS = raw(OK + "Content-Type: text/html\n\n<a href=https://files.test/x></a>")
GIF = "HTTP/1.1 404 N\nContent-Type: image/gif\nContent-Length: 0\n\n"


def answer(status: int, *fields: str) -> str:
    """The path at which the origin answers with this status, these fields and no content."""
    head = [f"HTTP/1.1 {status} X", *fields, "Content-Length: 0", "Connection: close"]
    return raw("\n".join([*head, "", ""]))


group(
    "fronts",
    r"""
    map $sent_http_content_type $expires {
        default off; text/html epoch; ~text/plain 1d; ~image/ max;
    }
    map $request_uri $next_asset { default ""; "~^/_next/static/(?<asset>[^?]+)" $asset; }
    map $upstream_http_x_no_compression $squeeze { default 1; ~. 0; }
    map $upstream_status $retry { default ""; ~^5 30; }
    map $http_origin $allow_origin {
        default ""; "~^https?://(localhost|app\.test)(:\d+)?$" $http_origin;
    }
    map $arg_token $from_arg { default $arg_token; "" $cookie_token; }
    map $from_arg $bearer { default "Bearer $from_arg"; "" $http_authorization; }
    map $http_accept $image { default jpg; "~image/avif" avif; "~image/webp" webp; }
    map $status $level { ~^[45] bad; default good; }
    log_format short '$level $uri $upstream_cache_status $upstream_status $sent_http_location '
        '$upstream_http_etag';
    split_clients "$remote_addr$arg_seed" $arm { 25% left; 25.5% right; * ""; }
    limit_req_zone $bearer zone=bearers:1m rate=1r/m;
    proxy_cache_path @LOGS@/assets keys_zone=assets:1m inactive=7d use_temp_path=off;
    proxy_cache_path @LOGS@/pypi levels=2:2 keys_zone=pypi:1m inactive=1y max_size=1g;
    upstream puma { server @ORIGIN@ max_fails=0; server 127.0.0.1:1 backup; }
    upstream broken { server 127.0.0.1:1 max_fails=0; server 127.0.0.1:2 max_fails=0 backup; }
    """,
    (
        "nextjs",
        r"""
        gzip on; gzip_proxied any; gzip_comp_level 4; gzip_types text/css text/plain image/svg+xml;
        gzip_min_length 20; access_log @LOGS@/access.log short;
        location /_next/static {
            proxy_cache assets; proxy_cache_key $next_asset; proxy_ignore_headers Cache-Control;
            proxy_cache_valid 60m; proxy_pass http://app; add_header X-Cache $upstream_cache_status;
        }
        location /_next/image {
            proxy_cache assets; proxy_cache_key "$arg_url $arg_w $arg_q $image";
            proxy_cache_valid 200 1h; proxy_cache_valid any 0; proxy_hide_header Vary;
            proxy_pass http://app; add_header X-Cache $upstream_cache_status;
            add_header Vary Accept;
        }
        location /static { proxy_cache assets; proxy_ignore_headers Cache-Control;
        proxy_cache_valid 60m; proxy_pass http://app; rewrite ^/static/(.*)$ /_next/$1 break; }
        location / { proxy_pass http://app; @UPGRADE@ proxy_cache_bypass $http_upgrade;
        proxy_intercept_errors on; error_page 404 500 502 = @shell; }
        location @shell { root @DIR@/www; try_files /fallback.html =500; }
        """,
        [
            *edges("/_next/static/chunks/a.js", True),
            "GET /_next/image?url=%2Fa.png&w=64&q=75 | Accept: image/avif,image/webp",
            "GET /_next/image?q=75&w=64&url=%2Fa.png | Accept: image/avif",
            "GET /_next/image?q=75&w=64&url=%2Fa.png | Accept: */*",
            "GET /static/x.css?v=1",
            "GET /static",
            "GET /page | Accept-Encoding: gzip",
            "GET " + answer(404),
            "POST " + answer(500) + BODY,
            "GET /_next/webpack-hmr" + WEBSOCKET,
        ],
    ),
    (
        "nuxt",
        r"""
        expires $expires; gzip on; gzip_types text/plain application/json; gzip_min_length 1000;
        root @DIR@/www;
        location ^~ /dir/ { add_header X-Arm $arm; }
        location / {
            proxy_redirect off; @FORWARDED@ proxy_read_timeout 1m; proxy_connect_timeout 1m;
            proxy_pass http://app; add_header X-Arm $arm always;
        }
        location = /200.html { internal; }
        error_page 418 = @spa; location = /spa { return 418; } location @spa { expires -1;
        try_files /fallback.html =404; }
        """,
        [
            *edges("/products"),
            "GET /dir/",
            "GET /dir/file.txt?seed=1",
            "GET /dir/file.txt?seed=2",
            "GET /spa",
            "HEAD /spa?x",
            "GET /200.html",
            "GET /x?seed=3",
        ],
    ),
    (
        "strapi",
        r"""
        location /api/ { rewrite ^/api/?(.*)$ /$1 break; proxy_pass http://app; @FORWARDED@
        proxy_pass_request_headers on; proxy_redirect http://app/ /api/; }
        location /dashboard { proxy_pass http://app/admin; proxy_http_version 1.1; @FORWARDED@ }
        location ~ ^/(admin|uploads)(?<tail>/.*)?$ { proxy_pass http://app/$1$tail$is_args$args; }
        location = / { return 307 $scheme://$http_host/dashboard?$args; }
        """,
        [
            *edges("/api/articles"),
            "GET /api" + answer(302, "Location: http://app/login?x"),
            "GET /api" + answer(201, "Location: /login"),
            "GET /dashboard/x%20y?z",
            "GET /dashboardx",
            "GET /uploads/a%2Bb%25.png?x",
            "GET /admin",
            "GET /?a=b",
            "GET / HTTP/1.0",
        ],
    ),
    (
        "phoenix",
        r"""
        root @DIR@/www; try_files $uri @phoenix; access_log @LOGS@/access.log short;
        location ~ "^/(?:css|js|dir)/.+-(?<digest>[0-9a-f]{8})\.\w+$" {
            gzip_static on; expires max; add_header Cache-Control public; etag off;
            add_header X-Digest $digest; try_files $uri =404;
        }
        location /live { proxy_pass http://puma; @UPGRADE@ proxy_set_header Origin $allow_origin; }
        location @phoenix { proxy_pass http://puma; @FORWARDED@ proxy_set_header X-Cluster $arm;
        proxy_next_upstream error timeout http_503 non_idempotent; }
        """,
        [
            *edges("/users/7"),
            "GET /live/websocket?vsn=2.0.0 | Origin: https://app.test:4000" + WEBSOCKET,
            "GET /live/longpoll | Origin: https://evil.test",
            "GET /dir/file-0123abcd.txt",
            "GET /hello.txt",
            "GET " + answer(503, "Retry-After: 5"),
            "POST " + answer(503) + BODY,
        ],
    ),
    (
        "sentry",
        r"""
        proxy_redirect off; keepalive_timeout 0; server_tokens off; client_max_body_size 100;
        location ~ ^/api/[1-9]\d*/(store|envelope|minidump|security)/ {
            limit_req zone=bearers burst=1 nodelay; limit_req_status 429;
            limit_req_log_level notice;
            if ($request_method = OPTIONS) { add_header Access-Control-Allow-Origin $allow_origin;
            add_header Access-Control-Allow-Headers
            "x-sentry-auth, $http_access_control_request_headers";
            return 200; }
            proxy_set_header Authorization $bearer; proxy_pass http://puma;
            add_header X-Level $level always; client_max_body_size 8;
        }
        location ^~ /api/store/ { proxy_pass http://puma/api/1/store/; }
        location = /api/0/health { access_log off; empty_gif; }
        location / { proxy_pass http://broken; error_page 502 504 = @down; }
        location @down { add_header Retry-After $retry always; default_type text/html;
        return 503 "<p>down $upstream_status</p>"; }
        """,
        [
            *edges("/api/42/envelope/"),
            "POST /api/42/store/?token=a%20b" + BODY,
            "POST /api/42/store/ | Cookie: token=c" + BODY,
            "POST /api/42/store/ | Authorization: x | Content-Length: 9\r\n\r\n123456789",
            "OPTIONS /api/7/security/ | Origin: http://localhost:80 | "
            "Access-Control-Request-Headers: a, b",
            "POST /api/042/store/" + BODY,
            "POST /api/store/x?y" + BODY,
            "GET /api/0/health",
            "HEAD /api/0/health",
            "GET /organizations/",
            "POST /organizations/ | Content-Length: 101\r\n\r\n" + "x" * 101,
        ],
    ),
    (
        "flask",
        r"""
        keepalive_timeout 5; root @DIR@/www; client_max_body_size 4G;
        if ($host !~* ^(flask|www)\.test$) { return 444; }
        location / { try_files $uri @proxy_to_app; }
        location @proxy_to_app { @FORWARDED@ proxy_set_header Host $http_host; proxy_redirect off;
        proxy_buffering off; proxy_pass http://puma; }
        error_page 500 502 503 504 /errors/50x.html; proxy_intercept_errors on;
        location = /errors/50x.html { root @DIR@/www; }
        location /protected/ { internal; alias @DIR@/www/; add_header X-Sent $upstream_http_etag;
        add_header X-Name $upstream_http_x_name; expires 1m; }
        location ^~ /mirror/ { internal; proxy_pass http://app/; proxy_set_header X-Was
        $upstream_http_x_name; }
        """,
        [
            *edges("/login"),
            "GET " + answer(500, "X-Name: a"),
            "GET "
            + answer(200, "X-Accel-Redirect: /protected/hello.txt", 'ETag: "e"', "X-Name: n"),
            "GET "
            + answer(200, "X-Accel-Redirect: /protected/digits.txt", "Content-Type: a/b")
            + " | Range: bytes=2-4",
            "GET " + answer(200, "X-Accel-Redirect: /protected/none", "Set-Cookie: a=b"),
            "GET " + answer(404, "X-Accel-Redirect: /protected/with%20space.txt", "Expires: 0"),
            "GET " + answer(200, "X-Accel-Redirect: /mirror/x?y=z", "X-Name: n n"),
            "POST " + answer(200, "X-Accel-Redirect: /mirror/x") + BODY,
            "GET " + answer(200, "X-Accel-Redirect: @proxy_to_app", "X-Name: again"),
            "GET " + answer(200, "X-Accel-Charset: koi8-r", "Content-Type: text/html"),
            "GET " + answer(200, "X-Accel-Limit-Rate: 100", "X-Accel-Buffering: yes", "Link: x"),
            "GET /protected/hello.txt",
            "GET /hello.txt",
        ],
    ),
    (
        "postgrest",
        r"""
        location /rest/ {
            default_type application/json; proxy_hide_header Content-Location;
            add_header Content-Location /rest$upstream_http_content_location; @UPGRADE@
            proxy_pass http://app/; proxy_set_header Authorization $bearer;
            if ($request_method ~ ^(TRACE|TRACK)$) { return 405; }
        }
        location = /rest { return 308 /rest/?$args; }
        """,
        [
            *edges("/rest/films"),
            "GET /rest" + answer(206, "Content-Location: /films?x", "Content-Range: 0-1/2"),
            "PATCH /rest/films?id=eq.1 | Prefer: return=minimal" + BODY,
            "GET /rest/films?select=a,b(c)&or=(a.eq.1,b.gt.2)&token=t",
            "GET /rest?a",
        ],
    ),
    (
        "authentik",
        r"""
        location / {
            auth_request /outpost.goauthentik.io/auth/nginx;
            error_page 401 = @goauthentik_proxy_signin;
            auth_request_set $auth_cookie $upstream_http_set_cookie;
            add_header Set-Cookie $auth_cookie;
            auth_request_set $authentik_username $upstream_http_x_authentik_username;
            auth_request_set $authentik_groups $upstream_http_x_authentik_groups;
            proxy_set_header X-authentik-username $authentik_username;
            proxy_set_header X-authentik-groups $authentik_groups; proxy_pass http://app;
            proxy_hide_header X-Origin; @UPGRADE@
        }
        location /outpost.goauthentik.io {
            proxy_pass http://app/raw/$cookie_verdict; proxy_set_header Host $host;
            proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
            add_header Set-Cookie $auth_cookie;
            auth_request_set $auth_cookie $upstream_http_set_cookie;
            proxy_pass_request_body off; proxy_set_header Content-Length "";
        }
        location @goauthentik_proxy_signin {
            internal; add_header Set-Cookie $auth_cookie;
            return 302 /outpost.goauthentik.io/start?rd=$scheme://$http_host$request_uri;
        }
        """,
        [
            f"{case} | Cookie: verdict={answer(status, *fields)[5:]}"
            for case in (
                "GET /app/x%20y?a=b",
                "HEAD /app",
                "OPTIONS /app",
                "GET /app | Range: bytes=0-1",
                "GET /app | Upgrade: websocket | Connection: Upgrade",
            )
            for status, fields in (
                (200, ("X-Authentik-Username: ann", "Set-Cookie: s=1", "Set-Cookie: t=2")),
                (401, ("Set-Cookie: s=2", "WWW-Authenticate: Basic")),
                (403, ("X-Authentik-Groups: a|b",)),
                (500, ()),
            )
        ]
        + ["GET /outpost.goauthentik.io/start?rd=/", "POST /app" + BODY],
    ),
    (
        "registry-cache",
        r"""
        proxy_cache assets; proxy_cache_lock on; proxy_cache_key $uri; proxy_cache_methods GET HEAD;
        proxy_cache_valid 200 206 60d; proxy_cache_convert_head on; proxy_ignore_headers
        X-Accel-Expires Expires Cache-Control Set-Cookie Vary; proxy_hide_header Vary;
        add_header X-Cache $upstream_cache_status always; access_log @LOGS@/access.log short;
        proxy_cache_use_stale error timeout updating http_500 http_502; proxy_intercept_errors on;
        recursive_error_pages on;
        location /v2/ {
            limit_except GET HEAD { deny all; } proxy_pass http://app;
            proxy_cache_bypass $is_args$args; proxy_no_cache $arg_n;
            error_page 301 302 307 = @handle_redirects;
        }
        location @handle_redirects {
            set $saved $upstream_http_location; proxy_pass $saved; proxy_cache_key $saved;
            proxy_cache_valid 200 1h; error_page 301 302 307 = @again;
        }
        location @again { return 508 "again $upstream_http_location"; }
        location / { return 403 "Registry only: $request_method\n"; }
        """,
        [
            *edges("/v2/library/x/manifests/latest", True),
            "GET /v2/library/x/manifests/latest?n=1",
            "GET /v2" + answer(307, "Location: http://@ORIGIN@/blob?sig=1%2F"),
            "GET /v2" + answer(307, "Location: http://@ORIGIN@/blob?sig=1%2F"),
            "HEAD /v2" + answer(302, "Location: http://@ORIGIN@/other"),
            "GET /v2"
            + answer(301, "Location: http://@ORIGIN@" + answer(302, "Location: http://z/")),
            "GET /v2" + answer(301, "Location: /relative"),
            "GET /v2" + answer(302),
            "GET /v2" + answer(401, 'WWW-Authenticate: Bearer realm="x"'),
            "GET /v2" + answer(404),
            "PUT /v2/x" + BODY,
            "GET /v1/_ping",
        ],
    ),
    (
        "pypi",
        r"""
        location /simple/ {
            proxy_pass http://app/simple/; proxy_set_header Accept-Encoding ""; proxy_cache pypi;
            proxy_cache_valid any 5m; proxy_cache_key $uri$http_accept; sub_filter_types *;
            sub_filter "https://files.test" "$scheme://$http_host/files"; sub_filter Host: H:;
            sub_filter_once off; add_header X-Cache $upstream_cache_status; proxy_redirect
            https://pypi.test/ /;
        }
        location ~ ^/files/(?<rest>packages/.+)$ {
            proxy_pass http://app/$rest; proxy_cache pypi; proxy_cache_valid 200 302 365d;
            proxy_store_access user:rw; proxy_ignore_headers Expires Cache-Control;
            proxy_cache_key $rest; proxy_temp_file_write_size 16k; proxy_max_temp_file_size 0;
            add_header X-Cache $upstream_cache_status; etag on; proxy_force_ranges on;
        }
        location = / { return 302 simple/; }
        """,
        [
            *edges("/simple/requests", True),
            "GET /",
            "GET /simple" + LINKS,
            "GET /simple" + LINKS + " | Range: bytes=0-9",
            "GET /simple" + answer(301, "Location: https://pypi.test/simple/a/"),
            "GET /files/packages/a%2Bb-1.0.tar.gz",
            "GET /files/packages/a+b-1.0.tar.gz | Range: bytes=4-8",
            "HEAD /files/packages/a+b-1.0.tar.gz",
            "GET /files/packages/",
            "GET /files/../simple/x",
        ],
    ),
    (
        "thumbs",
        r"""
        merge_slashes off; root @DIR@/www;
        location ~ "^/t/(?<sig>[\w-]{4,})/(?<w>\d{1,4})x(?<h>\d+)/(?<src>https?:/+[^/]+/.*)$" {
            secure_link $sig; secure_link_md5 "$w-$h-word"; set $ok yes;
            if ($secure_link = "") { set $ok no; }
            if ($arg_force) { set $ok yes; }
            if ($ok = no) { return 403; }
            proxy_pass http://app/insecure/rs:fill:$w:$h/plain/$src@$image; proxy_cache assets;
            proxy_cache_key "$w $h $src $image"; proxy_cache_valid 200 1h; proxy_cache_valid 404 1m;
            error_page 404 415 = @placeholder; proxy_intercept_errors on;
            add_header X-Cache $upstream_cache_status always; add_header Vary Accept;
        }
        location ~ ^/raw/ { proxy_pass http://app; proxy_intercept_errors on;
        error_page 404 =200 /photo.jpg; error_page 410 =404 @placeholder; }
        location @placeholder { expires 5m; empty_gif; }
        location ~* \.(jpg|svg)$ { expires 1d; try_files $uri @placeholder; }
        """,
        [
            "GET /t/abcd/100x50/https://img.test/a%20b.jpg",
            "GET /t/abcd/100x50/https://img.test/a%20b.jpg?force=1 | Accept: image/webp",
            "GET /t/abcd/100x50/https://img.test/a%20b.jpg?force=1 | Accept: image/webp",
            "GET /t/abcd/100x50/https:/img.test/a/../b.jpg?force=1",
            "GET /t/abc/100x50/https://img.test/x.jpg?force=1",
            "GET /t/abcd/100x50/ftp://img.test/x.jpg?force=1",
            f"GET {raw(GIF)}",
            f"HEAD {raw(GIF)}",
            "GET " + answer(410),
            "GET " + answer(404) + " | Range: bytes=0-1",
            "GET /none.jpg",
            "GET /photo.jpg | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
            "POST /none.svg" + BODY,
            "GET //photo.jpg",
            "GET /dir//none.jpg",
        ],
    ),
    (
        "elastic",
        r"""
        client_max_body_size 16; auth_basic_user_file @DIR@/users; keepalive_requests 2;
        location ~* ^(/_cluster|/_nodes|/_shutdown) { deny all; }
        location ~ ^/(?<index>[a-z][\w-]*)/_(?:search|count|msearch)$ {
            if ($request_method !~ ^(GET|POST|HEAD)$) { return 405; }
            gzip on; gzip_types *; gzip_min_length 1; gunzip on; if ($squeeze = 0) { set $x 1; }
            proxy_pass http://app/$index-v2/_search?$args; proxy_set_header Connection "Keep-Alive";
            proxy_set_header Proxy-Connection "Keep-Alive"; proxy_pass_request_headers off;
        }
        location / { limit_except GET HEAD { auth_basic "Write"; } proxy_pass http://app;
        proxy_read_timeout 90; proxy_request_buffering off; proxy_http_version 1.1; }
        error_page 413 =400 @large;
        location @large { return 400 '{"error":"large $content_length"}'; }
        """,
        [
            *edges("/logs/_search"),
            "GET /logs/_search?q=a:b | Accept-Encoding: gzip",
            "PUT /logs/_search" + BODY,
            "GET /_nodes/stats",
            "GET /_NODES",
            "PUT /logs/_doc/1" + BODY,
            "PUT /logs/_doc/1 | Authorization: Basic cGxhaW46cHc=" + BODY,
            "POST /logs/_bulk | Content-Length: 17\r\n\r\n" + "x" * 17,
            "GET /logs/_bulk | Content-Length: 17\r\n\r\n" + "x" * 17,
            "DELETE /logs",
            "GET /_cat/indices?v",
        ],
    ),
    # What is kept has a length here.
    lengths="any",
)
