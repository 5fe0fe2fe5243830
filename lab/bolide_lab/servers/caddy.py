"""Owns Caddy."""

from __future__ import annotations

from pathlib import Path

from bolide_lab.model import Scenario, Variant
from bolide_lab.servers.base import Server, owned_by_user


class Caddy(Server):
    """Caddy 2; it has no page cache in its packages."""

    name = "caddy"
    programs = ("caddy-sid", "caddy")
    version_words = ("version",)
    protocols = frozenset({"h1", "h1-tls", "h2", "h3"})
    originals = frozenset({"B"})

    def environment(self) -> dict[str, str]:
        """As many threads of Go as workers, and no files in the user's home."""
        home = str(self._directory / "run")
        return {
            "GOMAXPROCS": str(self.place.workers),
            "XDG_DATA_HOME": home,
            "XDG_CONFIG_HOME": home,
        }

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`Caddyfile`."""
        place = self.place
        run = owned_by_user(directory / "run")
        files = "file_server {\n\t\tprecompressed gzip\n\t}"
        if variant == "original":
            files = "encode gzip\n\tfile_server"
        if place.php is not None:
            files = f"encode gzip\n\tphp_fastcgi unix/{place.php}\n\tfile_server"
        hosts = "".join(
            f"http://site{n}.test:{place.plain_port} {{\n\timport site\n}}\n"
            for n in range(int(scenario.load.extra.get("vhosts", 0)))
        )
        text = f"""{{
	admin off
	auto_https off
	persist_config off
	default_sni localhost
	grace_period 1s
	log {{
		output file {run}/error.log
		level ERROR
	}}
}}
(site) {{
	bind {place.host}
	root * {place.site}
	{files}
	{place.rules.get(self.name, "")}
}}
https://:{place.tls_port} {{
	tls {place.certificate} {place.key}
	import site
}}
http://:{place.plain_port} {{
	import site
}}
{hosts}"""
        return {"Caddyfile": text}

    def commands(self, directory: Path) -> list[list[str]]:
        """One process."""
        conf = str(directory / "Caddyfile")
        return [[self.program(), "run", "--adapter", "caddyfile", "--config", conf]]
