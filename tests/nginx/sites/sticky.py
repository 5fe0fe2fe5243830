"""Owns: the comparison of groups that bind their clients to a server.

The ids of servers are routes: those that are made of addresses differ with the ports.
"""

from collections.abc import Sequence
from typing import Any

from .. import site
from ..site import Case

# Three servers that say who they are, and what the request wants to be said.
ORIGINS = """
    server { listen 127.0.0.1:@P1@; listen 127.0.0.1:@P2@; listen 127.0.0.1:@P3@;
        add_header X-New $arg_new always; add_header Set-Cookie $arg_set always;
        location / { return 200 "$request_method $uri\\n"; }
        location /e500 { return 500; } location /e404 { return 404; }
        location /e204 { return 204; }
        location /accel { add_header X-Accel-Redirect /inner;
            add_header X-New $arg_new; add_header Set-Cookie up=1; return 200; } }
"""
THREE = (
    "server 127.0.0.1:@P1@ route=one; server 127.0.0.1:@P2@ route=two; "
    "server 127.0.0.1:@P3@ route=three;"
)
DEAD = "server unix:@DIR@/none.sock route=dead;"


def group(name: str, inside: str, cases: Sequence[Case], more: str = "", **options: Any) -> None:
    """Adds a site that passes to a group with these directives."""
    conf = f"""
    upstream app {{ {inside} }} {ORIGINS}
    server {{ listen 127.0.0.1:@P0@; server_name localhost; location = /next {{ return 204; }}
        location / {{ add_header X-From "$upstream_addr" always; proxy_pass http://app; {more} }}
        location /inner {{ add_header X-From "$upstream_addr" always; return 200 "inner\\n"; }} }}
    """
    site.http(f"sticky {name}", conf, cases, open=True, errors=True, **options)


def asks(clients: str, path: str = "/") -> list[Case]:
    """One request for each letter: without a cookie, or bound to a server."""
    ids = {"1": "one", "2": "two", "3": "three", "d": "dead", "x": "unknown"}
    return [
        (f"client {at} of {clients}", f"GET {path} | Cookie: srv={ids[c]}" if c in ids else "GET /")
        for at, c in enumerate(clients)
    ]


def numbered(cases: Sequence[str]) -> list[Case]:
    """The same with labels, as some are asked more than once."""
    return [(f"{at} {case}", case) for at, case in enumerate(cases)]


COOKIE = "sticky cookie srv;"
group("cookie", f"{THREE} {COOKIE}", asks("UUUU1122331UUU2xUU"))
group("cookie in turn", f"{THREE} {COOKIE}", asks("3U23232U23UUUUU1U2UUU21UU3UUU2UU"))
group(
    "cookie with weights",
    "server 127.0.0.1:@P1@ route=one weight=5; server 127.0.0.1:@P2@ route=two weight=2; "
    f"server 127.0.0.1:@P3@ route=three; {COOKIE}",
    asks("UU2UU22UUU3UU11UUU1UU3UU2UUUU"),
)
for method in ("least_conn", "random two"):
    group(f"cookie with {method}", f"{method}; {THREE} {COOKIE}", asks("112233"))
group(
    "cookie with hash",
    f"hash $arg_k; {THREE} {COOKIE}",
    [f"GET /?k={key}{more}" for key in "abcdef" for more in ("", " | Cookie: srv=two")],
)
group("cookie with ip_hash", f"ip_hash; {THREE} {COOKIE}", asks("UU1122U33x"))
group(
    "cookie in many forms",
    f"{THREE} {COOKIE}",
    [
        f"GET / | Cookie: {cookie}"
        for cookie in (
            "srv=two",
            "SRV=two",
            "srv=two; srv=one",
            "srv=x; srv=one",
            "a=b;srv=two",
            "a=b; srv = two",
            'srv="two"',
            "srv=%74wo",
            "srv=TWO",
            "srv=two,a=b",
            "srv=",
            "srv",
        )
    ]
    + ["GET / | Cookie: a=b | Cookie: srv=three", "HEAD / | Cookie: srv=three"],
)
for attributes in (
    "expires=max",
    "domain=.a.test path=/p",
    "httponly",
    "secure",
    "samesite=lax",
    "samesite=STRICT",
    "path=/$uri samesite=none secure httponly domain=b.test expires=max",
):
    group(
        f"cookie of {attributes}",
        f"{THREE} sticky cookie srv {attributes};",
        ["GET /", "GET /?set=up=1;%20path=/"],
        "add_header Set-Cookie own=1; proxy_cookie_path / /n/; proxy_cookie_flags ~ secure;",
    )
