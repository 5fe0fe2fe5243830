"""Owns the look at an answer before anything is timed: status, coding and the body's hash."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bolide_lab import machine
from bolide_lab.clients.base import Address, split_url
from bolide_lab.model import Load

OPTIONS = {"h1": "--http1.1", "h1-tls": "--http1.1", "h2": "--http2", "h3": "--http3-only"}
VERSIONS = {"h1": "1.1", "h1-tls": "1.1", "h2": "2", "h3": "3"}
CHUNK = 1 << 20
LIMIT_S = 60
# A server may listen before it can take a connection.
COULD_NOT_CONNECT = 7
TRIES = 10
PAUSE_S = 0.1


@dataclass(frozen=True)
class Answer:
    """What one request brought."""

    status: int
    version: str
    coding: str
    bytes_on_wire: int
    bytes_plain: int
    sha256: str
    expected_version: str
    error: str = ""

    def words(self) -> dict[str, Any]:
        """For the record."""
        return {k: v for k, v in asdict(self).items() if k != "error"}


def fetch(load: Load, address: Address, into: tuple[str, ...] = ()) -> Answer:
    """Asks once as the client will, with curl; `into` goes before the command."""
    path = machine.find("curl-h3", "curl")
    if path is None:
        raise OSError("missing: curl; run: lab tools install")
    out, head = address.directory / "body", address.directory / "head"
    argv = [*into, str(path), "-sk", "-m", str(LIMIT_S), OPTIONS[load.protocol]]
    host, _ = split_url(load.url)
    if load.extra.get("vhosts"):
        host = "site1.test"
    for header in (*((f"Host: {host}",) if host else ()), *load.headers):
        argv += ["-H", header]
    argv += ["-o", str(out), "-D", str(head), "-w", "%{json}", address.url(load)]
    for _ in range(TRIES):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != COULD_NOT_CONNECT:
            break
        time.sleep(PAUSE_S)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {}
    coding = ""
    if head.exists():
        for line in head.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() == "content-encoding":
                coding = value.strip().lower()
    error = "" if done.returncode == 0 else said.get("errormsg") or f"curl: {done.returncode}"
    if not error and out.exists():
        size, plain, digest = hashed(out, coding)
    else:
        size, plain, digest = 0, 0, ""
    return Answer(
        status=int(said.get("http_code") or 0),
        version=str(said.get("http_version") or ""),
        coding=coding,
        bytes_on_wire=size,
        bytes_plain=plain,
        sha256=digest,
        expected_version=VERSIONS[load.protocol],
        error=error,
    )


def problem(answer: Answer, expected: Path | None) -> str | None:
    """What is wrong with the answer; None if it may be measured."""
    if answer.error:
        return answer.error
    if answer.status != 200:
        return f"status {answer.status}"
    if answer.version != answer.expected_version:
        return f"answered by HTTP/{answer.version}, not HTTP/{answer.expected_version}"
    if answer.sha256 == "":
        return f"its content coding {answer.coding!r} does not decode"
    if expected is not None:
        _, size, digest = hashed(expected, "")
        if digest != answer.sha256:
            return f"the body differs: {answer.bytes_plain} bytes, not the {size} of the file"
    elif answer.bytes_plain == 0:
        return "the body is empty"
    return None


def hashed(path: Path, coding: str) -> tuple[int, int, str]:
    """Size as it is, size and SHA-256 decoded; no hash where it cannot be decoded."""
    decoder = None
    if coding in ("gzip", "x-gzip", "deflate"):
        decoder = zlib.decompressobj(47)
    elif coding not in ("", "identity"):
        return path.stat().st_size, 0, ""
    digest, plain = hashlib.sha256(), 0
    with path.open("rb") as source:
        while data := source.read(CHUNK):
            try:
                data = decoder.decompress(data) if decoder else data
            except zlib.error:
                return path.stat().st_size, 0, ""
            digest.update(data)
            plain += len(data)
    return path.stat().st_size, plain, digest.hexdigest()
