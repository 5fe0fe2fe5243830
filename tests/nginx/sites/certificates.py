"""Owns: what is kept of certificates that variables name, keys from stores, shared sessions.

Files change between requests: a case is a line of words, first the cache. `a` asks with a.crt and
a.key, `a+b` with a.crt and b.key, `-a.crt` removes a file, `a=b` puts the pair b in the place of a.
"""

import os
import shutil
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

from ..framing import ask as frame
from ..framing import connected, tls_shows, unproven
from ..site import http
from .handshakes import CLIENTS, GOOD

# Locations have all of them, servers at ports with these digits those up to 6.
CACHES = {
    2: "off",
    3: "max=1",
    4: "max=2",
    5: "max=10 valid=1s",
    6: "max=2 inactive=0",
    7: "max=3",
    8: "max=10",
    9: "max=10 inactive=1s",
}
PORTS = range(2, 7)
OPEN = "server { listen 127.0.0.1:@P0@; location = /where { return 200 @DIR@; }\n"
ORIGIN = f"""
    server {{
        listen 127.0.0.1:@P1@ ssl; {GOOD} ssl_verify_client optional_no_ca; keepalive_timeout 0;
        return 200 "$ssl_client_s_dn\n";
    }}
"""
# Each server has files of its own to change.
SHOWN = """
    proxy_ssl_certificate @DIR@/kept@P0@/$arg_c.crt;
    proxy_ssl_certificate_key %s@DIR@/kept@P0@/$arg_k.%s;
    proxy_ssl_session_reuse off; proxy_pass https://127.0.0.1:@P1@;
"""


def proxies(store: str = "", suffix: str = "key", more: str = "") -> str:
    """A location for each cache."""
    shown = SHOWN % (store, suffix) + more
    kept = [
        f"location /{at} {{ proxy_ssl_certificate_cache {cache}; {shown} }}\n"
        for at, cache in CACHES.items()
    ]
    return ORIGIN + OPEN + "".join(kept) + "}\n"


def servers(store: str = "") -> str:
    """A server for each cache."""
    kept = [
        f"""
            server {{
                listen 127.0.0.1:@P{at}@ ssl; ssl_certificate_cache {cache};
                ssl_certificate @DIR@/kept@P0@/$ssl_server_name.crt;
                ssl_certificate_key {store}@DIR@/kept@P0@/$ssl_server_name.key;
            }}
        """
        for at, cache in CACHES.items()
        if at in PORTS
    ]
    return OPEN + "}\n" + "".join(kept)


