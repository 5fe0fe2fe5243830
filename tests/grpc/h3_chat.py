"""Owns: one gRPC call over HTTP/3, whose messages wait for one another.

Its arguments are the port and the file of the certificate.
"""

import asyncio
import os
import sys

import pylsqpack
from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from h3_peer import DATA, HEADERS, Peer, field_section, frame  # noqa: E402

HEAD = [
    (":method", "POST"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/test.Echo/Chat"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]


def message(text: bytes) -> bytes:
    """A message of gRPC."""
    return b"\0" + len(text).to_bytes(4, "big") + text


async def chat(port: int, certificate: str) -> None:
    """Sends each message when the answer to the last one is there."""
    configuration = QuicConfiguration(
        alpn_protocols=["h3"], is_client=True, server_name="localhost"
    )
    configuration.load_verify_locations(certificate)
    async with connect(
        "127.0.0.1", port, configuration=configuration, create_protocol=Peer
    ) as peer:
        peer.control()
        stream = peer.request(frame(HEADERS, field_section(HEAD)), fin=False)
        said = b""
        for at in range(20):
            peer.write(stream, frame(DATA, message(b"%d" % at)))
            said += message(b"re: %d" % at)
            assert await peer.until(lambda: peer.body(stream) == said), peer.body(stream)  # noqa: B023
        assert stream not in peer.ended
        peer.write(stream, b"", fin=True)
        assert await peer.until(lambda: stream in peer.ended)
        last = [payload for kind, payload in peer.frames(stream) if kind == HEADERS][-1]
        fields = pylsqpack.Decoder(0, 0).feed_header(stream, last)[1]
        assert (b"grpc-status", b"0") in fields, fields


asyncio.run(chat(int(sys.argv[1]), sys.argv[2]))
