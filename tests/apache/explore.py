#!/usr/bin/env python3
"""Searches for .htaccess files that Bolide obeys otherwise than the real Apache.

explore.py BOLIDE [--from SEED] [--seeds N] [--seconds N] [--reach]; each seed makes a small tree with random files and asks
both servers about it. A difference is made small and printed. Apache is /usr/sbin/apache2.
"""

import argparse
import http.client
import pathlib
import random
import shutil
import sys
import tempfile
import time

from common import free_port, wait_for
from grammar import requests_of, tree_of
from servers import apache, ask, bolide


# How often both servers are asked about all.
PASSES = 3


def is_nested(text):
    """Whether a condition stands in another one, which Apache heeds only now and then."""
    depth = 0
    for line in text.split("\n"):
        depth += line.startswith(("<If ", "<ElseIf ", "<Else>")) - line.startswith(("</If>", "</ElseIf>", "</Else>"))
        if depth > 1:
            return True
    return False


class Pair:
    """Both servers before one directory, in which each seed has its own."""

    def __init__(self, program):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="bolide-apache."))
        self.home.chmod(0o755)
        self.www = self.home / "www"
        self.www.mkdir()
        self.ports = free_port(), free_port()
        self.processes = (apache(self.home, self.www, self.ports[0]),
                          bolide(program, self.home, self.www, self.ports[1]))
        for port, process in zip(self.ports, self.processes):
            wait_for(port, process)

    def end(self):
        for process in self.processes:
            process.terminate()
            process.wait()
        shutil.rmtree(self.home)

    def differences(self, seed, files, requests):
        """The requests that are answered otherwise, with both answers."""
        root = self.www / f"s{seed}"
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text.replace("@ROOT@", str(root)).replace("@URL@", f"/s{seed}"))
        found = []
        nested = any(is_nested(text) for path, text in files.items() if path.endswith(".htaccess"))
        # What files said of a path is kept: other requests, and the same once more, are answered by it.
        for request in requests * PASSES:
            method, path, fields = request
            asked = (method, f"/s{seed}{path}", fields)
            try:
                theirs, their_vary = ask(self.ports[0], asked)
            except (http.client.HTTPException, OSError):
                # Apache ends where rules lead to themselves within one another.
                continue
            ours, our_vary = ask(self.ports[1], asked)
            if any(request == known for known, *_ in found):
                continue
            # docs/differences-from-apache.md: what is no script takes no POST.
            if method == "POST" and (ours[0] == 405 or (theirs[0], ours[0]) == (404, 403)):
                continue
            # docs/differences-from-apache.md: all that counts then is that nobody comes in here alone.
            if nested and (ours[0] >= 400 or (theirs[0], theirs[2]) == (ours[0], ours[2])):
                continue
            # Nor does it matter which cookies of a pass stay that refuses.
            if theirs[0] == ours[0] >= 400:
                theirs, ours = (one[:1] + ([field for field in one[1] if field[0] != "set-cookie"],) + one[2:]
                                for one in (theirs, ours))
            # docs/differences-from-apache.md: a 401 always says how a client shows who it is.
            if theirs[0] == ours[0] == 401 and not any(name == "www-authenticate" for name, _ in theirs[1]):
                ours = (401, [field for field in ours[1] if field[0] != "www-authenticate"], ours[2])
            # Which round's fields the page of an endless loop has is nobody's business.
            if (theirs[0], ours[0]) == (500, 500) and theirs[2] == ours[2]:
                continue
            if theirs != ours or not their_vary <= our_vary:
                found.append((request, (theirs, their_vary), (ours, our_vary)))
        shutil.rmtree(root)
        return found


def shrink(pair, seed, files, request):
    """The same difference with fewer lines, and with what is left of the request's fields."""
    number = seed * 1000

    def differs(files, request):
        nonlocal number
        number += 1
        return bool(pair.differences(number, files, [request]))

    again = True
    while again:
        again = False
        for path in [path for path in files if path.endswith(".htaccess")]:
            lines = files[path].split("\n")
            at = 0
            while at < len(lines):
                for length in (6, 3, 1):
                    fewer = files | {path: "\n".join(lines[:at] + lines[at + length:])}
                    if len(lines) > at and differs(fewer, request):
                        lines = fewer[path].split("\n") if fewer[path] else []
                        files, again = fewer, True
                        break
                else:
                    at += 1
            if not files[path]:
                without = {name: text for name, text in files.items() if name != path}
                if differs(without, request):
                    files = without
    for name in list(request[2]):
        fewer = (request[0], request[1], {key: value for key, value in request[2].items() if key != name})
        if differs(files, fewer):
            request = fewer
    return files, request


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bolide")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--reach", action="store_true", help="with looks ahead, searched bodies and TLS")
    options = parser.parse_args()
    pair = Pair(options.bolide)
    asked = differing = seeds = 0
    until = time.monotonic() + options.seconds
    try:
        for seed in range(options.first, options.first + options.seeds):
            if time.monotonic() > until:
                break
            chance = random.Random(seed)
            files, requests = tree_of(chance, options.reach), requests_of(chance)
            found = pair.differences(seed, files, requests)
            asked += len(requests)
            seeds += 1
            if not found:
                continue
            differing += 1
            files, request = shrink(pair, seed, files, found[0][0])
            print(f"=== seed {seed}: {len(found)} of {len(requests)} requests differ, {request}")
            for path in sorted(path for path in files if path.endswith(".htaccess")):
                print(f"--- {path}\n{files[path]}")
            for _, theirs, ours in pair.differences(seed, files, [request]):
                print(f"  apache {theirs}\n  bolide {ours}")
            sys.stdout.flush()
    finally:
        pair.end()
    print(f"{seeds} seeds, {asked} requests, {differing} seeds with differences")
    sys.exit(bool(differing))


main()
