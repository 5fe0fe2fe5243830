"""Owns: what blocks take over from blocks around them. Each directive stands with two values in
`http`, servers, locations, nested locations and `if`, wherever the reference allows it, and every
block is asked.
"""
from .generated import rows
from .sites import http

PLACES = {}
for _row in rows():
    PLACES.setdefault(_row.name, set()).update(_row.places)

GZIP = "Accept-Encoding: gzip"
HELP = "location = /yes { return 204; } location = /no { return 403; } location = /set { set $u 1; return 204; } location @named { return 200 named; }"
# %(x)s is the outer value, %(y)s the inner one.
BLOCKS = """
    %(more)s %(http)s
    server {
        listen 127.0.0.1:@P0@; server_name one; root @DIR@/www; %(help)s %(server)s
        location /b/ {
            alias @DIR@/www/; %(y)s
            location /b/n/ { alias @DIR@/www/; }
            location /b/m/ { alias @DIR@/www/; %(x)s }
            location /b/i/ { alias @DIR@/www/; if ($arg_x) { %(if_x)s } if ($arg_z) { set $z 1; } if ($arg_y) { %(if_y)s } }
            location ~ ^/b/r/(.*)$ { alias @DIR@/www/$1; %(x)s location ~ ^/b/r/d(.*)$ { alias @DIR@/www/d$1; } }
        }
        location /e/ { alias @DIR@/www/; limit_except GET { %(except)s } }
    }
    server {
        listen 127.0.0.1:@P0@; server_name two; root @DIR@/www; %(help)s %(y)s
        location /a/ { alias @DIR@/www/; %(x)s }
        location /n/ { alias @DIR@/www/; }
    }
    server { listen 127.0.0.1:@P0@; server_name three; root @DIR@/www; %(help)s location /n/ { alias @DIR@/www/; %(x)s %(x2)s } }
"""
ASKED = [("one", "/"), ("one", "/b/"), ("one", "/b/n/"), ("one", "/b/m/"), ("one", "/b/i/"), ("one", "/b/i/?x=1"), ("one", "/b/i/?y=1"), ("one", "/b/i/?z=1"),
         ("one", "/b/i/?x=1&y=1"), ("one", "/b/i/?x=1&z=1"), ("one", "/b/r/"), ("one", "/e/"), ("two", "/"), ("two", "/a/"), ("two", "/n/"), ("three", "/"), ("three", "/n/")]


def inherits(name, x, y, path="hello.txt", *fields, method="GET", more="", **options):
    """Compares `name` with the values `x` and `y`; what begins with a directive is whole."""
    def whole(value):
        if value.split()[0] in PLACES:
            return value
        return f"{name} {value.rstrip(';')};"

    def where(place, value):
        return whole(value) if place in PLACES[name] else ""

    if name not in PLACES:
        return
    text = BLOCKS % {
        "help": HELP,
        "x": where("location", x), "y": where("location", y), "x2": options.pop("again", ""), "more": more, "http": where("http", x) if options.pop("in_http", True) else "",
        "server": where("server", x) if "http" not in PLACES[name] else "", "if_x": where("if in location", x), "if_y": where("if in location", y),
        "except": where("limit_except", y) or "allow all;",
    }
    if name.startswith("g") and GZIP in fields:
        options.setdefault("lengths", "coded")
    cases = []
    for host, prefix in ASKED:
        before, mark, arguments = prefix.partition("?")
        for one in path if isinstance(path, list) else [path]:
            one, inner, more_arguments = one.partition("?")
            tail = "&".join(part for part in (arguments, more_arguments) if part)
            line = f"{method} {before}{one}" + (f"?{tail}" if tail else "")
            cases.append(" | ".join([line, f"Host: {host}", *fields]))
    if "limit_except" in PLACES[name]:
        cases.append(" | ".join(["POST /e/hello.txt", "Host: one", *fields]))
    http(f"inherits {name} {x}"[:60].strip(), text, cases, **options)


