#!/usr/bin/env python3
"""Measures Bolide beside other servers: server CPU per request first.

One server at a time on core 0 with one worker, its client on core 1, access log
off. For each scenario the servers take turns, several times; medians are shown.

CPU is the time that the server's threads were on a core, by the scheduler's own
nanosecond clock (/proc/PID/task/*/schedstat), divided by the requests answered.
Requests per second depend on the client too, where the client is the busier one.
RSS is the peak (VmHWM) of all the server's processes.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import re
import resource
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = pathlib.Path(os.environ.get("BOLIDE_TOOLS", pathlib.Path.home() / ".cache/bolide-tools"))
PLAIN, TLS = "http://127.0.0.1:8080", "https://127.0.0.1:8443"
GZIP = ["-H", "Accept-Encoding: gzip"]
IDLE_CONNECTIONS = 10_000


# ---- what is measured -----------------------------------------------------


def wrk(url, seconds=3):
    return ["wrk", "-t1", "-c100", f"-d{seconds}", *GZIP, url]


def h2load(alpn, path, n, clients=100, streams=10):
    args = ["h2load-h3", f"--alpn-list={alpn}", f"-n{n}", f"-c{clients}", f"-m{streams}", "-N20"]
    return [*args, *GZIP, TLS + path]


def h2load_plain(path, n):
    return ["h2load-h3", "--h1", f"-n{n}", "-c8", "-m1", PLAIN + path]


# name: (what it is, protocol, measured command, warm-up command, [(factor, reference)])
# A reference is another server in the same scenario, or server:scenario; without one the
# factor is a number of microseconds.
SCENARIOS = {
    "h1": (
        "HTTP/1.1 plain, 1 KB, -c100",
        "h1",
        lambda q: wrk(PLAIN + "/1k.jpg", 1 if q else 3),
        wrk(PLAIN + "/1k.jpg", 1),
        [(1.25, "floor")],
    ),
    "h1-tls": (
        "HTTP/1.1 over TLS, 1 KB html gz, -c100",
        "h1",
        lambda q: wrk(TLS + "/1k.html", 1 if q else 3),
        wrk(TLS + "/1k.html", 1),
        [(0.65, "nginx")],
    ),
    "h2-html": (
        "HTTP/2, 1 KB html gz, -c100 -m10",
        "h2",
        lambda q: h2load("h2", "/1k.html", 50_000 if q else 200_000),
        h2load("h2", "/1k.html", 10_000),
        [(0.25, "nginx"), (0.7, "h2o")],
    ),
    "h2-jpg": (
        "HTTP/2, 1 KB jpg, -c100 -m10",
        "h2",
        lambda q: h2load("h2", "/1k.jpg", 50_000 if q else 200_000),
        h2load("h2", "/1k.jpg", 10_000),
        [(0.25, "nginx"), (0.7, "h2o")],
    ),
    "h2-gzip": (
        "HTTP/2, 1 KB html compressed by the server, -c100 -m10",
        "h2",
        lambda q: h2load("h2", "/dyn/1k.html", 20_000 if q else 100_000),
        h2load("h2", "/dyn/1k.html", 5_000),
        [(1.0, "bolide:h2-jpg")],
    ),
    "h3-html": (
        "HTTP/3, 1 KB html gz, -c100 -m10",
        "h3",
        lambda q: h2load("h3", "/1k.html", 30_000 if q else 100_000),
        h2load("h3", "/1k.html", 5_000),
        [(0.55, "nginx")],
    ),
    "h3-jpg": (
        "HTTP/3, 1 KB jpg, -c100 -m10",
        "h3",
        lambda q: h2load("h3", "/1k.jpg", 30_000 if q else 100_000),
        h2load("h3", "/1k.jpg", 5_000),
        [(0.55, "nginx")],
    ),
    "h3-m1": (
        "HTTP/3, 1 KB html gz, -c100 -m1",
        "h3",
        lambda q: h2load("h3", "/1k.html", 10_000 if q else 50_000, streams=1),
        h2load("h3", "/1k.html", 5_000),
        [(0.65, "nginx")],
    ),
    "h3-new": (
        "HTTP/3, a new connection for each request",
        "h3",
        lambda q: h2load("h3", "/1k.html", 500 if q else 2_000, 500 if q else 2_000, 1),
        h2load("h3", "/1k.html", 200, 200, 1),
        [(0.6, "nginx")],
    ),
    "large-h1": (
        "100 MB over HTTP/1.1 with TLS",
        "h1",
        lambda q: h2load("http/1.1", "/100m", 2 if q else 4, 1, 1),
        h2load("http/1.1", "/100m", 1, 1, 1),
        [(1.0, "nginx")],
    ),
    "large-h2": (
        "100 MB over HTTP/2",
        "h2",
        lambda q: h2load("h2", "/100m", 2 if q else 4, 1, 1),
        h2load("h2", "/100m", 1, 1, 1),
        [(1.0, "nginx")],
    ),
    "large-h3": (
        "100 MB over HTTP/3",
        "h3",
        lambda q: h2load("h3", "/100m", 2 if q else 4, 1, 1),
        h2load("h3", "/100m", 1, 1, 1),
        [(1.0, "nginx")],
    ),
    "php": (
        "a small PHP page by php-fpm, -c8",
        "php",
        lambda q: h2load_plain("/hello.php", 5_000 if q else 20_000),
        h2load_plain("/hello.php", 2_000),
        [(1.0, "nginx")],
    ),
    "page-h1": (
        "30 KB PHP page from the cache, gz, HTTP/1.1 plain, -c100",
        "page",
        lambda q: wrk(PLAIN + "/page.php", 1 if q else 3),
        wrk(PLAIN + "/page.php", 1),
        [(13, None)],
    ),
    "page-h1-tls": (
        "the same, HTTP/1.1 over TLS, -c100",
        "page",
        lambda q: wrk(TLS + "/page.php", 1 if q else 3),
        wrk(TLS + "/page.php", 1),
        [(18, None)],
    ),
    "page-h2": (
        "the same, HTTP/2, -c100 -m10",
        "page",
        lambda q: h2load("h2", "/page.php", 20_000 if q else 100_000),
        h2load("h2", "/page.php", 2_000),
        [(9, None), (0.025, "nginx"), (0.1, "vinyl")],
    ),
    "page-h3": (
        "the same, HTTP/3, -c100 -m10",
        "page3",
        lambda q: h2load("h3", "/page.php", 20_000 if q else 50_000),
        h2load("h3", "/page.php", 2_000),
        [(18, None)],
    ),
    "idle": ("idle TLS connections, each", "h1", None, None, []),
    "long": (
        "HTTP/3, 1,000,000 requests over 100 connections",
        "h3",
        lambda q: h2load("h3", "/1k.html", 1_000_000),
        h2load("h3", "/1k.html", 1_000),
        [],
    ),
}


# ---- the servers ----------------------------------------------------------


def find(*names):
    for name in names:
        own = TOOLS / "bin" / name
        path = str(own) if own.exists() else shutil.which(name)
        if path:
            return path
    return None


class Contestant:
    """A server that can be started and stopped."""

    def __init__(self, name, binary, protocols, command, version):
        self.name, self.binary, self.protocols = name, binary, protocols
        self.command, self.version_args = command, version
        self.process = None

    def version(self):
        done = subprocess.run(
            [self.binary, *self.version_args], capture_output=True, text=True, check=False
        )
        lines = (done.stdout + done.stderr).strip().splitlines()
        return lines[0] if lines else "?"

    def start(self, directory, tls=True):
        shutil.rmtree(directory / "run/cache", ignore_errors=True)
        log = open(directory / "run" / f"{self.name}.out", "ab")
        env = {**os.environ, "GOMAXPROCS": "1", "XDG_DATA_HOME": str(directory / "run")}
        command = [self.binary, *self.command(directory)]
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", *command], stdout=log, stderr=log, env=env, cwd=directory
        )
        for port in (8080, 8443) if tls else (8080,):
            self.wait_for(port, directory)

    def wait_for(self, port, directory):
        for _ in range(500):
            if self.process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        said = (directory / "run" / f"{self.name}.out").read_text()[-1000:]
        self.stop()
        sys.exit(f"bench: {self.name} does not listen on port {port}:\n{said}")

    def stop(self):
        if self.process is None:
            return
        everyone = tree(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in everyone[1:]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process = None
        # The next server needs the ports.
        time.sleep(0.1)

    def cpu_seconds(self):
        total = 0
        for pid in tree(self.process.pid):
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
                try:
                    total += int((task / "schedstat").read_text().split()[0])
                except OSError:
                    pass
        return total / 1e9

    def memory_kib(self, field):
        total = 0
        for pid in tree(self.process.pid):
            try:
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            match = re.search(rf"{field}:\s+(\d+)", status)
            total += int(match[1]) if match else 0
        return total


def tree(pid):
    out = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            out += tree(int(child))
    return out


def contestants(bolide):
    def nginx_like(directory):
        return ["-p", str(directory), "-c", str(directory / "nginx.conf")]

    def caddy(directory):
        return ["run", "--adapter", "caddyfile", "--config", str(directory / "Caddyfile")]

    def vinyl(directory):
        return [str(directory / "vinyl.sh"), find("vinyld-sid", "vinyld"), find("hitch-sid", "hitch")]

    def haproxy(directory):
        return ["-f", str(directory / "haproxy.conf")]

    nginx = find("nginx-sid", "nginx")
    known = [
        Contestant("bolide", bolide, "h1 h2 h3 php page page3", nginx_like, ["-v"]),
        Contestant("nginx", nginx, "h1 h2 h3 php page page3", nginx_like, ["-v"]),
        # What PHP compressed is kept compressed: how an expert would set it up.
        Contestant("nginx-z", nginx, "page page3", nginx_like, ["-v"]),
        Contestant("h2o", find("h2o"), "h1 h2", lambda d: ["-c", str(d / "h2o.conf")], ["-v"]),
        Contestant("caddy", find("caddy-sid", "caddy"), "h1 h2 h3", caddy, ["version"]),
        Contestant("vinyl", find("vinyld-sid") and "/bin/sh", "page", vinyl,
            ["-c", f"{find('vinyld-sid', 'vinyld')} -V"]),
        Contestant("haproxy", find("haproxy-sid", "haproxy"), "page page3", haproxy, ["-v"]),
    ]
    return {c.name: c for c in known if c.binary and os.access(c.binary, os.X_OK)}


# ---- the site -------------------------------------------------------------


def make_site(directory):
    site = directory / "site"
    for name in (site, directory / "run"):
        name.mkdir()
    rng = random.Random(7)
    words = "server page cache request file protocol stream header frame window worker time".split()
    text = "<!DOCTYPE html><html><head><title>1k</title></head><body>\n"
    while len(text) < 1010:
        text += "<p>" + " ".join(rng.choice(words) for _ in range(9)) + "</p>\n"
    html = (text[:1010] + "</body></html>").encode()
    (site / "1k.html").write_bytes(html)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    (site / "1k.html.gz").write_bytes(packer.compress(html) + packer.flush())
    (site / "1k.jpg").write_bytes(rng.randbytes(1024))
    (site / "hello.php").write_text('<?php echo "hello";\n')
    page = page_text(rng)
    (site / "page.html").write_text(page)
    for name, more in (("page.php", ""), ("page-z.php", "ini_set('zlib.output_compression', '1');")):
        first = f"<?php {more} header('Cache-Control: public, max-age=3600'); ?>\n"
        (site / name).write_text(first + page)
    with open(site / "100m", "wb") as out:
        for _ in range(100):
            out.write(rng.randbytes(1 << 20))
    for path in site.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (directory / "run/vinyl").mkdir()
    run = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    run += ["-nodes", "-days", "30", "-subj", "/CN=localhost"]
    run += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    run += ["-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")]
    subprocess.run(run, check=True, capture_output=True)
    both = (directory / "cert.pem").read_text() + (directory / "key.pem").read_text()
    (directory / "both.pem").write_text(both)
    for conf in (HERE / "conf").iterdir():
        (directory / conf.name).write_text(conf.read_text().replace("@DIR@", str(directory)))


def page_text(rng):
    """30 KB that gzip makes a fifth of, as it does of pages of real sites."""
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(900)]
    weights = [1 / (n + 3) for n in range(len(words))]
    text = "<!DOCTYPE html><html><head><title>Page</title></head><body>\n"
    while len(text) < 30_000:
        item = " ".join(rng.choices(words, weights, k=14))
        text += (
            f'<article class="post type-post status-publish"><h2 class="entry-title">'
            f'<a href="/archive/{rng.randint(100, 999)}/" rel="bookmark">{words[len(text) % 900]}'
            f'</a></h2><div class="entry-content"><p>{item}</p></div></article>\n'
        )
    return text + "</body></html>\n"


def build_floor(directory):
    binary = directory / "floor"
    subprocess.run(["cc", "-O2", "-o", str(binary), str(HERE / "floor.c")], check=True)
    return Contestant("floor", str(binary), "h1", lambda d: ["8080"], [])


def start_php(directory):
    """php-fpm for all contestants; on the client's core, for its time is not measured."""
    binary = find("php-fpm", "php-fpm8.4", "php-fpm8.3", "php-fpm8.2", "php-fpm8.1")
    if not binary:
        sys.exit("bench: missing tool: php-fpm (run scripts/setup.sh test peers)")
    conf = directory / "php-fpm.conf"
    user = "user=root\ngroup=root\n" if os.geteuid() == 0 else ""
    conf.write_text(
        f"[global]\nerror_log={directory}/run/php.log\ndaemonize=no\n"
        f"[www]\n{user}listen={directory}/php.sock\nlisten.mode=0666\n"
        "pm=static\npm.max_children=4\n"
    )
    process = subprocess.Popen(["taskset", "-c", "1", binary, "-R", "-F", "-y", str(conf)])
    for _ in range(500):
        if (directory / "php.sock").exists():
            return process
        time.sleep(0.02)
    sys.exit(f"bench: {binary} does not start; see {directory}/run/php.log")