def get(port: int, path: str) -> str:
    """The status and the text of an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as got:
            text = f"{got.status} {got.read().decode().strip()}"
    except urllib.error.HTTPError as error:
        text = str(error.code)
    except OSError as error:
        text = f"failed: {type(error).__name__}"
    return text


def shown(port: int, name: str, clients: Path) -> str:
    """Whose certificate it is."""
    try:
        with unproven().wrap_socket(connected(port), server_hostname=name) as peer:
            got = peer.getpeercert(True)
    except OSError:
        return "none"
    known = [
        stem
        for stem in ("good", "plain")
        if ssl.PEM_cert_to_DER_cert((clients / f"{stem}.crt").read_text()) == got
    ]
    return " ".join(known) or "another"


def put(clients: Path, kept: Path, name: str, of: str) -> None:
    """Puts a pair in the place of another one, by new files."""
    for suffix in ("crt", "key", "sealed"):
        made = kept / "new"
        shutil.copy(clients / f"{of}.{suffix}", made)
        made.chmod(0o644)
        os.replace(made, kept / f"{name}.{suffix}")


def change(port: int, case: str) -> list[str]:
    """Does one line of words, with files of this case."""
    home = get(port, "/where").removeprefix("200 ")
    if not home.startswith("/"):
        return [home]
    kept, clients = Path(home, f"kept{port}"), Path(home, "clients")
    lines = []
    kind, cache, *words = case.split(" ")
    own = f".{kind}{cache}{abs(hash(case))}"
    kept.mkdir(exist_ok=True)
    for name in ("good", "plain"):
        put(clients, kept, name + own, name)
    for word in words:
        if word.startswith("-"):
            name, suffix = word[1:].split(".")
            (kept / f"{name}{own}.{suffix}").unlink(missing_ok=True)
        elif "=" in word:
            name, of = word.split("=")
            put(clients, kept, name + own, of)
        elif word == "later":
            time.sleep(2.5)
        elif kind == "shows":
            lines.append(shown(port + int(cache), word + own, clients))
        else:
            chain, _, key = word.partition("+")
            lines.append(get(port, f"/{cache}?c={chain}{own}&k={key or chain}{own}"))
    return lines


SCRIPTS = (
    "good -good.crt -good.key good good",
    "good -good.key good",
    "good -good.crt good",
    "good plain -good.crt -good.key good plain",
    "good plain -good.key good good",
    "good good=plain good good",
    "good plain good=plain plain good",
    "none good none good",
)
APART = (
    "good+plain good plain plain+good good",
    "good plain good -plain.key -good.key good plain",
    "good plain good+plain good -good.crt good",
)
TIMES = (
    "good -good.crt -good.key later good plain good",
    "good good=plain later good",
)


http(
    "certificates: kept for origins",
    proxies(),
    [f"kept {at} {script}" for script in SCRIPTS + APART for at in CACHES]
    + [f"kept {at} {script}" for at in (5, 8, 9) for script in TIMES],
    ask=change,
)
http(
    "certificates: kept for clients",
    servers(),
    [f"shows {at} {script}" for script in SCRIPTS for at in PORTS],
    ask=change,
)
http(
    "certificates: kept from stores for origins",
    proxies("store:file:"),
    [f"kept {at} {script}" for script in SCRIPTS for at in (2, 4)],
    ask=change,
)
http(
    "certificates: kept from stores for clients",
    servers("store:file:"),
    [f"shows {at} {script}" for script in SCRIPTS for at in (2, 4)],
    ask=change,
)
WORDS = f"proxy_ssl_password_file {CLIENTS}good.words;"
http(
    "certificates: kept with passwords",
    proxies(suffix="sealed", more=WORDS),
    ["kept 8 good -good.sealed good", "kept 8 good -good.crt good -good.sealed good"],
    ask=change,
)
http(
    "certificates: kept with needless passwords",
    proxies(more=WORDS),
    ["kept 8 good -good.key good"],
    ask=change,
)

# Keys in PEM behind a certificate, in DER, with and without an authority.
STORED = "server {{ listen 127.0.0.1:@P{}@ ssl; ssl_certificate {}good.crt; {} return 204; }}\n"
STORES = (
    f"ssl_certificate_key store:file:{CLIENTS}good.key;",
    f"ssl_certificate_key store:file://localhost{CLIENTS}good.key;",
    f"ssl_certificate_key store:FILE:{CLIENTS}good.both;",
    f"ssl_certificate_key store:file:{CLIENTS}good.der;",
    f"ssl_certificate_key store:{CLIENTS}good.key;",
    f"ssl_certificate_key store:file:{CLIENTS}good.sealed; ssl_password_file {CLIENTS}good.words;",
)
PLAIN = "server { listen 127.0.0.1:@P0@; return 204; }\n"
http(
    "keys from stores",
    PLAIN + "".join(STORED.format(at + 1, CLIENTS, text) for at, text in enumerate(STORES)),
    [f"tls at {at + 1}" for at in range(len(STORES))],
    ask=lambda port, case: tls_shows(port + int(case[-1]), "x"),
)

# Which servers take up what was agreed on with others. 1 and 2 are alike but for their ports.
AGREED = "ssl_session_timeout 1h; ssl_protocols TLSv1.2;\n" + PLAIN
OWN = f"""
    ssl_certificate {CLIENTS}good.crt; ssl_certificate_key {CLIENTS}good.key;
