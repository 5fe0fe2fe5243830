"""Owns: what surprises administrators of nginx, and what they write around it."""

from ..site import http, server

NAMES = ("/app", "/sub", "/twice", "/named", "/plain", "/again", "/deep", "/re", "/rf")
http(
    "pitfalls: what try_files makes of variables under an alias",
    r"""
    server {
        listen 127.0.0.1:@P0@; root @DIR@/other;
        location /app { alias @DIR@/www; try_files $uri $uri/ /app/index.html?$args; }
        location /sub/ { alias @DIR@/www/; try_files $uri $uri/ /sub/none.html?$args; }
        location /twice/ { alias @DIR@/www/; try_files $uri /twice//twice/hello.txt?$query_string; }
        location /named { alias @DIR@/www; try_files $uri $uri/ @x; }
        location /plain/ { alias @DIR@/www/; try_files $uri $uri/index.html /plain/index.html; }
        location /again { alias @DIR@/www/dir; try_files $uri$is_args /again$uri; }
        location /deep/ { alias @DIR@/www/a/b/; try_files $uri.txt /deep/f.html?x=$uri; }
        location ~ ^/re(/.*)$ { alias @DIR@/www$1; try_files $uri "" /index.html?p=$1; }
        location ~ ^/rf(/.*)$ { alias @DIR@/www; try_files $1 /fallback.html?p=$1; }
        location @x { return 200 "x $uri $args"; }
        location / { return 200 "root $uri|$args|$request_filename|$document_root"; }
    }
    """,
    [
        f"GET {name}{rest}"
        for name in NAMES
        for rest in ("/", "/none?a=b", "/hello.txt", "/dir", "/c", "x")
    ],
    errors="info",
    open=True,
    log=True,
)
server(
    "pitfalls: charsets of files that leave as redirects",
    r"""
    charset koi8-r;
    location /found { error_page 405 =302 /page.html; error_page 404 =303 /page.html; }
    location /moved { error_page 404 =301 /errors/404.html; }
    location /recoded { charset utf-8; error_page 404 =302 /errors/404.html; }
    location = /page.html { add_header X-Type $sent_http_content_type always; }
    """,
    [
        "POST /found/x | Content-Length: 0",
        "GET /found/x",
        "GET /moved/x",
        "GET /recoded/x",
        "HEAD /moved/x",
    ],
    open=True,
)
server(
    "pitfalls: steps upwards that stay below the root",
    r"""
    rewrite_log on;
    location / { try_files $uri /dir/file.txt$request_uri; }
    location /up { rewrite ^/up(.*)$ /dir/x/..$1 last; }
    location /dir/ { try_files $uri /a/x/../b/c.txt?$uri; }
    location /files { rewrite ^/files/(.*)$ /dir/../dir/$1 break; }
    location /far { rewrite ^/far/(.*)$ /../www/$1 break; }
    location /php { rewrite ^ /env.php$request_uri last; }
    location ~ \.php(/|$) {
        root @DIR@/app; fastcgi_split_path_info ^(.+?\.php)(/.*)$;
        try_files $fastcgi_script_name =404;
        include @DIR@/fastcgi.conf; fastcgi_param PATH_INFO $fastcgi_path_info;
        fastcgi_pass @PHPA@;
    }
    """,
    [
        "GET /none/../x",
        "GET /up/file.txt",
        "GET /up/none",
        "GET /dir/none",
        "GET /files/file.txt",
        "GET /far/hello.txt",
        "GET /php/a/../b/./c?d",
        "GET /php/%2e%2e/b",
        "GET /env.php/x/../y",
    ],
    open=True,
)

CAPTURED = """
server_name ~^(?<http_tenant>\\w+)[.]example[.]com$;
location ~ ^/j/(?<http_token>[^/]+) {
    if ($http_token != secret) { return 403; } return 200 "$http_token";
}
location ~ ^/item/(?<arg_id>\\d+)$ { return 200 "$arg_id|$args"; }
location ~ ^/k/(?<cookie_k>.+) { return 200 "$cookie_k"; }
location ~ ^/q/(?<args>.+) { return 200 "$args|$arg_a|$query_string"; }
location ~ ^/l/(?<limit_rate>.+) { return 200 "$limit_rate"; }
location ~ ^/p/(?<proxy_host>.+) { return 200 "$proxy_host"; }
location ~ ^/s/(?<Ssl_Protocol>.+) { return 200 "$ssl_protocol"; }
location ~ ^/w/(?<sent_http_x>.+)/(?<upstream_cookie_y>.+) {
    return 200 "$sent_http_x|$upstream_cookie_y";
}
location /set { set $http_x 1; set $ssl_cipher 2; return 200 "$http_x|$ssl_cipher"; }
location / {
    return 200 "$http_tenant|$http_token|$arg_id|$cookie_k|$limit_rate|$http_x|$ssl_cipher|$args";
}
"""
SENT = "Tenant: victim|Token: secret|Cookie: k=v|X: y"
http(
    "pitfalls: groups of expressions with the names of fields, arguments and cookies",
    f"""
    server {{ listen 127.0.0.1:@P0@; return 200 other; }}
    server {{ listen 127.0.0.1:@P0@; {CAPTURED} }}
    """,
    [
        f"GET {target} | Host: {host}|{SENT}"
        for target in (
            "/j/wrong",
            "/j/secret",
            "/item/5?id=666&b=c",
            "/k/a",
            "/q/b?a=1",
            "/l/5",
            "/p/h",
            "/s/x",
            "/w/a/b",
            "/set",
            "/?id=3&a=4",
        )
        for host in ("acme.example.com", "unknown.test")
    ],
    errors=True,
)
server(
    "pitfalls: the URL that an upstream gets after try_files and set",
    r"""
    location /dir { try_files $uri $uri/index.html $uri/file.txt =404; proxy_pass http://@ORIGIN@; }
    location /uri { try_files $uri $uri/ /hello.txt =404; proxy_pass http://@ORIGIN@/u/; }
    location /other { try_files /hello.txt =404; proxy_pass http://@ORIGIN@; }
    location /last { try_files /none /dir?fixed=1; }
    location /named { try_files /none @named; }
    location @named { try_files /hello.txt =404; proxy_pass http://@ORIGIN@; }
    location /broken {
        rewrite ^ /broken/x break; try_files /hello.txt =404; proxy_pass http://@ORIGIN@;
    }
    location /page { error_page 404 /other/page; return 404; }
    location /same { set $args $args; proxy_pass http://@ORIGIN@; }
    location /clean { set $args $arg_a; proxy_pass http://@ORIGIN@; }
    """,
    [
        f"GET {target}"
        for target in (
            "/dir",
            "/dir/?x=1",
            "/dir//?x",
            "/d%69r",
            "/uri",
            "/uri/?a",
            "/other",
            "/other?a=%41",
            "/other/a%2Fb//c",
            "/last",
            "/named/a%2Fb",
            "/broken/%41",
            "/page?x",
            "/same/a%2Fb//c",
            "/same/../same/x",
            "/same?",
            "/same/x?a=1",
            "/clean/a%2Fb?a=1",
            "/clean?b=1",
        )
    ],
    open=True,
)
