"""Owns: the comparison of TLS to origins, and the mistakes one makes.

Each program is its own origin: of that the comparisons of TLS and of answers say enough, and both
ends of a handshake are looked at.
"""

from collections.abc import Sequence

from ..mistake import HEAD as TOP
from ..mistake import whole
from ..site import Case, Single, http
from .overriding import site as override
from .php import post

FACTS = "$ssl_server_name|$ssl_protocol|$ssl_client_s_dn|$ssl_client_verify|$host|$request_uri"
ORIGIN = """
    server {
        listen 127.0.0.1:@P1@ ssl; server_name origin;
        ssl_certificate @CERT@; ssl_certificate_key @KEY@;
        ssl_verify_client optional_no_ca; ssl_session_cache shared:S:1m;
        location / { return 200 "%s"; }
    }
    server {
        listen 127.0.0.1:@P2@ ssl; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
        ssl_protocols TLSv1.2; location / { return 200 "old $ssl_protocol"; }
    }
    server {
        listen 127.0.0.1:@P4@ ssl; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
        location / { return 200 $ssl_cipher; }
    }
"""
ORIGIN %= FACTS
GOOD = "proxy_pass https://127.0.0.1:@P1@;"
SHOWN = "proxy_ssl_certificate @CERT@; proxy_ssl_certificate_key @KEY@;"
TRUST = "proxy_ssl_verify on; proxy_ssl_trusted_certificate"


def site(name: str, locations: dict[str, str], cases: Sequence[Case], before: str = "") -> None:
    """Locations by their paths; what the log says of each request is compared as well."""
    text = "".join(f"location {path} {{ {own} }}\n" for path, own in locations.items())
    told = "'$proxy_host $proxy_port $upstream_addr $upstream_status'"
    head = f"server {{ listen 127.0.0.1:@P0@; add_header X-Told {told} always;"
    conf = f"{ORIGIN}{before}{head}\n{text}}}\n"
    http(f"secured {name}", conf, cases, open=True, errors=True, lengths="any")