def start_origin(directory):
    """For caches that speak no FastCGI; on the client's core as well."""
    binary = find("nginx-sid", "nginx")
    if not binary:
        sys.exit("bench: missing tool: nginx (run scripts/setup.sh test peers)")
    conf = directory / "origin.conf"
    command = [binary, "-p", str(directory), "-e", "stderr", "-c", str(conf)]
    return subprocess.Popen(["taskset", "-c", "1", *command])


# ---- one measurement ------------------------------------------------------


def client(command):
    path = find(command[0])
    if not path:
        sys.exit(f"bench: missing tool: {command[0]} (run scripts/setup.sh test peers)")
    done = subprocess.run(
        ["taskset", "-c", "1", path, *command[1:]],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.stdout + done.stderr


def read_report(text):
    """Requests done, requests that went wrong, seconds; of h2load or wrk."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
    done = re.search(r"requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded", text)
    if done:
        seconds = re.search(r"finished in ([\d.]+)(us|ms|s|m)", text)
        ok = int(re.search(r"status codes: (\d+) 2xx", text)[1])
        return int(done[2]), int(done[1]) - ok, float(seconds[1]) * units[seconds[2]]
    done = re.search(r"(\d+) requests in ([\d.]+)(us|ms|s|m)", text)
    if not done:
        sys.exit(f"bench: the client said nothing useful:\n{text[-800:]}")
    bad = sum(int(n) for n in re.findall(r"Non-2xx or 3xx responses: (\d+)", text))
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    bad += sum(map(int, errors.groups())) if errors else 0
    return int(done[1]), bad, float(done[2]) * units[done[3]]


def measure(server, directory, scenario, quick):
    _, protocol, command, warm_up, _ = SCENARIOS[scenario]
    page = "/page-z.php" if server.name in ("nginx-z", "vinyl", "haproxy") else "/page.php"

    def asked(words):
        return [word.replace("/page.php", page) for word in words]

    server.start(directory, tls=server.name != "floor")
    try:
        if scenario == "idle":
            return idle(server, 1_000 if quick else IDLE_CONNECTIONS)
        client(asked(warm_up))
        if protocol.startswith("page"):
            check_page(directory, page)
        before = server.cpu_seconds()
        text = client(asked(command(quick)))
        spent = server.cpu_seconds() - before
        done, bad, seconds = read_report(text)
        return {
            "us_per_request": spent / max(done, 1) * 1e6,
            "requests_per_second": done / seconds,
            "utilisation": spent / seconds,
            "peak_mib": server.memory_kib("VmHWM") / 1024,
            "resident_mib": server.memory_kib("VmRSS") / 1024,
            "requests": done,
            "bad": bad,
        }
    finally:
        server.stop()


def check_page(directory, page):
    """What is measured must be the whole page, compressed."""
    path = find("curl")
    args = [path, "-sS", "--http1.1", *GZIP, "-D-", "-o", str(directory / "run/got.gz"), PLAIN + page]
    head = subprocess.run(args, capture_output=True, text=True, check=True).stdout.lower()
    body = (directory / "run/got.gz").read_bytes()
    if "content-encoding: gzip" not in head:
        sys.exit(f"bench: {page} is not compressed:\n{head}")
    if zlib.decompress(body, 31).strip() != (directory / "site/page.html").read_bytes().strip():
        sys.exit(f"bench: {page} is not what PHP said")


def idle(server, count):
    """Opens TLS connections that then do nothing, and sees what each costs."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # The first connections pay for what is made once.
    warm = [connect(context) for _ in range(10)]
    memory, cpu = server.memory_kib("VmRSS"), server.cpu_seconds()
    start = time.monotonic()
    held = [connect(context) for _ in range(count)]
    seconds = time.monotonic() - start
    time.sleep(1)
    grown = server.memory_kib("VmRSS") - memory
    spent = server.cpu_seconds() - cpu
    for connection in (*warm, *held):
        connection.close()
    return {
        "us_per_request": spent / count * 1e6,
        "requests_per_second": count / seconds,
        "utilisation": spent / seconds,
        "peak_mib": server.memory_kib("VmHWM") / 1024,
        "resident_mib": (memory + grown) / 1024,
        "kib_per_connection": grown / count,
        "requests": count,
        "bad": 0,
    }


def connect(context):
    return context.wrap_socket(socket.create_connection(("127.0.0.1", 8443)))


# ---- the run and its table --------------------------------------------------


def run(args, servers, directory):
    results = {}
    for scenario in args.scenarios:
        protocol = SCENARIOS[scenario][1]
        reps = 1 if scenario in ("long", "idle") and not args.reps_given else args.reps
        for rep in range(reps):
            for server in servers.values():
                floor = server.name == "floor"
                if protocol not in server.protocols.split() or (floor and scenario != "h1"):
                    continue
                one = measure(server, directory, scenario, args.quick)
                results.setdefault(scenario, {}).setdefault(server.name, []).append(one)
                say(scenario, server.name, rep, one)
    return results


def say(scenario, name, rep, one):
    print(
        f"{scenario:9} {name:7} run {rep + 1}: {one['us_per_request']:9.2f} us/req "
        f"{one['requests_per_second']:9.0f} req/s  busy {one['utilisation']:.2f}  "
        f"peak {one['peak_mib']:.1f} MiB" + (f"  BAD {one['bad']}" if one["bad"] else ""),
        file=sys.stderr,
        flush=True,
    )


def median(runs, key):
    return statistics.median(one[key] for one in runs)


def cell(scenario, runs):
    if not runs:
        return "–"
    cost = median(runs, "us_per_request")
    if scenario == "idle":
        return f"{median(runs, 'kib_per_connection'):.1f} KiB"
    if scenario.startswith("large"):
        text = f"{cost / 1000:.0f} ms"
    else:
        text = f"{cost:.1f}"
    if scenario == "long":
        text += f", RSS {median(runs, 'resident_mib'):.1f} MiB"
    bad = sum(one["bad"] for one in runs)
    return text + (f" ({bad} failed)" if bad else "")


def goals(scenario, results):
    out = []
    ours = results.get(scenario, {}).get("bolide")
    for factor, reference in SCENARIOS[scenario][4]:
        if reference is None:
            if ours:
                mark = "ok" if median(ours, "us_per_request") <= factor else "MISSED"
                out.append(f"≤ {factor} µs {mark}")
            continue
        name, _, other = reference.partition(":")
        theirs = results.get(other or scenario, {}).get(name)
        if ours and theirs:
            ratio = median(ours, "us_per_request") / median(theirs, "us_per_request")
            label = f"{name} {other}".strip()
            mark = "ok" if ratio <= factor else "MISSED"
            out.append(f"{ratio:.3f} × {label} (≤ {factor}) {mark}")
    return "; ".join(out)


def table(results, names):
    rows = [["server CPU µs per request", *names, "goal"]]
    for scenario, servers in results.items():
        cells = [cell(scenario, servers.get(name)) for name in names]
        rows.append([SCENARIOS[scenario][0], *cells, goals(scenario, results)])
    rows.append([])
    rows.append(["requests per second", *names, ""])
    for scenario, servers in results.items():
        if scenario in ("idle", "long") or scenario.startswith("large"):
            continue
        cells = [
            f"{median(servers[n], 'requests_per_second'):,.0f}" if n in servers else "–"
            for n in names
        ]
        rows.append([SCENARIOS[scenario][0], *cells, ""])
    rows.append([])
    rows.append(["peak RSS, MiB", *names, ""])
    for scenario, servers in results.items():
        cells = [f"{median(servers[n], 'peak_mib'):.1f}" if n in servers else "–" for n in names]
        rows.append([SCENARIOS[scenario][0], *cells, ""])
    return rows


def show(rows, markdown):
    widths = [max(len(row[i]) for row in rows if row) for i in range(len(rows[0]))]
    head = True
    for row in rows:
        if not row:
            print()
            head = True
            continue
        padded = [text.ljust(width) for text, width in zip(row, widths)]
        print(f"| {' | '.join(padded)} |" if markdown else "  ".join(padded).rstrip())
        if head:
            rule = ["-" * width for width in widths]
            print(f"|-{'-|-'.join(rule)}-|" if markdown else "  ".join(rule))
            head = False


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    name = model[1] if model else platform.machine()
    return f"{os.cpu_count()} × {name}, Linux {platform.release()}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="LIST", help=", ".join(SCENARIOS))
    parser.add_argument("--servers", metavar="LIST", help="bolide, nginx, h2o, caddy, floor")
    parser.add_argument("--bolide", default=HERE.parent / "target/release/bolide", metavar="FILE")
    parser.add_argument("--reps", type=int, help="runs of each (5)")
    parser.add_argument("--quick", action="store_true", help="short runs, two of each")
    parser.add_argument("--long", action="store_true", help="also 1,000,000 HTTP/3 requests")
    parser.add_argument("--json", metavar="FILE", help="write every run there")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    args = parser.parse_args()
    args.reps_given = args.reps is not None
    args.reps = args.reps or (2 if args.quick else 5)
    args.scenarios = [s for s in SCENARIOS if s != "long" or args.long]
    if args.only:
        args.scenarios = args.only.split(",")
        unknown = [s for s in args.scenarios if s not in SCENARIOS]
        if unknown:
            parser.error(f"no such scenario: {unknown[0]}; there are {', '.join(SCENARIOS)}")
    return args


def choose(args, directory):
    servers = contestants(str(args.bolide))
    servers["floor"] = build_floor(directory)
    if not args.servers:
        return servers
    wanted = args.servers.split(",")
    for name in wanted:
        if name not in servers:
            sys.exit(f"bench: {name} is not here; there are {', '.join(servers)}")
    return {name: servers[name] for name in servers if name in wanted}


def main():
    args = arguments()
    if os.cpu_count() < 2:
        sys.exit("bench: needs two cores, one for the server and one for the client")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="bolide-bench-") as name:
        directory = pathlib.Path(name)
        os.chmod(directory, 0o755)
        make_site(directory)
        servers = choose(args, directory)
        if not servers:
            sys.exit("bench: no server to measure")
        helpers = []
        if any(SCENARIOS[name][1] in ("php", "page", "page3") for name in args.scenarios):
            helpers = [start_php(directory), start_origin(directory)]
        try:
            results = run(args, servers, directory)
        finally:
            for helper in helpers:
                helper.terminate()
                helper.wait()
    versions = {n: s.version() for n, s in servers.items() if n != "floor"}
    print(f"{machine()}; {time.strftime('%Y-%m-%d')}; medians of {args.reps}")
    for server, version in versions.items():
        print(f"  {server}: {version}")
    print()
    show(table(results, list(servers)), args.markdown)
    if args.json:
        record = {"machine": machine(), "versions": versions, "results": results}
        pathlib.Path(args.json).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
