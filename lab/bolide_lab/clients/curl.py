"""Owns curl as a client: processes timed one by one, the arms of a comparison in random order.

A sample is one process. What `-w` says splits its time: the process itself, name lookup, handshake
(TCP and TLS, or QUIC), first byte, all. How many connections it opened is counted.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bolide_lab.clients.base import Address, Client, ClientError, split_url, tail
from bolide_lab.model import Load, Outcome, Protocol

FLAGS: dict[Protocol, str] = {
    "h1": "--http1.1",
    "h1-tls": "--http1.1",
    "h2": "--http2",
    "h3": "--http3-only",
}
VERSIONS: dict[Protocol, tuple[str, ...]] = {
    "h1": ("1", "1.1"),
    "h1-tls": ("1", "1.1"),
    "h2": ("2",),
    "h3": ("3",),
}
# Starts this module from wherever the laboratory is.
PACKAGE = Path(__file__).resolve().parents[2]
START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from bolide_lab.clients.curl import main; main(sys.argv[1:])"
)
# One process may not hang for ever, and a slow server is still a result.
TIMEOUT_S = 120


def find(protocol: Protocol = "h3") -> Path | None:
    """A curl that speaks the protocol: `curl-h3` of the tools, else the system's."""
    tools = Path(os.environ.get("BOLIDE_TOOLS", Path.home() / ".cache/bolide-tools")) / "bin"
    for name in ("curl-h3", "curl"):
        found = shutil.which(name, path=f"{tools}:{os.environ.get('PATH', '')}")
        if found is None:
            continue
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        features = said.stdout.split()
        if protocol in ("h1", "h1-tls") or {"h2": "HTTP2", "h3": "HTTP3"}[protocol] in features:
            return Path(found)
    return None


def urls(load: Load, base: str) -> list[str]:
    """The addresses of one process: those of `urls_file`, as many as `requests`, else `url`."""
    if load.urls_file is None:
        return [base + split_url(load.url)[1]] * (load.requests or 1)
    lines = Path(load.urls_file).read_text(encoding="utf-8").split()
    return [base + line for line in lines[: load.requests or len(lines)]]


def argv(load: Load, address: str, program: str = "curl", host: str = "localhost") -> list[str]:
    """The command for `load` on the server at `address` ("10.77.0.1:8443").

    The server is asked by the name `host`, as a browser does; no lookup leaves this machine.
    `-Z` is the published command's: transfers in parallel, on one connection where it can be.
    """
    ip, _, port = address.rpartition(":")
    scheme = "http" if load.protocol == "h1" else "https"
    host = split_url(load.url)[0] or host
    command = [program, "-q", "-s", "-k", FLAGS[load.protocol], "--max-time", str(TIMEOUT_S)]
    command += ["--resolve", f"{host}:{port}:{ip}", "--compressed"]
    for header in load.headers:
        command += ["-H", header]
    wanted = urls(load, f"{scheme}://{host}:{port}")
    if len(wanted) > 1:
        command += ["-Z", "--parallel-max", str(max(load.streams, 1))]
    command += ["-w", "%{stdout}%{json}\\n"]
    for url in wanted:
        command += ["-o", os.devnull, url]
    return command


def parse(text: str, protocol: Protocol | None = None) -> Outcome:
    """Reads the lines of `-w`: one JSON object for each transfer.

    A transfer has failed if it has an error, a status of 400 or more, or came by another protocol.
    """
    transfers = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    bad = sum(not _is_good(transfer, protocol) for transfer in transfers)
    total_s = max((float(transfer["time_total"]) for transfer in transfers), default=0.0)
    good = len(transfers) - bad
    nothing: dict[str, Any] = {}
    first = min(transfers, key=lambda one: int(one.get("urlnum", 0)), default=nothing)
    return Outcome(
        seconds=total_s,
        requests=good,
        failed=bad,
        requests_per_s=good / total_s if total_s else 0.0,
        bytes_total=sum(int(one["size_download"]) + int(one["size_header"]) for one in transfers),
        extra={
            "connections": sum(int(one["num_connects"]) for one in transfers),
            "http_versions": sorted({str(one["http_version"]) for one in transfers}),
            "total_us": round(total_s * 1e6),
            **phases_us(first),
        },
    )


def _is_good(transfer: dict[str, Any], protocol: Protocol | None) -> bool:
    if transfer.get("exitcode", 0) != 0 or not 200 <= int(transfer["http_code"]) < 400:
        return False
    return protocol is None or str(transfer["http_version"]) in VERSIONS[protocol]


