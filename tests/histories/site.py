"""Owns: what a seed decides of a site beside its pages: the configuration that caches them."""

import argparse
import os
import random
from pathlib import Path

from .pages import SLICES, Cache, Pages
from .ways import Listeners

# The host of most requests; the other one has the same pages, and is a site of its own.
HOST, OTHER_HOST = "a.test", "b.test"


class Site:
    """The site of a seed, below a directory and on three ports of its own."""

    def __init__(self, args: argparse.Namespace, seed: int, home: Path, port: int) -> None:
        self.home = home
        draw = random.Random(f"site {seed}")
        self.cache = Cache.ZONE if draw.random() < 0.2 else Cache.PAGES
        self.pages = Pages(draw, self.cache, args.wide)
        # The port of the application is known when it listens.
        self.origin, self.certificate = 0, Path(args.certificate)
        self.secure = port
        self.clear: tuple[int, ...] = (port + 1, port + 2)
        # What is only in memory is not shared by the two processes of an upgrade.
        self.disk = draw.random() < 0.6 or args.chaos
        self.memory = draw.choice(["", "", "40k", "200k"])
        self.options = [line for line in self.choices() if draw.random() < 0.4]
        # Connections end now and then even if nothing happens to the server.
        self.requests = draw.choice([60, 1000, 1000])
        self.by_scheme = self.cache is Cache.ZONE and draw.random() < 0.5
        if self.cache is Cache.ZONE:
            self.clear = (port + 1,)

    def listeners(self, host: str) -> Listeners:
        """Where a host is served; the same pages, whatever the port and the scheme."""
        return Listeners(self.clear if host == HOST else self.clear[:1], self.secure)

    def place(self, host: str, secure: bool) -> str:
        """Whose pages a purge by URL reaches: of a host, in a zone perhaps of one scheme only."""
        return f"https://{host}" if self.by_scheme and secure else host

    def choices(self) -> list[str]:
        """Directives that change what is stored, or when, but not for whom."""
        if self.cache is Cache.ZONE:
            return [
                "proxy_cache_lock on;",
                "proxy_cache_revalidate on;",
                "proxy_cache_background_update on;",
                "proxy_cache_use_stale updating error timeout http_503;",
                "proxy_cache_min_uses 2;",
                "gzip on; gzip_min_length 0;",
            ]
        return [
            "page_cache_respect_request on;",
            "page_cache_stale 1s error=2s;",
            "page_cache_vary cookie=lang;",
            "page_cache_vary header=X-Var;",
            "gzip on; gzip_min_length 0;",
            "page_cache_drop_query tracking;",
        ]

    def servers(self) -> str:
        """The servers of the configuration."""
        root, options = self.home / "root", " ".join(self.options)
        passed = "proxy_pass http://app; proxy_set_header Host $host;"
        passed += " proxy_http_version 1.1; proxy_set_header Connection '';"
        if self.cache is Cache.ZONE:
            key = "$scheme$host$request_uri" if self.by_scheme else "$host$request_uri"
            cached = f"proxy_cache z; proxy_cache_key {key};"
            cached += f" proxy_cache_purge PURGE from 127.0.0.1; {options}"
            return f"""
    proxy_cache_path {self.home}/zone levels=1:2 keys_zone=z:1m max_size=50m inactive=1h;
    server {{ {self.listens(self.clear[0])} {self.listens(self.secure)}
        {cached} location / {{ {passed} }} }}"""
        slices = f"slice 100; proxy_set_header Range $slice_range; {passed}"
        both = f"location / {{ {passed} }} location {SLICES} {{ {slices} }}"
        named = f"server_name {HOST}; root {root}; page_cache auto; {options}"
        disk = f"page_cache_path {self.home}/cache max_size=100m;" if self.disk else ""
        memory = f"page_cache_memory {self.memory};" if self.memory else ""
        return f"""
    {disk} {memory}
    server {{ {self.listens(self.clear[0])} {self.listens(self.secure)} {named} {both} }}
    server {{ {self.listens(self.clear[1])} {named} {both} }}
    server {{ {self.listens(self.clear[0])} {self.listens(self.secure)}
        server_name {OTHER_HOST}; root {root}-2; page_cache auto; {both} }}"""

    def listens(self, port: int) -> str:
        """The directives of a port."""
        if port != self.secure:
            return f"listen 127.0.0.1:{port};"
        return f"listen 127.0.0.1:{port} ssl; listen 127.0.0.1:{port} quic;"

    def configuration(self, workers: int) -> str:
        """The whole configuration, with so many workers."""
        home = self.home
        user = "" if os.geteuid() else "user root;"
        return f"""worker_processes {workers}; daemon off; pid {home}/pid; {user}
error_log {home}/error.log warn;
events {{ worker_connections 512; }}
http {{
    access_log off; cache_status on; http2 on; http3 on; keepalive_requests {self.requests};
    ssl_certificate {self.certificate}; ssl_certificate_key {self.certificate};
    proxy_temp_path {home}/proxy; client_body_temp_path {home}/bodies;
    upstream app {{ server 127.0.0.1:{self.origin}; keepalive 16; }}
{self.servers()}
}}
"""
