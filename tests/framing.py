"""The command `framing.py PORT CASE...`: what a server does below the answers, a line for a case.

Owns nothing but its arguments; the cases are those of `nginx.framing`.
"""

import sys

from nginx.framing import ask

if __name__ == "__main__":
    port, *cases = sys.argv[1:]
    for case in cases:
        print("; ".join(ask(int(port), case)), flush=True)