"""
BY_STEM = f"""
    ssl_certificate {CLIENTS}$stem.crt; ssl_certificate_key {CLIENTS}good.key;
"""
ASKS = f"{GOOD} ssl_verify_client optional; ssl_client_certificate {CLIENTS}"
CONTEXTS = {
    "certificates": {
        1: GOOD,
        2: GOOD + "server_name other;",
        3: OWN,
        4: f"{ASKS}root.crt;",
        5: f"{ASKS}other.crt;",
        6: f"{ASKS}root.crt; ssl_verify_depth 3; ssl_crl {CLIENTS}root.crl;",
    },
    "words": {
        1: OWN,
        2: BY_STEM,
        3: BY_STEM.replace("good.key", "$stem.key"),
        4: BY_STEM.replace("$stem", "$same"),
    },
}
VISITS = {
    "certificates": "11 12 21 13 31 14 41 44 45 46 64 56",
    "words": "12 21 22 23 32 24 42",
}
for kind, settings in (
    ("tickets", "ssl_session_cache shared:S:1m;"),
    ("a cache", "ssl_session_tickets off; ssl_session_cache shared:S:1m;"),
):
    for what, contexts in CONTEXTS.items():
        http(
            f"certificates: sessions belong to {what}: {kind}",
            AGREED
            + "map x $stem { default good; } map x $same { default good; }\n"
            + settings
            + "".join(
                f"server {{ listen 127.0.0.1:@P{at}@ ssl; {text} return 204; }}\n"
                for at, text in contexts.items()
            ),
            [f"tls ticket {visit[0]} {visit[1]}" for visit in VISITS[what].split()],
            ask=frame,
        )


# Ciphers that both have, in the order in which a server takes them, by its name.
STRINGS = (
    "HIGH:!aNULL:!MD5",
    "DEFAULT",
    "EECDH+AESGCM:EDH+AESGCM",
    "EECDH+CHACHA20:EECDH+AES128:RSA+AES128:EECDH+AES256",
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDH+AESGCM:DH+AESGCM:ECDH+AES256:!aNULL:!MD5:!DSS",
    "kEECDH+ECDSA:kEECDH:kEDH:HIGH:+SHA:+RC4:RC4:!aNULL:!eNULL:!LOW:!3DES:!MD5:!EXP:!DSS",
    "ALL:+AES256",
    "ALL:!ADH:@STRENGTH",
    "CHACHA20:ALL:-AES128:AES128",
    "-AES128:ALL:-ECDHE:ALL",
    "ECDHE:-AESGCM:AES:!DSS",
    "TLSv1.2+ECDHE:@SECLEVEL=2",
    "HIGH!AES256",
    "ECDHE:!SHA384:!AESGCM+AES128",
    "HIGH:@SECLEVEL=3",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
)


def order(port: int, name: str) -> list[str]:
    """What a server chooses of all, and then of those that are left; in TLS 1.3 its first."""
    left = [
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
    ]
    chosen = []
    while left:
        context = unproven()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(":".join(left))
        try:
            with context.wrap_socket(connected(port), server_hostname=name) as peer:
                cipher = (peer.cipher() or ("none",))[0]
        except OSError:
            break
        chosen.append(cipher)
        left.remove(cipher)
    with unproven().wrap_socket(connected(port), server_hostname=name) as peer:
        chosen.append((peer.cipher() or ("none",))[0])
    return chosen


http(
    "certificates: ciphers of strings",
    "server { listen 127.0.0.1:@P0@; return 204; }\n"
    + "".join(
        f"""
            server {{
                listen 127.0.0.1:@P1@ ssl; server_name s{at}.test; {GOOD}
                ssl_prefer_server_ciphers on; ssl_ciphers "{text}"; return 204;
            }}
        """
        for at, text in enumerate(STRINGS)
    ),
    [f"tls order s{at}.test" for at in range(len(STRINGS))],
    port=1,
    ask=lambda port, case: order(port, case.split(" ")[-1]),
)
