"""Owns: configurations of applications that talk to others of their kind, in one start.

As in `named_applications`. Each is also asked in ways that its authors did not think of.
"""

from ..site import Case
from .named_applications import group
from .named_gateways import OK, raw
from .named_services import WEBSOCKET

BODY = " | Content-Length: 3\r\n\r\nabc"
KEPT = raw(OK + "Cache-Control: max-age=60\nContent-Length: 10\nConnection: close\n\n0123456789")
GONE = "HTTP/1.1 404 No\nContent-Length: 0\nConnection: close\n\n"
DATE = "Tue, 14 Nov 2023 22:13:20 GMT"


def edges(path: str, is_kept: bool = False) -> list[Case]:
    """A path asked in odd ways; what is kept has a length, so parts of it are another matter."""
    parts = [] if is_kept else [f"GET {path} | Range: bytes=0-1,3-4"]
    return [
        *parts,
        f"GET {path}",
        f"HEAD {path}",
        f"OPTIONS {path} | Origin: https://x.test | Access-Control-Request-Method: PUT",
        f"POST {path}{BODY}",
        f"GET {path}?",
        f"GET {path}?a=%20b&&c=%2F#d",
        f"GET /{path}",
        f"GET {path}/",
        f"GET {path}/./x/../y//z",
        f"GET {path}%2Fx%3Fy",
        f"GET {path}/%2e%2e/x%00",
        f"GET {path} HTTP/1.0",
        f'GET {path} | If-None-Match: W/"x", "y"',
        f"GET {path} | If-Modified-Since: {DATE}",
    ]