inherits("add_header", "X a", "Y b", ["hello.txt", "none"])
inherits("add_header", "X a always", "X b always", ["hello.txt", "none"], again="add_header Z z;")
inherits("add_header", "X a; add_header Y $uri;", "X c; add_header_inherit merge;", ["hello.txt"])
inherits("add_header_inherit", "merge; add_header A a;", "off; add_header B b;")
inherits("add_header_inherit", "on; add_header A a;", "add_header_inherit off;")
inherits("expires", "1h", "-1", ["style.css", "none"])
inherits("expires", "max", "off", ["style.css"])
inherits("expires", "modified +1h", "epoch")
inherits("default_type", "text/a", "text/b", "noext", in_http=False)
inherits("types", "types { text/one txt; }", "types { text/two css; }", ["hello.txt", "style.css"], in_http=False)
inherits("charset", "utf-8", "off")
inherits("charset", "koi8-r", "$arg_c", "hello.txt?c=latin1")
inherits("charset_types", "text/css; charset utf-8;", "text/plain application/json", ["hello.txt", "style.css", "index.html", "data.json"])
inherits("etag", "off", "on")
inherits("etag", "on", "off")
inherits("if_modified_since", "off", "before", "hello.txt", "If-Modified-Since: Wed, 15 Nov 2023 22:13:20 GMT")
inherits("if_modified_since", "before", "exact", "hello.txt", "If-Modified-Since: Wed, 15 Nov 2023 22:13:20 GMT")
inherits("max_ranges", "0", "1", "digits.txt", "Range: bytes=1-2,5-6,9-9")
inherits("max_ranges", "2", "9", ["digits.txt"], "Range: bytes=1-2,50-60")
inherits("server_tokens", "off", "on", ["hello.txt", "none"])
inherits("absolute_redirect", "off", "on", "dir")
inherits("port_in_redirect", "off", "on", "dir")
inherits("server_name_in_redirect", "on", "off", "dir")
inherits("gzip", "on", "off", "page.html", GZIP)
inherits("gzip", "off", "on", "page.html", GZIP)
inherits("gzip_types", "text/css; gzip on;", "text/plain", ["style.css", "pre.txt", "page.html"], GZIP)
inherits("gzip_min_length", "100000; gzip on;", "10", "page.html", GZIP)
inherits("gzip_vary", "on; gzip on;", "off", "page.html", GZIP)
inherits("gzip_vary", "on; gzip on;", "off", "page.html")
inherits("gzip_proxied", "off; gzip on;", "any", "page.html", GZIP, "Via: 1.1 a")
inherits("gzip_proxied", "auth; gzip on;", "expired no-cache", "page.html", GZIP, "Via: 1.1 a", "Authorization: Basic eDp5")
inherits("gzip_proxied", "expired; gzip on; expires -1;", "no-cache; expires 1h;", ["page.html", "dir"], GZIP, "Via: 1.1 a")
inherits("gzip_proxied", "no_etag private; gzip on;", "no_etag; etag off;", ["page.html", "none"], GZIP, "Via: 1.1 a")
inherits("gzip_proxied", "private; add_header Cache-Control 'a, private'; gzip on;", "private; add_header Cache-Control a;", "page.html", GZIP, "Via: 1.1 a")
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
inherits("error_page", "404 =410 /none; error_page 403 /errors/denied.txt;", "403 404 @named", ["none", "noindex/"])
inherits("error_page", "404 http://a/", "405 /fallback.html", "none")
inherits("error_page", "404 /fallback.html", "405 =200 /fallback.html", "none", method="POST")
inherits("recursive_error_pages", "on; error_page 404 /none2;", "off", "none")
inherits("log_not_found", "off", "on", "none", errors=True)
inherits("allow", "127.0.0.1; deny all;", "deny all;")
inherits("deny", "all", "allow 127.0.0.0/8; deny all;")
inherits("satisfy", "any; deny all; auth_basic x; auth_basic_user_file @DIR@/users;", "all", "hello.txt", "Authorization: Basic cGxhaW46cHc=")
inherits("auth_basic", "one; auth_basic_user_file @DIR@/users;", "off")
inherits("auth_basic", "one; auth_basic_user_file @DIR@/users;", "two")
inherits("auth_basic_user_file", "@DIR@/users; auth_basic x;", "@DIR@/none", "hello.txt", "Authorization: Basic cGxhaW46cHc=")
inherits("auth_request", "/yes", "/no", open=True)
inherits("auth_request", "/none", "off")
inherits("client_max_body_size", "10", "0", "hello.txt", "Content-Length: 20", method="POST", alone=True)
inherits("client_max_body_size", "0", "10", "hello.txt", "Content-Length: 20", method="POST", alone=True)
inherits("chunked_transfer_encoding", "off; gzip on;", "on", "page.html", GZIP, lengths="coded")
inherits("keepalive_timeout", "65 10", "65 20")
inherits("keepalive_timeout", "0", "65")
inherits("keepalive_requests", "1", "9")
inherits("disable_symlinks", "on", "off", ["link.txt", "linkdir/file.txt", "hello.txt"])
inherits("disable_symlinks", "off", "if_not_owner", ["link.txt", "hello.txt"])
inherits("sub_filter", "It That", "works wins", "index.html")
inherits("sub_filter", "w W; sub_filter_once off;", "It This; sub_filter works '';", "index.html")
inherits("sub_filter_once", "off; sub_filter p P;", "on", "index.html")
inherits("sub_filter_types", "text/plain; sub_filter l L;", "text/css", ["hello.txt", "style.css", "index.html"])
inherits("sub_filter_last_modified", "on; sub_filter It That;", "off", "index.html")
inherits("valid_referers", "none a", "b", "hello.txt", "Referer: http://b/", more="add_header X \"[$invalid_referer]\";")
inherits("valid_referers", "none a ~x", "~b", "hello.txt", "Referer: http://x/", more="add_header X \"[$invalid_referer]\";")
inherits("set_real_ip_from", "127.0.0.1", "10.0.0.0/8", "hello.txt", "X-Real-IP: 1.2.3.4", more="add_header X $remote_addr;")
inherits("real_ip_header", "X-A; set_real_ip_from 127.0.0.1;", "X-B", "hello.txt", "X-A: 1.1.1.1", "X-B: 2.2.2.2", more="add_header X $remote_addr;")
inherits("real_ip_recursive", "on; real_ip_header X-Forwarded-For; set_real_ip_from 127.0.0.1;", "off", "hello.txt", "X-Forwarded-For: 1.1.1.1, 127.0.0.1", more="add_header X $remote_addr;")
inherits("secure_link", "$arg_s", "$uri", "hello.txt?s=a", more="add_header X \"$secure_link\";")
inherits("access_log", "@LOGS@/access.log all", "off", log=True)
inherits("access_log", "@LOGS@/access.log short", "@LOGS@/access.log long", log=True, more="log_format short '$uri'; log_format long 'long $uri';")
inherits("log_subrequest", "on; auth_request /yes; access_log @LOGS@/access.log short;", "off; access_log @LOGS@/access.log long;", log=True, open=True, more="log_format short '$uri'; log_format long 'long $uri';")
inherits("limit_conn_status", "429", "444")
inherits("limit_req_dry_run", "on; limit_req zone=a;", "off", more="limit_req_zone $uri zone=a:1m rate=1r/m;", alone=True)
inherits("limit_req_status", "429; limit_req zone=a;", "430", more="limit_req_zone $host zone=a:1m rate=1r/m;", alone=True)
inherits("limit_rate", "100k", "200k", more="add_header X $limit_rate;")
inherits("try_files", "/hello.txt /none", "/digits.txt =404", "none")
inherits("merge_slashes", "off", "on", "/a//b")
inherits("underscores_in_headers", "on", "off", "hello.txt", "A_B: 1", more="add_header X $http_a_b;")
inherits("ignore_invalid_headers", "off", "on", "hello.txt", "A.B: 1", more="add_header X $http_a_b;")
inherits("large_client_header_buffers", "2 1k", "2 4k", "hello.txt?" + "a" * 2000)
inherits("max_headers", "3", "9", "hello.txt", "A: 1", "B: 1", "C: 1")
inherits("msie_padding", "off", "on", "none")
inherits("rewrite_log", "on", "off", "hello.txt", errors=True)
inherits("uninitialized_variable_warn", "off", "on", "hello.txt", errors=True, more="map $uri $m { default $u; } add_header X $m;")
inherits("ssi", "on", "off", "index.html")
inherits("addition_types", "text/plain; add_after_body /fallback.html;", "text/css", ["hello.txt", "index.html"])
