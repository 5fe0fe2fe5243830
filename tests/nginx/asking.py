"""Owns: how the two servers are asked the cases of a site, and what of it is compared."""

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from .allowed import reason_for
from .answers import LAST, NEXT, answers, exchange
from .judge import Judge
from .program import Program, new_errors, start_all, stop_all
from .site import Case, Single, Site, Tls

# Seconds between two that are sent side by side.
STEP = 0.05
# How long a line of an error log may take to be there; where the logs may differ, as many lines as
# the other has may never come.
LATE = 3
LATE_IF_EXCUSED = 0.5
TIME = re.compile(r"\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]")
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


def user_line() -> str:
    """Whose rights the workers have: started by root, nginx would serve as another user."""
    return "user root;" if os.getuid() == 0 else ""


def request_of(case: Single) -> tuple[str, bytes, list[str]]:
    """(key, bytes, methods) of a case: text is a request line and fields, bytes are sent as is."""
    label, case = case if isinstance(case, tuple) else (None, case)
    if isinstance(case, bytes):
        first = case.split(b" ")[0].decode("latin-1")
        return label or repr(case)[2:-1], case, [first]
    line, *fields = case.split(" | ")
    words = line.split(" ")
    if len(words) == 2:
        line, words = line + " HTTP/1.1", words + ["HTTP/1.1"]
    names = [field.partition(":")[0].lower() for field in fields]
    if words[2:3] == ["HTTP/1.1"] and "host" not in names and "-host" not in names:
        fields.insert(0, "Host: localhost")
    fields = [field for field in fields if field.lower() != "-host"]
    text = "\r\n".join([line, *fields]) + "\r\n\r\n"
    return label or case, text.encode("utf-8"), [words[0]]


def expanded(tls: Tls, program: Program) -> Tls:
    """The same with the directories of a program."""
    if isinstance(tls, tuple):
        return (tls[0], tls[1] and program.expand(tls[1]))
    return tls


def ask_one(site: Site, program: Program, case: Single) -> list[str]:
    """What a program answers to one case."""
    if site.ask:
        return site.ask(program.base + site.port, str(case))
    _, request, methods = request_of(case)
    sent = program.expand(request.decode("latin-1")).encode("latin-1")
    sent += b"" if site.alone else LAST if site.open else NEXT
    tls = expanded(site.tls, program)
    if isinstance(tls, tuple):
        sent = sent.replace(b"%s", tls[0].encode())
    begun = time.monotonic()
    got, end = exchange(program.base + site.port, sent, tls, site.open)
    took = time.monotonic() - begun
    lines = answers(program, got, methods, site.lengths) + ([end] if end else [])
    if site.open and not site.reasons:
        lines = [re.sub(r"^(HTTP/1\.1 \d{3}) .*", r"\1", line) for line in lines]
    if site.timed:
        lines.append(f"took {'less' if took < site.timed else 'more'} than {site.timed} s")
    return lines


def ask_together(site: Site, program: Program, cases: Sequence[Single]) -> list[str]:
    """The answers to cases that are sent side by side, each a little after the one before."""
    if len(cases) == 1:
        return ask_one(site, program, cases[0])
    with ThreadPoolExecutor(len(cases)) as pool:
        waiting = []
        for case in cases:
            waiting.append(pool.submit(ask_one, site, program, case))
            time.sleep(STEP)
        return [line for one in waiting for line in one.result()]


def parts_of(case: Any) -> tuple[str, Sequence[Single]]:
    """What a case is called, and the cases that are sent side by side, mostly one."""
    if isinstance(case, tuple) and isinstance(case[1], list):
        return case
    return request_of(case)[0], [case]


def compare_cases(site: Site, programs: Sequence[Program], judge: Judge) -> None:
    """Sends all cases of a site as one client, each to both servers at a time."""
    who = ""
    if isinstance(site.tls, tuple):
        who = f"{site.tls[0]} as {Path(site.tls[1] or 'nobody').name}: "
    with ThreadPoolExecutor(len(programs)) as pool:
        for case in site.cases:
            if isinstance(case, int | float):
                time.sleep(case)
            else:
                compare_case(site, programs, judge, pool, case, who)


def compare_case(
    site: Site,
    programs: Sequence[Program],
    judge: Judge,
    pool: ThreadPoolExecutor,
    case: Case,
    who: str,
) -> None:
    """Sends one case to both servers at a time; the lines of their logs belong to it."""
    label, together = parts_of(case)
    key = f"{site.name}: {who}{label}"
    seen = list(pool.map(lambda program: ask_together(site, program, together), programs))
    if site.errors:
        patience = LATE_IF_EXCUSED if reason_for(key) else LATE
        for lines, told in zip(seen, new_errors(programs, site.errors, patience), strict=True):
            lines += told
    judge.compare(key, *seen)


def access_log(program: Program) -> list[str]:
    """The lines of the access log."""
    path = program.logs / "access.log"
    text = path.read_text(errors="replace") if path.exists() else ""
    return [program.normalise(line) for line in TIME.sub("[TIME]", text).splitlines()]


def compare_site(site: Site, programs: Sequence[Program], judge: Judge) -> None:
    """Starts both servers with a site, and compares all that is asked of it."""
    text = PRELUDE % user_line() + site.conf + "\n}\n"
    judge.configs += 1
    try:
        said = start_all(programs, [text] * len(programs))
        if any(said):
            judge.compare(f"{site.name}: start", *([words] for words in said))
            return
        if site.errors == "connections":
            # Whether it listens was asked by a client that left.
            new_errors(programs, site.errors, LATE, 1)
        for tls in site.identities or [site.tls]:
            compare_cases(replace(site, tls=tls), programs, judge)
    finally:
        stop_all(programs)
    if site.log:
        judge.compare(f"{site.name}: access log", *map(access_log, programs))
