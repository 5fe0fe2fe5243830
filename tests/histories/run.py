"""Owns: the histories: who acts when, and the command that runs them by seed.

Several actors visit and change the pages of a site at once, each with choices of its own; the
order in which their requests meet is the machine's. With chaos, the server is reloaded, replaced
and killed meanwhile; its directory stays, so what was acknowledged before has to hold.
"""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .checks import Journal, around, judge
from .client import Response, Visit, fetch, visit
from .orders import Order, choose, prepare
from .origin import Origin
from .server import Fate, Server
from .site import HOST, OTHER_HOST, Cache, Page, Site
from .wire import Fields

ACTORS, STEPS = 6, 40
# Histories at a time, with three ports each.
TOGETHER = 3
# How long an order waits for the request that it is to overtake.
SOON = 0.05


class History:
    """One history."""

    def __init__(self, args: argparse.Namespace, seed: int, home: Path, port: int) -> None:
        self.args, self.seed = args, seed
        self.site = Site(args, seed, home, port)
        self.pages = self.site.pages
        self.origin = Origin(seed, self.pages)
        self.server = Server(args.bolide, self.site)
        self.journal = Journal(verbose=args.verbose)
        self.counts: Counter[str] = Counter()
        self.steps, self.acting = 0, ACTORS

    async def run(self) -> None:
        """Runs it to its end."""
        self.server.write(2)
        await self.origin.start(self.site.origin)
        try:
            await self.server.start()
            async with asyncio.TaskGroup() as group:
                for number in range(ACTORS):
                    group.create_task(self.actor(random.Random(f"{self.seed} actor {number}")))
                if self.args.chaos:
                    group.create_task(self.chaos(random.Random(f"{self.seed} chaos")))
        finally:
            self.server.stop()
            self.origin.stop()
        for line in self.server.panics():
            self.journal.violation("no panic", "", line)

    async def actor(self, draw: random.Random) -> None:
        """One of those who visit and change the site."""
        names = list(self.pages.all)
        page = self.pages.all[draw.choice(names)]
        for _ in range(STEPS):
            # A page that is requested once more is often a hit.
            page = page if draw.random() < 0.5 else self.pages.all[draw.choice(names)]
            if draw.random() < 0.75:
                made = self.visit(draw, page)
                for _ in range(draw.choice([1, 1, 2])):
                    await self.request(made)
            else:
                await self.change(draw, page)
            self.steps += 1
        self.acting -= 1

    def visit(self, draw: random.Random, page: Page) -> Visit:
        """A request for a page."""
        hosts = [HOST] if self.site.cache is Cache.ZONE else [HOST] * 9 + [OTHER_HOST]
        return visit(draw, page, self.site.ports, hosts)

    async def request(self, made: Visit) -> None:
        """Sends a request and checks the response."""
        floors = dict(self.journal.floors)
        fields = made.visitor.fields(made.host) + made.fields
        response = await self.fetch(
            made.page, made.port, made.method, made.target, fields, leaves=made.leaves
        )
        self.counts["visits"] += 1
        if made.leaves or not response.status:
            return
        self.counts["hits"] += "; hit" in response.fields.get("cache-status", "")
        self.counts["304"] += response.status == 304
        judge(self.journal, floors, made, response)

    async def fetch(
        self,
        page: Page,
        port: int,
        method: str,
        target: str,
        fields: Fields,
        body: bytes | None = None,
        leaves: bool = False,
    ) -> Response:
        """Sends a request; a connection that breaks, as a killed server's do, has no response."""
        try:
            return await fetch(port, method, target, fields, body, leaves)
        except TimeoutError:
            self.journal.violation("every request ends", page.name, f"{method} {target}")
        except ConnectionError:
            self.counts["lost"] += 1
            await asyncio.sleep(0.05)
        return Response()

    async def change(self, draw: random.Random, page: Page) -> None:
        """Changes a page and purges it, often while it is being fetched; then requests it."""
        order = choose(draw, self.site.cache, page, self.args.wide)
        made = self.visit(draw, self.pages.all[draw.choice(self.pages.around(page.name))])
        ahead = draw.choice([0, 1, 1, 2])
        async with asyncio.TaskGroup() as group:
            for _ in range(ahead):
                group.create_task(self.request(made))
            if ahead:
                with suppress(TimeoutError):
                    arrived = self.origin.event(self.origin.arrived, page.name)
                    await asyncio.wait_for(arrived.wait(), SOON)
            await self.order(draw, order, page)
            for _ in range(2):
                await self.request(made)

    async def order(self, draw: random.Random, order: Order, page: Page) -> None:
        """Changes a page and purges it."""
        sent = prepare(draw, order, self.pages, page, self.args.wide)
        if sent is None:
            return
        about = {name for _, name, _, _ in sent.reaches} | around(page)
        self.journal.note(about, f"{page.name} becomes v{page.version}; {sent} begins")
        if order is Order.COMMAND:
            done, status = await self.server.purge(sent.fields[0][1]), 0
        else:
            port = draw.choice(self.site.ports)
            response = await self.fetch(
                page, port, sent.method, sent.target, sent.fields, sent.body
            )
            status = response.status
            # A zone without the page says that nothing was found.
            done = status == 200 or (self.site.cache is Cache.ZONE and status == 404)
        self.journal.note(about, f"v{page.version}: {order} ends: {status or done}")
        if not done:
            if not self.args.chaos:
                self.journal.violation("orders are taken", page.name, f"{sent}: {status}")
            return
        self.counts["purges"] += 1
        for host, name, audience, version in sent.reaches:
            self.journal.lift(host, name, audience, version)
        for name in {*(name for _, name, _, _ in sent.reaches), "comb"}:
            self.origin.happened(self.origin.purged, name)

    async def chaos(self, draw: random.Random) -> None:
        """Lets things happen to the server while there is traffic."""
        while self.acting:
            due = self.steps + draw.randint(5, 50)
            while self.acting and self.steps < due:
                await asyncio.sleep(0.01)
            fate = draw.choice([Fate.RELOAD, Fate.RELOAD, Fate.UPGRADE, Fate.DEATH])
            self.journal.note(set(), f"{fate} begins")
            if fate is Fate.UPGRADE:
                self.journal.two_serve()
            if not await self.server.meet(fate, draw):
                self.journal.violation("signals are obeyed", "", f"{fate}: not done in time")
            self.journal.one_serves()
            self.journal.note(set(), f"{fate} ends")
            self.counts[fate] += 1


