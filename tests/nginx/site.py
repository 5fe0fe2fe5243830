"""Owns: what a site of the comparison is, and the list that the tables below `sites` fill.

A case is a request line with fields ("GET /x | Range: bytes=0-1"; HTTP/1.1 and Host: localhost
unless it says otherwise; "-Host" leaves Host out), or bytes that are sent as they are, or either
with a label: (label, case). A list in place of the case holds cases that are sent side by side, a
number is a rest in seconds. Behind each request a second one tells what became of the connection.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Request = str | bytes
Labelled = tuple[str, Request]
Single = Request | Labelled
Case = Single | tuple[str, Sequence[Single]] | float
# A server's name, or one with the path of a client's certificate without its suffix.
Tls = str | tuple[str, str | None] | None
# Asks a port in words of its own, and says in lines what it saw.
Ask = Callable[[int, str], list[str]]


@dataclass(frozen=True)
class Site:
    """One configuration, what is asked of it, and what is compared."""

    name: str
    # What stands in the http block.
    conf: str
    cases: Sequence[Case]
    # The number of the port that is asked, of those that the configuration calls @P0@ to @P9@.
    port: int = 0
    tls: Tls = None
    # Instead of `tls`: all cases are asked as each of these.
    identities: Sequence[Tls] = ()
    ask: Ask | None = None
    # Whether a case is the only request of its connection.
    alone: bool = False
    # Whether the client keeps its side open until it has its answer. nginx leaves a client that
    # closes its side while another server is asked, so that is how sites that ask one are asked.
    open: bool = False
    # Whether the words behind a status are compared although `open`.
    reasons: bool = False
    # Whether new lines of the error log belong to the answer: from [warn] on, or with "info" all
    # that are about requests, with "connections" all that are about clients.
    errors: bool | str = False
    # Whether the access log is compared when all is asked.
    log: bool = False
    # "any" does not compare what frames a body, "coded" not the length of compressed bodies.
    lengths: str | None = None
    # Seconds: whether an answer took longer is compared.
    timed: float | None = None


SITES: list[Site] = []
ASKS_OTHERS = re.compile(r"\b(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached)_pass\b")


def http(name: str, conf: str, cases: Sequence[Case], **options: Any) -> None:
    """Adds a site whose configuration is all of an http block."""
    options.setdefault("open", ASKS_OTHERS.search(conf) is not None)
    SITES.append(Site(name, conf, cases, **options))


def server(name: str, conf: str, cases: Sequence[Case], **options: Any) -> None:
    """Adds a site with one server, whose configuration is given."""
    head = "server { listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/www;"
    http(name, f"{head}\n{conf}\n}}", cases, **options)
