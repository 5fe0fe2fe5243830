"""Owns a run: makes the place, takes each sample, writes it down, cleans up.

One server at a time on a core of its own, its client on the others. Whatever happens, servers,
clients and links that it started are ended.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bolide_lab import body, machine, proc
from bolide_lab.clients import client as make_client
from bolide_lab.clients.base import Address, Client, ClientError
from bolide_lab.model import Load, Outcome, Sample, Scenario, Variant
from bolide_lab.plan import Trial, load_seconds
from bolide_lab.records import Records
from bolide_lab.servers import SERVERS, Place, Server, ServerError
from bolide_lab.sites.base import Served, Site, SiteError, TellsCaches, site

SATURATED = 0.8
ADDRESSES = "DNS:localhost,DNS:lab.test,IP:127.0.0.1,IP:10.77.0.1"


@dataclass(frozen=True)
class ClientRun:
    """What a client printed, and the CPU it took."""

    text: str
    seconds: float
    cpu_s: float


class Unfit(Exception):
    """A contestant cannot take part in a scenario; the text is the reason that is recorded."""


class Runner:
    """Takes samples until there are none left or someone interrupts it."""

    def __init__(self, records: Records, seed: int, workers: int = 1) -> None:
        """`records` is open; nothing runs yet."""
        self.records, self.seed, self.workers = records, seed, workers
        self.server_core, _ = machine.cores()
        allowed = sorted(os.sched_getaffinity(0) - {self.server_core})
        self.client_cores = set(allowed)
        self.sites: dict[str, tuple[Site, Served]] = {}
        self.unfit: set[tuple[str, str, Variant]] = set()
        self.noted: set[tuple[str, ...]] = set()
        self.directory = Path(tempfile.mkdtemp(prefix="lab-"))
        self.directory.chmod(0o755)

    def __enter__(self) -> Runner:
        machine.raise_open_files()
        certificate(self.directory)
        return self

    def __exit__(self, *_: object) -> None:
        for one, _served in self.sites.values():
            with contextlib.suppress(Exception):
                one.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def take(self, trial: Trial) -> Sample | str | None:
        """The sample, or why the contestant is out, or None if that is known already."""
        contestant = (trial.scenario.id, trial.server, trial.config)
        if contestant in self.unfit:
            return None
        try:
            sample = self._measure(trial)
        except (Unfit, ServerError, ClientError, SiteError, OSError) as error:
            self.unfit.add(contestant)
            reason = str(error) or type(error).__name__
            self.records.append(
                "excluded",
                scenario=trial.scenario.id,
                server=trial.server,
                config=trial.config,
                reason=reason,
            )
            return reason
        self.records.sample(sample)
        return sample

    def _site(self, scenario: Scenario) -> tuple[Site, Served]:
        if scenario.site not in self.sites:
            one = site(scenario.site)
            home = self.directory / scenario.site
            home.mkdir()
            home.chmod(0o755)
            self.sites[scenario.site] = (one, one.start(home, min(self.client_cores)))
        return self.sites[scenario.site]

    def _measure(self, trial: Trial) -> Sample:
        scenario = trial.scenario
        one_site, served = self._site(scenario)
        client = make_client(scenario.load.client)
        if client.find() is None:
            raise Unfit(f"missing: {client.name}; run: {client.how_to_install()}")
        one_site.reset(scenario)
        with contextlib.ExitStack() as stack:
            link = None
            if scenario.link is not None:
                link = stack.enter_context(_open_link(scenario, self.seed))
            if isinstance(one_site, TellsCaches):
                into = tuple(link.in_server([])) if link is not None else ()
                served = one_site.serve_with(trial.server, trial.config, into)
            place = self._place(served, link)
            server = SERVERS[trial.server](place)
            reason = server.supports(scenario) or client.supports(scenario.load)
            if server.find() is None:
                reason = f"missing: {server.name}; run: {server.how_to_install()}"
            if reason:
                raise Unfit(reason)
            home = self.directory / "server"
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            home.chmod(0o755)
            files = server.write_config(scenario, home, trial.config)
            self._note_versions(trial, server, client, files.texts)
            stack.callback(server.stop)
            pids = server.start({self.server_core})
            address = Address(place.host, place.plain_port, place.tls_port, home)
            into = tuple(link.in_client([])) if link is not None else ()
            self._check_body(trial, served, address, into)
            end = one_site.during(scenario, server.name, place.host, place.plain_port)
            stack.callback(end)
            return self._sample(trial, served, client, address, into, pids)

    def _place(self, served: Served, link: Any) -> Place:
        plain = 8080 if link else machine.free_port(8080)
        tls = 8443 if link else machine.free_port(8443, frozenset({plain}))
        return Place(
            site=served.root,
            certificate=self.directory / "cert.pem",
            key=self.directory / "key.pem",
            both=self.directory / "both.pem",
            host=link.server_address if link else "127.0.0.1",
            plain_port=plain,
            tls_port=tls,
            workers=self.workers,
            prefix=tuple(link.in_server([])) if link else (),
            php=served.php,
            origin=served.origin,
            rules=served.rules,
        )

    def _note_versions(
        self, trial: Trial, server: Server, client: Client, texts: dict[str, str]
    ) -> None:
        for one in (server, client):
            if ("version", one.name) not in self.noted:
                self.noted.add(("version", one.name))
                self.records.append("version", server=one.name, version=one.version())
        key = ("config", trial.scenario.id, trial.server, trial.config)
        if key not in self.noted:
            self.noted.add(key)
            plain = {k: t.replace(str(self.directory), "@DIR@") for k, t in texts.items()}
            self.records.append(
                "config",
                scenario=trial.scenario.id,
                server=trial.server,
                config=trial.config,
                files=plain,
            )

    def _check_body(
        self, trial: Trial, served: Served, address: Address, into: tuple[str, ...]
    ) -> None:
        scenario = trial.scenario
        expected = served.root / scenario.expects_body if scenario.expects_body else None
        if expected is not None:
            # The quick form may ask for a smaller file.
            expected = expected.with_name(scenario.load.url.rpartition("/")[2] or expected.name)
        answer = body.fetch(scenario.load, address, into)
        problem = body.problem(answer, expected)
        key = ("body", trial.scenario.id, trial.server, trial.config)
        if key not in self.noted or problem:
            self.noted.add(key)
            self.records.append(
                "body-check",
                scenario=scenario.id,
                server=trial.server,
                config=trial.config,
                ok=problem is None,
                reason=problem or "",
                **answer.words(),
            )
        if problem:
            raise Unfit(f"body check: {problem}")

    def _sample(
        self,
        trial: Trial,
        served: Served,
        client: Client,
        address: Address,
        into: tuple[str, ...],
        pids: list[int],
    ) -> Sample:
        scenario = trial.scenario
        load = _with_urls(scenario.load, served)
        if scenario.link is not None or scenario.metric.startswith("latency"):
            load = replace(load, extra={**load.extra, "log": True})
        if scenario.warmup is not None:
            self._client(client, _with_urls(scenario.warmup, served), scenario, address, into)
        proc.reset_peak(pids)
        resident, dropped = proc.rss_mib(pids), machine.udp_buffer_errors()
        before, helped, stolen = proc.cpu(pids), proc.cpu(served.helpers), proc.steal_s()
        started = time.time_ns() // 1_000_000
        series = proc.Series(pids, 0.2 if load_seconds(load, scenario) < 10 else 1.0)
        try:
            ran = self._client(client, load, scenario, address, into)
        finally:
            rows = series.stop()
        spent = proc.cpu(pids).since(before)
        outcome = client.read_files(client.parse(ran.text), address.directory)
        if outcome.requests == 0:
            raise Unfit(f"no request succeeded, {outcome.failed} failed")
        extra: dict[str, Any] = dict(outcome.extra)
        extra["client_seconds"] = round(ran.seconds, 4)
        extra["steal_s"] = round(proc.steal_s() - stolen, 3)
        extra["udp_buffer_errors"] = machine.udp_buffer_errors() - dropped
        if served.helpers:
            extra["helpers_cpu_s"] = proc.cpu(served.helpers).since(helped).exact_s
        if load.client == "idle":
            top = max([row[2] for row in rows], default=resident)
            extra["kib_per_connection"] = (top - resident) * 1024 / outcome.requests
        return self._made(trial, outcome, spent, ran, started, pids, rows, extra)

    def _made(
        self,
        trial: Trial,
        outcome: Outcome,
        spent: proc.Cpu,
        ran: ClientRun,
        started: int,
        pids: list[int],
        rows: tuple[tuple[float, float, float], ...],
        extra: dict[str, Any],
    ) -> Sample:
        user, system = spent.split()
        busy = ran.cpu_s / ran.seconds / min(trial.scenario.load.threads, len(self.client_cores))
        total = outcome.bytes_total
        return Sample(
            scenario=trial.scenario.id,
            server=trial.server,
            config=trial.config,
            repetition=trial.repetition,
            started_unix_ms=started,
            seconds=outcome.seconds,
            requests=outcome.requests,
            failed=outcome.failed,
            requests_per_s=outcome.requests_per_s,
            server_cpu_user_s=user,
            server_cpu_system_s=system,
            server_cpu_us_per_request=spent.exact_s / outcome.requests * 1e6,
            peak_rss_mib=proc.rss_mib(pids, "VmHWM"),
            client_cpu_utilisation=busy,
            saturated=busy > SATURATED,
            latency_us=outcome.latency_us,
            bytes_per_answer=total / outcome.requests if total is not None else None,
            series=rows,
            extra=extra,
        )

    def _client(
        self,
        client: Client,
        load: Load,
        scenario: Scenario,
        address: Address,
        into: tuple[str, ...],
    ) -> ClientRun:
        cores = ",".join(map(str, sorted(self.client_cores)))
        argv = ["taskset", "-c", cores, *into, *client.argv(load, address)]
        limit = 60 + 6 * load_seconds(load, scenario)
        return run_client(argv, limit, address.directory)


def run_client(argv: list[str], limit_s: float, directory: Path) -> ClientRun:
    """Runs a client to its end and takes its CPU. Raises `ClientError` after `limit_s`."""
    path = directory / "client.out"
    # Clients of the laboratory's own are modules of it; others leave files in their home.
    module = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "HOME": str(directory), "PYTHONPATH": module}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    with path.open("wb") as said:
        one = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
        try:
            one.wait(limit_s)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise ClientError(f"the client did not end within {limit_s:.0f} s") from error
            raise
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return ClientRun(path.read_text(errors="replace"), max(seconds, 1e-6), cpu)


def certificate(directory: Path) -> None:
    """A key on P-256 and a certificate for the addresses of the laboratory."""
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    argv += ["ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=localhost"]
    argv += ["-addext", f"subjectAltName={ADDRESSES}"]
    argv += ["-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")]
    try:
        subprocess.run(argv, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise OSError("missing: openssl; run: apt-get install openssl") from error
    both = (directory / "cert.pem").read_text() + (directory / "key.pem").read_text()
    (directory / "both.pem").write_text(both)
    for name in ("key.pem", "both.pem"):
        (directory / name).chmod(0o644)


def contestants(
    scenarios: list[Scenario], wanted: list[str] | None, originals: bool
) -> tuple[list[tuple[Scenario, str, Variant]], dict[str, str]]:
    """Who takes part where; and the servers that are not installed, with what would help."""
    out: list[tuple[Scenario, str, Variant]] = []
    missing: dict[str, str] = {}
    installed = {name: kind() for name, kind in SERVERS.items()}
    for scenario in scenarios:
        for name in scenario.servers:
            if wanted is not None and name not in wanted:
                continue
            server = installed[name]
            if server.find() is None:
                missing[name] = server.how_to_install()
                continue
            if not server.speaks(scenario.load.protocol):
                continue
            out.append((scenario, name, "best"))
            if originals and server.has_original(scenario):
                out.append((scenario, name, "original"))
    return out, missing


def _with_urls(load: Load, served: Served) -> Load:
    if load.urls_file is None:
        return load
    if load.urls_file not in served.urls:
        raise SiteError(f"the site has no list of addresses {load.urls_file}")
    return replace(load, urls_file=str(served.urls[load.urls_file]))


def _open_link(scenario: Scenario, seed: int) -> Any:
    from importlib import import_module

    base = import_module("bolide_lab.links.base")
    try:
        return base.open_link(scenario.link, seed)
    except base.LinkUnavailable as error:
        raise Unfit(str(error)) from error