site(
    "names",
    {
        "/off": GOOD,
        "/on": GOOD + "proxy_ssl_server_name on;",
        "/name": GOOD + "proxy_ssl_server_name on; proxy_ssl_name a.test;",
        "/port": GOOD + "proxy_ssl_server_name on; proxy_ssl_name a.test:443;",
        "/variable": GOOD + "proxy_ssl_server_name on; proxy_ssl_name $arg_n;",
        "/host": GOOD
        + "proxy_ssl_server_name on; proxy_ssl_name $host; proxy_set_header Host $host;",
        "/local": "proxy_ssl_server_name on; proxy_pass https://localhost:@P1@/;",
        "/late": (
            "set $to 127.0.0.1:@P1@; proxy_ssl_server_name on; proxy_ssl_name b.test; "
            "proxy_pass https://$to;"
        ),
        "/scheme": "set $s https; proxy_pass $s://127.0.0.1:@P1@/x?y;",
        "/group": "proxy_ssl_server_name on; proxy_pass https://app;",
        "/case": "proxy_pass HTTPS://app/c;",
        "/closed": "proxy_pass https://127.0.0.1:1;",
        "/usual": "proxy_pass https://127.0.0.9;",
        "/group80": "proxy_pass https://portless;",
        "/other": "proxy_pass https://127.0.0.9:80;",
    },
    [
        "GET /off",
        "GET /on?a=b",
        "GET /name",
        "GET /port",
        "GET /variable?n=v.test",
        "GET /variable",
        "GET /variable?n=127.0.0.1",
        "GET /variable?n=[::1]:8",
        "GET /variable?n=:8",
        "GET /host | Host: h.test",
        "GET /local/a%20b",
        "GET /late",
        "GET /scheme",
        "GET /group",
        "GET /case/d",
        "GET /closed",
        "GET /usual",
        "GET /group80",
        "GET /other",
    ],
    before="upstream app { server 127.0.0.1:@P1@; } upstream portless { server 127.0.0.9; }\n",
)
site(
    "trust",
    {
        "/unasked": GOOD,
        "/good": GOOD + TRUST + " @CERT@; proxy_ssl_name localhost;",
        "/variable": GOOD + TRUST + " @CERT@; proxy_ssl_name $arg_n;",
        "/address": GOOD + TRUST + " @CERT@;",
        "/stranger": GOOD + TRUST + " @DIR@/clients/root.crt; proxy_ssl_name localhost;",
        "/next": "proxy_pass https://app; " + TRUST + " @CERT@; proxy_ssl_name no.test;",
        "/untried": "proxy_pass https://app; proxy_next_upstream off; "
        + TRUST
        + " @CERT@; proxy_ssl_name no.test;",
    },
    [
        "GET /good",
        "GET /good",
        "GET /variable?n=localhost",
        "GET /variable?n=LOCALHOST",
        "GET /variable?n=no.test",
        "GET /variable",
        "GET /variable?n=localhost.",
        "GET /stranger",
        "GET /next",
        "GET /untried",
    ],
    before="""
        proxy_ssl_session_reuse off;
        upstream app { server 127.0.0.1:@P1@; server 127.0.0.1:@P1@; }
    """,
)
site(
    "shown",
    {
        "/none": GOOD,
        "/shown": GOOD + SHOWN,
        "/empty": GOOD + "proxy_ssl_certificate '';",
        "/inherited/": GOOD + SHOWN,
        "/computed": GOOD + "proxy_ssl_certificate @DIR@/$arg_c; proxy_ssl_certificate_key @KEY@;",
        "/nothing": GOOD + "proxy_ssl_certificate $arg_c; proxy_ssl_certificate_key $arg_c;",
    },
    [
        "GET /none",
        "GET /shown",
        "GET /empty",
        "GET /inherited/",
        "GET /computed?c=none.pem",
        "GET /nothing",
    ],
    before="proxy_ssl_session_reuse off;\n",
)
site(
    "versions",
    {
        "/new": GOOD + "proxy_ssl_protocols TLSv1.3;",
        "/old": GOOD + "proxy_ssl_protocols TLSv1.2;",
        "/12": "proxy_pass https://127.0.0.1:@P2@;",
        "/none": "proxy_pass https://127.0.0.1:@P2@; proxy_ssl_protocols TLSv1.3;",
        "/cipher": "proxy_pass https://127.0.0.1:@P4@;"
        + (
            "proxy_ssl_protocols TLSv1.2; proxy_ssl_ciphers ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-R"
            "SA-CHACHA20-POLY1305;"
        ),
        "/suite": "proxy_pass https://127.0.0.1:@P4@;"
        + "proxy_ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;",
        "/plain": "proxy_pass http://127.0.0.1:@P1@;",
    },
    [
        "GET /new",
        "GET /old",
        "GET /12",
        "GET /none",
        "GET /cipher",
        "GET /suite",
        "GET /plain",
        post("/new", "body"),
    ],
    before="proxy_ssl_session_reuse off;\n",
)

# What locations take over. Two origins with names of their own, behind one authority or two.
CLIENTS = "@DIR@/clients/"
LEAVES = "".join(
    f"""
        server {{
            listen 127.0.0.1:@P{port}@ ssl;
            ssl_certificate {CLIENTS}{stem}.crt; ssl_certificate_key {CLIENTS}{stem}.key;
            return 200 '$server_port $ssl_session_reused';
        }}
    """
    for port, stem in ((5, "deep"), (6, "plain"))
)


def inherits(
    name: str,
    x: str,
    y: str,
    port: int = 1,
    cases: Single | list[Single] = "GET /",
    more: str = "proxy_ssl_session_reuse off;",
) -> None:
    """Compares `proxy_ssl_NAME` with the values `x` and `y`."""
    passing = f"proxy_pass https://127.0.0.1:@P{port}@;"
    more = ORIGIN + LEAVES + more
    override(f"proxy_ssl_{name}", x, y, cases, passing, more=more, lengths="any")


