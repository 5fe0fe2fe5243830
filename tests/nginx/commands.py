"""Owns: command lines and signals; both programs must say the same, give the same and log the same.

Each of COMMANDS is run in a directory with the files of FILES. Each of LIVES is a server of the
background and what is done to it, one letter a step: a signal's name, or an option of -s.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .judge import Judge
from .program import Program

FILES = {
    "ok.conf": "daemon off; pid @LOGS@/none.pid; error_log @LOGS@/start.log; events {}\n",
    "bad.conf": "foo;\n",
    "stale.conf": "pid stale.pid; events {}\n",
    "stale.pid": "4194303\n",
    "words.conf": "pid words.pid; events {}\n",
    "words.pid": "12 and more than anybody needs\n",
    "blank.conf": "pid blank.pid; events {}\n",
    "blank.pid": " 12\n",
    "empty.conf": "pid empty.pid; events {}\n",
    "empty.pid": "",
    "all.conf": "include part.conf;\ninclude part*.conf;\nevents {}\npid @LOGS@/none.pid;\n",
    "part.conf": "env A;",
    "part2.conf": "env B=1;\n",
    "nopid.conf": "pid none/pid; events {}\n",
}
OK = ["-c", "ok.conf"]
COMMANDS = [
    ["-x"],
    ["-tx"],
    ["word"],
    ["-t", "word"],
    ["--"],
    ["-s"],
    ["-s", "start"],
    ["-s", ""],
    ["-s", "stop", "word"],
    ["-c"],
    ["-p"],
    ["-e"],
    ["-g"],
    ["-v"],
    [*OK, "-t"],
    [*OK, "-tq"],
    [*OK, "-q", "-t"],
    [*OK, "-T"],
    [*OK, "-Tq"],
    ["-cok.conf", "-t"],
    ["-", *OK, "-t"],
    [*OK, "-vt"],
    [*OK, "-t", "-v"],
    [*OK, "-t", "-s", "stop"],
    [*OK, "-ts", "stop"],
    ["-c", "bad.conf"],
    ["-c", "bad.conf", "-t"],
    ["-c", "bad.conf", "-tq"],
    ["-c", "bad.conf", "-T"],
    ["-c", "bad.conf", "-s", "stop"],
    ["-c", "none.conf"],
    ["-c", "none.conf", "-t"],
    ["-c", "all.conf", "-T"],
    ["-c", "all.conf", "-Tq", "-g", "env C;"],
    ["-c", "nopid.conf", "-t"],
    ["-c", "nopid.conf"],
    [*OK, "-g", "foo;", "-t"],
    [*OK, "-g", "env A", "-t"],
    [*OK, "-g", "events {}", "-t"],
    [*OK, "-g", "}", "-t"],
    [*OK, "-g", "daemon on;", "-t"],
    [*OK, "-g", "worker_processes x;", "-t"],
    [*OK, "-g", "env A=1; env B;", "-t"],
    [*OK, "-g", "foo;", "-g", "env A;", "-t"],
    [*OK, "-e", "none/x.log", "-t"],
    [*OK, "-s", "stop"],
    ["-c", "stale.conf", "-s", "quit"],
    ["-c", "stale.conf", "-s", "stop"],
    ["-c", "stale.conf", "-s", "reload"],
    ["-c", "stale.conf", "-s", "reopen"],
    ["-c", "words.conf", "-s", "stop"],
    ["-c", "blank.conf", "-s", "stop"],
    ["-c", "empty.conf", "-s", "stop"],
]
LIVES = [
    ["-s quit"],
    ["-s stop"],
    ["QUIT"],
    ["TERM"],
    ["INT"],
    ["-s reopen", "-s quit"],
    ["USR1", "TERM"],
    ["WINCH", "QUIT"],
    ["WINCH", "HUP", "TERM"],
    ["-s reload", "QUIT"],
    ["bad", "HUP", "-s reload", "QUIT"],
]
# Workers of another user cannot always open the log again, which nginx's do themselves.
USER = "user root; " if os.geteuid() == 0 else ""
LIFE = USER + (
    "worker_processes 2; pid @LOGS@/life.pid; error_log @LOGS@/life.log notice; events {}\n"
    "http { access_log off; server { listen 127.0.0.1:@P0@; } }\n"
)
# What a step is logged with, as soon as it was noticed.
LOGGED = {
    "HUP": "reconfiguring",
    "-s reload": "reconfiguring",
    "WINCH": "gracefully",
    "USR1": "reopening",
    "-s reopen": "reopening",
}
# What is logged of a life. Workers come and go otherwise here, which the documents say.
TOLD = re.compile(
    r"\[(?:emerg|alert|crit|error|warn)\]|signal \d+ \(SIG(?!CHLD|IO)|reconfiguring|"
    r"reopening logs|gracefully|process started"
)
STAMP = re.compile(r"^\S+ \S+ (\[\w+\]) \d+#\d+: ", re.M)


def compare_command(programs: Sequence[Program], judge: Judge, args: Sequence[str]) -> None:
    """Runs one command with both programs."""
    judge.compare(f"command: {' '.join(args)}", *(command(program, args) for program in programs))


def compare_life(programs: Sequence[Program], judge: Judge, steps: Sequence[str]) -> None:
    """Does the same steps to both programs, side by side."""
    with ThreadPoolExecutor(len(programs)) as pool:
        told = list(pool.map(lambda program: life(program, steps), programs))
    judge.compare(f"life: {', '.join(steps)}", *told)


def write(program: Program) -> None:
    """Writes the files of all commands."""
    for name, text in FILES.items():
        (program.home / name).write_text(program.expand(text))


def lines_of(program: Program, what: str, text: str) -> list[str]:
    """Lines that can be compared, without remedies."""
    lines = program.normalise(STAMP.sub(r"\1 ", text)).splitlines()
    return [f"{what} {line}" for line in lines if "  help:" not in line]


def command(program: Program, args: Sequence[str]) -> list[str]:
    """How a command ends, and what it says and logs."""
    write(program)
    log = program.logs / "command.log"
    log.unlink(missing_ok=True)
    # A test of nginx leaves an empty one behind.
    (program.logs / "none.pid").unlink(missing_ok=True)
    own_log = ["-e", str(log)] if "-e" not in args else []
    whole = [program.path, "-p", f"{program.home}/", *own_log, *args]
    done = subprocess.run(whole, capture_output=True, text=True, timeout=60, cwd=program.home)
    if own_log:
        end_daemons([*own_log, *args])
    return [
        f"exit {done.returncode}",
        *lines_of(program, "stdout", done.stdout),
        *lines_of(program, "stderr", done.stderr),
        *lines_of(program, "log", log.read_text() if log.exists() else ""),
    ]


def end_daemons(args: Sequence[str]) -> None:
    """Ends what a command left running: nginx goes on without a file for its process id."""
    words = "\0".join(args).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


class Life:
    """A server of the background, and what is done to it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.log, self.pidfile = program.logs / "life.log", program.logs / "life.pid"
        self.log.unlink(missing_ok=True)
        self.conf = program.logs / "life.conf"
        self.conf.write_text(program.expand(LIFE))
        own = ["-e", str(self.log), "-c", str(self.conf)]
        self.base = [program.path, "-p", f"{program.home}/", *own]

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Runs the program once more."""
        return subprocess.run([*self.base, *more], capture_output=True, text=True, timeout=60)

    def has_begun(self) -> bool:
        """Whether the server has said its number, and has its workers.

        Before that nginx notes a signal, and acts on it only when the next one comes.
        """
        has_pid = self.pidfile.exists() and self.pidfile.read_text().endswith("\n")
        return has_pid and self.log.read_text().count("start worker process ") == 2

    def step(self, step: str, pid: int) -> list[str]:
        """Does one step; what is said of it."""
        told = []
        if step == "bad":
            self.conf.write_text(self.program.expand(LIFE + "foo;"))
        elif step.startswith("-s"):
            done = self.run(*step.split())
            told = [f"{step} {done.returncode}", *lines_of(self.program, "stderr", done.stderr)]
        else:
            os.kill(pid, signal.Signals[f"SIG{step}"])
        # What was asked is logged before the next is asked.
        if wanted := LOGGED.get(step):
            until(lambda: wanted in self.log.read_text())
            time.sleep(0.3)
        return told

    def logged(self) -> list[str]:
        """What the log says of this life, each thing once."""
        lines = STAMP.sub(r"\1 ", self.log.read_text()).splitlines()
        said = {re.sub(r"(from|process) \d+", r"\1 N", line) for line in lines if TOLD.search(line)}
        return sorted(self.program.normalise("\n".join(said)).splitlines())


def life(program: Program, steps: Sequence[str]) -> list[str]:
    """Starts a server, does these steps to it, and tells how it ends."""
    server = Life(program)
    done = server.run()
    told = [f"start {done.returncode} {done.stderr}"]
    if not until(server.has_begun):
        return [*told, "it has not begun"]
    pid = int(server.pidfile.read_text())
    for step in steps:
        told += server.step(step, pid)
    ended = until(lambda: not running(pid))
    return [*told, f"ended {ended}", f"pid file {server.pidfile.exists()}", *server.logged()]


def running(pid: int) -> bool:
    """Whether there is such a process, and not only its end to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(what: Callable[[], bool]) -> bool:
    """Waits until that is so, at most a minute; whether it is."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.02)
    return False
