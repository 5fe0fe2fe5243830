"""Where a soak happens: directory, ports, certificate, files, and the configurations.

Owns what is configured. The figures of timeouts are small, so that a rest in which everything that
was left has run out is a short one; those of the main server are generous to a busy machine.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .origin import content

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BOLIDE_TOOLS", str(Path.home() / ".cache/bolide-tools")))
FILES = {
    "small.txt": 1000,
    "quiet.txt": 1000,
    "page.html": 30_000,
    "middle.bin": 1 << 20,
    "big.bin": 24 << 20,
}
DESCRIPTORS = 500
"""What the process may open: a crowd takes all of them."""
WANTED = "want=5"
"""Stands in the address of each request that asks for an answer of the 5xx class."""

PAGE = """<?php
header('X-LiteSpeed-Cache-Control: public,max-age=20');
header('X-LiteSpeed-Tag: all,n' . (int) $_GET['n']);
echo 'page ', (int) $_GET['n'], ' ', hrtime(true), str_repeat(' more', 400);
"""
PLAIN = "<?php header('Cache-Control: max-age=5'); echo 'kept ', hrtime(true);"
UPLOAD = """<?php
$body = file_get_contents('php://input');
echo strlen($body), ' ', sha1($body);
"""


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on, TCP or UDP."""
    found: list[int] = []
    held: list[socket.socket] = []
    while len(found) < number:
        tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        held += [tcp, udp]
        tcp.bind(("127.0.0.1", 0))
        port = tcp.getsockname()[1]
        try:
            udp.bind(("127.0.0.1", port))
        except OSError:
            continue
        found.append(port)
    for one in held:
        one.close()
    return found


@dataclass
class Place:
    """The directory of one soak with all that is in it."""

    dir: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="bolide-soak-")))
    generation: int = 1

    def __post_init__(self) -> None:
        """Writes everything that does not change."""
        self.dir.chmod(0o755)
        (self.dir / "logs").mkdir()
        (self.dir / "www").mkdir()
        self.http, self.https, self.slow, self.slow_tls, self.extra, self.origin = free_ports(6)
        for name, size in FILES.items():
            (self.dir / "www" / name).write_bytes(content(size))
        for name, text in {"page.php": PAGE, "kept.php": PLAIN, "upload.php": UPLOAD}.items():
            (self.dir / "www" / name).write_text(text)
        words = "req -x509 -nodes -days 30 -subj /CN=localhost -newkey ec -keyout key.pem"
        words += " -pkeyopt ec_paramgen_curve:prime256v1 -out cert.pem"
        words += " -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
        openssl = ["openssl", *words.split()]
        subprocess.run(openssl, cwd=self.dir, check=True, capture_output=True)
        self.write()

    @property
    def conf(self) -> Path:
        """The configuration file."""
        return self.dir / "nginx.conf"

    def write(self, mistake: str = "") -> None:
        """Writes the configuration of this generation, with a mistake in it if there is one."""
        # Replaced by rename, as the server may read it at any moment.
        new = self.dir / "nginx.conf.new"
        new.write_text(self.text() + mistake)
        new.rename(self.conf)

    def text(self) -> str:
        """The configuration of this generation: each differs from the one before it."""
        is_root = os.getuid() == 0
        odd = self.generation % 2 == 1
        listens = f"""
            listen 127.0.0.1:{self.https} ssl; listen 127.0.0.1:{self.https} quic reuseport;
            http2 on; http3 on; server_name localhost;
            ssl_certificate {self.dir}/cert.pem; ssl_certificate_key {self.dir}/key.pem;
            root {self.dir}/www;"""
        extra = f"server {{ listen 127.0.0.1:{self.extra}; return 204; }}" if odd else ""
        return f"""
{"user root;" if is_root else ""}
daemon off; worker_processes 2; pid {self.dir}/logs/pid;
error_log {self.dir}/logs/error.log notice;
worker_rlimit_nofile {DESCRIPTORS}; worker_shutdown_timeout 20s;
events {{ worker_connections 1024; }}
http {{
    default_type application/octet-stream;
    types {{ text/html html; text/plain txt; }}
    log_format soak '$msec $status $request_method $server_protocol $request_time '
                    '$request_length $bytes_sent $upstream_status $request_uri';
    access_log {self.dir}/logs/access.log soak;
    client_header_timeout 15s; client_body_timeout 15s; send_timeout 15s; keepalive_timeout 5s;
    client_max_body_size 64m; lingering_time 5s; lingering_timeout 2s; keepalive_requests 5000;
    proxy_connect_timeout 15s; proxy_send_timeout 15s; proxy_read_timeout 15s;
    fastcgi_connect_timeout 15s; fastcgi_send_timeout 15s; fastcgi_read_timeout 15s;
    proxy_http_version 1.1; proxy_set_header Connection "";
    page_cache_memory 24m;
    proxy_cache_path {self.dir}/proxied keys_zone=proxied:1m max_size=8m inactive=20s;
    fastcgi_cache_path {self.dir}/kept keys_zone=kept:1m max_size=8m inactive=20s;
    limit_req_zone $binary_remote_addr zone=asked:1m rate={20 if odd else 30}r/s;
    limit_conn_zone $binary_remote_addr zone=open:1m;
    limit_req_status 429; limit_conn_status 429;
    upstream origin {{ server 127.0.0.1:{self.origin}; keepalive 8; keepalive_timeout 5s; }}
    php_pool main {{
        {"user nobody;" if is_root else ""} children {3 if self.generation % 4 else 4};
        queue 512 timeout=60s;
    }}
    {extra}
    server {{
        listen 127.0.0.1:{self.http}; {listens}
        gzip {"on" if odd else "off"}; page_cache auto;
        add_header X-Generation {self.generation} always;
        location ~ ^/kept\\.php$ {{
            page_cache off; fastcgi_cache kept; fastcgi_cache_key $uri$is_args$args;
            fastcgi_cache_valid 200 5s; php_pass main; add_header X-Kept $upstream_cache_status;
        }}
        location ~ \\.php$ {{ try_files $uri =404; php_pass main; }}
        # So many are asked for that a line for each would fill the disk.
        location = /quiet.txt {{ access_log off; }}
        location /origin/ {{ page_cache off; proxy_pass http://origin; }}
        location /proxied/ {{
            page_cache off; proxy_pass http://origin; proxy_cache proxied;
            proxy_cache_valid 200 5s; add_header X-Kept $upstream_cache_status;
        }}
        location /asked/ {{
            limit_req zone=asked burst=5{" nodelay" if odd else ""}; alias {self.dir}/www/;
        }}
        location /open/ {{ limit_conn open 2; page_cache off; proxy_pass http://origin; }}
    }}
    server {{
        listen 127.0.0.1:{self.slow}; {listens.replace(str(self.https), str(self.slow_tls))}
        client_header_timeout 2s; client_body_timeout 2s; send_timeout 2s; keepalive_timeout 2s;
        keepalive_requests 3;
        location /origin/ {{ proxy_pass http://origin; }}
    }}
}}
"""

    def remove(self) -> None:
        """Leaves nothing."""
        shutil.rmtree(self.dir, ignore_errors=True)
