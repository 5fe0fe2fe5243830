"""Jobs of well-behaved clients, by curl, h2load and wrk, which share no code with the server.

Owns what such a client may expect: each job raises `Failure` unless it got exactly that.
"""

import asyncio
import hashlib
import random
import re
import subprocess
from dataclasses import dataclass

from .book import Failure
from .origin import content
from .place import FILES, TOOLS, WANTED, Place
from .server import Server

PATIENCE = 120.0
"""Seconds after which a client gives up: nothing here takes as long on a slow machine."""
PROTOCOLS = ("h1", "h1s", "h2", "h3")


@dataclass
class Reply:
    """An answer."""

    status: int
    version: str
    head: str
    body: bytes

    def field(self, name: str) -> str:
        """A field of its head; nothing if it is not there."""
        found = re.search(rf"(?im)^{name}: *(.*?)\r?$", self.head)
        return found.group(1) if found else ""


async def program(*command: str, data: bytes | None = None) -> tuple[int, bytes, str]:
    """Runs a program: how it ended, and what it said."""
    pipe = subprocess.PIPE
    run = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(run.communicate(data), PATIENCE)
    finally:
        if run.returncode is None:
            run.kill()
            await run.wait()
    return run.returncode or 0, out, err.decode(errors="replace")


def tool(name: str) -> str:
    """A program that scripts/setup.sh installs."""
    path = TOOLS / "bin" / name
    return str(path) if path.exists() else name


