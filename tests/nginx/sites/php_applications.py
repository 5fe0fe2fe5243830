"""Owns: configurations in the manner that well-known PHP applications document.

As in `applications`, in words of our own. All have the same tree of files, in which every script
says how it was asked.
"""

from pathlib import Path

from ..site import Case, http

SCRIPT = (Path(__file__).parents[2] / "published/env.php").read_text()
SCRIPTS = """
    index.php app.php matomo.php js/index.php config/config.ini.php core/x.php lib/exe/fetch.php
    lib/exe/detail.php doku.php admin/index.php admin/app.php api.php load.php thumb.php
    install/install.php theme/image.php uploads/bad.php public/index.php core/index.php
    icingaweb2/index.php zabbix.php app_dev.php
"""
FILES = """
    robots.txt js/app.js css/site.css favicon.ico assets/logo.png uploads/photo.jpg
    data/secret.txt conf/local.php.bak .htaccess .git/config composer.json theme/style.css
    images/p/1/2/12-large.jpg vendor/x.js readme.md installer/x.txt sites/a.module
"""
PHP = """
    include @DIR@/fastcgi.conf;
    fastcgi_pass @PHPA@;
"""


def _app(name: str, conf: str, cases: list[Case], root: str = "") -> None:
    """Adds an application whose files lie below `root` of the tree."""
    text = conf.replace("@FCGI@", PHP)
    listen = "listen 127.0.0.1:@P0@; server_name localhost;"
    home = f"root @DIR@/applications{root}; index index.php index.html;"
    http(f"application {name}", f"server {{ {listen} {home}\n{text}\n}}", cases, open=True)


def fill(home: Path) -> None:
    """Makes the tree below `home`."""
    for name in (SCRIPTS + FILES).split():
        path = home / "applications" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCRIPT if name.endswith(".php") else f"this is {name}\n")


