"""Owns: configurations of gateways and of applications in PHP, several of them in one start.

As in `named_applications`; the tree of files is that of `php_applications`.
"""

from .named_applications import group


def raw(text: str) -> str:
    """The path at which the origin answers with these bytes."""
    return "/raw/" + text.replace("\n", "\r\n").encode().hex()


OK = "HTTP/1.1 200 OK\n"

group(
    "gateways",
    r"""
    map $http_x_canary $pool { default stable; always canary; "~^[0-9a-f]{2}$" canary; }
    map $http_upgrade $backend { default app; websocket sockets; }
    map "$request_method:$http_x_tier" $limit_key { default ""; ~^POST:free$ $binary_remote_addr; }
    map $upstream_status $logged { ~^[23] 0; default 1; }
    map $host $tenant {
        hostnames; .tenants.test shared; a.tenants.test a; tenants.* none; default "";
    }
    map $request_uri $normal { "~^(?<p>[^?]*)/(?<q>\?.*)?$" $p$q; default ""; }
    limit_req_zone $limit_key zone=free:1m rate=1r/m;
    upstream stable { zone stable 64k; server @ORIGIN@ weight=5; server 127.0.0.1:1 backup;
    keepalive 2; }
    upstream canary { least_conn; server @ORIGIN@ max_fails=3 fail_timeout=5s; }
    upstream sockets { ip_hash; server @ORIGIN@; }
    upstream dead { server 127.0.0.1:1 max_fails=0; server 127.0.0.1:2 max_fails=0; }
    upstream sharded { hash $request_uri consistent; server @ORIGIN@; server 127.0.0.1:1 down; }
    """,
    (
        "canary",
        """
        location / { proxy_pass http://$pool; proxy_set_header X-Pool $pool; @FORWARDED@ }
        location /ws { proxy_pass http://$backend; @UPGRADE@ }
        location /shard/ { proxy_pass http://sharded/; proxy_set_header Host $proxy_host; }
        location /limited {
            limit_req zone=free; limit_req_status 429; limit_req_dry_run off;
            proxy_pass http://stable/in/?k=$arg_k; add_header X-Limit $limit_req_status always;
        }
        if ($normal) { return 308 $normal; }
        """,
        [
            "GET /x | X-Canary: always",
            "GET /x | X-Canary: 7f",
            "GET /x | X-Canary: no",
            "GET /trailing/?a=b/",
            "GET /ws?x=1" + " | Upgrade: websocket | Connection: Upgrade",
            "GET /ws",
            "GET /shard/a%2fb//c",
            "POST /limited | X-Tier: free | Content-Length: 1\r\n\r\na",
            "POST /limited | X-Tier: free | Content-Length: 1\r\n\r\na",
            "GET /limited?k=a%26b | X-Tier: free",
        ],
    ),
    (
        "sso",
        r"""
        auth_request /oauth2/auth; auth_request_set $user $upstream_http_x_auth_request_user;
        auth_request_set $token $upstream_http_authorization;
        auth_request_set $cookie $upstream_http_set_cookie; add_header Set-Cookie $cookie;
        error_page 401 = @signin; error_page 403 /denied;
        location /oauth2/ { auth_request off; proxy_pass http://app;
        @FORWARDED@ proxy_set_header X-Auth-Request-Redirect $request_uri; }
        location = /oauth2/auth {
            auth_request off; internal; proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header X-Original-URI $request_uri; proxy_set_header X-User $arg_user;
            proxy_pass http://app/$verdict;
        }
        location @signin { return 302 /oauth2/start?rd=$scheme://$host$request_uri; }
        location = /denied { auth_request off; internal; return 403 "denied $user\n"; }
        location / { proxy_set_header X-User $user; proxy_set_header Authorization $token;
        proxy_pass http://app; }
        location /static/ { auth_request off; alias @DIR@/www/; }
        location /admin/ { satisfy any; allow 192.0.2.1; deny all; auth_request /oauth2/auth;
        proxy_pass http://app; }
        set $verdict "raw/485454502f312e3120323032204f4b0d0a582d417574682d526571756573742d";
        set $verdict "${verdict}557365723a20616e6e0d0a5365742d436f6f6b69653a20613d620d0a0d0a";
        if ($arg_user = none) { set $verdict "raw/485454502f312e312034303120550d0a0d0a"; }
        if ($arg_user = no) { set $verdict "raw/485454502f312e312034303320460d0a0d0a"; }
        if ($arg_user = odd) {
            set $verdict "raw/485454502f312e312033303220460d0a4c6f636174696f6e3a202f780d0a0d0a"; }
        """,
        [
            "GET /x",
            "POST /x?user=ann | Content-Length: 3\r\n\r\nabc",
            "GET /x?user=none",
            "GET /x?user=no",
            "GET /x?user=odd",
            "GET /static/hello.txt?user=no",
            "GET /admin/?user=none",
            "GET /admin/?user=ann",
            "GET /oauth2/auth",
            "GET /oauth2/start?rd=/x",
            "GET /denied",
        ],
    ),
    (
        "buckets",
        r"""
        set $bucket ""; ignore_invalid_headers off; proxy_intercept_errors on; merge_slashes off;
        location ~ "^/(?<bucket_name>[a-z0-9.-]{3,20})(?<key>/.*)?$" {
            limit_except GET HEAD { deny all; }
            set $bucket $bucket_name; proxy_http_version 1.1;
            proxy_set_header Host $bucket.storage.test; proxy_set_header Authorization "";
            proxy_set_header Connection ""; proxy_hide_header x-amz-id-2;
            proxy_hide_header X-Origin;
            proxy_ignore_headers Set-Cookie; proxy_pass http://app/$bucket$key$is_args$args;
            proxy_redirect ~^http://[^/]+/(.*)$ /$bucket_name/$1;
            error_page 403 404 =404 @missing; error_page 301 302 307 = @follow;
        }
        location @missing { internal; default_type application/xml;
        return 404 "<Code>NoSuchKey $key</Code>"; }
        location @follow { set $to $upstream_http_location; proxy_pass $to; }
        location = / { return 301 https://docs.test$request_uri; }
        """,
        [
            "GET /my-bucket/a%20b//c?x=%2F",
            "PUT /my-bucket/a | Content-Length: 1\r\n\r\na",
            f"GET {raw(OK + chr(10))}",
            "GET /raw/485454502f312e3120343033204e6f0d0a0d0a",
            "GET /raw/485454502f312e312033303220460d0a4c6f636174696f6e3a20687474703a2f2f404f5249"
            "47494e402f6e65773f613d620d0a0d0a",
            "GET /UPPER/x",
            "GET /?versions",
        ],
    ),
    (
        "down",
        """
        location / {
            proxy_pass http://dead; proxy_next_upstream error timeout; proxy_next_upstream_tries 2;
            proxy_connect_timeout 1s; error_page 502 504 = @backup;
        }
        location @backup { proxy_pass http://app/from-backup$request_uri;
        add_header X-Was $upstream_addr; }
        location /plain { proxy_pass http://dead; error_page 502 /errors/50x.html; }
        location /errors/ { internal; root @DIR@/www; }
        location /last { proxy_pass http://dead; error_page 502 =200 @ok; }
        location @ok { return 204; }
        """,
        [
            "GET /a?b",
            "POST /a | Content-Length: 2\r\n\r\nab",
            "GET /plain",
            "GET /last",
            "HEAD /plain/x",
        ],
    ),
    (
        "rewriter",
        r"""
        sub_filter_once off; sub_filter_types text/plain text/css; sub_filter_last_modified on;
        sub_filter "http://app" "https://$host"; sub_filter 'Host: ' "HOST=";
        proxy_set_header Accept-Encoding ""; proxy_cookie_domain app $host;
        proxy_cookie_path ~^/(.+)$ /sub/$1; proxy_cookie_flags ~ secure samesite=lax;
        proxy_cookie_flags x nosecure;
        location /sub/ { proxy_pass http://app/; proxy_redirect default; }
        location /re/ { proxy_pass http://app; proxy_redirect http://app/re/ /x/;
        proxy_redirect ~*^(http)://a\.test/(.*) $1s://$host/$2; }
        location /ssi/ { ssi on; ssi_types text/plain; proxy_pass http://app/; }
        location /gz/ { gunzip on; gzip on; gzip_min_length 1; gzip_types *; gzip_proxied any;
        proxy_pass http://app/; }
        """,
        [
            "GET /sub/x",
            "GET /sub"
            + raw(
                OK + "Set-Cookie: a=b; Path=/p; Domain=app\nSet-Cookie: x=y; Secure\n"
                "Location: http://app/q\nContent-Type: text/css\n\nsee http://app/ and http://ap"
            ),
            "GET /re" + raw("HTTP/1.1 302 F\nLocation: http://A.test/x?y\n\n"),
            "GET /re" + raw("HTTP/1.1 302 F\nLocation: http://app/re/z\n\n"),
            "GET /ssi"
            + raw(
                OK + 'Content-Type: text/plain\n\n<!--# echo var="host" -->:<!--# if '
                'expr="$arg_a = 1" -->one<!--# else -->other<!--# endif -->'
            )
            + "?a=1",
            "GET /gz/x | Accept-Encoding: gzip",
            "HEAD /sub/x",
            "GET /sub/x | Range: bytes=0-3",
        ],
    ),
    (
        "a.tenants",
        """
        server_name *.tenants.test tenants.* ~^(?<short>\\w+)\\.re\\.test$;
        location / { return 200 "$tenant|$host|$short|$server_name|$http_host"; }
        location = /log { access_log @LOGS@/access.log combined if=$logged; return 200 x; }
        """,
        ["GET /", "GET /log", "GET / HTTP/1.0", "GET http://b.tenants.test/x"],
    ),
)
group(
    "php",
    r"""
    fastcgi_cache_path @LOGS@/wp levels=1:2 keys_zone=WP:1m inactive=60m;
    fastcgi_cache_key "$scheme$request_method$host$request_uri";
    map $http_cookie $skip { default 0; ~*wordpress_logged_in 1; ~*comment_author 1; }
    map $request_method $is_write { POST 1; default 0; }
    geo $bot_net { default 0; 192.0.2.0/24 1; }
    index index.php index.html; root @DIR@/applications;
    """,
    (
        "wordpress-cache",
        r"""
        set $skip_cache $skip;
        if ($is_write) { set $skip_cache 1; }
        if ($query_string != "") { set $skip_cache 1; }
        if ($request_uri ~* "/wp-admin/|/xmlrpc.php|wp-.*.php|/feed/|sitemap(_index)?.xml") {
            set $skip_cache 1;
        }
        location / { try_files $uri $uri/ /index.php?$args; }
        location ~ \.php$ {
            try_files $uri =404; @FCGI@
            fastcgi_cache WP; fastcgi_cache_valid 200 60m; fastcgi_cache_valid 301 1h;
            fastcgi_cache_bypass $skip_cache; fastcgi_no_cache $skip_cache;
            fastcgi_cache_use_stale error timeout updating invalid_header http_500;
            fastcgi_ignore_headers Cache-Control Expires Set-Cookie;
            add_header X-FastCGI-Cache $upstream_cache_status;
        }
        location ~ /purge(/.*) { return 403; }
        location ~* \.(?:css|js|png|ico|jpg)$ { expires max; log_not_found off; access_log off;
        add_header Pragma public; }
        location = /xmlrpc.php { deny all; error_page 403 =444 /; }
        location ~* /(?:uploads|files)/.*\.php$ { deny all; }
        """,
        [
            "GET /2026/post/",
            "GET /2026/post/",
            "GET /2026/post/?a=b",
            "GET /2026/post/ | Cookie: wordpress_logged_in_x=1",
            "POST /2026/post/ | Content-Length: 3\r\n\r\na=b",
            "HEAD /2026/post/",
            "GET /purge/2026/",
            "GET /css/site.css | Accept-Encoding: gzip",
            "GET /uploads/bad.php",
            "GET /readme.md/index.php",
            "GET /none.php",
        ],
    ),
    (
        "nextcloud-sub",
        r"""
        location ^~ /nextcloud {
            client_max_body_size 512M; fastcgi_buffers 64 4K;
            add_header X-Robots-Tag "noindex" always;
            location = /nextcloud { rewrite ^ /nextcloud/index.php last; }
            location /nextcloud { rewrite ^/nextcloud(.*)$ /nextcloud/index.php$request_uri last; }
            location ~ ^\/nextcloud\/(?:build|tests|config|lib|3rdparty|templates|data)\/ {
                deny all; }
            location ~ ^\/nextcloud\/(?:index|remote|public|cron|status)\.php(?:$|\/) {
                fastcgi_split_path_info ^(/nextcloud/.+?\.php)(\/.*|)$;
                set $path_info $fastcgi_path_info; include @DIR@/fastcgi.conf;
                fastcgi_param SCRIPT_FILENAME @DIR@/applications/index.php;
                fastcgi_param PATH_INFO $path_info; fastcgi_param front_controller_active true;
                fastcgi_pass @PHPA@; fastcgi_intercept_errors on; fastcgi_request_buffering off;
            }
            location ~ ^\/nextcloud\/.+\.(?:css|js|svg)$ {
                try_files $uri /nextcloud/index.php$request_uri; access_log off; }
        }
        """,
        [
            "GET /nextcloud",
            "GET /nextcloud/apps/files?dir=/",
            "GET /nextcloud/data/x",
            "GET /nextcloud/index.php/apps/a.css/../b",
            "GET /nextcloud/core/none.css?v=1",
            "PROPFIND /nextcloud/remote.php/dav/a%2fb | Depth: 0",
        ],
    ),
    (
        "drupal-multi",
        r"""
        location ~ \..*/.*\.php$ { return 403; }
        location ~ ^/sites/.*/private/ { return 403; }
        location ~ (^|/)\. { return 403; }
        location / { try_files $uri /index.php?$query_string; }
        location @rewrite { rewrite ^ /index.php; }
        location ~ /vendor/.*\.php$ { deny all; return 404; }
        location ~ '\.php$|^/update.php' {
            fastcgi_split_path_info ^(.+?\.php)(|/.*)$; try_files $fastcgi_script_name =404; @FCGI@
            fastcgi_param QUERY_STRING $query_string; fastcgi_param PATH_INFO $fastcgi_path_info;
        }
        location ~* \.(js|css|png|jpg|jpeg|gif|ico|svg)$ { try_files $uri @rewrite; expires max;
        log_not_found off; }
        location ~ ^(/[a-z\-]+)?/system/files/ { try_files $uri /index.php?$query_string; }
        if ($request_uri ~* "^(.*/)index\.php/(.*)") { return 307 $1$2; }
        """,
        [
            "GET /node/1?a=b&c",
            "GET /index.php/node/1?x",
            "GET /update.php/selection",
            "GET /a.b/c.php",
            "GET /none.css",
            "GET /de/system/files/x.pdf",
            "GET /.git/config",
            "GET /index.php",
        ],
    ),
    (
        "cms",
        r"""
        error_page 404 = /index.php?q=$request_uri; error_page 403 /403.html;
        location = /403.html { internal; return 403 "no $uri $request_uri\n"; }
        location ~ \.php(/|$) {
            fastcgi_split_path_info ^(.+?\.php)(/.*)?$; fastcgi_intercept_errors on; @FCGI@
            fastcgi_param PATH_INFO $fastcgi_path_info if_not_empty; fastcgi_param HTTP_PROXY "";
            fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name;
            fastcgi_index index.php;
            fastcgi_hide_header X-Powered-By; fastcgi_next_upstream error;
        }
        location /admin/ { auth_basic "Admin $host"; auth_basic_user_file @DIR@/users;
        location ~ \.php$ { @FCGI@ } }
        location /conf/ { deny all; }
        location ~* "^/theme/(.+)\.[0-9a-f]{8}\.(css|js)$" { try_files /theme/$1.$2 =404;
        expires 1y; }
        rewrite ^/old/(\d+)/?$ /index.php?id=$1&old=1? permanent;
        rewrite ^/([a-z]+)-([0-9]+)\.html$ /index.php?section=$1&id=$2 last;
        rewrite "^/t/([0-9]{2,4})$" /index.php/$1/%20 break;
        """,
        [
            "GET /news-12.html?a=%20",
            "GET /old/7?x=y",
            "GET /t/123",
            "GET /none/there",
            "GET /admin/ | Authorization: Basic cGxhaW46cHc=",
            "GET /admin/index.php",
            "GET /conf/local.php.bak",
            "GET /theme/style.0123abcd.css",
            "GET /none.php/x",
            "GET /index.php%2fx/y",
            "GET /index.php/%2e%2e/x",
            "GET /say.php",
        ],
    ),
    # What is kept has a length here.
    lengths="any",
)
