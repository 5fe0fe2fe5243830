"""Owns: what the two programs say of configurations with mistakes, tested or started."""

import socket
import subprocess
from collections.abc import Sequence

from .judge import Judge
from .mistake import MISTAKES, STARTS
from .program import STAMP, Program

# Seconds that a program has for one command.
PATIENCE = 60


def complaint(program: Program, text: str, *options: str) -> list[str]:
    """How a program ends with this configuration, and what it says and logs."""
    conf = program.home / "mistake.conf"
    conf.write_text(program.expand(text))
    log = program.logs / "start.log"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        program.command(conf, *options),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=program.home,
    )
    logged = log.read_text() if log.exists() else ""
    said = STAMP.sub(r"DATE [\1] PID: ", done.stderr)
    lines = [f"exit {done.returncode}"]
    lines += ["stdout " + line for line in program.normalise(done.stdout).splitlines()]
    lines += ["stderr " + line for line in first_only(program.normalise(said))]
    lines += ["log " + line for line in first_only(program.normalise(STAMP.sub(r"[\1] ", logged)))]
    return lines


def first_only(text: str) -> list[str]:
    """Nginx ends at the first mistake; what Bolide says of others and of remedies is left out."""
    lines: list[str] = []
    ended = False
    for line in text.splitlines():
        if line.startswith("  help:") or (ended and "[emerg]" in line):
            continue
        # nginx tries five times to bind, and then says so.
        ended |= "[emerg]" in line
        lines.append(line)
    return lines


# A key, a configuration, and the options it is run with.
Mistake = tuple[str, str, tuple[str, ...]]


def compare_mistakes(programs: Sequence[Program], judge: Judge, rows: Sequence[Mistake]) -> None:
    """Compares these, while another holds @P9@."""
    for key, text, options in rows:
        seen = []
        for program in programs:
            with socket.create_server(("127.0.0.1", program.base + 9)):
                seen.append(complaint(program, text, *options))
        judge.compare(key, *seen)


def wanted(only: str) -> list[Mistake]:
    """All mistakes of the kinds whose name has the word `only`."""
    tests: list[Mistake] = [(f"test: {name}", text, ("-t",)) for name, text in MISTAKES]
    starts: list[Mistake] = [(f"start: {name}", text, ()) for name, text in STARTS]
    return (tests if only in "test" else []) + (starts if only in "start" else [])
