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

from h3_peer import DATA, Peer, frame, head, replaced

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
    # Where the first came late, it was the last: the second is rejected (RFC 9114 §5.2), or the
    # connection has ended in order meanwhile.
    last = ("status 200", "reset 0x10b", "conn 0x100")
    return f"{first} {'and its last' if second in last else second}"


def path(name, method="GET"):
    pseudo = [(n, method if n == ":method" else v) for n, v in replaced(":path", name)]
    return head(pseudo=pseudo)


async def keep_alive(peer):
    """Keeps the connection, though not its streams, alive for as long as it stands."""
    while peer.closed is None:
        peer._quic.send_ping(0)
        peer.transmit()
        await asyncio.sleep(0.3)


def ended(outcome):
    return "reset" if outcome.startswith("reset") else outcome


@case
async def half_head(peer):
    """A head that does not end."""
    peer.control()
    peer.pings = asyncio.create_task(keep_alive(peer))
    return ended(await peer.outcome(peer.request(head()[:-5], fin=False), LIMIT))


@case
async def body(peer):
    """A body that does not end."""
    peer.control()
    peer.pings = asyncio.create_task(keep_alive(peer))
    message = path("/upload", "POST") + frame(DATA, b"abc")
    return ended(await peer.outcome(peer.request(message, fin=False), LIMIT))


@case
async def window(peer):
    """An answer for which there is no room."""
    peer.control()
    peer.pings = asyncio.create_task(keep_alive(peer))
    return ended(await ask(peer, path("/brief/hello.txt")))


@case
async def idle(peer):
    """Nothing behind an answer."""
    peer.control()
    await ask(peer)
    await peer.until(lambda: False, LIMIT)
    return "end" if peer.closed is not None else "open"


@case
async def pings(peer):
    """Nothing but PINGs behind an answer."""
    peer.control()
    await ask(peer)
    peer.pings = asyncio.create_task(keep_alive(peer))
    await peer.until(lambda: False, LIMIT)
    return "end" if peer.closed is not None else "open"


@case
async def silence(peer):
    """Nothing but PINGs."""
    peer.control()
    peer.pings = asyncio.create_task(keep_alive(peer))
    await peer.until(lambda: False, LIMIT)
    return "end" if peer.closed is not None else "open"


@case
async def origin(peer):
    """An origin that does not answer."""
    peer.control()
    return await ask(peer, path("/silent"))


@case
async def unreachable(peer):
    """An origin whose kernel leaves the connection unanswered."""
    peer.control()
    return await ask(peer, path("/unreachable"))


@case
async def large_body(peer):
    """A body that is too large, and goes on."""
    peer.control()
    message = path("/small", "POST") + frame(DATA, b"x" * 16000)
    stream = peer.request(message, fin=False)
    # It may be told to send no more before it is answered.
    await peer.until(lambda: stream in peer.ended or stream in peer.resets, LIMIT)
    return f"status {peer.status(stream)}"


@case
async def rate(peer):
    """An answer at a pace."""
    peer.control()
    stream = peer.request(path("/paced/big.bin"))
    await peer.until(lambda: peer.streams.get(stream), LIMIT)
    return "some" if peer.streams.get(stream) else "none"


# Clients that give no room.
WINDOWLESS = {"window"}


async def run(name, port, cert):
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        server_name="localhost",
        cafile=cert,
        verify_mode=ssl.CERT_REQUIRED,
        idle_timeout=300.0,
    )
    if name in WINDOWLESS:
        configuration.max_stream_data = 0
    try:
        async with connect(
            "127.0.0.1", port, configuration=configuration, create_protocol=Peer
        ) as peer:
            say(name, await CASES[name](peer))
            await asyncio.sleep(3600)
    except ConnectionError:
        say(name, "end")
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
