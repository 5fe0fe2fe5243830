"""Owns Bolide: nginx's configuration and its own page cache."""

from __future__ import annotations

import os
from pathlib import Path

from bolide_lab import machine
from bolide_lab.servers.base import Place
from bolide_lab.servers.nginx import FASTCGI, Nginx

ENVIRONMENT = "BOLIDE_PROGRAM"


class Bolide(Nginx):
    """Bolide; `BOLIDE_PROGRAM` names a binary that is not installed."""

    name = "bolide"
    programs = ("bolide",)
    install = "cargo build --release, then BOLIDE_PROGRAM=target/release/bolide"
    originals = frozenset()
    has_cipher_command = False

    def find(self) -> Path | None:
        """The environment's, the one of this tree, or the installed one."""
        tree = Path(__file__).resolve().parents[3] / "target/release/bolide"
        for text in (os.environ.get(ENVIRONMENT), str(tree)):
            if text and os.access(text, os.X_OK):
                return Path(text).resolve()
        return machine.find(*self.programs)

    def has_http3(self) -> bool:
        """Always."""
        return True

    def has_http2_directive(self) -> bool:
        """Always."""
        return True

    def _cache(self, run: Path) -> str:
        return ""

    def _php(self, place: Place, old: bool) -> str:
        """The page cache by what the application says; a site may add its preset."""
        return f"""        location / {{ try_files $uri $uri/ /index.php?$args; }}
        page_cache auto;
        location ~ \\.php$ {{
            try_files $uri =404;
            fastcgi_pass unix:{place.php};
{FASTCGI}        }}
"""
