"""Owns: the proof that directives have an effect: a site answers otherwise without them.

    tests/compare.py --effects [--only WORD]

For each directive of the reference, Bolide is started twice on sites that have it, once with the
directive taken out of the configuration; both are asked the same. An answer, a line of a log, or
the start must differ, and differ again, while two that have it agree. The first site that shows it
is recorded in effects.tsv, where `report` finds it; --only makes anew what begins with WORD.
"""

import contextlib
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from . import coverage
from .asking import PRELUDE, compare_cases, user_line
from .judge import Judge
from .program import Program, start_all, stop_all
from .site import SITES, Site

RECORD = Path(__file__).with_name("effects.tsv")
# LIMIT: sites that are tried for one directive.
SITES_MAX = 12
# LIMIT: cases of a site, so that no directive takes minutes.
CASES_MAX = 60


class Difference(Exception):
    """Two programs did not say the same."""


class Witness(Judge):
    """Ends the comparison with the first difference, whatever excuses it elsewhere."""

    def compare(self, key: str, wanted: Sequence[str], found: Sequence[str]) -> None:
        """Refuses what differs."""
        if list(wanted) != list(found):
            raise Difference(key)


def without(conf: str, name: str) -> str:
    """A configuration without the statements of this name; blocks and tables stay."""
    kept: list[str] = []
    statement: list[str] = []
    first = ""
    tables: list[bool] = []
    at = 0
    for match in coverage.TOKEN.finditer(conf):
        quoted, mark, bare = match.groups()
        statement.append(conf[at : match.end()])
        at = match.end()
        first = first or quoted or bare or ""
        if not mark:
            continue
        is_line = any(tables)
        if mark == "{":
            tables.append(first in coverage.TABLES)
        elif mark == "}" and tables:
            tables.pop()
        if mark != ";" or first != name or is_line:
            kept += statement
        statement, first = [], ""
    return "".join([*kept, *statement, conf[at:]])


def candidates(name: str) -> Iterator[tuple[Site, str]]:
    """Sites that have a directive, the shortest first, and their configurations without it."""
    having = [site for site in SITES if name in site.conf]
    having.sort(key=lambda site: len(site.cases))
    tried = 0
    for site in having:
        text = without(site.conf, name)
        if text != site.conf and tried < SITES_MAX:
            tried += 1
            yield site, text


def differs(site: Site, texts: Sequence[str], programs: Sequence[Program]) -> bool:
    """Whether two programs say otherwise of the same site."""
    whole = [PRELUDE % user_line() + text + "\n}\n" for text in texts]
    site = replace(site, cases=site.cases[:CASES_MAX], errors=site.errors or "info")
    judge = Witness(verbose=False)
    try:
        said = start_all(programs, whole)
        if any(said):
            return bool(said[0]) != bool(said[1])
        for tls in site.identities or [site.tls]:
            compare_cases(replace(site, tls=tls), programs, judge)
    except Difference:
        return True
    finally:
        stop_all(programs)
        for program in programs:
            program.forget()
    logs = [(program.logs / "access.log") for program in programs]
    lines = [log.read_text(errors="replace").count("\n") if log.exists() else 0 for log in logs]
    return lines[0] != lines[1]


def witness(name: str, programs: Sequence[Program]) -> str:
    """The name of a site that shows the effect of a directive; empty if none does."""
    for site, text in candidates(name):
        both = [site.conf, text]
        shows = differs(site, both, programs) and differs(site, both, programs)
        if shows and not differs(site, [site.conf, site.conf], programs):
            return site.name
    return ""


def wanted(only: str) -> list[str]:
    """The directives that are asked about, each once."""
    names = {row.name: None for row in coverage.rows() if row.name not in coverage.ONLY_TAKEN}
    return [name for name in names if name.startswith(only)]


def recorded() -> dict[str, str]:
    """The sites that show an effect, by directive."""
    if not RECORD.exists():
        return {}
    lines = RECORD.read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


def record(found: dict[str, str], only: str) -> None:
    """Writes what was found, beside what was not asked about."""
    kept = {name: site for name, site in recorded().items() if not name.startswith(only)}
    shown = {**kept, **{name: site for name, site in found.items() if site}}
    RECORD.write_text("".join(f"{name}\t{site}\n" for name, site in sorted(shown.items())))


def show(pairs: Sequence[Sequence[Program]], only: str) -> int:
    """Asks for all directives, a share by each pair of programs; the exit status."""
    names = wanted(only)
    shares = [names[at :: len(pairs)] for at in range(len(pairs))]

    def ask(at: int) -> dict[str, str]:
        return {name: witness(name, pairs[at]) for name in shares[at]}

    found: dict[str, str] = {}
    with ThreadPoolExecutor(len(pairs)) as pool, contextlib.redirect_stderr(io.StringIO()):
        for share in pool.map(ask, range(len(pairs))):
            found |= share
    record(found, only)
    silent = sorted(name for name, site in found.items() if not site)
    print(f"{len(found) - len(silent)} of {len(found)} directives change what a site answers")
    print("shown by no site: " + " ".join(silent))
    return 0
