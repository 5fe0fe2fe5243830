"""Owns: the words that random configurations and requests are made of."""

from ..text import listed, numbers, words

PLAIN_VARIABLES = words("""
    uri document_uri request_uri args query_string is_args arg_a arg_b arg_A arg_ host
    http_host server_name server_protocol scheme https request_method request document_root
    request_filename
    realpath_root http_x http_x_y http_cookie cookie_c cookie_d content_length content_type
    http_user_agent http_referer http_via http_x_forwarded_for remote_addr server_addr remote_user
    connection_requests limit_rate request_completion pipe request_port is_request_port server_port
    http_range http_authorization http_if_none_match http_connection http_te http_expect
    proxy_add_x_forwarded_for invalid_referer
""")
# What is known only when an answer is there.
LATE_VARIABLES = words("""
    status sent_http_content_type sent_http_location sent_http_x_a sent_http_etag
    sent_http_last_modified sent_http_cache_control upstream_status upstream_http_x_origin
    upstream_http_content_type upstream_http_x_r upstream_addr upstream_cookie_s
    upstream_bytes_received body_if_whole request_body request_length
    sent_http_connection sent_http_www_authenticate sent_http_allow sent_http_link sent_http_vary
    sent_http_accept_ranges
""")

FILES = listed("""
    /index.html; /hello.txt; /digits.txt; /page.html; /style.css; /app.js; /data.json; /dir/;
    /dir/file.txt; /dir/index.html; /dir/other.htm; /a/b/c.txt; /noindex/; /noindex/keep.txt;
    /list/sub/; /list/sub/c.txt; /list/a.txt; /other/x.txt; /other/; /other/sub/y.txt;
    /errors/404.html; /errors/50x.html; /errors/denied.txt; /pre.txt; /onlygz.txt; /fallback.html;
    /empty.txt; /noext; /none; /none/; /dir; /list; /a; /a/b; /second/; /small.css; /indexdir/;
    /emptydir/; /link.txt; /linkdir/file.txt; /ssi/2.html; /ssi/hello.html; /ssi/40.html;
    /with space.txt; /percent%41.txt
""")

PREFIXES = listed("""
    /; /a; /a/; /a/b; /a/b/; /b; /b/; /dir; /dir/; /l; /l/; /l/m; /l/m/; /list/; /hello;
    /hello.txt; /d; /p/; /p/q; /p; /x/y/z; /A/; /%61; /a b/; /other/; /errors/; /ssi/; /none;
    /noindex/; /a.; /empty; /page
""")
# With paths that match, for requests.
REGEXES = [
    (r"\.txt$", ["/hello.txt", "/dir/file.txt", "/none.txt"]),
    (r"\.(html|css)$", ["/page.html", "/small.css", "/x.css"]),
    (r"^/(?<seg>[a-z]+)/(.*)$", ["/a/b/c.txt", "/dir/file.txt", "/dir/", "/l/m/z%20z"]),
    (r"^/l(\d)(.*)$", ["/l1/x", "/l2", "/l3%2Fy"]),
    (r"^/(dir|other)/", ["/dir/file.txt", "/other/x.txt", "/dir/"]),
    (r"/$", ["/", "/dir/", "/noindex/", "/a/"]),
    (r"^/(.*)$", ["/a", "/hello.txt"]),
    (r"^/([^/]+)/([^/]+)$", ["/a/b", "/dir/file.txt", "/a%20b/c%2bd"]),
    (r"b", ["/b", "/a/b/"]),
    (r"(?<rest>.*)", ["/rest/of"]),
    (r"^/((x)|(y))+$", ["/xyx", "/x"]),
    (r"^/p/(?<first>\w+)", ["/p/one", "/p/two/three"]),
    (r"^/[A-Z]+$", ["/ABC", "/abc"]),
    (r"\s", ["/a%20b", "/with%20space.txt"]),
    (r"^/(h.*)\.(t.*)$", ["/hello.txt"]),
    (r"^(?:/a)?(/b)?", ["/a/b", "/b", "/c"]),
    (r"%", ["/percent%2541.txt", "/a%25"]),
    (r"[^\x00-\x7f]", ["/%c3%a9", "/%ff"]),
    (r"^/.{2,5}$", ["/abc", "/dir"]),
]

STATUSES = numbers("""
    200 201 204 206 301 302 303 307 308 400 401 402 403 404 405 406 408 409 410 411 412 413
    414 415 416 418 421 422 429 444 451 494 495 496 497 499 500 501 502 503 504 505 507 599
    600 700 999
""")
ERRORS = numbers("""
    400 401 402 403 404 405 406 408 409 410 411 412 413 414 415 416 421 429 500 501 502 503
    504 507 301 302 303 307 308
""")

BITS = [
    "",
    "x",
    "a b",
    "one",
    "two",
    "1",
    "0",
    "100",
    "é",
    "%41",
    "a+b",
    "a;b",
    "a=b",
    "<b>",
    "&amp;",
    "text",
    "/t",
    "?",
    "?q=1",
    "#f",
    ":",
    ",",
    "x" * 60,
]
TYPES = [
    "text/plain",
    "text/html",
    "text/css",
    "application/json",
    "application/octet-stream",
    "text/plain; charset=koi8-r",
    "image/png",
    "text/html; charset=utf-8",
    "TEXT/Plain",
    "odd",
    "",
]
HOSTS = words("""
    localhost a.test www.a.test b.a.test b.test x.b.test www.b.test www.example who.c.test
    WHO.C.test A.TEST a.test. a.test:80 other 127.0.0.1 [::1] un_der first a..test
    x.www.a.test
""")
NAMES = words(r"""
    localhost a.test *.a.test www.* .b.test ~^(?<who>\w+)\.c\.test$ "" _ www.a.test
    ~^www\d*\.(.+)$ first ~^(.)\.test$ b.* *.test 127.0.0.1 ~test
""")
DATE, TAG, PAGE_TAG = "Tue, 14 Nov 2023 22:13:20 GMT", '"6553f100-e"', '"6553f100-28c9"'
