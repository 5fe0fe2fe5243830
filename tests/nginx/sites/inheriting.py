"""Owns: what blocks take over from blocks around them.

Each directive stands with two values in `http`, servers, locations, nested locations and `if`,
wherever the reference allows it, and every block is asked.
"""

from collections.abc import Iterator
from typing import Any

from ..mistakes.generated import rows
from ..site import http

PLACES: dict[str, set[str]] = {}
for _row in rows():
    PLACES.setdefault(_row.name, set()).update(_row.places)

GZIP = "Accept-Encoding: gzip"
HELP = """
    location = /yes { return 204; }
    location = /no { return 403; }
    location = /set { set $u 1; return 204; }
    location @named { return 200 named; }
"""
# %(x)s is the outer value, %(y)s the inner one.
BLOCKS = """
    %(more)s %(http)s
    server {
        listen 127.0.0.1:@P0@; server_name one; root @DIR@/www; %(help)s %(server)s
        location /b/ {
            alias @DIR@/www/; %(y)s
            location /b/n/ { alias @DIR@/www/; }
            location /b/m/ { alias @DIR@/www/; %(x)s }
            location /b/i/ {
                alias @DIR@/www/;
                if ($arg_x) { %(if_x)s }
                if ($arg_z) { set $z 1; }
                if ($arg_y) { %(if_y)s }
            }
            location ~ ^/b/r/(.*)$ {
                alias @DIR@/www/$1;
                %(x)s location ~ ^/b/r/d(.*)$ { alias @DIR@/www/d$1; }
            }
        }
        location /e/ { alias @DIR@/www/; limit_except GET { %(except)s } }
    }
    server {
        listen 127.0.0.1:@P0@; server_name two; root @DIR@/www; %(help)s %(y)s
        location /a/ { alias @DIR@/www/; %(x)s }
        location /n/ { alias @DIR@/www/; }
    }
    server {
        listen 127.0.0.1:@P0@; server_name three; root @DIR@/www;
        %(help)s location /n/ { alias @DIR@/www/; %(x)s %(x2)s }
    }
"""
ASKED = [
    ("one", "/"),
    ("one", "/b/"),
    ("one", "/b/n/"),
    ("one", "/b/m/"),
    ("one", "/b/i/"),
    ("one", "/b/i/?x=1"),
    ("one", "/b/i/?y=1"),
    ("one", "/b/i/?z=1"),
    ("one", "/b/i/?x=1&y=1"),
    ("one", "/b/i/?x=1&z=1"),
    ("one", "/b/r/"),
    ("one", "/e/"),
    ("two", "/"),
    ("two", "/a/"),
    ("two", "/n/"),
    ("three", "/"),
    ("three", "/n/"),
]


def paths(path: str | list[str]) -> Iterator[tuple[str, str]]:
    """Each host with each of these paths below each of its blocks, arguments joined."""
    for host, prefix in ASKED:
        before, _, arguments = prefix.partition("?")
        for one in path if isinstance(path, list) else [path]:
            inner, _, more = one.partition("?")
            tail = "&".join(part for part in (arguments, more) if part)
            yield host, f"{before}{inner}" + (f"?{tail}" if tail else "")


def inherits(
    name: str,
    x: str,
    y: str,
    path: str | list[str] = "hello.txt",
    *fields: str,
    method: str = "GET",
    more: str = "",
    again: str = "",
    in_http: bool = True,
    **options: Any,
) -> None:
    """Compares `name` with the values `x` and `y`; what begins with a directive is whole."""

    def whole(value: str) -> str:
        if value.split()[0] in PLACES:
            return value
        return f"{name} {value.rstrip(';')};"

    def where(place: str, value: str) -> str:
        return whole(value) if place in PLACES[name] else ""

    if name not in PLACES:
        return
    text = BLOCKS % {
        "help": HELP,
        "x": where("location", x),
        "y": where("location", y),
        "x2": again,
        "more": more,
        "http": where("http", x) if in_http else "",
        "server": where("server", x) if "http" not in PLACES[name] else "",
        "if_x": where("if in location", x),
        "if_y": where("if in location", y),
        "except": where("limit_except", y) or "allow all;",
    }
    if name.startswith("g") and GZIP in fields:
        options.setdefault("lengths", "coded")
    cases = [" | ".join([f"{method} {at}", f"Host: {host}", *fields]) for host, at in paths(path)]
    if "limit_except" in PLACES[name]:
        cases.append(" | ".join(["POST /e/hello.txt", "Host: one", *fields]))
    http(" ".join(f"inherits {name} {x}".split())[:60].strip(), text, cases, **options)


