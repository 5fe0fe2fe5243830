"""Owns wrk: HTTP/1.1 with and without TLS, closed loop, for a length of time."""

from __future__ import annotations

import re

from bolide_lab.clients.base import (
    Address,
    Client,
    ClientError,
    seconds,
    size_bytes,
    split_url,
    tail,
)
from bolide_lab.model import LatencyUs, Load, Outcome

HOSTS = """-- One Host after the other of site0.test, site1.test and so on.
local count, turn, made = {count}, 0, {{}}
init = function()
  for n = 0, count - 1 do
    wrk.headers["Host"] = "site" .. n .. ".test"
    made[n] = wrk.format("GET", "{path}")
  end
end
request = function()
  turn = (turn + 1) % count
  return made[turn]
end
"""
TAIL = """
done = function(summary, latency)
  io.write(string.format("LAB p50 %d p90 %d p99 %d p999 %d\\n", latency:percentile(50),
    latency:percentile(90), latency:percentile(99), latency:percentile(99.9)))
end
"""


class Wrk(Client):
    """wrk with a script that prints the percentiles to the microsecond."""

    name = "wrk"
    programs = ("wrk",)
    install = "apt-get install wrk"

    def version(self) -> str:
        """What `wrk -v` says."""
        from bolide_lab import machine

        return machine.first_line([self.program(), "-v"])

    def supports(self, load: Load) -> str | None:
        """HTTP/1.1 only, and no count of requests."""
        if load.protocol not in ("h1", "h1-tls"):
            return f"wrk has no {load.protocol}"
        return None if load.seconds else "wrk runs for a time, not for a number of requests"

    def argv(self, load: Load, address: Address) -> list[str]:
        """`-t`, `-c`, `-d`, headers and the script; wrk takes whole seconds, at least one."""
        script = address.directory / "wrk.lua"
        hosts = int(load.extra.get("vhosts", 0))
        head = HOSTS.format(count=hosts, path=split_url(load.url)[1]) if hosts else ""
        script.write_text(head + TAIL, encoding="utf-8")
        out = [self.program(), f"-t{min(load.threads, load.connections)}", f"-c{load.connections}"]
        out += [f"-d{max(1, round(load.seconds or 1))}s", "--timeout", "10s", "-s", str(script)]
        host, _ = split_url(load.url)
        for header in (*((f"Host: {host}",) if host else ()), *load.headers):
            out += ["-H", header]
        return [*out, address.url(load)]

    def parse(self, text: str) -> Outcome:
        """The summary of wrk 4."""
        found = re.search(r"(\d+) requests in ([\d.]+(?:us|ms|s|m|h)), ([\d.]+[KMGT]?B) read", text)
        if not found:
            raise ClientError(f"no report of wrk: {tail(text)}")
        done, took = int(found[1]), seconds(found[2])
        wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        failed = int(wrong[1]) if wrong else 0
        good = max(0, done - failed)
        extra: dict[str, object] = {}
        if errors := re.search(r"Socket errors: (.*)", text):
            counts = [int(n) for n in re.findall(r"\d+", errors[1])]
            failed += sum(counts)
            extra["socket_errors"] = errors[1].strip()
        return Outcome(
            seconds=took,
            requests=good,
            failed=failed,
            requests_per_s=good / took if took > 0 else 0.0,
            latency_us=_latency(text),
            bytes_total=size_bytes(found[3]),
            extra=extra,
        )


def _latency(text: str) -> LatencyUs | None:
    exact = re.search(r"LAB p50 (\d+) p90 (\d+) p99 (\d+) p999 (\d+)", text)
    if exact:
        return LatencyUs(*(float(n) for n in exact.groups()))
    rows = dict(re.findall(r"^\s+(50|90|99)(?:\.\d+)?%\s+([\d.]+\w+)", text, re.MULTILINE))
    if set(rows) != {"50", "90", "99"}:
        return None
    p50, p90, p99 = (seconds(rows[n]) * 1e6 for n in ("50", "90", "99"))
    return LatencyUs(p50, p90, p99, None)
