"""Owns: the application. Each response names its page, version and audience in every block.

What it chooses comes from the seed and from how often the page was requested before. `/do` orders
the purges that the request states; `/comb` has the parts of a combined request.
"""

import asyncio
import gzip
import random
import re
from contextlib import suppress
from urllib.parse import parse_qsl

from .pages import Kind, Page, Pages, Style
from .wire import Answer, Fields, Request, cut_out, read, write

BLOCK = 64
SESSION = "PHPSESSID"


def block(name: str, version: int, audience: str) -> bytes:
    """One block; all have the same length."""
    text = f"[{name}|{version:06d}|{audience}|"
    assert len(text) < BLOCK, text
    return (text.ljust(BLOCK - 1, ".") + "\n").encode()


def etag(name: str, version: int, audience: str) -> str:
    """The validator of a response."""
    return f'"{name}-{version}-{audience}"'


def audience(kind: Kind, request: Request) -> str:
    """For whom the response is: `pub`, or whatever of the request it depends on."""
    user, language = request.cookie(SESSION), request.cookie("lang")
    by_field = ",".join(request.fields.get("x-var", [""]))
    match kind:
        case Kind.PRIVATE | Kind.UNSTORED | Kind.SETS_COOKIE:
            return f"u={user}"
        case Kind.BY_FIELD:
            return f"h={by_field}"
        case Kind.BY_COOKIE:
            return f"c={language}"
        case Kind.BY_BOTH:
            return f"b={by_field}+{language}"
        case Kind.BY_PASSWORD:
            password = request.first("authorization").removeprefix("Bearer ")
            return f"a={password}" if password else "pub"
        case Kind.BY_ARGUMENT:
            found = re.search(r"[?&]id=(\w*)", request.target)
            return f"q={found[1] if found else ''}"
        case _:
            return "pub"


