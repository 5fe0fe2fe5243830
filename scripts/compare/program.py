"""Owns: one of the two servers of a comparison: how it is started, and its own names in texts."""
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

STAMP = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(\w+)\] \d+#\d+: ", re.M)


class Program:
    """One of the two servers, with its own ports; the directory is shared."""

    def __init__(self, name, path, base, home, php):
        self.name, self.path, self.base, self.home, self.php = name, path, base, home, php
        self.logs = home / f"logs-{name[0]}"
        self.logs.mkdir()
        self.child = None

    def expand(self, text):
        if "nginx" in Path(self.path).name:
            # Debian's build would make these in /var/lib/nginx, which only its package creates.
            # A configuration that says it for all of http begins a line with it.
            kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            temp = " ".join(f"{kind}_temp_path {self.home}/temp-{kind};" for kind in kinds
                            if f"\n{kind}_temp_path" not in text)
            text = text.replace("http {", "http { " + temp, 1)
        text = self.php.expand(text).replace("@DIR@", str(self.home)).replace("@LOGS@", str(self.logs))
        text = text.replace("@CERT@", f"{self.home}/cert.pem").replace("@KEY@", f"{self.home}/cert.key")
        text = text.replace("@ORIGIN@", self.php.origin)
        return re.sub(r"@P(\d)@", lambda m: str(self.base + int(m[1])), text)

    def normalise(self, text):
        """Both programs' own names, ports and directories become the same words."""
        text = self.php.normalise(text).replace(str(self.logs), "LOGS").replace(str(self.home), "HOME")
        text = re.sub(rf"(?<!\w){self.base // 10}(\d)(?![\d_])", r"PORT\1", text)
        return re.sub(r"\b(nginx|bolide)(/\d+\.\d+\.\d+)?(?=: |[ <\"\n\r]|$)", self.own_name, text)

    @staticmethod
    def own_name(match):
        return "SERVER/V" if match[2] else "SERVER"

    def write(self, name, text):
        path = self.home / name
        path.write_text(self.expand(text))
        return path

    def command(self, conf, *more):
        log = self.logs / "start.log"
        return [self.path, "-p", f"{self.home}/", "-e", str(log), "-c", str(conf), *more]

    def start(self, text):
        """Starts the program and waits for its port; what it said when it does not start."""
        for log in self.logs.iterdir():
            if log.is_file():
                log.unlink()
        self.error_log_read = 0
        conf = self.write(f"{self.name}.conf", text)
        self.stderr = open(self.logs / "stderr", "wb")
        self.child = subprocess.Popen(self.command(conf), stderr=self.stderr, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.base), 1).close()
                return ""
            except OSError:
                if self.child.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    return (self.logs / "stderr").read_text()
                time.sleep(0.01)

    def forget(self):
        """Removes what was kept of answers, and what scripts counted for this program."""
        kept = [place for place in self.logs.iterdir() if place.is_dir()]
        kept += self.home.glob(f"temp-{self.base}*")
        for place in kept:
            shutil.rmtree(place, ignore_errors=True)
        for count in self.home.glob(f"php-tmp/count-{self.base // 10}?-*"):
            count.unlink(missing_ok=True)

    def new_errors(self, count, which):
        """What the error log got since this was asked last, from [warn] on; with `which` "info" all
        that is about requests. An answer may come before the lines about it: `count` of them are
        waited for."""
        lines, deadline = [], time.monotonic() + 3
        time.sleep(0.002)
        while True:
            lines += self.read_errors(which)
            if len(lines) >= count or time.monotonic() > deadline:
                break
            time.sleep(0.005)
        return lines

    def read_errors(self, which):
        path = self.logs / "error.log"
        with open(path, errors="replace") as log:
            log.seek(self.error_log_read)
            text = log.read()
            self.error_log_read = log.tell()
        # What is ahead of a rate shrinks by thousandths while it is asked for.
        text = re.sub(r"(?<=excess: )\d+\.\d+", lambda m: str(round(float(m[0]))), text)
        lines = [re.sub(r"(PID: )\*\d+ ", r"\1*N ", line) for line in STAMP.sub(r"DATE [\1] PID: ", text).splitlines()]
        quiet = ("DATE [info]", "DATE [notice]", "DATE [debug]")
        if which == "info":
            # What a server says of itself and of connections without a request is its own.
            lines = [line for line in lines if ", server: " in line and ", request: " in line]
            quiet = ("DATE [debug]",)
        # Bolide does not warn of what it was told to do; whether it must depends on timing.
        told = " is buffered to a temporary file "
        return ["log " + self.normalise(line) for line in lines
                if not line.startswith(quiet) and told not in line]

    def stop(self):
        if self.child:
            self.child.terminate()
            self.child.wait()
            self.stderr.close()
            self.child = None
