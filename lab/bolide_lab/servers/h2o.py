"""Owns H2O."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bolide_lab.model import Protocol, Scenario, Variant
from bolide_lab.servers.base import Server, owned_by_user


class H2o(Server):
    """H2O; HTTP/3 from version 2.3 on."""

    name = "h2o"
    programs = ("h2o",)
    install = "apt-get install h2o"
    protocols = frozenset({"h1", "h1-tls", "h2", "h3"})
    originals = frozenset({"B"})

    def has_http3(self) -> bool:
        """Whether the installed version is new enough."""
        found = re.search(r"(\d+)\.(\d+)", self.version()) if self.find() else None
        return found is not None and (int(found[1]), int(found[2])) >= (2, 3)

    def speaks(self, protocol: Protocol) -> bool:
        """Version 2.2, which Debian has, knows no HTTP/3."""
        return super().speaks(protocol) and (protocol != "h3" or self.has_http3())

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`h2o.conf`."""
        place = self.place
        run = owned_by_user(directory / "run")
        who = "user: root\n" if os.geteuid() == 0 else ""
        files = f'file.dir: {place.site}\n        file.index: ["index.html", "index.php"]\n'
        if variant == "original" or place.php is not None:
            files += "        compress: { gzip: 1 }\n"
        if variant == "best":
            files += "        file.send-compressed: ON\n"
        if place.php is not None:
            php = f"fastcgi.connect: {{ port: {place.php}, type: unix }}"
            files += "        file.custom-handler:\n          extension: .php\n"
            files += f"          {php}\n        redirect: {{ url: /index.php/, internal: YES, "
            files += "status: 307 }\n"
        quic = f"""listen:
  type: quic
  host: {place.host}
  port: {place.tls_port}
  ssl: {{ certificate-file: {place.certificate}, key-file: {place.key} }}
"""
        hosts = "".join(
            f'  "site{n}.test:{place.plain_port}":\n    paths:\n      /:\n'
            f"        file.dir: {place.site}\n        file.send-compressed: ON\n"
            for n in range(int(scenario.load.extra.get("vhosts", 0)))
        )
        text = f"""num-threads: {place.workers}
{who}pid-file: {run}/pid
error-log: {run}/error.log
max-connections: 16384
http1-request-timeout: 300
http2-idle-timeout: 300
http2-max-concurrent-requests-per-connection: 256
listen: {{ host: {place.host}, port: {place.plain_port} }}
listen:
  host: {place.host}
  port: {place.tls_port}
  ssl:
    certificate-file: {place.certificate}
    key-file: {place.key}
    ocsp-update-interval: 0
    cipher-preference: server
    cipher-suite: "ECDHE-ECDSA-AES128-GCM-SHA256"
{quic if self.has_http3() else ""}{place.rules.get(self.name, "")}hosts:
  default:
    paths:
      /:
        {files}{hosts}"""
        return {"h2o.conf": text}

    def commands(self, directory: Path) -> list[list[str]]:
        """One process in the foreground."""
        return [[self.program(), "-m", "worker", "-c", str(directory / "h2o.conf")]]
