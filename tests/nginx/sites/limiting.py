"""Owns: configurations about limits and secure links, and mistakes in them.

Rates are so slow that no answer depends on when it is asked for.
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..site import Case, http
from ..text import words

ZONES = """limit_req_zone $arg_a zone=a:32k rate=1r/m; limit_req_zone $arg_b zone=b:1m rate=2r/m;
    limit_req_zone $binary_remote_addr zone=ip:1m rate=1r/m;
    limit_req_zone $arg_f zone=fast:1m rate=10000r/s;
    limit_conn_zone $arg_a zone=ca:1m; limit_conn_zone $arg_c zone=cc:1m;
    log_format told '$uri $args $status req=$limit_req_status conn=$limit_conn_status';
    access_log @LOGS@/access.log told;
"""
SERVER = "server { listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www; %s }"


def site(name: str, server: str, cases: Sequence[Case], before: str = "", **more: Any) -> None:
    """Adds one server with all zones."""
    http(f"limits: {name}", ZONES + before + SERVER % server, cases, errors=True, log=True, **more)


def times(count: int, request: str) -> list[str]:
    """The same request so many times."""
    return [f"{request} | X-N: {n}" for n in range(1, count + 1)]


site(
    "burst without delay",
    """
    location /none { limit_req zone=a; } location /three { limit_req zone=a burst=3 nodelay; }
    location /delay { limit_req zone=a burst=3 delay=3; }
    location /b { limit_req zone=b burst=1 nodelay; }
    location /fast { limit_req zone=fast burst=5; }
""",
    [
        *times(3, "GET /none?a=1"),
        *times(6, "GET /three?a=2"),
        *times(6, "GET /delay?a=3"),
        *times(4, "GET /b?b=1"),
        *times(3, "GET /none"),
        *times(3, "GET /none?a="),
        *times(2, "HEAD /none?a=9"),
        *times(2, "POST /none?a=8"),
        "GET /three?a=1",
        "GET /none?a=2",
        *times(5, "GET /fast?f=1"),
    ],
)
site(
    "status, level and dry run",
    """
    limit_req_status 429; limit_req_log_level warn; limit_req zone=a burst=1 nodelay;
    location /in { } location /own { limit_req_status 598; limit_req_log_level error; }
    location /other { limit_req zone=b; }
    location /dry { limit_req_dry_run on; limit_req zone=a burst=1; }
    location /quiet { limit_req_log_level notice; }
    location /drydelay {
        limit_req_dry_run on; limit_req zone=a burst=2; limit_req_log_level error;
    }
    location /page { error_page 429 /hello.txt; }
    location /named { error_page 429 = @n; }
    location @n { return 200 "n $limit_req_status"; }
""",
    [
        *times(4, "GET /in?a=1"),
        *times(3, "GET /own?a=2"),
        *times(3, "GET /other?a=3&b=3"),
        *times(4, "GET /dry?a=4"),
        *times(3, "GET /quiet?a=5"),
        *times(4, "GET /drydelay?a=6"),
        *times(4, "GET /page?a=7"),
        *times(4, "GET /named?a=8"),
    ],
)
site(
    "several zones",
    """
    location /two {
        limit_req zone=a burst=3 nodelay; limit_req zone=b nodelay burst=1;
        limit_req_log_level error;
    }
    location /swap { limit_req zone=b nodelay burst=1; limit_req zone=a burst=3 nodelay; }
    location /three {
        limit_req zone=a burst=9 nodelay; limit_req zone=b nodelay burst=9;
        limit_req zone=ip burst=1 nodelay;
    }
    location /both { limit_req zone=a burst=2 nodelay; limit_conn ca 1; }
