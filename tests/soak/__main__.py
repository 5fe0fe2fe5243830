"""The command `python -m soak`: starts everything, soaks, judges, reports, and leaves nothing.

Owns options and the end; the course is that of `rounds`.
"""

import argparse
import asyncio
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import origin
from .place import ROOT, Place
from .rounds import Soak
from .server import GENEROUS, Server


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long, about")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/bolide")
    parser.add_argument("--report", type=Path, default=ROOT / "target/tmp/soak")
    parser.add_argument("--seed", type=int, default=1, help="of the clients' choices")
    return parser.parse_args()


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def ready(server: Server, place: Place) -> None:
    """Waits until the server and the origin answer."""
    deadline = time.monotonic() + GENEROUS
    while not (listens(place.http) and listens(place.origin) and server.pid_file == server.pid):
        if time.monotonic() > deadline or not server.is_alive():
            raise RuntimeError((place.dir / "output").read_text() or "the server does not start")
        await asyncio.sleep(0.1)


async def soak(asked: argparse.Namespace) -> bool:
    """Soaks; whether all is well."""
    start = time.monotonic()
    if me := asyncio.current_task():
        # Who ends the soak ends everything that it started.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:6.0f} s  {text}", flush=True)

    place = Place()
    app = subprocess.Popen([sys.executable, origin.__file__, str(place.origin)])
    server = Server(asked.binary, place)
    try:
        await ready(server, place)
        course = Soak(place, server, asked.seed, say)
        try:
            await course.run(asked.minutes)
        except Exception as why:
            course.verdict.faults.append(f"the soak broke off: {type(why).__name__}: {why}")
        await course.book.note("stop", server.stop)
        course.verdict.judge()
        print(course.verdict.write(asked.report), end="")
        print(f"report: {asked.report}/report.json")
        return not course.verdict.faults
    finally:
        server.kill()
        app.kill()
        app.wait()
        place.remove()


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(soak(options())) else 1)
