"""Owns: the configurations of fastcgi_cache on which Bolide and nginx are compared.

The script counts how often it runs for its argument n, for each server by itself. A number among
the cases is a pause in seconds, a list is sent side by side, each a little after the one before.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from ..site import Case, http
from ..text import numbers
from .php import DEAD, FORM, HEAD, post

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
EARLIER = "Sat, 05 Nov 1994 08:49:37 GMT"
DATED = ["Last-Modified: " + DATE, 'ETag: "a"']
SHORT = "X-Accel-Expires: 4"
# nginx counts whole seconds: what is good for four may be good for nearly five.
OLD = 5.1
SHOW = (
    "add_header X-Status $upstream_cache_status always; "
    'add_header X-Up "$upstream_status|$upstream_http_x_a|$upstream_cache_etag|'
    '$upstream_cache_last_modified" always;'
)


def zone(
    name: str,
    directives: str,
    cases: Sequence[Case],
    rest: str = "",
    before: str = "",
    **options: Any,
) -> None:
    """A location for the script with a zone of its own."""
    word = name.replace(" ", "-")
    conf = f"""
        fastcgi_cache_path @LOGS@/zone-{word} keys_zone=one:1m; fastcgi_cache_key $request_uri;
        fastcgi_cache_valid 200 1m; {SHOW} {before}
        server {{
            {HEAD} include fastcgi.conf; fastcgi_param SCRIPT_FILENAME @DIR@/app/zone.php;
            fastcgi_param SITE {word}; fastcgi_cache one;
            location / {{ fastcgi_pass @PHPA@; {directives} }}
            {rest}
        }}
    """
    options = {"open": True, "errors": True, "lengths": "any", **options}
    http(f"zone {name}", conf, cases, **options)


def ask(
    n: str | int,
    *fields: str,
    request: str = "GET",
    more: str = "",
    path: str = "/zone",
    **query: str | int,
) -> str:
    """A request for what is counted as n, with these fields in its answer."""
    asked = [f"n={n}", *(f"h[]={quote(field)}" for field in fields)]
    asked += [f"{name}={quote(str(value))}" for name, value in query.items()]
    return f"{request} {path}?{'&'.join(asked)}{more}"


def twice(*args: Any, **options: Any) -> list[Case]:
    """The same request two times."""
    case = ask(*args, **options)
    return [("first " + case, case), ("second " + case, case)]


def thrice(*args: Any, **options: Any) -> list[Case]:
    """The same request three times."""
    case = ask(*args, **options)
    return [*twice(*args, **options), ("third " + case, case)]


def each(rows: Sequence[str | Sequence[str]], start: str = "a") -> list[Case]:
    """Two requests for each row of fields."""
    lists = [[fields] if isinstance(fields, str) else fields for fields in rows]
    return [case for at, fields in enumerate(lists) for case in twice(f"{start}{at}", *fields)]


def at(seconds: str | int) -> str:
    """The answer's own word for some seconds from now."""
    return "X-Accel-Expires: @" + str(seconds)


