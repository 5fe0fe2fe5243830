"""Owns: the comparison of servers that ask clients for certificates, and the mistakes one makes."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..mistake import MISTAKES
from ..site import Case, Tls, http
from ..text import words

KINDS: list[str | None] = [
    None,
    "good",
    "expired",
    "future",
    "wrong",
    "late",
    "chain",
    "revoked",
    "server",
    "plain",
    "mid",
    "one",
    "two",
    "self",
]
# Against one server, that knows some of their issuers.
ODD = ["netscape", "mailed", "hosted", "pin", "forged", "any", "shorted", "served"]
# Against servers with authorities of both versions: old certificates, and authorities as leaves.
OLD: list[str | None] = [
    "oldleaf",
    "oldgone",
    "oldmid",
    "below",
    "oldown",
    "oldroot",
    "root",
    "mid",
    "authority",
]
OLD += ["signer", "mute", "one", "good", "self", None]
NAMES = words("""
    v_start v_end v_remain s_dn i_dn s_dn_legacy i_dn_legacy serial fingerprint cert
    raw_cert escaped_cert
""")
FACTS = "|".join(f"$ssl_client_{name}" for name in NAMES)
AUTH = {
    "a.test": "ssl_verify_client on; ssl_client_certificate @DIR@/clients/root.crt;",
    "b.test": "",
    "c.test": (
        "ssl_verify_client optional; ssl_client_certificate @DIR@/clients/root.crt; "
        "ssl_crl @DIR@/clients/root.crl;"
    ),
    "d.test": "ssl_verify_client optional_no_ca;",
    "e.test": (
        "ssl_verify_client on; ssl_verify_depth 0; ssl_trusted_certificate @DIR@/clients/root.crt;"
    ),
    "f.test": (
        "ssl_verify_client on; ssl_verify_depth 3; "
        "ssl_client_certificate @DIR@/clients/root.crt; "
        "ssl_trusted_certificate @DIR@/clients/self.crt;"
    ),
    "h.test": (
        "ssl_verify_client optional; ssl_verify_depth 3; "
        "ssl_client_certificate @DIR@/clients/root.crt; "
        "ssl_trusted_certificate @DIR@/clients/pins.crt;"
    ),
    "g.test": (
        "ssl_verify_client optional; ssl_verify_depth 3; "
        "ssl_client_certificate @DIR@/clients/mid.crt;"
    ),
}
OLD_AUTH = "ssl_verify_client optional; ssl_client_certificate @DIR@/clients/olds.crt; "
AUTH |= {
    "i.test": OLD_AUTH + "ssl_verify_depth 2;",
    "j.test": OLD_AUTH + "ssl_verify_depth 2; ssl_crl @DIR@/clients/both1.crl;",
    "k.test": OLD_AUTH + "ssl_verify_depth 2; ssl_crl @DIR@/clients/root1.crl;",
    "l.test": OLD_AUTH + "ssl_verify_depth 2; ssl_crl @DIR@/clients/nomid1.crl;",
    "m.test": OLD_AUTH + "ssl_verify_depth 0;",
}
SERVERS = "".join(
    f"""
        server {{
            listen 127.0.0.1:@P0@; listen 127.0.0.1:@P1@ ssl; server_name {name}; {auth}
            location / {{ return 200 '$ssl_client_verify|{FACTS}'; }}
            location /e {{ return 200 'caught $status $ssl_client_verify'; }}
        }}
    """
    for name, auth in AUTH.items()
)
CONF = "ssl_certificate @CERT@; ssl_certificate_key @KEY@; %s\n" + SERVERS


def identity(name: str, kind: str | None) -> tuple[str, str | None]:
    """A visit to the server `name` with a certificate of this kind."""
    return (name, kind and f"@DIR@/clients/{kind}")


# The last of several faults of a revocation list is not the same one: two.test at c.test.
PAIRS = [
    identity(name, kind) for name in AUTH for kind in KINDS if (name, kind) != ("c.test", "two")
]
PAIRS = [(name, kind) for (name, kind) in PAIRS if name < "i"]
PAIRS += [identity("h.test", kind) for kind in ODD]
PAIRS += [identity(f"{name}.test", kind) for name in "ijklm" for kind in OLD]
OWN = ["GET / | Host: %s | Connection: close"]
OTHERS = ["a.test", "b.test", "c.test", "x.test"]
CASES_OF_OTHERS = [f"GET / | Host: {name} | Connection: close" for name in [*AUTH, "nobody.test"]]


def site(
    name: str, errors: str, identities: Sequence[Tls], cases: Sequence[Case] = tuple(OWN)
) -> None:
    """Adds all servers, visited by each of `identities`."""
    conf = CONF % errors
    http(f"client certificates{name}", conf, cases, port=1, alone=True, identities=identities)


site("", "", PAIRS)
site(" caught", "error_page 495 496 = /e;", PAIRS)
site(
    " with pages",
    "error_page 495 /e; error_page 496 =403 /e;",
    [identity("a.test", None), identity("a.test", "wrong")],
)
site(" of others", "", [identity(name, "good") for name in OTHERS], CASES_OF_OTHERS)
SERVER = (
    "pid @LOGS@/pid; events { }\nhttp { access_log off; server { listen 127.0.0.1:@P0@ ssl;\n"
    "ssl_certificate @CERT@;\n"
    "ssl_certificate_key @KEY@;\n%s\n} }\n"
)
MISTAKES += [
    (f"client certificates {text}", SERVER % text)
    for text in (
        "ssl_verify_client on;",
        "ssl_verify_client optional;",
        "ssl_verify_client optional_no_ca;",
        "ssl_verify_client on; ssl_trusted_certificate @DIR@/clients/root.crt;",
        "ssl_verify_client on; ssl_client_certificate /none;",
        "ssl_client_certificate /none;",
        "ssl_verify_client on; ssl_client_certificate @DIR@/clients/index;",
        "ssl_trusted_certificate /none;",
        "ssl_trusted_certificate @DIR@/clients/index;",
        "ssl_crl /none;",
        "ssl_crl @DIR@/clients/root.crt;",
        "ssl_crl @DIR@/clients/root.crl;",
        "ssl_crl @DIR@/clients/both1.crl;",
        "ssl_certificate @DIR@/clients/oldleaf.crt; ssl_certificate_key @DIR@/clients/good.key;",
        "ssl_verify_client x;",
        "ssl_verify_client on; ssl_verify_client on;",
        "ssl_verify_depth x;",
        "ssl_stapling on; ssl_stapling_file /none;",
    )
]


def fill(home: Path) -> None:
    """Makes authorities, certificates and keys in a directory `clients`."""
    script = Path(__file__).parents[1] / "client_certs.sh"
    subprocess.run(["sh", script, home / "clients"], check=True)


for names in ("a.test", "a.test ~test", "a.test ~(test)", "~^(?<who>.)\\.test$ b.test", "_"):
    http(
        f"client certificates and other hosts: {names}",
        f"""
        log_format f '$request_uri|$status|$host|$http_host|$http_a|$http_b|$request_port|'
            '$is_request_port|$request_length|$server_name';
        server {{
            listen 127.0.0.1:@P0@ ssl; server_name {names}; root @DIR@/www;
            access_log @LOGS@/access.log f; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
            ssl_verify_client optional; ssl_client_certificate @DIR@/clients/root.crt;
            location / {{ return 200 "$host $http_a $http_b $request_port"; }}
        }}
    """,
        [
            f"GET {target} | A: a | Host: {host} | B: b"
            for host in ("a.test", "b.test:99", "next")
            for target in ("/x?y", "http://b.test:80/x", "http://a.test/x")
        ],
        tls="a.test",
        log=True,
    )