class Origin:
    """The application of a site."""

    def __init__(self, seed: int, pages: Pages) -> None:
        self.seed, self.pages = seed, pages
        self.counts: dict[str, int] = {}
        # Set when a purge of the page was acknowledged, or a request for it has arrived.
        self.purged: dict[str, asyncio.Event] = {}
        self.arrived: dict[str, asyncio.Event] = {}
        self.server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listens; the port."""
        self.server = await asyncio.start_server(self.connection, "127.0.0.1", 0, backlog=512)
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    def stop(self) -> None:
        """Listens no more."""
        if self.server:
            self.server.close()

    def event(self, events: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        """The next such event of a page."""
        return events.setdefault(name, asyncio.Event())

    def happened(self, events: dict[str, asyncio.Event], name: str) -> None:
        """Tells those who wait."""
        if event := events.pop(name, None):
            event.set()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await read(reader)
                answer = await self.answer(request)
                if answer is None or not await write(writer, request, answer):
                    writer.transport.abort()
                    break
        writer.close()

    async def versions(self, name: str, draw: random.Random, delay: float) -> dict[str, int]:
        """What all pages are at a moment of a response that takes its time."""
        early = {page.name: page.version for page in self.pages.all.values()}
        self.happened(self.arrived, name)
        if not delay or draw.random() < 0.3:
            return early
        # The best moment to go on is behind a purge, for the response is old then.
        with suppress(TimeoutError):
            longest = draw.random() * delay
            await asyncio.wait_for(self.event(self.purged, name).wait(), longest)
        if draw.random() < 0.6:
            return early
        return {page.name: page.version for page in self.pages.all.values()}

    async def answer(self, request: Request) -> Answer | None:
        """The response; nothing for a connection that just closes."""
        name = request.target.partition("?")[0].strip("/")
        if name == "do":
            orders = request.fields.get("x-order", [])
            return Answer(fields=[("X-LiteSpeed-Purge", order) for order in orders], body=b"done\n")
        count = self.counts[name] = self.counts.get(name, 0) + 1
        draw = random.Random(f"{self.seed} {name} {count}")
        if name == "comb" and request.method == "POST":
            return await self.parts(request, draw)
        page = self.pages.all.get(name)
        if page is None:
            return Answer(404, [("Cache-Control", "no-store")], b"nothing\n")
        if request.method not in ("GET", "HEAD"):
            return Answer(body=b"posted\n")
        versions = await self.versions(name, draw, page.delay)
        kind = page.kind
        if kind is Kind.CHANGING:
            kinds = (Kind.PRIVATE, Kind.PRIVATE, Kind.UNSTORED, Kind.PUBLIC, Kind.PUBLIC)
            kind = draw.choice(kinds)
        if kind is Kind.FAILING:
            match draw.randrange(6):
                case 0:
                    return None
                case 1:
                    return Answer(503, body=b"failed\n")
        return self.page(page, kind, versions, request, draw)

    async def parts(self, request: Request, draw: random.Random) -> Answer | None:
        """The response to a combined request: some of its parts as inlines."""
        versions = await self.versions("comb", draw, 0.2)
        if draw.random() < 0.1:
            return None
        body = b""
        for _, path in parse_qsl(request.body.decode()):
            page = self.pages.all.get(path.strip("/"))
            if page is None or page.kind is Kind.BY_COOKIE or draw.random() < 0.1:
                continue
            scope = "public" if page.kind in (Kind.PUBLIC, Kind.FAILING) else "private"
            body += self.inline(page.name, scope, versions, request)
        return Answer(fields=[("Content-Type", "text/html")], body=body)

    def inline(self, name: str, scope: str, versions: dict[str, int], request: Request) -> bytes:
        """A fragment that another response brings along."""
        whom = audience(Kind.PRIVATE if scope == "private" else Kind.PUBLIC, request)
        start = f'<esi:inline name="/{name}" cache-control="{scope},max-age=60"'
        start += f' cache-tag="T{name}{f",public:P{name}" if scope == "private" else ""}">'
        return start.encode() + block(name, versions[name], whom) + b"</esi:inline>"

    def caching(self, page: Page, kind: Kind, request: Request, draw: random.Random) -> Fields:
        """The fields that say for how long a response is stored, and for whom."""
        stale = "" if page.while_stale is None else f", stale-while-revalidate={page.while_stale}"
        stale += "" if page.on_error is None else f", stale-if-error={page.on_error}"
        fresh, esi = f"max-age={page.ttl}", ",esi=on" if page.assembled else ""
        fields: Fields = []
        if kind is Kind.UNSTORED:
            plain = ("Cache-Control", "no-store"), (Style.LSCACHE.value, "no-cache")
            fields.append(draw.choice(plain))
        elif kind is Kind.PRIVATE:
            fields.append((Style.LSCACHE, f"private,{fresh}{esi}"))
        elif kind is Kind.SETS_COOKIE:
            fields.append(("Set-Cookie", f"x={request.cookie(SESSION)}"))
            fields.append(("Cache-Control", fresh + stale))
        elif page.style is Style.LSCACHE:
            fields.append((Style.LSCACHE, f"public,{fresh}{esi}"))
            if kind is Kind.BY_COOKIE:
                fields.append(("X-LiteSpeed-Vary", "cookie=lang"))
        elif page.style is Style.SURROGATE:
            content = ', content="ESI/1.0"' if page.assembled else ""
            fields.append((Style.SURROGATE, fresh + content))
        else:
            fields.append((page.style, fresh + stale))
            if page.style is Style.CDN:
                fields.append(("Cache-Control", "private"))
        if page.assembled and not any("ESI" in value or "esi=on" in value for _, value in fields):
            fields.append((Style.SURROGATE, 'content="ESI/1.0"'))
        if kind is Kind.BY_ARGUMENT:
            fields.append(("No-Vary-Search", 'params, except=("id")'))
        if kind in (Kind.BY_FIELD, Kind.BY_BOTH):
            fields.append(("Vary", "X-Var"))
        by_cookie = kind is Kind.BY_COOKIE and page.style is not Style.LSCACHE
        if by_cookie or kind is Kind.BY_BOTH:
            fields.append(("Vary", "Cookie"))
        if page.gzip:
            fields.append(("Vary", "Accept-Encoding"))
        tags = [*page.tags, f"T{page.name}"]
        if kind is Kind.PRIVATE:
            fields.append(("X-LiteSpeed-Tag", ",".join([*tags, f"public:P{page.name}"])))
        else:
            lscache = page.style is Style.LSCACHE
            fields.append(("X-LiteSpeed-Tag" if lscache else "Cache-Tag", ",".join(tags)))
        return fields

    def page(
        self,
        page: Page,
        kind: Kind,
        versions: dict[str, int],
        request: Request,
        draw: random.Random,
    ) -> Answer:
        """The response of a page."""
        fields = self.caching(page, kind, request, draw)
        fields.append(("Content-Type", "text/html"))
        whom, version = audience(kind, request), versions[page.name]
        one, validator = block(page.name, version, whom), etag(page.name, version, whom)
        body = one * page.blocks
        if page.assembled:
            body = one
            for part in page.includes:
                body += f'<esi:include src="/{part.name}" {part.attributes}/>'.encode()
            if page.combined:
                body += b'<esi:include src="/comb" combine="main"/>'
            for part in page.combined:
                sub = f'<esi:include src="/{part.name}" {part.attributes} combine="sub"/>'
                body += sub.encode()
            for name, scope in page.inlines:
                body += self.inline(name, scope, versions, request)
        packed = page.gzip and "gzip" in request.first("accept-encoding")
        if packed:
            body, validator = gzip.compress(body, mtime=0), validator[:-1] + '~"'
            fields.append(("Content-Encoding", "gzip"))
        # An inline is more than the version of its page.
        if page.etag and not page.inlines:
            fields.append(("ETag", validator))
            if validator in re.split(r"\s*,\s*", request.first("if-none-match")):
                kept = [one for one in fields if one[0] == "ETag"] if page.lean else fields
                return Answer(304, kept)
        chunked = draw.random() < 0.3
        cut = page.kind is Kind.FAILING and draw.random() < 0.2
        answer = Answer(200, fields, body, page.pause * draw.random(), chunked, cut)
        same = request.first("if-range") in ("", validator)
        if not packed and not page.assembled and same:
            cut_out(request, answer)
        return answer