def report(history: History) -> None:
    """Prints what was violated, and how it came to that."""
    first = {one.check: one for one in reversed(history.journal.violations)}
    for violation in first.values():
        print(f"seed {history.seed}: `{violation.check}` is violated: {violation.text}")
        said = f"VIOLATION of `{violation.check}`: {violation.text}"
        for text in history.journal.last(violation.page, said):
            print(f"    {text}")
        page = history.pages.all.get(violation.page)
        print(f"    {page}")
    if more := len(history.journal.violations) - len(first):
        print(f"seed {history.seed}: {more} further violations")


def arguments() -> argparse.Namespace:
    """What the command was given."""
    parser = argparse.ArgumentParser(description="Random histories of cached sites, by seed")
    parser.add_argument("--bolide", required=True, help="the program, an absolute path")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--port", type=int, default=17_900, help="the first of nine free ports")
    parser.add_argument("--chaos", action="store_true", help="reloads, upgrades and kills")
    parser.add_argument(
        "--wide",
        action="store_true",
        help="also URL purges of pages with No-Vary-Search and of shared fragments, and public "
        "inlines in private pages",
    )
    parser.add_argument("--verbose", action="store_true", help="prints every event")
    return parser.parse_args()


async def lived(args: argparse.Namespace, seed: int, port: int) -> History:
    """The history of a seed, at its end."""
    home = Path(tempfile.mkdtemp(prefix="histories."))
    home.chmod(0o755)
    try:
        history = History(args, seed, home, port)
        await history.run()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return history


async def all_of(args: argparse.Namespace) -> int:
    """Runs all seeds, a few at a time because they often wait; whether one failed."""
    counts: Counter[str] = Counter()
    failed: list[int] = []
    together = 1 if args.verbose else TOGETHER
    end = args.first + args.count
    for first in range(args.first, end, together):
        seeds = range(first, min(first + together, end))
        ports = range(args.port, args.port + 3 * together, 3)
        lives = [lived(args, seed, port) for seed, port in zip(seeds, ports, strict=False)]
        for history in await asyncio.gather(*lives):
            report(history)
            counts.update(history.counts)
            if history.journal.violations:
                failed.append(history.seed)
    happened = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if number)
    print(f"{args.count} seeds, {len(failed)} with violations {failed or ''}: {happened}")
    return 1 if failed else 0


def main() -> int:
    """The command; it leaves no server behind when it is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return asyncio.run(all_of(arguments()))
