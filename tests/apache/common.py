"""What both comparisons with the real Apache need."""

import pathlib
import random
import shutil
import socket
import sys
import time

APACHE = "/usr/sbin/apache2"


def free_port():
    """Below the ports of the other tests, and of client sockets, which take any at any time."""
    while True:
        port = random.randrange(10_000, 17_900)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def wait_for(port, process):
    for _ in range(400):
        if process.poll() is not None:
            told = process.stderr.read().decode()[-2000:] if process.stderr else ""
            log = pathlib.Path(process.args[2]).parent / "error.log"
            log = log.read_text()[-2000:] if log.exists() else ""
            sys.exit(f"{process.args[0]} ended with {process.returncode}: {told}{log}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{process.args[0]} does not answer")


def end(processes, home):
    """Ends servers and removes their directory."""
    for process in processes:
        process.terminate()
        process.wait()
    shutil.rmtree(home)


def report(asked, differences):
    """Prints the differences, and ends; the exit status says whether there are any."""
    print("\n".join(differences))
    print(f"{asked} requests, {len(differences)} differences")
    sys.exit(bool(differences))