""",
    [
        *times(4, "GET /two?a=1&b=1"),
        *times(4, "GET /two?a=1&b=2"),
        *times(3, "GET /two?a=2"),
        *times(3, "GET /two?b=5"),
        *times(4, "GET /swap?a=6&b=6"),
        *times(3, "GET /swap?a=7"),
        *times(4, "GET /three?a=8&b=8"),
        *times(3, "GET /both?a=9"),
        "GET /swap?b=6&a=10",
        "GET /two?a=10&b=11",
    ],
)
site(
    "redirects inside do not count twice",
    """
    index index.html; limit_req zone=a;
    location = /i/ { try_files /none /hello.txt; }
    location /e { return 404; error_page 404 /hello.txt; }
    location /r { rewrite ^ /hello.txt last; }
    location /l { limit_req zone=b; try_files /none /hello.txt; }
    location /free/ {
        limit_req zone=b; limit_req_status 418; error_page 418 /hello.txt;
    }
    location /x { return 200 "$limit_req_status"; }
""",
    [
        *times(2, "GET /?a=1"),
        *times(2, "GET /i/?a=2"),
        *times(2, "GET /e?a=3"),
        *times(2, "GET /r?a=4"),
        *times(2, "GET /l?a=5&b=5"),
        *times(3, "GET /free/x?a=6&b=6"),
        *times(2, "GET /x?a=7"),
        *times(2, "GET /dir?a=8"),
    ],
)
site(
    "conditions and access",
    """
    location /if { limit_req zone=a; if ($arg_q) { add_header X-If 1; } }
    location /deny { limit_req zone=a; deny all; }
    location /outer {
        limit_req zone=a;
        location /outer/in { }
        location /outer/own { limit_req zone=b; }
        location /outer/conn { limit_conn ca 5; }
    }
    location /return { limit_req zone=a; return 200 "x$limit_req_status"; }
    location /alias { limit_req zone=a; alias @DIR@/www/; autoindex off; }
""",
    [
        *times(2, "GET /if?a=1&q=1"),
        *times(2, "GET /deny?a=2"),
        *times(2, "GET /outer/in?a=3"),
        *times(2, "GET /outer/own?a=4&b=4"),
        *times(2, "GET /outer/conn?a=5"),
        *times(2, "GET /return?a=6"),
        *times(2, "GET /alias?a=7"),
    ],
)
site(
    "keys of connections",
    """
    location /long { limit_conn big 1; } location /conn { limit_conn ca 1; limit_conn cc 1; }
    location /add { limit_conn ca 1; add_header X-Told $limit_conn_status always; }
    location /slow {
        limit_conn ca 1; limit_rate 100; add_header X-Told $limit_conn_status always;
    }
    location /dry {
        limit_conn ca 1; limit_conn_dry_run on; limit_rate 100;
        add_header X-Told $limit_conn_status always;
    }
    location /status {
        limit_conn_status 418; limit_conn_log_level warn; limit_conn ca 1; limit_conn cc 1;
        limit_rate 100;
    }
""",
    [
        ("key of 255", f"GET /long?k={'x' * 255}"),
        ("key of 256", f"GET /long?k={'x' * 256}"),
        ("key of 700", f"GET /long?k={'x' * 700}"),
        *times(2, "GET /conn?a=1"),
        *times(2, "GET /conn?c=1"),
        "GET /conn",
        "GET /add?a=1",
        "GET /add",
    ],
    before="limit_conn_zone $arg_k zone=big:1m;",
)
site(
    "questions",
    """
    location /conn/ {
        limit_conn ca 9; auth_request /q; alias @DIR@/www/;
        add_header X-Told "$limit_req_status $limit_conn_status" always;
    }
    location /req/ {
        limit_req zone=a burst=9 nodelay; auth_request /q; alias @DIR@/www/;
        add_header X-Told $limit_req_status always;
    }
    location /page/ {
        auth_request /q; error_page 404 /sorry.txt; try_files /none =404;
    }
    location /sorry.txt { limit_req zone=q; try_files /hello.txt =404; }
    location = /q { limit_req zone=q; alias @DIR@/www/hello.txt; }
    location = /c { limit_conn cq 1; alias @DIR@/www/hello.txt; }
    location /count/ {
        auth_request /c; alias @DIR@/www/; add_header X-Told $limit_conn_status always;
    }
    location /except/ { auth_request /e; alias @DIR@/www/; }
    location = /e { limit_except GET { deny all; } try_files /hello.txt =404; }
