"""Owns: visitors, and their requests."""

import random
from dataclasses import dataclass, field

from .origin import SESSION
from .pages import Kind, Page
from .site import HOST
from .ways import Sending, Way
from .wire import Fields

USERS = ("", "alicealicealice1", "bobbobbobbobbob22")


@dataclass(frozen=True)
class Visitor:
    """What of a request responses may depend on."""

    user: str = ""
    language: str = ""
    by_field: str = ""
    password: str = ""

    @classmethod
    def drawn(cls, draw: random.Random) -> "Visitor":
        """Any visitor."""
        return cls(
            draw.choice(USERS),
            draw.choice(["", "", "de", "fr"]),
            draw.choice(["", "", "x", "y"]),
            draw.choice([*[""] * 10, "aa", "bb"]),
        )

    def fields(self, host: str = HOST) -> Fields:
        """Its request fields; an order takes no others than these."""
        named = ((SESSION, self.user), ("lang", self.language))
        cookies = [f"{name}={value}" for name, value in named if value]
        fields = [("Host", host)]
        if cookies:
            fields.append(("Cookie", "; ".join(cookies)))
        if self.password:
            fields.append(("Authorization", f"Bearer {self.password}"))
        return fields

    def may_see(self, audience: str, argument: str) -> bool:
        """Whether a body for this audience may be shown to it."""
        own = {
            "u": self.user,
            "h": self.by_field,
            "c": self.language,
            "b": f"{self.by_field}+{self.language}",
            "a": self.password,
            "q": argument,
        }
        kind, _, value = audience.partition("=")
        return audience == "pub" or own.get(kind) == value


@dataclass
class Visit:
    """A request for a page."""

    page: Page
    visitor: Visitor
    host: str
    method: str
    target: str
    # The value of the one argument that counts.
    argument: str = ""
    fields: Fields = field(default_factory=list)
    leaves: bool = False

    def __str__(self) -> str:
        told = " ".join(f"{name}:{value}" for name, value in self.fields)
        return f"{self.method} {self.host}{self.target} {self.visitor} {told}"

    def by(self, way: Way) -> Sending:
        """The request as it is sent."""
        fields = self.visitor.fields(self.host) + self.fields
        return Sending(way, self.method, self.target, fields, leaves=self.leaves)


def visit(draw: random.Random, page: Page, hosts: list[str]) -> Visit:
    """A request for a page, as browsers and crawlers send them."""
    visitor = Visitor.drawn(draw)
    made = Visit(page, visitor, draw.choice(hosts), "GET", page.path)
    if page.kind is Kind.BY_ARGUMENT:
        made.argument = draw.choice(["1", "2", ""])
        other = draw.choice(["", "utm_source=a&", "z=1&"])
        made.target += f"?{other}id={made.argument}" if made.argument else f"?{other}y=3"
    if visitor.by_field:
        made.fields.append(("X-Var", visitor.by_field))
    if draw.random() < 0.06:
        made.method = "HEAD"
    made.fields += conditions(draw, page)
    if draw.random() < 0.3:
        made.fields.append(("Accept-Encoding", draw.choice(["gzip", "identity"])))
    if draw.random() < 0.05:
        words = ["no-cache", "max-age=0", "no-store", "max-stale=1", "only-if-cached"]
        made.fields.append(("Cache-Control", draw.choice(words)))
    made.leaves = draw.random() < 0.05
    return made


def conditions(draw: random.Random, page: Page) -> Fields:
    """Ranges and conditions of a request, if it has any."""
    match draw.randrange(20):
        case 0:
            first = draw.choice([0, 64, 100, 128, 640])
            return [("Range", f"bytes={first}-{first + draw.choice([10, 127, 700])}")]
        case 1:
            return [("Range", "bytes=-130")]
        case 2:
            version = draw.choice([page.version, max(1, page.version - 1)])
            return [("If-None-Match", f'"{page.name}-{version}-pub"')]
        case 3:
            validator = f'"{page.name}-{page.version}-pub"'
            return [("Range", "bytes=0-127"), ("If-Range", validator)]
        case _:
            return []
