"""The oracle of TLS contexts: random sites, random visitors, and what each may be told.

`tls_contexts.py conf FROM TO` prints servers for these seeds, each site on an address of its own;
`tls_contexts.py visit PORT CLIENTS FROM TO` visits them, prints what no rule allows, and last how
much of everything happened. A server's secret is for those whose handshake met its rules: it names
the server and what became of the client's certificate. The rules are written down here, from the
outside: nothing is asked of the server that is judged but its answers.
"""

import asyncio
import dataclasses
import random
import re
import socket
import struct
import sys
import time
from collections import Counter

from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration
from OpenSSL import SSL
from OpenSSL._util import lib

from h3_peer import Peer, head

LIMIT = 60.0
VISITS, QUIC_VISITS = 36, 5
VERSIONS = {"1.2": SSL.TLS1_2_VERSION, "1.3": SSL.TLS1_3_VERSION}
# Of tests/nginx/client_certs.sh: `two` has two authorities between itself and the root.
CERTS = [None, "good", "wrong", "expired", "late", "self", "revoked", "two"]
BY_ROOT = ("good", "expired", "revoked", "two")
BAD_IN_TIME = ("expired", "late")
TOLD = re.compile(rb"secret of (\S+): ([^;]*);|notice of (\S+);")


# ---- sites -------------------------------------------------------------------


class Server:
    """One server of a site: its names, and whom it lets in."""

    def __init__(self, draw, number, trust):
        self.kind = draw.choice(["exact", "exact", "wildcard", "regex", "two"])
        self.number = number
        self.label = f"s{number}"
        self.verify = draw.choice(["off", "on", "on", "optional", "optional_no_ca"])
        self.rejects = draw.random() < 0.08
        if self.rejects:
            self.verify = "off"
        own = draw.random()
        self.trust = trust if trust and own < 0.3 else {
            # Often the authorities of another server, and not all that goes with them.
            "ca": trust["ca"] if trust and own < 0.6 else draw.choice(["root", "other", "both"]),
            "depth": draw.choice([1, 1, 3]),
        }
        if "crl" not in self.trust:
            self.trust["crl"] = self.trust["ca"] == "root" and draw.random() < 0.4
        self.notice = draw.random() < 0.3
        self.cache = draw.choice(["none", "shared:all:1m", f"shared:own{number}:1m"])
        self.tickets = draw.choice(["on", "on", "off"])
        self.has_key = draw.random() < 0.4
        self.early = draw.random() < 0.6

    def names(self):
        n = self.number
        exact, wild, regex = f"e{n}.test", f"*.w{n}.test", f"~^r{n}[0-9]+\\.test$"
        return {"exact": [exact], "wildcard": [wild], "regex": [regex], "two": [exact, wild]}[
            self.kind
        ]

    def concrete(self, draw):
        """A name by which it is known."""
        name = draw.choice(self.names())
        name = name.replace("*", draw.choice(["a", "b.a"]))
        return f"r{self.number}{draw.randrange(100)}.test" if name[0] == "~" else name

    def is_named(self, name):
        n = self.number
        rows = {
            "exact": [name == f"e{n}.test"],
            "wildcard": [name.endswith(f".w{n}.test")],
            "regex": [re.fullmatch(rf"r{n}[0-9]+\.test", name)],
        }
        rows["two"] = rows["exact"] + rows["wildcard"]
        return any(rows[self.kind])

    def vouches(self, cert):
        """Whether its authorities say that they know the one who showed this certificate."""
        if cert is None or cert == "self" or cert in BAD_IN_TIME:
            return False
        ca = "root" if cert in BY_ROOT else "other"
        if self.trust["ca"] not in (ca, "both"):
            return False
        # The authorities between have no list of what they revoked, so all of theirs is refused.
        is_short = cert != "two" or (self.trust["depth"] > 1 and not self.trust["crl"])
        return is_short and not (cert == "revoked" and self.trust["crl"])

    def may_overlook(self, cert):
        """Whether `optional_no_ca` may let it pass: all that is wrong may be who signed it."""
        known = self.trust["ca"] == "both" or (self.trust["ca"] == "root") == (cert in BY_ROOT)
        return cert == "self" or not known or (cert == "two" and not self.vouches(cert))

    def must_overlook(self, cert):
        """Whether it has to: nothing else is wrong with it."""
        return self.may_overlook(cert) and cert in ("self", "good", "wrong")

    def lets_in(self, cert):
        """Whether who showed this certificate, or none, has to be let in."""
        if self.verify == "off" or self.vouches(cert):
            return True
        if cert is None:
            return self.verify != "on"
        return self.verify == "optional_no_ca" and self.must_overlook(cert)

    def conf(self, address, is_first):
        lines = [f"listen {address}:@HTTPS@ ssl; listen {address}:@HTTPS@ quic; http2 on;"]
        if is_first:
            lines.append("listen 127.0.0.1:@HTTP@;")
        lines += [f'server_name "{name}";' for name in self.names()]
        trust = self.trust
        lines.append(f"ssl_client_certificate @DIR@/clients/{trust['ca']}.crt;")
        lines.append(f"ssl_verify_client {self.verify}; ssl_verify_depth {trust['depth']};")
        if trust["crl"]:
            lines.append("ssl_crl @DIR@/clients/root.crl;")
        lines.append(f"ssl_session_cache {self.cache}; ssl_session_tickets {self.tickets};")
        if self.has_key:
            lines.append("ssl_session_ticket_key @DIR@/clients/one.ticket;")
        if self.early:
            lines.append("ssl_early_data on;")
        if self.rejects:
            lines.append("ssl_reject_handshake on;")
        if self.notice:
            lines.append("error_page 421 /lost;")
            lines.append(f'location = /lost {{ return 200 "notice of {self.label};"; }}')
        told = f"secret of {self.label}: $ssl_client_verify;"
        lines.append(f'location / {{ return 200 "{told}"; }}')
        return "server {\n  " + "\n  ".join(lines) + "\n}\n"


