"""Owns: configurations in the manner that well-known applications document, in front of a server.

Each is what the documentation of an application has an administrator write, shortened, in words of
our own; the origin stands for the application. `php_applications` has those that PHP runs.
"""

from ..site import Case, http

FORWARDED = """
    proxy_set_header Host $host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
"""
UPGRADE = """
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
"""
MAP = "map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n"
WEBSOCKET = " | Upgrade: websocket | Connection: Upgrade"


def _app(name: str, conf: str, cases: list[Case], around: str = "") -> None:
    """Adds an application behind `app`, a group of one server."""
    head = MAP + "upstream app { server @ORIGIN@; keepalive 8; }\n" + around
    text = conf.replace("@FORWARDED@", FORWARDED).replace("@UPGRADE@", UPGRADE)
    listen = "listen 127.0.0.1:@P0@; server_name localhost;"
    http(f"application {name}", f"{head}server {{ {listen}\n{text}\n}}", cases, open=True)


_app(
    "gitea",
    """
    location / {
        client_max_body_size 512M;
        proxy_pass http://app;
        proxy_set_header Connection $http_connection;
        proxy_set_header Upgrade $http_upgrade;
        @FORWARDED@
    }
    """,
    ["GET /user/login?a=%20b", "POST /api/v1/x | Content-Length: 0", "GET /x" + WEBSOCKET],
)
_app(
    "gitea below a path",
    """
    location ~ ^/(git|v2)($|/) {
        client_max_body_size 512M;
        rewrite ^ $request_uri;
        rewrite ^(/git)?(/.*) $2 break;
        proxy_pass http://app$uri;
        @FORWARDED@
    }
    """,
    ["GET /git/a%2Fb?x=1", "GET /v2/", "GET /git", "GET /gitea"],
)
_app(
    "grafana",
    """
    location /grafana/ {
        proxy_set_header Host $host;
        rewrite ^/grafana/(.*) /$1 break;
        proxy_pass http://app;
    }
    location /grafana/api/live/ {
        rewrite ^/grafana/(.*) /$1 break;
        @UPGRADE@
        proxy_set_header Host $host;
        proxy_pass http://app;
    }
    """,
    ["GET /grafana/d/x?a=1", "GET /grafana", "GET /grafana/api/live/ws" + WEBSOCKET, "GET /"],
)
_app(
    "jenkins",
    r"""
    root @DIR@/www;
    ignore_invalid_headers off;
    location ~ "^/static/[0-9a-fA-F]{8}\/(.*)$" {
        rewrite "^/static/[0-9a-fA-F]{8}\/(.*)" /$1 last;
    }
    location /dir {
        root @DIR@/www;
        if (!-f $request_filename) {
            rewrite (.*) /$1 last;
            break;
        }
        sendfile on;
    }
    location / {
        sendfile off;
        proxy_pass http://app;
        proxy_redirect default;
        proxy_http_version 1.1;
        @FORWARDED@
        proxy_max_temp_file_size 0;
        client_max_body_size 10m;
        client_body_buffer_size 128k;
        proxy_buffering off;
        proxy_request_buffering off;
        proxy_set_header Connection "";
    }
    """,
    ["GET /static/0123abcd/css/x.css", "GET /job/x/", "GET /dir/file.txt", "GET /static/xyz/a"],
)
_app(
    "mattermost",
    """
    location ~ /api/v[0-9]+/(users/)?websocket$ {
        @UPGRADE@
        @FORWARDED@
        client_max_body_size 50M;
        proxy_buffers 256 16k;
        proxy_buffer_size 16k;
        client_body_timeout 60s;
        send_timeout 300s;
        lingering_timeout 5s;
        proxy_connect_timeout 90s;
        proxy_read_timeout 90s;
        proxy_pass http://app;
    }
    location / {
        @FORWARDED@
        proxy_set_header Connection "";
        proxy_buffers 256 16k;
        proxy_buffer_size 16k;
        proxy_read_timeout 600s;
        proxy_cache mattermost;
        proxy_cache_revalidate on;
        proxy_cache_min_uses 2;
        proxy_cache_use_stale timeout;
        proxy_cache_lock on;
        proxy_http_version 1.1;
        proxy_pass http://app;
        add_header X-Cache $upstream_cache_status;
    }
    """,
    ["GET /api/v4/websocket" + WEBSOCKET, "GET /a", "GET /a", "GET /a", "HEAD /a"],
    "proxy_cache_path @LOGS@/cache levels=1:2 keys_zone=mattermost:10m max_size=3g;\n",
)
_app(
    "gitlab",
    r"""
    client_max_body_size 0;
    location ~ (/api/v\d/jobs/\d+/artifacts$|\.git/gitlab-lfs/objects|\.git/info/lfs/objects/b) {
        client_max_body_size 0;
        proxy_request_buffering off;
        proxy_pass http://app;
        @FORWARDED@
        gzip off;
    }
    location ^~ /assets/ {
        root @DIR@/www;
        gzip_static on;
        expires max;
        add_header Cache-Control public;
    }
    error_page 502 /errors/50x.html;
    location = /errors/50x.html { root @DIR@/www; internal; }
    location / {
        gzip off;
        proxy_read_timeout 3600;
        proxy_redirect off;
        proxy_http_version 1.1;
        @FORWARDED@
        proxy_pass http://app;
    }
    """,
    [
        "GET /group/project.git/info/refs?service=git-upload-pack",
        "POST /api/v4/jobs/12/artifacts | Content-Length: 3\r\n\r\nabc",
        "GET /assets/none.css",
        "GET /errors/50x.html",
    ],
)
_app(
    "docker registry",
    r"""
    client_max_body_size 0;
    chunked_transfer_encoding on;
    location /v2/ {
        if ($http_user_agent ~ "^(docker\/1\.(3|4|5(?!\.[0-9]-dev))|Go ).*$" ) { return 404; }
        add_header 'Docker-Distribution-Api-Version' $docker_version always;
        proxy_pass http://app;
        @FORWARDED@
        proxy_read_timeout 900;
    }
    """,
    [
        "GET /v2/ | User-Agent: docker/1.4.1",
        "GET /v2/ | User-Agent: docker/24.0",
        "GET /v2/_catalog | User-Agent: Go 1.1",
        "GET /v1/",
    ],
    "map $upstream_http_docker_distribution_api_version $docker_version { '' 'registry/2.0'; }\n",
)
_app(
    "artifactory",
    """
    if ($http_x_forwarded_proto = '') { set $http_x_forwarded_proto $scheme; }
    rewrite ^/$ /ui/ redirect;
    rewrite ^/ui$ /ui/ redirect;
    chunked_transfer_encoding on;
    client_max_body_size 0;
    location / {
        proxy_read_timeout 2400s;
        proxy_pass_header Server;
        proxy_cookie_path ~*^/.* /;
        proxy_pass "http://app";
        proxy_next_upstream error timeout non_idempotent;
        proxy_next_upstream_tries 1;
        proxy_set_header X-JFrog-Override-Base-Url $http_x_forwarded_proto://$host:$server_port;
        proxy_set_header X-Forwarded-Port $server_port;
        proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto;
        proxy_set_header Host $http_host;
        location ~ ^/artifactory/ { proxy_pass http://app; }
    }
    """,
    [
        "GET /",
        "GET /ui",
        "GET /ui/login | X-Forwarded-Proto: https",
        "GET /artifactory/api/system/ping",
    ],
)
_app(
    "nexus",
    """
    location / {
        if ($http_user_agent ~ docker ) { rewrite ^/(.*)$ /repository/docker/$1 break; }
        proxy_send_timeout 120;
        proxy_read_timeout 300;
        proxy_buffering off;
        tcp_nodelay on;
        client_max_body_size 1G;
        proxy_pass http://app;
        @FORWARDED@
    }
    """,
    ["GET /v2/x | User-Agent: docker/20", "GET /repository/maven/x.jar"],
)
_app(
    "sonarqube",
    """
    location /sonar {
        proxy_pass http://app/sonar;
        proxy_redirect http://app/ /;
        proxy_set_header X-Forwarded-Host $host:$server_port;
        @FORWARDED@
    }
    location = / { return 301 /sonar; }
    """,
    ["GET /sonar/projects", "GET /", "GET /sonarx"],
)
_app(
    "keycloak",
    """
    proxy_busy_buffers_size 512k;
    proxy_buffers 4 512k;
    proxy_buffer_size 256k;
    location /realms/ { proxy_pass http://app/realms/; @FORWARDED@ }
    location /resources/ { proxy_pass http://app/resources/; @FORWARDED@ expires 1h; }
    location / { deny all; }
    """,
    ["GET /realms/master/account?x=%41", "GET /resources/a.css", "GET /admin/"],
)
_app(
    "authelia",
    """
    location /protected {
        auth_request /internal/authelia/authz;
        auth_request_set $user $upstream_http_remote_user;
        auth_request_set $redirection_url $upstream_http_location;
        error_page 401 =302 $redirection_url;
        proxy_set_header Remote-User $user;
        proxy_pass http://app;
    }
    location /internal/authelia/authz {
        internal;
        proxy_pass http://app/status401;
        proxy_set_header X-Original-Method $request_method;
        proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
        proxy_set_header Content-Length "";
        proxy_set_header Connection "";
        proxy_pass_request_body off;
        proxy_http_version 1.1;
    }
    """,
    ["GET /protected/x", "GET /internal/authelia/authz", "POST /protected | Content-Length: 0"],
)
_app(
    "odoo",
    """
    proxy_read_timeout 720s;
    proxy_connect_timeout 720s;
    proxy_send_timeout 720s;
    gzip_types text/css text/scss text/plain text/xml application/xml application/json;
    gzip on;
    location /websocket { proxy_pass http://app; @UPGRADE@ @FORWARDED@ }
    location / {
        proxy_set_header X-Forwarded-Host $http_host;
        @FORWARDED@
        proxy_redirect off;
        proxy_pass http://app;
    }
    location ~ ^/[^/]+/static/.+$ {
        root @DIR@/www;
        try_files /app$uri /other$uri @odoo;
        expires 24h;
    }
    location @odoo { proxy_pass http://app; }
    """,
    ["GET /web | Accept-Encoding: gzip", "GET /web/static/x.js", "GET /websocket" + WEBSOCKET],
)
_app(
    "mastodon",
    """
    root @DIR@/www;
    keepalive_timeout 70;
    sendfile on;
    client_max_body_size 99m;
    gzip on;
    gzip_disable "msie6";
    gzip_vary on;
    gzip_proxied any;
    gzip_comp_level 6;
    gzip_types text/plain text/css application/json;
    location / { try_files $uri @proxy; }
    location = /hello.txt {
        add_header Cache-Control "public, max-age=604800, must-revalidate";
        add_header Strict-Transport-Security "max-age=63072000; includeSubDomains";
        try_files $uri =404;
    }
    location ~ ^/dir/ {
        add_header Cache-Control "public, max-age=2419200, must-revalidate";
        try_files $uri =404;
    }
    location ^~ /api/v1/streaming {
        @FORWARDED@
        proxy_set_header Proxy "";
        proxy_buffering off;
        proxy_redirect off;
        @UPGRADE@
        tcp_nodelay on;
        proxy_pass http://app;
    }
    location @proxy {
        @FORWARDED@
        proxy_set_header Proxy "";
        proxy_pass_header Server;
        proxy_buffering on;
        proxy_redirect off;
        @UPGRADE@
        proxy_cache mastodon;
        proxy_cache_valid 200 7d;
        proxy_cache_valid 410 24h;
        proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504;
        add_header X-Cached $upstream_cache_status;
        tcp_nodelay on;
        proxy_pass http://app;
    }
    error_page 404 500 501 502 503 504 /errors/404.html;
    """,
    [
        "GET /about | Proxy: http://evil",
        "GET /about",
        "GET /hello.txt",
        "GET /dir/none",
        "GET /api/v1/streaming" + WEBSOCKET,
    ],
    "proxy_cache_path @LOGS@/cache keys_zone=mastodon:10m inactive=7d max_size=1g;\n",
)
_app(
    "peertube",
    """
    location @api {
        @FORWARDED@
        client_max_body_size 100k;
        proxy_connect_timeout 10m;
        proxy_pass http://app;
    }
    location / { root @DIR@/www; try_files /none @api; }
    location ~ ^/api/v1/videos/(upload-resumable|([^/]+/source/replace-resumable))$ {
        client_max_body_size 0;
        proxy_request_buffering off;
        try_files /dev/null @api;
    }
    location @api_websocket { @UPGRADE@ @FORWARDED@ proxy_pass http://app; }
    location /socket.io { try_files /dev/null @api_websocket; }
    location ~ ^(/dir/(file|other)\\.(txt|htm))$ {
        add_header Cache-Control "public, max-age=31536000, immutable";
        limit_rate 5M;
        root @DIR@/www;
        try_files $uri @api;
    }
    """,
    ["GET /videos/x", "GET /dir/file.txt", "GET /socket.io/?a=1" + WEBSOCKET, "GET /dir/file.md"],
)
_app(
    "synapse",
    """
    location ~ ^(/_matrix|/_synapse/client) {
        proxy_pass http://app;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header Host $host:$server_port;
        client_max_body_size 50M;
        proxy_http_version 1.1;
    }
    location /.well-known/matrix/client {
        return 200 '{"m.homeserver": {"base_url": "https://localhost"}}';
        default_type application/json;
        add_header Access-Control-Allow-Origin *;
    }
    """,
    ["GET /_matrix/client/versions", "GET /.well-known/matrix/client", "GET /_synapse/admin"],
)
_app(
    "rocket.chat",
    """
    location / {
        proxy_pass http://app/;
        @UPGRADE@
        @FORWARDED@
        proxy_set_header X-Nginx-Proxy true;
        proxy_redirect off;
    }
    error_page 502 503 =200 @down;
    location @down { return 200 "down"; }
    """,
    ["GET /home?a=b", "GET //x", "GET /websocket" + WEBSOCKET],
)
_app(
    "vaultwarden",
    """
    client_max_body_size 525M;
    location / { @UPGRADE@ @FORWARDED@ proxy_pass http://app; }
    location /admin {
        allow 192.0.2.0/24;
        deny all;
        proxy_pass http://app;
    }
    location /notifications/hub { @UPGRADE@ proxy_pass http://app; }
    """,
    ["GET /admin", "GET /api/sync", "GET /notifications/hub" + WEBSOCKET],
)
_app(
    "home assistant",
    """
    proxy_buffering off;
    location / {
        proxy_pass http://app;
        proxy_set_header Host $host;
        proxy_redirect http:// https://;
        proxy_http_version 1.1;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $connection_upgrade;
    }
    """,
    ["GET /lovelace", "GET /api/websocket" + WEBSOCKET, "GET / | X-Forwarded-For: 192.0.2.1"],
)
_app(
    "jellyfin",
    """
    client_max_body_size 20M;
    add_header X-Content-Type-Options "nosniff";
    add_header Permissions-Policy "camera=(), microphone=()" always;
    add_header Content-Security-Policy "default-src https: data: blob:; frame-ancestors 'self'";
    location / {
        proxy_pass http://app;
        @FORWARDED@
        proxy_set_header X-Forwarded-Protocol $scheme;
        proxy_set_header X-Forwarded-Host $http_host;
        proxy_buffering off;
    }
    location /socket { proxy_pass http://app; @UPGRADE@ }
    """,
    ["GET /web/index.html", "GET /socket?a=1" + WEBSOCKET],
)
_app(
    "sonarr below a path",
    """
    location ^~ /sonarr {
        proxy_pass http://app;
        @FORWARDED@
        proxy_redirect off;
        @UPGRADE@
    }
    location ^~ /sonarr/api { auth_basic off; proxy_pass http://app; }
    """,
    ["GET /sonarr/", "GET /sonarr/api/v3/x?apikey=1", "GET /radarr"],
)
_app(
    "kibana",
    """
    auth_basic "Restricted Access";
    auth_basic_user_file @DIR@/users;
    location / { proxy_pass http://app; @UPGRADE@ proxy_cache_bypass $http_upgrade; }
    """,
    ["GET /app/home", "GET /app/home | Authorization: Basic cGxhaW46cHc="],
)
_app(
    "prometheus",
    """
    location /prometheus/ {
        proxy_pass http://app/prometheus/;
        sub_filter_once off;
        sub_filter HTTP/1.0 HTTP/x;
    }
    location = /prometheus { return 302 /prometheus/graph$is_args$args; }
    """,
    ["GET /prometheus/graph", "GET /prometheus?a=1", "GET /prometheus"],
)
_app(
    "minio",
    """
    ignore_invalid_headers off;
    client_max_body_size 0;
    proxy_buffering off;
    proxy_request_buffering off;
    location / {
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header Host $http_host;
        proxy_connect_timeout 300;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        chunked_transfer_encoding off;
        proxy_pass http://app;
    }
    """,
    ["PUT /bucket/a%2Fb?uploads | Content-Length: 0", "GET /bucket | X.Amz: 1", "GET /a//b"],
)
_app(
    "rabbitmq",
    """
    location ~* /rabbitmq/api/(.*?)/(.*) {
        proxy_pass http://app/api/$1/%2F/$2?$query_string;
        proxy_buffering off;
        @FORWARDED@
    }
    location ~* /rabbitmq/(.*) {
        rewrite ^/rabbitmq/(.*)$ /$1 break;
        proxy_pass http://app;
        proxy_buffering off;
        @FORWARDED@
    }
    """,
    ["GET /rabbitmq/api/queues/x?y=1", "GET /rabbitmq/js/a.js", "GET /rabbitmq/api"],
)
_app(
    "devpi",
    r"""
    root @DIR@/www;
    gzip on;
    gzip_min_length 2000;
    gzip_proxied any;
    gzip_types application/json;
    proxy_read_timeout 60s;
    client_max_body_size 64M;
    error_page 418 = @proxy_to_app;
    location ~ /\+f/ {
        if ($request_method != GET) { return 418; }
        expires max;
        try_files /none @proxy_to_app;
    }
    location / {
        if ($http_x_devpi) { return 418; }
        try_files /none @proxy_to_app;
    }
    location @proxy_to_app {
        proxy_pass http://app;
        proxy_set_header X-outside-url $scheme://$http_host;
        proxy_set_header X-Real-IP $remote_addr;
    }
    """,
    ["GET /root/+f/a", "POST /root/+f/a | Content-Length: 0", "GET /root/ | X-Devpi: 1"],
)
_app(
    "jupyterhub",
    """
    location / {
        proxy_pass http://app;
        proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        @UPGRADE@
        proxy_set_header X-Scheme $scheme;
        proxy_buffering off;
    }
    location ~ /.well-known { allow all; }
    """,
    ["GET /hub/login", "GET /user/x/api/kernels" + WEBSOCKET, "GET /.well-known/x"],
)
_app(
    "rstudio",
    """
    rewrite ^/rstudio$ $scheme://$http_host/rstudio/ permanent;
    location /rstudio/ {
        rewrite ^/rstudio/(.*)$ /$1 break;
        proxy_pass http://app;
        proxy_redirect http://app/ $scheme://$http_host/rstudio/;
        @UPGRADE@
        proxy_read_timeout 20d;
    }
    """,
    [
        "GET /rstudio",
        "GET /rstudio/a?b",
        "GET /rstudio/raw/485454502f312e31203330322058 | Connection: close",
    ],
)
_app(
    "airflow",
    """
    location /airflow/ {
        proxy_pass http://app;
        proxy_set_header Host $http_host;
        proxy_redirect off;
        @UPGRADE@
    }
    location /flower/ {
        rewrite ^/flower/(.*)$ /$1 break;
        proxy_pass http://app;
        proxy_set_header Host $http_host;
    }
    """,
    ["GET /airflow/home", "GET /flower/dashboard?x", "GET /flower"],
)
_app(
    "django",
    """
    client_max_body_size 4G;
    keepalive_timeout 5;
    root @DIR@/www;
    location /static/ { alias @DIR@/www/dir/; expires 30d; access_log off; }
    location /media { alias @DIR@/www/other; }
    location = /favicon.ico { log_not_found off; }
    location / { try_files $uri @proxy_to_app; }
    location @proxy_to_app {
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header Host $http_host;
        proxy_redirect off;
        proxy_pass http://app;
    }
    error_page 500 502 503 504 /errors/50x.html;
    """,
    ["GET /static/file.txt", "GET /media/x.txt", "GET /favicon.ico", "GET /admin/?next=/"],
)
_app(
    "rails",
    """
    root @DIR@/www;
    try_files $uri/index.html $uri.html $uri @app;
    location ~ ^/(assets|packs|dir)/ {
        gzip_static on;
        expires max;
        add_header Cache-Control public;
        add_header Last-Modified "";
        add_header ETag "";
    }
    location @app {
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header Host $http_host;
        proxy_redirect off;
        proxy_pass http://app;
    }
    error_page 500 502 503 504 /errors/50x.html;
    client_max_body_size 4G;
    keepalive_timeout 10;
    """,
    ["GET /dir/file.txt", "GET /fallback", "GET /posts/1", "GET /assets/none.css", "GET /dir"],
)
_app(
    "ghost",
    """
    location ^~ /blog {
        client_max_body_size 10G;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header Host $http_host;
        proxy_pass http://app;
        proxy_redirect off;
    }
    location ~ ^/(sitemap.*\\.xml|robots.txt) { rewrite ^ /blog$uri; }
    """,
    ["GET /blog/a/", "GET /sitemap-posts.xml", "GET /robots.txt?x=1"],
)
_app(
    "plausible",
    """
    location = /js/script.js {
        proxy_pass http://app/js/script.js;
        proxy_buffering on;
        proxy_cache jscache;
        proxy_cache_valid 200 6h;
        proxy_cache_use_stale updating error timeout invalid_header http_500;
        proxy_set_header Host plausible.test;
        add_header X-Cache $upstream_cache_status;
    }
    location = /api/event {
        proxy_pass http://app/api/event;
        proxy_set_header Host plausible.test;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $host;
    }
    """,
    ["GET /js/script.js", "GET /js/script.js", "POST /api/event | Content-Length: 0"],
    "proxy_cache_path @LOGS@/js levels=1:2 keys_zone=jscache:1m inactive=30d use_temp_path=off;\n",
)
_app(
    "etherpad",
    """
    location / {
        proxy_buffering off;
        proxy_pass http://app/;
        proxy_pass_header Server;
        proxy_set_header Host $host;
        @UPGRADE@
    }
    location /pad/ {
        rewrite /pad/(.*) /$1 break;
        rewrite ^/pad$ /pad/ permanent;
        proxy_pass http://app/;
        proxy_redirect / /pad/;
    }
    """,
    ["GET /p/x", "GET /pad/p/x", "GET /pad"],
)
_app(
    "confluence and synchrony",
    """
    location /confluence {
        client_max_body_size 100m;
        proxy_set_header X-Forwarded-Host $host;
        proxy_set_header X-Forwarded-Server $host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_pass http://app/confluence;
    }
    location /synchrony { @UPGRADE@ proxy_pass http://app/synchrony; }
    """,
    ["GET /confluence/dashboard.action", "GET /synchrony/v1" + WEBSOCKET, "GET /confluencex"],
)
_app(
    "single-page application with an API",
    """
    root @DIR@/www;
    index index.html;
    location / { try_files $uri $uri/ /index.html; add_header Cache-Control no-cache; }
    location ~* \\.(?:css|js|jpg|svg)$ { expires 1y; add_header Cache-Control public; }
    location /api/ { proxy_pass http://app/v1/; proxy_set_header Host $proxy_host; }
    """,
    ["GET /route/a", "GET /app.js", "GET /api/users?id=1", "GET /dir", "GET /none.css"],
)
_app(
    "static site with languages",
    """
    root @DIR@/www;
    charset utf-8;
    error_page 404 /errors/404.html;
    location = / {
        if ($lang) { return 302 /$lang.html; }
        try_files /index.html =404;
    }
    location / { try_files $uri $uri.html $uri/ =404; }
    location ~ /\\. { deny all; }
    """,
    ["GET /", "GET / | Accept-Language: en-GB", "GET /en", "GET /.hidden", "GET /none"],
    "map $http_accept_language $lang { default ''; ~^en en; }\n",
)