_app(
    "matomo",
    r"""
    add_header Referrer-Policy origin always;
    add_header X-Content-Type-Options "nosniff" always;
    location ~ ^/(index|matomo|piwik|js/index|plugins/HeatmapSessionRecording/configs)\.php$ {
        @FCGI@
        try_files $fastcgi_script_name =404;
        fastcgi_param HTTP_PROXY "";
    }
    location ~* ^.+\.php$ { deny all; return 403; }
    location / { try_files $uri $uri/ =404; }
    location ~ ^/(config|tmp|core|lang) { deny all; return 403; }
    location ~* \.(gif|ico|jpg|png|svg|js|css|htm|html|mp3|mp4|wav|ogg|avi|ttf|eot|woff|woff2)$ {
        allow all;
        expires 1h;
        add_header Pragma public;
        add_header Cache-Control "public";
    }
    location ~ ^/(libs|vendor|plugins|misc|node_modules) { deny all; return 403; }
    location ~/(.*\.md|LEGALNOTICE|LICENSE) { default_type text/plain; }
    """,
    ["GET /", "GET /matomo.php?idsite=1", "GET /core/x.php", "GET /js/app.js", "GET /readme.md"],
)
_app(
    "mediawiki",
    r"""
    client_max_body_size 5m;
    client_body_timeout 60;
    location / { try_files $uri $uri/ @rewrite; }
    location @rewrite { rewrite ^/(.*)$ /index.php?title=$1&$args; }
    location ^~ /maintenance/ { return 403; }
    location ~ \.php$ { @FCGI@ try_files $uri @rewrite; }
    location /wiki/ { rewrite ^/wiki/(?<pagename>.*)$ /index.php; }
    location ~* \.(js|css|png|jpg|jpeg|gif|ico)$ {
        try_files $uri /index.php;
        expires max;
        log_not_found off;
    }
    location ^~ /cache/ { deny all; }
    """,
    [
        "GET /wiki/A%20B?action=edit",
        "GET /Some_Page",
        "GET /load.php?m=1",
        "GET /none.png",
        "GET /maintenance/x",
        "GET /none.php",
    ],
)
_app(
    "phpbb",
    r"""
    location / {
        try_files $uri $uri/ @rewriteapp;
        location ~ \.php(/|$) {
            @FCGI@
            fastcgi_split_path_info ^(.+\.php)(/.*)$;
            fastcgi_param PATH_INFO $fastcgi_path_info;
            fastcgi_param DOCUMENT_ROOT $realpath_root;
            try_files $uri $uri/ /app.php$is_args$args;
        }
        location ~ /(config|common\.php|cache|files|images/avatars/upload|includes|store|vendor) {
            deny all;
            internal;
        }
    }
    location @rewriteapp { rewrite ^(.*)$ /app.php/$1 last; }
    location /install/ {
        try_files $uri $uri/ @rewrite_installapp;
        location ~ \.php(/|$) { @FCGI@ }
    }
    location @rewrite_installapp { rewrite ^(.*)$ /install/app.php/$1 last; }
    location ~ /\.svn|/\.git { deny all; internal; }
    """,
    [
        "GET /forum/x",
        "GET /index.php?f=1",
        "GET /config/config.ini.php",
        "GET /.git/config",
        "GET /install/install.php",
    ],
)
_app(
    "moodle",
    r"""
    location / { try_files $uri $uri/ =404; }
    location ~ ^(.+\.php)(.*)$ {
        fastcgi_split_path_info ^(.+\.php)(.*)$;
        fastcgi_index index.php;
        @FCGI@
        fastcgi_param PATH_INFO $fastcgi_path_info;
    }
    location /dataroot/ { internal; alias @DIR@/applications/data/; }
    location ~ (/vendor/|/node_modules/|composer\.json|/readme|/README|/\.git) {
        deny all;
        return 404;
    }
    """,
    [
        "GET /theme/image.php/boost/core/1/x",
        "GET /composer.json",
        "GET /dataroot/secret.txt",
        "GET /vendor/x.js",
    ],
)
_app(
    "joomla",
    r"""
    server_name_in_redirect off;
    location / { try_files $uri $uri/ /index.php?$args; }
    location ~* /(images|cache|media|logs|tmp|uploads)/.*\.(php|pl|py|jsp|asp|sh|cgi)$ {
        return 403;
        error_page 403 /403_error.html;
    }
    location ~ \.php$ { @FCGI@ fastcgi_index index.php; }
    location ~* \.(ico|pdf|flv)$ { expires 1y; }
    location ~* \.(js|css|png|jpg|jpeg|gif|swf|xml|txt)$ { expires 14d; }
    """,
    ["GET /component/x?id=1", "GET /uploads/bad.php", "GET /robots.txt", "GET /favicon.ico"],
)
_app(
    "prestashop",
    r"""
    rewrite ^/([0-9])(-[_a-zA-Z0-9-]*)?/.+\.jpg$ /images/p/$1/$1$2.jpg last;
    rewrite ^/([0-9])([0-9])(-[_a-zA-Z0-9-]*)?/.+\.jpg$ /images/p/$1/$2/$1$2$3.jpg last;
    rewrite ^/images_ie/?([^/]+)\.(jpe?g|png|gif)$ /js/jquery/plugins/fancybox/images/$1.$2 last;
    rewrite ^/api/?(.*)$ /api.php?url=$1 last;
    location /admin/ {
        if (!-e $request_filename) { rewrite ^/.*$ /admin/index.php last; }
    }
    location / { if (!-e $request_filename) { rewrite ^/.*$ /index.php last; } }
    location ~ /\. { deny all; }
    location ~ ^/(app|bin|cache|classes|config|controllers|docs|localization|override|src)/ {
        deny all;
    }
    location ~ \.php$ {
        try_files $fastcgi_script_name /index.php$uri&$args =404;
        fastcgi_split_path_info ^(.+\.php)(/.+)$;
        @FCGI@
        fastcgi_keep_conn on;
    }
    """,
    [
        "GET /12-large/shoes.jpg",
        "GET /api/products?x=1",
        "GET /category/1-x",
        "GET /admin/none",
        "GET /config/x",
        "GET /.htaccess",
    ],
)
_app(
    "shopware",
    r"""
    location ~ /(installer|recovery/update)(/|$) {
        try_files $uri /recovery/index.php$is_args$args;
    }
    location / {
        location ~* ^.+\.(?:css|cur|js|jpe?g|gif|ico|png|svg|webp|html)$ {
            expires 1y;
            add_header Cache-Control "public, must-revalidate, proxy-revalidate";
            access_log off;
            log_not_found off;
            tcp_nodelay off;
            try_files $uri /index.php$is_args$args;
        }
        location ~* ^.+\.svg$ { add_header Content-Security-Policy "script-src 'none'"; }
        try_files $uri /index.php$is_args$args;
    }
    location ~ \.php$ {
        fastcgi_split_path_info ^(.+\.php)(/.+)$;
        @FCGI@
        fastcgi_buffers 8 16k;
        fastcgi_buffer_size 32k;
        fastcgi_read_timeout 300s;
        client_body_buffer_size 128k;
        http2_push_preload on;
    }
    """,
    ["GET /detail/1", "GET /css/site.css", "GET /none.svg", "GET /installer/x.txt"],
)
_app(
    "typo3",
    r"""
    if (!-e $request_filename) {
        rewrite ^/(.+)\.(\d+)\.(php|js|css|png|jpg|gif|gzip)$ /$1.$3 last;
    }
    location ~* composer\.(?:json|lock) { deny all; }
    location ~* flexform[^.]*\.xml { deny all; }
    location ~ /(?:fileadmin|uploads)/.*\.(?:php|phtml) { deny all; }
    location ~* (?<!\.well-known)/\. { deny all; }
    location / { try_files $uri $uri/ /index.php$is_args$args; }
    location = /admin { rewrite ^ /admin/; }
    location /admin/ {
        absolute_redirect off;
        try_files $uri /admin/index.php$is_args$args;
    }
    location ~ [^/]\.php(/|$) {
        fastcgi_split_path_info ^(.+?\.php)(/.*)$;
        if (!-f $document_root$fastcgi_script_name) { return 404; }
        fastcgi_buffer_size 32k;
        fastcgi_buffers 8 16k;
        fastcgi_connect_timeout 240s;
        @FCGI@
        fastcgi_param PATH_INFO $fastcgi_path_info;
    }
    """,
    [
        "GET /css/site.1234.css",
        "GET /page/a",
        "GET /admin",
        "GET /index.php/x/y",
        "GET /none.php",
        "GET /.well-known/x",
        "GET /.htaccess",
        "GET /uploads/bad.php",
    ],
)
_app(
    "roundcube",
    r"""
    location / { try_files $uri $uri/ /index.php?q=$uri&$args; }
    location ~ ^/(README.md|INSTALL|LICENSE|CHANGELOG|UPGRADING)$ { deny all; }
    location ~ ^/(config|temp|logs)/ { deny all; }
    location ~ /\. { deny all; access_log off; log_not_found off; }
    location ~ ^/(.+\.php)(/.*)?$ { try_files $uri =404; @FCGI@ }
    """,
    ["GET /?_task=mail", "GET /config/config.ini.php", "GET /.htaccess", "GET /x/y?z"],
)
_app(
    "dokuwiki",
    r"""
    client_max_body_size 4M;
    client_body_buffer_size 128k;
    location ~ ^/(data|conf|bin|inc|vendor)/ { deny all; }
    location ~ ^/lib.*\.(js|css|gif|png|ico|jpg|jpeg)$ { expires 365d; }
    location / { try_files $uri $uri/ @dokuwiki; }
    location @dokuwiki {
        rewrite ^/_media/(.*) /lib/exe/fetch.php?media=$1 last;
        rewrite ^/_detail/(.*) /lib/exe/detail.php?media=$1 last;
        rewrite ^/_export/([^/]+)/(.*) /doku.php?do=export_$1&id=$2 last;
        rewrite ^/(.*) /doku.php?id=$1&$args last;
    }
    location ~ \.php$ {
        try_files $uri $uri/ /doku.php;
        @FCGI@
        fastcgi_param REDIRECT_STATUS 200;
    }
    """,
    [
        "GET /start?do=edit",
        "GET /_media/wiki:a%20b.png",
        "GET /_export/pdf/x:y",
        "GET /data/secret.txt",
        "GET /none.php",
    ],
)
_app(
    "phpmyadmin by an alias",
    r"""
    location /phpmyadmin {
        alias @DIR@/applications;
        index index.php;
        location ~ ^/phpmyadmin/(.+\.php)$ {
            alias @DIR@/applications/$1;
            fastcgi_pass @PHPA@;
            include @DIR@/fastcgi.conf;
            fastcgi_param SCRIPT_FILENAME $request_filename;
        }
        location ~* ^/phpmyadmin/(.+\.(jpg|jpeg|gif|css|png|js|ico|html|xml|txt))$ {
            alias @DIR@/applications/$1;
        }
    }
    """,
    [
        "GET /phpmyadmin/index.php?db=x",
        "GET /phpmyadmin/js/app.js",
        "GET /phpmyadmin/",
        "GET /phpmyadmin",
    ],
)
_app(
    "icingaweb2",
    r"""
    location ~ ^/icingaweb2/index\.php(.*)$ {
        fastcgi_pass @PHPA@;
        fastcgi_index index.php;
        include @DIR@/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME @DIR@/applications/icingaweb2/index.php;
        fastcgi_param ICINGAWEB_CONFIGDIR /etc/icingaweb2;
        fastcgi_param REMOTE_USER $remote_user;
    }
    location ~ ^/icingaweb2(.+)? {
        alias @DIR@/applications/icingaweb2;
        index index.php;
        try_files $1 $uri $uri/ /icingaweb2/index.php$is_args$args;
    }
    """,
    ["GET /icingaweb2/dashboard?a=1", "GET /icingaweb2", "GET /icingaweb2/index.php/x"],
)
_app(
    "zabbix",
    r"""
    location = /favicon.ico { log_not_found off; }
    location / { try_files $uri $uri/ =404; }
    location /assets { access_log off; expires 10d; }
    location ~ /\.ht { deny all; }
    location ~ /(api\/|conf[^\.]|include|locale) { deny all; return 404; }
    location /vendor { deny all; return 404; }
    location ~ [^/]\.php(/|$) {
        fastcgi_pass @PHPA@;
        fastcgi_split_path_info ^(.+\.php)(/.+)$;
        fastcgi_index index.php;
        fastcgi_param DOCUMENT_ROOT $document_root;
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        fastcgi_param PATH_TRANSLATED $document_root$fastcgi_script_name;
        include @DIR@/fastcgi_params;
        fastcgi_param QUERY_STRING $query_string;
        fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_intercept_errors on;
        fastcgi_ignore_client_abort off;
        fastcgi_connect_timeout 60;
        fastcgi_send_timeout 180;
        fastcgi_buffer_size 128k;
        fastcgi_buffers 4 256k;
        fastcgi_busy_buffers_size 256k;
    }
    """,
    ["GET /zabbix.php?action=x", "GET /assets/logo.png", "GET /vendor/x.js", "GET /.htaccess"],
)
_app(
    "symfony's front controllers",
    r"""
    location / { try_files $uri /index.php$is_args$args; }
    location ~ ^/app_dev\.php(/|$) {
        @FCGI@
        fastcgi_split_path_info ^(.+\.php)(/.*)$;
        fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name;
        fastcgi_param DOCUMENT_ROOT $realpath_root;
    }
    location ~ ^/index\.php(/|$) {
        @FCGI@
        fastcgi_split_path_info ^(.+\.php)(/.*)$;
        fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name;
        internal;
    }
    location ~ \.php$ { return 404; }
    """,
    ["GET /blog/post", "GET /app_dev.php/blog", "GET /index.php/x", "GET /api.php"],
)
_app(
    "codeigniter below public",
    r"""
    location / { try_files $uri $uri/ /index.php$is_args$args; }
    location ~ \.php$ { @FCGI@ try_files $uri =404; }
    error_page 404 /index.php;
    location ~* /\. { deny all; }
    """,
    ["GET /users/1?x=y", "GET /none.php", "GET /.env"],
    "/public",
)
_app(
    "yii with assets",
    r"""
    charset utf-8;
    client_max_body_size 128M;
    location / { try_files $uri $uri/ /index.php$is_args$args; }
    location ~ ^/assets/.*\.php$ { deny all; }
    location ~ \.php$ {
        @FCGI@
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        try_files $uri =404;
    }
    location ~* /\. { deny all; }
    """,
    ["GET /site/index", "GET /assets/logo.png", "GET /assets/x.php", "GET /.git/config"],
)
_app(
    "cakephp by host",
    r"""
    if ($host ~* ^www\.(.*)) { set $bare $1; rewrite ^(.*)$ http://$bare$1 permanent; }
    location / { try_files $uri $uri/ /index.php?$args; }
    location ~ \.php$ { @FCGI@ fastcgi_intercept_errors on; }
    """,
    ["GET /a?b=c | Host: www.localhost", "GET /posts/view/1?x=%20", "GET /none.php"],
)
