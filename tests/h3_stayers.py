"""HTTP/3 clients that reach a limit and stay open afterwards.

Each argument behind the certificate is `case@port`; all run side by side. A case tells in one line
what it got when it has reached its limit, and keeps its connection until standard input ends.
"""

import asyncio
import json
import os
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration

from h3_peer import Peer, head

LIMIT = 60.0
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


async def ask(peer, message=None):
    return await peer.outcome(peer.request(message or head()), LIMIT)


@case
async def requests(peer):
    """As many requests as one connection may make."""
    peer.control()
    return " ".join([await ask(peer) for _ in range(3)])


@case
async def age(peer):
    """A request when the connection is older than it may become."""
    peer.control()
    first = await ask(peer)
    await asyncio.sleep(1.1)
    second = await ask(peer)
    # Where the first came late, the connection has ended in order meanwhile.
    return f"{first} {'and its last' if second in ('status 200', 'conn 0x100') else second}"


async def run(name, port, cert):
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        server_name="localhost",
        cafile=cert,
        verify_mode=ssl.CERT_REQUIRED,
        idle_timeout=300.0,
    )
    try:
        async with connect(
            "127.0.0.1", port, configuration=configuration, create_protocol=Peer
        ) as peer:
            say(name, await CASES[name](peer))
            await asyncio.sleep(3600)
    except Exception as error:
        say(name, f"{type(error).__name__}: {error}")


def say(name, got):
    print(json.dumps({"case": name, "got": got}), flush=True)


async def main(cert, wanted):
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: os._exit(0))
    pairs = [one.split("@") for one in wanted]
    await asyncio.gather(*(run(name, int(port), cert) for name, port in pairs))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
