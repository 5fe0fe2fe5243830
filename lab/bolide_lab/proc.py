"""Owns what the kernel says of processes: CPU seconds, memory, and both over time.

CPU in all is the scheduler's nanosecond count (`/proc/PID/task/*/schedstat`) where it is kept.
User and system are `/proc/PID/stat`, which also counts threads that have ended; its total takes
the place of schedstat's where that is larger by more than its own grain.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """CPU seconds of processes together."""

    user_s: float = 0.0
    system_s: float = 0.0
    exact_s: float = 0.0

    def since(self, before: Cpu) -> Cpu:
        """What was spent after `before`; never less than nothing."""
        ticks_user = max(0.0, self.user_s - before.user_s)
        ticks_system = max(0.0, self.system_s - before.system_s)
        exact = max(0.0, self.exact_s - before.exact_s)
        ticks = ticks_user + ticks_system
        if ticks - exact > max(0.05, 0.1 * ticks):
            exact = ticks
        return Cpu(ticks_user, ticks_system, exact)

    def split(self) -> tuple[float, float]:
        """User and system seconds that add up to the exact total."""
        ticks = self.user_s + self.system_s
        if ticks <= 0:
            return (self.exact_s, 0.0)
        return (self.exact_s * self.user_s / ticks, self.exact_s * self.system_s / ticks)


def tree(pids: Iterable[int]) -> list[int]:
    """The processes and all their descendants, each once."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop(0)
        if pid in found or not (PROC / str(pid)).exists():
            continue
        found.append(pid)
        for task in _tasks(pid):
            waiting += [int(child) for child in _text(task / "children").split()]
    return found


def cpu(pids: Iterable[int]) -> Cpu:
    """CPU seconds of the processes and their descendants so far."""
    user = system = exact = 0.0
    for pid in tree(pids):
        # The name may hold spaces and brackets; fields count from after the last one.
        fields = _text(PROC / str(pid) / "stat").rpartition(")")[2].split()
        if len(fields) > 14:
            # Children that have ended and were waited for have no place of their own any more.
            ended_user, ended_system = (int(fields[n]) * TICK_S for n in (13, 14))
            user += int(fields[11]) * TICK_S + ended_user
            system += int(fields[12]) * TICK_S + ended_system
            exact += ended_user + ended_system
        for task in _tasks(pid):
            words = _text(task / "schedstat").split()
            exact += int(words[0]) / 1e9 if words else 0.0
    return Cpu(user, system, exact)


def rss_mib(pids: Iterable[int], field: str = "VmRSS") -> float:
    """Resident memory of the processes together; `VmHWM` for the peak of each."""
    total = 0
    for pid in tree(pids):
        for line in _text(PROC / str(pid) / "status").splitlines():
            if line.startswith(field + ":"):
                total += int(line.split()[1])
    return total / 1024


def reset_peak(pids: Iterable[int]) -> None:
    """Lets `VmHWM` begin anew, where that is allowed."""
    for pid in tree(pids):
        try:
            (PROC / str(pid) / "clear_refs").write_text("5")
        except OSError:
            continue


def steal_s() -> float:
    """Seconds that a hypervisor gave to others, over all CPUs, since boot."""
    words = _text(PROC / "stat").split("\n", 1)[0].split()
    return int(words[8]) * TICK_S if len(words) > 8 else 0.0


def own_cores(pids: Iterable[int], cores: set[int]) -> None:
    """Pins every thread of the processes and their descendants."""
    for pid in tree(pids):
        for task in _tasks(pid):
            try:
                os.sched_setaffinity(int(task.name), cores)
            except OSError:
                continue


def end(pids: Iterable[int], patience_s: float = 5.0) -> None:
    """Ends the processes and their descendants; those that do not listen are killed."""
    everyone = tree(pids)
    for pid in everyone:
        _signal(pid, signal.SIGTERM)
    limit = time.monotonic() + patience_s
    while time.monotonic() < limit and any(_is_alive(pid) for pid in everyone):
        _reap(everyone)
        time.sleep(0.01)
    for pid in everyone:
        if _is_alive(pid):
            _signal(pid, signal.SIGKILL)
    _reap(everyone)


class Series:
    """Takes CPU and memory of processes at an interval, in a thread, until stopped."""

    def __init__(self, pids: Iterable[int], interval_s: float = 1.0) -> None:
        """Starts at once. Rows are (seconds, percent of one CPU, MiB)."""
        self.pids = list(pids)
        self.interval_s = interval_s
        self.rows: list[tuple[float, float, float]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        start = last = time.monotonic()
        spent = cpu(self.pids).exact_s
        while not self._done.wait(max(0.0, last + self.interval_s - time.monotonic())):
            now, total = time.monotonic(), cpu(self.pids).exact_s
            percent = 100.0 * max(0.0, total - spent) / max(now - last, 1e-6)
            memory = rss_mib(self.pids)
            self.rows.append((round(now - start, 3), round(percent, 1), round(memory, 2)))
            last, spent = now, total

    def stop(self) -> tuple[tuple[float, float, float], ...]:
        """Ends the thread and gives the rows."""
        self._done.set()
        self._thread.join()
        return tuple(self.rows)


def wait_until(is_so: Callable[[], bool], seconds: float, step_s: float = 0.02) -> bool:
    """Whether it became so in time."""
    limit = time.monotonic() + seconds
    while True:
        if is_so():
            return True
        if time.monotonic() > limit:
            return False
        time.sleep(step_s)


def _tasks(pid: int) -> list[Path]:
    try:
        return list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _is_alive(pid: int) -> bool:
    state = _text(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in ("Z", "X")


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _reap(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except OSError:
            continue