""",
    [
        *times(3, "GET /conn/hello.txt?a=1 | Q: 1"),
        *times(3, "GET /req/hello.txt?a=2 | Q: 2"),
        *times(2, "GET /req/hello.txt | Q: 3"),
        *times(2, "GET /page/none | Q: 4"),
        *times(2, "GET /count/hello.txt | Q: 5"),
        *[f"{method} /except/hello.txt" for method in ("GET", "HEAD", "POST", "DELETE")],
    ],
    before="limit_req_zone $http_q zone=q:1m rate=1r/m; limit_conn_zone $http_q zone=cq:1m;",
)
http(
    "limits: delays",
    ZONES
    + "limit_req_zone $arg_a zone=two:1m rate=2r/s;"
    + SERVER
    % """location /d { limit_req zone=two burst=5; }
    location /part { limit_req zone=two burst=5 delay=2; }
    location /dry { limit_req zone=two burst=2; limit_req_dry_run on; }""",
    [
        ("two at a time", ["GET /d?a=1 | X: 1", "GET /d?a=1 | X: 2"]),
        ("four, of which one waits", [f"GET /part?a=2 | X: {n}" for n in range(4)]),
        ("dry run", ["GET /dry?a=3", "GET /dry?a=3"]),
    ],
    log=True,
    open=True,
)


def hashed(text: str, expires: str | None = None) -> str:
    """The signature of a secure link, and when it ends."""
    digest = base64.urlsafe_b64encode(hashlib.md5(text.encode()).digest()).decode().rstrip("=")
    return digest if expires is None else f"{digest}&e={expires}"


http(
    "secure links",
    SERVER
    % """
    location /s/ {
        secure_link $arg_md5,$arg_e; secure_link_md5 "$secure_link_expires$uri word";
        return 200 "[$secure_link][$secure_link_expires]";
    }
    location /plain/ {
        secure_link $arg_md5; secure_link_md5 "$uri word";
        return 200 "[$secure_link][$secure_link_expires]";
    }
    location /early/ {
        secure_link $arg_md5,$arg_e; secure_link_md5 "$uri word";
        return 200 "[$secure_link_expires][$secure_link][$secure_link_expires]";
    }
    location /if/ {
        secure_link $arg_md5,$arg_e; secure_link_md5 "$secure_link_expires$uri word";
        if ($secure_link = "") { return 403; }
        if ($secure_link = "0") { return 410; }
        return 200 ok;
    }
    location /half/ { secure_link $arg_md5; return 200 "[$secure_link]"; }
    location /none/ { return 200 "[$secure_link][$secure_link_expires]"; }
    location /p/ {
        secure_link_secret word;
        if ($secure_link = "") { return 403; }
        return 200 "[$secure_link]";
        location /p/in/ { return 200 "in [$secure_link]"; }
        location /p/own/ {
            secure_link $arg_md5; secure_link_md5 x; return 200 "own [$secure_link]";
        }
    }
    location /v/ { secure_link_secret word; rewrite ^ /hello.txt?$secure_link; }
    location /t/ { secure_link_secret ""; return 200 "[$secure_link]"; }
