"""Owns the link by the kernel's netem: a veth pair between two namespaces, shaped at both ends.

netem's `limit` counts the packets in the delay line as well as those that wait for the rate, as it
did in the experiments that used it; our own link's queue holds only those that wait.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from bolide_lab.links.base import (
    CLIENT_ADDRESS,
    SERVER_ADDRESS,
    Counters,
    Direction,
    Link,
    LinkUnavailable,
    needs_root,
)
from bolide_lab.model import LinkSpec

TOOLS = ("ip", "tc", "unshare", "nsenter")


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LinkUnavailable(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def is_available() -> bool:
    """Whether this kernel has netem: tried in a namespace that is gone at once."""
    if any(shutil.which(tool) is None for tool in TOOLS):
        return False
    probe = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def words(spec: LinkSpec) -> list[str]:
    """The settings of netem at each end."""
    said = ["delay", f"{spec.rtt_ms / 2:g}ms", "rate", f"{spec.rate_mbit:g}mbit"]
    said += ["limit", str(spec.queue_packets)]
    return said + (["loss", "random", f"{spec.loss_percent:g}%"] if spec.loss_percent else [])


class NetemLink(Link):
    """Two namespaces, each held by a process that waits for the end of its input."""

    kind = "netem"

    def __init__(self, spec: LinkSpec, seed: int = 1) -> None:
        """Losses are the kernel's own chance; `seed` is not used."""
        super().__init__(spec, seed)
        self._holders: list[subprocess.Popen[bytes]] = []

    def up(self) -> None:
        """Makes the namespaces, the pair and both queues."""
        needs_root()
        for _ in range(2):
            # "echo" says that the namespace is there; "cat" lives until the laboratory ends.
            holder = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", "echo; exec cat >/dev/null"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._holders.append(holder)
            if holder.stdout is None or not holder.stdout.readline():
                raise LinkUnavailable("a network namespace could not be made")
        server, client = (str(holder.pid) for holder in self._holders)
        # Made inside the server's namespace: this machine's own never sees either end.
        pair = ["ip", "link", "add", "link0", "type", "veth", "peer", "name", "link0"]
        _run(self.in_server([*pair, "netns", client]))
        ends = ((server, SERVER_ADDRESS), (client, CLIENT_ADDRESS))
        for (_, address), enter in zip(ends, (self.in_server, self.in_client), strict=True):
            _run(enter(["ip", "address", "add", f"{address}/24", "dev", "link0"]))
            _run(enter(["ip", "link", "set", "lo", "up"]))
            _run(enter(["ip", "link", "set", "link0", "txqueuelen", "10000", "up"]))
            # Packets as on a wire: none larger than the MTU counts as one.
            if shutil.which("ethtool"):
                off = ["tso", "off", "gso", "off", "gro", "off"]
                _run(enter(["ethtool", "-K", "link0", *off]))
            else:
                _run(enter(["ip", "link", "set", "link0", "gso_max_segs", "1"]))
            _run(enter(["tc", "qdisc", "add", "dev", "link0", "root", "netem", *words(self.spec)]))

    def server_namespace(self) -> str:
        """The namespace of the first holder."""
        return f"/proc/{self._holders[0].pid}/ns/net"

    def client_namespace(self) -> str:
        """The namespace of the second holder."""
        return f"/proc/{self._holders[1].pid}/ns/net"

    def counters(self) -> Counters:
        """Asks both queues; netem does not tell random loss from a full queue."""
        ask = ["tc", "-s", "-j", "qdisc", "show", "dev", "link0"]
        sides = [parse_queue(_run(enter(ask))) for enter in (self.in_server, self.in_client)]
        return Counters(sides[0], sides[1])

    def down(self) -> Counters | None:
        """Ends the holders: namespaces and pair go with them."""
        counters = None
        if len(self._holders) == 2:
            try:
                counters = self.counters()
            except LinkUnavailable:
                counters = None
        holders, self._holders = self._holders, []
        for holder in holders:
            if holder.stdin is not None:
                holder.stdin.close()
            try:
                holder.wait(timeout=5)
            except subprocess.TimeoutExpired:
                holder.kill()
                holder.wait()
            if holder.stdout is not None:
                holder.stdout.close()
        return counters


def parse_queue(text: str) -> Direction:
    """Reads what `tc -s -j qdisc show` says of the device's own queue."""
    queues: list[dict[str, Any]] = json.loads(text)
    root = next((queue for queue in queues if queue.get("kind") == "netem"), None)
    if root is None:
        raise LinkUnavailable("the link's queue is gone")
    return Direction(int(root["packets"]), int(root["bytes"]), int(root["drops"]), None)
