"""What a soak comes to: what must hold at its end, and the report for people and for programs.

Owns every allowance: whatever is tolerated has a name here and a reason.
"""

import json
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from .book import Book
from .place import WANTED
from .server import Sample, Server

MEMORY_SHARE = 1.25
MEMORY_MORE = 8 << 20
"""Resident memory may be a quarter and 8 MiB above the first rest: allocators keep freed memory."""
DESCRIPTORS_MORE = 8
"""Open files of the cache and of logs come and go."""
DEADLINES_MORE = 8
"""Entries in the wheel that have not fired yet, of links and of the asking itself."""
SLOTS_MORE = 2
"""The soak's own look may still be there."""
IDLE_SHARE = 0.05
"""Of a core, for each thread, when nobody asks anything."""

EXPECTED = {
    "files that are not there": r"www/none\" failed \(2: No such file",
    "limits": r"limiting requests|delaying request|limiting connections",
    "the origin that dies": r"(prematurely closed|closed) connection while .*/origin/(die|cut)",
    "a configuration with a mistake": r"soak_mistake",
    "the pool's settings change": r"php pool .* (restarting|is replaced|ended)",
}
"""Lines of level warn and above that the traffic asks for."""
IN_CROWD = r"accept4\(\) failed|\(24: Too many open files\)|worker_connections are not enough"
"""Those that a crowd with all descriptors asks for."""
LINE = re.compile(r"^(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(warn|error|crit|alert|emerg)\] (.*)$")


class Verdict:
    """The judge of a soak."""

    def __init__(self, server: Server, book: Book) -> None:
        """It looks at the logs and at the record."""
        self.server, self.book = server, book
        self.rests: list[Sample] = []
        self.idle: dict[str, float] = {}
        self.faults: list[str] = []
        self.logged: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.in_crowd = 0

    def judge(self) -> None:
        """Finds everything that is wrong."""
        for one in self.book.failed:
            self.faults.append(f"job {one.job} failed after {one.seconds} s: {one.why[:400]}")
        self.judge_growth()
        self.judge_errors()
        self.judge_answers()
        for thread, share in self.idle.items():
            if share > IDLE_SHARE:
                self.faults.append(f"idle, thread {thread} takes {share:.1%} of a core")

    def judge_growth(self) -> None:
        """The last rest beside the first."""
        if len(self.rests) < 2:
            self.faults.append("there were no two rests to compare")
            return
        first, last = self.rests[0], self.rests[-1]
        for what, before, after, most in [
            ("memory", first.resident, last.resident, first.resident * MEMORY_SHARE + MEMORY_MORE),
            (
                "descriptors",
                first.descriptors,
                last.descriptors,
                first.descriptors + DESCRIPTORS_MORE,
            ),
            ("deadlines", first.deadlines, last.deadlines, first.deadlines + DEADLINES_MORE),
            ("QUIC's states", first.quic_states, last.quic_states, first.quic_states + SLOTS_MORE),
            *(
                (f"slots of {name}", first.slots[name], used, first.slots[name] + SLOTS_MORE)
                for name, used in last.slots.items()
            ),
        ]:
            if after > most:
                self.faults.append(f"{what} grew from {before} to {after}, at most {most:.0f}")

    def judge_errors(self) -> None:
        """Lines of the error log that nothing asked for."""
        for line in self.server.log_lines("error"):
            found = LINE.match(line)
            if not found:
                if "panicked" in line:
                    self.faults.append(f"error.log: {line}")
                continue
            at = datetime.strptime(found.group(1), "%Y/%m/%d %H:%M:%S").astimezone().timestamp()
            text = found.group(3)
            named = next((name for name, words in EXPECTED.items() if re.search(words, text)), "")
            if not named and re.search(IN_CROWD, text) and self.book.in_crowd(at):
                named = "a crowd with all descriptors"
            self.logged[named or "unexpected"] += 1
            if not named:
                self.faults.append(f"error.log: {line[:500]}")
        output = (self.server.place.dir / "output").read_text(errors="replace")
        if output.strip():
            self.faults.append(f"said on the terminal: {output[:500]}")

    def judge_answers(self) -> None:
        """Answers of the 5xx class that nothing asked for."""
        for line in self.server.log_lines("access"):
            words = line.split(" ", 8)
            if len(words) < 9:
                self.faults.append(f"access.log: {line[:200]}")
                continue
            at, status, path = float(words[0]), words[1], words[8]
            self.statuses[status] += 1
            if not status.startswith("5") or WANTED in path:
                continue
            if self.book.in_crowd(at):
                self.in_crowd += 1
            else:
                self.faults.append(f"answered with {status}: {line[:300]}")

    def text(self) -> str:
        """For people."""
        lines = ["rest  memory MiB  anonymous  descriptors  slots  quic  deadlines  cache  threads"]
        for number, one in enumerate(self.rests):
            lines.append(
                f"{number:<4}  {one.resident / (1 << 20):>10.1f}  {one.anonymous / (1 << 20):>9.1f}"
                f"  {one.descriptors:>11}  {one.used:>5}  {one.quic_states:>4}"
                f"  {one.deadlines:>9}  {one.cache_objects:>5}  {one.threads:>7}"
            )
        done = ", ".join(f"{name} {n}" for name, n in sorted(self.book.done.items()))
        lines.append(f"jobs done: {done or 'none'}; failed: {len(self.book.failed)}")
        answers = ", ".join(f"{n} with {status}" for status, n in sorted(self.statuses.items()))
        lines.append(f"answers: {answers}; {self.in_crowd} of 5xx while a crowd was there")
        lines.append(
            "log: " + (", ".join(f"{n} of {k}" for k, n in self.logged.items()) or "clean")
        )
        busiest = max(self.idle.values(), default=0.0)
        lines.append(f"idle: the busiest thread takes {busiest:.1%} of a core")
        shown = Counter(re.sub(r"\d+", "N", fault) for fault in self.faults)
        lines += [f"WRONG: {fault}" for fault in self.faults[:40]]
        if len(self.faults) > 40:
            lines += [f"WRONG {n} times: {fault[:200]}" for fault, n in shown.most_common(20)]
        lines.append(f"soak: {'passed' if not self.faults else f'{len(self.faults)} faults'}")
        return "\n".join(lines) + "\n"

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "passed": not self.faults,
            "faults": self.faults,
            "rests": [one.row() for one in self.rests],
            "idle": self.idle,
            "done": dict(self.book.done),
            "failed": [one.row() for one in self.book.failed],
            "statuses": dict(self.statuses),
            "log": dict(self.logged),
            "crowds": self.book.crowds,
        }

    def write(self, target: Path) -> str:
        """Leaves the report there, with the logs of a soak that failed."""
        target.mkdir(parents=True, exist_ok=True)
        text = self.text()
        (target / "report.txt").write_text(text)
        (target / "report.json").write_text(json.dumps(self.data(), indent=1) + "\n")
        for which in ("error", "access"):
            lines = self.server.log_lines(which) if self.faults else []
            (target / f"{which}.log").write_text("".join(f"{line}\n" for line in lines))
        return text
