#!/usr/bin/env python3
"""What a cluster costs and gives: purges, fetches, a new node and hits, beside two Varnish nodes.

bench/fleet.py [BOLIDE] [--rounds N] [--purges N] [--only PART ...] [--json FILE]

Parts: `purge` (from a purge to the last node that serves the new page), `fetches` (what the
application is asked for, per page), `warm` (a new node until it has all pages), `hits` (what one
costs with and without a cluster) and `varnish` (the same by two nodes and a script that sends each
purge to both). Each figure is the median of its rounds, which take turns where two are compared.
Everything runs on this machine, so nodes disturb one another more than they would elsewhere.

scripts/setup.sh peers and test install what is needed: Valkey, Vinyl Cache (Varnish), valgrind.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(os.environ.get("BOLIDE_TOOLS", Path.home() / ".cache/bolide-tools")) / "bin"
NODES = 8
PAGES = 40
PAGE_BYTES = 30_000
# What an application takes for a page, in seconds.
WORK = 0.02
PARTS = ("purge", "fetches", "warm", "hits", "varnish")


def tool(*names: str) -> str:
    """The first of these programs that is there."""
    for name in names:
        own = TOOLS / name
        found = str(own) if own.is_file() else shutil.which(name)
        if found:
            return found
    sys.exit(f"missing tool: {names[0]} (run scripts/setup.sh peers test)")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(what: str, ready: Callable[[], bool]) -> None:
    """Asks each 10 ms, for half a minute."""
    end = time.monotonic() + 30
    while not ready():
        if time.monotonic() > end:
            sys.exit(f"waited in vain for {what}")
        time.sleep(0.01)


def listens(port: int) -> bool:
    """Whether something listens there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Application:
    """Pages that say which version they are, and how often each was asked for."""

    def __init__(self) -> None:
        self.version = 0
        self.work = 0.0
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()
        application = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body leave together, and at once.
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_GET(self) -> None:
                with application.lock:
                    application.asked[self.path] += 1
                version = application.version
                time.sleep(application.work)
                body = f"{version}\n".encode().ljust(PAGE_BYTES, b"x")
                self.send_response(200)
                for name, value in (
                    ("Content-Type", "text/html"),
                    ("X-LiteSpeed-Cache-Control", "public,max-age=3600"),
                    ("X-LiteSpeed-Tag", "menu"),
                    ("X-Tags", "menu"),
                    ("Content-Length", str(len(body))),
                ):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def fetches(self) -> int:
        """Requests since the last call."""
        with self.lock:
            count = sum(self.asked.values())
            self.asked.clear()
        return count


class Client:
    """A connection that is kept, to one node."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None

    def ask(self, path: str, method: str = "GET", fields: str = "") -> tuple[int, bytes]:
        """Status and body."""
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 30)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: shop.test\r\n{fields}\r\n".encode())
        text = b""
        while b"\r\n\r\n" not in text:
            text += self._more()
        head, _, body = text.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(found.group(1)) if found else 0
        while len(body) < length:
            body += self._more()
        if re.search(rb"(?i)\r\nconnection: *close", head):
            self.close()
        return int(head.split(b" ", 2)[1]), body

    def _more(self) -> bytes:
        assert self.socket is not None
        data = self.socket.recv(1 << 16)
        if not data:
            sys.exit(f"the node at port {self.port} ended the connection")
        return data

    def version(self, path: str) -> int:
        """Which version of a page the node serves."""
        status, body = self.ask(path)
        if status != 200:
            sys.exit(f"{status} for {path} at port {self.port}: {body[:200]!r}")
        return int(body.split(b"\n", 1)[0])

    def close(self) -> None:
        """Ends the connection."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None