SAID = [
    "X: y",
    "Cache-Control: max-age=60",
    "Cache-Control: max-age=0",
    "Cache-Control: s-maxage=60",
    "Cache-Control: s-maxage=0, max-age=60",
    "Cache-Control: max-age=0, s-maxage=60",
    "Cache-Control: no-cache",
    "Cache-Control: no-store",
    "Cache-Control: private",
    "Cache-Control: public",
    "Cache-Control: NO-CACHE",
    "Cache-Control: max-age=60, private",
    "Cache-Control: must-revalidate",
    "Cache-Control: max-age=x",
    "Cache-Control: max-age",
    "Cache-Control: max-age=60x",
    'Cache-Control: max-age="60"',
    "Cache-Control: x-max-age=60",
    'Cache-Control: no-cache="x"',
    'Cache-Control: private="x"',
    "Cache-Control: no-transform",
    "Expires: Thu, 19 Nov 1981 08:52:00 GMT",
    "Expires: Thu, 19 Nov 2099 08:52:00 GMT",
    "Expires: 0",
    "Expires: -1",
    "Pragma: no-cache",
    "X-Accel-Expires: 60",
    "X-Accel-Expires: 0",
    "X-Accel-Expires: @4000000000",
    "X-Accel-Expires: x",
    "X-Accel-Expires: -1",
    "X-Accel-Expires: 5x",
    "X-Accel-Expires: off",
    "X-Accel-Expires: @x",
    "X-Accel-Expires: @0",
    "X-Accel-Expires: @1",
    ["X-Accel-Expires: @1", "Expires: Thu, 19 Nov 2099 08:52:00 GMT"],
    ["Cache-Control: max-age=60", "X-Accel-Expires: @1000000000"],
    ["X-Accel-Expires: @0", "Cache-Control: max-age=60"],
    ["X-Accel-Expires: @0", "Cache-Control: no-store"],
    ["Cache-Control: max-age=60", "Expires: 0"],
    ["Expires: 0", "Cache-Control: max-age=60"],
    ["Cache-Control: no-cache", "Expires: Thu, 19 Nov 2099 08:52:00 GMT"],
    ["X-Accel-Expires: 60", "Cache-Control: no-store"],
    ["Cache-Control: private", "X-Accel-Expires: 60"],
    ["X-Accel-Expires: 0", "Cache-Control: max-age=60"],
    ["Cache-Control: max-age=60", "X-Accel-Expires: 0"],
    ["X-Accel-Expires: x", "Cache-Control: no-store"],
    ["Expires: 0", "X-Accel-Expires: 60"],
    ["Cache-Control: public", "Cache-Control: max-age=60"],
    ["Cache-Control: max-age=60", "Cache-Control: no-store"],
    "Set-Cookie: a=1",
    ["Set-Cookie: a=1", "X-Accel-Expires: 60"],
    ["Set-Cookie: a=1", "Cache-Control: max-age=60"],
    "Vary: *",
    "Vary: Accept",
    "Vary: Accept-Encoding",
    "Vary:",
    "X-Powered-By: x",
    "X-A: 1",
    "Age: 50",
    "Warning: 110",
    "WWW-Authenticate: Basic",
    "Content-Type: text/html; charset=x",
    "Content-Encoding: gzip",
    "Content-Length: 100",
    "Location: /x",
    "Link: </a>; rel=preload",
    "Connection: close",
    "X-Accel-Buffering: no",
    "Date: Tue, 14 Nov 2023 22:13:20 GMT",
    "Status: 200 Fine",
]
STATUSES = numbers("""
    200 201 203 204 300 301 302 303 307 308 400 401 403 404 405 410 414 429 451 500 501 502
    503 504
""")

