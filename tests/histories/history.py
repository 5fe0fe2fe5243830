"""Owns: a history: who acts when.

Several actors visit and change the pages of a site at once, each with choices of its own; the
order in which their requests meet is the machine's. With chaos, the server is reloaded, replaced
and killed meanwhile; its directory stays, so what was acknowledged before has to hold.
"""

import argparse
import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .checks import Journal, around, judge, whole
from .client import Visit, visit
from .connections import Connections
from .orders import Order, choose, prepare
from .origin import Origin
from .pages import Cache, Page
from .responses import Broken, Crossed, Refused, Reset, Response
from .server import Fate, Server
from .site import HOST, OTHER_HOST, Site
from .ways import Sending, Way

ACTORS, STEPS = 6, 40
# How often an actor is a crowd, and of how many.
CROWDS, CROWD = 0.05, 8
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
        self.connections = Connections(args.certificate, random.Random(f"{seed} connections"))
        self.journal = Journal(verbose=args.verbose)
        self.counts: Counter[str] = Counter()
        self.steps, self.acting = 0, ACTORS
        # One more when the server is killed, and when it is there again: odd in between.
        self.deaths = 0

    async def run(self) -> None:
        """Runs it to its end."""
        self.site.origin = await self.origin.start()
        self.server.write(2)
        try:
            await self.server.start()
            async with asyncio.TaskGroup() as group:
                for number in range(ACTORS):
                    group.create_task(self.actor(random.Random(f"{self.seed} actor {number}")))
                if self.args.chaos:
                    group.create_task(self.chaos(random.Random(f"{self.seed} chaos")))
        finally:
            self.connections.close()
            self.server.stop()
            self.origin.stop()
        for fault in self.connections.faults:
            self.journal.violation("protocols are kept", "", str(fault))
        for line in self.server.panics():
            self.journal.violation("no panic", "", line)

    async def actor(self, draw: random.Random) -> None:
        """One of those who visit and change the site."""
        names = list(self.pages.all)
        page = self.pages.all[draw.choice(names)]
        for _ in range(STEPS):
            # A page that is requested once more is often a hit.
            page = page if draw.random() < 0.5 else self.pages.all[draw.choice(names)]
            if draw.random() < CROWDS:
                await self.crowd(draw, page)
            elif draw.random() < 0.75:
                made = self.visit(draw, page)
                for _ in range(draw.choice([1, 1, 2])):
                    await self.request(made, self.way(draw, made.host))
            else:
                await self.change(draw, page)
            self.steps += 1
        self.acting -= 1

    async def crowd(self, draw: random.Random, page: Page) -> None:
        """Several visitors at once, by the same way, half of them for one page."""
        pages = [page] * (CROWD // 2) + draw.choices(list(self.pages.all.values()), k=CROWD // 2)
        way = self.way(draw, OTHER_HOST)
        async with asyncio.TaskGroup() as group:
            for one in pages:
                group.create_task(self.request(self.visit(draw, one), way))

    def visit(self, draw: random.Random, page: Page) -> Visit:
        """A request for a page."""
        hosts = [HOST] if self.site.cache is Cache.ZONE else [HOST] * 9 + [OTHER_HOST]
        return visit(draw, page, hosts)

    def way(self, draw: random.Random, host: str) -> Way:
        """How a request for a host travels."""
        return Way.drawn(draw, self.site.listeners(host))

    async def request(self, made: Visit, way: Way) -> None:
        """Sends a request and checks the response."""
        before = self.deaths
        floors = dict(self.journal.floors)
        response = await self.fetch(made.page, made.by(way))
        self.counts["visits"] += 1
        if not response or made.leaves or not response.status:
            return
        self.counts["hits"] += "; hit" in response.fields.get("cache-status", "")
        self.counts["304"] += response.status == 304
        place, text = self.site.place(made.host, way.secure), f"{way}: {made}"
        judge(self.journal, floors, place, made, text, response)
        if response.complete or not (self.died(before) or self.pages.may_be_cut(made.page)):
            whole(self.journal, made, text, response)

    async def fetch(self, page: Page, sent: Sending) -> Response | None:
        """Sends a request; a connection that breaks, as a killed server's do, has no response."""
        self.counts[sent.way.protocol] += 1
        before = self.deaths
        text = f"{sent.way}: {sent.method} {sent.target}"
        try:
            return await self.connections.fetch(sent)
        except TimeoutError:
            self.journal.violation("every request ends", page.name, text)
        except Broken as why:
            self.journal.violation("protocols are kept", page.name, f"{text}: {why}")
        except Reset as why:
            # QUIC may drop the beginning of a response that is reset.
            self.counts["reset"] += 1
            if not self.pages.may_be_cut(page):
                self.journal.violation("every response is whole", page.name, f"{text}: {why}")
        except ConnectionError as why:
            self.counts["lost"] += 1
            crossed = self.args.chaos and isinstance(why, Crossed)
            if not crossed and not self.died(before) and not isinstance(why, Refused):
                self.journal.violation("connections last", page.name, f"{text}: {why!r}")
            await asyncio.sleep(0.05)
        return None

    def died(self, before: int) -> bool:
        """Whether the server was dead at some moment since then."""
        return before % 2 == 1 or self.deaths != before

    async def change(self, draw: random.Random, page: Page) -> None:
        """Changes a page and purges it, often while it is being fetched; then requests it."""
        order = choose(draw, self.site.cache, page, self.args.wide)
        made = self.visit(draw, self.pages.all[draw.choice(self.pages.around(page.name))])
        ahead = draw.choice([0, 1, 1, 2])
        async with asyncio.TaskGroup() as group:
            for _ in range(ahead):
                group.create_task(self.request(made, self.way(draw, made.host)))
            if ahead:
                with suppress(TimeoutError):
                    arrived = self.origin.event(self.origin.arrived, page.name)
                    await asyncio.wait_for(arrived.wait(), SOON)
            await self.order(draw, order, page)
            for _ in range(2):
                await self.request(made, self.way(draw, made.host))

    async def order(self, draw: random.Random, order: Order, page: Page) -> None:
        """Changes a page and purges it."""
        sent = prepare(draw, order, self.pages, page, self.args.wide)
        if sent is None:
            return
        about = {name for _, name, _, _ in sent.reaches} | around(page)
        way = self.way(draw, HOST)
        self.journal.note(about, f"{page.name} becomes v{page.version}; {way}: {sent} begins")
        if order is Order.COMMAND:
            done, status = await self.server.purge(sent.fields[0][1]), 0
        else:
            response = await self.fetch(
                page, Sending(way, sent.method, sent.target, sent.fields, sent.body)
            )
            if not response:
                self.journal.note(about, f"v{page.version}: {order} is lost")
                return
            status = response.status
            # A zone without the page says that nothing was found.
            done = status == 200 or (self.site.cache is Cache.ZONE and status == 404)
        self.journal.note(about, f"v{page.version}: {order} ends: {status or done}")
        if not done:
            # The command finds no server that is dead, or whose pid file is being replaced.
            if order is not Order.COMMAND or not self.args.chaos:
                self.journal.violation("orders are taken", page.name, f"{sent}: {status}")
            return
        self.counts["purges"] += 1
        for host, name, audience, version in sent.reaches:
            place = self.site.place(host, way.secure)
            self.journal.lift(place, name, audience, version)
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
            self.deaths += fate is Fate.DEATH
            if not await self.server.meet(fate, draw):
                self.journal.violation("signals are obeyed", "", f"{fate}: not done in time")
            if fate is Fate.DEATH:
                self.connections.died()
                self.deaths += 1
            self.journal.one_serves()
            self.journal.note(set(), f"{fate} ends")
            self.counts[fate] += 1