inherits("add_header", "X a", "Y b", ["hello.txt", "none"])
inherits("add_header", "X a always", "X b always", ["hello.txt", "none"], again="add_header Z z;")
inherits("add_header", "X a; add_header Y $uri;", "X c; add_header_inherit merge;", ["hello.txt"])
inherits("add_header_inherit", "merge; add_header A a;", "off; add_header B b;")
inherits("add_header_inherit", "on; add_header A a;", "add_header_inherit off;")
inherits("expires", "1h", "-1", ["style.css", "none"])
inherits("expires", "max", "off", ["style.css"])
inherits("expires", "modified +1h", "epoch")
inherits("default_type", "text/a", "text/b", "noext", in_http=False)
inherits(
    "types",
    "types { text/one txt; }",
    "types { text/two css; }",
    ["hello.txt", "style.css"],
    in_http=False,
)
inherits("charset", "utf-8", "off")
inherits("charset", "koi8-r", "$arg_c", "hello.txt?c=latin1")
inherits(
    "charset_types",
    "text/css; charset utf-8;",
    "text/plain application/json",
    ["hello.txt", "style.css", "index.html", "data.json"],
)
inherits("etag", "off", "on")
inherits("etag", "on", "off")
inherits(
    "if_modified_since",
    "off",
    "before",
    "hello.txt",
    "If-Modified-Since: Wed, 15 Nov 2023 22:13:20 GMT",
)
inherits(
    "if_modified_since",
    "before",
    "exact",
    "hello.txt",
    "If-Modified-Since: Wed, 15 Nov 2023 22:13:20 GMT",
)
inherits("max_ranges", "0", "1", "digits.txt", "Range: bytes=1-2,5-6,9-9")
inherits("max_ranges", "2", "9", ["digits.txt"], "Range: bytes=1-2,50-60")
inherits("server_tokens", "off", "on", ["hello.txt", "none"])
inherits("absolute_redirect", "off", "on", "dir")
inherits("port_in_redirect", "off", "on", "dir")
inherits("server_name_in_redirect", "on", "off", "dir")
inherits("gzip", "on", "off", "page.html", GZIP)
inherits("gzip", "off", "on", "page.html", GZIP)
inherits(
    "gzip_types", "text/css; gzip on;", "text/plain", ["style.css", "pre.txt", "page.html"], GZIP
)
inherits("gzip_min_length", "100000; gzip on;", "10", "page.html", GZIP)
inherits("gzip_vary", "on; gzip on;", "off", "page.html", GZIP)
inherits("gzip_vary", "on; gzip on;", "off", "page.html")
inherits("gzip_proxied", "off; gzip on;", "any", "page.html", GZIP, "Via: 1.1 a")
inherits(
    "gzip_proxied",
    "auth; gzip on;",
    "expired no-cache",
    "page.html",
    GZIP,
    "Via: 1.1 a",
    "Authorization: Basic eDp5",
)
inherits(
    "gzip_proxied",
    "expired; gzip on; expires -1;",
    "no-cache; expires 1h;",
    ["page.html", "dir"],
    GZIP,
    "Via: 1.1 a",
)
inherits(
    "gzip_proxied",
    "no_etag private; gzip on;",
    "no_etag; etag off;",
    ["page.html", "none"],
    GZIP,
    "Via: 1.1 a",
)
inherits(
    "gzip_proxied",
    "private; add_header Cache-Control 'a, private'; gzip on;",
    "private; add_header Cache-Control a;",
    "page.html",
    GZIP,
    "Via: 1.1 a",
)
inherits("gzip_disable", "moz; gzip on;", "opera", "page.html", GZIP, "User-Agent: Opera")
inherits("gzip_disable", "moz; gzip on;", "opera", "page.html", GZIP, "User-Agent: moz")
inherits("gzip_http_version", "1.0; gzip on;", "1.1", "page.html HTTP/1.0", GZIP, "Host: one")
inherits("gzip_static", "on", "off", ["pre.txt", "onlygz.txt"], GZIP)
inherits("gzip_static", "off", "always", ["pre.txt", "onlygz.txt"])
inherits("gunzip", "on; gzip_static always;", "off", "pre.txt")
inherits("autoindex", "on", "off", "dir/", more="index none;", lengths="any")
inherits("autoindex_exact_size", "off; autoindex on;", "on", "list/", lengths="any")
inherits("autoindex_format", "json; autoindex on;", "xml", "list/", lengths="any")
inherits("autoindex_localtime", "on; autoindex on;", "off", "list/", lengths="any")
inherits("index", "other.htm", "file.txt", ["dir/", "second/"])
inherits("index", "none.html; index other.htm;", "none; index file.txt none;", "dir/")
inherits("error_page", "404 /errors/404.html", "404 =200 /fallback.html", ["none", "fifo"])
inherits(
    "error_page",
    "404 =410 /none; error_page 403 /errors/denied.txt;",
    "403 404 @named",
    ["none", "noindex/"],
)
inherits("error_page", "404 http://a/", "405 /fallback.html", "none")
inherits("error_page", "404 /fallback.html", "405 =200 /fallback.html", "none", method="POST")
inherits("recursive_error_pages", "on; error_page 404 /none2;", "off", "none")
inherits("log_not_found", "off", "on", "none", errors=True)
inherits("allow", "127.0.0.1; deny all;", "deny all;")
inherits("deny", "all", "allow 127.0.0.0/8; deny all;")
inherits(
    "satisfy",
    "any; deny all; auth_basic x; auth_basic_user_file @DIR@/users;",
    "all",
    "hello.txt",
    "Authorization: Basic cGxhaW46cHc=",
)
inherits("auth_basic", "one; auth_basic_user_file @DIR@/users;", "off")
inherits("auth_basic", "one; auth_basic_user_file @DIR@/users;", "two")
inherits(
    "auth_basic_user_file",
    "@DIR@/users; auth_basic x;",
    "@DIR@/none",
    "hello.txt",
    "Authorization: Basic cGxhaW46cHc=",
)
inherits("auth_request", "/yes", "/no", open=True)
inherits("auth_request", "/none", "off")
inherits(
    "client_max_body_size",
    "10",
    "0",
    "hello.txt",
    "Content-Length: 20",
    method="POST",
    # nginx waits for the rest of what it refused.
    more="lingering_timeout 300ms;",
    alone=True,
)
inherits(
    "client_max_body_size",
    "0",
    "10",
    "hello.txt",
    "Content-Length: 20",
    method="POST",
    # nginx waits for the rest of what it refused.
    more="lingering_timeout 300ms;",
    alone=True,
)
inherits("chunked_transfer_encoding", "off; gzip on;", "on", "page.html", GZIP, lengths="coded")
inherits("keepalive_timeout", "65 10", "65 20")
inherits("keepalive_timeout", "0", "65")
inherits("keepalive_requests", "1", "9")
inherits("disable_symlinks", "on", "off", ["link.txt", "linkdir/file.txt", "hello.txt"])
inherits("disable_symlinks", "off", "if_not_owner", ["link.txt", "hello.txt"])
inherits("sub_filter", "It That", "works wins", "index.html")
inherits("sub_filter", "w W; sub_filter_once off;", "It This; sub_filter works '';", "index.html")
inherits("sub_filter_once", "off; sub_filter p P;", "on", "index.html")
inherits(
    "sub_filter_types",
    "text/plain; sub_filter l L;",
    "text/css",
    ["hello.txt", "style.css", "index.html"],
)
inherits("sub_filter_last_modified", "on; sub_filter It That;", "off", "index.html")
inherits(
    "valid_referers",
    "none a",
    "b",
    "hello.txt",
    "Referer: http://b/",
    more='add_header X "[$invalid_referer]";',
)
inherits(
    "valid_referers",
    "none a ~x",
    "~b",
    "hello.txt",
    "Referer: http://x/",
    more='add_header X "[$invalid_referer]";',
)
inherits(
    "set_real_ip_from",
    "127.0.0.1",
    "10.0.0.0/8",
    "hello.txt",
    "X-Real-IP: 1.2.3.4",
    more="add_header X $remote_addr;",
)
inherits(
    "real_ip_header",
    "X-A; set_real_ip_from 127.0.0.1;",
    "X-B",
    "hello.txt",
    "X-A: 1.1.1.1",
    "X-B: 2.2.2.2",
    more="add_header X $remote_addr;",
)
inherits(
    "real_ip_recursive",
    "on; real_ip_header X-Forwarded-For; set_real_ip_from 127.0.0.1;",
    "off",
    "hello.txt",
    "X-Forwarded-For: 1.1.1.1, 127.0.0.1",
    more="add_header X $remote_addr;",
)
inherits("secure_link", "$arg_s", "$uri", "hello.txt?s=a", more='add_header X "$secure_link";')
inherits("access_log", "@LOGS@/access.log all", "off", log=True)
inherits(
    "access_log",
    "@LOGS@/access.log short",
    "@LOGS@/access.log long",
    log=True,
    more="log_format short '$uri'; log_format long 'long $uri';",
)
inherits(
    "log_subrequest",
    "on; auth_request /yes; access_log @LOGS@/access.log short;",
    "off; access_log @LOGS@/access.log long;",
    log=True,
    open=True,
    more="log_format short '$uri'; log_format long 'long $uri';",
)
inherits("limit_conn_status", "429", "444")
inherits(
    "limit_req_dry_run",
    "on; limit_req zone=a;",
    "off",
    more="limit_req_zone $uri zone=a:1m rate=1r/m;",
    alone=True,
)
inherits(
    "limit_req_status",
    "429; limit_req zone=a;",
    "430",
    more="limit_req_zone $host zone=a:1m rate=1r/m;",
    alone=True,
)
inherits("limit_rate", "100k", "200k", more="add_header X $limit_rate;")
inherits("try_files", "/hello.txt /none", "/digits.txt =404", "none")
inherits("merge_slashes", "off", "on", "/a//b")
inherits(
    "underscores_in_headers", "on", "off", "hello.txt", "A_B: 1", more="add_header X $http_a_b;"
)
inherits(
    "ignore_invalid_headers", "off", "on", "hello.txt", "A.B: 1", more="add_header X $http_a_b;"
)
inherits("large_client_header_buffers", "2 1k", "2 4k", "hello.txt?" + "a" * 2000)
inherits("max_headers", "3", "9", "hello.txt", "A: 1", "B: 1", "C: 1")
inherits("msie_padding", "off", "on", "none")
inherits("rewrite_log", "on", "off", "hello.txt", errors=True)
inherits(
    "uninitialized_variable_warn",
    "off",
    "on",
    "hello.txt",
    errors=True,
    more="map $uri $m { default $u; } add_header X $m;",
)
inherits("ssi", "on", "off", "index.html")
inherits(
    "addition_types",
    "text/plain; add_after_body /fallback.html;",
    "text/css",
    ["hello.txt", "index.html"],
)

