"""The program under test: its processes, signals, what it says of itself, and its logs.

Owns which process is the server at the moment: an upgrade puts another one in its place.
"""

import asyncio
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .place import Place

SLABS = ("tcp", "quic", "exchanges", "post_actions", "fetches", "links")
PR_SET_CHILD_SUBREAPER = 36
GENEROUS = 60.0
"""Seconds in which everything that must happen happens, on a slow machine too."""


@dataclass
class Sample:
    """What the server held at a moment."""

    at: float
    pid: int
    configuration: int
    resident: int
    anonymous: int
    descriptors: int
    threads: int
    deadlines: int
    quic_states: int
    slots: dict[str, int]
    made: dict[str, int]
    cache_objects: int
    cache_bytes: int

    def row(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self)

    @property
    def used(self) -> int:
        """Slots in use, of all slabs."""
        return sum(self.slots.values())


def ticks(pid: int) -> dict[str, float]:
    """Seconds of processor time that each thread has had."""
    spent = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "stat").read_text()
        except OSError:
            continue
        name, rest = text.split("(", 1)[1].rsplit(")", 1)
        words = rest.split()
        both = int(words[11]) + int(words[12])
        spent[f"{name} {task.name}"] = both / os.sysconf("SC_CLK_TCK")
    return spent