OLD = "proxy_ssl_protocols TLSv1.2; proxy_ssl_session_reuse off;"
NAMED = "proxy_ssl_server_name on; proxy_ssl_session_reuse off;"
ROOT = f"proxy_ssl_trusted_certificate {CLIENTS}root.crt; proxy_ssl_session_reuse off;"


def own(stem: str, key: str = "key") -> str:
    """A certificate of one's own, as the value of its directive."""
    return f"{CLIENTS}{stem}.crt; proxy_ssl_certificate_key {CLIENTS}{stem}.{key};"


inherits("name", "a.test", "b.test", more=NAMED)
inherits("name", "$arg_n", "c.$arg_n", cases="GET /?n=d.test", more=NAMED)
inherits("server_name", "on", "off", more="proxy_ssl_name a.test; proxy_ssl_session_reuse off;")
inherits("server_name", "off", "on", more="proxy_ssl_name a.test; proxy_ssl_session_reuse off;")
inherits("protocols", "TLSv1.2", "TLSv1.3")
inherits("protocols", "TLSv1.2", "TLSv1.3", port=2)
inherits(
    "ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256", port=4, more=OLD
)
inherits(
    "conf_command",
    "Ciphersuites TLS_CHACHA20_POLY1305_SHA256",
    "Ciphersuites TLS_AES_128_GCM_SHA256",
    port=4,
)
inherits("certificate", own("good"), own("plain"))
inherits("certificate", own("good"), "''")
inherits(
    "certificate_key",
    f"{CLIENTS}good.key; proxy_ssl_certificate {CLIENTS}good.crt;",
    f"{CLIENTS}plain.key; proxy_ssl_certificate {CLIENTS}plain.crt;",
)
inherits(
    "password_file",
    f"{CLIENTS}good.words; proxy_ssl_certificate {own('good', 'sealed')}",
    f"{CLIENTS}plain.words; proxy_ssl_certificate {own('plain', 'sealed')}",
)
inherits(
    "certificate_cache",
    f"""
        max=1; proxy_ssl_certificate {CLIENTS}$arg_c.crt;
        proxy_ssl_certificate_key {CLIENTS}$arg_c.key;
    """,
    "off",
    cases=["GET /?c=good", "GET /?c=plain", "GET /?c=good"],
)
inherits("verify", "on; proxy_ssl_name no.test;", "off", port=6, more=ROOT)
inherits("verify", "off", "on; proxy_ssl_name plain;", port=6, more=ROOT)
inherits(
    "verify_depth", "0", "1", port=5, more=ROOT + "proxy_ssl_verify on; proxy_ssl_name localhost;"
)
inherits(
    "trusted_certificate",
    f"{CLIENTS}root.crt",
    f"{CLIENTS}other.crt",
    port=6,
    more="proxy_ssl_verify on; proxy_ssl_name plain; proxy_ssl_session_reuse off;",
)
inherits(
    "crl",
    f"{CLIENTS}root.crl",
    f"{CLIENTS}other.crl",
    port=6,
    more=ROOT + "proxy_ssl_verify on; proxy_ssl_name plain;",
)
inherits(
    "session_reuse", "off", "on", port=6, cases=[("first", "GET /"), ("second", "GET /")], more=""
)

