"""Owns OpenLiteSpeed and LiteSpeed where the user has them.

The installation is not touched: a server root of its own is made, whose programs and libraries
are links into the installed one and whose configuration is the laboratory's.
"""

from __future__ import annotations

import os
from pathlib import Path

from bolide_lab.model import Scenario, Variant
from bolide_lab.servers.base import MIME, Server, ServerError, owned_by_user, user

INSTALLED = Path("/usr/local/lsws")


class OpenLiteSpeed(Server):
    """OpenLiteSpeed."""

    name = "openlitespeed"
    programs = ("openlitespeed",)
    install = "see https://openlitespeed.org/downloads/"
    protocols = frozenset({"h1", "h1-tls", "h2", "h3"})
    originals = frozenset({"Q", "B", "M"})
    program_name = "openlitespeed"

    def find(self) -> Path | None:
        """In its usual directory only: it belongs to its root."""
        path = INSTALLED / "bin" / self.program_name
        return path if os.access(path, os.X_OK) else None

    def supports(self, scenario: Scenario) -> str | None:
        """PHP needs LSAPI, which the sites of the laboratory do not give."""
        reason = super().supports(scenario)
        if reason or scenario.site == "static":
            return reason
        return None if self.place.rules.get(self.name) else "its PHP is not set up on this machine"

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`root/conf/httpd_config.conf`, the virtual host and the types."""
        self._make_root(directory)
        place, run = self.place, owned_by_user(directory / "run")
        old = variant == "original"
        who = user() or os.environ.get("USER", "nobody")
        level, log = ("DEBUG", "access") if old else ("WARN", "")
        access = f"  accesslog {run}/access.log {{ useServer 0 }}\n" if log else ""
        types = "\n".join(f"{end} = {kind}" for end, kind in MIME.items())
        main = f"""serverName lab
user {who}
group {who}
httpdWorkers {place.workers}
mime conf/mime.properties
errorlog {run}/error.log {{
  logLevel {level}
  debugLevel 0
  rollingSize 10M
}}
indexFiles index.html, index.php
tuning {{
  maxConnections 16000
  maxSSLConnections 16000
  maxKeepAliveReq 1000000
  keepAliveTimeout 300
  quicEnable 1
  enableGzipCompress 1
  gzipAutoUpdateStatic 1
  gzipStaticCompressLevel 9
  gzipCompressLevel 1
  compressibleTypes text/*, application/javascript
}}
virtualHost lab {{
  vhRoot {directory}
  configFile conf/vhost.conf
  allowSymbolLink 1
  enableScript 1
  restrained 0
}}
listener plain {{
  address {place.host}:{place.plain_port}
  secure 0
  map lab *
}}
listener tls {{
  address {place.host}:{place.tls_port}
  secure 1
  keyFile {place.key}
  certFile {place.certificate}
  sslProtocol 24
  enableQuic 1
  map lab *
}}
"""
        virtual = f"""docRoot {place.site}
enableGzip 1
{access}{place.rules.get(self.name, "")}"""
        return {
            "root/conf/httpd_config.conf": main,
            "root/conf/vhost.conf": virtual,
            "root/conf/mime.properties": types + "\n",
        }

    def _make_root(self, directory: Path) -> None:
        """Real directories, linked files: the server takes its root from where its program is."""
        if self.find() is None:
            raise ServerError(f"missing: {self.name}; {self.install}")
        root = directory / "root"
        for name in ("conf", "logs", "tmp", "cachedata", "autoupdate"):
            owned_by_user(root / name)
        for name in ("bin", "modules", "lib", "share", "admin", "fcgi-bin"):
            source = INSTALLED / name
            if not source.is_dir():
                continue
            if name != "bin":
                if not (root / name).exists():
                    (root / name).symlink_to(source)
                continue
            (root / "bin").mkdir(exist_ok=True)
            for one in source.iterdir():
                if not (root / "bin" / one.name).exists():
                    (root / "bin" / one.name).symlink_to(one)

    def commands(self, directory: Path) -> list[list[str]]:
        """One process that does not leave the foreground."""
        return [[str(directory / "root/bin" / self.program_name), "-d"]]


class LiteSpeed(OpenLiteSpeed):
    """LiteSpeed Enterprise, which reads the same files where it is licensed."""

    name = "litespeed"
    programs = ("litespeed",)
    program_name = "litespeed"
    install = "see https://www.litespeedtech.com/products/litespeed-web-server/download"
