"""Owns lighttpd."""

from __future__ import annotations

from pathlib import Path

from bolide_lab.model import Scenario, Variant
from bolide_lab.servers.base import MIME, Server, owned_by_user, user


class Lighttpd(Server):
    """lighttpd 1.4 with HTTP/2; compressed files are kept by mod_deflate."""

    name = "lighttpd"
    programs = ("lighttpd-sid", "lighttpd")

    def supports(self, scenario: Scenario) -> str | None:
        """Files only: no page cache."""
        reason = super().supports(scenario)
        if reason or scenario.site == "static":
            return reason
        return "lighttpd has no page cache"

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`lighttpd.conf`."""
        place = self.place
        run = owned_by_user(directory / "run")
        cache = owned_by_user(run / "compressed")
        who = f'server.username = "{user()}"\nserver.groupname = "{user()}"\n' if user() else ""
        types = ", ".join(f'".{end}" => "{kind}"' for end, kind in MIME.items())
        workers = f"server.max-worker = {place.workers}\n" if place.workers > 1 else ""
        hosts = "".join(
            f'$HTTP["host"] =~ "^site{n}\\.test" {{ server.document-root = "{place.site}" }}\n'
            for n in range(int(scenario.load.extra.get("vhosts", 0)))
        )
        text = f"""server.modules = ("mod_openssl", "mod_deflate")
server.document-root = "{place.site}"
server.bind = "{place.host}"
server.port = {place.plain_port}
{who}{workers}server.errorlog = "{run}/error.log"
server.pid-file = "{run}/pid"
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 300
server.max-fds = 16384
server.max-connections = 16000
server.listen-backlog = 4096
server.network-backend = "sendfile"
server.feature-flags = ("server.h2proto" => "enable")
index-file.names = ("index.html")
mimetype.assign = ({types}, "" => "application/octet-stream")
deflate.mimetypes = ("text/html", "text/css", "text/javascript")
deflate.allowed-encodings = ("gzip")
deflate.min-compress-size = 100
deflate.cache-dir = "{cache}"
{hosts}{place.rules.get(self.name, "")}$SERVER["socket"] == "{place.host}:{place.tls_port}" {{
 ssl.engine = "enable"
 ssl.pemfile = "{place.certificate}"
 ssl.privkey = "{place.key}"
 ssl.openssl.ssl-conf-cmd = (
  "MinProtocol" => "TLSv1.2", "Ciphersuites" => "TLS_AES_128_GCM_SHA256"
 )
}}
"""
        return {"lighttpd.conf": text}

    def commands(self, directory: Path) -> list[list[str]]:
        """One process in the foreground; its modules are beside it in the Debian root."""
        out = [self.program(), "-D", "-f", str(directory / "lighttpd.conf")]
        if self.program().endswith("-sid"):
            from bolide_lab.install import SID

            out += ["-m", str(SID / "usr/lib/lighttpd")]
        return [out]