class Place:
    """A directory, and the programs that run in it."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.path = Path(tempfile.mkdtemp(prefix="bolide-fleet."))
        self.path.chmod(0o755)
        self.running: list[subprocess.Popen[bytes]] = []
        self.application = Application()
        self.made = 0

    def start(self, words: list[str], port: int) -> subprocess.Popen[bytes]:
        """Starts a program and waits until it listens."""
        log = (self.path / "log").open("ab")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running.append(process)
        wait_until(words[0], lambda: process.poll() is not None or listens(port))
        if process.poll() is not None:
            sys.exit(f"{words[0]} ended: {(self.path / 'log').read_text()[-2000:]}")
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a program."""
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.running.remove(process)

    def close(self) -> None:
        """Ends all."""
        for process in reversed(list(self.running)):
            self.stop(process)
        shutil.rmtree(self.path, ignore_errors=True)

    def valkey(self) -> int:
        """Starts a Valkey that forgets at its end; its port."""
        port = free_port()
        words = [tool("valkey-server"), "--port", str(port), "--bind", "127.0.0.1"]
        self.start([*words, "--save", "", "--dir", str(self.path)], port)
        return port

    def conf(self, name: str, port: int, cluster: str) -> Path:
        """Writes the configuration of a node."""
        home = self.path / name
        (home / "logs").mkdir(parents=True)
        text = f"""worker_processes 1; daemon off;
error_log {home}/logs/error.log; pid {home}/pid;
events {{ worker_connections 512; }}
http {{ access_log off; {cluster}
    server {{ listen 127.0.0.1:{port}; server_name shop.test; root /srv/shop; location / {{
        proxy_pass http://127.0.0.1:{self.application.port}; proxy_http_version 1.1;
        page_cache auto; page_cache_key $request_uri; }} }} }}
"""
        file = home / "nginx.conf"
        file.write_text(text)
        return file

    def node(self, valkey: int | None, more: str = "") -> tuple[subprocess.Popen[bytes], int]:
        """Starts a node, which is connected when this returns; its process and port."""
        self.made += 1
        name, port = f"node-{self.made}", free_port()
        cluster = f"cluster valkey://127.0.0.1:{valkey} {{ node {name}; {more} }}"
        file = self.conf(name, port, cluster if valkey else "")
        process = self.start([self.program, "-p", str(file.parent), "-c", str(file)], port)
        if valkey:
            wait_until("the node to be connected", lambda: self.is_joined(file.parent))
        return process, port

    def is_joined(self, home: Path) -> bool:
        """Whether a node has heard of all purges, and may ask for pages."""
        words = [self.program, "-p", str(home), "-c", str(home / "nginx.conf")]
        told = subprocess.run(
            [*words, "cluster", "status", "--json"], capture_output=True, text=True, check=False
        ).stdout
        return '"caught_up":true' in told

    def varnish(self) -> tuple[subprocess.Popen[bytes], int]:
        """Starts a Varnish node that purges by tag as its users write it."""
        self.made += 1
        name, port = f"varnish-{self.made}", free_port()
        vcl = self.path / f"{name}.vcl"
        vcl.write_text(f"""vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{self.application.port}"; }}
sub vcl_recv {{
    if (req.method == "PURGE") {{
        ban("obj.http.X-Tags ~ " + req.http.Cache-Tag);
        return (synth(200));
    }}
    unset req.http.cookie;
}}
sub vcl_backend_response {{ set beresp.ttl = 1h; }}
""")
        words = [tool("vinyld-sid", "vinyld", "varnishd"), "-F", "-a", f"127.0.0.1:{port}"]
        words += ["-f", str(vcl), "-s", "malloc,64m", "-n", str(self.path / name)]
        words += ["-p", "thread_pools=1", "-p", "thread_pool_min=20"]
        return self.start(words, port), port


@contextlib.contextmanager
def fleet(place: Place, count: int, more: str = "") -> Iterator[list[int]]:
    """The ports of so many nodes with a Valkey of their own, which end with this."""
    before = list(place.running)
    valkey = place.valkey()
    try:
        yield [place.node(valkey, more)[1] for _ in range(count)]
    finally:
        for process in [one for one in reversed(place.running) if one not in before]:
            place.stop(process)


@contextlib.contextmanager
def varnishes(place: Place, count: int) -> Iterator[list[int]]:
    """The ports of so many Varnish nodes, which end with this."""
    before = list(place.running)
    try:
        yield [place.varnish()[1] for _ in range(count)]
    finally:
        for process in [one for one in reversed(place.running) if one not in before]:
            place.stop(process)


