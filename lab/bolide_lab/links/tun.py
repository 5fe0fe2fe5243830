"""Owns our own user-space link: `link.c`, compiled by `cc` on first use, and its process."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from bolide_lab.links.base import Counters, Direction, Link, LinkUnavailable, needs_root

SOURCE = Path(__file__).with_name("link.c")
MTU = 1500


def program(cache: Path | None = None) -> Path:
    """The compiled link; compiled now if this source has not been before."""
    text = SOURCE.read_bytes()
    place = cache or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "bolide-lab"
    path = place / f"link-{hashlib.sha256(text).hexdigest()[:16]}"
    if path.exists():
        return path
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LinkUnavailable("missing: a C compiler (apt-get install gcc libc6-dev)")
    place.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [compiler, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-o", str(fresh), str(SOURCE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LinkUnavailable(f"{SOURCE} does not compile: {done.stderr.strip()}")
    fresh.replace(path)
    return path


class TunLink(Link):
    """Two TUN devices and the process between them."""

    kind = "tun"
    _process: subprocess.Popen[str] | None = None
    _ready: dict[str, int]

    def up(self) -> None:
        """Starts the link's process and waits until both ends are there."""
        needs_root()
        if not Path("/dev/net/tun").exists():
            raise LinkUnavailable("missing: /dev/net/tun (modprobe tun)")
        self._process = subprocess.Popen(
            self.argv(program()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            raise LinkUnavailable(self._process.stderr.read().strip() or "the link did not start")
        self._ready = json.loads(line)

    def argv(self, path: Path) -> list[str]:
        """The command for `spec`; half of the round trip is each direction's delay."""
        spec = self.spec
        numbers = [spec.rate_mbit, spec.rate_mbit, spec.rtt_ms * 500, spec.queue_packets]
        more = [spec.loss_percent, self.seed, MTU]
        return [str(path), *(f"{number:.15g}" for number in [*numbers, *more])]

    def pids(self) -> list[int]:
        """The one that relays."""
        return [self._process.pid] if self._process is not None else []

    def server_namespace(self) -> str:
        """The namespace through the process that made it."""
        return f"/proc/{self._ready['pid']}/fd/{self._ready['server_namespace']}"

    def client_namespace(self) -> str:
        """The namespace through the process that made it."""
        return f"/proc/{self._ready['pid']}/fd/{self._ready['client_namespace']}"

    def counters(self) -> Counters:
        """Asks the process."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise LinkUnavailable("the link is not up")
        process.stdin.write("\n")
        process.stdin.flush()
        return parse_counters(process.stdout.readline())

    def down(self) -> Counters | None:
        """Ends the process by ending its input; kills it if it does not hear."""
        process, self._process = self._process, None
        if process is None:
            return None
        try:
            out, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
        lines = out.strip().splitlines()
        return parse_counters(lines[-1]) if lines else None


def parse_counters(line: str) -> Counters:
    """Reads one line of the process."""
    if not line:
        raise LinkUnavailable("the link's process has ended")
    said: dict[str, Any] = json.loads(line)
    return Counters(Direction(**said["to_client"]), Direction(**said["to_server"]), said["cpu_s"])
