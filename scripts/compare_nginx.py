#!/usr/bin/env python3
"""Owns: the comparison of Bolide with the real nginx, byte for byte.

Starts both on each configuration of compare/sites.py and sends both the same raw bytes; runs both
with -t on each mistake of compare/mistakes.py and on those that compare/generated.py makes; asks
both what explore/ makes of a few seeds. Prints every difference that compare/allowed.py does not excuse, and every excuse that no difference needs;
either makes the exit status 1.

    compare_nginx.py --bolide PATH --nginx PATH [--ports A B [C D]] [--only WORD] [--thorough]
        [--coverage] [--verbose]

With ports for two pairs, sites and the rest are compared side by side.
"""
import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare.allowed import headings, must_excuse, reason_for  # noqa: E402
from compare.answers import LAST, NEXT, answers, blame, exchange, is_same  # noqa: E402
from compare import cache_mistakes, client_certs, fastcgi, fastcgi_mistakes, log_mistakes, zones  # noqa: E402, F401
from compare.commands import compare_commands  # noqa: E402
from compare.files import fill  # noqa: E402
from compare.generated import compare_generated  # noqa: E402
from compare.mistakes import MISTAKES, STARTS  # noqa: E402
from compare.php import Php  # noqa: E402
from compare import filters, found, identity, limiting, logs, post_action, proxying, published, rewriting  # noqa: E402, F401
from compare.origin import Origin  # noqa: E402
from compare import bodies, connections, coverage, framing_sites, handshakes, harmless, headers, inheriting  # noqa: E402, F401
from compare import overriding, secured, ssi, tls_mistakes, variables  # noqa: E402, F401
from compare.program import STAMP, Program  # noqa: E402
from compare.sites import SITES  # noqa: E402
from explore.run import explore_some  # noqa: E402

ROOT = Path(__file__).parent.parent
# Seconds between two that are sent side by side.
STEP = 0.05
# On a busy machine one of the two may be late for the other; what differs, differs each time.
TRIES = 3
# Seconds that a program has for one command.
PATIENCE = 60


def request_of(case):
    """(key, bytes, methods) of a case: text is a request line and fields, bytes are sent as is."""
    label = None
    if isinstance(case, tuple):
        label, case = case
    if isinstance(case, bytes):
        first = case.split(b" ")[0].decode("latin-1")
        return label or repr(case)[2:-1], case, [first]
    line, *fields = case.split(" | ")
    words = line.split(" ")
    if len(words) == 2:
        line, words = line + " HTTP/1.1", words + ["HTTP/1.1"]
    names = [field.partition(":")[0].lower() for field in fields]
    if words[2] == "HTTP/1.1" and "host" not in names and "-host" not in names:
        fields.insert(0, "Host: localhost")
    fields = [field for field in fields if field.lower() != "-host"]
    text = "\r\n".join([line, *fields]) + "\r\n\r\n"
    return label or case, text.encode("utf-8"), [words[0]]


class Judge:
    """Counts cases and tells excused differences from others."""

    def __init__(self, verbose):
        self.cases, self.configs, self.failures, self.excused, self.used = 0, 0, 0, 0, set()
        self.verbose, self.told = verbose, []

    def compare(self, key, wanted, found):
        self.cases += 1
        if self.verbose:
            print(f"== {key}\n   " + "\n   ".join(wanted))
        if len(wanted) == len(found) and all(map(is_same, wanted, found)):
            return
        if excuse := reason_for(key):
            self.excused += 1
            self.used.add(excuse)
            return
        self.failures += 1
        self.told.append(f"DIFFERS {key}")
        self.told += [f"    {line}" for line in blame(wanted, found)]

    def add(self, other):
        """What another found, who compared something else meanwhile."""
        self.cases, self.configs = self.cases + other.cases, self.configs + other.configs
        self.failures, self.excused = self.failures + other.failures, self.excused + other.excused
        self.used |= other.used
        self.told += other.told

    def finish(self, only):
        print("\n".join(self.told))
        gaps = [] if only else list(coverage.gaps(all_sites()))
        for gap in gaps:
            print(gap)
        stale = [] if only else sorted(must_excuse() - self.used)
        for heading, pattern in stale:
            print(f"EXCUSES NOTHING {pattern} ({heading})")
        doc = (ROOT / "docs/differences-from-nginx.md").read_text()
        missing = sorted(heading for heading in headings() if f"\n## {heading}\n" not in doc)
        for heading in missing:
            print(f"NOT IN docs/differences-from-nginx.md: ## {heading}")
        print(f"{self.configs} configurations, {self.cases} cases, {self.failures} unexpected "
              f"differences, {self.excused} excused")
        return 1 if self.failures or gaps or stale or missing else 0


