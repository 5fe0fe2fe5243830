"""Owns: configurations of services that teams run for themselves, all of them in one start.

As in `named_applications`.
"""

from .named_applications import group

WEBSOCKET = " | Upgrade: websocket | Connection: Upgrade"

group(
    "services",
    r"""
    map $http_x_forwarded_proto $proto { default $http_x_forwarded_proto; "" $scheme; }
    map $http_x_forwarded_host $the_host { default $http_x_forwarded_host; "" $host; }
    map $http_user_agent $is_bot { default 0; ~*(bot|crawl|spider) 1; }
    map $request_method $not_safe { default 1; GET 0; HEAD 0; }
    proxy_cache_path @LOGS@/packages keys_zone=packages:1m inactive=1d;
    proxy_headers_hash_max_size 1024; proxy_headers_hash_bucket_size 128;
    client_header_buffer_size 2k; large_client_header_buffers 4 16k; underscores_in_headers on;
    """,
    (
        "guacamole",
        """
        location /guacamole/ {
            proxy_pass http://app/guacamole/; proxy_buffering off; @UPGRADE@
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_cookie_path /guacamole/ /; access_log off;
        }
        location = / { return 302 /guacamole/; }
        """,
        ["GET /", "GET /guacamole/websocket-tunnel?x" + WEBSOCKET, "GET /guacamole"],
    ),
    (
        "onlyoffice",
        r"""
        location / {
            proxy_pass http://app; @UPGRADE@
            proxy_set_header X-Forwarded-Host $the_host; proxy_set_header X-Forwarded-Proto $proto;
        }
        location ~* ^(\/cache\/files.*)(\/.*) {
            alias @DIR@/www$1; add_header Content-Disposition 'inline; filename="$arg_filename"';
            secure_link $arg_md5,$arg_expires; secure_link_md5 "$secure_link_expires$uri word";
            if ($secure_link = "") { return 403; }
            if ($secure_link = "0") { return 410; }
        }
        location ~ ^/(\d+\.\d+\.\d+-[\w]+)?/?(web-apps|sdkjs)(\/.*\.(?:css|js))$ {
            expires 365d; alias @DIR@/www/$2$3;
        }
        """,
        [
            "GET /x | X-Forwarded-Proto: https | X-Forwarded-Host: docs.test",
            "GET /cache/files/a/b?md5=x&expires=1&filename=a",
            "GET /7.1.0-abc/web-apps/x.js",
            "GET /doc/1/c/" + WEBSOCKET.replace("Upgrade: websocket", "Upgrade: WebSocket"),
        ],
    ),
    (
        "collabora",
        r"""
        location ^~ /browser { proxy_pass http://app; proxy_set_header Host $http_host; }
        location ~ ^/cool/(.*)/ws$ { proxy_pass http://app; @UPGRADE@ proxy_read_timeout 36000s; }
        location ~ ^/(c|l)ool { proxy_pass http://app; proxy_set_header Host $http_host; }
        """,
        ["GET /cool/x%3Fa%26b/ws" + WEBSOCKET, "GET /lool/x", "GET /browser/a//b", "GET /hosting"],
    ),
    (
        "harbor",
        """
        chunked_transfer_encoding on; client_max_body_size 0;
        add_header X-Frame-Options DENY;
        add_header Content-Security-Policy "frame-ancestors 'none'";
        location / { proxy_pass http://app/; @FORWARDED@
            proxy_cookie_path / "/; HttpOnly; Secure"; }
        location /c/ { proxy_pass http://app/c/; @FORWARDED@ proxy_request_buffering off; }
        location /v1/ { return 404; }
        location /v2/ {
            proxy_pass http://app/v2/; @FORWARDED@ proxy_buffering off;
            proxy_request_buffering off; proxy_send_timeout 900; proxy_read_timeout 900;
        }
        location /service/notifications { return 404; }
        """,
        [
            "GET /v2/a%2fb/manifests/latest",
            "PATCH /v2/x/blobs/uploads/1 | Content-Length: 3\r\n\r\nabc",
            "GET /v1/x",
            "GET /raw/485454502f312e3120323030204f4b0d0a5365742d436f6f6b69653a207369643d31303b20"
            "506174683d2f0d0a0d0a",
        ],
    ),
    (
        "packages",
        r"""
        location ~* ^/(?<dist>debian|ubuntu)/(?<file>.+\.(?:deb|udeb))$ {
            proxy_cache packages; proxy_cache_valid 200 10d; proxy_cache_key $dist/$file;
            proxy_cache_lock on; proxy_cache_use_stale error timeout updating;
            proxy_pass http://app/$dist/$file; add_header X-Cache $upstream_cache_status;
        }
        location ~ ^/(debian|ubuntu)/ { proxy_pass http://app; proxy_cache off; }
        location /npm/ {
            proxy_pass http://app/; sub_filter 'Host: app' 'Host: $host'; sub_filter_types *;
            proxy_set_header Accept-Encoding "";
        }
        location / { root @DIR@/www; autoindex on; autoindex_exact_size off;
        autoindex_localtime on; }
        """,
        [
            "GET /debian/pool/a%2Bb_1.deb",
            "GET /debian/pool/a+b_1.deb",
            "HEAD /Ubuntu/x.udeb",
            "GET /ubuntu/dists/Release",
            "GET /npm/@scope%2fname",
            "GET /dir",
        ],
    ),
    (
        "redmine",
        """
        root @DIR@/www; try_files $uri/index.html $uri.html $uri @puma;
        client_max_body_size 1k; keepalive_timeout 5; error_page 500 502 504 /500.html;
        error_page 503 @busy; error_page 413 /413.html;
        location @puma {
            if ($not_safe) { set $w write; }
            proxy_set_header X-Write $w; proxy_redirect off; proxy_pass http://app; @FORWARDED@
        }
        location @busy { rewrite ^(.*)$ /errors/50x.html break; }
        location ^~ /assets/ { gzip_static on; expires max; add_header Cache-Control public; }
        """,
        [
            "GET /issues.json?key=1",
            "POST /issues | Content-Length: 3\r\n\r\na=b",
            "POST /issues | Content-Length: 1100\r\n\r\n" + "x" * 1100,
            "GET /dir",
            "GET /fallback",
            "GET /assets/x.css",
        ],
    ),
    (
        "tracker",
        """
        location / { if ($is_bot) { return 429; } proxy_pass http://app; @FORWARDED@ }
        location = /robots.txt { default_type text/plain;
        return 200 "User-agent: *\\nDisallow: /\\n"; }
        location = /pixel.gif { empty_gif; expires -1; add_header P3P 'CP="x"'; }
        location /beacon { limit_except POST { deny all; } proxy_pass http://app/b; }
        location /_status { stub_status; allow 127.0.0.1; deny all; access_log off; }
        """,
        [
            "GET /x | User-Agent: Googlebot/2.1",
            "GET /robots.txt",
            "GET /pixel.gif?e=1",
            "POST /beacon?x | Content-Length: 2\r\n\r\n{}",
            "GET /beacon",
            "HEAD /robots.txt",
        ],
    ),
    (
        "graphs",
        r"""
        location ~ ^/(?<where>eu|us)/render/?(?<rest>.*)$ {
            proxy_pass http://app/$where/$rest$is_args$args;
            proxy_set_header X-Scope-OrgID $where; proxy_hide_header X-Origin;
        }
        location ~ /api/v1/(push|write)$ { auth_basic push; auth_basic_user_file @DIR@/users;
        proxy_pass http://app$request_uri; }
        location = /ready { access_log off; return 200 "ready\n"; }
        location / { return 404 "no route for $request_method $request_uri\n"; }
        """,
        [
            "GET /eu/render?target=a%20b&from=-1h",
            "GET /us/render/x%2fy",
            "POST /api/v1/push | Content-Length: 1\r\n\r\na",
            "POST /l/api/v1/push | Authorization: Basic cGxhaW46cHc= | Content-Length: 1\r\n\r\na",
            "GET /ready",
            "DELETE /x?y",
        ],
    ),
    (
        "spa",
        """
        root @DIR@/www; index index.html; add_header X-Server spa; error_page 404 /index.html;
        location / { try_files $uri $uri/ /index.html; add_header Cache-Control no-cache; }
        location = /index.html { add_header Cache-Control "no-store" always; etag off;
        if_modified_since off; }
        location ~* \\.(?:js|css|svg)$ { expires 1y; add_header Cache-Control immutable;
        access_log off; }
        location ~* \\.map$ { deny all; }
        location /env.js { default_type application/javascript;
        return 200 'window.env={"host":"$host"};'; }
        location /api { rewrite ^/api/?(.*)$ /$1 break; proxy_pass http://app; }
        location /old { return 410; }
        """,
        [
            "GET /users/1",
            "GET /index.html | If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
            "GET /app.js",
            "GET /none.js",
            "GET /app.js.map",
            "GET /env.js",
            "GET /api/x%20y/?z",
            "GET /api",
            "GET /dir",
            "PUT /users/1 | Content-Length: 0",
            "GET /old",
        ],
    ),
    (
        "proxy.example",
        """
        set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; real_ip_recursive on;
        location / { proxy_pass http://app; @FORWARDED@ proxy_bind 127.0.0.1; }
        location /ip {
            return 200 "$remote_addr $realip_remote_addr $proxy_add_x_forwarded_for\\n"; }
        location /office { allow 192.0.2.0/24; allow 2001:db8::/32; deny all; return 200 in; }
        location /legacy { proxy_http_version 1.0; proxy_pass http://app;
        proxy_set_header Host old; }
        """,
        [
            "GET /ip | X-Forwarded-For: 198.51.100.7, 127.0.0.1",
            "GET /office | X-Forwarded-For: 192.0.2.9",
            "GET /office | X-Forwarded-For: 2001:db8::1",
            "GET /office",
            "GET / | X_Custom: 1 | X-Forwarded-For: unknown, 192.0.2.1",
            "GET /legacy | Connection: keep-alive",
        ],
    ),
)
