"""Owns h2load: HTTP/1.1, HTTP/2 and HTTP/3 over many connections and streams, closed loop."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from bolide_lab.clients.base import Address, Client, ClientError, seconds, split_url, tail
from bolide_lab.model import LatencyUs, Load, Outcome

ALPN = {"h1-tls": "http/1.1", "h2": "h2", "h3": "h3"}
LOG = "h2load.log"
IDLE_LIMIT_S = 20


class H2load(Client):
    """h2load built with HTTP/3; each answer's time is logged where `extra.log` asks for it."""

    name = "h2load"
    programs = ("h2load-h3", "h2load")

    def supports(self, load: Load) -> str | None:
        """Only the build of the laboratory knows HTTP/3."""
        path = self.find()
        if load.protocol == "h3" and path is not None and path.name != "h2load-h3":
            return "this h2load has no HTTP/3"
        return None

    def argv(self, load: Load, address: Address) -> list[str]:
        """`-n` or `-D`, `-c`, `-m`, `-t`, and the protocol by ALPN."""
        out = [self.program()]
        out.append("--h1" if load.protocol == "h1" else f"--alpn-list={ALPN[load.protocol]}")
        if load.requests is not None:
            out.append(f"-n{load.requests}")
        else:
            out.append(f"-D{max(100, round((load.seconds or 1) * 1000))}ms")
        threads = min(load.threads, load.connections)
        out += [f"-c{load.connections}", f"-m{load.streams}", f"-t{threads}", f"-N{IDLE_LIMIT_S}"]
        host, _ = split_url(load.url)
        if host:
            out += [
                "-H",
                f":authority: {host}" if load.protocol in ("h2", "h3") else f"Host: {host}",
            ]
        for header in load.headers:
            out += ["-H", header]
        if load.extra.get("upload_bytes"):
            body = address.directory / "upload.bin"
            if not body.exists() or body.stat().st_size != load.extra["upload_bytes"]:
                body.write_bytes(b"u" * int(load.extra["upload_bytes"]))
            out += ["-d", str(body)]
        if load.extra.get("log"):
            (address.directory / LOG).unlink(missing_ok=True)
            out.append(f"--log-file={address.directory / LOG}")
        if load.urls_file:
            out += [f"-B{address.base(load)}", "-i", self._urls(load, address)]
        else:
            out.append(address.url(load))
        return out

    def _urls(self, load: Load, address: Address) -> str:
        """The list with a server's own address in each line."""
        source = Path(str(load.urls_file))
        paths = source.read_text(encoding="utf-8").split()
        out = address.directory / "h2load-urls.txt"
        base = address.base(load)
        out.write_text("\n".join(p if "://" in p else base + p for p in paths) + "\n")
        return str(out)

    def parse(self, text: str) -> Outcome:
        """The summary of h2load 1.40 and later."""
        time = re.search(r"finished in ([\d.]+(?:us|ms|s|m|h)), ([\d.]+) req/s", text)
        count = re.search(
            r"requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, "
            r"(\d+) failed, (\d+) errored, (\d+) timeout",
            text,
        )
        codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", text)
        if not time or not count or not codes:
            raise ClientError(f"no report of h2load: {tail(text)}")
        total, _, done, _, failed, errored, _ = (int(n) for n in count.groups())
        good = int(codes[1])
        took = seconds(time[1])
        traffic = re.search(
            r"traffic: \S+ \((\d+)\) total, \S+ \((\d+)\) headers \(space savings ([\d.-]+)%\)"
            r", \S+ \((\d+)\) data",
            text,
        )
        extra: dict[str, object] = {"errored": errored, "done": done}
        if traffic:
            extra["header_bytes"] = int(traffic[2])
            extra["header_savings_percent"] = float(traffic[3])
            extra["data_bytes"] = int(traffic[4])
        if drops := re.search(r"^packets lost:(.*)$", text, re.MULTILINE):
            extra["packets_lost_mean"] = float(drops[1].split()[5])
        latency, p95 = _latency(text)
        if p95 is not None:
            extra["latency_us_p95"] = p95
        for word in ("connect", "TTFB"):
            if row := _row(text, word):
                extra[f"{word.lower()}_us_p50"] = row[2]
        return Outcome(
            seconds=took,
            requests=good,
            failed=max(total - good, failed),
            requests_per_s=good / took if took > 0 else 0.0,
            latency_us=latency,
            bytes_total=int(traffic[1]) if traffic else None,
            extra=extra,
        )

    def read_files(self, outcome: Outcome, directory: Path) -> Outcome:
        """Percentiles of every answer, where there is a log."""
        path = directory / LOG
        if not path.exists():
            return outcome
        latency = percentiles_of_log(path.read_text(encoding="ascii", errors="replace"))
        return replace(outcome, latency_us=latency) if latency else outcome


def percentiles_of_log(text: str) -> LatencyUs | None:
    """From lines of start, status and microseconds; answers that are no 2xx do not count."""
    times = []
    for line in text.splitlines():
        words = line.split("\t")
        if len(words) == 3 and words[1].startswith("2") and words[2].isdigit():
            times.append(int(words[2]))
    return percentiles(times)


def percentiles(times_us: list[int]) -> LatencyUs | None:
    """The smallest times that the shares do not exceed; None for no times."""
    if not times_us:
        return None
    ordered = sorted(times_us)

    def at(share: float) -> float:
        return float(ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))])

    return LatencyUs(at(0.5), at(0.9), at(0.99), at(0.999))


def _row(text: str, word: str) -> list[float] | None:
    found = re.search(rf"^{word}\s*:(.*)$", text, re.MULTILINE)
    if not found:
        return None
    out = []
    for value in found[1].split():
        if value.endswith("%"):
            continue
        out.append(seconds(value) * 1e6)
    return out


def _latency(text: str) -> tuple[LatencyUs | None, float | None]:
    """h2load 1.65 and later print median, p95 and p99; before that only the mean."""
    if not re.search(r"min\s+max\s+median\s+p95\s+p99", text):
        return None, None
    row = _row(text, "request")
    if not row or len(row) < 5 or row[1] == 0:
        return None, None
    return LatencyUs(row[2], None, row[4], None), row[3]