async def until(what: str, is_so: Callable[[], bool], seconds: float = GENEROUS) -> None:
    """Waits for something that must happen."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        await asyncio.sleep(0.05)


class Server:
    """The server of a place."""

    def __init__(self, binary: Path, place: Place) -> None:
        """Starts it."""
        self.binary, self.place = binary, place
        # What an upgrade leaves behind becomes our child, so that none outlives us.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        self.output = (place.dir / "output").open("ab")
        command = [str(binary), "-c", str(place.conf)]
        self.child = subprocess.Popen(command, stdout=self.output, stderr=self.output)
        self.pid = self.child.pid
        self.rotations = 0

    @property
    def pid_file(self) -> int:
        """The process that the pid file names; 0 if there is none."""
        try:
            return int((self.place.dir / "logs/pid").read_text())
        except (OSError, ValueError):
            return 0

    def is_alive(self, pid: int = 0) -> bool:
        """Whether a process runs."""
        try:
            state = Path(f"/proc/{pid or self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    def send(self, sent: signal.Signals, pid: int = 0) -> None:
        """Sends a signal."""
        os.kill(pid or self.pid, sent)

    async def status(self) -> dict[str, Any]:
        """What it says that it holds."""
        command = [str(self.binary), "status", "--json", "--pid", str(self.pid)]
        pipe = subprocess.PIPE
        asked = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        try:
            told, why = await asyncio.wait_for(asked.communicate(), GENEROUS / 2)
        finally:
            if asked.returncode is None:
                asked.kill()
                await asked.wait()
        if asked.returncode != 0:
            raise RuntimeError(why.decode(errors="replace").strip())
        answer: dict[str, Any] = json.loads(told)
        if not all(one["answers"] for one in answer["workers"]):
            raise RuntimeError("a worker does not answer")
        return answer

    async def sample(self) -> Sample:
        """What it holds now."""
        told = await self.status()
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        memory = dict(line.split(":", 1) for line in lines)
        workers = told["workers"]
        cache = told["cache"] or {"objects": 0, "bytes": 0}

        def kib(name: str) -> int:
            return int(memory[name].split()[0]) * 1024

        def total(name: str) -> int:
            return sum(one[name] for one in workers)

        def slabs(figure: str) -> dict[str, int]:
            return {name: sum(one[name][figure] for one in workers) for name in SLABS}

        return Sample(
            at=time.time(),
            pid=self.pid,
            configuration=told["configuration"],
            resident=kib("VmRSS"),
            anonymous=kib("RssAnon"),
            descriptors=len(list(Path(f"/proc/{self.pid}/fd").iterdir())),
            threads=int(memory["Threads"]),
            deadlines=total("deadlines"),
            quic_states=total("quic_states"),
            slots=slabs("used"),
            made=slabs("made"),
            cache_objects=cache["objects"],
            cache_bytes=cache["bytes"],
        )

    async def settle(self, seconds: float) -> Sample:
        """Waits until it holds nothing for anybody, for so long at most."""
        deadline = time.monotonic() + seconds
        while True:
            sample = await self.sample()
            is_quiet = sample.used + sample.quic_states + sample.deadlines == 0
            if is_quiet or time.monotonic() > deadline:
                return sample
            await asyncio.sleep(0.5)

    async def reload(self) -> None:
        """Has it read a changed configuration, and waits until all workers have it."""
        before = (await self.status())["configuration"]
        self.place.generation += 1
        self.place.write()
        self.send(signal.SIGHUP)
        deadline = time.monotonic() + GENEROUS
        while True:
            told = await self.status()
            if all(one["configuration"] > before for one in told["workers"]):
                return
            if time.monotonic() > deadline:
                raise TimeoutError("the new configuration is not in force")
            await asyncio.sleep(0.2)

    async def reload_in_vain(self) -> None:
        """Has it read a configuration with a mistake, which it must refuse."""
        before = (await self.status())["configuration"]
        self.place.write(mistake="soak_mistake on;\n")
        refused = self.refusals()
        self.send(signal.SIGHUP)
        await until("the mistake to be told", lambda: self.refusals() > refused)
        self.place.write()
        if (await self.status())["configuration"] != before:
            raise RuntimeError("a configuration with a mistake came into force")

    def refusals(self) -> int:
        """How often a configuration was refused."""
        return sum("soak_mistake" in line for line in self.log_lines("error"))

    async def rotate(self) -> None:
        """Renames the logs and has them opened again."""
        self.rotations += 1
        logs = self.place.dir / "logs"
        for name in ("access.log", "error.log"):
            (logs / name).rename(logs / f"{name}.{self.rotations}")
        self.send(signal.SIGUSR1)
        await until("new logs", lambda: (logs / "access.log").exists())
        await until("new logs", lambda: (logs / "error.log").exists())

    async def upgrade(self) -> None:
        """Has another process take its place."""
        old = self.pid
        self.send(signal.SIGUSR2)
        await until("the successor's pid", lambda: self.pid_file not in (0, old))
        successor = self.pid_file
        self.send(signal.SIGQUIT, old)
        await until("the old process's end", lambda: not self.is_alive(old))
        self.pid = successor
        if not self.is_alive():
            raise RuntimeError("the successor has ended")

    def log_lines(self, which: str) -> list[str]:
        """All lines of the error log or the access log, of all files that it had."""
        lines: list[str] = []
        found = (self.place.dir / "logs").glob(f"{which}.log*")

        def number(path: Path) -> int:
            last = re.search(r"\.(\d+)$", path.name)
            return int(last.group(1)) if last else 1 << 30

        for path in sorted(found, key=number):
            lines += path.read_text(errors="replace").splitlines()
        return lines

    async def idle(self) -> dict[str, float]:
        """Each thread's share of a core when nobody asks anything: the best of some windows."""
        window, best = 3.0, {}
        for _ in range(10):
            before, start = ticks(self.pid), time.monotonic()
            await asyncio.sleep(window)
            spent = time.monotonic() - start
            after = ticks(self.pid)
            best = {
                name: round((at - before.get(name, 0)) / spent, 4) for name, at in after.items()
            }
            if all(share <= 0.05 for share in best.values()):
                break
        return best

    def kill(self) -> None:
        """Leaves no process of it."""
        for pid in {self.child.pid, self.pid, self.pid_file} - {0}:
            if self.is_alive(pid):
                self.send(signal.SIGKILL, pid)

    async def stop(self) -> None:
        """Ends it; it has a while for that."""
        pid = self.pid
        if self.is_alive():
            self.send(signal.SIGTERM)
        try:
            await until("the server's end", lambda: not self.is_alive(pid), 30)
        finally:
            self.kill()
            self.output.close()
