"""Owns HAProxy: two files in memory, or its cache in front of an origin."""

from __future__ import annotations

from pathlib import Path

from bolide_lab.clients.base import split_url
from bolide_lab.model import Scenario, Variant
from bolide_lab.servers.base import MIME, Server, owned_by_user, user

MEMORY_LIMIT_BYTES = 15_000


class Haproxy(Server):
    """HAProxy serves no files: small ones are answers of its configuration."""

    name = "haproxy"
    programs = ("haproxy-sid", "haproxy")
    protocols = frozenset({"h1", "h1-tls", "h2", "h3"})

    def supports(self, scenario: Scenario) -> str | None:
        """A static site of more than a small file needs a file server."""
        reason = super().supports(scenario)
        if reason or scenario.site != "static":
            return reason
        path = self.place.site / split_url(scenario.load.url)[1].lstrip("/")
        if path.exists() and path.stat().st_size > MEMORY_LIMIT_BYTES:
            return "haproxy serves no files, only what fits in one of its buffers"
        return None

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`haproxy.cfg`."""
        place = self.place
        owned_by_user(directory / "run")
        who = f" user {user()}\n group {user()}\n" if user() else ""
        both = place.both
        answers, backend = self._cached() if place.origin else (self._in_memory(scenario), "")
        text = f"""global
 nbthread {place.workers}
 maxconn 5000
{who} tune.bufsize 16384
 tune.ssl.cachesize 20000
 tune.h2.fe.max-concurrent-streams 128
 ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
 ssl-default-bind-options ssl-min-ver TLSv1.2 prefer-client-ciphers
defaults
 mode http
 timeout client 300s
 timeout server 60s
 timeout connect 5s
 timeout http-keep-alive 300s
{self._cache() if place.origin else ""}frontend all
 bind {place.host}:{place.plain_port} backlog 4096
 bind {place.host}:{place.tls_port} ssl crt {both} alpn h2,http/1.1 backlog 4096
 bind quic4@{place.host}:{place.tls_port} ssl crt {both} alpn h3
{answers}{place.rules.get(self.name, "")}{backend}"""
        return {"haproxy.cfg": text}

    def _cache(self) -> str:
        return """cache pages
 total-max-size 256
 max-object-size 1000000
 max-age 3600
 process-vary on
"""

    def _cached(self) -> tuple[str, str]:
        front = """ http-request cache-use pages
 http-response cache-store pages
 default_backend origin
"""
        return front, f"backend origin\n server origin {self.place.origin}\n"

    def _in_memory(self, scenario: Scenario) -> str:
        url = split_url(scenario.load.url)[1]
        path = self.place.site / url.lstrip("/")
        kind = MIME.get(path.suffix.lstrip("."), "application/octet-stream")
        out = " acl gz req.hdr(accept-encoding) -m sub gzip\n"
        answer = f" http-request return status 200 content-type {kind} file"
        packed = path.with_name(path.name + ".gz")
        if packed.exists():
            out += f"{answer} {packed} hdr Content-Encoding gzip hdr Vary Accept-Encoding "
            out += f"if gz {{ path {url} }}\n"
        return out + f"{answer} {path} if {{ path {url} }}\n http-request deny\n"

    def commands(self, directory: Path) -> list[list[str]]:
        """One process."""
        return [[self.program(), "-f", str(directory / "haproxy.cfg")]]