# What changes how files are read and sent, and must not change what is sent.
for _name, _x, _y in (
    ("sendfile", "on", "off"),
    ("sendfile_max_chunk", "4k; sendfile on;", "0"),
    ("tcp_nopush", "on", "off"),
    ("tcp_nodelay", "off", "on"),
    ("directio", "1k", "off"),
    ("directio_alignment", "4k; directio 1k;", "512"),
    ("output_buffers", "1 1k; sendfile off;", "4 64k"),
    ("postpone_output", "0", "1460"),
    ("limit_rate_after", "1m; limit_rate 100m;", "0"),
    ("aio_write", "on", "off"),
    ("read_ahead", "4k", "0"),
    ("open_file_cache", "max=5 inactive=1m", "off"),
    ("open_file_cache_valid", "1s; open_file_cache max=5;", "9s"),
    ("open_file_cache_min_uses", "2; open_file_cache max=5;", "1"),
    ("open_file_cache_errors", "on; open_file_cache max=5;", "off"),
    ("open_file_cache_events", "on; open_file_cache max=5;", "off"),
    ("send_timeout", "5s", "9s"),
    ("lingering_close", "off", "always"),
    ("lingering_time", "1s", "9s"),
    ("lingering_timeout", "1s", "9s"),
    ("reset_timedout_connection", "on", "off"),
    ("keepalive_time", "1s", "1h"),
    ("keepalive_min_timeout", "1s", "0"),
    ("client_body_buffer_size", "1k", "64k"),
    ("client_body_timeout", "1s", "9s"),
    ("client_body_in_single_buffer", "on", "off"),
    ("client_body_in_file_only", "clean", "off"),
    ("subrequest_output_buffer_size", "1k", "64k"),
    ("resolver_timeout", "1s", "9s"),
    ("types_hash_max_size", "512", "2048"),
    ("types_hash_bucket_size", "32", "128"),
    ("early_hints", "$http_e", "$arg_e"),
    ("open_log_file_cache", "max=5", "off"),
    ("connection_pool_size", "256", "1k"),
    ("request_pool_size", "1k", "8k"),
    ("auth_delay", "0", "1ms"),
):
    # Between two pieces nginx looks whether its client has left, which one that ended its side has.
    inherits(_name, _x, _y, ["hello.txt", "big.bin", "none"], open=_name == "sendfile_max_chunk")
