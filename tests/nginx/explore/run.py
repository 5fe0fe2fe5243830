"""Owns: running random cases on both servers, many configurations in one process."""

import math
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest

from ..answers import LAST, answers, exchange, is_same
from ..judge import Judge
from ..program import Program, start_all, stop_all
from ..text import numbers
from . import wide
from .grammar import Grammar
from .known import settle
from .requests import Request, random_request
from .tree import Conf, Node, address_of, reworded, text_of

PRELUDE = """
daemon off; worker_processes 1; pid @LOGS@/pid; error_log @LOGS@/error.log error; %s
events { worker_connections 512; }
http {
    access_log off;
    default_type application/octet-stream;
    gzip_min_length 60;
    types { text/html html htm; text/css css; text/plain txt; application/javascript js;
        image/jpeg jpg; image/svg+xml svg; application/json json; }
    variables_hash_max_size 4096; server_names_hash_bucket_size 128;
    server { listen 127.0.0.1:@P0@; return 200; }
"""
STAMP = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(\w+)\] \d+#\d+: (\*\d+ )?")
# What the comparison explores each time; tests/explore.py takes others. Those behind the first
# sixty have shown differences that were mended or explained since.
SEEDS = [
    *range(7000, 7060),
    *numbers("""
        40045 40065 40110 40181 40216 40245 40259 40362 40370 40377 40422 40441 40461 40496 40688
        40692 40694 42002 42010 42087 42118 42184 42206 42215 42291 42442 42456 42469 42599 42751
        42842 42912 43126 43245 43270 43320 43648 43789 44073 44111 44349 45414 45687 45854
        46123 46127 46769 47033 47056 43861 44001 44217 46200 46824 47117 47167 47189 47297 47308
        47618 47705 47451 47540 47899 48101 48253 48586 48658 48693 48896 49042
        49424
    """),
]
# The same for cases that are asked in other ways; the one left out asks a server for which another
# one judged the client (Client certificates between servers).
WIDE_SEEDS = [
    *(seed for seed in range(50000, 50048) if seed != 50029),
    *numbers("""
        50301 50321 50327 50336 50357 50406 50440 50517 50555 50567 50579 50583 50606 50637 50769
        50789 46685 50813 51020 51085 51142 51553 51596 51610 51737 51753 51876 52123 52251 52391
        52684 52881 52953 51278 51659 53490 53533 53655 54239 54300 54411 54450 54676 54772 54950
        55369 55431
    """),
]
REQUESTS = 25
# Lines about one thing; all that one server said of a case: answers by request, then its logs.
Lines = list[str]
Parts = list[Lines]
# The number of a part, and what was wanted and found there.
Difference = tuple[int, Lines, Lines]


def is_first(wanted: str, found: Sequence[str]) -> bool:
    """Whether what nginx says is what Bolide says of the first line that it complains of.

    Bolide tells of every mistake, nginx of the first; what names no line is found at the end.
    """

    def line_of(text: str) -> float:
        match = re.search(r":(\d+)$", text)
        return int(match[1]) if match else math.inf

    return wanted in found and line_of(wanted) <= min(map(line_of, found))


@dataclass
class Case:
    """A configuration and what is asked of it, in this order."""

    conf: Conf
    requests: list[Request]
    seed: int = 0
    # How it is asked, if not over HTTP/1.1 in the clear.
    way: str = ""


