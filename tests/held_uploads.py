"""A client with more uploads on one connection than the server reads at once.

`held_uploads.py CERT CASE@PORT`: `h2.held` and `h3.held` begin uploads that the server does not
read yet, fill all windows that these have, and upload to another location over the same connection;
`h2.queued` and `h3.queued` begin uploads that the server takes one by one; `h3.left` resets held
ones and stops no response. A case tells its statuses in one line.
"""

import asyncio
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration

import h3_peer
from lifetimes import DATA, HEADERS, RST, SETTINGS, WINDOW, Http2, frame, head

SIZE = 1 << 20
COUNT = 20
LIMIT = 60.0


class Uploads(Http2):
    """Uploads that obey flow control."""

    def __init__(self, port, cert):
        super().__init__(port, cert)
        self.conn_window, self.initial = 65535, 65535
        self.windows, self.left, self.outcomes = {}, {}, {}

    def begin(self, stream, path):
        self.ask(stream, path, "POST", ends=False)
        self.windows[stream], self.left[stream] = self.initial, SIZE

    def pump(self):
        """Sends what the windows allow, a frame of each upload in turn."""
        moved = True
        while moved:
            moved = False
            for stream, left in list(self.left.items()):
                size = min(left, self.conn_window, self.windows[stream], 16384)
                if stream in self.outcomes or size <= 0:
                    continue
                self.send(frame(DATA, size == left, stream, bytes(size)))
                self.conn_window -= size
                self.windows[stream] -= size
                self.left[stream] -= size
                if size == left:
                    del self.left[stream]
                moved = True

    def step(self):
        """Takes one frame."""
        one = self.frame()
        if one is None:
            raise ConnectionError
        kind, flags, stream, payload = one
        if kind == WINDOW:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self.conn_window += more
            elif stream in self.windows:
                self.windows[stream] += more
        elif kind == SETTINGS and not flags & 1:
            for at in range(0, len(payload), 6):
                if payload[at : at + 2] == b"\0\4":
                    self.initial = int.from_bytes(payload[at + 2 : at + 6], "big")
            self.send(frame(SETTINGS, 1, 0))
        elif kind == HEADERS:
            # The static table has 200 at 8 (RFC 7541, Appendix A); others are of no interest here.
            self.outcomes[stream] = "200" if payload[0] == 0x88 else "other"
        elif kind == RST:
            self.outcomes.setdefault(stream, "reset")

    def settle(self, streams):
        while not all(stream in self.outcomes for stream in streams):
            self.pump()
            self.step()
        return " ".join(sorted(self.outcomes[stream] for stream in streams))


def over_h2(case, port, cert):
    conn = Uploads(port, cert)
    while conn.initial == 65535:
        conn.step()
    held = range(1, 2 * COUNT, 2)
    for stream in held:
        conn.begin(stream, "/" + case)
    conn.pump()
    if case == "queued":
        return conn.settle(held)
    conn.begin(99, "/ok")
    return conn.settle([99])


async def over_h3(case, port):
    config = QuicConfiguration(
        is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost"
    )
    async with connect(
        "127.0.0.1", port, configuration=config, create_protocol=h3_peer.Peer
    ) as peer:
        peer.control()

        def begin(path):
            pseudo = [
                (name, {":method": "POST", ":path": path}.get(name, value))
                for name, value in h3_peer.PSEUDO
            ]
            body = h3_peer.frame(h3_peer.DATA, bytes(SIZE))
            return peer.request(h3_peer.head(pseudo=pseudo) + body)

        held = [begin("/queued" if case == "queued" else "/held") for _ in range(COUNT)]
        streams = held if case == "queued" else [begin("/ok")]
        told = [await peer.outcome(stream, LIMIT) for stream in streams]
        if case == "left":
            for stream in held:
                peer._quic.reset_stream(stream, 0x10C)
            peer.transmit()
            told.append(await peer.outcome(begin("/ok"), LIMIT))
            # The server is to notice before the connection ends.
            await asyncio.sleep(1)
        return " ".join(sorted(one.removeprefix("status ") for one in told))


def main():
    cert = sys.argv[1]
    name, port = sys.argv[2].split("@")
    proto, case = name.split(".")
    if proto == "h2":
        print(over_h2(case, int(port), cert), flush=True)
    else:
        print(asyncio.run(over_h3(case, int(port))), flush=True)


if __name__ == "__main__":
    main()
