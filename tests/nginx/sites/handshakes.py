"""Owns: what servers take over from `http` of what handshakes are made of.

A directive stands with two values in `http` and in servers; each server is asked at a port of its
own, and all at one by name.
"""

from collections.abc import Sequence
from typing import Any

from ..framing import ask
from ..site import http

CLIENTS = "@DIR@/clients/"
GOOD = "ssl_certificate @CERT@; ssl_certificate_key @KEY@;"
SAYS = "return 200 '$server_name $ssl_protocol $ssl_client_verify $ssl_session_reused';"
# %(x)s is the outer value, %(y)s the inner one.
SERVERS = """
    %(more)s %(x)s
    server { listen 127.0.0.1:@P0@; server_name plain; return 204; }
    server {
        listen 127.0.0.1:@P1@ %(kind)s; listen 127.0.0.1:@P4@ %(kind)s; server_name one; %(rest)s
    }
    server {
        listen 127.0.0.1:@P2@ %(kind)s; listen 127.0.0.1:@P4@ %(kind)s; server_name two;
        %(y)s %(rest)s
    }
    server {
        listen 127.0.0.1:@P3@ %(kind)s; listen 127.0.0.1:@P4@ %(kind)s; server_name three;
        %(x)s %(rest)s
    }
"""
PLACES = [(1, "one"), (2, "two"), (3, "three"), (4, "one"), (4, "two"), (4, "three"), (4, "four")]
GET = ["GET / | Host: %s | Connection: close"]


def inherits(
    name: str,
    x: str,
    y: str,
    cases: Sequence[str | float] | None = None,
    *,
    more: str = GOOD,
    rest: str = SAYS,
    kind: str = "ssl",
    as_whom: Sequence[str | None] = (None,),
    places: Sequence[tuple[int, str]] = tuple(PLACES),
    **options: Any,
) -> None:
    """Compares `name` with the values `x` and `y`.

    Cases are framing.py's, with `%s` for the name, or else requests of these clients.
    """

    def whole(value: str) -> str:
        return f"{name} {value.strip().rstrip(';')};" if value else ""

    def asked(host: str) -> dict[str, Any]:
        if cases:
            named = [one.replace("%s", host) if isinstance(one, str) else one for one in cases]
            return {"ask": ask, "cases": named}
        identities = [(host, stem and f"{CLIENTS}{stem}") for stem in as_whom]
        return {"cases": GET, "alone": True, "identities": identities}

    text = SERVERS % {"x": whole(x), "y": whole(y), "more": more, "rest": rest, "kind": kind}
    for port, host in places:
        key = f"inherits {name}: {host} at {port}"
        http(key, text, port=port, **asked(host), **options)


OLD = GOOD + "ssl_protocols TLSv1.2; "
inherits(
    "ssl_conf_command",
    "Ciphersuites TLS_CHACHA20_POLY1305_SHA256",
    "Ciphersuites TLS_AES_128_GCM_SHA256",
    rest="return 200 $ssl_cipher;",
)
inherits(
    "ssl_password_file",
    f"""
        {CLIENTS}good.words; ssl_certificate {CLIENTS}good.crt;
        ssl_certificate_key {CLIENTS}good.sealed;
    """,
    f"""
        {CLIENTS}plain.words; ssl_certificate {CLIENTS}plain.crt;
        ssl_certificate_key {CLIENTS}plain.sealed;
    """,
    ["tls shows %s"],
    more="",
)
inherits("ssl_dhparam", f"{CLIENTS}dh2048.pem", f"{CLIENTS}dh3072.pem")
inherits(
    "ssl_client_certificate",
    f"{CLIENTS}root.crt",
    f"{CLIENTS}other.crt",
    as_whom=(None, "good", "wrong"),
    more=GOOD + "ssl_verify_client optional;",
)
inherits(
    "ssl_trusted_certificate",
    f"{CLIENTS}pins.crt",
    f"{CLIENTS}root.crt",
    as_whom=("good", "pin", "wrong"),
    more=GOOD + f"ssl_verify_client optional; ssl_client_certificate {CLIENTS}other.crt;",
)
inherits(
    "ssl_crl",
    f"{CLIENTS}root.crl",
    f"{CLIENTS}other.crl",
    as_whom=("good", "revoked"),
    more=GOOD + f"ssl_verify_client optional; ssl_client_certificate {CLIENTS}root.crt;",
)
inherits(
    "ssl_certificate_cache",
    f"""
        max=1 inactive=1m valid=1m; ssl_certificate {CLIENTS}$ssl_server_name.crt;
        ssl_certificate_key {CLIENTS}$ssl_server_name.key;
    """,
    "off",
    ["tls shows good", "tls shows plain", "tls shows good"],
    more="",
    places=[(1, "one"), (2, "two"), (3, "three")],
)
inherits("ssl_certificate_compression", "on", "off")
inherits(
    "ssl_session_ticket_key",
    f"{CLIENTS}one.ticket",
    f"{CLIENTS}two.ticket",
    [f"tls ticket {pair}" for pair in ("1 1", "1 2", "1 3", "2 1", "2 2", "3 1")],
    more=OLD + "ssl_session_cache off;",
    places=[(0, "all")],
)
AUTHORITY = f"""
    ssl_certificate {CLIENTS}plain.crt; ssl_certificate_key {CLIENTS}plain.key;
    ssl_trusted_certificate {CLIENTS}root.crt;
"""
STAPLED = AUTHORITY + "ssl_stapling on;"
inherits(
    "ssl_stapling",
    f"on; ssl_stapling_file {CLIENTS}V.der;",
    "off",
    ["tls staple %s"],
    more=AUTHORITY,
)
inherits("ssl_stapling_file", f"{CLIENTS}V.der", f"{CLIENTS}R.der", ["tls staple %s"], more=STAPLED)
# Who is asked stands in the log of who is; by then it has to be there.
inherits(
    "ssl_stapling_responder",
    "http://127.0.0.1:@P0@/outer",
    "http://127.0.0.1:@P0@/inner",
    ["tls staples 1 2", 0.2],
    more=STAPLED,
    places=[(0, "all")],
    log=True,
)

ALPN = ["tls protocol %s"]
inherits("http2", "on", "off", ALPN)
inherits("http2", "off", "on", ALPN)
inherits(
    "http2",
    "on",
    "off",
    ["h2 settings"],
    more="",
    kind="",
    rest="return 200;",
    places=[(0, "plain"), (1, "one"), (2, "two"), (3, "three")],
)
QUIC = GOOD + "quic_gso off; "
inherits(
    "http3",
    "on; http3_hq off;",
    "off; http3_hq off;",
    ["quic speaks %s"],
    more=QUIC,
    rest="return 200;",
    kind="quic",
)
inherits("http3", "off", "on", ["quic speaks %s"], more=QUIC, rest="return 200;", kind="quic")
inherits(
    "quic_host_key",
    f"{CLIENTS}one.quic",
    f"{CLIENTS}two.quic",
    [f"quic elsewhere {pair}" for pair in ("1 1", "1 2", "1 3", "2 1", "2 2")],
    more=QUIC + "quic_retry on;",
    rest="return 200;",
    kind="quic",
    places=[(0, "all")],
)