def plain(name):
    """A name as servers compare it."""
    name = name.lower()
    return name[:-1] if name.endswith(".") else name


class Site:
    """The servers of one address. The first one is the default."""

    def __init__(self, seed):
        self.seed = seed
        self.address = f"127.0.{1 + seed // 250}.{1 + seed % 250}"
        self.draw = random.Random(f"tls contexts {seed}")
        self.servers = []
        for number in range(self.draw.randint(2, 4)):
            trust = self.servers[0].trust if self.servers else None
            self.servers.append(Server(self.draw, number, trust))
        self.draw.shuffle(self.servers)

    def conf(self, is_first):
        rows = [server.conf(self.address, is_first and n == 0)
                for n, server in enumerate(self.servers)]
        return f"# seed {self.seed}\n" + "".join(rows)

    def named(self, name):
        """The server that has this name, or the default one."""
        name = plain(name or "")
        return next((server for server in self.servers if server.is_named(name)), self.servers[0])

    def is_known(self, name):
        return any(server.is_named(plain(name)) for server in self.servers)


# ---- visitors ----------------------------------------------------------------


@dataclasses.dataclass
class Session:
    """What a handshake left to its client: for which name, and which certificate was shown."""

    version: str
    sni: str | None
    shown: str | None
    held: object


@dataclasses.dataclass
class Visit:
    """A connection and the requests on it: each a host, and over HTTP/1 perhaps another one in the
    field Host, beside the one in the request line, which counts."""

    sni: str | None
    cert: str | None
    requests: list
    version: str
    http: str
    session: Session | None
    shown: str | None = None
    reused: bool = False

    def __str__(self):
        return (f"{self.http} tls {self.version} sni {self.sni} cert {self.cert} "
                f"session {self.session and (self.session.sni, self.session.shown)} "
                f"reused {self.reused}")


