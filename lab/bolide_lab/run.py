"""Owns a run: makes the place, takes each sample, writes it down, cleans up.

One server at a time on a core of its own, its client on the others. Whatever happens, servers,
clients and links that it started are ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bolide_lab import body, machine, proc
from bolide_lab.clients import client as make_client
from bolide_lab.clients.base import Address, Client, ClientError
from bolide_lab.measure import Bench, Failed, Unfit, samples
from bolide_lab.model import Load, Protocol, Sample, Scenario, Variant
from bolide_lab.plan import Trial, arms
from bolide_lab.records import Records
from bolide_lab.servers import SERVERS, Place, Server, ServerError
from bolide_lab.sites.base import Served, Site, SiteError, TellsCaches, site

ADDRESSES = "DNS:localhost,DNS:lab.test,IP:127.0.0.1,IP:10.77.0.1"


class Runner:
    """Takes samples until there are none left or someone interrupts it."""

    def __init__(self, records: Records, seed: int, workers: int = 1) -> None:
        """`records` is open; nothing runs yet."""
        self.records, self.seed, self.workers = records, seed, workers
        self.server_core, _ = machine.cores()
        allowed = sorted(os.sched_getaffinity(0) - {self.server_core})
        self.client_cores = set(allowed)
        self.sites: dict[str, tuple[Site, Served]] = {}
        self.broken: dict[str, str] = {}
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

    def take(self, trial: Trial) -> list[Sample] | str | None:
        """The samples, or why the contestant is out, or None if that is known already."""
        contestant = (trial.scenario.id, trial.server, trial.config)
        if contestant in self.unfit:
            return None
        try:
            samples = self._measured(trial)
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
        for sample in samples:
            self.records.sample(sample)
        return samples

    def _measured(self, trial: Trial) -> list[Sample]:
        """A second try is given to what may have been chance; what failed is in the records."""
        try:
            return self._measure(trial)
        except (Failed, ServerError, ClientError) as error:
            name = f"{trial.scenario.id} {trial.server} {trial.config} {trial.repetition}"
            self.records.append("note", text=f"Tried again: {name}: {error}")
            return self._measure(trial)

    def _site(self, scenario: Scenario) -> tuple[Site, Served]:
        name = scenario.site
        if name in self.broken:
            raise SiteError(self.broken[name])
        if name not in self.sites:
            one = site(name)
            home = self.directory / name
            home.mkdir(exist_ok=True)
            home.chmod(0o755)
            try:
                self.sites[name] = (one, one.start(home, min(self.client_cores)))
            except SiteError as error:
                self.broken[name] = str(error)
                raise
        return self.sites[name]

    def _measure(self, trial: Trial) -> list[Sample]:
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
                proc.own_cores(link.pids(), self.client_cores)
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
            home = self._server_home()
            files = server.write_config(scenario, home, trial.config)
            self._note_versions(trial, server, client, files.texts)
            stack.callback(server.stop)
            pids = server.start({self.server_core})
            bench = Bench(
                client=client,
                served=served,
                address=Address(place.host, place.plain_port, place.tls_port, home),
                into=tuple(link.in_client([])) if link is not None else (),
                pids=tuple(pids),
                cores=frozenset(self.client_cores),
                link=link,
            )
            beside = tuple(link.in_server([])) if link is not None else ()
            self._check_body(trial, served, bench.address, beside, client.headers)
            end = one_site.during(scenario, server.name, place.host, place.plain_port)
            stack.callback(end)
            return samples(bench, trial, self.seed)

    def _server_home(self) -> Path:
        home = self.directory / "server"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        home.chmod(0o755)
        return home

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
            # Results name no path of this machine.
            places = {str(self.directory): "@DIR@", str(machine.TOOLS): "@TOOLS@"}
            plain = dict(texts)
            for place, name in places.items():
                plain = {k: t.replace(place, name) for k, t in plain.items()}
            self.records.append(
                "config",
                scenario=trial.scenario.id,
                server=trial.server,
                config=trial.config,
                files=plain,
            )

    def _check_body(
        self,
        trial: Trial,
        served: Served,
        address: Address,
        into: tuple[str, ...],
        headers: tuple[str, ...],
    ) -> None:
        scenario = trial.scenario
        key = ("body", trial.scenario.id, trial.server, trial.config)
        if key in self.noted:
            if scenario.site != "static":
                # Each repetition begins with one page in the cache, or whoever lets every client
                # ask the application until then would be measured by that.
                body.fetch(_as_client(scenario.load, headers), address, into)
            return
        expected = served.root / scenario.expects_body if scenario.expects_body else None
        if expected is not None:
            # The quick form may ask for a smaller file.
            expected = expected.with_name(scenario.load.url.rpartition("/")[2] or expected.name)
        for protocol in arms(scenario) or (scenario.load.protocol,):
            load = replace(scenario.load, protocol=cast(Protocol, protocol))
            answer = body.fetch(_as_client(load, headers), address, into)
            problem = body.problem(answer, expected)
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
                raise Failed(f"body check: {problem}")
        self.noted.add(key)


def _as_client(load: Load, headers: tuple[str, ...]) -> Load:
    """A load with the fields of the client: a cache may keep the form that is asked for first."""
    return replace(load, headers=(*load.headers, *headers))


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
    """Who takes part where; and the servers and clients that are missing, with what would help."""
    out: list[tuple[Scenario, str, Variant]] = []
    missing: dict[str, str] = {}
    installed = {name: kind() for name, kind in SERVERS.items()}
    for scenario in scenarios:
        client = make_client(scenario.load.client)
        if client.find() is None:
            missing[client.name] = client.how_to_install()
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


def _open_link(scenario: Scenario, seed: int) -> Any:
    from importlib import import_module

    base = import_module("bolide_lab.links.base")
    try:
        return base.open_link(scenario.link, seed)
    except base.LinkUnavailable as error:
        raise Unfit(str(error)) from error