""",
    [
        f"GET /s/a?md5={hashed('2000000000/s/a word')}&e=2000000000",
        f"GET /s/a?md5={hashed('1000000000/s/a word')}&e=1000000000",
        f"GET /s/a?md5={hashed('/s/a word')}",
        f"GET /s/a?md5={hashed('/s/a word')}&e=",
        f"GET /s/a?md5={hashed('0/s/a word')}&e=0",
        f"GET /s/a?md5={hashed('x/s/a word')}&e=x",
        f"GET /s/a?md5={hashed('2000000000/s/b word')}&e=2000000000",
        "GET /s/a",
        f"GET /plain/a?md5={hashed('/plain/a word')}",
        f"GET /plain/a?md5={hashed('/plain/a word')}==",
        f"GET /plain/a?md5={hashed('/plain/a word')}=",
        f"GET /plain/a?md5={hashed('/plain/a word')}===",
        "GET /plain/a?md5=",
        "GET /plain/a?md5=a,b",
        f"GET /plain/a?md5={hashed('/plain/a word')},2000000000",
        f"GET /plain/a?md5={hashed('/plain/a word')},99999999999999999999",
        f"GET /plain/a?md5={hashed('/plain/a word')},-5",
        f"GET /plain/a?md5={hashed('/plain/a word')}A",
        f"GET /plain/a?md5={hashed('/plain/a word')[:-1]}",
        f"GET /plain/a%20b?md5={hashed('/plain/a b word')}",
        f"GET /plain/-?md5={base64.b64encode(hashlib.md5(b'/plain/- word').digest()).decode()}",
        f"GET /early/a?md5={hashed('/early/a word')}&e=2000000000",
        f"GET /early/a?md5={hashed('/early/b word')}&e=2000000000",
        f"GET /if/a?md5={hashed('2000000000/if/a word')}&e=2000000000",
        f"GET /if/a?md5={hashed('1/if/a word')}&e=1",
        "GET /if/a?md5=x&e=2000000000",
        "GET /half/?md5=x",
        "GET /none/",
        *[
            f"GET /p/{hashlib.md5((link + 'word').encode()).hexdigest()}/{link}"
            for link in ("link", "a/b", "a?x=1", "a%20b", "%61", "")
        ],
        f"GET /p/{hashlib.md5(b'linkword').hexdigest().upper()}/link",
        f"GET /p/{hashlib.md5(b'linkword').hexdigest()}x/link",
        f"GET /p/{hashlib.md5(b'linkword').hexdigest()}",
        "GET /p/x/link",
        "GET /p/",
        "GET /p//",
        f"GET /p/in/{hashlib.md5(b'linkword').hexdigest()}/link",
        f"GET /p/own/{hashlib.md5(b'linkword').hexdigest()}/link",
        f"GET /p/own/a?md5={hashed('x')}",
        f"GET /v/{hashlib.md5(b'linkword').hexdigest()}/link",
        f"GET /t/{hashlib.md5(b'link').hexdigest()}/link",
        f"GET /p//{hashlib.md5(b'linkword').hexdigest()}/link",
        f"GET http://localhost/p/{hashlib.md5(b'linkword').hexdigest()}/link",
    ],
    log=True,
)
http(
    "empty gif",
    SERVER
    % """
        location /g { empty_gif; }
        location /if { empty_gif; if ($arg_a) { add_header X 1; } expires 1d; }
        location /e { error_page 404 /g; return 404; }
        location /both { empty_gif; return 204; }
        location /in { empty_gif; location /in/er { } }
        location /sub { if_modified_since before; empty_gif; }
    """,
    [
        "GET /g",
        "HEAD /g",
        "POST /g",
        "PUT /g",
        "DELETE /g",
        "GET /g | Range: bytes=0-3",
        "GET /g | If-Modified-Since: Mon, 28 Sep 1970 06:00:00 GMT",
        "GET /g | If-Modified-Since: Mon, 28 Sep 1970 06:00:01 GMT",
        "GET /sub | If-Modified-Since: Mon, 28 Sep 1971 06:00:01 GMT",
        "GET /g | If-None-Match: *",
        'GET /g | If-Match: "x"',
        "GET /g | If-Unmodified-Since: Mon, 28 Sep 1969 06:00:00 GMT",
        "GET /if?a=1",
        "GET /if",
        "GET /e",
        "GET /both",
        "GET /in",
        "GET /in/er",
        "GET /g HTTP/1.0",
        "GET /gif/x",
    ],
)
http(
    "limit_rate by variables",
    SERVER
    % """
        limit_rate $arg_r; limit_rate_after $arg_a;
        location /set { set $limit_rate $arg_s; return 200 '[$limit_rate]'; }
        location /v { return 200 '[$limit_rate]'; }
        location /own { limit_rate 10m; return 200 '[$limit_rate]'; }
        location /none { limit_rate 0; return 200 '[$limit_rate]'; }
    """,
    [
        "GET /set?s=5k",
        "GET /set?s=1m",
        "GET /set?s=",
        "GET /set?s=x",
        "GET /set?s=0",
        "GET /set",
        "GET /v",
        "GET /v?r=10k",
        "GET /own?r=1k",
        "GET /none?r=1k",
    ],
    errors=True,
)
http(
    "limit_rate of heads",
    SERVER % "limit_rate 250; location /after { return 200; limit_rate_after 1k; }",
    ["GET /hello.txt", "HEAD /hello.txt", "GET /hello.txt HTTP/1.0", "GET /after"],
)
http(
    "limit_rate by variables, files",
    SERVER % "limit_rate $arg_r; limit_rate_after $arg_a;",
    [
        "GET /hello.txt?r=10m",
        "GET /hello.txt?r=x",
        "GET /hello.txt?r=10m&a=1k",
        "GET /hello.txt?a=x",
    ],
)

EXCEPT = """
    location /get { limit_except GET { deny all; } }
    location /post { limit_except post { deny all; } return 200 "here $request_method"; }
    location /allow {
        limit_except GET HEAD { allow 127.0.0.1; deny all; }
        return 200 here; add_header X-In 1;
    }
    location /other { limit_except GET { allow 192.0.2.1; deny all; } }
    location /auth {
        limit_except GET { auth_basic staff; auth_basic_user_file users; }
        root @DIR@/www;
    }
    location /try { limit_except GET { allow all; } try_files /hello.txt =404; }
    location /if {
        limit_except GET { deny all; }
        if ($arg_a) { return 200 a; }
        if ($arg_b) { set $x 1; }
        return 200 "b$x";
    }
    location /dav { limit_except GET PUT MKCOL PROPFIND LOCK { deny all; } return 200 dav; }
    location /outer {
        limit_except GET { deny all; }
        location /outer/in { return 200 in; }
        location /outer/own { limit_except POST { deny all; } }
    }
    location = /exact { limit_except GET { deny all; } return 200 exact; }
    location ~ ^/re(.*) { limit_except GET { deny all; } return 200 "re $1"; }
    location /e { error_page 405 /get; return 405; }
    location /e2 { error_page 404 = @n; }
    location @n { limit_except GET { deny all; } return 200 "named $request_method"; }
    location /gif { empty_gif; limit_except GET { allow all; } }
    location /int { internal; limit_except GET { allow all; } }
    location /head {
        add_header X-Own 1 always;
        limit_except GET { deny all; }
        error_page 403 /hello.txt;
    }
    location /both { deny all; limit_except GET { allow all; } }
    location /al/ { alias @DIR@/www/; limit_except GET { access_log off; } }
    location /dir { limit_except GET { allow all; } index hello.txt; }
