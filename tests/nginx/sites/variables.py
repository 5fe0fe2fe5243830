"""Owns: configurations about what variables are worth, and mistakes with their names."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import http, server

# What one answer tells.
ALL = (
    "|ph=[$proxy_host]|pp=[$proxy_port]|xff=[$proxy_add_x_forwarded_for]|"
    "fsn=[$fastcgi_script_name]|fpi=[$fastcgi_path_info]|gr=[$gzip_ratio]|"
    "ua=[$upstream_addr]|us=[$upstream_status]|ucs=[$upstream_cache_status]|"
    "irp=[$is_request_port]|rp=[$request_port]|sa=[$server_addr]|sp=[$server_port]|"
    "pipe=[$pipe]|st=[$status]|cr=[$connection_requests]|http2=[$http2]|http3=[$http3]|"
    "https=[$https]|hn=$hostname|tcp=[$tcpinfo_rcv_space]slp=[$ssl_protocol]|"
    "slr=[$limit_req_status]|slc=[$limit_conn_status]|ir=[$invalid_referer]|"
    "rr=$realpath_root|dr=$document_root|sl=[$secure_link]|ppa=[$proxy_protocol_addr]|"
    "rra=$realip_remote_addr|scn=[$sent_http_connection]|rbf=[$request_body_file]|"
    "rb=[$request_body]|ra=$remote_addr|uct=[$upstream_connect_time]|"
    "uht=[$upstream_header_time]|urt=[$upstream_response_time]|"
    "url=[$upstream_response_length]|ubr=[$upstream_bytes_received]|"
    "uh=[$upstream_http_x]|uc=[$upstream_cookie_x]|"
    "arg=[$arg_a][$arg_A][$arg_a_b][$arg_a-b][${arg_a}b][$arg_][$arg_x]|"
    "c=[$cookie_c][$cookie_C][$cookie_a_b][$cookie_]|"
    "hx=[$http_x][$http_X][$http_x_y][$http_host][$http_cookie][$http_user_agent]"
    "[$http_referer][$http_via][$http_x_forwarded_for][$http_connection]"
    "[$http_content_length][$http_content_type][$http_accept][$http_authorization]"
    "[$http_te][$http_transfer_encoding][$http_if_none_match][$http_range][$http_upgrade]"
    "[$http_][$http_expect][$http_keep_alive]|"
    "gr"
)
http(
    "variables all over",
    r"""
        log_format v
            'conn=$connection_requests pipe=$pipe rate=$limit_rate status=$status '
            'bs=$body_bytes_sent bytes=$bytes_sent len=$request_length uri=$uri args=[$args] '
            'isargs=[$is_args] reqfile=$request_filename rb=[$request_body] '
            'rbf=[$request_body_file] host=$host ip=$remote_addr user=[$remote_user] '
            'ruri=$request_uri req=[$request] rm=$request_method sp=$server_protocol '
            'ct=[$content_type]';
        access_log @LOGS@/access.log v;
        server {
            listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;
            access_log @LOGS@/access.log v;
            location / {
                return 200 "@ALL@";
            }
            location /set {
                set $args "new=1&a=2"; set $limit_rate 5k;
                return 200 "$args|$is_args|$arg_a|$arg_new|$query_string|$request_uri|$uri|$limit_rate|$request";
            }
            location /lr { limit_rate 10k; return 200 "$limit_rate"; }
            location /lr2 {
                limit_rate 1m; set $x $limit_rate; limit_rate_after 5; return 200 $limit_rate$x;
            }
            location /setargs0 { set $args ""; return 200 "$args|$is_args|$query_string|$arg_a"; }
            location /rw { rewrite ^/rw(.*)$ /tgt$1?z=$1 last; }
            location /tgt { return 200 "$uri|$args|$request_uri|$document_uri"; }
            location /static/ { alias @DIR@/www/; add_header Allow "GET, HEAD" always; }
        }
    """.replace("@ALL@", ALL),  # noqa: E501
    [
        "GET /",
        "GET / HTTP/1.0",
        "GET /x%20y%2fz%3f%23/../w?a=1&A=2&a_b=3&a-b=4&=5&x",
        "GET /?a",
        "GET /?a=",
        "GET /?&a=1",
        "GET /?b=2&a=1&a=3",
        "GET /?a_b=1&a%5fb=2",
        "GET /?A=up",
        "GET /?xa=1;a=2",
        "GET /?a=1#frag",
        "GET /?a?b=c",
        "GET /?a=b=c",
        "GET /?aa=1&a=2",
        "GET /?a&a=2",
        "GET /??a=1",
        "GET / | Host: a.test:8080",
        "GET / | Host: [::1]:80",
        "GET / | Host: a.test:",
        "GET http://b.test:99/ | Host: c",
        "GET / | X: 1 | x: 2 | X-Y: 3 | X_Y: 4",
        "GET / | Cookie: c=1; C=2; a_b=3 | Cookie: c=4",
        "GET / | Cookie: c=1, c=2",
        'GET / | Cookie: c="q;z"',
        "GET / | Cookie: ;c=1",
        "GET / | Cookie: c",
        "GET / | Cookie: cc=1; c=2",
        "GET / | Cookie: xc=1;c=2;",
        "GET / | Cookie: c=",
        "GET / | Cookie: =1",
        "GET / | Cookie:",
        "GET / | Cookie: $c=1;c = 2;c=3",
        "GET / | User-Agent: a | User-Agent: b",
        "GET / | Referer: a | Referer: b",
        "GET / | Via: a | Via: b",
        "GET / | X-Forwarded-For: 1.1.1.1 | X-Forwarded-For: 2.2.2.2",
        "GET / | Accept: a | Accept: b",
        "GET / | Content-Type: a",
        "GET / | Connection: keep-alive, upgrade | Upgrade: x",
        "GET / | Authorization: Basic YTpi",
        'GET / | TE: trailers | If-None-Match: "x" | Range: bytes=0-1 | Keep-Alive: 5',
        b"POST /?p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Type: text/x\r\n\r\nhello",
        (
            b"POST /?p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
            b"0\r\n\r\n"
        ),
        (
            b"GET /?1 HTTP/1.1\r\nHost: a\r\n\r\nGET /?2 HTTP/1.1\r\nHost: a\r\n\r\n"
            b"GET /?3 HTTP/1.1\r\nHost: a\r\n\r\n"
        ),
        "GET /set",
        "GET /set?a=9",
        "GET /lr",
        "GET /lr2",
        "GET /setargs0?a=1",
        "GET /rw",
        "GET /rw/a?b=c",
        "GET /static/hello.txt",
        "GET /static/big.bin",
        "GET /static/none",
        "HEAD /static/hello.txt",
        "POST /static/hello.txt",
    ],
    log=True,
)

server(
    "roots that lead elsewhere",
    r"""
