"""Owns: recipes that people publish for one wish each, put together as their sites have them."""

from ..site import http

ECHO = "proxy_pass http://@ORIGIN@;"


def recipe(name: str, maps: str, inside: str, cases: list[str]) -> None:
    """A server with the tree of files, whose access log is compared as well."""
    http(
        f"recipe: {name}",
        f"""
        log_format r '$request_uri|$status|$uri|$args|$http_referer|$upstream_status';
        access_log @LOGS@/access.log r; error_log @LOGS@/error.log warn;
        {maps}
        server {{
            listen 127.0.0.1:@P0@; server_name localhost www.example.com; root @DIR@/www;
            {inside}
        }}
        """,
        cases,
        log=True,
        errors=True,
    )


recipe(
    "wordpress multisite in directories",
    "map $uri $blogname { ~^(?P<blogpath>/[^/]+/)files/(.*) $blogpath; }\n"
    "map $blogname $blogid { default -999; /dir/ 7; }",
    r"""
    index index.php index.html;
    location ~ ^(/[^/]+/)?files/(.+) {
        try_files /list/$2 /wp-content/blogs.dir/$blogid/files/$2 /other/x.txt; access_log off;
        log_not_found off; expires max; add_header X-Blog $blogid$1;
    }
    location ^~ /blogs.dir { internal; alias @DIR@/www/list; expires max; }
    if (!-e $request_filename) {
        rewrite /wp-admin$ $scheme://$host$uri/ permanent;
        rewrite ^(/[^/]+)?(/wp-.*) $2 last;
        rewrite ^(/[^/]+)?(/.*\.php) $2 last;
    }
    location / { try_files $uri $uri/ /hello.txt?$args; }
    location ~ \.php$ { """
    + ECHO
    + r""" }
    location ~* /(?:uploads|files)/.*\.php$ { deny all; }
    """,
    [
        f"GET {path}"
        for path in ("/dir/files/a.txt", "/dir/files/x.php", "/files/none", "/no/files/a.txt")
        + ("/blog/wp-admin", "/blog/wp-login.php?a=b", "/wp-admin", "/wp-includes/x.js")
        + ("/blogs.dir/a.txt", "/dir/", "/dir", "/blog/sub/x.php/y?z", "/uploads/x.php", "/a b")
    ],
)
recipe(
    "pages that a plugin kept, chosen by ifs",
    "map $http_cookie $skip { default ''; ~*wordpress_logged_in 1; ~*comment_author_ 1; }",
    r"""
    set $cache_uri $request_uri;
    if ($request_method = POST) { set $cache_uri 'null cache'; }
    if ($query_string != "") { set $cache_uri 'null cache'; }
    if ($request_uri ~* "(/wp-admin/|/xmlrpc.php|/feed/|sitemap(_index)?.xml)") {
        set $cache_uri 'null cache';
    }
    if ($skip) { set $cache_uri 'null cache'; }
    location / {
        try_files /$cache_uri/index.html $cache_uri/index.html $uri @app;
        add_header X-Uri "$cache_uri" always;
    }
    location @app { """
    + ECHO
    + r""" proxy_set_header X-Uri $cache_uri; add_header X-App $cache_uri; }
    """,
    [
        "GET /dir",
        "GET /dir/",
        "GET /dir/?a",
        "GET /dir/ | Cookie: wordpress_logged_in_x=1",
        "GET /dir/feed/",
        "GET /hello.txt",
        "GET /hello.txt?",
        "GET /none%20here",
        "POST /dir/ | Content-Length: 0",
        "GET //other//",
    ],
)
recipe(
    "redirects by a map, by names and by the spelling of an address",
    r"""
    map $request_uri $target {
        default ''; /old /new; ~^/blog/(?<slug>[^/?]+)/?(\?(?<query>.*))?$ /posts/$slug;
        "~*^/PRODUCT\.php\?id=(\d+)" /shop/$1; /to https://other.example/; /empty "";
    }
    map $host $canonical { default www.example.com; localhost ''; www.example.com ''; }
    map $query $q { '' ''; default ?$query; }
    """,
    r"""
    port_in_redirect off;
    if ($canonical) { return 301 https://$canonical$request_uri; }
    if ($target) { return 301 $target$q; }
    rewrite ^/(.*)/index\.html$ /$1/ permanent;
    rewrite ^(/[^.]*[^/])$ $1/ permanent;
    location ~ ^(?<stem>/.+)\.html$ { if ($request_uri ~ ^/(.*)\.html(\?|$)) { return 302 /$1; } }
    location / { try_files $uri $uri.html $uri/ =404; }
    location ~ [A-Z] { add_header X-Upper $uri always; return 404; }
    """,
    [
        "GET /old",
        "GET /old?a",
        "GET /blog/a-b/",
        "GET /blog/a%20b?x=y&z",
        "GET /blog/?x",
        "GET /product.php?id=12&x",
        "GET /to",
        "GET /empty",
        "GET /dir/index.html",
        "GET /dir/index.html?q=1",
        "GET /a/b",
        "GET /page.html?x",
        "GET /page.html",
        "GET /UPPER.TXT",
        "GET /Dir/",
        "GET /x?y | Host: example.com",
        "GET /x?y | Host: EXAMPLE.com:8080",
        "GET /hello.txt | Host: www.example.com.",
    ],
)
recipe(
    "files in newer formats where the client takes them",
    r"""
    map $http_accept $webp { default ''; "~*image/webp" .webp; }
    map $http_accept $avif { default $webp; "~*image/avif(?!;q=0)" .avif; }
    map $sent_http_content_type $age { default off; text/html epoch; ~image/ max; ~text/ 1h; }
    """,
    r"""
    expires $age;
    location ~* ^(?<name>.+)\.(?<end>jpe?g|png|txt)$ {
        add_header Vary Accept; add_header X-Tried $name$avif$webp;
        try_files $name.$end$avif $name$webp $name.$end =404;
    }
    location ~* \.(svg|css)$ { add_header Cache-Control "public, immutable"; }
    """,
    [
        f"GET {path} | Accept: {accept}"
        for path in ("/photo.jpg", "/pre.txt", "/none.png", "/icon.svg", "/page.html")
        for accept in ("image/webp,*/*", "image/avif,image/webp", "image/avif;q=0", "*/*")
    ],
)
recipe(
    "who may link to pictures, and from where scripts may ask",
    r"""
    map $http_origin $cors {
        default ''; "~^https://([a-z]+\.)?example\.com(:\d+)?$" $http_origin; null null;
    }
    """,
    r"""
    location /list/ {
        valid_referers none blocked server_names *.example.com example.* ~\.google\.
            example.org/list/;
        if ($invalid_referer) { return 403; }
        if ($invalid_referer = "") { set $linked yes; }
        add_header X-Linked $linked;
    }
    location /api/ {
        if ($request_method = OPTIONS) {
            add_header Access-Control-Allow-Origin $cors; add_header Access-Control-Max-Age 600;
            add_header Access-Control-Allow-Headers $http_access_control_request_headers;
            add_header Content-Type text/plain; return 204;
        }
        if ($cors = '') { return 403 "no\n"; }
        add_header Access-Control-Allow-Origin $cors always; add_header Vary Origin always;
        proxy_hide_header Access-Control-Allow-Origin;
        """
    + ECHO
    + "}",
    [
        f"GET /list/a.txt | Referer: {referer}"
        for referer in ("http://www.example.com/x", "https://example.net/", "http://localhost/")
        + ("about:blank", "x", "http://a.google.com/", "http://example.org/list/x")
        + ("http://example.org/other", "http://EXAMPLE.COM", "ftp://www.example.com/", "")
    ]
    + ["GET /list/a.txt"]
    + [
        f"{method} /api/x | Origin: {origin} | Access-Control-Request-Headers: x, y"
        for method in ("OPTIONS", "GET", "DELETE")
        for origin in ("https://a.example.com", "https://example.com:8443", "http://x", "null")
    ],
)
recipe(
    "two versions of a site, a cookie that remembers, and a switch",
    r"""
    split_clients "${arg_ip}AAA" $drawn { 30% b; 50% c; * a; }
    map $cookie_version $version { default $drawn; ~^[abc]$ $cookie_version; }
    map $version $folder { a dir; b other; c second; }
    map $arg_x$http_x_canary $group { default http://@ORIGIN@/a; ~on http://@ORIGIN@/canary; }
    """,
    r"""
    location / {
        add_header Set-Cookie "version=$version; Path=/; Max-Age=60" always;
        root @DIR@/www/$folder; index index.html second.html; try_files $uri $uri/ =404;
    }
    location /app { proxy_pass $group$request_uri; proxy_redirect off; }
    """,
    [f"GET /?ip={ip}" for ip in range(12)]
    + [f"GET / | Cookie: version={version}" for version in ("a", "b", "c", "d", "ab", "")]
    + ["GET /file.txt | Cookie: x=y; version=a", "GET /app/x?y", "GET /app?x=on"]
    + ["GET /app/%20x | X-Canary: only"],
)
recipe(
    "a sign-on before everything, with its page and its fields",
    "map $request_uri $verdict { default 1; ~said=(?<said>[0-9a-f]+) $said; }",
    r"""
    error_page 401 = @login; error_page 403 /errors/denied.txt;
    location / {
        auth_request /auth; auth_request_set $user $upstream_http_x_user;
        auth_request_set $renewed $upstream_http_set_cookie;
        add_header Set-Cookie $renewed; proxy_set_header X-User $user; """
    + ECHO
    + r"""
    }
    location = /auth {
        internal; proxy_pass http://@ORIGIN@/raw/$verdict; proxy_pass_request_body off;
        proxy_set_header Content-Length ""; proxy_set_header X-Original-URI $request_uri;
    }
    location @login { return 302 /signin?rd=$scheme://$http_host$request_uri; }
    location /signin { auth_request off; """
    + ECHO
    + r""" }
    location /errors/ { auth_request off; }
    location ~ \.css$ { auth_request off; expires 1d; }
    """,
    [
        f"{method} /x?said=" + f"HTTP/1.1 {status} S\r\n{fields}\r\n".encode().hex() + rest
        for method, rest in (("GET", ""), ("POST", "&a | Content-Length: 0"))
        for status in (200, 204, 401, 403, 302, 500)
        for fields in ("", "X-User: a b\r\nSet-Cookie: s=1\r\nSet-Cookie: t=2\r\n")
    ]
    + ["GET /signin?x", "GET /style.css", "GET /auth", "GET /errors/404.html"],
)
recipe(
    "closed for repairs by a file, but for some",
    r"""
    geo $maintainer { default 0; 127.0.0.0/8 1; 10.0.0.0/8 1; }
    map $maintainer$http_x_pass $closed { default 1; 1secret 0; ~^1show 2; }
    """,
    r"""
    error_page 503 @closed; error_page 404 /errors/404.html; recursive_error_pages on;
    set $down $closed;
    if (-f $document_root/none) { set $down 0; }
    if ($uri ~ ^/(errors|status)) { set $down 0; }
    if ($down = 1) { return 503; }
    if ($down = 2) { return 503 "back soon\n"; }
    location @closed {
        add_header Retry-After 600 always; add_header Cache-Control no-store always;
        rewrite ^(.*)$ /errors/50x.html break;
    }
    location = /status { default_type application/json; return 200 '{"up":true}'; }
    location /errors/ { internal; }
    location / { try_files $uri $uri/ =404; }
    """,
    [
        f"{method} {path} | X-Pass: {word}"
        for method in ("GET", "HEAD", "POST")
        for path in ("/", "/hello.txt", "/none", "/errors/404.html", "/status")
        for word in ("secret", "show", "no")
    ],
)
recipe(
    "a bucket behind a site, with errors and fields of its own",
    "",
    r"""
    location ~ ^/media/(?<key>.*)$ {
        proxy_pass http://@ORIGIN@/raw/$key; proxy_set_header Host bucket.example;
        proxy_set_header Authorization ""; proxy_set_header Cookie "";
        proxy_hide_header x-amz-id-2; proxy_hide_header Set-Cookie; proxy_ignore_headers
        Set-Cookie Cache-Control; proxy_intercept_errors on; error_page 403 404 =404 /none;
        error_page 500 502 =200 @spare; limit_except GET HEAD { deny all; }
        add_header Cache-Control "public, max-age=31536000" always; proxy_redirect
        http://bucket.example/ /media/;
    }
    location @spare { try_files /photo.jpg =500; }
    """,
    [
        f"{method} /media/"
        + (
            f"HTTP/1.1 {status} S\r\nx-amz-id-2: a\r\nSet-Cookie: a=b\r\n"
            f'Location: http://bucket.example/k\r\nETag: "e"\r\nContent-Length: 0\r\n\r\n'
        )
        .encode()
        .hex()
        for method in ("GET", "HEAD", "PUT")
        for status in (200, 206, 301, 403, 404, 416, 500)
    ],
)
recipe(
    "robots to another renderer, old browsers to a notice",
    r"""
    map $http_user_agent $is_robot { default 0; "~*(googlebot|bingbot|slackbot)" 1; "" 2; }
    map $uri $is_file { default 0; "~*\.(js|css|xml|txt|png|ico)$" 1; }
    map $is_robot$is_file$arg__escaped_fragment_ $rendered { default 0; ~^10 1; "~^00./?" 1; }
    """,
    r"""
    if ($http_user_agent ~ "MSIE [1-9]\.") { rewrite ^ /fallback.html break; }
    location / {
        if ($rendered) { rewrite .* /render/http://$host$request_uri? last; }
        try_files $uri $uri/ /index.html;
    }
    location /render/ { rewrite ^/render/(.*)$ /$1 break; """
    + ECHO
    + "}",
    [
        f"GET {path} | User-Agent: {agent}"
        for path in ("/app/x?y=1&z", "/hello.txt", "/?_escaped_fragment_=a", "/dir/", "/%C3%A9")
        for agent in ("Googlebot/2.1", "Mozilla/5.0 (MSIE 9.0)", "curl/8")
    ]
    + ["GET /app"],
)
recipe(
    "a webroot for certificates, all else to the secure site",
    "map $https $hsts { default ''; on 'max-age=63072000'; }",
    r"""
    add_header Strict-Transport-Security $hsts always;
    location ^~ /.well-known/acme-challenge/ {
        default_type text/plain; root @DIR@/www/list; try_files /B.txt$uri /$arg_token =404;
        auth_basic off; allow all;
    }
    location = /.well-known/security.txt { return 200 "Contact: a@b\n"; }
    location = /.well-known/change-password { return 302 /account?tab=password&from=$uri; }
    location ~ /\.ht { deny all; }
    location ~ /\.(?!well-known(/|$)) { return 404; }
    location / { return 308 https://$server_name:8443$request_uri; }
    """,
    [
        f"{method} {path}"
        for method in ("GET", "POST")
        for path in ("/.well-known/acme-challenge/x", "/.well-known/acme-challenge/x?token=a.txt")
        + ("/.well-known/security.txt", "/.well-known/change-password?a", "/.well-known", "/.htx")
        + ("/.git/config", "/a/.well-known/x", "/a?b#c", "/%2e%2e/x", "/.well-known/", "/a/.b")
    ],
)
recipe(
    "sockets beside pages of one application",
    r"""
    map $http_upgrade $connection_upgrade { default upgrade; '' close; }
    map $http_x_forwarded_proto $proto { default $scheme; ~^https?$ $http_x_forwarded_proto; }
    map $http_x_forwarded_for $chain { default "$http_x_forwarded_for, $remote_addr"; '' me; }
    upstream app { server 127.0.0.1:9 max_fails=0; server @ORIGIN@ backup; keepalive 4; }
    upstream hashed { hash $arg_k consistent; server @ORIGIN@ weight=3; server 127.0.0.1:9 down; }
    """,
    r"""
    proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade; proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-Proto $proto; proxy_set_header X-Forwarded-For $chain;
    proxy_set_header X-Request-Start "t=0"; proxy_set_header X-Empty "";
    location / { proxy_pass http://app; }
    location /socket.io/ { proxy_pass http://hashed; proxy_buffering off; proxy_read_timeout 1d; }
    location ^~ /assets/ { alias @DIR@/www/; gzip_static on; expires max; etag off; }
    location @app { proxy_pass http://app; }
    location ~ ^/(?<tenant>[a-z]+)-app(?<rest>/.*)?$ {
        proxy_pass http://app$rest$is_args$args; proxy_set_header X-Tenant $tenant;
        proxy_cookie_path / /$tenant-app/; proxy_cookie_flags ~ httponly samesite=lax;
    }
    """,
    [
        f"GET {path}{fields}"
        for path in ("/x?y", "/socket.io/?k=1&t=2", "/shop-app/a%20b?c", "/shop-app", "/shop-app?x")
        for fields in (
            "",
            " | Upgrade: websocket | Connection: Upgrade",
            " | X-Forwarded-Proto: https | X-Forwarded-For: 192.0.2.1",
            " | X-Forwarded-Proto: httpsx | Upgrade: h2c",
        )
    ]
    + ["GET /assets/pre.txt | Accept-Encoding: gzip", "GET /assets/", "GET /assets/dir"]
    + ["GET /shop-app/raw/" + b"HTTP/1.1 200 O\r\nSet-Cookie: a=b; Path=/\r\n\r\n".hex()],
)
recipe(
    "limits in two steps, with some that are never limited",
    r"""
    geo $is_known { default 0; 127.0.0.1 0; 192.0.2.0/24 1; }
    map $is_known$http_x_key $limited { default $binary_remote_addr; ~^1 ''; 0gold ''; }
    limit_req_zone $limited zone=slow:1m rate=1r/m; limit_req_zone $uri zone=each:1m rate=6r/m;
    limit_req_status 429; limit_conn_zone $server_name zone=all:1m;
    """,
    r"""
    error_page 429 = @slow;
    location @slow { add_header Retry-After 60 always; return 429 "slow down\n"; }
    location /login { limit_req zone=slow burst=2 nodelay; limit_req zone=each burst=1 nodelay;
        limit_conn all 5; return 200 "$limit_req_status\n"; }
    location /dry { limit_req zone=slow; limit_req_dry_run on; add_header X-L $limit_req_status;
        try_files /hello.txt =404; }
    """,
    ["GET /login/a", "GET /login/a", "GET /login/a", "GET /login/b", "GET /login/c"]
    + ["GET /login/a | X-Key: gold", "GET /login/d | X-Key: gold", "GET /dry", "GET /login/e"],
)
recipe(
    "an old application below a path, its pages rewritten",
    "",
    r"""
    location = /legacy { return 301 $scheme://$http_host/legacy/$is_args$args; }
    location /legacy/ {
        proxy_pass http://@ORIGIN@/app/; proxy_redirect ~^http://[^/]+/app(/.*)$ /legacy$1;
        proxy_redirect /app/ /legacy/; proxy_set_header Accept-Encoding "";
        sub_filter 'href="/app/' 'href="/legacy/'; sub_filter "Host: " "Place: ";
        sub_filter_once off; sub_filter_types text/plain; proxy_cookie_domain ~(.*) $host;
        proxy_set_header X-Script-Name /legacy; proxy_pass_header Server;
    }
    location ~* ^/legacy/(.+\.(?:css|js))$ { proxy_pass http://@ORIGIN@/static/$1?v=$arg_v; }
    location ~ ^/go/(https?):/+([^/]+)(/.*)?$ { return 307 $1://$2$3; }
    """,
    [
        f"{method} {path}"
        for method in ("GET", "HEAD")
        for path in ("/legacy", "/legacy?a=b", "/legacy/", "/legacy/x/../y", "/legacy/a.css?v=1")
        + ("/legacy/%2e/a%20b.js", "/go/https://x.test/a", "/go/http:/x", "/legacy/.%2e/x")
    ]
    + ["POST /legacy/form | Content-Length: 0"],
)
