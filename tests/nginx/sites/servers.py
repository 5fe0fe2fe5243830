"""Owns: the comparison of groups whose servers are looked up by name."""

from ..site import http

# What both are given to look names up.
REST = 1.5
BACK = """
    server { listen 127.0.0.1:@P2@; listen 127.0.0.2:@P2@; listen 127.0.0.3:@P2@;
        location /503/ { return 503; } location / { return 200 "$server_addr $uri"; } }
"""
LINES = {
    "one": "server 1.names.test:@P2@ resolve;",
    "two": "server 1-2.names.test:@P2@ resolve;",
    "upper": "server 1.NAMES.Test:@P2@ resolve;",
    "none": "server none.names.test:@P2@ resolve;",
    "empty": "server empty.names.test:@P2@ resolve;",
    "fail": "server fail.names.test:@P2@ resolve;",
    "wrong": "server a..b:@P2@ resolve;",
    "down": "server 1.names.test:@P2@ resolve down;",
    "mixed": "server 127.0.0.3:@P2@; server 1-2.names.test:@P2@ weight=2 resolve;",
    "backup": "server none.names.test:@P2@ resolve; server 2.names.test:@P2@ resolve backup;",
    "both": "server 1.names.test:@P2@ resolve; server 2.names.test:@P2@ resolve;",
    "dead": "server 9.names.test:@P2@ resolve;",
    "next": "server 9-1.names.test:@P2@ resolve max_fails=1 fail_timeout=1h;",
    "hash": "hash $arg_k; server 1-2-3.names.test:@P2@ resolve;",
    "least": "least_conn; server 1-2.names.test:@P2@ resolve;",
    "address": "server 127.0.0.1:@P2@ resolve;",
    "own": "resolver @ORIGIN@; resolver_timeout 1s; server 1.names.test:@P2@ resolve;",
}
UPSTREAMS = "".join(f"upstream {n} {{ zone {n} 64k; {text} }}\n" for n, text in LINES.items())
PLACES = "".join(
    f"location /{name}/ {{ proxy_pass http://{name}; proxy_next_upstream error http_503;\n"
    'add_header X-Up "$upstream_addr $upstream_status" always; }\n'
    for name in LINES
)
http(
    "servers by name",
    f"""
    resolver @ORIGIN@ ipv6=off; resolver_timeout 5s;
    {UPSTREAMS}
    server {{ listen 127.0.0.1:@P0@; {PLACES} }}
    {BACK}
""",
    [
        REST,
        *(f"GET /{name}/x" for name in LINES if "hash" not in LINES[name]),
        *(f"GET /{name}/{n}" for name in ("mixed", "two", "next", "least") for n in range(6)),
        *(f"GET /hash/x?k={key}" for key in "abcdefgh"),
    ],
    open=True,
)