zone(
    "answers",
    "",
    each(SAID)
    + [case for status in STATUSES for case in twice(f"s{status}", s=status)]
    + [
        case
        for status in STATUSES
        for case in twice(f"m{status}", "Cache-Control: max-age=60", s=status)
    ],
)
zone(
    "answers by status",
    (
        "fastcgi_cache_valid 404 1m; fastcgi_cache_valid 301 302 1m; fastcgi_cache_valid 500 0; "
        "fastcgi_cache_valid any 1m;"
    ),
    [case for status in STATUSES for case in twice(status, s=status)]
    + twice("no", "Cache-Control: no-store", s=404)
    + twice("cookie", "Set-Cookie: a=1", s=404),
)
zone(
    "answers by default statuses",
    "fastcgi_cache_valid 5m;",
    [case for status in (200, 301, 302, 404, 203, 307) for case in twice(status, s=status)],
)
zone(
    "ignored fields",
    "fastcgi_ignore_headers X-Accel-Expires Expires Cache-Control Set-Cookie Vary;",
    each(
        [
            "Cache-Control: no-store",
            "Expires: 0",
            "X-Accel-Expires: 0",
            ["Set-Cookie: a=1", "Set-Cookie: b=2"],
            "Vary: *",
            "Vary: Accept",
            "Cache-Control: max-age=1",
            ["Cache-Control: private", "Set-Cookie: a=1"],
        ]
    ),
)
zone(
    "some ignored fields",
    "fastcgi_ignore_headers Cache-Control;",
    each(
        [
            "Cache-Control: no-store",
            ["Cache-Control: no-store", "Expires: 0"],
            ["Cache-Control: no-store", "Set-Cookie: a=1"],
        ],
        "b",
    ),
)
zone(
    "hidden fields",
    "fastcgi_hide_header X-A; fastcgi_pass_header X-Accel-Expires;",
    each([["X-A: 1", "X-B: 2"], "X-Accel-Expires: 60"]),
)
zone(
    "fields added",
    (
        'expires epoch; add_header X-Sent "$sent_http_x_b|$upstream_http_x_b|'
        '$upstream_cookie_c"; add_header X-Own 1 always;'
    ),
    each([["X-B: 2"], "Cache-Control: max-age=5", []])
    + twice("404", "X-B: 1", "Cache-Control: max-age=60", s=404),
    before="add_header X-Above 1;",
)

