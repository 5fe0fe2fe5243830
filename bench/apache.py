#!/usr/bin/env python3
"""CPU time per request of Bolide and of the real Apache before the same trees with `.htaccess` files, in one run.

bench/apache.py [BOLIDE] [--seconds N] [--rounds N]; Apache is /usr/sbin/apache2 with `AllowOverride All`, the load is
wrk's. Both servers have the same processor, the load has another one; they take turns, and the medians count.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "apache"))
from common import free_port, wait_for  # noqa: E402
from servers import apache, bolide  # noqa: E402

RULES = """RewriteEngine On
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteRule ^index\\.html$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule . /index.html [L]
"""
HIDING = 'Options -Indexes\n<Files "*.bak">\n    Require all denied\n</Files>\n'
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
# What is asked for, by what it shows.
PATHS = {"a file below five directories": "/1/2/3/4/1k.css", "a front controller": "/2026/some/page"}


def ticks(group):
    """Processor time of all processes of a group."""
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def load(port, path, seconds):
    """Requests that were answered."""
    told = subprocess.run(["taskset", "-c", "0", "wrk", "-t1", "-c16", f"-d{seconds}s", "-H", f"User-Agent: {AGENT}", "-H", "Host: site.test",
                           f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in told:
        sys.exit(told)
    return int(re.search(r"(\d+) requests in", told).group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bolide", nargs="?", default=str(HERE.parent / "target/release/bolide"))
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    home = pathlib.Path(tempfile.mkdtemp(prefix="bolide-apache."))
    home.chmod(0o755)
    www = home / "www"
    (www / "1/2/3/4").mkdir(parents=True)
    (www / "1/2/3/4/1k.css").write_text("x" * 1024)
    (www / "index.html").write_text("x" * 1024)
    for place in ("1", "1/2", "1/2/3", "1/2/3/4"):
        (www / place / ".htaccess").write_text(HIDING)
    (www / ".htaccess").write_text(HIDING + RULES)
    # Each in a group of its own, so that its processes can be told apart.
    own_group = subprocess.Popen
    tuned = ["-c", "MaxKeepAliveRequests 0", "-c", "ThreadsPerChild 16", "-c", "MaxRequestWorkers 16"]
    subprocess.Popen = lambda words, **more: own_group(["taskset", "-c", "1", *words, *(tuned if "-DFOREGROUND" in words else ())],
                                                       start_new_session=True, **more)
    ports = {"apache": free_port(), "bolide": free_port()}
    running = {"apache": apache(home, www, ports["apache"]), "bolide": bolide(options.bolide, home, www, ports["bolide"])}
    subprocess.Popen = own_group
    try:
        for name, process in running.items():
            wait_for(ports[name], process)
        for what, path in PATHS.items():
            costs = {name: [] for name in running}
            for _ in range(options.rounds):
                for name, process in running.items():
                    load(ports[name], path, 1)
                    before = ticks(process.pid)
                    count = load(ports[name], path, options.seconds)
                    costs[name].append((ticks(process.pid) - before) * 1e6 / count)
            cost = {name: statistics.median(all_of) for name, all_of in costs.items()}
            print(f"{what}: {cost['bolide']:.1f} us of CPU by Bolide, {cost['apache']:.1f} by Apache: {cost['apache'] / cost['bolide']:.1f} times")
    finally:
        for process in running.values():
            process.terminate()
            process.wait()
        shutil.rmtree(home)


main()
