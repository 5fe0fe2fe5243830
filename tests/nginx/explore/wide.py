"""Owns: random cases beyond plain HTTP/1.1, and how they are asked.

TLS with client certificates, caches that are asked the same again, and HTTP/2 and HTTP/3 by curl.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from ..answers import LAST, TIMEOUT, answers, connect
from ..program import Program
from .known import told_origin
from .requests import Request
from .tree import Node

WAYS = ("cache", "tls", "h2", "h3")
CURL = {"h2": "--http2-prior-knowledge", "h3": "--http3-only"}
CLIENTS = ("", "good", "expired", "wrong", "self", "chain", "revoked", "mid")
# What curl passes on as it is.
PLAIN_TARGET = re.compile(r"/[\w!$%&'()*+,\-./:;=?@~]*", re.ASCII)
HOST = re.compile(r"[a-z]+(\.[a-z]+)*", re.ASCII)
# Fields of one connection, and those that curl or the framing decides.
OWN_FIELDS = re.compile(
    r"(Host|Connection|Keep-Alive|Upgrade|TE|Content-Length|Transfer-Enc)", re.I
)
UNKEPT = re.compile(rb"HTTP/1.. (304|416) ")
CACHE = (
    "proxy_cache_valid any 1m",
    "proxy_cache_valid 200 302 1m",
    "proxy_cache_valid 404 1m",
    "proxy_cache_methods GET HEAD POST",
    "proxy_cache_key $uri",
    "proxy_cache_key $request_method$request_uri$http_x",
    "proxy_cache_bypass $arg_a",
    "proxy_no_cache $http_x",
    "proxy_cache_min_uses 2",
    "proxy_cache_revalidate on",
    "proxy_cache_use_stale error http_500 http_404",
    "add_header X-Cache $upstream_cache_status always",
)
VERIFY = "ssl_verify_client %s; ssl_client_certificate @DIR@/clients/root.crt"
SEEN = "|$ssl_client_verify|$ssl_client_s_dn|$ssl_client_serial|$ssl_server_name|$https|$http2"


def way_of(seed: int) -> str:
    """How the case of a seed is asked."""
    return WAYS[seed % len(WAYS)]


def widened(way: str, nodes: Sequence[Node], rng: Random) -> list[Node]:
    """The configuration of a case that is asked in a way."""
    if way == "cache":
        zone = Node("proxy_cache_path @LOGS@/cache-@RUN@-@N@ keys_zone=z@N@:1m")
        return [zone, *(cached(node, rng) for node in nodes)]
    # Client certificates between servers: all servers of a case ask for the same ones.
    verify = []
    if kind := rng.choice(["", "on", "optional", "optional_no_ca", "optional"]):
        verify = [VERIFY % kind, "ssl_verify_depth 3", "ssl_crl @DIR@/clients/root.crl"]
        verify = verify[: rng.choice([1, 1, 2, 3])]
    return [secured(way, node, [Node(words) for words in verify]) for node in nodes]


def cached(node: Node, rng: Random) -> Node:
    """A block in which what origins say is kept."""
    if node.block is None:
        return node
    inner = [cached(one, rng) for one in node.block]
    may_keep = not node.words.startswith(("if", "limit_except")) and rng.random() < 0.8
    if may_keep and any(one.words.startswith("proxy_pass ") for one in inner):
        inner.append(Node("proxy_cache z@N@"))
        inner += [Node(words) for words in one_each(rng.sample(CACHE, rng.randint(1, 4)))]
    return Node(node.words, inner)


def one_each(texts: Sequence[str]) -> list[str]:
    """The first of each name."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(text.split(" ")[0], text)
    return list(first.values())


def hosted(node: Node) -> Node:
    """A block without what differs over HTTP/3: Host, and how long a head or a body is."""
    inner = None if node.block is None else [hosted(one) for one in node.block]
    words = re.sub(r"\$(\{?)http_host\b", r"$\1host", node.words)
    # Variables: frames belong to the body's bytes in nginx.
    words = re.sub(r"\$(\{?)body_bytes_sent\b", r"$\1scheme", words)
    return Node(re.sub(r"\$(\{?)request_length\b", r"$\1scheme", words), inner)


def secured(way: str, node: Node, verify: Sequence[Node]) -> Node:
    """A server that speaks TLS or another version of HTTP; a log that tells of it."""
    if way == "h3":
        node = hosted(node)
    if node.words.startswith("log_format"):
        return Node(node.words[:-1] + SEEN + "'")
    if node.words != "server" or node.block is None:
        return node
    certified = [Node("ssl_certificate @CERT@"), Node("ssl_certificate_key @KEY@")]
    if way == "h2":
        return Node("server", [*node.block, Node("http2 on")])
    if way == "h3":
        inner = [
            Node(re.sub(r"^(listen \S+)", r"\1 quic", one.words), one.block) for one in node.block
        ]
        return Node("server", inner + certified)
    inner = [Node(re.sub(r"^(listen \S+)", r"\1 ssl", one.words), one.block) for one in node.block]
    return Node("server", [*inner, *certified, *verify])


