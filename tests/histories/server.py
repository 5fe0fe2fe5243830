"""Owns: the server of a history: how it starts, is reloaded, replaced, killed and stopped."""

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from .site import Site

# How long a process may take to start or to end.
GENEROUS = 60
# How long both processes of an upgrade serve.
OVERLAP = 0.2


async def until(happened: Callable[[], bool]) -> bool:
    """Waits until something has happened; whether it has."""
    for _ in range(GENEROUS * 50):
        if happened():
            return True
        await asyncio.sleep(0.02)
    return False


class Fate(StrEnum):
    """What happens to a server under traffic."""

    RELOAD = "reload"
    UPGRADE = "upgrade"
    DEATH = "kill -9"


class Server:
    """The processes of one server, a process group of their own."""

    def __init__(self, bolide: str, site: Site) -> None:
        self.bolide, self.site = bolide, site
        self.configuration = site.home / "bolide.conf"
        self.children: list[subprocess.Popen[bytes]] = []

    def write(self, workers: int) -> None:
        """Writes the configuration."""
        self.configuration.write_text(self.site.configuration(workers))

    async def start(self) -> None:
        """Starts it, and waits until it listens."""
        (self.site.home / "pid").unlink(missing_ok=True)
        with (self.site.home / "output").open("ab") as output:
            command = [self.bolide, "-c", str(self.configuration)]
            self.children.append(
                subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
            )
        for _ in range(GENEROUS * 50):
            with suppress(OSError, ValueError):
                self.pid()
                _, writer = await asyncio.open_connection("127.0.0.1", self.site.clear[0])
                writer.close()
                return
            if self.children[-1].poll() is not None:
                break
            await asyncio.sleep(0.02)
        raise RuntimeError(f"{self.bolide} does not start:\n{self.messages()}")

    def pid(self) -> int:
        """The process that the pid file names."""
        return int((self.site.home / "pid").read_text())

    def messages(self) -> str:
        """What it has written."""
        files = (self.site.home / "output", self.site.home / "error.log")
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    def panics(self) -> list[str]:
        """Lines of messages that no server writes which is well."""
        return [line for line in self.messages().splitlines() if "panic" in line]

    async def meet(self, fate: Fate, draw: random.Random) -> bool:
        """Lets this happen to it; whether it has."""
        match fate:
            case Fate.RELOAD:
                self.write(draw.randint(1, 4))
                os.kill(self.pid(), signal.SIGHUP)
            case Fate.DEATH:
                last = self.pid()
                os.killpg(self.children[-1].pid, signal.SIGKILL)
                await until(lambda: self.ended(last))
                await self.start()
            case Fate.UPGRADE:
                return await self.upgrade()
        return True

    async def upgrade(self) -> bool:
        """Has a new process take over beside the old one, and that one finish."""
        old = self.pid()
        os.kill(old, signal.SIGUSR2)

        def other() -> bool:
            with suppress(OSError, ValueError):
                return self.pid() != old
            return False

        if not await until(other):
            return False
        await asyncio.sleep(OVERLAP)
        os.kill(old, signal.SIGQUIT)
        # A process ignores the next such signal while the one that started it is there.
        return await until(lambda: self.ended(old))

    def ended(self, pid: int) -> bool:
        """Whether a process has ended."""
        for child in self.children:
            child.poll()
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    async def purge(self, tag: str) -> bool:
        """The command that purges a tag; whether it did."""
        child = await asyncio.create_subprocess_exec(
            self.bolide,
            *("cache", "purge", "-c", str(self.configuration), "--tag", tag),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        return await child.wait() == 0

    def stop(self) -> None:
        """Ends what is left of it."""
        for child in self.children:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
