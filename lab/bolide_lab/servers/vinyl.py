"""Owns Vinyl Cache (Varnish): plain HTTP by itself, TLS by hitch in front, an origin behind."""

from __future__ import annotations

import getpass
from pathlib import Path

from bolide_lab import machine
from bolide_lab.model import Scenario, Variant
from bolide_lab.servers.base import Server, ServerError, owned_by_user

PROXY_OFFSET = 2


class Vinyl(Server):
    """Vinyl Cache or Varnish with hitch; it serves no files and needs an origin."""

    name = "vinyl"
    programs = ("vinyld-sid", "vinyld", "varnishd")
    version_words = ("-V",)
    originals = frozenset({"M"})

    def supports(self, scenario: Scenario) -> str | None:
        """An origin, and hitch for TLS."""
        reason = super().supports(scenario)
        if reason:
            return reason
        if scenario.site == "static":
            return "vinyl serves no files"
        if scenario.load.protocol != "h1" and self._hitch() is None:
            return "missing: hitch, for TLS; run: lab peers install"
        return None

    def _hitch(self) -> Path | None:
        return machine.find("hitch-sid", "hitch")

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`page.vcl`; the old one passes what is under /media and /static."""
        owned_by_user(directory / "run" / "vinyl")
        if self.place.origin is None:
            raise ServerError("vinyl needs an origin")
        host, _, port = self.place.origin.rpartition(":")
        passed = (
            '    if (req.url ~ "^/(media|static)/") { return (pass); }\n'
            if variant == "original"
            else '    if (req.url ~ "^/(media|static)/") { unset req.http.cookie; }\n'
        )
        text = f"""vcl 4.1;
backend default {{ .host = "{host}"; .port = "{port}"; }}
acl purgers {{ "127.0.0.1"; "10.77.0.0"/24; }}
sub vcl_recv {{
    if (req.method == "PURGE") {{
        if (client.ip !~ purgers) {{ return (synth(405)); }}
        if (req.http.X-Tags) {{
            ban("obj.http.X-Tags ~ " + req.http.X-Tags);
            return (synth(200));
        }}
        return (purge);
    }}
{passed}    if (req.method != "GET" && req.method != "HEAD") {{ return (pass); }}
    if (req.http.cookie ~ "wordpress_logged_in|comment_author|shop_session") {{ return (pass); }}
    unset req.http.cookie;
    return (hash);
}}
sub vcl_backend_response {{
    set beresp.do_esi = (beresp.http.Surrogate-Control ~ "ESI");
    if (beresp.http.Content-Type ~ "text|javascript|json|svg") {{ set beresp.do_gzip = true; }}
    if (beresp.ttl <= 0s && !beresp.http.Set-Cookie
            && beresp.http.Cache-Control !~ "private|no-") {{
        set beresp.ttl = 1h;
    }}
}}
{self.place.rules.get(self.name, "")}"""
        return {"page.vcl": text}

    def commands(self, directory: Path) -> list[list[str]]:
        """vinyld, and hitch if it is there."""
        place = self.place
        inner = place.tls_port + PROXY_OFFSET
        size = "1000m" if place.rules.get("vinyl-memory") else "256m"
        out = [[self.program(), "-F"]]
        out[0] += ["-a", f"{place.host}:{place.plain_port}"]
        out[0] += ["-a", f"127.0.0.1:{inner},PROXY"]
        for setting in ("feature=+http2", "thread_pools=1", "thread_pool_min=50"):
            out[0] += ["-p", setting]
        out[0] += ["-p", "listen_depth=4096", "-f", str(directory / "page.vcl")]
        out[0] += ["-s", f"malloc,{size}", "-n", str(directory / "run/vinyl")]
        hitch = self._hitch()
        if hitch:
            words = [str(hitch), f"--workers={place.workers}", f"--backend=[127.0.0.1]:{inner}"]
            words += ["--write-proxy-v2", "--alpn-protos=h2,http/1.1", "--quiet"]
            words += [f"--frontend=[{place.host}]:{place.tls_port}", f"--user={getpass.getuser()}"]
            out.append([*words, str(place.both)])
        return out

    def needs_ports(self) -> tuple[int, ...]:
        """The TLS port only where hitch is."""
        ports = (self.place.plain_port, self.place.tls_port)
        return ports if self._hitch() else ports[:1]