def other_case(draw, name):
    return "".join(c.upper() if draw.random() < 0.5 else c for c in name)


def dress(draw, name):
    """The same name, written in another way now and then."""
    kind = draw.random()
    if kind < 0.1:
        return other_case(draw, name)
    return name + "." if kind < 0.2 else name


def visit_of(site, http, kept):
    """A visit, and with which session of former ones it comes."""
    draw = site.draw
    version = "1.3" if http == "h3" else draw.choice(["1.2", "1.3"])
    pick, store = draw.random(), [session for session in kept if session.version == version]
    session = store[int(pick * len(store))] if store and draw.random() < 0.6 else None
    kind, sni = draw.random(), None
    if session and draw.random() < 0.6:
        sni = session.sni
    elif kind > 0.3:
        sni = dress(draw, draw.choice(site.servers).concrete(draw))
    elif kind > 0.15:
        sni = draw.choice(["nobody.test", "localhost"])
    cert = draw.choice(CERTS)
    if draw.random() < 0.4:
        cert = draw.choice([c for c in CERTS if site.named(sni).vouches(c)] or [None])
    requests = []
    for _ in range(draw.choice([1, 1, 2])):
        host = draw.choice(site.servers).concrete(draw)
        if sni and draw.random() < 0.45:
            host = plain(sni)
        if draw.random() < 0.05:
            host = "nobody.test"
        # Over HTTP/2 and 3 that is malformed, and who sends much of it is sent away.
        other = draw.choice(site.servers).concrete(draw) if draw.random() < 0.15 else None
        other = other if http == "h1" else None
        requests.append((dress(draw, host), other))
    return Visit(sni, cert, requests, version, http, session)


class Contexts(dict):
    """What visits with the same certificate, version and protocol share."""

    def __init__(self, clients):
        self.clients = clients

    def __missing__(self, key):
        cert, version, http = key
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_min_proto_version(VERSIONS[version])
        context.set_max_proto_version(VERSIONS[version])
        context.set_alpn_protos([b"h2" if http == "h2" else b"http/1.1"])
        if cert:
            context.use_certificate_chain_file(f"{self.clients}/{cert}.crt")
            context.use_privatekey_file(f"{self.clients}/{cert}.key")
        self[key] = context
        return context


