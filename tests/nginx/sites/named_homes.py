"""Owns: configurations of what people run at home and what watches it, in one start.

As in `named_applications`.
"""

from .named_applications import group
from .named_federation import BODY, edges
from .named_gateways import OK, raw
from .named_services import WEBSOCKET

group(
    "homes",
    r"""
    map $http_referer $from_plex { default 0; "~*/plex/" 1; "" 0; }
    map $http_x_ingress_path $base { default $http_x_ingress_path; "" "/"; }
    map $request_uri $emby_size { ~MaxWidth=(?<w>\d+) $w; ~Width=(?<w>\d+) $w; default none; }
    map $sent_http_content_type $csp { default "default-src 'none'"; ~text/html "img-src *"; }
    map $remote_user $tenant { default ""; plain one; sha two; }
    map $http_x_forwarded_ssl $scheme_now { on https; default $scheme; }
    geo $http_x_real $where { default far; proxy 127.0.0.0/8; 192.0.2.0/24 near; 10.0.0.0/8 home; }
    proxy_cache_path @LOGS@/emby levels=1:2 keys_zone=emby:1m inactive=1d max_size=1g;
    proxy_cache_path @LOGS@/shots keys_zone=shots:1m inactive=1m;
    limit_conn_zone $server_name zone=perserver:1m;
    upstream queriers { server @ORIGIN@; server 127.0.0.1:1 backup; }
    """,
    (
        "plex",
        r"""
        client_max_body_size 100M; gzip on; gzip_vary on; gzip_min_length 10; gzip_proxied any;
        gzip_comp_level 4; gzip_types text/plain text/css application/xml; gzip_disable "MSIE";
        location / {
            if ($http_x_plex_device_name = '') { rewrite ^/$ /web/index.html; }
            if ($from_plex) { rewrite ^/(.*) /plex/$1?$args break; }
            proxy_set_header X-Plex-Client-Identifier $http_x_plex_client_identifier;
            proxy_set_header X-Plex-Token $http_x_plex_token; proxy_redirect off;
            proxy_buffering off; proxy_pass http://app; @UPGRADE@
            proxy_set_header Accept-Encoding "";
        }
        location /plex/ { rewrite /plex/(.*) /$1 break; proxy_pass http://app; }
        """,
        [
            *edges("/library/sections"),
            "GET /",
            "GET / | X-Plex-Device-Name: tv",
            "GET /web/index.html | Accept-Encoding: gzip",
            "GET /photo?x=1 | Referer: https://a.test/plex/web",
            "GET /photo/%C3%A4%20b?x=1 | Referer: https://a.test/PLEX/web",
            "GET /plex/",
            "GET /plex/a%2Fb?c",
            "GET /plex",
            "GET /:/websockets/notifications" + WEBSOCKET,
        ],
    ),
    (
        "emby",
        r"""
        keepalive_timeout 180; client_max_body_size 1k; add_header X-Size $emby_size;
        location ^~ /swagger { return 404; }
        location = / { return 302 web/index.html; }
        location ~* ^/Videos/(.*)/(?!live) {
            slice 8; proxy_cache emby; proxy_cache_valid 200 206 301 302 7d;
            proxy_ignore_headers Expires Cache-Control Set-Cookie X-Accel-Expires;
            proxy_cache_lock on; proxy_cache_lock_age 60s; proxy_set_header Range $slice_range;
            proxy_cache_key "emby:$uri?MediaSourceId=$arg_MediaSourceId:$slice_range";
            proxy_force_ranges on; proxy_pass http://app; add_header X-Cache $upstream_cache_status;
        }
        location ~ /Items/(.*)/Images {
            proxy_cache emby; proxy_cache_key $proxy_host$uri?$emby_size;
            proxy_cache_revalidate on; proxy_cache_valid any 5m; proxy_pass http://app;
            add_header X-Cache $upstream_cache_status always;
            proxy_cache_bypass $http_cache_control;
        }
        location /embywebsocket { proxy_pass http://app; @UPGRADE@ }
        location / { proxy_pass http://app; proxy_hide_header X-Origin; @FORWARDED@ }
        """,
        [
            "GET /",
            *edges("/Items/7/Images/Primary", True),
            "GET /Items/7/Images/Primary?Width=300&MaxWidth=20",
            "GET /Items/7/Images/Primary?MaxWidth=20",
            "GET /Items/7/Images/Primary?MaxWidth=20 | Cache-Control: no-cache",
            "GET /videos/7/a.mkv?MediaSourceId=1",
            "GET /videos/7/live",
            "GET /Videos/7/stream.mkv | Range: bytes=3-",
            "GET /Swagger/x",
            "GET /swagger/x",
            "GET /embywebsocket?api_key=x" + WEBSOCKET,
            "POST /Sessions | Content-Length: 1025\r\n\r\n" + "x" * 1025,
        ],
    ),
    (
        "immich",
        r"""
        client_max_body_size 50000M; proxy_request_buffering off; client_body_buffer_size 1024k;
        @FORWARDED@ @UPGRADE@ proxy_redirect off; proxy_read_timeout 600s; send_timeout 600s;
        location = /.well-known/immich { proxy_pass http://app; }
        location /.well-known/acme-challenge/ { root @DIR@/www; default_type text/plain;
        try_files $uri =404; }
        location / { proxy_pass http://app; }
        """,
        [
            *edges("/api/assets"),
            "GET /.well-known/immich",
            "GET /.well-known/immich/",
            "GET /.well-known/acme-challenge/none",
            "POST /api/assets | Expect: 100-continue | Content-Length: 0",
            "GET /api/socket.io/?EIO=4" + WEBSOCKET,
            "GET /api/assets/1/original | Range: bytes=5-",
        ],
    ),
    (
        "paperless",
        r"""
        client_max_body_size 10M; add_header Referrer-Policy "strict-origin-when-cross-origin";
        add_header Content-Security-Policy $csp always;
        location /paperless/ { proxy_pass http://app/paperless/; @UPGRADE@ proxy_redirect off;
        proxy_set_header Host $host:$server_port; proxy_set_header X-Forwarded-Host $server_name;
        add_header Referrer-Policy "same-origin"; }
        location /static/ { alias @DIR@/www/; access_log off; }
        location = /paperless { return 301 $scheme_now://$host$request_uri/; }
        location / { return 404; }
        """,
        [
            *edges("/paperless/api/documents/"),
            "GET /paperless?a=b",
            "GET /paperless | X-Forwarded-SSL: on",
            "GET /paperless/ws/status/" + WEBSOCKET,
            "GET /static/index.html",
            "GET /static/hello.txt | Range: bytes=-3",
            "GET /static",
            "GET /static/",
            "GET /static/dir",
        ],
    ),
    (
        "octoprint",
        r"""
        location /octoprint/ {
            proxy_pass http://app/; @UPGRADE@ proxy_set_header X-Script-Name /octoprint;
            proxy_set_header X-Scheme $scheme; client_max_body_size 0;
        }
        location /webcam/ { proxy_pass http://127.0.0.1:1/; error_page 502 @off; }
        location @off { internal; default_type text/plain; return 503 "camera $uri is off\n"; }
        location = /octoprint { absolute_redirect off; return 301 /octoprint/$is_args$args; }
        error_page 401 403 404 /none;
        """,
        [
            *edges("/octoprint/api/version"),
            "GET /octoprint?x",
            "GET /octoprint/sockjs/1/x/websocket" + WEBSOCKET,
            "GET /webcam/?action=stream",
            "HEAD /webcam/x",
            "GET /other",
        ],
    ),
    (
        "frigate",
        r"""
        root @DIR@/www; keepalive_timeout 65; proxy_intercept_errors off;
        sub_filter 'href="/BASE/' 'href="$base/'; sub_filter "/BASE/" "$base/";
        sub_filter_types text/css application/javascript; sub_filter_once off;
        auth_request /auth; auth_request_set $auth_user $upstream_http_remote_user;
        location = /auth {
            internal; auth_request off; proxy_pass_request_body off;
            proxy_set_header Content-Length ""; proxy_set_header X-Server-Port $server_port;
            proxy_pass http://app/raw/$cookie_verdict;
        }
        location /clips/ {
            types { text/plain txt; image/jpeg jpg; } expires 7d; alias @DIR@/www/; autoindex on;
            autoindex_format xml; add_header Cache-Control "public";
        }
        location ~* /api/.*\.(jpg|jpeg|png|webp|gif)$ {
            rewrite ^/api/(.*)$ /$1 break; proxy_pass http://app; proxy_cache shots;
            proxy_cache_valid 200 5s; proxy_cache_key "$request_method|$uri"; proxy_cache_lock on;
            proxy_cache_bypass $http_x_cache_bypass; proxy_set_header Remote-User $auth_user;
            add_header X-Cache-Status $upstream_cache_status;
            add_header Cache-Control "no-store"; expires off;
        }
        location /api/ {
            limit_except GET { deny all; } add_header Cache-Control "no-store"; expires off;
            proxy_pass http://app/; @FORWARDED@ proxy_set_header Remote-User $auth_user;
            location /api/login { auth_request off; rewrite ^/api(/.*)$ $1 break;
            proxy_pass http://app; }
            location /api/stats { access_log off; rewrite ^/api(/.*)$ $1 break;
            proxy_pass http://app; add_header Cache-Control "no-store"; }
        }
        location /ws { proxy_pass http://app/; @UPGRADE@ }
        location / {
            add_header Cache-Control "no-store"; expires off;
            location ~* ^/dir/(.*)$ { expires 1y; add_header Cache-Control "public"; }
            try_files $uri $uri.html $uri/ /index.html;
        }
        """,
        [
            f"{case} | Cookie: verdict={verdict}"
            for case, verdicts in {
                "GET /": (204,),
                "GET /app.js | X-Ingress-Path: /in": (200,),
                "GET /clips/list/": (200, 401),
                "GET /clips/photo.jpg": (200,),
                "GET /api/cam/latest.jpg?h=1": (200, 200, 403),
                "HEAD /api/cam/latest.JPG": (200,),
                "GET /api/events/a%20b": (200, 500),
                "PUT /api/events | Content-Length: 0": (401,),
                "OPTIONS /api/events": (200,),
                "GET /api/login": (401,),
                "GET /api/stats/history": (200,),
                "GET /ws" + WEBSOCKET: (200,),
                "GET /dir/file.txt": (200,),
                "GET /none": (200,),
                "GET //dir//": (200,),
                "GET /auth": (200,),
            }.items()
            for verdict in (
                raw(f"HTTP/1.1 {code} X\nRemote-User: ann\nConnection: close\n\n")[5:]
                for code in verdicts
            )
        ],
    ),
    (
        "radicale",
        r"""
        location /radicale/ {
            proxy_pass http://app/; proxy_set_header X-Script-Name /radicale;
            proxy_set_header X-Remote-User $remote_user; proxy_pass_header Authorization;
            auth_basic "Radicale - Password Required"; auth_basic_user_file @DIR@/users;
        }
        location /.well-known/carddav { return 301 $scheme://$host/radicale/; }
        location /.well-known/caldav { rewrite ^ /radicale/ permanent; }
        """,
        [
            "PROPFIND /radicale/ | Depth: 1",
            "PROPFIND /radicale/ann/ | Depth: 0 | Authorization: Basic cGxhaW46cHc=",
            "REPORT /radicale/ann/cal%20x/ | Authorization: Basic cGxhaW46cHc=" + BODY,
            "GET /radicale/ | Authorization: Basic cGxhaW46eA==",
            "GET /radicale/ | Authorization: Basic !",
            "GET /radicale/ | Authorization: Bearer x",
            "GET /radicale",
            "GET /.well-known/carddav?x",
            "PROPFIND /.well-known/caldav?x",
            "OPTIONS /radicale/ | Authorization: basic cGxhaW46cHc=",
            *edges("/x"),
        ],
    ),
    (
        "qbittorrent",
        r"""
        location /qbt/ {
            proxy_pass http://app/; proxy_set_header Host $proxy_host;
            proxy_set_header Referer ''; proxy_set_header Origin ''; client_max_body_size 100M;
            proxy_hide_header Referer; proxy_hide_header Origin; proxy_hide_header X-Frame-Options;
            proxy_cookie_path / "/; Secure"; proxy_cookie_path ~^/api(.*)$ /qbt/api$1;
            add_header X-Frame-Options SAMEORIGIN; limit_conn perserver 3;
        }
        """,
        [
            *edges("/qbt/api/v2/torrents/info"),
            "GET /qbt/x | Referer: http://a.test | Origin: http://a.test",
            "GET /qbt"
            + raw(OK + "Set-Cookie: SID=1; path=/\nX-Frame-Options: DENY\nOrigin: x\n\n"),
            "GET /qbt" + raw(OK + "Set-Cookie: SID=1; HttpOnly; Path=/api/v2\n\n"),
            "GET /qbt" + raw(OK + 'Set-Cookie: SID\nSet-Cookie: a=b;path="/"\n\n'),
            "GET /QBT/",
        ],
    ),
    (
        "loki",
        r"""
        client_max_body_size 4M; auth_basic "Loki"; auth_basic_user_file @DIR@/users;
        proxy_set_header X-Scope-OrgID $tenant;
        location = / { auth_basic off; return 200 'OK'; }
        location = /api/prom/push { proxy_pass http://app$request_uri; }
        location = /api/prom/tail { proxy_pass http://queriers$request_uri; @UPGRADE@ }
        location ~ /api/prom/.* { proxy_pass http://queriers$request_uri; }
        location = /loki/api/v1/push { proxy_pass http://app$request_uri; }
        location ^~ /loki/api/v1/ { proxy_pass http://queriers; proxy_next_upstream error http_404
        non_idempotent; proxy_next_upstream_tries 0; proxy_set_header X-Where $where; }
        location /config { deny all; }
        """,
        [
            f"{case} | Authorization: Basic cGxhaW46cHc="
            for case in (
                "GET /api/prom/tail?query=%7Ba%3D%22b%22%7D",
                "GET /api/prom/labels",
                "GET //api/prom/x?y",
                'GET /loki/api/v1/query_range?query={a="b"}&start=1',
                "GET /loki/api/v1/push",
                "GET /loki/api/v1/none/raw/" + b"HTTP/1.1 404 N\r\n\r\n".hex(),
                "GET /loki/api/v1/x | X-Real: 192.0.2.7",
                "GET /config",
                "GET /other",
            )
        ]
        + [
            "GET /",
            "HEAD /?x",
            "POST /loki/api/v1/push | Content-Length: 1\r\n\r\na",
            "POST /api/prom/push | Authorization: Basic c2hhOnB3 | Content-Length: 1\r\n\r\na",
            "GET /loki/api/v1/x | Authorization: Basic c2hhOnB3 | X-Real: 10.1.1.1",
        ],
    ),
    (
        "proxmox",
        r"""
        proxy_redirect off; error_page 497 =301 https://$host$request_uri;
        rewrite ^/pve$ /pve/ permanent;
        location /pve/ {
            @UPGRADE@ proxy_pass http://app/; proxy_buffering off; client_max_body_size 0;
            proxy_connect_timeout 3600s; proxy_read_timeout 3600s; proxy_send_timeout 3600s;
            proxy_set_header X-Pve $scheme; proxy_cookie_domain ~\.?app$ $host;
        }
        location /pve2/ { proxy_pass http://app/pve2/; proxy_redirect /pve2/ /cluster/; }
        """,
        [
            "GET /pve?x",
            *edges("/pve/api2/json/nodes"),
            "GET /pve/vncwebsocket?port=1&vncticket=a%2Bb" + WEBSOCKET,
            "GET /pve" + raw(OK + "Set-Cookie: a=b; domain=.app; secure\n\n"),
            "GET /pve" + raw("HTTP/1.1 301 M\nLocation: /pve2/x\n\n"),
            "GET /pve2" + raw("HTTP/1.1 301 M\nLocation: /pve2/x\nRefresh: 5; url=/pve2/y\n\n"),
        ],
    ),
    # What is kept has a length here.
    lengths="any",
)
