#!/usr/bin/env python3
"""What a QUIC client of one server finds at another one that a balancer moves it to.

usage: cluster_quic.py reset CERTIFICATE PORT OTHER...   are its resets those that PORT told?
       cluster_quic.py early CERTIFICATE PORT OTHER      is its early data accepted at OTHER?

One line for each OTHER: "reset" (with the token that the client was told), "another reset" or
"silence"; or for each server in turn, whether it resumed and took early data.
"""

import asyncio
import os
import socket
import ssl
import sys

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration

from h3_peer import Peer, head

TOKEN = 16
# RFC 9000 §10.3: an endpoint answers with less than it got, and a reset has 21 bytes at least.
LENGTH = 60


def configuration(cert, **more):
    made = QuicConfiguration(alpn_protocols=["h3"], server_name="localhost", **more)
    made.load_verify_locations(cert)
    made.verify_mode = ssl.CERT_NONE
    return made


def reset_of(port, cid, token):
    """What a server says to a packet of a connection that it does not know."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(2.0)
        for _ in range(5):
            first = bytes([0x40 | os.urandom(1)[0] & 0x3F])
            client.sendto(first + cid + os.urandom(LENGTH), ("127.0.0.1", port))
            try:
                reply = client.recv(2048)
            except socket.timeout:
                continue
            return "reset" if reply[-TOKEN:] == token else "another reset"
    return "silence"


async def reset(cert, port, *others):
    async with connect(
        "127.0.0.1", port, configuration=configuration(cert), create_protocol=Peer
    ) as peer:
        peer.control()
        got = await peer.outcome(peer.request(head()))
        assert got == "status 200", got
        cid = peer._quic._peer_cid
        assert any(cid.stateless_reset_token), "the server told no token"
        loop = asyncio.get_running_loop()
        for other in others:
            asked = (other, cid.cid, cid.stateless_reset_token)
            print(await loop.run_in_executor(None, reset_of, *asked))
        # Nobody has told the client anything meanwhile: the connection goes on.
        got = await peer.outcome(peer.request(head()))
        assert got == "status 200", got


async def visit(cert, port, ticket):
    """A request that leaves with the first flight, if the ticket allows that."""
    tickets = []
    async with connect(
        "127.0.0.1",
        port,
        configuration=configuration(cert, session_ticket=ticket),
        create_protocol=Peer,
        session_ticket_handler=tickets.append,
        wait_connected=ticket is None,
    ) as peer:
        peer.control()
        got = await peer.outcome(peer.request(head()))
        await peer.until(lambda: tickets, 5)
        tls = peer._quic.tls
        resumed = "resumed" if tls.session_resumed else "anew"
        early = "early" if tls.early_data_accepted else "not early"
        return f"{got} {resumed} {early}", tickets[-1] if tickets else None


async def early(cert, port, other):
    _, ticket = await visit(cert, port, None)
    assert ticket.max_early_data_size, "the ticket allows no early data"
    said, _ = await visit(cert, other, ticket)
    print(said)
    said, _ = await visit(cert, port, ticket)
    print(said)
    said, _ = await visit(cert, port, ticket)
    print(said)


def main():
    what, cert, *ports = sys.argv[1:]
    asyncio.run({"reset": reset, "early": early}[what](cert, *map(int, ports)))


main()
