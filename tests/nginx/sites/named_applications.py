"""Owns: configurations of more applications, several of them servers of one start.

As in `applications`, in words of our own: a server is named after what stands behind it, and is
asked by that name.
"""

from collections.abc import Sequence

from ..site import Case, http
from .applications import FORWARDED, MAP, UPGRADE

PHP = "include @DIR@/fastcgi.conf; fastcgi_pass @PHPA@;"
# A name, what stands in the server, and what is asked of it.
Server = tuple[str, str, Sequence[Case]]


def group(name: str, around: str, *servers: Server, lengths: str | None = None) -> None:
    """Adds a site of these servers, which share `app` and what stands `around` them."""
    head = MAP + "upstream app { server @ORIGIN@; keepalive 4; }\n" + around
    text, cases = head, []
    for host, conf, asked in servers:
        for word, value in (("@FORWARDED@", FORWARDED), ("@UPGRADE@", UPGRADE), ("@FCGI@", PHP)):
            conf = conf.replace(word, value)
        text += f"server {{ listen 127.0.0.1:@P0@; server_name {host}.test;\n{conf}\n}}\n"
        cases += [with_host(case, f"{host}.test") for case in asked]
    http(
        f"applications by name: {name}",
        text,
        cases,
        open=True,
        errors=True,
        log=True,
        lengths=lengths,
    )


def with_host(case: Case, host: str) -> Case:
    """A case that asks this host."""
    if not isinstance(case, str):
        return case
    head, mark, body = case.partition("\r\n\r\n")
    return f"{head} | Host: {host}{mark}{body}"


