"""A run that never was: every kind of line, made from a seed, for the tests of the report."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SPEED = {"bolide": 1.9, "nginx": 1.0, "h2o": 1.92, "caddy": 0.3, "apache": 0.22}
CPU_US = {"bolide": 4.0, "nginx": 18.0, "h2o": 6.2, "caddy": 190.0, "apache": 210.0}
SCENARIOS = {"Q1b": 4000.0, "B-h2-html": 50000.0, "B-h2-jpg": 45000.0, "B-h1-html": 30000.0}
RATES = ("own-open-1k", "own-open-4k")


def write(directory: Path, seed: int = 1, faster: float = 1.0) -> Path:
    """Writes `run.jsonl` into a new directory and returns the directory."""
    chance = random.Random(seed)
    directory.mkdir(parents=True)
    lines = [*_conditions(), *_rates(chance, faster), *_shop(chance), *_curl(chance)]
    lines += [
        _sample(chance, scenario, server, config, repetition, base * SPEED[server] * faster)
        for scenario, base in SCENARIOS.items()
        for server in SPEED
        for config in ("best", "original")
        for repetition in range(5)
        if config == "best" or server == "nginx"
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (directory / "run.jsonl").write_text(text + '{"kind":"sample","scen', encoding="utf-8")
    return directory


def _conditions() -> list[dict[str, Any]]:
    config = "worker_processes 1;\nevents { worker_connections 4096; }\nhttp { gzip_static on; }\n"
    return [
        {
            "kind": "machine",
            "cpu": "Some CPU at 2.5 GHz",
            "cores": 2,
            "kernel": "6.18.0",
            "memory_mib": 7900,
            "settings": {"net.core.rmem_max": "4194304"},
        },
        {"kind": "version", "server": "nginx", "version": "nginx/1.30.6"},
        {"kind": "version", "server": "bolide", "version": "bolide 0.1.0"},
        {"kind": "config", "server": "nginx", "scenario": "Q1b", "config": "best", "text": config},
        {"kind": "config", "server": "nginx", "scenario": "B-h2-html", "text": config},
        {"kind": "body-check", "server": "nginx", "scenario": "Q1b", "ok": True},
        {"kind": "excluded", "server": "lighttpd", "scenario": "Q1b", "reason": "has no HTTP/3"},
        {"kind": "excluded", "server": "angie", "reason": "not installed: <apt-get install angie>"},
        {"kind": "note", "text": "The machine had other work & was noisy."},
    ]


def _sample(
    chance: random.Random, scenario: str, server: str, config: str, repetition: int, rate: float
) -> dict[str, Any]:
    slow = 0.6 if config == "original" else 1.0
    rate *= slow * chance.gauss(1, 0.03)
    cpu = CPU_US[server] / slow * chance.gauss(1, 0.04)
    middle = 100_000_000 / rate
    return {
        "kind": "sample",
        "scenario": scenario,
        "server": server,
        "config": config,
        "repetition": repetition,
        "started_unix_ms": 1_795_000_000_000 + repetition,
        "seconds": 100_000 / rate,
        "requests": 100_000,
        "failed": 2 if server == "apache" and repetition == 1 else 0,
        "requests_per_s": rate,
        "server_cpu_user_s": cpu * 0.04,
        "server_cpu_system_s": cpu * 0.06,
        "server_cpu_us_per_request": cpu,
        "peak_rss_mib": 20 + cpu / 2,
        "client_cpu_utilisation": 0.91 if server in ("h2o", "bolide") else 0.6,
        "saturated": server in ("h2o", "bolide") and scenario == "B-h2-html",
        "latency_us": {
            "p50": middle,
            "p90": middle * 1.6,
            "p99": middle * 4,
            "p999": None if server == "caddy" else middle * 12,
        },
        "bytes_per_answer": 400.0,
        "series": [],
        "extra": {
            "steal_s": 0.2 if server == "apache" else 0.0,
            "client_seconds": 10.0,
            "connect_us_p50": 400.0,
            "link_late": scenario == "Q1b" and server == "apache",
            "udp_buffer_errors": 12 if scenario == "Q1b" and server == "caddy" else 0,
            **({"helpers_cpu_s": 0.5} if scenario == "M3" else {}),
        },
    }


def _rates(chance: random.Random, faster: float) -> list[dict[str, Any]]:
    return [
        _sample(chance, scenario, server, "best", repetition, 60_000 * SPEED[server] * faster)
        for scenario in RATES
        for server in SPEED
        for repetition in range(5)
    ]


def _shop(chance: random.Random) -> list[dict[str, Any]]:
    lines = []
    for server in ("bolide", "nginx", "apache"):
        for repetition in range(5):
            one = _sample(chance, "M3", server, "best", repetition, 3000 * SPEED[server])
            one["series"] = [
                [float(t), 0.0 if t < 10 or t > 70 else min(100, CPU_US[server]), 30 + t * 0.1]
                for t in range(80)
            ]
            lines.append(one)
    return lines


def _curl(chance: random.Random) -> list[dict[str, Any]]:
    lines = []
    for arm, mean in (("C1:h3", 0.2224), ("C1:h2", 0.2239), ("C2:h3", 0.2277), ("C2:h2", 0.2866)):
        for server in ("bolide", "nginx"):
            for repetition in range(30):
                one = _sample(chance, arm, server, "best", repetition, 1000.0)
                one["seconds"] = mean * chance.gauss(1, 0.05)
                one["requests"] = 38 if arm.startswith("C2") else 1
                one["latency_us"] = None
                lines.append(one)
    return lines