PRELUDE = """
daemon off; worker_processes 1; pid @LOGS@/pid; error_log @LOGS@/error.log info; %s
events { worker_connections 256; }
http {
    default_type application/octet-stream;
    types { text/html html htm; text/css css; text/plain txt; application/javascript js;
        image/jpeg jpg; image/svg+xml svg; application/json json; }
    log_format all '$request|$status|$request_uri|$uri|$args|$host|$http_host|'
        '$server_name|$server_protocol|$request_method|$document_root|$request_filename|'
        '$http_user_agent|$connection_requests|$request_completion|$request_length';
    access_log @LOGS@/access.log all;
"""


def user_line():
    # Started by root, nginx would serve as nobody; a comparison needs no second user.
    return "user root;" if os.getuid() == 0 else ""


def lines_of(program, name):
    path = program.logs / name
    text = path.read_text(errors="replace") if path.exists() else ""
    text = re.sub(r"\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]", "[TIME]", text)
    lines = [program.normalise(line) for line in text.splitlines()]
    # Variables of a head that could not be read are nobody's business.
    return [line for line in lines if "|400|" not in line]


def ask_one(site, program, case):
    """What a program answers to one case."""
    if ask := site.get("ask"):
        return ask(program.base + site["port"], case)
    _, request, methods = request_of(case)
    port = program.base + site.get("port", 0)
    bytes_ = program.expand(request.decode("latin-1")).encode("latin-1")
    stay = site.get("open", False)
    bytes_ += b"" if site.get("alone") else LAST if stay else NEXT
    tls = site.get("tls")
    if isinstance(tls, tuple):
        tls = (tls[0], tls[1] and program.expand(tls[1]))
        bytes_ = bytes_.replace(b"%s", tls[0].encode())
    begun = time.monotonic()
    got, end = exchange(port, bytes_, tls, stay)
    took = time.monotonic() - begun
    lines = answers(program, got, [*methods], site.get("lengths")) + ([end] if end else [])
    if stay and not site.get("reasons"):
        lines = [re.sub(r"^(HTTP/1\.1 \d{3}) .*", r"\1", line) for line in lines]
    if limit := site.get("timed"):
        lines.append(f"took {'less' if took < limit else 'more'} than {limit} s")
    return lines


def ask_together(site, program, cases):
    """The answers to cases that are sent side by side, each a little after the one before."""
    if len(cases) == 1:
        return ask_one(site, program, cases[0])
    with ThreadPoolExecutor(len(cases)) as pool:
        waiting = []
        for case in cases:
            waiting.append(pool.submit(ask_one, site, program, case))
            time.sleep(STEP)
        return [line for one in waiting for line in one.result()]


def compare_cases(site, programs, judge):
    """Sends all cases of a site as one client."""
    tls = site.get("tls")
    who = f"{tls[0]} as {Path(tls[1] or 'nobody').name}: " if isinstance(tls, tuple) else ""
    for case in site["cases"]:
        if isinstance(case, (int, float)):
            time.sleep(case)
            continue
        label, together = case if isinstance(case, tuple) and isinstance(case[1], list) else (None, [case])
        key = label or request_of(case)[0]
        seen = []
        for program in programs:
            seen.append(ask_together(site, program, together))
            if site.get("errors"):
                count = sum(line.startswith("log ") for line in seen[0])
                seen[-1] += program.new_errors(count, site["errors"])
        judge.compare(f"{site['name']}: {who}{key}", *seen)


def steadily(compare, programs, judge):
    """Compares anew while something differs, at most TRIES times; the last counts."""
    for _ in range(TRIES):
        trial = Judge(judge.verbose)
        compare(trial)
        if not trial.failures:
            break
        for program in programs:
            program.forget()
    judge.add(trial)


def compare_site(site, programs, judge):
    text = PRELUDE % user_line() + site["conf"] + "\n}\n"
    judge.configs += 1
    try:
        said = [program.start(text) for program in programs]
        if any(said):
            judge.compare(f"{site['name']}: start", *([words] for words in said))
            return
        for tls in site.get("identities", [site.get("tls")]):
            compare_cases(dict(site, tls=tls), programs, judge)
    finally:
        for program in programs:
            program.stop()
    if site.get("log"):
        judge.compare(f"{site['name']}: access log", *(lines_of(p, "access.log") for p in programs))


