"""Owns: the name server that both servers of a comparison ask, over UDP at the origin's port.

The first label says the answer: `1-2.names.test` has the addresses 127.0.0.1 and 127.0.0.2,
`none.…` is no name, `fail.…` is a failure, `empty.…` and all of IPv6 are without records.
"""

import socket
import threading

HEADER, CODES = 12, {b"none": 3, b"fail": 2}
IPV4 = b"\0\x01\0\x01"


def reply(question: bytes) -> bytes:
    """The answer to a question (RFC 1035 section 4)."""
    first = question[HEADER + 1 : HEADER + 1 + question[HEADER]]
    records = b""
    count = 0
    if first[:1].isdigit() and question.endswith(IPV4):
        for octet in first.split(b"-"):
            records += (
                b"\xc0\x0c" + IPV4 + b"\0\0\x01\x2c" + b"\0\x04" + bytes((127, 0, 0, int(octet)))
            )
            count += 1
    flags = 0x8180 | CODES.get(first, 0)
    head = question[:2] + flags.to_bytes(2, "big") + b"\0\x01" + count.to_bytes(2, "big") + bytes(4)
    return head + question[HEADER:] + records


class NameServer:
    """The running name server."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        """Answers until the end."""
        while True:
            try:
                question, client = self.socket.recvfrom(512)
                self.socket.sendto(reply(question), client)
            except OSError:
                return

    def stop(self) -> None:
        """Answers no more."""
        self.socket.close()