"""
http(
    "limit_except",
    SERVER % EXCEPT,
    [
        f"{method} {path}"
        for path in words("""
    /get /post /allow /other /auth /try /if?a=1 /if?b=1 /dav /outer /outer/in /outer/own
    /exact /rex /e /e2 /gif /int /head /both /al/hello.txt /dir /dir/
""")
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "MKCOL", "PROPFIND", "FOO", "PURGE")
    ],
    errors=True,
    log=True,
)
STATUS = """
    server {
        listen 127.0.0.1:@P0@; root @DIR@/www;
        location /s { stub_status; }
        location /on { stub_status on; charset utf-8; }
        location /v {
            return 200 '$connections_active $connections_reading $connections_writing $connections_waiting';
        }
        location /if { stub_status; if ($arg_a) { add_header X 1; } }
        location /in { stub_status; location /in/er { } }
        location /e { error_page 404 /s; return 404; }
        location /gz { gzip on; gzip_types text/plain; gzip_min_length 1; stub_status; }
    }
"""  # noqa: E501
http(
    "stub_status",
    STATUS,
    [
        "GET /s",
        "HEAD /s",
        "POST /s",
        "PUT /s",
        "GET /s HTTP/1.0",
        "GET /s | Range: bytes=0-3",
        "GET /s/x?y",
        "GET /on",
        "GET /v",
        "GET /if",
        "GET /if?a=1",
        "GET /in",
        "GET /in/er",
        "GET /e",
        b"\r\nnonsense\r\n\r\n",
        "GET /s",
    ],
    alone=True,
)
http(
    "stub_status in gzip", STATUS, ["GET /gz | Accept-Encoding: gzip"], alone=True, lengths="coded"
)
http(
    "stub_status at the server",
    "server { listen 127.0.0.1:@P0@; stub_status; location /x { root @DIR@/www; } }",
    ["GET /", "GET /any", "GET /x"],
    alone=True,
)

Z = "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s; "
C = "limit_conn_zone $binary_remote_addr zone=c:1m; "
for text in (
    "limit_req_zone $a zone=one:1m rate=1r/s;",
    "limit_req_zone $uri zone=one rate=1r/s;",
    "limit_req_zone $uri zone=one:x rate=1r/s;",
    "limit_req_zone $uri zone=one:1k rate=1r/s;",
    "limit_req_zone $uri zone=one:32k rate=1r/s;",
    "limit_req_zone $uri zone=one:1m rate=0r/s;",
    "limit_req_zone $uri zone=one:1m rate=xr/s;",
    "limit_req_zone $uri zone=one:1m rate=5;",
    "limit_req_zone $uri zone=one:1m rate=1r/h;",
    "limit_req_zone $uri zone=one:1m rate=;",
    "limit_req_zone $uri zone=:1m rate=1r/s;",
    "limit_req_zone $uri rate=1r/s zone=one:1m;",
    "limit_req_zone $uri zone=one:1m zone=two:1m;",
    "limit_req_zone $uri zone=one:1m foo=1;",
    "limit_req_zone $uri rate=1r/s rate=1r/s;",
    "limit_req_zone $uri zone=one:1m;",
    "limit_req_zone $uri zone=one:1m rate=1r/s sync;",
    "limit_req_zone ${uri zone=one:1m rate=1r/s;",
    Z + "limit_req_zone $uri zone=one:1m rate=1r/s;",
    Z + "limit_req_zone $uri zone=one:2m rate=1r/s;",
    Z + "limit_conn_zone $uri zone=one:1m;",
    Z + "upstream u { zone one 1m; server 127.0.0.1; }",
    Z + "limit_req zone=one burst=0;",
    Z + "limit_req zone=one burst=x;",
    Z + "limit_req zone=one burst=;",
    Z + "limit_req zone=one delay=0;",
    Z + "limit_req zone=one nodelay delay=3 burst=5;",
    Z + "limit_req zone=one foo;",
    Z + "limit_req one;",
    Z + "limit_req burst=5;",
    Z + "limit_req;",
    Z + "limit_req zone=one; limit_req zone=one;",
    Z + "limit_req zone=two;",
    "limit_req zone=;",
    Z + "limit_req zone=one burst=1 nodelay;",
    Z + "server { limit_req zone=one; location / { limit_req zone=one burst=3; } }",
    "server { limit_req_zone $uri zone=one:1m rate=1r/s; }",
    "limit_req_status 399;",
    "limit_req_status 600;",
    "limit_req_status x;",
    "limit_req_status 404; limit_req_status 404;",
    "limit_req_log_level debug;",
    "limit_req_log_level error;",
    "limit_req_log_level ERROR;",
    "limit_req_log_level warn; limit_req_log_level info;",
    "limit_req_dry_run yes;",
    "limit_req_dry_run on; limit_req_dry_run on;",
    "limit_conn_zone $uri zone=c;",
    "limit_conn_zone $uri zone=c:3k;",
    "limit_conn_zone $uri foo;",
    "limit_conn_zone $uri zone=:1m;",
    "limit_conn_zone $nope zone=c:1m;",
    "limit_conn_zone $uri;",
    C + "limit_conn_zone $uri zone=c:1m;",
    C + "limit_conn c 0;",
    C + "limit_conn c x;",
    C + "limit_conn c 65535;",
    C + "limit_conn c 65536;",
    C + "limit_conn c 1; limit_conn c 2;",
    C + "limit_conn d 2;",
    C + "limit_conn c;",
    C + "limit_req zone=c;",
    Z + "limit_conn one 1;",
    "limit_conn_status 300;",
    "limit_conn_log_level emerg;",
    "limit_conn_dry_run 1;",
    "secure_link $arg_a; secure_link_md5 a;",
    "secure_link_md5 $nope;",
    "empty_gif;",
    "limit_rate $nope;",
):
    http_mistake(text)
for text in (
    "if ($uri) { limit_req zone=one; }",
    "if ($uri) { limit_conn c 1; }",
    "empty_gif on;",
    "empty_gif; empty_gif;",
    "if ($uri) { empty_gif; }",
    "secure_link $uri; secure_link $uri;",
    "secure_link $uri $uri;",
    "secure_link;",
    'secure_link_secret "";',
    "secure_link_secret a; secure_link_secret a;",
    "secure_link_secret a; secure_link $uri;",
    "secure_link_md5 $uri; secure_link_secret a;",
    "secure_link_md5 $uri; location /b { secure_link_secret a; }",
    "secure_link_secret a; location /b { secure_link $uri; }",
    "if ($uri) { secure_link $uri; }",
    "set $secure_link 1;",
    "set $secure_link_expires 1;",
    "set $limit_req_status 1;",
    "set $limit_conn_status 1;",
    "limit_rate_after x;",
    "limit_rate $arg_a; limit_rate_after 10k; limit_rate_after 1;",
):
    location_mistake(text)
for text in (
    "limit_except GET { deny all; } limit_except POST { deny all; }",
    "limit_except FOO { deny all; }",
    "limit_except get Post { deny all; }",
    "limit_except { deny all; }",
    "limit_except GET;",
    "if ($uri) { limit_except GET { deny all; } }",
    "stub_status on; stub_status;",
    "stub_status a b;",
    "if ($uri) { stub_status; }",
    "set $connections_active 1;",
    *[
        f"limit_except GET {{ {inner} }}"
        for inner in (
            "root /;",
            "return 403;",
            "set $a 1;",
            "if ($uri) { return 403; }",
            "rewrite ^ /;",
            "auth_basic x;",
            "auth_basic_user_file x;",
            "auth_delay 1s;",
            "satisfy any;",
            "access_log off;",
            "error_page 403 /x;",
            "fastcgi_pass 127.0.0.1:1;",
            "limit_req zone=one;",
            "add_header X y;",
            "limit_rate 1;",
            "client_max_body_size 1;",
            "try_files a b;",
            "expires 1d;",
            "limit_except GET {}",
            "location /a {}",
            "error_log stderr;",
            "allow all;",
            "gzip on;",
            "internal;",
            "stub_status;",
            "empty_gif;",
            "deny nowhere;",
            "frobnicate;",
        )
    ],
):
    location_mistake(text)
for text in ("limit_except GET { deny all; }", "stub_status;"):
    http_mistake(text)