METHODS = [
    case
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "FOO")
    for case in twice(f"m{method}", request=method)
]
zone(
    "methods",
    "",
    METHODS
    + [
        post("/zone?n=p1", "a=1", FORM, label="first POST"),
        post("/zone?n=p1", "a=1", FORM, label="second POST"),
        ("POST behind GET", "GET /zone?n=p1"),
        ("HEAD behind GET", ask("hg")),
        ask("hg", request="HEAD"),
    ],
)
zone(
    "POST",
    "fastcgi_cache_methods POST;",
    [
        post("/zone?n=p1", "a=1", FORM, label="first POST"),
        post("/zone?n=p1", "a=2", FORM, label="second POST"),
        ask("p1"),
        ask("p1", request="PUT"),
    ],
)
zone(
    "keys with variables",
    'fastcgi_cache_key "$request_method$host$arg_n$http_x$cookie_c";',
    twice("k")
    + [
        ask("k", more=" | X: 1"),
        ("again X", ask("k", more=" | X: 1")),
        ask("k", more=" | Cookie: c=1"),
        ask("k", request="HEAD"),
        ("HEAD again", ask("k", request="HEAD")),
        ask("k", more=" | Host: LOCALHOST:80"),
        ask("k", other=1),
    ],
)
zone(
    "vary",
    "",
    [
        case
        for fields in ("Vary: Accept", "Vary: X-One, X-Two", "Vary: accept , COOKIE")
        for at in ("",)
        for client in (
            "",
            " | Accept: a",
            " | X-One: 1",
            " | X-Two: 1",
            " | X-One: 1 | X-Two: 1",
            " | Cookie: c=1",
            " | Accept:  a",
        )
        for case in twice(fields[:12].replace(" ", "-"), fields, more=client)
    ]
    + [
        ask(f"coded{n}", *fields, more=f" | Accept-Encoding: {client}")
        for n, fields in enumerate(
            [
                ["Vary: Accept-Encoding"],
                ["Vary: , accept-ENCODING ,", "Content-Encoding: x"],
                ["Vary: Accept-Encoding", "Vary: X-One", "Content-Encoding: gzip"],
                ["Vary: accept-language Accept-Encoding"],
            ]
        )
        for client in (
            *("gzip", "br", "x", "a, b", "a,b", ",a , ,b,", "ab", "b,a", "A,b", ""),
            *("a b", "gzip | X-One: ", "gzip | X-One: 1", "a | Accept-Encoding: b"),
        )
    ]
    + [
        ask("bytes", "Vary: X-One", more=f" | X-One: {client}")
        for client in ("a, b", "a,b", "a | X-One: b", " | X-One: a", "a", "A", "")
    ]
    + [ask("bytes", "Vary: X-One")]
    + [
        ("two kinds of Vary " + client, ask("kinds", *fields, path="/keyed", more=client))
        for client, fields in [
            (" | X-One: 1", ["Vary: X-One"]),
            (" | X-One: 2", ["Vary: X-One"]),
            (" | X-One: 3 | X-Two: 1", ["Vary: X-Two"]),
            (" | X-One: 4 | X-Two: 1", ["Vary: X-One"]),
            (" | X-One: 1 | X-Two: 2", []),
            (" | X-One: 1 | X-Two: 3", ["Vary: X-One"]),
        ]
    ]
    + twice("long", "Vary: " + "x" * 129)
    + twice("two", "Vary: A", "Vary: B", more=" | B: 1")
    + twice("two", "Vary: A", "Vary: B", more=" | B: 2")
    + twice("star", "Vary: A, *"),
    rest="location /keyed { fastcgi_cache_key $arg_n; fastcgi_pass @PHPA@; }",
)
zone(
    "bypass",
    (
        "fastcgi_cache_bypass $arg_by $http_by; "
        "fastcgi_no_cache $arg_no $http_no $upstream_http_no $sent_http_gone;"
    ),
    twice("a")
    + twice("a", more=" | By: 1")
    + [("behind", ask("a"))]
    + [
        ask("a", more=" | By: 0"),
        ask("a", more=" | By: "),
        ask("a", more=" | By: a"),
        ("then", ask("a")),
    ]
    + twice("b", more=" | No: 1")
    + [("behind b", ask("b"))]
    + twice("c", "No: 1")
    + twice("d", "No: 0")
    + twice("e", "Gone: 1")
    + [
        ask("f", more=" | By: 1 | No: 1"),
        ask("f"),
        ask("f", request="HEAD", more=" | By: 1"),
        ("then f", ask("f")),
    ],
)
zone(
    "min_uses",
    "fastcgi_cache_min_uses 3;",
    thrice("a") + twice("a") + [ask("b", request="HEAD")] + thrice("b") + thrice("c", s=404),
)
zone(
    "off in a nested location",
    "",
    twice("a", path="/off") + twice("a", path="/other") + twice("a", path="/own") + twice("b"),
    rest="""
        location /off { fastcgi_cache off; fastcgi_pass @PHPA@; }
        location /other { fastcgi_cache_valid 200 0; fastcgi_pass @PHPA@; }
        location /own { fastcgi_cache two; fastcgi_pass @PHPA@; }
    """,
    before="fastcgi_cache_path @LOGS@/zone-two keys_zone=two:1m;",
)
zone(
    "by a text",
    "fastcgi_cache $arg_zone;",
    twice("a", zone="one") + twice("a") + twice("a", zone="off") + twice("a", zone="none"),
    rest="",
    before="",
)
zone(
    "rewritten",
    "",
    twice("a", path="/r") + twice("a", path="/i"),
    rest="""
        location /r { rewrite ^ /zone?n=r break; fastcgi_pass @PHPA@; }
        location /i { error_page 404 = @f; return 404; }
        location @f { fastcgi_pass @PHPA@; }
    """,
)

