"""HTTP/3 clients that shake hands, ask nothing and stay: `h3_crowd.py PORT COUNT`.

It says `here` when each has shaken hands or was refused, and stays until standard input ends.
"""

import asyncio
import os
import ssl
import sys

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
from h3_peer import Peer


async def stay(port, arrived):
    config = QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        verify_mode=ssl.CERT_NONE,
        server_name="localhost",
        idle_timeout=300,
    )
    try:
        async with connect("127.0.0.1", port, configuration=config, create_protocol=Peer):
            arrived.release()
            await asyncio.sleep(3600)
    except ConnectionError:
        arrived.release()


async def main(port, count):
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: os._exit(0))
    arrived = asyncio.Semaphore(0)
    clients = [asyncio.create_task(stay(port, arrived)) for _ in range(count)]
    for _ in clients:
        await arrived.acquire()
    print("here", flush=True)
    await asyncio.gather(*clients)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
