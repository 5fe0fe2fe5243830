"""A listener whose queue is full, so that the kernel leaves further connections unanswered.

Prints its address, and stays until standard input ends.
"""

import socket
import sys

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
# The queue holds one connection; the others try in vain and keep it full.
fillers = [socket.socket() for _ in range(8)]
for filler in fillers:
    filler.setblocking(False)
    filler.connect_ex(listener.getsockname())
print("{}:{}".format(*listener.getsockname()), flush=True)
sys.stdin.read()
