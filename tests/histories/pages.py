"""Owns: what a seed decides of the pages of a site, for whom they are, and what is in them."""

import random
from dataclasses import dataclass, field
from enum import StrEnum

# Below it, the server fetches pieces.
SLICES = "/slice/"


class Kind(StrEnum):
    """For whom the responses of a page are, and who may store them."""

    PUBLIC = "public"
    PRIVATE = "private"
    BY_FIELD = "by a request field"
    BY_COOKIE = "by a cookie"
    BY_BOTH = "by both"
    BY_PASSWORD = "by password"
    SETS_COOKIE = "sets a cookie"
    CHANGING = "now public, now private"
    FAILING = "public, fails now and then"
    BY_ARGUMENT = "by one argument"
    UNSTORED = "never stored"


class Style(StrEnum):
    """The response field that says how long a page is fresh."""

    LSCACHE = "X-LiteSpeed-Cache-Control"
    PLAIN = "Cache-Control"
    CDN = "CDN-Cache-Control"
    SURROGATE = "Surrogate-Control"


class Cache(StrEnum):
    """The family of directives under test."""

    PAGES = "page_cache"
    ZONE = "proxy_cache"


# Kinds whose responses are for one session.
PERSONAL = (Kind.PRIVATE, Kind.UNSTORED)
FRAGMENTS = (*PERSONAL, Kind.PUBLIC, Kind.BY_COOKIE, Kind.CHANGING, Kind.FAILING)
# A zone knows neither sessions nor arguments that do not count.
IN_ZONES = (
    *(Kind.PUBLIC, Kind.BY_FIELD, Kind.BY_COOKIE),
    *(Kind.FAILING, Kind.SETS_COOKIE, Kind.UNSTORED),
)
ATTRIBUTES = (
    *("", "", 'as-var="1"', 'onerror="continue"'),
    *('cache-control="private"', 'cache-control="private,no-vary"'),
)


@dataclass
class Include:
    """A fragment in a page; `attributes` say how it is looked up."""

    name: str
    attributes: str = ""


@dataclass
class Page:
    """A page: what its application says of it, and its version, which only grows."""

    name: str
    kind: Kind
    style: Style
    ttl: int
    # The longest that a response takes to begin, and the pause in its middle.
    delay: float
    pause: float
    blocks: int
    while_stale: int | None
    on_error: int | None
    etag: bool
    # Whether a 304 repeats the fields of the page.
    lean: bool
    gzip: bool
    tags: list[str]
    includes: list[Include] = field(default_factory=list)
    # Fragments that one request fetches, and those that the page brings along, by scope.
    combined: list[Include] = field(default_factory=list)
    inlines: list[tuple[str, str]] = field(default_factory=list)
    # One object of a session for all URLs that ask for its tags.
    shared: bool = False
    version: int = 1

    @property
    def path(self) -> str:
        """The path of its URL."""
        return f"/{self.name}"

    @property
    def assembled(self) -> bool:
        """Whether it has ESI."""
        return bool(self.includes or self.combined or self.inlines)

    def shows(self) -> set[str]:
        """The fragments in it."""
        parts = [*self.includes, *self.combined]
        return {part.name for part in parts} | {name for name, _ in self.inlines}


class Pages:
    """All pages of a seed."""

    def __init__(self, draw: random.Random, cache: Cache, wide: bool) -> None:
        self.draw, self.cache, self.wide = draw, cache, wide
        self.all: dict[str, Page] = {}
        if cache is Cache.ZONE:
            for number in range(6):
                self.add(f"p{number}", draw.choice(IN_ZONES), Style.PLAIN)
            return
        self.fragments = [
            self.add(f"f{number}", draw.choice(FRAGMENTS)).name for number in range(3)
        ]
        for number in range(4):
            self.add(f"p{number}", draw.choice(list(Kind)))
        for number in range(3):
            self.assembled(f"e{number}")
        self.nested()
        sliced = self.add("slice/s", Kind.PUBLIC, Style.PLAIN)
        sliced.blocks, sliced.etag, sliced.gzip, sliced.ttl = 20, True, False, 60
        sliced.delay = sliced.pause = 0

    def add(self, name: str, kind: Kind, style: Style | None = None) -> Page:
        """Another page."""
        draw = self.draw
        style = style or draw.choice(list(Style))
        if kind in (Kind.BY_PASSWORD, Kind.BY_BOTH) and style is Style.LSCACHE:
            style = Style.PLAIN
        page = Page(
            name=name,
            kind=kind,
            style=style,
            ttl=draw.choice([1, 60, 60]),
            delay=draw.choice([0, 0, 0.02, 0.1]),
            pause=draw.choice([0, 0, 0.05]),
            blocks=draw.choice([1, 3, 40]),
            while_stale=draw.choice([None, None, 0, 1, 5]),
            on_error=draw.choice([None, None, 2]),
            etag=draw.random() < 0.7,
            lean=draw.random() < 0.3,
            gzip=draw.random() < 0.3,
            tags=[draw.choice("AB")],
        )
        self.all[name] = page
        return page

    def include(self) -> Include:
        """A fragment, looked up as it may be."""
        name, attributes = self.draw.choice(self.fragments), self.draw.choice(ATTRIBUTES)
        personal = self.all[name].kind in PERSONAL
        return Include(name, attributes if personal or "private" not in attributes else "")

    def assembled(self, name: str) -> None:
        """A page with fragments."""
        draw = self.draw
        kinds = (Kind.PUBLIC, Kind.PUBLIC, Kind.PRIVATE, Kind.UNSTORED, Kind.BY_COOKIE)
        page = self.add(name, draw.choice(kinds))
        page.gzip = False
        page.includes = [self.include() for _ in range(draw.randint(1, 3))]
        if draw.random() < 0.6:
            part = draw.choice(page.includes).name
            scope = "private" if self.all[part].kind in PERSONAL else "public"
            scope = draw.choice([scope, scope, "private"])
            # The inlines of a private page are private objects, whatever they say.
            personal = page.kind in PERSONAL and not self.wide
            page.inlines = [(part, "private" if personal else scope)]
        if draw.random() < 0.5:
            page.combined = [
                Include(part, 'cache-control="private"' if self.all[part].kind in PERSONAL else "")
                for part in self.fragments
            ]

    def nested(self) -> None:
        """A page with a page that has fragments, and a fragment that pages share."""
        draw = self.draw
        if draw.random() < 0.6:
            outer = self.add("n0", Kind.PUBLIC, draw.choice([Style.LSCACHE, Style.PLAIN]))
            outer.gzip, outer.includes = False, [Include("e0"), self.include()]
        if draw.random() < 0.5:
            shared = self.add("sh", Kind.PRIVATE)
            shared.tags, shared.shared = [], True
            attributes = 'cache-control="shared" cache-tag="Tsh,public:Psh"'
            self.all["e0"].includes.append(Include("sh", attributes))

    def may_be_cut(self, page: Page) -> bool:
        """Whether a response may end early: the application, or another version, ends a part."""
        parts = [self.all[name] for name in page.shows()]
        fails = page.kind is Kind.FAILING or page.path.startswith(SLICES)
        return fails or any(self.may_be_cut(part) for part in parts)

    def around(self, name: str) -> list[str]:
        """The pages that show this one, itself included."""
        found = {name}
        while more := {p.name for p in self.all.values() if p.shows() & found} - found:
            found |= more
        return sorted(found)