def asked(way: str, requests: Sequence[Request], rng: Random) -> list[Request]:
    """The requests of a case that is asked in a way."""
    if way == "cache":
        # Nor is there an answer of an origin that is never kept.
        requests = [one for one in requests if not UNKEPT.search(told_origin(one))]
        for one in requests:
            # What zones keep: what is kept has parts, whatever its origin says.
            if b"Accept-Ranges" not in told_origin(one):
                one.fields = [field for field in one.fields if not field.startswith("Range")]
        return [one for one in requests[: len(requests) // 2] for _ in range(2)]
    if way == "tls":
        for one in requests:
            one.client = rng.choice(CLIENTS)
        return list(requests)
    kept = []
    for one in requests:
        one.more = None
        one.fields = [field for field in one.fields if not OWN_FIELDS.match(field)]
        is_plain = PLAIN_TARGET.fullmatch(one.target) and all(map(str.isascii, one.fields))
        if (
            is_plain
            and one.version
            and one.method != "HEAD"
            and not any(field.endswith(":") for field in one.fields)
        ):
            one.version, one.body = "HTTP/1.1", b"" if one.method == "GET" else b"hello"
            kept.append(one)
    return kept


def host_of(request: Request) -> str:
    """The host that a request names, if a client may ask for it."""
    named = [field[6:] for field in request.fields if field.startswith("Host: ")]
    return named[0] if named and HOST.fullmatch(named[0]) else "localhost"


def ask_tls(program: Program, address: str, request: Request) -> tuple[list[str], str]:
    """What is answered over TLS, to a client that shows who it is."""
    stem = program.expand(f"@DIR@/clients/{request.client}") if request.client else None
    got = b""
    try:
        with connect(program.base, (host_of(request), stem), address) as peer:
            with suppress(OSError):
                peer.sendall(request.bytes() + LAST)
            while data := peer.recv(65536):
                got += data
    except TimeoutError:
        return [], "TIMEOUT"
    except OSError:
        pass
    return answers(program, got, request.methods(), None), ""


def ask_curl(way: str, program: Program, address: str, request: Request) -> list[str]:
    """What is answered over HTTP/2 or HTTP/3."""
    scheme = "http" if way == "h2" else "https"
    command = [shutil.which("curl-h3") or "curl", "-s", "-g", "-k", "--path-as-is"]
    command += [CURL[way], "--max-time", str(TIMEOUT), "-X", request.method, "-A", ""]
    command += ["--connect-to", f"::{address}:{program.base}", "-H", "Accept:"]
    for field in request.fields:
        command += ["-H", field]
    if request.body:
        command += ["-H", "Content-Type:", "--data-binary", request.body.decode("latin-1")]
    url = f"{scheme}://{host_of(request)}:{program.base}{request.target}"
    # Apart from the body, which may end where its trailers begin.
    heads = program.logs / "curl-heads"
    heads.unlink(missing_ok=True)
    command += ["-D", str(heads), url]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    got = heads.read_bytes() if heads.exists() else b""
    lines = curl_lines(program, got, done.stdout)
    return lines + ([f"curl {done.returncode}"] * bool(done.returncode))


def curl_lines(program: Program, heads: bytes, body: bytes) -> list[str]:
    """An answer as curl shows it, in lines as other answers have."""
    if not heads:
        return []
    head, _, trailers = heads.partition(b"\r\n\r\n")
    while head.split(b" ")[1:2] == [b"100"]:
        head, _, trailers = trailers.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    lines = []
    for field in fields:
        name, _, value = field.partition(": ")
        # Over HTTP/3 nginx takes the line of the static table for it, which is lower case.
        value = value.replace("Accept-Encoding", "accept-encoding") if name == "vary" else value
        lines.append(f"{name.title()}: {value}")
    text = b"HTTP/1.1 " + status.encode("latin-1").partition(b" ")[2]
    text += b"\r\n" + "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
    # Field names are lower case on their way to origins in nginx.
    lines = answers(program, text, ["GET"], None)
    lines = [line.lower() if line.startswith("body ") else line for line in lines]
    told = program.normalise(trailers.decode("latin-1")).split("\r\n")
    return lines + [f"trailer {line}" for line in told if line]