CONDITIONS = [
    "If-Modified-Since: " + DATE,
    "If-Modified-Since: " + EARLIER,
    'If-None-Match: "a"',
    'If-None-Match: "b"',
    'If-None-Match: W/"a"',
    "If-None-Match: *",
    'If-Match: "a"',
    'If-Match: "b"',
    "If-Match: *",
    "If-Unmodified-Since: " + DATE,
    "If-Unmodified-Since: " + EARLIER,
    'If-None-Match: "a" | If-Modified-Since: ' + EARLIER,
    'If-Range: "a"',
]
zone(
    "conditions",
    "",
    ["GET /none"]
    + [
        case
        for kind, fields in (("d", DATED), ("e", DATED[1:]), ("l", DATED[:1]), ("n", []))
        for at, condition in enumerate(CONDITIONS)
        for case in twice(f"{kind}{at}", *fields, more=" | " + condition)
    ]
    + twice("404", *DATED, "Cache-Control: max-age=60", s=404, more=" | " + CONDITIONS[0])
    + twice("no", *DATED, "Cache-Control: no-store", more=" | " + CONDITIONS[0])
    + twice("cookie", *DATED, "Set-Cookie: a=1", more=" | " + CONDITIONS[2])
    + twice("head", *DATED, request="HEAD", more=" | " + CONDITIONS[0]),
)
RANGES = ["0-3", "5-", "-4", "0-3,8-11", "500-", "0-1,500-", "x", "3-1", "0-0,-1"]
PARTS = ["Content-Length: 30", "Accept-Ranges: bytes"] + DATED
zone(
    "ranges",
    "",
    [
        case
        for at, r in enumerate(RANGES)
        for case in thrice(f"r{at}", *PARTS, len=30, more=f" | Range: bytes={r}")
    ]
    + twice("if", *PARTS, len=30, more=' | Range: bytes=0-3 | If-Range: "a"')
    + twice("if2", *PARTS, len=30, more=' | Range: bytes=0-3 | If-Range: "b"')
    + twice("head", *PARTS, len=30, request="HEAD", more=" | Range: bytes=0-3"),
    lengths=None,
)
zone(
    "ranges by force",
    "fastcgi_force_ranges on;",
    [
        case
        for at, r in enumerate(RANGES)
        for case in twice(f"r{at}", "Content-Length: 30", len=30, more=f" | Range: bytes={r}")
    ],
    lengths=None,
)
zone(
    "ranges that are not offered",
    "",
    [
        case
        for r in ("0-3", "0-3,5-6")
        for case in twice(f"r{r}", "Content-Length: 30", len=30, more=f" | Range: bytes={r}")
    ],
    lengths=None,
)
zone(
    "ranges far behind",
    "fastcgi_cache_max_range_offset 10;",
    [
        case
        for r in ("0-3", "9-", "10-", "-4", " 12-", "0-3,20-", "x-y", "20-1")
        for case in twice(quote(r), *PARTS, len=30, more=f" | Range: bytes={r}")
    ]
    + twice("none", *PARTS, len=30)
    + twice("items", len=30, more=" | Range: items=20-"),
)
zone(
    "no ranges at all",
    "fastcgi_cache_max_range_offset 0;",
    twice("a", *PARTS, len=30, more=" | Range: bytes=0-3") + twice("b", *PARTS, len=30),
)
zone(
    "gzip",
    "gzip on; gzip_types *; gzip_min_length 0; gzip_vary on;",
    [
        case
        for fields in ([], DATED, ["Content-Encoding: br"], ["Cache-Control: max-age=60"])
        for case in thrice(
            f"g{len(str(fields))}", *fields, len=500, more=" | Accept-Encoding: gzip"
        )
    ]
    + twice("g2", len=500),
)

