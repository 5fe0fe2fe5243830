"""Clients of HTTP/3 that the server has to give up: `h3_leavers.py PORT CASE`.

`vanish` shakes hands and leaves without a word. `deaf` confirms nothing that it gets, though it
gives signs of life until standard input ends; it says `asked` when its answer has come.
"""

import asyncio
import os
import ssl
import sys

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
from h3_peer import Peer, head


async def main(port, case):
    config = QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        verify_mode=ssl.CERT_NONE,
        server_name="localhost",
        idle_timeout=300,
    )
    async with connect("127.0.0.1", port, configuration=config, create_protocol=Peer) as peer:
        if case == "vanish":
            os._exit(0)
        peer._quic._write_ack_frame = lambda *_args, **_named: None
        asyncio.get_running_loop().add_reader(sys.stdin, lambda: os._exit(0))
        peer.control()
        stream = peer.request(head())
        assert await peer.until(lambda: stream in peer.ended)
        print("asked", flush=True)
        while True:
            peer._quic.send_ping(0)
            peer.transmit()
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