group(
    "cookie of variables",
    f"{THREE} sticky cookie srv domain=$arg_d samesite=$arg_s;",
    [
        f"GET /?d={domain}&s={same}"
        for domain in ("", "a.test")
        for same in ("", "lax", "NONE", "Strict", "odd")
    ],
)
group(
    "cookie whatever becomes of the request",
    f"{THREE} {COOKIE}",
    [
        f"{method} /{path} | Cookie: srv=two"
        for path in ("e500", "e404", "e204", "accel", "a?set=b=c")
        for method in ("GET", "HEAD")
    ],
    "proxy_intercept_errors on; error_page 404 /inner; proxy_hide_header Set-Cookie;",
)
group("cookie of a dead server", f"{THREE} {DEAD} {COOKIE}", asks("dd12dUUUU"))
group("cookie of dead servers only", f"{DEAD} {COOKIE}", asks("dUx"))
group(
    "cookie and backups",
    f"{DEAD} server 127.0.0.1:@P1@ route=one backup; server 127.0.0.1:@P2@ route=two backup; "
    f"{COOKIE}",
    asks("2212UU1"),
)
group(
    "cookie of drained servers",
    "server 127.0.0.1:@P1@ route=one drain; server 127.0.0.1:@P2@ route=two; "
    f"server 127.0.0.1:@P3@ route=three drain down; {COOKIE}",
    asks("UU1U12x3U"),
)
group(
    "cookie of drained servers only",
    f"server 127.0.0.1:@P1@ route=one drain; server 127.0.0.1:@P2@ route=two drain; {COOKIE}",
    asks("U1x2"),
)
group(
    "cookie of one drained server", f"server 127.0.0.1:@P1@ route=one drain; {COOKIE}", asks("U1x")
)
group("no cookie", "server 127.0.0.1:@P1@ drain; server 127.0.0.1:@P2@;", asks("UUU"))
group(
    "route",
    f"{THREE} sticky route $arg_a $cookie_srv $arg_b;",
    [
        *asks("12x3"),
        *numbered(
            [
                "GET /?a=two&b=one",
                "GET /?a=two | Cookie: srv=one",
                "GET /?a=&b=three",
                "GET /?a=none&b=three",
                "GET /?b=one | Cookie: srv=x",
                "GET /",
            ]
        ),
    ],
)
for header in ("", "header"):
    group(
        f"learn {header}",
        f"zone app 64k; {THREE} sticky learn create=$upstream_http_x_new "
        f"create=$upstream_cookie_c lookup=$arg_s lookup=$cookie_s zone=z:1m {header};",
        numbered(
            [
                "GET /?new=a",
                *["GET /?s=a"] * 3,
                "GET /?set=c=b;%20path=/",
                *["GET /?set=c=b"] * 2,
                *["GET / | Cookie: s=b"] * 3,
                "GET /?s=x | Cookie: s=b",
                "HEAD /?new=h",
                *["HEAD /?s=h"] * 3,
                "GET /e500?new=e",
                *["GET /?s=e"] * 3,
                "GET /e404?new=f",
                *["GET /?s=f"] * 3,
                "GET /accel?new=x",
                *["GET /?s=x"] * 3,
                "GET /?s=a&new=b",
                *["GET /?s=b"] * 3,
            ]
        ),
        "proxy_intercept_errors on; error_page 404 /inner;",
    )
