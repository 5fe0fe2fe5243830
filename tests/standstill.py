"""Holds one thread of a process at its next system call that is no wait for events.

`standstill.py PID THREAD` tells "held" when it does, or why it may not; the thread goes on when
standard input ends, or this program does.
"""

import ctypes
import os
import select
import sys
from pathlib import Path

CONT, SYSCALL, SEIZE, INTERRUPT = 7, 24, 0x4206, 0x4207
WALL = 0x40000000
# epoll_wait, epoll_pwait and epoll_pwait2, by machine.
WAITS = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request: int, thread: int) -> None:
    if libc.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def find(pid: int, name: str) -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise SystemExit(f"{pid} has no thread {name}")


def call_of(pid: int, thread: int) -> int:
    """The number of the system call that a held thread is at; -1 for none."""
    word = Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()[0]
    return int(word) if word.lstrip("-").isdigit() else -1


def hold(pid: int, thread: int) -> None:
    waits = WAITS.get(os.uname().machine, ())
    ptrace(SEIZE, thread)
    ptrace(INTERRUPT, thread)
    os.waitpid(thread, WALL)
    # In a wait it is told to go on; what follows the wait is a turn.
    while True:
        ptrace(SYSCALL, thread)
        os.waitpid(thread, WALL)
        if call_of(pid, thread) not in (-1, *waits):
            return


def main() -> None:
    pid, thread = int(sys.argv[1]), find(int(sys.argv[1]), sys.argv[2])
    try:
        hold(pid, thread)
    except OSError as error:
        print(f"not permitted: {error}", flush=True)
        return
    print("held", flush=True)
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        # A thread that ends is waited for, or its process would not end.
        if os.waitpid(thread, WALL | os.WNOHANG)[0] != 0:
            return


if __name__ == "__main__":
    main()
