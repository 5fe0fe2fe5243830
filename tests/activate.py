"""Starts a program with sockets that this one opened, as a service manager does.

    activate.py ADDRESS... -- PROGRAM ARGUMENT...

An ADDRESS is HOST:PORT, [HOST]:PORT, a path, or udp:HOST:PORT.
"""

import os
import socket
import sys

FIRST = 3


def opened(address: str) -> socket.socket:
    """A socket at this address; one for streams listens."""
    if address.startswith("/"):
        one = socket.socket(socket.AF_UNIX)
        one.bind(address)
        one.listen()
        return one
    kind = socket.SOCK_DGRAM if address.startswith("udp:") else socket.SOCK_STREAM
    host, port = address.removeprefix("udp:").rsplit(":", 1)
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    one = socket.socket(family, kind)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((host.strip("[]"), int(port)))
    if kind == socket.SOCK_STREAM:
        one.listen()
    return one


end = sys.argv.index("--")
sockets = [opened(address) for address in sys.argv[1:end]]
# Beyond the places that they are to have.
spare = [os.dup2(one.fileno(), 100 + n) for n, one in enumerate(sockets)]
for n, fd in enumerate(spare):
    os.dup2(fd, FIRST + n, inheritable=True)
os.environ["LISTEN_FDS"] = str(len(spare))
os.environ["LISTEN_PID"] = str(os.getpid())
os.closerange(FIRST + len(spare), 200)
program = sys.argv[end + 1 :]
os.execv(program[0], program)