location / { return 200 "$document_root|$realpath_root|$request_filename"; }
location /link { root @DIR@/www/linkdir; return 200 "$document_root|$realpath_root"; }
location /none { root @DIR@/nowhere; return 200 "[$document_root|$realpath_root]"; }
location /rel { root www/../www; return 200 "[$document_root|$realpath_root]"; }
location /al/ {
    alias @DIR@/www/linkdir/; return 200 "[$document_root|$realpath_root|$request_filename]";
}
location /v { root @DIR@/www/$arg_d; return 200 "[$document_root|$realpath_root]"; }
location /s { root @DIR@/www/linkdir; set $x $realpath_root; return 200 $x; }
location /h { root @DIR@/nowhere; add_header X "[$realpath_root]"; return 200 x; }
location ~ /re { alias @DIR@/www/link.txt; return 200 "[$document_root|$realpath_root]"; }
location /file { root @DIR@/www/link.txt; return 200 "[$document_root|$realpath_root]"; }
location /slash { root @DIR@/www/linkdir/; return 200 "[$document_root|$realpath_root]"; }
location /if { root @DIR@/nowhere; if ($realpath_root) { return 200 yes; } return 200 no; }
""",
    [
        "GET /",
        "GET /link",
        "GET /none",
        "GET /rel",
        "GET /al/x",
        "GET /v?d=linkdir",
        "GET /v?d=none",
        "GET /v",
        "GET /s",
        "GET /h",
        "GET /re",
        "GET /file",
        "GET /slash",
        "GET /if",
    ],
    errors=True,
)
for text in (
    "map;",
    "map a b;",
    "map $a b {}",
    "map $a $b;",
    "map $a $b { x y z; }",
    "map $a $b { x; }",
    "map $arg_a $b { x y; x z; }",
    "map $arg_a $b { default a; default b; }",
    "map $arg_a $b { hostnames; hostnames; a b; }",
    "map $arg_a $b { volatile; a b; }",
    "map $arg_a $b { volatile x; }",
    "map $arg_a $b { hostnames x y; }",
    "map $arg_a $b { ~( x; }",
    "map $arg_a $b { ~ x; }",
    'map $arg_a $b { "" x; }',
    "map $arg_a $b { ~*^(?<n>.*)$ $n; }",
    "map $arg_a $b { a $nothing; }",
    "map $nothing $b { a b; }",
    "map $arg_a $uri { a b; }",
    "map $arg_a $http_x { a b; }",
    "map $arg_a $args { a b; }",
    "map $arg_a $limit_rate { a b; }",
    "map $arg_a $host { a b; }",
    "map $arg_a $b { a b; } map $arg_a $b { c d; }",
    "map $arg_a $arg_b { a b; }",
    "map $arg_a $cookie_b { a b; }",
    "map $arg_a $sent_http_b { a b; }",
    "map $arg_a $upstream_http_b { a b; }",
    "map $arg_a $1 { a b; }",
    "map $1 $b { a b; }",
    "map $arg_a $b { *.x.com 1; .x.com 2; hostnames; }",
    "map $arg_a $b { hostnames; *.x.com 1; .x.com 2; }",
    "map $arg_a $b { hostnames; .x.com 1; x.com 2; }",
    "map $arg_a $b { hostnames; x.* 1; x.* 2; }",
    "map $arg_a $b { hostnames; *x 1; }",
    "map $arg_a $b { hostnames; x.*.y 1; }",
    "map $arg_a $b { \\default 1; }",
    'map $arg_a $b { "\\~x" 1; }',
    "map_hash_max_size x;",
    "map_hash_max_size 0;",
    "map_hash_bucket_size x;",
    "map_hash_bucket_size 64; map_hash_bucket_size 64;",
    "map $arg_a $b { a b",
    "map $arg_a $B { a b; } map $arg_b $b { c d; }",
    'map "$arg_a-x" $b { a b; }',
    "map $arg_a $proxy_host { a b; }",
    "map $arg_a $b-c { a b; }",
    "map $arg_a $ { a b; }",
):
    http_mistake(text)
for text in (
    "set $a;",
    "set a b;",
    "set $a b c;",
    "set $uri x;",
    "set $host x;",
    "set $http_x x;",
    "set $args x;",
    "set $limit_rate x;",
    "set $arg_a x;",
    "set $cookie_a x;",
    "set $1 x;",
    "set $a $nothing;",
    "set $request_uri x;",
    "set $query_string x;",
    "set $document_root x;",
    "set $remote_addr x;",
    "set $http_host x;",
    "set $sent_http_x y;",
    "set $ x;",
    'set "$a b" x;',
    "set ${a} x;",
    "set $status 1;",
    "set $is_args 1;",
    "set $upstream_http_x 1;",
    "set $sent_trailer_x 1;",
    "set $proxy_protocol_tlv_x 1;",
    "set $upstream_cookie_x 1;",
    "set $upstream_trailer_x 1;",
    "set $proxy_host a;",
    "set $request_body a;",
    "set $tcpinfo_rtt a;",
    "set $realpath_root a;",
    "set $time_local a;",
    "set $A 1; set $a 2; return 200 $A$a;",
    "return 200 $;",
    "return 200 $$;",
    "return 200 ${};",
    "return 200 ${a;",
    "return 200 $-;",
    'return 200 "$ x";',
    "return 200 $0;",
    "return 200 $10;",
    "return 200 ${1};",
    "return 200 $1x;",
    "return 200 a$;",
    "return 200 $aéb;",
    "set $aéb 1;",
):
    location_mistake(text)