group(
    "talk",
    r"""
    map $request_uri $no_log { ~^/(ping|status) 0; default 1; }
    map $http_origin $cors { default ""; "~^https://([a-z]+)\.example\.com$" $http_origin; }
    map $sent_http_content_type $expiry { default off; ~text/plain 1h; ~image/ max; }
    limit_req_zone $http_x_api_key zone=keys:1m rate=1r/m;
    proxy_cache_path @LOGS@/one keys_zone=one:1m inactive=600m max_size=100m;
    upstream web { server @ORIGIN@ max_fails=0; server 127.0.0.1:1 backup; }
    """,
    (
        "discourse",
        r"""
        root @DIR@/www; client_max_body_size 10m; etag off; gzip on; gzip_vary on;
        gzip_min_length 10; gzip_comp_level 5; gzip_types application/json text/css text/plain;
        set $base_uri ""; server_tokens off; recursive_error_pages on;
        location ^~ /backups/ { internal; }
        location /favicon.ico { return 204; access_log off; log_not_found off; }
        location / {
            root @DIR@/www; add_header ETag "";
            location ~ ^/uploads/short-url/ { proxy_pass http://app; @FORWARDED@ break; }
            location ~* (fonts|assets|plugins|uploads)/.*\.(eot|ttf|woff|woff2|ico|otf)$ {
                expires 1y;
                add_header Cache-Control public,immutable;
                add_header Access-Control-Allow-Origin *;
            }
            location = /srv/status { access_log off; log_not_found off; proxy_pass http://app;
            break; }
            location ~ ^/javascripts/ { expires 1d; add_header Cache-Control public,immutable; }
            location ~ ^/dir/(?<asset_path>.+)$ {
                expires 1y; add_header Cache-Control public,immutable; gzip_static on; break;
            }
            location ~ ^/plugins/ { expires 1y; add_header Cache-Control public,immutable; }
            location ~ ^/letter_avatar/ {
                @FORWARDED@
                proxy_set_header X-Accel-Mapping @DIR@/www/=/downloads/;
                proxy_ignore_headers "Set-Cookie"; proxy_hide_header "Set-Cookie";
                proxy_hide_header "X-Discourse-Username"; proxy_hide_header "X-Runtime";
                proxy_cache one; proxy_cache_key "$scheme,$host,$request_uri";
                proxy_cache_valid 200 301 302 7d; proxy_cache_bypass $bypass_cache;
                proxy_pass http://app; break;
            }
            location /message-bus/ {
                @FORWARDED@ proxy_http_version 1.1; proxy_buffering off;
                proxy_pass http://app; break;
            }
            try_files $uri @discourse;
        }
        location /downloads/ { internal; alias @DIR@/www/; }
        location @discourse {
            limit_conn_status 429; limit_req_status 429;
            @FORWARDED@ proxy_set_header X-Request-Start "t=1"; proxy_pass http://app;
        }
        set $bypass_cache "";
        """,
        [
            "GET /t/topic/1?page=2",
            "GET /favicon.ico",
            "GET /dir/file.txt",
            "GET /uploads/a.woff2",
            "GET /letter_avatar/a/1.png",
            "GET /letter_avatar/a/1.png",
            "GET /backups/x",
            "GET /srv/status",
            "GET /javascripts/none.js",
            "GET /message-bus/x/poll | Accept-Encoding: gzip",
            "GET /style.css",
        ],
    ),
    (
        "zulip",
        r"""
        root @DIR@/www;
        location /local-static { alias @DIR@/www/dir; }
        location /static/ {
            alias @DIR@/www/; gzip_static on;
            types { text/plain txt; }
            location ~ "^/static/(?<file>.*)\.[0-9a-f]{12}\.(js|css)$" { expires max; }
            location ~ ^/static/webpack-bundles/ { expires 1y; }
        }
        location ~ ^/internal/s3/(?<s3_hostname>[^/]+)/(?<s3_path>.*) {
            internal; proxy_set_header X-Amz-Date ""; proxy_pass http://app/$s3_path$is_args$args;
        }
        location ~ ^/json/events|^/api/(v[0-9]+)/events { proxy_buffering off;
        proxy_pass http://app; }
        location ~ ^/tusd/?$ { return 405; }
        location / {
            if ($http_user_agent ~* "curl") { return 403 "no\n"; }
            proxy_pass http://app; @FORWARDED@
            proxy_next_upstream off; proxy_redirect off;
        }
        """,
        [
            "GET /static/hello.txt",
            "GET /static/a.0123456789ab.js",
            "GET /static/../x",
            "GET /local-static",
            "GET /local-static/file.txt",
            "GET /json/events?queue=1",
            "GET /internal/s3/a/b",
            "GET /tusd",
            "GET / | User-Agent: curl/8",
            "GET /user_uploads/raw/485454502f312e3120323030204f4b0d0a582d416363656c2d526564697265"
            "63743a202f696e7465726e616c2f73332f612f622532303f633d640d0a0d0a",
        ],
    ),
    (
        "mailman",
        """
        location /static { alias @DIR@/www/dir; expires 1h; autoindex on; }
        location / { proxy_pass http://127.0.0.1:1/x; proxy_read_timeout 300; }
        error_page 502 504 @late;
        location @late { add_header Retry-After 120 always; return 503 "try $uri later\\n"; }
        """,
        ["GET /static/", "GET /static/file.txt", "GET /archives/", "POST /x | Content-Length: 0"],
    ),
    (
        "jitsi",
        r"""
        root @DIR@/www; ssi on; ssi_types application/x-javascript application/javascript;
        index index.html; error_page 404 /errors/404.html;
        location = /config.js { alias @DIR@/www/app.js; }
        location = /external_api.js { alias @DIR@/www/app.js; }
        location ~ ^/(libs|css|static|images|fonts|lang|sounds|.well-known)/(.*)$ {
            add_header 'Access-Control-Allow-Origin' '*'; alias @DIR@/www/$1/$2;
            if ($arg_v) { expires 1y; }
        }
        location = /http-bind {
            proxy_pass http://app/http-bind?prefix=$prefix&$args;
            proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header Host $http_host;
        }
        location = /xmpp-websocket {
            proxy_pass http://app/xmpp-websocket?prefix=$prefix&$args; @UPGRADE@ tcp_nodelay on;
        }
        location ~ ^/([^/?&:'"]+)$ { set $roomname "$1"; try_files $uri @root_path; }
        location @root_path { rewrite ^/(.*)$ / break; }
        location ~ ^/([^/?&:'"]+)/config.js$ {
            set $subdomain "$1."; set $subdir "$1/"; alias @DIR@/www/app.js;
        }
        location ~ ^/([^/?&:'"]+)/(.*)$ {
            set $subdomain "$1."; set $subdir "$1/"; rewrite ^/([^/?&:'"]+)/(.*)$ /$2;
        }
        set $prefix "";
        """,
        [
            "GET /Room1",
            "GET /Room1?jwt=a",
            "GET /tenant/Room1",
            "GET /tenant/http-bind?room=x",
            "GET /config.js?v=1",
            "GET /css/none.css?v=2",
            "GET /a:b",
            "GET /a/b/c/d",
            "GET /tenant/config.js",
        ],
    ),
    (
        "nodebb",
        r"""
        location @nodebb { proxy_pass http://web; @UPGRADE@ @FORWARDED@ }
        location ~ ^/assets/(.*) {
            root @DIR@/www; try_files /build/public/$1 /$1 @nodebb;
            add_header Cache-Control "max-age=31536000";
        }
        location /plugins/ { root @DIR@/www; try_files $uri @nodebb; }
        location / { proxy_pass http://web; @FORWARDED@ }
        location ~ ^/socket.io/ { proxy_pass http://web$request_uri; @UPGRADE@ }
        error_page 502 503 504 =503 /errors/50x.html;
        """,
        [
            "GET /assets/hello.txt",
            "GET /assets/none%20x.js?v=1",
            "GET /topic/1/%C3%A4",
            "GET /plugins/x",
            "GET /socket.io/?t=%41",
        ],
    ),
    (
        "api",
        r"""
        default_type application/json; expires $expiry;
        location /v1/ {
            limit_req zone=keys burst=1 nodelay; limit_req_status 429;
            if ($request_method = OPTIONS) {
                add_header Access-Control-Allow-Origin $cors;
                add_header Access-Control-Allow-Methods "GET, POST, OPTIONS";
                add_header Access-Control-Max-Age 1728000;
                add_header Content-Type "text/plain; charset=utf-8";
                return 204;
            }
            if ($http_x_api_key = "") { return 401 '{"error":"key"}'; }
            add_header Access-Control-Allow-Origin $cors always;
            add_header Vary Origin always;
            proxy_hide_header X-Origin; proxy_pass http://app/;
        }
        error_page 429 @slow; error_page 404 = @none; error_page 401 /401.json;
        location @slow { internal; return 429 '{"error":"slow"}'; }
        location @none { return 404 '{"error":"$request_uri"}'; }
        location = /401.json { internal; add_header WWW-Authenticate Key always; return 401 "{}"; }
        location = / { return 200 "$http_x_api_key|$cors"; }
        location / { return 404; }
        """,
        [
            "OPTIONS /v1/x | Origin: https://a.example.com",
            "GET /v1/x | Origin: https://a.example.com",
            "GET /v1/x?y=1 | X-Api-Key: k1 | Origin: https://a.example.com",
            "GET /v1/x | X-Api-Key: k1",
            "GET /v1/x | X-Api-Key: k1",
            "GET /other",
            "GET / | X-Api-Key: 1, 2",
            "PUT /v1/x | X-Api-Key: k2 | Content-Length: 2\r\n\r\nab",
        ],
    ),
)
group(
    "files",
    r"""
    limit_conn_zone $binary_remote_addr zone=addr:1m;
    split_clients "${remote_addr}${http_x_user}" $variant { 10% .a; 30% .b; * ""; }
    geo $inside { default 0; 127.0.0.0/8 1; 10.0.0.0/8 2; }
    map $http_accept $webp { default ""; "~*webp" ".webp"; }
    map $http_accept_language $lang { default en; ~*^de de; "~*^fr(-[A-Z]{2})?" fr; }
    map $uri $moved { default ""; /old.html /hello.txt; ~^/blog/(?<slug>[^/]+)/?$ /dir/$slug; }
    map $cookie_maintenance $down { default 1; let-me-in 0; }
    map $args $clean { default $args; "~^(.*)&?utm_[a-z]+=[^&]*(.*)$" $1$2; }
    proxy_cache_path @LOGS@/img keys_zone=img:1m;
    """,
    (
        "seafile",
        r"""
        root @DIR@/www;
        location / { proxy_pass http://app; @FORWARDED@ proxy_read_timeout 1200s; }
        location /seafhttp {
            rewrite ^/seafhttp(.*)$ $1 break; proxy_pass http://app; client_max_body_size 0;
            proxy_request_buffering off;
        }
        location /seafdav { rewrite ^/seafdav$ /seafdav/ permanent; }
        location /seafdav/ { proxy_pass http://app/seafdav/;
        proxy_set_header Destination $http_destination; }
        location /media { root @DIR@/www; }
        location = /download { return 302 $scheme://$http_host/media/$arg_f; }
        """,
        [
            "GET /seafhttp/files/x/a%20b?op=1",
            "GET /seafhttp",
            "GET /seafdav",
            "COPY /seafdav/a | Destination: http://seafile.test/seafdav/b%20c",
            "GET /media/x.png",
            "GET /download?f=a%0d%0ab",
        ],
    ),
    (
        "images",
        r"""
        root @DIR@/www;
        location ~* ^/(?<dir>[a-z]+)/(?<size>\d+)x(?<h>\d*)/(?<path>.+\.(?:jpg|svg))$ {
            proxy_cache img; proxy_cache_valid any 5m; proxy_cache_key $dir-$size-$h-$path$webp;
            proxy_ignore_headers Cache-Control Expires Set-Cookie Vary;
            proxy_pass http://app/resize/$size/$h/$path?w=$webp;
            proxy_hide_header Set-Cookie; add_header X-Cache-Status $upstream_cache_status always;
            expires 30d;
        }
        location ~* \.(jpg|svg)$ { add_header Vary Accept; try_files $uri$webp $uri =404; }
        location / { try_files /nothing $uri$variant $uri/ @fallback; }
        location @fallback { rewrite ^/(.*)$ /img/100x/$1.jpg? last; }
        """,
        [
            "GET /img/10x20/a/b.jpg",
            "GET /img/10x20/a/b.jpg",
            "GET /img/10x/a%20b.svg?x=1 | Accept: image/webp",
            "GET /photo.jpg | Accept: image/avif,image/webp",
            "GET /icon.svg",
            "GET /a/none?x=1",
            "GET /noindex",
            "GET /hello.txt | X-User: 77",
        ],
    ),
    (
        "languages",
        r"""
        root @DIR@/www; charset utf-8; override_charset on;
        if ($moved) { return 301 $moved; }
        if ($clean != $args) { rewrite ^ $uri?$clean? redirect; }
        location = / { add_header Vary Accept-Language; return 302 /$lang/; }
        location ~ ^/(?<code>en|de|fr)(?<rest>/.*)?$ {
            add_header Content-Language $code;
            try_files /$code$rest $rest $rest/index.html /en.html;
        }
        location / { try_files $uri $uri.html /$lang.html /en.html =404; }
        """,
        [
            "GET / | Accept-Language: de-AT,de;q=0.8",
            "GET / | Accept-Language: fr-FR",
            "GET /de/hello.txt",
            "GET /fr/dir",
            "GET /fr",
            "GET /old.html?x=y",
            "GET /blog/a-post/?a=b",
            "GET /en/none?id=5&utm_source=x",
            "GET /x?utm_medium=y",
            "GET /dir",
        ],
    ),
    (
        "maintenance",
        r"""
        root @DIR@/www; set $off $down;
        if ($remote_addr ~ ^192\.0\.2\.) { set $off 0; }
        if ($uri ~ ^/(errors|dir)/) { set $off "${off}ok"; }
        if ($off = 1) { return 503; }
        error_page 503 @maintenance; error_page 403 404 500 502 504 /errors/50x.html;
        location @maintenance {
            add_header Retry-After 3600 always; add_header Cache-Control no-store;
            if ($http_accept ~ json) { return 503 '{"down":true}'; }
            rewrite ^(.*)$ /errors/50x.html break;
        }
        location /errors/ { internal; }
        location /private { deny all; }
        location / { index index.html; }
        """,
        [
            "GET /hello.txt",
            "GET /hello.txt | Cookie: maintenance=let-me-in",
            "POST /x | Content-Length: 0",
            "GET /dir/file.txt",
            "GET /errors/50x.html",
            "GET /private | Cookie: maintenance=let-me-in",
            "GET /api | Accept: application/json",
            "GET /none | Cookie: a=1; maintenance=let-me-in; b=2",
        ],
    ),
    (
        "downloads",
        r"""
        root @DIR@/www;
        location /s/ {
            secure_link $arg_md5,$arg_expires; secure_link_md5 "$secure_link_expires$uri secret";
            if ($secure_link = "") { return 403; }
            if ($secure_link = "0") { return 410; }
            rewrite ^/s/(.*)$ /$1 break; add_header Content-Disposition "attachment; filename=$1";
        }
        location /p/ { secure_link_secret word; if ($secure_link = "") { return 403;
        } rewrite ^ /$secure_link last; }
        location /zip { alias @DIR@/www/list; autoindex on; autoindex_exact_size off;
        autoindex_format json; }
        location /x/ { internal; alias @DIR@/www/; limit_rate_after 10k; limit_rate 500k; }
        location /app/ { proxy_pass http://app; proxy_intercept_errors on;
        error_page 404 /404.php; }
        location = /404.php { return 404 "gone: $request_uri $upstream_status"; }
        location ~ ^/hls/(.+\.(m3u8|ts))$ {
            types { application/vnd.apple.mpegurl m3u8; video/mp2t ts; }
            add_header Access-Control-Allow-Origin *; add_header Cache-Control no-cache;
            alias @DIR@/www/$1; limit_conn addr 10;
        }
        location ~ \.bin$ { max_ranges 1; add_header Accept-Ranges bytes; aio threads;
        directio 4m; output_buffers 2 64k; }
        """,
        [
            "GET /s/hello.txt?md5=x&expires=2147483647",
            "GET /s/hello.txt",
            "GET /p/2b36a7ba2ba24cfbcbd7d0b4e2c47ecf/hello.txt",
            "GET /p/x/hello.txt",
            "GET /zip",
            "GET /x/a",
            "GET /app/raw/485454502f312e3120323030204f4b0d0a582d416363656c2d52656469726563743a20"
            "2f782f68656c6c6f2e7478740d0a582d416363656c2d4c696d69742d526174653a206f66660d0a436f6e"
            "74656e742d547970653a20612f620d0a0d0a",
            "GET /app/raw/485454502f312e3120343034204e6f0d0a0d0a",
            "GET /hls/live/x.m3u8",
            "GET /big.bin | Range: bytes=0-1,5-6",
            "HEAD /big.bin",
        ],
    ),
    (
        "dav",
        r"""
        root @LOGS@; client_max_body_size 1k; client_body_temp_path @LOGS@/dav-temp;
        location /dav/ {
            dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; min_delete_depth 1;
            dav_access user:rw group:r all:r; autoindex on;
            limit_except GET PROPFIND { deny 192.0.2.0/24; allow all; }
            if ($request_method = PROPFIND) { return 501; }
        }
        """,
        [
            "PUT /dav/a/b.txt | Content-Length: 3\r\n\r\nabc",
            "PUT /dav/a/b.txt | Content-Length: 4\r\n\r\nabcd",
            "GET /dav/a/b.txt",
            "MKCOL /dav/c/",
            "MKCOL /dav/c/",
            "MKCOL /dav/d",
            "COPY /dav/a/b.txt | Destination: http://dav.test/dav/c/e.txt",
            "COPY /dav/a/b.txt | Destination: http://other.test/dav/c/e.txt",
            "MOVE /dav/a/b.txt | Destination: /dav/c/f.txt | Overwrite: F",
            "PUT /dav/big | Content-Length: 2000",
            "PUT /dav/x/ | Content-Length: 0",
            "DELETE /dav/c/e.txt",
            "DELETE /dav/none",
            "DELETE /dav/c | Depth: 0",
            "DELETE /dav/c/",
            "PROPFIND /dav/ | Depth: 1",
            "PUT /dav/r | Content-Range: bytes 0-1/2 | Content-Length: 2\r\n\r\nab",
        ],
    ),
)
