"""What both comparisons with the real Apache need."""

import pathlib
import socket
import sys
import time

APACHE = "/usr/sbin/apache2"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