def purge_times(place: Place, ports: list[int], purges: int, fans_out: bool) -> list[float]:
    """Milliseconds from each purge until the last node has served the new page."""
    clients = [Client(port) for port in ports]
    times = []
    for turn in range(purges):
        for client in clients:
            client.version("/purged")
        place.application.version += 1
        start = time.perf_counter()
        # A script tells one node after the other; in a cluster one is told.
        for client in clients if fans_out else [clients[turn % len(clients)]]:
            status, _ = client.ask("/", "PURGE", "Cache-Tag: menu\r\n")
            if status != 200:
                sys.exit(f"PURGE: {status}")
        late = list(clients)
        while late:
            late = [one for one in late if one.version("/purged") != place.application.version]
            if time.perf_counter() - start > 10:
                sys.exit(f"{len(late)} nodes never heard of a purge")
        times.append((time.perf_counter() - start) * 1000)
        time.sleep(0.005)
    for client in clients:
        client.close()
    return times


def percentile(values: list[float], share: float) -> float:
    """The value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def purge_row(rounds: list[list[float]]) -> dict[str, float]:
    """The medians of what the rounds say."""
    return {
        "p50_ms": round(statistics.median(percentile(times, 0.5) for times in rounds), 2),
        "p99_ms": round(statistics.median(percentile(times, 0.99) for times in rounds), 2),
        "worst_ms": round(max(max(times) for times in rounds), 2),
    }


def fetches_per_page(place: Place, ports: list[int]) -> float:
    """What the application is asked for while each page is asked for at each node in turn."""
    place.application.version += 1
    clients = [Client(port) for port in ports]
    place.application.fetches()
    for page in range(PAGES):
        for turn in range(len(clients)):
            clients[(page + turn) % len(clients)].version(f"/page-{page}")
    return place.application.fetches() / PAGES


def warm_time(place: Place, port: int) -> tuple[float, float]:
    """Milliseconds until a new node has served all pages, one after the other; fetches per page."""
    client = Client(port)
    place.application.fetches()
    start = time.perf_counter()
    for page in range(PAGES):
        client.version(f"/page-{page}")
    return (time.perf_counter() - start) * 1000, place.application.fetches() / PAGES


def worker_nanos(process: subprocess.Popen[bytes]) -> int:
    """Processor time of a node's worker, in nanoseconds."""
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        if (task / "comm").read_text().startswith("worker"):
            return int((task / "schedstat").read_text().split()[0])
    sys.exit("the node has no worker")


def cost_of_hit(process: subprocess.Popen[bytes], port: int, seconds: float) -> float:
    """Microseconds of the worker's processor time for one hit."""
    wrk = [tool("wrk"), "-t1", "-c8", f"-d{seconds}s", f"http://127.0.0.1:{port}/page-0"]
    before = worker_nanos(process)
    told = subprocess.run(wrk, capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+) requests in", told)
    if found is None or "Non-2xx" in told:
        sys.exit(told)
    return (worker_nanos(process) - before) / 1000 / int(found.group(1))


def instructions(place: Place, valkey: int | None, hits: int) -> dict[str, int]:
    """Instructions of each thread while a node starts, answers so many hits and ends."""
    place.made += 1
    name, port = f"node-{place.made}", free_port()
    cluster = f"cluster valkey://127.0.0.1:{valkey} {{ node {name}; objects public; }}"
    file = place.conf(name, port, cluster if valkey else "")
    words = ["valgrind", "--tool=callgrind", "--separate-threads=yes"]
    words.append(f"--callgrind-out-file={file.parent / 'callgrind'}")
    process = place.start([*words, place.program, "-p", str(file.parent), "-c", str(file)], port)
    if valkey:
        wait_until("the node to be connected", lambda: place.is_joined(file.parent))
    client = Client(port)
    for _ in range(hits):
        client.version("/page-0")
    client.close()
    place.stop(process)
    totals = {}
    for told in file.parent.glob("callgrind-*"):
        found = re.search(r"^(?:summary|totals): (\d+)", told.read_text(), re.MULTILINE)
        totals[told.name] = int(found.group(1)) if found else 0
    return totals


def instructions_of_hit(place: Place, valkey: int | None) -> int:
    """Instructions of the worker for one hit, without those of starting and ending."""
    # What a node drops when it joins is swept a bit with each of the first turns.
    few, many = 2000, 6000
    found = []
    for _ in range(2):
        less, more = (instructions(place, valkey, hits) for hits in (few, many))
        # No other thread does so much more for more hits.
        found.append(max(more[name] - less.get(name, 0) for name in more) / (many - few))
    return round(min(found))