def all_sites():
    own = SITES + fastcgi.SITES + client_certs.SITES + published.SITES + proxying.SITES
    return own + secured.SITES + overriding.SITES


def compare_sites(programs, judge, options):
    for site in all_sites():
        if options.only in site["name"]:
            steadily(partial(compare_site, site, programs), programs, judge)


def complaint(program, text, *options):
    conf = program.home / "mistake.conf"
    conf.write_text(program.expand(text))
    log = program.logs / "start.log"
    log.unlink(missing_ok=True)
    done = subprocess.run(program.command(conf, *options), capture_output=True, text=True,
                          timeout=PATIENCE, cwd=program.home)
    logged = log.read_text() if log.exists() else ""
    said = STAMP.sub(r"DATE [\1] PID: ", done.stderr)
    lines = [f"exit {done.returncode}"]
    lines += ["stdout " + line for line in program.normalise(done.stdout).splitlines()]
    lines += ["stderr " + line for line in first_only(program.normalise(said))]
    lines += ["log " + line for line in first_only(program.normalise(STAMP.sub(r"[\1] ", logged)))]
    return lines


def first_only(text):
    """nginx ends at the first mistake; what Bolide says of others and of remedies is left out."""
    lines, ended = [], False
    for line in text.splitlines():
        if line.startswith("  help:") or ended and "[emerg]" in line:
            continue
        # nginx tries five times to bind, and then says so.
        ended |= "[emerg]" in line
        lines.append(line)
    return lines


def compare_mistakes(programs, judge, options):
    only = options.only
    for rows, options in ((MISTAKES, ["-t"]), (STARTS, [])):
        for name, text in rows:
            key = f"{'start' if rows is STARTS else 'test'}: {name}"
            if only and only not in key.split(":")[0]:
                continue
            taken = socket.socket()
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            seen = []
            for program in programs:
                with socket.create_server(("127.0.0.1", program.base + 9)):
                    seen.append(complaint(program, text, *options))
            taken.close()
            judge.compare(key, *seen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bolide", default=str(ROOT / "target/debug/bolide"))
    parser.add_argument("--nginx", default=shutil.which("nginx-sid"))
    parser.add_argument("--ports", nargs="+", type=int, default=[17000, 17010, 17020, 17030],
                        help="multiples of 10, two for each share that goes on beside the others")
    parser.add_argument("--only", default="", help="only sites and mistakes whose name has this")
    parser.add_argument("--thorough", action="store_true", help="every value for every directive")
    parser.add_argument("--coverage", action="store_true", help="only name directives that nothing here or in tests/ tries, and compare nothing")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.coverage:
        missing = list(coverage.gaps(all_sites()))
        print("\n".join(missing))
        return 1 if missing else 0
    if not options.nginx or not Path(options.nginx).exists():
        sys.exit("missing tool: nginx-sid (run scripts/setup.sh test)")
    shares = [[compare_sites], [explored, compare_mistakes, commands, generated]]
    pairs = list(zip(options.ports[::2], options.ports[1::2]))
    if len(pairs) < len(shares):
        shares = [sum(shares, [])]
    with ProcessPoolExecutor(len(shares)) as pool:
        judges = list(pool.map(compare_share, shares, pairs, [options] * len(shares)))
    for judge in judges[1:]:
        judges[0].add(judge)
    return judges[0].finish(options.only)


def explored(programs, judge, options):
    if not options.only or options.only in "explored":
        steadily(partial(explore_some, programs, user_line()), programs, judge)


def commands(programs, judge, options):
    steadily(lambda trial: compare_commands(programs, trial, options.only), programs, judge)


def generated(programs, judge, options):
    compare_generated(programs, judge, options.only, options.thorough)


def compare_share(steps, ports, options):
    """Takes some of the steps with two programs of its own; what was found."""
    home = Path(tempfile.mkdtemp(prefix="bolide-compare-"))
    home.chmod(0o755)
    php = origin = None
    try:
        fill(home)
        client_certs.fill(home)
        published.fill(home)
        debian = Path(options.nginx).parent.parent / "sid/etc/nginx"
        php = Php(home, ports[0] + 7, debian if debian.is_dir() else Path("/etc/nginx"))
        php.start()
        origin = Origin(ports[0] + 8)
        programs = [Program("nginx", options.nginx, ports[0], home, php),
                    Program("bolide", options.bolide, ports[1], home, php)]
        judge = Judge(options.verbose)
        for step in steps:
            step(programs, judge, options)
        return judge
    finally:
        if origin:
            origin.stop()
        if php:
            php.stop()
        shutil.rmtree(home, ignore_errors=True)
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
