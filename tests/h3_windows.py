"""Clients of HTTP/3 that ask for much and take next to nothing of it: `h3_windows.py PORT PATH`.

Opens connections with many streams whose windows hold a head and little more, says `open` when the
server has filled all of them, and leaves at the end of standard input.
"""

import asyncio
import ssl
import sys

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
from h3_peer import Peer, head, replaced

CONNECTIONS, STREAMS, WINDOW = 20, 100, 1000


async def one(port, path, ready, leave):
    # The windows of the requests' streams are those that we offer for streams of our own.
    config = QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        verify_mode=ssl.CERT_NONE,
        server_name="localhost",
        idle_timeout=300,
        max_stream_data=WINDOW,
    )
    async with connect("127.0.0.1", port, configuration=config, create_protocol=Peer) as peer:
        # Windows stay as they are: nothing that was read is given back.
        peer._quic._write_stream_limits = lambda *_args, **_named: None
        peer._quic._write_connection_limits = lambda *_args, **_named: None
        peer.control()
        request = head(pseudo=replaced(":path", path))
        streams = [peer.request(request) for _ in range(STREAMS)]
        full = lambda: all(len(peer.streams.get(stream, b"")) >= WINDOW for stream in streams)
        assert await peer.until(full, 120), [len(peer.streams.get(stream, b"")) for stream in streams]
        assert peer.closed is None
        ready()
        await leave.wait()


async def main(port, path):
    leave, count = asyncio.Event(), 0

    def ready():
        nonlocal count
        count += 1
        if count == CONNECTIONS:
            print("open", flush=True)

    def read():
        sys.stdin.buffer.read()
        return None

    async def wait_for_end():
        await asyncio.get_running_loop().run_in_executor(None, read)
        leave.set()

    await asyncio.gather(wait_for_end(), *(one(port, path, ready, leave) for _ in range(CONNECTIONS)))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