KINDS = ["plain", "updating", "errors", "bg", "bgonly", "confirm", "by"]
AGED = [
    ("warm " + case, case)
    for case in [ask("o", SHORT, path="/" + kind) for kind in KINDS]
    + [ask("500", SHORT, path="/" + kind, from2=500) for kind in KINDS]
    + [ask("404", SHORT, path="/" + kind, from2=404) for kind in KINDS]
    + [ask("503", SHORT, path="/" + kind, from2=503) for kind in ("errors", "plain")]
    + [ask("die", SHORT, path="/" + kind, die2=1) for kind in ("errors", "plain")]
    + [ask("304", SHORT, *DATED, path="/" + kind, confirm=1) for kind in ("confirm", "plain")]
    + [
        ask("304l", SHORT, DATED[0], path="/confirm", confirm=1),
        ask("304n", SHORT, path="/confirm", confirm=1),
        ask("304new", SHORT, *DATED, path="/confirm"),
    ]
    + [
        ask("swr", "Cache-Control: max-age=4, stale-while-revalidate=60", path="/" + kind)
        for kind in ("plain", "bgonly")
    ]
    + [
        ask("sie", "Cache-Control: max-age=4, stale-if-error=60", path="/plain", from2=500),
        ask("sie2", "Cache-Control: max-age=4, stale-if-error=60", SHORT, path="/plain", die2=1),
        ask("sie3", "Cache-Control: max-age=4, stale-while-revalidate=60", path="/plain", die2=1),
    ]
]
PAST = [
    ask(f"past{n}", *fields, *DATED, path="/" + kind)
    for kind in ("plain", "updating", "errors", "bg", "bgonly", "confirm")
    for n, fields in enumerate(
        [
            ["X-Accel-Expires: @1"],
            ["X-Accel-Expires: @1", "Cache-Control: stale-while-revalidate=2000000000"],
            ["Cache-Control: no-cache, stale-while-revalidate=9", "X-Accel-Expires: @1"],
        ]
    )
]
zone(
    "old answers",
    "",
    AGED
    + [OLD]
    + [("old " + label[5:], case) for label, case in AGED]
    + [(f"{when} {case}", case) for case in PAST for when in ("past", "then past")]
    + [
        case
        for status in (200, 201, 301, 404)
        for case in twice(
            f"c{status}", "X-Accel-Expires: @1", DATED[0], path="/confirm", s=status, cond=1
        )
    ]
    + [0.4]
    + [("then " + label[5:], case) for label, case in AGED]
    + [ask("500", SHORT, path="/by", more=" | By: 1", from2=500)],
    rest="""
location /plain { fastcgi_pass @PHPA@; }
location /updating { fastcgi_pass @PHPA@; fastcgi_cache_use_stale updating; }
    location /errors {
        fastcgi_pass @PHPA@; fastcgi_cache_use_stale error invalid_header http_500 http_404;
    }
    location /bg {
        fastcgi_pass @PHPA@; fastcgi_cache_use_stale updating error;
        fastcgi_cache_background_update on;
    }
    location /bgonly { fastcgi_pass @PHPA@; fastcgi_cache_background_update on; }
    location /confirm { fastcgi_pass @PHPA@; fastcgi_cache_revalidate on; }
    location /by {
        fastcgi_pass @PHPA@; fastcgi_cache_bypass $http_by; fastcgi_cache_use_stale http_500;
    }""",
)
zone(
    "origins that take too long",
    "fastcgi_read_timeout 200ms;",
    [
        case
        for label in ("warm", "old")
        for case in [
            (f"{label} {kind}", ask("slow", SHORT, path="/" + kind, ms2=500))
            for kind in ("timeout", "error")
        ]
        + ([OLD] if label == "warm" else [])
    ],
    rest="""
        location /timeout {
            fastcgi_pass @PHPA@; fastcgi_read_timeout 200ms; fastcgi_cache_use_stale timeout;
        }
        location /error {
            fastcgi_pass @PHPA@; fastcgi_read_timeout 200ms; fastcgi_cache_use_stale error;
        }
    """,
)
SLOW = [
    ask("side", SHORT, path="/" + kind, ms=400)
    for kind in ("plain", "updating", "bg", "locked", "lockout")
]
zone(
    "side by side",
    "",
    [
        *((f"two misses {case}", [case, case]) for case in SLOW),
        ("a lock that is old", [ask("age", path="/lockage", ms=1600)] * 2),
        ("after them", ask("age", path="/lockage", ms=1600)),
        *(
            case
            for kind in ("lockage", "lockout", "plain")
            for part in [ask("part", path="/" + kind, ms1=1600)]
            for case in (
                (f"an answer that hangs {part}", [part] * 2),
                ("after it " + part, part),
            )
        ),
        OLD,
        *((f"two of what is old {case}", [case, case]) for case in SLOW[:3]),
        0.5,
        *(("then " + case, case) for case in SLOW[:3]),
    ],
    rest="""
location /plain { fastcgi_pass @PHPA@; }
location /updating { fastcgi_pass @PHPA@; fastcgi_cache_use_stale updating; }
location /bg {
    fastcgi_pass @PHPA@; fastcgi_cache_use_stale updating; fastcgi_cache_background_update on;
}
location /locked { fastcgi_pass @PHPA@; fastcgi_cache_lock on; }
    location /lockage {
        fastcgi_pass @PHPA@; fastcgi_cache_lock on; fastcgi_cache_lock_age 700ms;
    }
    location /lockout {
        fastcgi_pass @PHPA@; fastcgi_cache_lock on; fastcgi_cache_lock_timeout 100ms;
    }""",
)
zone(
    "dead origins",
    "",
    [case for path in ("/any", "/some", "/none", "/page") for case in thrice("d", path=path)]
    + [
        ask("d", path="/any", request="HEAD"),
        ask("d", path="/any", request="DELETE"),
        post("/any?n=d", "x"),
    ],
    rest=f"""
        error_page 504 /errors/50x.html;
        location /any {{ fastcgi_cache_valid any 1m; fastcgi_pass {DEAD}; }}
        location /some {{ fastcgi_cache_valid 502 1m; fastcgi_pass {DEAD}; }}
        location /none {{ fastcgi_cache_valid 200 504 1m; fastcgi_pass {DEAD}; }}
        location /page {{
            fastcgi_cache_valid any 1m; error_page 502 =200 /errors/50x.html; fastcgi_pass {DEAD};
        }}
        location /errors {{ }}
    """,
)
zone(
    "errors of one's own",
    "fastcgi_intercept_errors on; error_page 404 /errors/404.html;",
    twice("a", s=404)
    + twice("b", "Cache-Control: max-age=60", s=404)
    + twice("c", "Cache-Control: max-age=60", s=403),
    rest="location /errors { }",
)
zone(
    "X-Accel-Redirect",
    "",
    twice("a", "X-Accel-Redirect: /style.css")
    + twice("b", "X-Accel-Redirect: /style.css", "Cache-Control: max-age=60")
    + twice("a", "X-Accel-Redirect: /style.css", path="/ign"),
    rest="""
        location /style.css { }
        location /ign { fastcgi_ignore_headers X-Accel-Redirect; fastcgi_pass @PHPA@; }
    """,
)
zone(
    "conditions for the origin",
    "",
    [
        (
            "never kept",
            ask(
                "x",
                cond=1,
                more=' | If-None-Match: "a" | Range: bytes=0-1 | If-Modified-Since: ' + DATE,
            ),
        ),
        ask(
            "x",
            request="POST",
            cond=1,
            more=' | Content-Length: 0 | If-None-Match: "a" | Range: bytes=0-1',
        ),
        ask(
            "y",
            cond=1,
            by=1,
            path="/off",
            more=' | If-None-Match: "a" | If-Match: "b" | If-Range: "c" | If-Unmodified-Since: x',
        ),
    ],
    rest="location /off { fastcgi_cache off; fastcgi_pass @PHPA@; }",
)
zone(
    "a log",
    "",
    twice("a", "X-A: 1") + [ask("b", s=404), ask("c", request="POST", more=" | Content-Length: 0")],
    before=(
        "log_format zone '$request|$status|$upstream_cache_status|$upstream_status|"
        "$upstream_addr|$upstream_http_x_a|$upstream_cache_etag|$upstream_cache_last_modified'; "
        "access_log @LOGS@/access.log zone;"
    ),
    log=True,
)