inherits("send_lowat", "0", "0")
for _name in ("scgi_temp_path", "uwsgi_temp_path"):
    # A line that begins with it stands for what is said for nginx in all of http.
    inherits(_name, f"\n{_name} @LOGS@/outer;", "@LOGS@/inner 1 2")
inherits(
    "client_header_buffer_size",
    "128; large_client_header_buffers 1 2k;",
    "4k",
    ["hello.txt?" + "a" * 600],
    "X: " + "b" * 1800,
)
inherits("keepalive_disable", "none", "msie6", "hello.txt", "User-Agent: Mozilla/5.0")
inherits("msie_refresh", "on", "off", "dir")
inherits("gzip_comp_level", "9; gzip on;", "1", "page.html", GZIP)
inherits("gzip_buffers", "2 4k; gzip on;", "32 4k", "page.html", GZIP)
inherits("gzip_window", "1k; gzip on;", "32k", "page.html", GZIP)
inherits("gzip_hash", "1k; gzip on;", "64k", "page.html", GZIP)
inherits("gzip_no_buffer", "on; gzip on;", "off", "page.html", GZIP)
inherits("postpone_gzipping", "1k; gzip on;", "0", "page.html", GZIP, lengths="coded")
inherits("gunzip_buffers", "2 4k; gunzip on; gzip_static always;", "32 4k", "pre.txt")
inherits(
    "auth_request_set",
    "$u $uri; auth_request /yes; add_header X $u;",
    "$u other; add_header X $u;",
    open=True,
)
inherits("add_trailer_inherit", "merge; add_trailer A a;", "off; add_trailer B b;")
inherits("add_trailer", "A a; add_trailer C $uri;", "B b always;", ["hello.txt", "none"])
inherits(
    "limit_conn",
    "one 1; limit_conn two 5;",
    "two 9",
    more=(
        "limit_conn_zone $host zone=one:1m; limit_conn_zone $uri zone=two:1m; "
        "limit_conn_dry_run on; add_header X $limit_conn_status;"
    ),
)
inherits(
    "limit_conn_log_level",
    "info; limit_conn one 1;",
    "warn",
    more="limit_conn_zone $host zone=one:1m;",
)
inherits(
    "limit_conn_dry_run",
    "on; limit_conn one 1;",
    "off",
    more='limit_conn_zone $host zone=one:1m; add_header X "$limit_conn_status";',
)
inherits(
    "limit_req",
    "zone=one burst=9 nodelay;",
    "zone=two burst=99 nodelay",
    more=(
        "limit_req_zone $host zone=one:1m rate=1r/m; limit_req_zone $uri zone=two:1m rate=1r/m; "
        'add_header X "$limit_req_status";'
    ),
    alone=True,
)
inherits(
    "limit_req_log_level",
    "info; limit_req zone=one;",
    "warn",
    more="limit_req_zone $http_none zone=one:1m rate=1r/m;",
)
inherits(
    "secure_link_md5",
    '"a $uri"; secure_link $arg_s;',
    "b",
    "hello.txt?s=AAAAAAAAAAAAAAAAAAAAAA",
    more='add_header X "[$secure_link]";',
)
inherits("secure_link_secret", "a", "b", more='add_header X "[$secure_link]";')
inherits("ssi_silent_errors", "on; ssi on;", "off", "index.html")
inherits("ssi_types", "text/plain; ssi on;", "text/css", ["hello.txt", "index.html", "style.css"])
inherits("ssi_last_modified", "on; ssi on;", "off", "index.html")
inherits("ssi_value_length", "64; ssi on;", "256", "index.html")
inherits("ssi_min_file_chunk", "1k; ssi on;", "8k", "index.html")
inherits("ssi_ignore_recycled_buffers", "on; ssi on;", "off", "index.html")
inherits("source_charset", "utf-8", "utf-8", more="charset utf-8;")
inherits("aio", "threads", "off", ["hello.txt", "big.bin"], open=True)
inherits("override_charset", "on; charset utf-8;", "off")
inherits(
    "addition_types", "*; add_before_body /hello.txt;", "text/css", ["fallback.html", "style.css"]
)
inherits("referer_hash_max_size", "512; valid_referers a;", "1024")
inherits("referer_hash_bucket_size", "32; valid_referers a;", "64")