group(
    "federation",
    r"""
    map "$request_method:$http_accept" $pool {
        default ui;
        "~^(?:GET|HEAD):.*?application/(?:activity|ld)\+json" api;
        "~^(?!(GET|HEAD)).*:" api;
    }
    map $uri $chunk_key { default $uri; "~^/proxy/(?<sig>[^/]+)/(?<rest>.+)$" "$rest@$sig"; }
    map $arg_name $media_name { default ""; "~^[\w.%-]+$" $arg_name; }
    limit_req_zone $binary_remote_addr zone=posts:1m rate=1r/m;
    proxy_cache_path @LOGS@/media keys_zone=media:1m inactive=7d max_size=10m use_temp_path=off;
    upstream ui { server @ORIGIN@; }
    upstream api { server @ORIGIN@; keepalive 2; keepalive_requests 3; }
    """,
    (
        "lemmy",
        r"""
        server_tokens off; gzip on; gzip_types text/css application/javascript; gzip_vary on;
        add_header X-Pool $pool always; add_header X-Content-Type-Options nosniff;
        location / {
            proxy_pass http://$pool; rewrite ^(.+)/+$ $1 permanent; @FORWARDED@
        }
        location ~ ^/(api|pictrs|feeds|nodeinfo|\.well-known) {
            proxy_pass "http://api"; @UPGRADE@ @FORWARDED@
        }
        """,
        [
            *edges("/c/main"),
            "GET /u/ann | Accept: application/activity+json",
            'GET /u/ann | Accept: application/ld+json; profile="https://x"',
            "GET /u/ann/// | Accept: text/html",
            "PUT /u/ann" + BODY,
            "GET /api/v3/ws" + WEBSOCKET,
            "GET /.well-known/webfinger?resource=acct:a@b.test",
            "GET /feedsx/",
        ],
    ),
    (
        "mastodon-media",
        r"""
        root @DIR@/www/list; keepalive_timeout 30; set $store 'http://app';
        location = / { index index.html; }
        location / { try_files $uri @s3; }
        location @s3 {
            limit_except GET { deny all; }
            proxy_set_header Host bucket.test; proxy_set_header Connection '';
            proxy_set_header Authorization ''; proxy_hide_header Set-Cookie;
            proxy_hide_header 'Access-Control-Allow-Origin'; proxy_hide_header X-Origin;
            proxy_hide_header x-amz-request-id; proxy_ignore_headers Set-Cookie;
            proxy_pass $store$uri; proxy_intercept_errors off;
            proxy_cache media; proxy_cache_valid 200 48h; proxy_cache_valid 404 1m;
            proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504;
            proxy_cache_lock on;
            expires 1y; add_header Cache-Control public;
            add_header 'Access-Control-Allow-Origin' '*';
            add_header X-Cache-Status $upstream_cache_status;
            add_header Content-Security-Policy "default-src 'none'; form-action 'none'";
        }
        """,
        [
            *edges("/accounts/avatars/1.png", True),
            "GET /",
            "GET /a.txt",
            "GET /a.txt | Range: bytes=1-",
            "GET /sub",
            "GET /sub/",
            f"GET {raw(OK + 'Set-Cookie: a=b' + chr(10) + 'X-Amz-Request-Id: 7' + chr(10) * 2)}",
            f"GET {raw(GONE)}",
            f"GET {raw(GONE)}",
            f"GET {raw('HTTP/1.1 503 No' + chr(10) + 'Cache-Control: max-age=9' + chr(10) * 2)}",
            "DELETE /accounts/avatars/1.png",
            "GET /accounts/a%2520b.png",
        ],
    ),
    (
        "akkoma",
        r"""
        location ~ ^/(media|proxy) {
            slice 8; proxy_cache media; proxy_set_header Range $slice_range;
            proxy_cache_key $chunk_key$is_args$args$slice_range;
            proxy_cache_valid 200 206 301 304 1h; proxy_cache_lock on;
            proxy_ignore_client_abort on; proxy_buffering on; chunked_transfer_encoding on;
            proxy_ignore_headers Cache-Control Expires; proxy_hide_header X-Origin;
            add_header Content-Disposition 'inline; filename="$media_name"';
            add_header X-Slice $slice_range; proxy_pass http://app;
        }
        location /api/fedsocket/v1 { proxy_request_buffering off; proxy_pass http://app/x;
        @UPGRADE@ }
        location / { add_header X-XSS-Protection "0"; add_header X-Frame-Options DENY;
        proxy_pass http://app; @UPGRADE@ @FORWARDED@ }
        """,
        [
            "GET /media/a/b.mp4?name=b.mp4",
            "GET /media/a/b.mp4 | Range: bytes=2-5",
            "GET /media"
            + raw(
                'HTTP/1.1 206 P\nContent-Range: bytes 0-7/8\nETag: "e"\nContent-Length: 8\n\n'
                "01234567"
            ),
            "GET /media"
            + raw("HTTP/1.1 206 P\nContent-Range: bytes 0-7/8\n\n01234567")
            + " | Range: bytes=2-3",
            "HEAD /media/a/b.mp4",
            "GET /proxy/sig/aHR0c%20/x.png?name=a%22b",
            'GET /proxy/sig/aHR0c%20/x.png | If-Range: "x" | Range: bytes=0-0',
            "GET /proxy",
            "GET /api/fedsocket/v1/" + WEBSOCKET,
            "POST /api/fedsocket/v1" + BODY,
            "GET /notice/1" + WEBSOCKET.replace("websocket", "h2c"),
            "GET /objects/x | Accept: application/activity+json",
            "PROPFIND /notice",
            "GET /notice?name",
        ],
    ),
    (
        "misskey",
        r"""
        client_max_body_size 80; proxy_force_ranges on;
        location / {
            proxy_pass http://app; @FORWARDED@ @UPGRADE@ proxy_redirect off;
            proxy_cache media; proxy_cache_lock on; proxy_cache_use_stale updating;
            add_header X-Cache $upstream_cache_status;
        }
        location = /sw.js { proxy_pass http://app; proxy_cache off; expires epoch; }
        location ~ ^/(?:inbox|users/[^/]+/inbox)$ {
            limit_except POST { deny all; } limit_req zone=posts burst=2 nodelay;
            limit_req_status 429; limit_req_log_level warn; proxy_pass http://app;
        }
        """,
        [
            *edges("/notes/1", True),
            "GET /streaming" + WEBSOCKET,
            "GET /sw.js",
            "GET /inbox",
            "POST /inbox" + BODY,
            "POST /users/a%20b/inbox" + BODY,
            "POST /users/a/inbox" + BODY,
            "POST /users/a/inbox" + BODY,
            "POST /api/drive | Content-Length: 81\r\n\r\n" + "x" * 81,
            "POST /api/drive | Content-Length: 80\r\n\r\n" + "x" * 80,
            f"GET {KEPT}",
            f"GET {KEPT} | Range: bytes=1-2",
        ],
    ),
    (
        "hubzilla",
        r"""
        root @DIR@/applications; index index.php; charset utf-8; fastcgi_buffers 4 16k;
        client_body_buffer_size 128k;
        location / {
            if ($is_args != "") { rewrite ^/(.*) /index.php?q=$uri&$args last; }
            rewrite ^/(.*) /index.php?q=$uri last;
        }
        location ^~ /.well-known/ {
            allow all;
            if ($is_args != "") { rewrite ^/(.*) /index.php?q=$uri&$args? last; }
            rewrite ^/(.*) /index.php?q=$uri? last;
        }
        location ~* \.(jpg|jpeg|gif|png|ico|css|js|htm|html|ttf|woff|svg)$ {
            expires 30d; try_files $uri /index.php?q=$uri&$args;
        }
        location ~* \.(tpl|md|tgz|log|out)$ { deny all; }
        location ~* \.php$ {
            try_files $uri =404; fastcgi_split_path_info ^(.+\.php)(/.+)$; fastcgi_index index.php;
            @FCGI@
        }
        location ~ /\. { deny all; }
        location ~ /store { deny all; }
        """,
        [
            *edges("/channel/ann"),
            "GET /.well-known/webfinger?resource=a%40b",
            "GET /.well-known/host-meta",
            "GET /css/site.css",
            "GET /photo/x.png?a=b",
            "GET /readme.md",
            "GET /index.php/x",
            "GET /index.php?q=%C3%A4",
            "GET /store/x",
            "GET /.git/config",
            "GET /a%26b?c",
            "GET /a?b?c&d=%",
        ],
    ),
    (
        "writefreely",
        r"""
        gzip on; gzip_types application/javascript text/css text/plain; gzip_min_length 200;
        location ~ ^/\.well-known/(webfinger|nodeinfo|host-meta) {
            proxy_set_header Host $host; proxy_pass http://app; proxy_redirect off;
        }
        location ~ ^/(dir|css|a)/ { root @DIR@/www; expires 12M; etag off; }
        location ~* \.(?:txt|xml)$ { root @DIR@/www; add_header X-Text $uri; }
        location / { proxy_set_header Host $host; proxy_pass http://app; proxy_redirect off; }
        """,
        [
            "GET /.well-known/nodeinfo",
            "GET /.well-known/other",
            *edges("/dir/file.txt"),
            "GET /a/b/",
            "GET /a/b",
            "GET /robots.txt",
            "GET /hello.txt?x=y",
            "GET /ann/a%20post",
        ],
    ),
    (
        "element",
        r"""
        root @DIR@/www; index index.html;
        add_header X-Frame-Options SAMEORIGIN; add_header X-Content-Type-Options nosniff;
        location = /config.json { try_files /config.$host.json /data.json =404;
        add_header Cache-Control "no-cache"; }
        location = /.well-known/matrix/server {
            default_type application/json; add_header Access-Control-Allow-Origin "*" always;
            return 200 '{"m.server": "$host:443"}';
        }
        location = /.well-known/matrix/client {
            if ($request_method = OPTIONS) {
                add_header Access-Control-Allow-Headers "X-Requested-With, Authorization";
                return 204;
            }
            add_header Access-Control-Allow-Origin * always; types { }
            default_type application/json;
            return 200 "{\"m.homeserver\":{\"base_url\":\"$scheme://$http_host\"}}";
        }
        location ~* ^(\/_matrix|\/_synapse\/client) {
            proxy_pass http://app; @FORWARDED@ client_max_body_size 50M;
            location ~ ^/_matrix/client/(r0|v3)/(login|register)$ { limit_req zone=posts;
            proxy_pass http://app; }
            location ~ ^/_matrix/(media)/.*download { expires 1h;
            proxy_pass http://app$request_uri; }
        }
        location /i18n { expires 1h; }
        location /bundles/ { gzip_static always; gunzip on; alias @DIR@/www/; expires max; }
        """,
        [
            *edges("/.well-known/matrix/client"),
            "GET /.well-known/matrix/server",
            "GET /.well-known/matrix/server/",
            "GET /config.json",
            'HEAD /config.json | If-None-Match: "x"',
            "GET /_matrix/client/v3/login",
            "POST /_matrix/client/v3/login" + BODY,
            "GET /_matrix/media/v3/download/a.test/x%2Fy?allow_redirect=true",
            "GET /_MATRIX/client/versions",
            "GET /_synapse/admin/v1/x",
            "GET /i18n/de.json",
            "GET /bundles/onlygz.txt | Accept-Encoding: gzip",
            "GET /bundles/onlygz.txt",
            "GET /bundles/hello.txt",
            "GET /",
        ],
    ),
    (
        "bigbluebutton",
        r"""
        root @DIR@/www; error_page 404 /errors/404.html;
        error_page 500 502 503 504 /errors/50x.html;
        location / { index index.html index.htm; expires 1m; }
        location /bigbluebutton {
            proxy_pass http://app; proxy_redirect default; proxy_set_header X-Forwarded-For
            $proxy_add_x_forwarded_for; proxy_hide_header X-Origin;
            if ($request_method ~ ^(PUT|DELETE)$) { return 405; }
        }
        location /bigbluebutton/presentation/ {
            auth_request /check; auth_request_set $verdict $upstream_status;
            add_header X-Verdict $verdict always; alias @DIR@/www/dir/;
        }
        location = /check { internal; proxy_pass_request_body off;
        proxy_pass http://app/raw/$cookie_v;
        proxy_set_header Content-Length ""; proxy_set_header X-Original-URI $request_uri; }
        location ~ ^/html5client/locales/?$ { alias @DIR@/www/list/; autoindex on;
        autoindex_format json; }
        location ~ ^/html5client/(?<rest>.*)$ { gzip_static on; alias @DIR@/www/$rest; }
        location /playback/presentation/2.0/playback.html {
            if ($arg_meetingId) { return 301 /playback/presentation/2.3/$arg_meetingId; }
            return 404;
        }
        location /playback/presentation/2.3 { try_files $uri /fallback.html; }
        location /ws { proxy_pass http://app/ws; @UPGRADE@ proxy_read_timeout 60s;
        proxy_send_timeout 60s; }
        """,
        [
            *edges("/bigbluebutton/api/join"),
            "DELETE /bigbluebutton/api",
            "GET /bigbluebutton/presentation/file.txt | Cookie: v=" + raw(OK + "\n")[5:],
            "GET /bigbluebutton/presentation/file.txt | Cookie: v="
            + b"HTTP/1.1 403 F\r\n\r\n".hex(),
            "GET /bigbluebutton/presentation/file.txt | Cookie: v="
            + b"HTTP/1.1 500 F\r\n\r\n".hex(),
            "GET /bigbluebutton/presentation/",
            "GET /check",
            "GET /html5client/locales",
            "GET /html5client/hello.txt",
            "GET /html5client/a//b/../b/c.txt",
            "GET /html5client/%2e%2e/x",
            "GET /html5client/",
            "GET /playback/presentation/2.0/playback.html?meetingId=a%2Fb&x",
            "GET /playback/presentation/2.0/playback.html?meetingId=",
            "GET /playback/presentation/2.0/playback.html?meetingid=7",
            "GET /playback/presentation/2.3/x",
            "GET /ws" + WEBSOCKET,
            "GET /none",
        ],
    ),
    # What is kept has a length here.
    lengths="any",
)
