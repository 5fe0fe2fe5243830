"""Owns: one of the two servers of a comparison: how it is started, and its own names in texts."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

STAMP = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(\w+)\] \d+#\d+: ", re.M)
# How long a server may take to listen.
GENEROUS = 60
# Debian's build would make these in /var/lib/nginx, which only its package creates.
KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
# The length of a line of the error log that was cut, without its end.
LONGEST = 2047
# Bolide does not warn of what it was told to do; whether it must depends on timing.
UNTOLD = " is buffered to a temporary file "
ABOUT_CLIENT = re.compile(r", client: |: \*N client \S+ closed keepalive connection")


def numberless(line: str) -> str:
    """A line without its time and numbers, and of one that was cut what does not depend on them."""
    text = re.sub(r"(PID: )\*\d+ ", r"\1*N ", STAMP.sub(r"DATE [\1] PID: ", line))
    if len(line.encode()) != LONGEST:
        return text
    said, mark, failure = text.partition("... (")
    return said[: LONGEST - 150] + mark + failure[:20]


class Places(Protocol):
    """What else both programs talk to, and how that is called in texts."""

    origin: str

    def expand(self, text: str) -> str:
        """Addresses in place of the words for them."""

    def normalise(self, text: str) -> str:
        """Words in place of addresses."""


class Program:
    """One of the two servers, with its own ports; the directory is shared."""

    def __init__(self, name: str, path: str, base: int, home: Path, places: Places) -> None:
        self.name, self.path, self.base, self.home, self.places = name, path, base, home, places
        self.logs = home / f"logs-{name[0]}"
        self.logs.mkdir()
        self.child: subprocess.Popen[bytes] | None = None
        # Written behind the last socket; none if the configuration does not say where.
        self.pid_file: Path | None = None
        self.error_log_read = 0

    def expand(self, text: str) -> str:
        """A configuration with the ports and directories of this program."""
        if "nginx" in Path(self.path).name:
            # A configuration that says it for all of http begins a line with it.
            temp = " ".join(
                f"{kind}_temp_path {self.home}/temp-{kind};"
                for kind in KINDS
                if f"\n{kind}_temp_path" not in text
            )
            text = text.replace("http {", "http { " + temp, 1)
        text = self.places.expand(text)
        for mark, value in (
            ("@DIR@", str(self.home)),
            ("@LOGS@", str(self.logs)),
            ("@CERT@", f"{self.home}/cert.pem"),
            ("@KEY@", f"{self.home}/cert.key"),
            ("@ORIGIN@", self.places.origin),
        ):
            text = text.replace(mark, value)
        return re.sub(r"@P(\d)@", lambda m: str(self.base + int(m[1])), text)

    def normalise(self, text: str) -> str:
        """Both programs' own names, ports and directories become the same words."""
        text = self.places.normalise(text)
        text = text.replace(str(self.logs), "LOGS").replace(str(self.home), "HOME")
        # A text may come before a port; digits of any base are those of another number.
        text = re.sub(rf"(?<![\da-fA-F_]){self.base // 10}(\d)(?![\d_])", r"PORT\1", text)
        return re.sub(r"\b(nginx|bolide)(/\d+\.\d+\.\d+)?(?=: |[ <\"\n\r]|$)", self.own_name, text)

    @staticmethod
    def own_name(match: re.Match[str]) -> str:
        """The same word for both names."""
        return "SERVER/V" if match[2] else "SERVER"

    def write(self, name: str, text: str) -> Path:
        """Writes a file beside the others, expanded."""
        path = self.home / name
        path.write_text(self.expand(text))
        return path

    def command(self, conf: Path, *more: str) -> list[str]:
        """The command that runs this configuration."""
        log = self.logs / "start.log"
        return [self.path, "-p", f"{self.home}/", "-e", str(log), "-c", str(conf), *more]

    def launch(self, text: str) -> None:
        """Starts the program with new logs, without waiting for it."""
        for log in self.logs.iterdir():
            if log.is_file():
                log.unlink()
        self.error_log_read = 0
        self.pid_file = self.logs / "pid" if "pid @LOGS@/pid;" in text else None
        conf = self.write(f"{self.name}.conf", text)
        with open(self.logs / "stderr", "wb") as stderr:
            self.child = subprocess.Popen(
                self.command(conf), stderr=stderr, stdin=subprocess.DEVNULL
            )

    def ready(self) -> str:
        """Waits for all ports of a program that was launched; what it said if it does not start."""
        deadline = time.monotonic() + GENEROUS
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.base), 1).close()
                if self.pid_file is None or self.pid_file.exists():
                    return ""
            if self.is_gone() or time.monotonic() > deadline:
                self.stop()
                return (self.logs / "stderr").read_text()
            time.sleep(0.01)

    def is_gone(self) -> bool:
        """Whether the program has ended by itself."""
        return self.child is None or self.child.poll() is not None

    def forget(self) -> None:
        """Removes what was kept of answers, and what scripts counted for this program."""
        kept = [place for place in self.logs.iterdir() if place.is_dir()]
        kept += self.home.glob(f"temp-{self.base}*")
        for place in kept:
            shutil.rmtree(place, ignore_errors=True)
        for count in self.home.glob(f"php-tmp/count-{self.base // 10}?-*"):
            count.unlink(missing_ok=True)

    def read_errors(self, which: bool | str) -> list[str]:
        """What the error log got since this was asked last, from [warn] on.

        With `which` "info" all that is about requests, with "connections" all about clients.
        """
        with open(self.logs / "error.log", errors="replace") as log:
            log.seek(self.error_log_read)
            text = log.read()
            self.error_log_read = log.tell()
        # What is ahead of a rate shrinks by thousandths while it is asked for.
        text = re.sub(r"(?<=excess: )\d+\.\d+", lambda m: str(round(float(m[0]))), text)
        lines = [numberless(line) for line in text.splitlines()]
        quiet: tuple[str, ...] = ("DATE [info]", "DATE [notice]", "DATE [debug]")
        if which == "info":
            # What a server says of itself and of connections without a request is its own.
            lines = [line for line in lines if ", server: " in line and ", request: " in line]
            quiet = ("DATE [debug]",)
        if which == "connections":
            lines = [line for line in lines if ABOUT_CLIENT.search(line)]
            quiet = ("DATE [debug]",)
        told = [line for line in lines if not line.startswith(quiet) and UNTOLD not in line]
        return ["log " + self.normalise(line) for line in told]

    def stop(self) -> None:
        """Ends the program."""
        if self.child:
            self.child.terminate()
            self.child.wait()
            self.child = None


def new_errors(
    programs: Sequence[Program], which: bool | str, patience: float, least: int = 0
) -> list[list[str]]:
    """What the error logs got since this was asked last.

    An answer may come before the lines about it, of any program: until all have the same number of
    lines, and `least`, they are waited for, so many seconds.
    """
    deadline = time.monotonic() + patience
    told: list[list[str]] = [[] for _ in programs]
    # Meanwhile what an origin has closed is noticed, before the next request could use it.
    time.sleep(0.005)
    while True:
        for program, lines in zip(programs, told, strict=True):
            lines += program.read_errors(which)
        counts = {len(lines) for lines in told}
        if (len(counts) == 1 and min(counts) >= least) or time.monotonic() > deadline:
            return told
        time.sleep(0.005)


def start_all(programs: Sequence[Program], texts: Sequence[str]) -> list[str]:
    """Starts the programs side by side; what each says, which is nothing of those that listen."""
    for program, text in zip(programs, texts, strict=True):
        program.launch(text)
    return [program.ready() for program in programs]


def stop_all(programs: Sequence[Program]) -> None:
    """Ends the programs side by side."""
    for program in programs:
        if program.child:
            program.child.terminate()
    for program in programs:
        program.stop()
