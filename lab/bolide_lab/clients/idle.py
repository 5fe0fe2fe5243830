"""Owns the client whose TLS connections do nothing: it opens, holds, and closes them.

`python -m bolide_lab.clients.idle HOST PORT COUNT SECONDS` prints one line of JSON.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time
from pathlib import Path

from bolide_lab import __version__, machine
from bolide_lab.clients.base import Address, Client, ClientError, tail
from bolide_lab.model import Load, Outcome

PATIENCE_S = 3.0
# A server that takes no more has been asked often enough.
GIVES_UP_AFTER = 3


class Idle(Client):
    """TLS connections that are only held."""

    name = "idle"
    programs = (sys.executable,)

    def find(self) -> Path | None:
        """This Python."""
        return Path(sys.executable)

    def version(self) -> str:
        """The laboratory's own."""
        return f"bolide-lab {__version__}"

    def supports(self, load: Load) -> str | None:
        """As many connections as there may be open files, TLS only."""
        if load.protocol != "h1-tls":
            return "holds TLS connections over TCP only"
        allowed = machine.raise_open_files()
        if load.connections + 100 > allowed:
            return f"needs {load.connections + 100} open files, {allowed} are allowed (ulimit -Hn)"
        return None

    def argv(self, load: Load, address: Address) -> list[str]:
        """This module as a program."""
        where = [address.host, str(address.tls_port)]
        how_many = [str(load.connections), str(load.seconds or 1.0)]
        return [sys.executable, "-m", "bolide_lab.clients.idle", *where, *how_many]

    def was_limit(self, outcome: Outcome, busy: float) -> bool:
        """Memory is measured, whatever the speed of opening."""
        return False

    def parse(self, text: str) -> Outcome:
        """The line of JSON."""
        try:
            said = json.loads(text.strip().splitlines()[-1])
            return Outcome(
                seconds=said["opening_s"],
                requests=said["open"],
                failed=said["failed"],
                requests_per_s=said["open"] / max(said["opening_s"], 1e-9),
                extra={"held_s": said["held_s"]},
            )
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise ClientError(f"no report of idle connections: {tail(text)}") from error


def hold(host: str, port: int, count: int, seconds: float) -> dict[str, float]:
    """Opens `count` connections one after the other and holds them for `seconds`."""
    machine.raise_open_files()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    held: list[ssl.SSLSocket] = []
    failed = 0
    start = time.monotonic()
    refused = 0
    while len(held) + failed < count and refused < GIVES_UP_AFTER:
        try:
            plain = socket.create_connection((host, port), PATIENCE_S)
            held.append(context.wrap_socket(plain, server_hostname="localhost"))
            refused = 0
        except OSError:
            failed += 1
            refused += 1
    failed = count - len(held)
    opening = time.monotonic() - start
    time.sleep(seconds)
    alive = 0
    for one in held:
        # A server that closed has sent something; an idle connection has nothing to read.
        one.settimeout(0)
        try:
            alive += 1 if one.recv(1) else 0
        except (ssl.SSLWantReadError, BlockingIOError):
            alive += 1
        except OSError:
            continue
    for one in held:
        one.close()
    lost = len(held) - alive
    return {"opening_s": opening, "open": alive, "failed": failed + lost, "held_s": seconds}


if __name__ == "__main__":
    print(json.dumps(hold(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