def measure_purges(place: Place, purges: int, rounds: int) -> dict[str, object]:
    """From a purge to the last of the nodes."""
    with fleet(place, NODES) as ports:
        all_times = [purge_times(place, ports, purges, False) for _ in range(rounds)]
    return {f"{NODES} nodes": purge_row(all_times)}


def measure_fetches(place: Place) -> dict[str, object]:
    """Fetches per page, with and without sharing."""
    rows: dict[str, object] = {}
    for count in (2, 4, NODES):
        for name, more in (("shared", "objects public; objects_timeout 20ms;"), ("alone", "")):
            with fleet(place, count, more) as ports:
                rows[f"{count} nodes, {name}"] = fetches_per_page(place, ports)
    return rows


def measure_warming(place: Place, rounds: int) -> dict[str, object]:
    """A new node beside one that has all pages."""
    rows: dict[str, object] = {}
    for name, more in (("shared", "objects public; objects_timeout 20ms;"), ("alone", "")):
        valkey = place.valkey()
        first, port = place.node(valkey, more)
        fetches_per_page(place, [port])
        place.application.work = WORK
        found = []
        for _ in range(rounds):
            process, new = place.node(valkey, more)
            found.append(warm_time(place, new))
            place.stop(process)
        place.application.work = 0.0
        place.stop(first)
        rows[name] = {
            "ms": round(statistics.median(ms for ms, _ in found), 1),
            "fetches_per_page": statistics.median(fetches for _, fetches in found),
        }
    return rows


def measure_hits(place: Place, rounds: int) -> dict[str, object]:
    """What a hit costs with and without a cluster."""
    valkey = place.valkey()
    nodes = {"cluster": place.node(valkey, "objects public;"), "alone": place.node(None)}
    costs: dict[str, list[float]] = {name: [] for name in nodes}
    for process, port in nodes.values():
        Client(port).version("/page-0")
        cost_of_hit(process, port, 1)
    for _ in range(rounds):
        for name, (process, port) in nodes.items():
            costs[name].append(cost_of_hit(process, port, 1))
    for process, _ in nodes.values():
        place.stop(process)
    rows: dict[str, object] = {}
    for name, of in (("cluster", valkey), ("alone", None)):
        rows[name] = {
            "cpu_us": round(statistics.median(costs[name]), 2),
            "instructions": instructions_of_hit(place, of),
        }
    return rows


def measure_varnish(place: Place, purges: int, rounds: int) -> dict[str, object]:
    """Two Varnish nodes with a script, and two of a cluster."""
    rows: dict[str, object] = {}
    with varnishes(place, 2) as ports:
        all_times = [purge_times(place, ports, purges, True) for _ in range(rounds)]
        rows["varnish, 2 nodes"] = {
            **purge_row(all_times),
            "fetches_per_page": fetches_per_page(place, ports),
        }
    with varnishes(place, 1) as ports:
        place.application.work = WORK
        rows["varnish, a new node"] = {"ms": round(warm_time(place, ports[0])[0], 1)}
        place.application.work = 0.0
    with fleet(place, 2, "objects public; objects_timeout 20ms;") as ports:
        all_times = [purge_times(place, ports, purges, False) for _ in range(rounds)]
        rows["bolide, 2 nodes"] = {
            **purge_row(all_times),
            "fetches_per_page": fetches_per_page(place, ports),
        }
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("bolide", nargs="?", default=str(ROOT / "target/release/bolide"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--purges", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    program = str(Path(options.bolide).resolve())
    if not Path(program).is_file():
        sys.exit(f"{program} is missing: cargo build --release --locked --bin bolide")
    place = Place(program)
    work: dict[str, Callable[[], dict[str, object]]] = {
        "purge": lambda: measure_purges(place, options.purges, options.rounds),
        "fetches": lambda: measure_fetches(place),
        "warm": lambda: measure_warming(place, options.rounds),
        "hits": lambda: measure_hits(place, options.rounds),
        "varnish": lambda: measure_varnish(place, options.purges, options.rounds),
    }
    told: dict[str, dict[str, object]] = {}
    try:
        for part in options.only:
            told[part] = work[part]()
            for row, figures in told[part].items():
                print(f"{part:8} {row:24} {json.dumps(figures)}", flush=True)
    finally:
        place.close()
    if options.json:
        options.json.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
