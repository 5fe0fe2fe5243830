"""Owns: what no response may show, and what led to one that does.

A version is too old if a purge that reaches it was acknowledged before the request began. A request
that began earlier may see either version, so no check depends on time.
"""

import re
from dataclasses import dataclass, field

from .client import Visit
from .origin import BLOCK
from .pages import Page
from .responses import Response

BLOCKS = re.compile(rb"\[([^|\]]+)\|(\d{6})\|([^|]*)\|")
TAG = re.compile(r'(?:W/)?"([^"-]+)-(\d+)-([^"~]*)~?"')
RANGE = re.compile(r"bytes (\d+)-(\d+)/\d+")
# What no request here deserves.
REFUSALS = (400, 403, 405, 411, 413, 414, 421, 431, 500, 501, 505)
SHOWN = 30

# The oldest version that a request may see, by place (which `Site.place` says), page and audience:
# `EVERYONE`, or one.
Floors = dict[tuple[str, str, str], int]
EVERYONE = ""


@dataclass(frozen=True)
class Seen:
    """A page in a response."""

    name: str
    version: int
    audience: str


@dataclass
class Violation:
    """What a response should not have shown."""

    check: str
    page: str
    text: str


@dataclass
class Journal:
    """What has happened, in the order of its ends, and what was wrong."""

    events: list[tuple[frozenset[str], str]] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    floors: Floors = field(default_factory=dict)
    # Purges acknowledged while two processes serve; the other one reads of them a little later.
    held: list[tuple[tuple[str, str, str], int]] | None = None
    verbose: bool = False

    def note(self, pages: set[str], text: str) -> None:
        """An event of these pages; of all of them if there are none."""
        self.events.append((frozenset(pages), text))
        if self.verbose:
            print("   ", text, flush=True)

    def violation(self, check: str, page: str, text: str) -> None:
        """A response that shows what it must not."""
        self.violations.append(Violation(check, page, text))
        self.note({page}, f"VIOLATION of `{check}`: {text}")

    def lift(self, place: str, page: str, audience: str, version: int) -> None:
        """A purge was acknowledged."""
        key = (place, page, audience)
        if self.held is None:
            self.floors[key] = max(version, self.floors.get(key, 0))
        else:
            self.held.append((key, version))

    def two_serve(self) -> None:
        """From here on, an acknowledged purge may have reached one process only."""
        self.held = []

    def one_serves(self) -> None:
        """All purges have reached the process that is left."""
        held, self.held = self.held or [], None
        for key, version in held:
            self.lift(*key, version)

    def last(self, page: str, before: str) -> list[str]:
        """The last events of a page up to one."""
        texts = [text for pages, text in self.events if page in pages or not pages]
        end = texts.index(before) + 1 if before in texts else len(texts)
        return texts[max(0, end - SHOWN) : end]


def told(response: Response) -> set[Seen]:
    """What the validator of a response names."""
    found = TAG.fullmatch(response.fields.get("etag", ""))
    return {Seen(found[1], int(found[2]), found[3])} if found else set()


def seen(visit: Visit, response: Response) -> set[Seen]:
    """Everything that a response shows."""
    shown = {
        Seen(name.decode(), int(version), audience.decode())
        for name, version, audience in BLOCKS.findall(response.body)
    }
    if response.status == 304:
        condition = dict(visit.fields).get("If-None-Match", "")
        shown |= told(response) or told(Response(fields={"etag": condition}))
    elif response.status in (200, 206):
        shown |= told(response)
    return shown


def oldest(floors: Floors, place: str, one: Seen) -> int:
    """The oldest version that a request may see that began with these floors."""
    own = floors.get((place, one.name, one.audience), 0)
    personal = one.audience.startswith("u=")
    return own if personal else max(own, floors.get((place, one.name, EVERYONE), 0))


def around(page: Page) -> set[str]:
    """The pages that an event is about."""
    return {page.name} | page.shows()


def judge(
    journal: Journal, floors: Floors, place: str, visit: Visit, text: str, response: Response
) -> None:
    """Checks what one response of a place shows; `text` is the request."""
    page, shown = visit.page, seen(visit, response)
    texts = sorted(f"{one.name} v{one.version} for {one.audience}" for one in shown)
    said = response.fields.get("cache-status", "-")
    status = f"{response.status}{'' if response.complete else ' cut'} {said}"
    text = f"{text} -> {status}: {'; '.join(texts)}"
    journal.note(around(page) | {one.name for one in shown}, text)
    for one in sorted(shown, key=str):
        if not visit.visitor.may_see(one.audience, visit.argument):
            told_of = f"{one.name} for {one.audience}"
            journal.violation("no other audience's body", one.name, f"{told_of}: {text}")
        floor = oldest(floors, place, one)
        if one.version < floor:
            older = f"{one.name} v{one.version} for {one.audience}, purged before v{floor}"
            journal.violation("nothing older than a purge", one.name, f"{older}: {text}")
    if b"<esi:" in response.body:
        journal.violation("no other audience's body", page.name, f"markup of ESI: {text}")
    if not page.assembled and shown and (len(shown) > 1 or {o.name for o in shown} != {page.name}):
        journal.violation("one response at a time", page.name, f"mixed: {text}")


def whole(journal: Journal, visit: Visit, text: str, response: Response) -> None:
    """Checks that a response has its whole body, which ended as if it had."""
    page, size = visit.page, len(response.body)
    found = RANGE.fullmatch(response.fields.get("content-range", ""))
    told = size
    if visit.method == "HEAD":
        pass
    elif response.status == 200 and not page.assembled:
        told = page.blocks * BLOCK
    elif response.status == 206 and found:
        told = int(found[2]) - int(found[1]) + 1
    if not response.complete or size != told:
        text = f"{text} -> {response.status}: {size} bytes of {told}"
        journal.violation("every response is whole", page.name, text)
    if response.status in REFUSALS:
        journal.violation("requests are understood", page.name, f"{text} -> {response.status}")
