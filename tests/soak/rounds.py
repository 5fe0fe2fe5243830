"""The course of a soak: rounds of mixed traffic, each with a crowd and a rest behind it.

Owns the order of things. Two rounds warm up, the first by the process that was started, the second
by the one that an upgrade put in its place; the rest behind that is what later ones are held to.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from .book import Book
from .people import People
from .place import Place
from .rude import Rude
from .server import Server
from .verdict import Verdict

Job = Callable[[], Awaitable[None]]
REST = 40.0
"""Seconds in which all that was left must have run out: more than twice the longest timeout."""


SILENCE = 60.0
"""Seconds that the server may be silent; a crowd with all descriptors is there for a few."""


class Soak:
    """One soak."""

    def __init__(self, place: Place, server: Server, seed: int, say: Callable[[str], None]) -> None:
        """Everybody who takes part."""
        self.place, self.server, self.say = place, server, say
        self.people, self.rude = People(place, server, seed), Rude(place, seed)
        self.book = Book()
        self.verdict = Verdict(server, self.book)

    def groups(self) -> list[list[Job]]:
        """Jobs: the groups go on side by side, the jobs of one in turn."""
        people, rude, server = self.people, self.rude, self.server
        return [
            [people.file, people.piece, people.conditional, people.page],
            [people.proxied, people.errors, people.limits, people.purge],
            [people.uploads],
            [people.loads, people.loads, people.loads, people.wrk],
            [rude.slow_head, rude.slow_body, rude.slow_reader],
            [rude.garbage, rude.half_handshakes, rude.resets, rude.rapid_reset],
            [rude.vanished, rude.outstayed],
            [server.reload, server.rotate, server.reload, server.reload_in_vain],
        ]

    async def repeat(self, jobs: list[Job], until: float, pause: float) -> None:
        """Does jobs in turn until their time is over: each once at least."""
        turn = 0
        while turn < len(jobs) or time.monotonic() < until:
            job = jobs[turn % len(jobs)]
            await self.book.note(job.__name__, job)
            turn += 1
            await asyncio.sleep(pause)

    async def round(self, seconds: float) -> None:
        """Mixed traffic for so long, then a crowd."""
        until = time.monotonic() + seconds
        groups = self.groups()
        pauses = [0.2] * (len(groups) - 1) + [2.0]
        both = zip(groups, pauses, strict=True)
        await asyncio.gather(*(self.repeat(jobs, until, pause) for jobs, pause in both))
        await self.book.note("crowd", self.crowd)

    async def crowd(self) -> None:
        """A crowd takes all descriptors; when it has left, everybody is served."""
        # A crowd is marked before it is there: what it does is judged by when it happened.
        self.book.crowds.append((time.time(), time.time() + 30))
        self.book.crowds[-1] = await self.rude.crowd(hold=3)
        for protocol in ("h1", "h2", "h3"):
            await self.people.get(protocol, "/small.txt")

    async def upgrade(self) -> None:
        """Another process takes over while people come and go: none of them is refused."""
        is_over = False

        async def comers() -> None:
            while not is_over:
                await self.book.note("file", self.people.file)

        coming = asyncio.create_task(comers())
        await self.book.note("upgrade", self.server.upgrade)
        is_over = True
        await coming

    async def rest(self) -> None:
        """Nobody comes; what is left is written down."""
        sample = await self.server.settle(REST)
        self.verdict.rests.append(sample)
        self.say(
            f"rest: {sample.resident / (1 << 20):.1f} MiB, {sample.descriptors} descriptors, "
            f"{sample.used} slots, {sample.deadlines} deadlines; "
            f"{sum(self.book.done.values())} jobs done, {len(self.book.failed)} failed"
        )

    async def watch(self) -> None:
        """Ends the soak when the server has been silent for longer than it may."""
        answered = time.monotonic()
        while True:
            await asyncio.sleep(3)
            try:
                await self.server.status()
                answered = time.monotonic()
            except Exception as why:
                if time.monotonic() > answered + SILENCE:
                    raise RuntimeError(f"no answer to bolide status for {SILENCE:.0f} s") from why

    async def run(self, minutes: float) -> None:
        """The whole course, about so long, as long as the server is alive."""
        course, watch = (asyncio.create_task(one) for one in (self.course(minutes), self.watch()))
        try:
            await asyncio.wait({course, watch}, return_when=asyncio.FIRST_COMPLETED)
            (watch if watch.done() else course).result()
        finally:
            course.cancel()
            watch.cancel()
            await asyncio.gather(course, watch, return_exceptions=True)

    async def course(self, minutes: float) -> None:
        """The whole course."""
        end = time.monotonic() + 60 * minutes
        length = min(max(60 * minutes / 8, 15), 180)
        self.say(f"warm-up: two rounds of {length:.0f} s with an upgrade between them")
        await self.round(length)
        await self.upgrade()
        await self.round(length)
        await self.rest()
        number = 0
        while number == 0 or time.monotonic() + length < end:
            number += 1
            await self.round(length)
            await self.rest()
        # A client that stays after its last allowed request costs no CPU either.
        stays = self.book.note("outstayed", self.rude.outstayed)
        self.verdict.idle, _ = await asyncio.gather(self.server.idle(), stays)