def patient(address, port):
    """A connection, if need be after a while: the server opens its sockets one by one."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return socket.create_connection((address, port))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


class Over:
    """A TLS connection, read until something is there or it ends."""

    def __init__(self, site, port, context, visit):
        bare = patient(site.address, port)
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The library wants a socket that blocks; the kernel bounds each wait.
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(LIMIT), 0))
        self.bare, self.held, self.is_open, self.stays = bare, b"", True, True
        self.tls = SSL.Connection(context, bare)
        self.tls.set_connect_state()
        if visit.sni:
            self.tls.set_tlsext_host_name(visit.sni.encode())
        if visit.session:
            # Its own method wants the context of before, which has that visit's certificate.
            lib.SSL_set_session(self.tls._ssl, visit.session.held._session)
        self.tls.do_handshake()
        visit.reused = lib.SSL_session_reused(self.tls._ssl) == 1

    def send(self, data):
        try:
            self.tls.sendall(data)
        except (SSL.Error, OSError):
            self.is_open = False

    def until(self, size):
        while len(self.held) < size and self.is_open:
            try:
                self.held += self.tls.recv(65536)
            except SSL.WantReadError:
                raise TimeoutError from None
            except (SSL.Error, OSError):
                self.is_open = False
        return len(self.held) >= size

    def take(self, size):
        self.until(size)
        out, self.held = self.held[:size], self.held[size:]
        return out

    def close(self):
        try:
            # Else the library thinks the session is spoilt.
            self.tls.shutdown()
        except (SSL.Error, OSError):
            pass
        self.bare.close()


def ask_h1(over, host, other, is_last):
    line, field = ("/", host) if other is None else (f"https://{host}/", other)
    end = "Connection: close\r\n" if is_last else ""
    over.send(f"GET {line} HTTP/1.1\r\nHost: {field}\r\n{end}\r\n".encode())
    while b"\r\n\r\n" not in over.held and over.until(len(over.held) + 1):
        pass
    head, _, over.held = over.held.partition(b"\r\n\r\n")
    # A refusal may be the last answer of its connection.
    over.stays = b"\r\nconnection: close" not in head.lower()
    size = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return over.take(int(size[1]) if size else 1 << 20)


def literal(name, value):
    """RFC 7541 §6.2.2."""
    name, value = name.encode(), value.encode()
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def frame2(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def ask_h2(over, host, stream):
    start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame2(4, 0, 0) if stream == 1 else b""
    fields = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", "/")]
    block = b"".join(literal(*field) for field in fields)
    over.send(start + frame2(1, 5, stream, block))
    body = b""
    while len(top := over.take(9)) == 9:
        payload = over.take(int.from_bytes(top[:3], "big"))
        kind, flags, of = top[3], top[4], int.from_bytes(top[5:], "big")
        if of != stream:
            continue
        body += payload if kind == 0 else b""
        if kind == 3 or (kind < 2 and flags & 1):
            break
    return body


def visit_tls(site, port, contexts, visit):
    """What each request was answered, and the session."""
    context = contexts[(visit.cert, visit.version, visit.http)]
    try:
        over = Over(site, port, context, visit)
    except (SSL.Error, OSError):
        return None, None
    answers = []
    for n, (host, other) in enumerate(visit.requests):
        if visit.http == "h2":
            answers.append(ask_h2(over, host, 2 * n + 1))
        else:
            answers.append(ask_h1(over, host, other, n + 1 == len(visit.requests)))
            if not over.stays:
                break
    over.close()
    return answers, over.tls.get_session()


async def visit_quic(site, port, clients, visit):
    """The same over HTTP/3: a session that allows it carries the first request as 0-RTT."""
    tickets, answers = [], []
    name = visit.sni or site.address
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=0)
    configuration.server_name = name
    if visit.cert:
        at = f"{clients}/{visit.cert}"
        configuration.load_cert_chain(f"{at}.crt", f"{at}.key")
    if visit.session:
        # The library would not offer a ticket to another name.
        ticket = visit.session.held
        configuration.session_ticket = dataclasses.replace(ticket, server_name=name)
    try:
        async with connect(
            site.address,
            port,
            configuration=configuration,
            create_protocol=Peer,
            session_ticket_handler=tickets.append,
            wait_connected=False,
        ) as peer:
            peer.control()
            for host, _ in visit.requests:
                fields = [(":method", "GET"), (":scheme", "https"), (":authority", host),
                          (":path", "/")]
                stream = peer.request(head(pseudo=fields))
                await peer.outcome(stream, LIMIT)
                answers.append(peer.body(stream))
            # What a server leaves to its client comes with its last word on the handshake.
            if not await peer.until(lambda: peer._quic._handshake_confirmed, LIMIT):
                return None, None, False
            if peer.closed is not None:
                return None, None, False
            await peer.ping()
            visit.reused = peer._quic.tls.session_resumed
            early = peer._quic.tls.early_data_accepted
    except ConnectionError:
        return None, None, False
    return answers, tickets[-1] if tickets else None, early


# ---- the oracle --------------------------------------------------------------


def secret_is_due(site, visit, context, host):
    """Whether the visitor has to be told the secret of the server that he asks for."""
    server = site.named(host)
    if server.verify == "off":
        return not server.rejects
    is_same = plain(visit.sni) == plain(host) if site.is_known(visit.sni or "") else server is context
    return is_same and server.lets_in(visit.shown)


def why_not(site, visit, context, label, told):
    """Why the visitor may not know this secret, or the verdict beside it; none if he may."""
    server = next(s for s in site.servers if s.label == label)
    verify, shown = server.verify, visit.shown
    if verify == "off":
        truth = any(s.vouches(shown) for s in (context, server))
        return "nobody vouched" if told == "SUCCESS" and not truth else None
    if server.vouches(shown):
        return None if told == "SUCCESS" else "the verdict is wrong"
    if shown is None:
        return "it asks for a certificate" if verify == "on" or told != "NONE" else None
    if verify != "optional_no_ca" or not server.may_overlook(shown):
        return "its authorities do not vouch"
    return None if told.startswith("FAILED") else "the verdict is wrong"


def judge(site, visit, answers, counts):
    """What no rule allows, in lines."""
    context = site.named(visit.sni)
    counts["handshakes"] += answers is not None
    counts["resumed"] += visit.reused
    counts["resumed by certificate"] += visit.reused and visit.shown is not None
    if context.rejects:
        counts["rejected"] += 1
        return [] if answers is None else ["a handshake is made that the server rejects"]
    if answers is None:
        return ["no handshake"]
    faults = []
    for (host, other), answer in zip(visit.requests, answers):
        told = TOLD.search(answer)
        label, verdict, notice = (part and part.decode() for part in told.groups()) if told else [None] * 3
        where = f"host {host} beside {other}: {answer[:60]!r}"
        if label and (why := why_not(site, visit, context, label, verdict)):
            faults.append(f"{where}: {why}")
        if label and other is None and label != site.named(host).label:
            faults.append(f"{where}: of another server")
        if notice and notice != context.label:
            faults.append(f"{where}: a page of another server than the handshake's")
        is_due = other is None and secret_is_due(site, visit, context, host)
        if is_due and label is None:
            faults.append(f"{where}: due and not told")
        closed = label and site.named(host).verify != "off"
        counts["let in"] += bool(label)
        counts["let in by certificate"] += bool(closed and verdict == "SUCCESS")
        counts["refused"] += label is None
    return faults


def settle(site, visit, counts, kept, answers, held):
    """Notes what the handshake knows of the client, which a session brings along, and judges."""
    if visit.reused:
        visit.shown = visit.session.shown
    else:
        visit.shown = visit.cert if site.named(visit.sni).verify != "off" else None
    report(site, visit, judge(site, visit, answers, counts))
    if held is not None:
        kept.append(Session(visit.version, visit.sni, visit.shown, held))


def report(site, visit, faults):
    for fault in faults:
        print(f"seed {site.seed}: {visit}: {fault}", flush=True)


def visits_over_tls(site, port, clients, counts):
    contexts, kept = Contexts(clients), []
    for _ in range(VISITS):
        visit = visit_of(site, site.draw.choice(["h1", "h2"]), kept)
        settle(site, visit, counts, kept, *visit_tls(site, port, contexts, visit))


async def visits_over_quic(site, port, clients, counts):
    kept = []
    for _ in range(QUIC_VISITS):
        visit = visit_of(site, "h3", kept)
        answers, held, early = await visit_quic(site, port, clients, visit)
        settle(site, visit, counts, kept, answers, held)
        counts["0-RTT"] += early


async def all_quic(sites, port, clients, counts):
    await asyncio.gather(*(visits_over_quic(site, port, clients, counts) for site in sites))


def main(what, *rest):
    seeds = range(int(rest[-2]), int(rest[-1]))
    sites = [Site(seed) for seed in seeds]
    if what == "conf":
        print("".join(site.conf(n == 0) for n, site in enumerate(sites)))
        return
    port, clients = int(rest[0]), rest[1]
    counts = Counter()
    for site in sites:
        visits_over_tls(site, port, clients, counts)
    over_quic = Counter()
    asyncio.run(all_quic(sites, port, clients, over_quic))
    for how, counted in (("TLS", counts), ("QUIC", over_quic)):
        # What never happened is not told.
        print(f"{how}, " + ", ".join(f"{what}: {n}" for what, n in counted.items() if n))


if __name__ == "__main__":
    main(*sys.argv[1:])