PASS = "proxy_pass https://127.0.0.1:9;"
for text in (
    "proxy_ssl_verify on;",
    "proxy_ssl_verify x;",
    "proxy_ssl_verify on; proxy_ssl_trusted_certificate none;",
    "proxy_ssl_verify on; proxy_ssl_trusted_certificate cert.key;",
    "proxy_ssl_trusted_certificate none;",
    "proxy_ssl_verify on; proxy_ssl_trusted_certificate cert.pem; proxy_ssl_crl none;",
    "proxy_ssl_verify on; proxy_ssl_trusted_certificate cert.pem; proxy_ssl_crl cert.pem;",
    "proxy_ssl_crl none;",
    "proxy_ssl_certificate cert.pem;",
    "proxy_ssl_certificate_key cert.key;",
    "proxy_ssl_certificate none; proxy_ssl_certificate_key cert.key;",
    "proxy_ssl_certificate cert.pem; proxy_ssl_certificate_key none;",
    "proxy_ssl_certificate cert.pem; proxy_ssl_certificate_key stranger.key;",
    "proxy_ssl_certificate $host.pem;",
    "proxy_ssl_certificate $host.pem; proxy_ssl_certificate_key x;",
    "proxy_ssl_certificate $nonesuch; proxy_ssl_certificate_key x;",
    "proxy_ssl_certificate '';",
    "proxy_ssl_certificate '' ; proxy_ssl_certificate_key '';",
    "proxy_ssl_certificate a b;",
    "proxy_ssl_certificate;",
    "proxy_ssl_certificate cert.pem; proxy_ssl_certificate cert.pem;",
    "proxy_ssl_certificate data:x; proxy_ssl_certificate_key data:y;",
    "proxy_ssl_password_file none;",
    "proxy_ssl_protocols bogus;",
    "proxy_ssl_protocols;",
    "proxy_ssl_protocols TLSv1.2 TLSv1.2;",
    "proxy_ssl_protocols TLSv1.2; proxy_ssl_protocols TLSv1.3;",
    "proxy_ssl_ciphers bogus;",
    "proxy_ssl_ciphers HIGH; proxy_ssl_ciphers HIGH;",
    "proxy_ssl_ciphers HIGH:!aNULL:!MD5;",
    "proxy_ssl_conf_command bogus x;",
    "proxy_ssl_conf_command Ciphersuites bogus;",
    "proxy_ssl_conf_command MinProtocol bogus;",
    "proxy_ssl_conf_command MinProtocol TLSv1.3;",
    "proxy_ssl_conf_command MaxProtocol bogus;",
    "proxy_ssl_conf_command Curves bogus;",
    "proxy_ssl_conf_command Groups X25519;",
    "proxy_ssl_conf_command x;",
    "proxy_ssl_name;",
    "proxy_ssl_name a; proxy_ssl_name b;",
    "proxy_ssl_name $nonesuch;",
    "proxy_ssl_name '';",
    "proxy_ssl_server_name x;",
    "proxy_ssl_session_reuse x;",
    "proxy_ssl_verify_depth x;",
    "proxy_ssl_verify_depth -1;",
    "proxy_ssl_certificate_cache max=0;",
    "proxy_ssl_certificate_cache valid=1s;",
    "proxy_ssl_certificate_cache off max=1;",
    "proxy_ssl_certificate_cache bogus;",
    "if ($arg_a) { proxy_ssl_verify on; }",
    "limit_except GET { proxy_ssl_verify on; }",
):
    for way in (PASS, "proxy_pass http://127.0.0.1:9;", "proxy_pass http://$host;"):
        if way == PASS or "none" in text or text.startswith("proxy_ssl_verify on"):
            whole(
                f"secured: {way} {text}",
                TOP
                + "http { access_log off; server { listen 127.0.0.1:@P0@; location / {\n"
                + way
                + "\n"
                + text
                + "\n} } }\n",
            )
for text in (
    "proxy_pass https://;",
    "proxy_pass https:///;",
    "proxy_pass https://nope.invalid;",
    "proxy_pass https://app:443;",
    "proxy_pass https://app;",
    "proxy_pass https://unix:/tmp/none:/a;",
    "proxy_pass HTTPS://127.0.0.1:9/x;",
    "proxy_pass https:/x;",
):
    whole(
        f"secured: {text}",
        TOP
        + (
            "http { access_log off; upstream app { server 127.0.0.1; } server { "
            "listen 127.0.0.1:@P0@; location / {\n"
        )
        + text
        + "\n} } }\n",
    )
