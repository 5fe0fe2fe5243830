"""Owns: command lines and signals; both programs must say the same, give the same and log the same.

Each of COMMANDS is run in a directory with the files of FILES. Each of LIVES is a server of the
background and what is done to it, one letter a step: a signal's name, or an option of -s.
"""
import os
import re
import signal
import subprocess
import time

FILES = {
    "ok.conf": "daemon off; pid @LOGS@/none.pid; error_log @LOGS@/start.log; events {}\n",
    "bad.conf": "foo;\n",
    "stale.conf": "pid stale.pid; events {}\n", "stale.pid": "4194303\n",
    "words.conf": "pid words.pid; events {}\n", "words.pid": "12 and more than anybody needs\n",
    "blank.conf": "pid blank.pid; events {}\n", "blank.pid": " 12\n",
    "empty.conf": "pid empty.pid; events {}\n", "empty.pid": "",
    "all.conf": "include part.conf;\ninclude part*.conf;\nevents {}\npid @LOGS@/none.pid;\n",
    "part.conf": "env A;", "part2.conf": "env B=1;\n",
    "nopid.conf": "pid none/pid; events {}\n",
}
OK = ["-c", "ok.conf"]
COMMANDS = [
    ["-x"], ["-tx"], ["word"], ["-t", "word"], ["--"], ["-s"], ["-s", "start"], ["-s", ""], ["-s", "stop", "word"], ["-c"], ["-p"], ["-e"], ["-g"], ["-v"],
    [*OK, "-t"], [*OK, "-tq"], [*OK, "-q", "-t"], [*OK, "-T"], [*OK, "-Tq"], ["-cok.conf", "-t"], ["-", *OK, "-t"], [*OK, "-vt"], [*OK, "-t", "-v"], [*OK, "-t", "-s", "stop"], [*OK, "-ts", "stop"],
    ["-c", "bad.conf"], ["-c", "bad.conf", "-t"], ["-c", "bad.conf", "-tq"], ["-c", "bad.conf", "-T"], ["-c", "bad.conf", "-s", "stop"], ["-c", "none.conf"], ["-c", "none.conf", "-t"], ["-c", "all.conf", "-T"], ["-c", "all.conf", "-Tq", "-g", "env C;"],
    ["-c", "nopid.conf", "-t"], ["-c", "nopid.conf"], [*OK, "-g", "foo;", "-t"], [*OK, "-g", "env A", "-t"], [*OK, "-g", "events {}", "-t"], [*OK, "-g", "}", "-t"], [*OK, "-g", "daemon on;", "-t"], [*OK, "-g", "worker_processes x;", "-t"], [*OK, "-g", "env A=1; env B;", "-t"],
    [*OK, "-g", "foo;", "-g", "env A;", "-t"], [*OK, "-e", "none/x.log", "-t"], [*OK, "-s", "stop"], ["-c", "stale.conf", "-s", "quit"], ["-c", "stale.conf", "-s", "stop"], ["-c", "stale.conf", "-s", "reload"], ["-c", "stale.conf", "-s", "reopen"],
    ["-c", "words.conf", "-s", "stop"], ["-c", "blank.conf", "-s", "stop"], ["-c", "empty.conf", "-s", "stop"],
]
LIVES = [
    ["-s quit"], ["-s stop"], ["QUIT"], ["TERM"], ["INT"], ["-s reopen", "-s quit"], ["USR1", "TERM"], ["WINCH", "QUIT"], ["WINCH", "HUP", "TERM"], ["-s reload", "QUIT"], ["bad", "HUP", "-s reload", "QUIT"],
]
# Workers of another user cannot always open the log again, which nginx's do themselves.
USER = "user root; " if os.geteuid() == 0 else ""
LIFE = USER + "worker_processes 2; pid @LOGS@/life.pid; error_log @LOGS@/life.log notice; events {}\nhttp { access_log off; server { listen 127.0.0.1:@P0@; } }\n"
# What a step is logged with, as soon as it was noticed.
LOGGED = {"HUP": "reconfiguring", "-s reload": "reconfiguring", "WINCH": "gracefully", "USR1": "reopening", "-s reopen": "reopening"}
# What is logged of a life. Workers come and go otherwise here, which the documents say.
TOLD = re.compile(r"\[(?:emerg|alert|crit|error|warn)\]|signal \d+ \(SIG(?!CHLD|IO)|reconfiguring|reopening logs|gracefully|process started")
STAMP = re.compile(r"^\S+ \S+ (\[\w+\]) \d+#\d+: ", re.M)


def compare_commands(programs, judge, only):
    for args in COMMANDS:
        key = f"command: {' '.join(args)}"
        if not only or only in "command":
            judge.compare(key, *(command(program, args) for program in programs))
    for steps in LIVES:
        key = f"life: {', '.join(steps)}"
        if not only or only in "life":
            judge.compare(key, *(life(program, steps) for program in programs))


def write(program):
    for name, text in FILES.items():
        (program.home / name).write_text(program.expand(text))


def lines_of(program, what, text):
    return [f"{what} {line}" for line in program.normalise(STAMP.sub(r"\1 ", text)).splitlines() if "  help:" not in line]


def command(program, args):
    write(program)
    log = program.logs / "command.log"
    log.unlink(missing_ok=True)
    # A test of nginx leaves an empty one behind.
    (program.logs / "none.pid").unlink(missing_ok=True)
    whole = [program.path, "-p", f"{program.home}/"] + (["-e", str(log)] if "-e" not in args else []) + args
    done = subprocess.run(whole, capture_output=True, text=True, timeout=60, cwd=program.home)
    logged = log.read_text() if log.exists() else ""
    return [f"exit {done.returncode}"] + lines_of(program, "stdout", done.stdout) + lines_of(program, "stderr", done.stderr) + lines_of(program, "log", logged)


def life(program, steps):
    log, pidfile = program.logs / "life.log", program.logs / "life.pid"
    log.unlink(missing_ok=True)
    conf = program.home / "life.conf"
    conf.write_text(program.expand(LIFE))
    base = [program.path, "-p", f"{program.home}/", "-e", str(log), "-c", str(conf)]
    done = subprocess.run(base, capture_output=True, text=True, timeout=60)
    told = [f"start {done.returncode} {done.stderr}"]
    if not until(lambda: pidfile.exists() and pidfile.read_text().endswith("\n")):
        return told + ["no pid file"]
    pid = int(pidfile.read_text())
    for step in steps:
        if step == "bad":
            conf.write_text(program.expand(LIFE + "foo;"))
        elif step.startswith("-s"):
            done = subprocess.run(base + step.split(), capture_output=True, text=True, timeout=60)
            told += [f"{step} {done.returncode}"] + lines_of(program, "stderr", done.stderr)
        else:
            os.kill(pid, getattr(signal, f"SIG{step}"))
        # What was asked is logged before the next is asked.
        if wanted := LOGGED.get(step):
            until(lambda text=wanted: text in log.read_text())
            time.sleep(0.3)
    ended = until(lambda: not running(pid))
    told += [f"ended {ended}", f"pid file {pidfile.exists()}"]
    said = STAMP.sub(r"\1 ", log.read_text())
    said = {re.sub(r"(from|process) \d+", r"\1 N", line) for line in said.splitlines() if TOLD.search(line)}
    return told + sorted(program.normalise("\n".join(said)).splitlines())


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(what):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.02)
    return False
