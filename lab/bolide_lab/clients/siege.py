"""Owns siege: users who walk a list of addresses, with or without what pages refer to."""

from __future__ import annotations

import re
from pathlib import Path

from bolide_lab import machine
from bolide_lab.clients.base import Address, Client, ClientError, split_url, tail
from bolide_lab.model import Load, Outcome

SETTINGS = """\
# No delay, nothing logged. siege 4.1 waits for ever for the end of an answer in chunks
# on a kept connection, so each transaction has a connection of its own, whoever answers.
connection = close
protocol = HTTP/1.1
verbose = false
quiet = false
color = off
json_output = true
logging = false
delay = 0
benchmark = true
timeout = 30
failures = 1000000
limit = 1000
cache = false
cookies = true
accept-encoding = gzip, deflate
parser = {parser}
"""
WORDS = {
    "transactions": "transactions",
    "availability": "availability_percent",
    "elapsed_time": "elapsed_s",
    "data_transferred": "data_mib",
    "response_time": "response_s_mean",
    "transaction_rate": "rate_per_s",
    "throughput": "throughput_mib_per_s",
    "concurrency": "concurrency",
    "successful_transactions": "successful",
    "failed_transactions": "failed",
    "longest_transaction": "longest_s",
    "shortest_transaction": "shortest_s",
}


class Siege(Client):
    """siege 4, by a settings file of the laboratory's own."""

    name = "siege"
    programs = ("siege-sid", "siege")
    headers = ("Accept-Encoding: gzip, deflate",)

    def version(self) -> str:
        """What it says after its banner; without settings of its own it asks for some."""
        argv = ["env", "HOME=/nonexistent", self.program(), "-R", "/dev/null", "--version"]
        text = machine.output(argv)
        found = re.search(r"SIEGE\s+[\d.]+\S*", text, re.IGNORECASE)
        return found[0] if found else ""

    def supports(self, load: Load) -> str | None:
        """HTTP/1.1 only."""
        return None if load.protocol in ("h1", "h1-tls") else f"siege has no {load.protocol}"

    def argv(self, load: Load, address: Address) -> list[str]:
        """`-c`, `-t`, `-R` and `-f` or an address."""
        parser = bool(load.extra.get("parser", False))
        settings = address.directory / "siegerc"
        settings.write_text(SETTINGS.format(parser="true" if parser else "false"))
        out = [self.program(), "-R", str(settings), f"-c{load.connections}", "-b"]
        if load.requests is not None:
            out.append(f"-r{max(1, load.requests // load.connections)}")
        else:
            out.append(f"-t{max(1, round(load.seconds or 1))}S")
        out.append("--parser" if parser else "--no-parser")
        host, _ = split_url(load.url)
        for header in (*((f"Host: {host}",) if host else ()), *load.headers):
            out += ["-H", header]
        if load.urls_file:
            paths = Path(load.urls_file).read_text(encoding="utf-8").split()
            urls = address.directory / "siege-urls.txt"
            base = address.base(load)
            urls.write_text("\n".join(p if "://" in p else base + p for p in paths) + "\n")
            return [*out, "-f", str(urls)]
        return [*out, address.url(load)]

    def parse(self, text: str) -> Outcome:
        """The JSON of siege 4.1, or the lines of siege 4.0."""
        found: dict[str, float] = {}
        for word, name in WORDS.items():
            label = word.replace("_", "[ _]")
            match = re.search(rf'"?{label}"?:\s+([\d.]+)', text, re.IGNORECASE)
            if match:
                found[name] = float(match[1])
        if "transactions" not in found or "elapsed_s" not in found:
            raise ClientError(f"no report of siege: {tail(text)}")
        took = found["elapsed_s"]
        good = int(found["transactions"])
        data = found.get("data_mib")
        return Outcome(
            seconds=took,
            requests=good,
            failed=int(found.get("failed", 0)),
            requests_per_s=good / took if took > 0 else 0.0,
            latency_us=None,
            bytes_total=round(data * 1024 * 1024) if data is not None else None,
            extra={
                "longest_s": found.get("longest_s", 0.0),
                "availability_percent": found.get("availability_percent", 0.0),
                "concurrency": found.get("concurrency", 0.0),
            },
        )