# What TLS is spoken with, where servers take it over from http, and where they do not.
_SAYS = "return 200 '$server_name $ssl_protocol $ssl_cipher $ssl_client_verify $ssl_server_name';"
_OUTER = (
    "ssl_certificate @CERT@; ssl_certificate_key @KEY@; ssl_protocols TLSv1.2; "
    "ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384; ssl_prefer_server_ciphers on; "
    "ssl_ecdh_curve prime256v1; ssl_session_cache none; ssl_session_timeout 5m; "
    "ssl_session_tickets off; ssl_verify_client off; ssl_verify_depth 2; ssl_buffer_size 4k; "
    "ssl_early_data off; ssl_stapling off; ssl_stapling_verify off; ssl_reject_handshake off;"
)
_INNER = (
    "ssl_certificate @DIR@/stranger.pem; ssl_certificate_key @DIR@/stranger.key; "
    "ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256; "
    "ssl_prefer_server_ciphers off; ssl_ecdh_curve secp384r1:prime256v1; ssl_session_cache off; "
    "ssl_session_timeout 1m; ssl_session_tickets on; ssl_verify_client optional_no_ca; "
    "ssl_verify_depth 1; ssl_buffer_size 16k; ssl_early_data on; ssl_stapling_verify on;"
)
http(
    "inherits TLS",
    _OUTER
    + """
        server { listen 127.0.0.1:@P0@; return 204; }
        server { listen 127.0.0.1:@P1@ ssl; server_name one; %s }
        server { listen 127.0.0.1:@P1@ ssl; server_name two; %s %s }
        server { listen 127.0.0.1:@P1@ ssl; server_name three; ssl_protocols TLSv1.3; %s }
        server { listen 127.0.0.1:@P1@ ssl; server_name four; ssl_reject_handshake on; }
    """
    % (_SAYS, _INNER, _SAYS, _SAYS.replace(" $ssl_cipher", "")),
    ["GET / | Host: %s | Connection: close"],
    port=1,
    identities=[(name, None) for name in ("one", "two", "three", "four", "five")],
    alone=True,
)
