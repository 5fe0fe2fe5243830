"""Owns: configurations of applications in PHP that keep pages as files or route by themselves.

As in `named_applications`; the tree of files is that of `php_applications`.
"""

from .named_applications import group
from .named_federation import BODY, edges

group(
    "pages",
    r"""
    map $http_cookie $is_member { default 0; "~*(^|; )(session|laravel_token)=[^;]+" 1; }
    map "$request_method|$args|$is_member" $store { "GET||0" yes; "~^(GET|HEAD)\|utm_" yes; }
    map $uri $path_only { default $uri; "~^(?<dir>/.*)/$" $dir; }
    index index.php index.html; root @DIR@/applications;
    """,
    (
        "statamic",
        r"""
        set $try_location @static;
        if ($request_method != GET) { set $try_location @not_static; }
        if ($args ~* "live-preview=(.*)") { set $try_location @not_static; }
        if ($store != yes) { set $kept no; }
        location / { try_files $uri $try_location; }
        location @static { try_files /sites${uri}_$args.html /sites${uri}_.html $uri $uri/
        /index.php?$args; }
        location @not_static { try_files $uri /index.php?$args; }
        location = /favicon.ico { access_log off; log_not_found off; }
        error_page 404 /index.php;
        location ~ \.php$ { @FCGI@ fastcgi_param KEPT $kept; fastcgi_hide_header X-Powered-By; }
        location ~ /\.(?!well-known).* { deny all; }
        set $kept yes;
        """,
        [
            *edges("/blog/post"),
            "GET /?live-preview=abc",
            "GET /blog?page=2 | Cookie: a=b; session=x",
            "GET /blog?utm_source=x",
            "GET /favicon.ico",
            "GET /.well-known/x",
            "GET /.git/config",
            "GET /none.php",
            "GET /admin",
            "GET /admin/",
            "DELETE /blog",
        ],
    ),
    (
        "craft",
        r"""
        charset utf-8; ssi on; error_page 404 /index.php?$query_string;
        location = /robots.txt { access_log off; log_not_found off; }
        location / { try_files $uri/index.html $uri $uri/ /index.php?$query_string; }
        location ^~ /admin { try_files $uri $uri/ @phpfpm_nocache; }
        location ^~ /index.php/admin { try_files $uri $uri/ @phpfpm_nocache; }
        location ^~ /cpresources { try_files $uri /index.php?$query_string; expires 1h; }
        location @phpfpm_nocache {
            @FCGI@ fastcgi_param SCRIPT_FILENAME $document_root/index.php;
            fastcgi_param SCRIPT_NAME /index.php; fastcgi_param QUERY_STRING $query_string;
            fastcgi_param HTTP_PROXY ""; fastcgi_param HTTP_HOST $host; charset off;
            add_header Cache-Control "no-store, no-cache" always;
            add_header Last-Modified $date_gmt_none;
        }
        set $date_gmt_none "";
        location ~ [^/]\.php(/|$) {
            fastcgi_split_path_info ^(.+\.php)(/.+)$; @FCGI@ fastcgi_index index.php;
            fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_intercept_errors off;
            fastcgi_buffer_size 16k; fastcgi_buffers 4 16k; fastcgi_read_timeout 60;
        }
        location ~* \.(js|css|png|ico)$ { try_files $uri @none; expires 1M; }
        location @none { return 404; }
        """,
        [
            *edges("/news/entry"),
            "GET /admin",
            "GET /admin/actions/x?y=z",
            "GET /admin/app.php",
            "HEAD /index.php/admin/x",
            "GET /index.php/news/x?p=1",
            "GET /cpresources/a/b.js?v=1",
            "GET /css/site.css",
            "GET /css/none.css",
            "GET /index.php.php/x",
            "GET /.php",
        ],
    ),
    (
        "grav",
        r"""
        location / { try_files $uri $uri/ /index.php?$query_string; }
        location ~* /(\.git|cache|bin|logs|backup|tests)/.*$ { return 403; }
        location ~* /(system|vendor)/.*\.(txt|xml|md|html|json|yaml|yml|php|pl|py|cgi|twig|sh)$ {
            return 403; }
        location ~* /user/.*\.(txt|md|json|yaml|yml|php|pl|py|cgi|twig|sh|bat)$ { return 403; }
        location ~ /(LICENSE\.txt|composer\.lock|composer\.json|nginx\.conf|web\.config) {
            return 403; }
        location ~ \.php$ {
            fastcgi_split_path_info ^(.+\.php)(/.+)$; fastcgi_index index.php; @FCGI@
            fastcgi_param SCRIPT_FILENAME $document_root/$fastcgi_script_name;
        }
        error_page 403 =404 @hidden;
        location @hidden { rewrite ^ /index.php?hidden=$path_only last; }
        """,
        [
            *edges("/blog/"),
            "GET /.git/config",
            "GET /.GIT/config",
            "GET /vendor/x.php",
            "GET /vendor/x.js",
            "GET /user/config/site.yaml?a=b",
            "POST /composer.json" + BODY,
            "GET /cache/x/",
            "GET /index.php",
            "GET /none.php",
        ],
    ),
    (
        "espocrm",
        r"""
        client_max_body_size 50M; charset utf-8;
        location / { try_files $uri $uri/ =404; }
        location /api/v1/ {
            if (!-e $request_filename) { rewrite ^/api/v1/(.*)$ /api.php last; break; }
        }
        location /portal/ {
            try_files $uri $uri/ /index.php?$query_string;
        }
        location /api/v1/portal-access {
            if (!-e $request_filename) { rewrite ^/api/v1/(.*)$ /admin/app.php last; break; }
        }
        location ~ /reset/?$ { try_files /robots.txt =404; }
        location ^~ (api|client)/ {
            if (-e $request_filename) { return 403; }
        }
        location ^~ /data/ { deny all; }
        location ^~ /conf/ { deny all; error_page 403 =404 /none; }
        location ~ /\.ht { deny all; }
        location ~ \.php$ { fastcgi_pass @PHPA@; include @DIR@/fastcgi.conf;
        fastcgi_param QUERY_STRING $query_string; }
        """,
        [
            *edges("/api/v1/Account/7"),
            "GET /api/v1/portal-access/x/y?z",
            "GET /reset",
            "GET /reset/",
            "GET /x/reset",
            "GET /reset/x",
            "GET /data/secret.txt",
            "GET /data",
            "GET /conf/local.php.bak",
            "GET /.htaccess",
            "GET /portal/7/x",
            "DELETE /api/v1/Account/7",
        ],
    ),
    (
        "osticket",
        r"""
        set $path_info "";
        location ~ /include { deny all; return 403; }
        if ($request_uri ~ "^/api(/[^\?]+)") { set $path_info $1; }
        location ~ ^/api/(?:tickets|tasks).*$ { try_files $uri $uri/ /api.php?$query_string; }
        if ($request_uri ~ "^/admin/.*\.php(/[^\?]+)") { set $path_info $1; }
        if ($request_uri ~ "^/lib/.*\.php(?<rest>/[^?]*)") { set $path_info $rest; }
        location ~ ^/admin/app.php/.*$ { try_files $uri $uri/ /admin/app.php?$query_string; }
        location / { try_files $uri $uri/ index.php; }
        location ~ \.php$ {
            @FCGI@ fastcgi_param PATH_INFO $path_info; fastcgi_param REST $rest if_not_empty;
        }
        """,
        [
            *edges("/api/tickets.json"),
            "GET /admin/app.php/users/5?x=y",
            "GET /admin/app.php",
            "GET /admin/app.php/a%20b/%2e%2e/c",
            "GET /lib/exe/fetch.php/a",
            "GET /lib/exe/fetch.php",
            "GET /include/x",
            "GET /api//tickets/x",
            "GET /none",
        ],
    ),
    (
        "pterodactyl",
        r"""
        sendfile off; client_max_body_size 100m; client_body_timeout 120s;
        access_log @LOGS@/access.log combined if=$is_member; access_log off;
        add_header X-Robots-Tag none; add_header Referrer-Policy same-origin;
        location / { try_files $uri $uri/ /index.php?$query_string; }
        location = /robots.txt { add_header X-Text yes; }
        location ~ \.php$ {
            fastcgi_split_path_info ^(.+\.php)(/.+)$; fastcgi_index index.php; @FCGI@
            fastcgi_param PHP_VALUE "upload_max_filesize = 100M
 post_max_size=100M";
            fastcgi_param HTTP_PROXY ""; fastcgi_intercept_errors off;
            fastcgi_connect_timeout 300; fastcgi_send_timeout 300; fastcgi_read_timeout 300;
        }
        location ~ /\.ht { deny all; }
        """,
        [*edges("/server/x"), "GET /robots.txt", "GET /.htaccess", "GET /index.php/", "GET /"],
    ),
    (
        "flarum",
        r"""
        location / { try_files $uri $uri/ /index.php?$query_string; }
        location ~* ^/(\.git|composer\.(json|lock)|auth\.json|config\.php|flarum|storage|vendor) {
            deny all; return 404;
        }
        location ~* \.html$ { expires -1; }
        location ~* ^/assets/.*$ {
            expires 1M; add_header Cache-Control "public, max-age=7200";
            access_log off; add_header X-Asset $uri;
            location ~* \.(?:woff2?|png)$ { add_header Access-Control-Allow-Origin *; expires max; }
        }
        gzip on; gzip_comp_level 5; gzip_min_length 8; gzip_proxied any; gzip_vary on;
        gzip_types text/plain text/css;
        location ~ \.php$ { @FCGI@ }
        """,
        [
            *edges("/d/1-topic"),
            "GET /composer.json",
            "GET /Vendor/x.js",
            "GET /config.php",
            "GET /none.html",
            "GET /assets/logo.png",
            "GET /ASSETS/logo.png",
            "GET /assets/none.css",
            "GET /d/1-topic | Accept-Encoding: gzip, br",
            "GET /readme.md | Accept-Encoding: gzip;q=0",
        ],
    ),
    (
        "opencart",
        r"""
        rewrite /admin$ $scheme://$host$uri/ permanent;
        rewrite ^/download/(.*) /index.php?route=error/not_found last;
        rewrite ^/image-smp/(.*) /index.php?route=product/smp_image&name=$1 break;
        location = /sitemap.xml { rewrite ^(.*)$ /index.php?route=extension/feed/map break; @FCGI@ }
        location = /googlebase.xml { rewrite ^(.*)$ /index.php?route=extension/feed/base last; }
        location /system { rewrite ^/system/storage/(.*) /index.php?route=error/not_found break; }
        location / { try_files $uri $uri/ @opencart; }
        location @opencart { rewrite ^/(.+)$ /index.php?_route_=$1 last; }
        location /images { rewrite ^/images/p/(\d)/(\d)/(.+)$ /images/p/$1/$2/$3? break;
        valid_referers none blocked server_names ~\.test; if ($invalid_referer) { return 403; } }
        location ~* (\.(tpl|ini|twig))$ { deny all; }
        location ~ \.php$ { try_files $uri =404; fastcgi_split_path_info ^(.+\.php)(/.+)$; @FCGI@ }
        """,
        [
            *edges("/desktops/mac"),
            "GET /admin",
            "GET /x/admin?y",
            "GET /download/a",
            "GET /image-smp/a.png?w=1",
            "GET /sitemap.xml",
            "GET /googlebase.xml?x=1",
            "GET /system/storage/x",
            "GET /images/p/1/2/12-large.jpg?v=1",
            "GET /images/p/1/2/12-large.jpg | Referer: http://evil.example/",
            "GET /images/p/1/2/12-large.jpg | Referer: http://a.test/x",
            "GET /images/p/1/2/12-large.jpg | Referer: opencart.test",
            "GET /a.twig",
            "GET /%D0%B0%20b",
        ],
    ),
    (
        "owncloud",
        r"""
        rewrite ^/caldav(.*)$ /index.php/caldav$1 redirect;
        rewrite ^/webdav(.*)$ /index.php/webdav$1 redirect;
        error_page 403 /core/x.php; error_page 404 /app.php/templates/404;
        location = /robots.txt { allow all; log_not_found off; access_log off; }
        location ~ ^/(?:\.htaccess|data|config|db_structure\.xml|README) { deny all; }
        location / {
            rewrite ^/.well-known/host-meta /api.php?service=host-meta last;
            rewrite ^/.well-known/carddav /index.php/carddav/ redirect;
            rewrite ^(/core/doc/[^\/]+/)$ $1/index.html;
            try_files $uri $uri/ /index.php;
        }
        location ~ \.php(?:$|/) {
            fastcgi_split_path_info ^(.+\.php)(/.+)$; @FCGI@
            fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_param ACCEL_ENABLED on;
            fastcgi_request_buffering off; fastcgi_pass_request_headers on;
        }
        location ~* \.(?:jpg|jpeg|gif|png|ico|svg)$ { expires 30d; access_log off; }
        """,
        [
            *edges("/apps/files"),
            "PROPFIND /webdav/a%20b | Depth: 1",
            "GET /caldav",
            "GET /caldavx?y",
            "GET /data/secret.txt",
            "GET /README",
            "GET /.well-known/host-meta",
            "GET /.well-known/carddav?x",
            "GET /core/doc/admin/",
            "GET /index.php/apps/x/../y",
            "GET /none.png",
            "GET /none.php/x",
        ],
    ),
    (
        "sogo",
        r"""
        proxy_http_version 1.1; server_tokens off; etag off;
        if ($uri ~ "^/(?<mailbox>[^/]+@[^/]+)$") { return 302 /SOGo/so/$mailbox; }
        location = / { return 302 /SOGo; }
        location = /principals/ { rewrite ^ $scheme://$http_host/SOGo/dav; }
        location ^~ /principals { return 301 /SOGo/dav; }
        location ^~ /.well-known/caldav { return 301 /SOGo/dav/; }
        location ^~ /SOGo {
            proxy_pass http://app; proxy_redirect http://app default_none;
            proxy_set_header x-webobjects-server-protocol HTTP/1.0;
            proxy_set_header x-webobjects-remote-host $remote_addr;
            proxy_set_header x-webobjects-server-name $server_name;
            proxy_set_header x-webobjects-server-url $scheme://$host;
            proxy_set_header x-webobjects-server-port $server_port;
            proxy_connect_timeout 90; proxy_send_timeout 90; proxy_read_timeout 90;
            proxy_busy_buffers_size 64k; proxy_buffers 8 64k; proxy_buffer_size 64k;
            client_body_buffer_size 128k; client_max_body_size 100m;
        }
        location ^~ /Microsoft-Server-ActiveSync { proxy_pass http://app/SOGo/$uri$is_args$args; }
        location ~ ^/SOGo.woa/WebServerResources/(.*)$ { alias @DIR@/applications/$1;
        allow all; expires max; }
        location (^/SOGo/so/ControlPanel/Products/[^/]*UI/Resources/.*\.(jpg|png|gif|css|js)$) {
            alias @DIR@/applications/$1; }
        location ~* ^/autodiscover/autodiscover\.(xml|json)$ {
            rewrite /autodiscover/(.*)$ /api.php/$1 break; @FCGI@ fastcgi_param FORM $1;
            fastcgi_split_path_info ^(/api\.php)(.*)$;
        }
        """,
        [
            *edges("/SOGo/so/ann"),
            "GET /",
            "GET /principals/",
            "PROPFIND /principals/users/x",
            "GET /.well-known/caldav",
            "OPTIONS /Microsoft-Server-ActiveSync?User=a%40b&Cmd=x",
            "POST /Microsoft-Server-ActiveSync/a%20b" + BODY,
            "GET /SOGo.woa/WebServerResources/css/site.css",
            "GET /SOGo.woa/WebServerResources/",
            "GET /SOGo.woa/WebServerResources/../x",
            "GET /ann@mail.test",
            "GET /ann%40mail.test?x",
            "POST /Autodiscover/Autodiscover.xml" + BODY,
            "GET /autodiscover/autodiscover.json?Email=a%40b",
            "GET /autodiscover",
        ],
    ),
    # What is kept has a length here.
    lengths="any",
)