def phases_us(transfer: dict[str, Any]) -> dict[str, int]:
    """The phases of one transfer, each from the end of the one before, in microseconds.

    With QUIC, connecting and TLS are one handshake, so both are one phase here.
    """
    if not transfer:
        return {}
    looked_up, connected = float(transfer["time_namelookup"]), float(transfer["time_connect"])
    secured = float(transfer["time_appconnect"]) or connected
    asked, first = float(transfer["time_pretransfer"]), float(transfer["time_starttransfer"])
    parts = {
        "dns_us": looked_up,
        "handshake_us": max(secured, connected) - looked_up,
        "first_byte_us": first - asked,
        "body_us": float(transfer["time_total"]) - first,
    }
    return {name: round(max(seconds, 0.0) * 1e6) for name, seconds in parts.items()}


def with_wall_time(outcome: Outcome, wall_s: float) -> Outcome:
    """The outcome as `time curl` sees it; what curl does not account for is the process's own."""
    process_us = round(max(wall_s - outcome.seconds, 0.0) * 1e6)
    return replace(
        outcome,
        seconds=wall_s,
        requests_per_s=outcome.requests / wall_s if wall_s else 0.0,
        extra={**outcome.extra, "process_us": process_us},
    )


def run_once(command: Sequence[str], protocol: Protocol) -> Outcome:
    """Runs one process and times it from before its start to after its end."""
    start = time.perf_counter()
    done = subprocess.run(list(command), capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - start
    outcome = with_wall_time(parse(done.stdout, protocol), wall_s)
    extra = {**outcome.extra, "exit_code": done.returncode}
    asked = command.count(os.devnull)
    missing = max(asked - outcome.requests - outcome.failed, 0)
    return replace(outcome, failed=outcome.failed + missing, extra=extra)


def order(arms: Sequence[str], times: int, seed: int) -> Iterator[tuple[int, str]]:
    """Rounds in which each arm has one turn, in an order of chance: (round, arm)."""
    chance = random.Random(seed)
    for turn in range(times):
        shuffled = list(arms)
        chance.shuffle(shuffled)
        for arm in shuffled:
            yield turn, arm


def for_arm(load: Load, arm: str) -> Load:
    """The load with the protocol of an arm of `load.extra["arms"]`."""
    known = [protocol for protocol in FLAGS if protocol == arm]
    if not known:
        raise ValueError(f"no such arm: {arm} (of {', '.join(FLAGS)})")
    return replace(load, protocol=known[0])


def run_arms(
    load: Load,
    address: str,
    times: int,
    seed: int,
    program: str = "curl",
    prefix: Sequence[str] = (),
) -> Iterator[tuple[int, str, Outcome]]:
    """All arms of a comparison, interleaved: (round, arm, what came of it).

    `prefix` is what runs a command elsewhere: in a link's namespace, on a core of its own.
    """
    arms = tuple(load.extra.get("arms", (load.protocol,)))
    loads = {arm: for_arm(load, arm) for arm in arms}
    commands = {arm: [*prefix, *argv(loads[arm], address, program)] for arm in arms}
    for turn, arm in order(arms, times, seed):
        yield turn, arm, run_once(commands[arm], loads[arm].protocol)


class Curl(Client):
    """curl as one of the clients: a run is one process, `run_arms` is the comparison."""

    name = "curl"
    programs = ("curl-h3", "curl")
    headers = ("Accept-Encoding: deflate, gzip",)

    def supports(self, load: Load) -> str | None:
        """Whether there is a curl that speaks the protocols of all arms."""
        arms = load.extra.get("arms", (load.protocol,))
        for arm in arms:
            if find(for_arm(load, arm).protocol) is None:
                return f"no curl here speaks {arm}: {self.how_to_install()}"
        return None

    def argv(self, load: Load, address: Address) -> list[str]:
        """This module, which times one process of curl from before its start to its end."""
        program = find(load.protocol) or self.programs[-1]
        command = argv(load, where(load, address), str(program))
        return [sys.executable, "-c", START, str(PACKAGE), load.protocol, *command]

    def was_limit(self, outcome: Outcome, busy: float) -> bool:
        """The process itself is what is timed: its CPU is a part of the figure."""
        return False

    def parse(self, text: str) -> Outcome:
        """Reads the line that `main` prints."""
        try:
            return Outcome(**json.loads(text.strip().splitlines()[-1]))
        except (ValueError, TypeError, IndexError) as error:
            raise ClientError(tail(text)) from error


def where(load: Load, address: Address) -> str:
    """The address and port for the load's protocol."""
    port = address.plain_port if load.protocol == "h1" else address.tls_port
    return f"{address.host}:{port}"


def main(words: list[str]) -> None:
    """Runs curl once, for a protocol, and prints the outcome as JSON."""
    protocol, *command = words
    known: list[Protocol] = [one for one in FLAGS if one == protocol]
    print(json.dumps(asdict(run_once(command, known[0]))))
