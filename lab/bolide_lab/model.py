"""Owns the words of the laboratory: scenarios, loads, links, samples, outcomes.

Nothing here reads a file, a clock or a process. All values are frozen.
Units are in the names, last.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Protocol = Literal["h1", "h1-tls", "h2", "h3"]
Group = Literal["Q", "B", "C", "M", "own"]
Site = Literal["static", "wordpress", "shop", "page"]
Variant = Literal["best", "original"]

PROTOCOLS: tuple[Protocol, ...] = ("h1", "h1-tls", "h2", "h3")
GROUPS: tuple[Group, ...] = ("Q", "B", "C", "M", "own")
SITES: tuple[Site, ...] = ("static", "wordpress", "shop", "page")
VARIANTS: tuple[Variant, ...] = ("best", "original")


@dataclass(frozen=True)
class Published:
    """A number that others published for this scenario."""

    server: str
    value: float
    unit: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class LinkSpec:
    """A link between client and server; rates, delays and queues hold for each direction."""

    rate_mbit: float
    rtt_ms: float
    queue_packets: int
    loss_percent: float = 0.0


@dataclass(frozen=True)
class Load:
    """What a client does to a server. `url` is a path, or `vhost.name/path` on the server."""

    client: str
    url: str
    protocol: Protocol
    requests: int | None
    seconds: float | None
    connections: int
    streams: int
    threads: int = 1
    headers: tuple[str, ...] = ()
    rate_per_s: float | None = None
    urls_file: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """One experiment that is made with each of its servers."""

    id: str
    title: str
    group: Group
    site: Site
    load: Load
    link: LinkSpec | None
    servers: tuple[str, ...]
    original_config: bool
    published: tuple[Published, ...]
    metric: str
    higher_is_better: bool
    warmup: Load | None
    repetitions: int
    quick: dict[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    expects_body: str | None = None


@dataclass(frozen=True)
class LatencyUs:
    """Percentiles of the time to answer, in microseconds; None: the client does not say."""

    p50: float
    p90: float | None
    p99: float
    p999: float | None


@dataclass(frozen=True)
class Outcome:
    """What a client's report says."""

    seconds: float
    requests: int
    failed: int
    requests_per_s: float
    latency_us: LatencyUs | None = None
    bytes_total: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """One measured run of one scenario with one server."""

    scenario: str
    server: str
    config: Variant
    repetition: int
    started_unix_ms: int
    seconds: float
    requests: int
    failed: int
    requests_per_s: float
    server_cpu_user_s: float
    server_cpu_system_s: float
    server_cpu_us_per_request: float
    peak_rss_mib: float
    client_cpu_utilisation: float
    saturated: bool
    latency_us: LatencyUs | None
    bytes_per_answer: float | None
    series: tuple[tuple[float, float, float], ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def key(self) -> tuple[str, str, str, int]:
        """What makes the sample one of its kind: a run that resumes skips it."""
        return (self.scenario, self.server, self.config, self.repetition)


def sample_to_json(sample: Sample) -> dict[str, Any]:
    """The sample as one JSON object of kind "sample"."""
    return {"kind": "sample", **asdict(sample)}


def sample_from_json(line: dict[str, Any]) -> Sample:
    """Reads what `sample_to_json` wrote; unknown fields are left out."""
    known = {name: line[name] for name in Sample.__dataclass_fields__ if name in line}
    if known.get("latency_us") is not None:
        known["latency_us"] = LatencyUs(**known["latency_us"])
    known["series"] = tuple((row[0], row[1], row[2]) for row in known.get("series", ()))
    return Sample(**known)
