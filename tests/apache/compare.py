#!/usr/bin/env python3
"""Asks the real Apache and Bolide the same about the same trees, and tells where they differ.

compare.py BOLIDE [SITE...]; Apache is /usr/sbin/apache2 (scripts/setup.sh test installs it). What differs on
purpose is left out here, with its reason in docs/differences-from-apache.md.
"""

import pathlib
import shutil
import sys
import tempfile

from ahead import AHEAD
from common import free_port, wait_for
from published import PUBLISHED
from servers import apache, ask, bolide
from sites import SITES
from substitute import SUBSTITUTE


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    home = pathlib.Path(tempfile.mkdtemp(prefix="bolide-apache."))
    home.chmod(0o755)
    asked, differences = 0, []
    try:
        for name, files, requests in SITES + PUBLISHED + AHEAD + SUBSTITUTE:
            if wanted and name not in wanted:
                continue
            www = home / name
            for path, text in files.items():
                (www / path).parent.mkdir(parents=True, exist_ok=True)
                (www / path).write_text(text.replace("@ROOT@", str(www)))
            ports = free_port(), free_port()
            processes = apache(home, www, ports[0]), bolide(program, home, www, ports[1])
            try:
                for port, process in zip(ports, processes):
                    wait_for(port, process)
                for request in requests:
                    (theirs, their_vary), (ours, our_vary) = (ask(port, request) for port in ports)
                    asked += 1
                    if theirs != ours or not their_vary <= our_vary:
                        differences.append(f"{name} {request}\n  apache {theirs} {their_vary}\n"
                                           f"  bolide {ours} {our_vary}")
            finally:
                for process in processes:
                    process.terminate()
                    process.wait()
    finally:
        shutil.rmtree(home)
    print("\n".join(differences))
    print(f"{asked} requests, {len(differences)} differences")
    sys.exit(bool(differences))


main()
