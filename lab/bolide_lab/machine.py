"""Owns what is recorded of the machine, and what it must have for a run."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

TOOLS = Path(os.environ.get("BOLIDE_TOOLS", str(Path.home() / ".cache/bolide-tools")))
SETTINGS = (
    "net.core.rmem_max",
    "net.core.rmem_default",
    "net.core.wmem_max",
    "net.core.somaxconn",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.ip_local_port_range",
    "kernel.sched_autogroup_enabled",
)


def find(*names: str) -> Path | None:
    """The first of the programs that is in the laboratory's own tools or in PATH."""
    for name in names:
        own = TOOLS / "bin" / name
        if own.is_file() and os.access(own, os.X_OK):
            return own
        found = shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")
        if found:
            return Path(found)
    return None


def record() -> dict[str, Any]:
    """What a reader must know of the machine to judge the figures; no names of it."""
    info = _text("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info)
    flags = re.search(r"flags\s*: (.*)", info)
    wanted = ("aes", "vaes", "avx2", "avx512f", "pclmulqdq", "hypervisor")
    memory = re.search(r"MemTotal:\s+(\d+)", _text("/proc/meminfo"))
    return {
        "cpu": model[1].strip() if model else platform.machine(),
        "cores": os.cpu_count(),
        "cores_allowed": sorted(os.sched_getaffinity(0)),
        "flags": [f for f in wanted if flags and f in flags[1].split()],
        "memory_mib": int(memory[1]) // 1024 if memory else None,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "settings": {name: sysctl(name) for name in SETTINGS},
        "python": platform.python_version(),
        "load_1m": os.getloadavg()[0],
    }


def sysctl(name: str) -> str | None:
    """A kernel setting, None where there is none."""
    return _text("/proc/sys/" + name.replace(".", "/")).strip() or None


def raise_open_files() -> int:
    """As many open files as are allowed; the number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def cores() -> tuple[int, int]:
    """The server's core and the client's, from those this process may use.

    Raises OSError if there is only one: figures of a shared core would be worthless.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise OSError("needs two cores, one for the server and one for the client")
    return allowed[0], allowed[1]


def free_port(wanted: int, taken: frozenset[int] = frozenset()) -> int:
    """`wanted`, or the next port free for TCP and UDP on loopback."""
    for port in range(wanted, min(wanted + 1000, 65536)):
        if port not in taken and _is_free(port):
            return port
    raise OSError(f"no free port from {wanted} on")


def _is_free(port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def output(argv: list[str]) -> str:
    """All that a short command prints on either output; "" if it fails to start."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def first_line(argv: list[str]) -> str:
    """The first line of `output`."""
    lines = [line.strip() for line in output(argv).splitlines() if line.strip()]
    return lines[0] if lines else ""


def udp_buffer_errors() -> int:
    """Datagrams the kernel threw away for want of room in a receive buffer, since boot."""
    heads: list[str] = []
    for line in _text("/proc/net/snmp").splitlines():
        if line.startswith("Udp:"):
            words = line.split()[1:]
            if not heads:
                heads = words
            else:
                return int(dict(zip(heads, words, strict=False)).get("RcvbufErrors", "0"))
    return 0


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