def case_of(seed: int, requests: int) -> Case:
    """The case that a seed makes."""
    rng = random.Random(seed)
    grammar = Grammar(rng)
    conf = Conf(settled(grammar.conf().nodes))
    words = text_of(conf.nodes)
    rng.random()
    # Texts of return have no validators.
    texts = "return" in words
    # Where nginx counts what frames a body, or what is left of it, bodies are not chunked.
    chunks = not any(name in words for name in ("$request_length", "content_length"))
    asked = [random_request(rng, grammar.paths, not texts, chunks) for _ in range(requests)]
    for one in asked:
        harmless(one)
        if texts and one.more:
            one.more.fields = [f for f in one.more.fields if not f.startswith("If-")]
    if has_parts(words):
        for one in asked:
            whole(one)
    if "request_body" in words:
        for one in asked:
            one.body = one.body.replace(b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1----")
    return Case(conf, asked, seed)


def wide_case_of(seed: int, requests: int) -> Case:
    """The same, asked in another way."""
    case, rng = case_of(seed, requests), random.Random(-seed)
    way = wide.way_of(seed)
    conf = Conf(wide.widened(way, case.conf.nodes, rng))
    asked = wide.asked(way, case.requests, rng)
    if way in wide.CURL and has_parts(text_of(conf.nodes)):
        for one in asked:
            one.body = b""
    return Case(conf, asked, seed, way)


def settled(nodes: Sequence[Node]) -> list[Node]:
    """A configuration without what is known to differ.

    What is the first to read a variable decides when it is read: what replaces a text (Bodies that
    are changed), and lines about subrequests (Variables), which have no body (Answers in other
    answers). Where the real root is found goes by the phase (Variables).
    """
    words = text_of(nodes)
    gone = []
    if re.search(r"\b(root|alias) [^;]*\$", words):
        gone.append("realpath_root")
    if "sub_filter " in words:
        gone.append("request_completion")
        gone += [r"m\d_@N@", "bbw@N@"]
    if "log_subrequest on" in words:
        gone += [r"m\d_@N@", "bbw@N@", r"sent_http_\w+", "content_length", "http_content_length"]
    # HTTP origins: where a body ends is said by nobody but the server.
    is_endless = "Content-Length ''" in words
    # Bodies that are changed: what would grow is not compressed, and has ranges.
    if "gzip on" in words:
        gone.append("sent_http_accept_ranges")
    logged = re.compile(rf"\$(\{{?)({'|'.join(gone)})(?!\w)")

    def change(text: str) -> str:
        # The ports are not the same, and behind one a digit would belong to it.
        text = re.sub(r"\$(\{?)(server|request)_port\b(?=\}?[$\d])", r"$\1scheme", text)
        if is_endless and text.startswith("proxy_set_body"):
            return "proxy_redirect off"
        # Variables: nginx does not escape in logs what is evaluated anew.
        if text.startswith("default"):
            text = text.replace("é", "e")
        # Of these only a sum is seen.
        if text.startswith(("proxy_set_body", "split_clients", "map", "default", "~")):
            return re.sub(r"\$(\{?)\w+_port\b", r"$\1scheme", text)
        # Variables: how much has left when a trailer is made is chance in nginx; Allow is ours.
        if text.startswith("add_trailer"):
            return TRAILING.sub(r"$\1scheme", text)
        return logged.sub(r"$\1scheme", text) if gone and text.startswith("log_format") else text

    return reworded(nodes, change)


TRAILING = re.compile(r"\$(\{?)(bbw@N@|(?:(?:body_)?bytes_sent|sent_http_allow)\b)")


def has_parts(words: str) -> bool:
    """Whether origins may be asked for parts of other answers, which is done without a body."""
    parts = ("add_before", "add_after", "ssi on")
    return "proxy_pass" in words and any(name in words for name in parts)


def harmless(request: Request) -> None:
    """Takes out of a request what is known to differ.

    Line ends in variables begin other lines of fields and of requests to origins in nginx, and here
    they are blanks or refused (HTTP origins).
    """
    for escape, other in (("%0d", "%0e"), ("%0a", "%0f")):
        request.target = request.target.replace(escape, other)
    # The extension of a name with two dots in front is no extension in nginx (Variables).
    request.target = re.sub(r"(/|%2[fF])(\.|%2e){2,}(?=[^/?#.%])", r"\1.", request.target)
    request.target = RAW.sub(uncharset, request.target)
    # If-None-Match decides.
    if any(field.startswith("If-None-Match") for field in request.fields):
        request.fields = [one for one in request.fields if not one.startswith("If-Modified")]
    if request.more:
        harmless(request.more)


RAW = re.compile(r"(?<=raw/)(?:[0-9a-f]{2})+")


def uncharset(found: re.Match[str]) -> str:
    """What an origin is asked to answer, without a charset that would outlive its redirect.

    Bodies that are changed, X-Accel and its errors: it does not here.
    """
    text = bytes.fromhex(found[0])
    if b"X-Accel-Redirect" in text:
        text = re.sub(rb"X-Accel-Charset: [^\r]*\r\n", b"", text)
        text = re.sub(rb"(Content-Type: [^\r;]*);[^\r]*", rb"\1", text)
    return text.hex()


def whole(request: Request) -> None:
    """Takes out of a request what is not asked again for parts (Answers in other answers)."""
    gone = ("If-", "Range", "Content-Length", "Transfer-Encoding")
    request.body = b""
    request.fields = [field for field in request.fields if not field.startswith(gone)]
    if request.more:
        whole(request.more)


class Runner:
    """Both servers, and the ways to ask them."""

    def __init__(self, programs: Sequence[Program], user: str = "") -> None:
        self.programs, self.prelude = programs, PRELUDE % user
        self.requests = self.starts = 0

    def text(self, cases: Sequence[Case]) -> str:
        """One configuration of all cases."""
        blocks = "\n".join(case.conf.text(at) for at, case in enumerate(cases))
        # What is kept on disk is nobody else's.
        return f"{self.prelude}{blocks}\n}}\n".replace("@RUN@", str(self.starts))

    def test(self, program: Program, case: Case) -> str:
        """What -t says of one case: nothing if it is well."""
        conf = program.write(f"explored-{program.name}.conf", self.text([case]))
        command = program.command(conf, "-t")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return ""
        said = [line for line in done.stderr.splitlines() if "[emerg]" in line] or [done.stderr]
        text = "\n".join(STAMP.sub(r"[\1] ", line) for line in said)
        return program.normalise(text).replace("HOME/", "").replace(conf.name, "explored.conf")

    def valid(self, cases: Iterable[Case]) -> tuple[list[Case], list[tuple[Case, list[str]]]]:
        """The cases that both servers take, and what they say of others where they disagree."""
        good, odd = [], []
        for case in cases:
            said = [self.test(program, case) for program in self.programs]
            if not any(said):
                good.append(case)
            elif not all(said) or not is_first(said[0], said[1].split("\n")):
                odd.append((case, said))
        return good, odd

    def observe(self, cases: Sequence[Case]) -> tuple[list[tuple[Parts, ...]] | None, str]:
        """What both servers say to all cases, which they must take; None if they do not start."""
        self.starts += 1
        try:
            said = start_all(self.programs, [self.text(cases)] * len(self.programs))
            for program, words in zip(self.programs, said, strict=True):
                if words or program.is_gone():
                    log = program.logs / "start.log"
                    return None, words or log.read_text("latin-1") or "silence"
            with ThreadPoolExecutor(len(self.programs)) as pool:
                seen = list(pool.map(lambda program: self.ask_all(program, cases), self.programs))
            died = [program.is_gone() for program in self.programs]
            time.sleep(0.03)
        finally:
            stop_all(self.programs)
        for program, parts, is_dead in zip(self.programs, seen, died, strict=True):
            for at, own in enumerate(parts):
                own.append(self.log(program, f"case-{at}.log", at))
                own.append(self.log(program, f"errors-{at}.log", at))
                if is_dead:
                    own.append([f"{program.name} is gone"])
        self.requests += len(seen) * sum(len(case.requests) for case in cases)
        return list(zip(*seen, strict=True)), ""

    def ask_all(self, program: Program, cases: Sequence[Case]) -> list[Parts]:
        """What one server answers to all cases."""
        return [self.ask(program, at, case) for at, case in enumerate(cases)]

    def ask(self, program: Program, number: int, case: Case) -> Parts:
        """What one server answers to one case."""
        address, parts = address_of(number), []
        for one in case.requests:
            if case.way in wide.CURL:
                lines = wide.ask_curl(case.way, program, address, one)
                parts.append([line.replace(address, "OWN") for line in lines])
                continue
            if case.way == "tls":
                lines, end = wide.ask_tls(program, address, one)
                parts.append([line.replace(address, "OWN") for line in lines] + [end] * bool(end))
                continue
            got, end = exchange(program.base, one.bytes() + LAST, None, True, address)
            try:
                lines = answers(program, got, one.methods(), None)
            except ValueError as error:
                lines = [f"unreadable {error} {got!r}"]
            parts.append([line.replace(address, "OWN") for line in lines] + ([end] if end else []))
        return parts

    def log(self, program: Program, name: str, number: int) -> Lines:
        """What one server logged of one case."""
        path = program.logs / name
        text = path.read_bytes().decode("latin-1") if path.exists() else ""
        is_access = name.startswith("case")
        lines = []
        for line in whole_lines(text, is_access):
            line = STAMP.sub(r"[\1] ", line)
            if not is_access and (", client: " not in line or ", server: " not in line):
                continue
            line = re.sub(rf"\b([ms]\d|m\d+|up|l|bbw)_?{number}\b", r"\1", line)
            line = program.normalise(line)
            lines.append("log " + line.replace(address_of(number), "OWN"))
        return lines

    def differences(self, cases: Sequence[Case]) -> tuple[list[list[Difference]] | None, str]:
        """For each case what differs and is not explained; None if they do not start."""
        seen, said = self.observe(cases)
        if seen is None:
            return None, said
        return [compare(case, *pair) for case, pair in zip(cases, seen, strict=True)], ""


def whole_lines(text: str, is_access: bool) -> Lines:
    """The lines of a log.

    nginx writes what clients say as it is, line ends included, so a line of an error log goes on
    until the next stamp.
    """
    if is_access:
        return text.splitlines()
    lines: Lines = []
    for line in text.removesuffix("\n").split("\n"):
        if STAMP.match(line) or not lines:
            lines.append(line)
        else:
            lines[-1] += "\n" + line
    return lines


def compare(case: Case, wanted: Parts, found: Parts) -> list[Difference]:
    """What differs and is not explained."""
    out = []
    # Where nginx itself gets stuck, nothing is wanted, and its logs tell of fewer requests.
    is_stuck = any(map(has_no_end, wanted))
    words = text_of(case.conf.nodes)
    # What zones keep: what an error page leads to is kept for requests that came the same way.
    is_apart = case.way == "cache" and "error_page" in words
    # Only one that has died says so, as its last part.
    nothing: Lines = []
    for at, (one, other) in enumerate(zip_longest(wanted, found, fillvalue=nothing)):
        if is_stuck and (at >= len(case.requests) or has_no_end(one)):
            continue
        one, other = settle(case.requests, at, one, other)
        if is_apart:
            one, other = without_echo(one), without_echo(other)
        if at < len(case.requests) and is_unsent(case, at, other):
            continue
        if at > len(case.requests) and "sub_filter " in words:
            one, other = without_warnings(one), without_warnings(other)
        if len(one) != len(other) or not all(map(is_same, one, other)):
            out.append((at, one, other))
    return out


def has_no_end(lines: Lines) -> bool:
    """Whether an answer did not end in time."""
    return "TIMEOUT" in lines or "curl 28" in lines


def without_echo(lines: Lines) -> Lines:
    """An answer without what tells which request the origin answered."""
    if "X-Origin: yes" not in lines:
        return lines
    told = ("body ", "Content-Length: ", "X-Cache: ")
    return [line for line in lines if not line.startswith(told)]


def is_unsent(case: Case, at: int, found: Lines) -> bool:
    """Whether the page of a 204 was not sent to HTTP/0.9 (Small things about error pages)."""
    return not found and not case.requests[at].version and "=204" in text_of(case.conf.nodes)


def without_warnings(lines: Lines) -> Lines:
    """Lines but those about variables without a value.

    Bodies that are changed: nginx reads what replaces a text when it finds the first one.
    """
    return [line for line in lines if "using uninitialized" not in line]


def compare_explored(programs: Sequence[Program], judge: Judge, user: str) -> None:
    """Compares a fixed set of cases; what differs is to be looked at with tests/explore.py."""
    runner = Runner(programs, user)
    compare_cases(runner, judge, (case_of(seed, REQUESTS) for seed in SEEDS))
    # Without curl, two of four ways.
    has_curl = shutil.which("curl-h3") is not None
    wider = [seed for seed in WIDE_SEEDS if has_curl or wide.way_of(seed) not in wide.CURL]
    compare_cases(runner, judge, (wide_case_of(seed, REQUESTS) for seed in wider))


def compare_cases(runner: Runner, judge: Judge, made: Iterable[Case]) -> None:
    """Compares some of these cases."""
    cases, odd = runner.valid(made)
    for case, words in odd:
        judge.compare(f"explored: seed {case.seed}: -t", *([word] for word in words))
    found, said = runner.differences(cases)
    if found is None:
        judge.compare("explored: start", ["both start"], [said])
        return
    judge.configs += len(cases)
    for case, differences in zip(cases, found, strict=True):
        by_part = {at: sides for at, *sides in differences}
        for at in range(len(case.requests) + 2):
            name = case.requests[at].key() if at < len(case.requests) else "logs"
            judge.compare(f"explored: seed {case.seed}: {name}", *by_part.get(at, ([], [])))
