"""Owns nginx and those that read its configuration unchanged."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from bolide_lab import machine
from bolide_lab.model import Protocol, Scenario, Variant
from bolide_lab.servers.base import MIME, Place, Server, owned_by_user

CIPHERS = "TLS_AES_128_GCM_SHA256"
FASTCGI = """
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param SCRIPT_NAME $fastcgi_script_name;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param DOCUMENT_URI $document_uri;
            fastcgi_param DOCUMENT_ROOT $document_root;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
            fastcgi_param REQUEST_SCHEME $scheme;
            fastcgi_param HTTPS $https if_not_empty;
            fastcgi_param GATEWAY_INTERFACE CGI/1.1;
            fastcgi_param SERVER_SOFTWARE lab;
            fastcgi_param REMOTE_ADDR $remote_addr;
            fastcgi_param REMOTE_PORT $remote_port;
            fastcgi_param SERVER_ADDR $server_addr;
            fastcgi_param SERVER_PORT $server_port;
            fastcgi_param SERVER_NAME $host;
            fastcgi_param REDIRECT_STATUS 200;
"""


@cache
def _build(path: str) -> str:
    return machine.output([path, "-V"])


class Nginx(Server):
    """nginx 1.25 or later, with HTTP/3."""

    name = "nginx"
    programs: tuple[str, ...] = ("nginx-sid", "nginx")
    protocols = frozenset({"h1", "h1-tls", "h2", "h3"})
    originals = frozenset({"Q", "B"})
    has_cipher_command = True

    def speaks(self, protocol: Protocol) -> bool:
        """Builds before 1.25 have no HTTP/3."""
        return super().speaks(protocol) and (protocol != "h3" or self.has_http3())

    def has_http3(self) -> bool:
        """Whether the build knows HTTP/3."""
        path = self.find()
        return path is not None and "--with-http_v3_module" in _build(str(path))

    def has_http2_directive(self) -> bool:
        """Version 1.25.1 made `http2` a directive; before, it was a word of `listen`."""
        path = self.find()
        found = re.search(r"/(\d+)\.(\d+)\.(\d+)", _build(str(path))) if path else None
        return found is None or tuple(map(int, found.groups())) >= (1, 25, 1)

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`nginx.conf`."""
        return {"nginx.conf": self.conf(scenario, directory, variant)}

    def conf(self, scenario: Scenario, directory: Path, variant: Variant) -> str:
        """The configuration's text."""
        old = variant == "original"
        place, run = self.place, owned_by_user(directory / "run")
        mime = " ".join(f"{kind} {end};" for end, kind in MIME.items())
        user = "user root;\n" if os.geteuid() == 0 else ""
        http3 = scenario.load.protocol == "h3" or (self.has_http3() and not old)
        head = f"""worker_processes {place.workers};
{user}daemon off;
pid {run}/pid;
error_log {run}/error.log warn;
worker_rlimit_nofile 20000;
events {{ worker_connections 16384; multi_accept on; use epoll; }}

http {{
    types {{ {mime} }}
    default_type application/octet-stream;
    access_log off;
    client_max_body_size 20m;
    client_body_temp_path {run}/bodies;
    fastcgi_temp_path {run}/fastcgi;
    server_tokens off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    ssl_certificate {place.certificate};
    ssl_certificate_key {place.key};
    gzip_vary on;
    gzip_comp_level 1;
    gzip_min_length 100;
    gzip_types text/css text/javascript image/svg+xml;
"""
        body = self._original(scenario) if old else self._best(http3)
        return head + body + self._cache(run) + self._servers(scenario, old, http3) + "}\n"

    def _best(self, http3: bool) -> str:
        command = f"    ssl_conf_command Ciphersuites {CIPHERS};\n"
        return f"""    sendfile_max_chunk 2m;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
    open_file_cache max=10000 inactive=60s;
    open_file_cache_valid 60s;
    open_file_cache_min_uses 1;
    open_file_cache_errors on;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:S:10m;
    ssl_session_tickets on;
    ssl_buffer_size 16k;
{command if self.has_cipher_command else ""}{"    quic_gso on;" if http3 else ""}
    gzip on;
"""

    def _original(self, scenario: Scenario) -> str:
        """What is known of the old settings, in the words of today."""
        if scenario.group == "Q":
            return "    keepalive_requests 10000;\n    ssl_protocols TLSv1.2 TLSv1.3;\n"
        # keepalive_requests also stands for what http2_max_requests was.
        requests = 1000 if scenario.load.protocol == "h2" else 100
        versions = "TLSv1.2" if scenario.site == "wordpress" else "TLSv1.2 TLSv1.3"
        return f"""    keepalive_requests {requests};
    keepalive_timeout 65s;
    open_file_cache max=10000 inactive=60s;
    ssl_protocols {versions};
    ssl_session_cache shared:S:10m;
    ssl_session_tickets off;
    gzip on;
    gzip_proxied any;
"""

    def _cache(self, run: Path) -> str:
        if self.place.php is None:
            return ""
        return f"""    fastcgi_cache_path {run}/cache levels=1:2 keys_zone=pages:10m inactive=1h;
    fastcgi_cache_valid 200 301 302 1h;
    fastcgi_cache_lock on;
    fastcgi_cache_use_stale updating error timeout;
"""

    def _servers(self, scenario: Scenario, old: bool, http3: bool) -> str:
        place = self.place
        new = self.has_http2_directive()
        buffers = "" if old else " rcvbuf=4m sndbuf=4m"
        quic = f"        listen {place.host}:{place.tls_port} quic reuseport{buffers};\n"
        words = f"""        listen {place.host}:{place.plain_port} backlog=4096;
        listen {place.host}:{place.tls_port} ssl{"" if new else " http2"} backlog=4096;
{quic if http3 else ""}{"        http2 on;" if new else ""}
{"        http3 on;" if http3 else ""}
        root {place.site};
        index index.html index.php;
        gzip_static {"off" if old else "on"};
"""
        if place.php is not None:
            words += self._php(place, old)
        words += place.rules.get(self.name, "")
        out = f"    server {{\n{words}    }}\n"
        for number in range(int(scenario.load.extra.get("vhosts", 0))):
            out += (
                f"    server {{ listen {place.host}:{place.plain_port}; "
                f"server_name site{number}.test; root {place.site}; gzip_static on; }}\n"
            )
        if scenario.load.extra.get("vhosts"):
            out = "    server_names_hash_max_size 8192;\n" + out
        return out

    def _php(self, place: Place, old: bool) -> str:
        """PHP behind fastcgi_cache; what PHP compressed is kept compressed."""
        packed = (
            "" if old else '            fastcgi_param PHP_VALUE "zlib.output_compression=On";\n'
        )
        key = "$scheme$host$request_uri" + ("" if old else "$gzip_wanted")
        return f"""        location / {{ try_files $uri $uri/ /index.php?$args; }}
        set $skip 0;
        if ($request_method = POST) {{ set $skip 1; }}
        if ($http_cookie ~* "wordpress_logged_in|comment_author|shop_session") {{ set $skip 1; }}
        set $gzip_wanted "";
        if ($http_accept_encoding ~* gzip) {{ set $gzip_wanted gzip; }}
        location ~ \\.php$ {{
            try_files $uri =404;
            fastcgi_pass unix:{place.php};
{FASTCGI}{packed}            fastcgi_cache pages;
            fastcgi_cache_key {key};
            fastcgi_cache_bypass $skip;
            fastcgi_no_cache $skip;
            fastcgi_ignore_headers Vary;
        }}
"""

    def commands(self, directory: Path) -> list[list[str]]:
        """One master; its workers are its children."""
        conf = str(directory / "nginx.conf")
        return [[self.program(), "-e", "stderr", "-p", str(directory), "-c", conf]]


class Angie(Nginx):
    """Angie, where the user has it."""

    name = "angie"
    programs = ("angie",)
    install = "see https://en.angie.software/angie/docs/installation/"
    originals = frozenset()

    def has_http2_directive(self) -> bool:
        """Every version has it."""
        return True