class People:
    """Well-behaved clients of a place."""

    def __init__(self, place: Place, server: Server, seed: int) -> None:
        """Their chance is seeded."""
        self.place, self.server, self.chance = place, server, random.Random(seed)

    def address(self, protocol: str, path: str) -> str:
        """A URL."""
        if protocol == "h1":
            return f"http://localhost:{self.place.http}{path}"
        return f"https://localhost:{self.place.https}{path}"

    async def curl(self, protocol: str, path: str, *more: str, data: bytes | None = None) -> Reply:
        """Asks for something; whatever is answered, the answer must be whole."""
        versions = {"h1": "--http1.1", "h1s": "--http1.1", "h2": "--http2", "h3": "--http3-only"}
        command = [tool("curl-h3"), "-sS", "-k", "-4", versions[protocol], "-D", "/dev/stderr"]
        command += ["--cacert", str(self.place.dir / "cert.pem"), *more]
        code, out, err = await program(*command, self.address(protocol, path), data=data)
        heads = re.findall(r"(?m)^HTTP/([0-9.]+) (\d+)", err)
        if code != 0 or not heads:
            raise Failure(f"{protocol} {path} {' '.join(more)}: curl ended with {code}: {err}")
        return Reply(int(heads[-1][1]), heads[-1][0], err, out)

    async def get(self, protocol: str, path: str, *more: str, status: int = 200) -> Reply:
        """The same, if the status is this one."""
        reply = await self.curl(protocol, path, *more)
        if reply.status != status:
            raise Failure(f"{protocol} {path}: status {reply.status} instead of {status}")
        return reply

    def any(self) -> str:
        """A version of HTTP."""
        return self.chance.choice(PROTOCOLS)

    async def file(self) -> None:
        """A file, whole, by any version."""
        name = self.chance.choice(["small.txt", "page.html", "middle.bin"])
        reply = await self.get(self.any(), f"/{name}", "--compressed")
        if reply.body != content(FILES[name]):
            raise Failure(f"/{name} is another one: {len(reply.body)} bytes")

    async def piece(self) -> None:
        """A range of a file."""
        first = self.chance.randrange(FILES["big.bin"] - 200_000)
        last = first + self.chance.randrange(1, 200_000)
        reply = await self.get(self.any(), "/big.bin", "-r", f"{first}-{last}", status=206)
        whole = content(last + 1)
        if reply.body != whole[first:]:
            raise Failure(f"bytes {first}-{last} are others")

    async def conditional(self) -> None:
        """A file that did not change."""
        protocol = self.any()
        etag = (await self.get(protocol, "/middle.bin", "-I")).field("etag")
        await self.get(protocol, "/middle.bin", "-H", f"If-None-Match: {etag}", status=304)

    async def page(self) -> None:
        """A page that PHP lets be kept, and one that nginx's zone keeps."""
        number = self.chance.randrange(20)
        reply = await self.get(self.any(), f"/page.php?n={number}", "--compressed")
        if not reply.body.startswith(f"page {number} ".encode()):
            raise Failure(f"page {number} is {reply.body[:20]!r}")
        reply = await self.get(self.any(), f"/kept.php?n={self.chance.randrange(5)}")
        if not reply.body.startswith(b"kept ") or not reply.field("x-kept"):
            raise Failure(f"not what kept.php says: {reply.head}")

    async def proxied(self) -> None:
        """Answers of an origin, kept and not, framed in each way."""
        size = self.chance.choice([10, 3000, 200_000])
        path = self.chance.choice(["/origin/length", "/origin/chunked", "/proxied/length"])
        reply = await self.get(self.any(), f"{path}?n={size}")
        if reply.body != content(size):
            raise Failure(f"{path} of {size} is another one: {len(reply.body)} bytes")
        if (await self.get(self.any(), "/origin/hints")).body != b"ok":
            raise Failure("not what follows the hints")

    async def upload(self, path: str, size: int, *more: str) -> None:
        """A body that arrives as it was sent."""
        body = content(size)
        words = ["--data-binary", "@-", "-H", "Content-Type: application/octet-stream", *more]
        protocol = self.any()
        reply = await self.curl(protocol, path, *words, data=body)
        expected = f"{size} {hashlib.sha1(body).hexdigest()}".encode()
        if reply.status != 200 or reply.body != expected:
            told = f"{reply.status} {reply.body[:60]!r}"
            raise Failure(f"{protocol} {path}: {size} bytes arrived as {told}")

    async def uploads(self) -> None:
        """Bodies for the origin and for PHP, small and large, with and without a length."""
        size = self.chance.choice([1, 20_000, 700_000, 5_000_000])
        path = self.chance.choice(["/origin/sink", "/upload.php"])
        # curl cannot send chunks over HTTP/2 and 3, where the field means nothing and is left out.
        await self.upload(path, size, *self.chance.choice([(), ("-H", "Expect:")]))
        if self.chance.random() < 0.3:
            await self.upload(path, 2_000_000, "--limit-rate", "400k")

    async def errors(self) -> None:
        """Requests that must fail, and how."""
        await self.get(self.any(), "/none", status=404)
        await self.get(self.any(), f"/origin/die?{WANTED}02", status=502)
        command = [tool("curl-h3"), "-sS", "-k", "-4", "-o", "/dev/null", "--http2"]
        code, _, _ = await program(*command, self.address("h2", "/origin/cut"))
        if code == 0:
            raise Failure("an answer that the origin cut seems whole")

    async def limits(self) -> None:
        """More requests than may come: each is answered or refused, none is lost."""
        many = [self.curl(self.any(), "/asked/small.txt") for _ in range(8)]
        many += [self.curl(self.any(), "/open/length?ms=300") for _ in range(4)]
        for reply in await asyncio.gather(*many):
            if reply.status not in (200, 429):
                raise Failure(f"status {reply.status} behind a limit")

    async def purge(self) -> None:
        """What is purged is made anew."""
        number = 100 + self.chance.randrange(5)
        path = f"/page.php?n={number}"
        before = (await self.get("h1", path)).body
        if self.chance.random() < 0.5:
            reply = await self.get("h1", path, "-X", "PURGE")
            if not reply.field("x-purged-objects"):
                raise Failure(f"PURGE purged nothing: {reply.head}")
        else:
            # By pid: the configuration file may be broken at the moment.
            words = ["cache", "purge", "--tag", f"n{number}", "--pid", str(self.server.pid)]
            code, out, err = await program(str(self.server.binary), *words)
            if code != 0 or not out.startswith(b"purged: "):
                raise Failure(f"the tag is not purged: {out!r} {err}")
        if (await self.get("h1", path)).body == before:
            raise Failure(f"{path} is what it was before the purge")

    async def load(
        self, protocol: str, path: str, requests: int, clients: int, at_once: int
    ) -> None:
        """Many requests by h2load: none may fail."""
        version = {"h1s": "--h1", "h2": "--alpn-list=h2", "h3": "--alpn-list=h3"}[protocol]
        many = ["-n", str(requests), "-c", str(clients), "-m", str(at_once)]
        url = self.address(protocol, path).replace("localhost", "127.0.0.1")
        code, out, err = await program(tool("h2load-h3"), version, *many, url)
        report = out.decode(errors="replace")
        done = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", report)
        good = re.search(r"status codes: (\d+) 2xx", report)
        if code != 0 or not done or not good or int(good.group(1)) != requests:
            lines = [line for line in report.splitlines() if re.match("(requests|status)", line)]
            raise Failure(f"h2load {protocol} {path} ended with {code}: {' '.join(lines)} {err}")

    async def loads(self) -> None:
        """One of some loads."""
        protocol = self.chance.choice(["h1s", "h2", "h3"])
        path, requests = self.chance.choice(
            [
                ("/quiet.txt", 2000),
                ("/page.html", 500),
                ("/page.php?n=1", 500),
                ("/kept.php?n=1", 300),
                ("/upload.php", 30),
                ("/proxied/length?n=3000", 500),
                ("/origin/length?n=3000", 100),
            ]
        )
        await self.load(protocol, path, requests, 5, 1 if protocol == "h1s" else 10)

    async def wrk(self) -> None:
        """Requests in the clear by wrk."""
        url = self.address("h1", "/quiet.txt").replace("localhost", "127.0.0.1")
        code, out, err = await program(tool("wrk"), "-t1", "-c8", "-d2", "--timeout", "60", url)
        report = out.decode(errors="replace")
        if code != 0 or "Socket errors" in report or "Non-2xx" in report:
            raise Failure(f"wrk ended with {code}: {report} {err}")
