#!/usr/bin/env python3
"""Starts the real Apache and Bolide by the same httpd.conf, and tells where their answers differ.

import.py BOLIDE [LAYOUT...]; Debian's layout is the one that its package installs, with sites put into it.
"""

import http.client
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

from common import APACHE, end, free_port, report, wait_for
from layouts import FILES, LAYOUTS, SECOND, VHOST

DEFAULT = """<VirtualHost *:@PORT@>
    DocumentRoot @WWW@/default
    <Directory @WWW@/default>
        Require all granted
    </Directory>
</VirtualHost>
"""
# What Debian's package has switched off, and the sites need.
ENABLED = ["rewrite", "headers", "proxy", "proxy_http", "expires"]


class Backend(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        moved = self.path.endswith("moved")
        host = self.headers["Host"].split(":")[0]
        body = f"{self.command} {self.path} {host} {self.headers['X-Forwarded-Host']}".encode()
        failing = int(self.path.rsplit("/", 1)[1]) if "/failing/" in self.path else 0
        self.send_response(302 if moved else failing or 200)
        if moved:
            self.send_header("Location", f"http://{self.headers['Host']}/target")
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_OPTIONS = answer

    def log_message(self, *_):
        pass


def ask(port, request):
    method, path, fields = request
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers=fields)
    answer = connection.getresponse()
    body = answer.read()
    own = answer.status >= 300 and b"<" in body or b"Index of " in body or method == "HEAD"
    named = [answer.getheader(name) for name in ("Location", "X-Two", "X-Panel")]
    if named[0]:
        named[0] = named[0].replace(f":{port}", "")
    return answer.status, named, b"" if own else body.replace(str(port).encode(), b"PORT")


def debian(side):
    shutil.copytree("/etc/apache2", side, symlinks=True, dirs_exist_ok=True)
    for name in ENABLED:
        for kind in ("load", "conf"):
            link = side / f"mods-enabled/{name}.{kind}"
            if (side / f"mods-available/{name}.{kind}").exists() and not link.is_symlink():
                link.symlink_to(f"../mods-available/{name}.{kind}")
    shutil.rmtree(side / "sites-enabled")
    return {
        "ports.conf": "Listen 127.0.0.1:@PORT@\n",
        "envvars": "".join(f"export {name}={value}\n" for name, value in variables(side).items()),
        "sites-enabled/000-default.conf": DEFAULT, "sites-enabled/one.conf": VHOST, "sites-enabled/two.conf": SECOND,
    }


def variables(side):
    return {"APACHE_RUN_USER": "www-data", "APACHE_RUN_GROUP": "www-data", "APACHE_PID_FILE": f"{side}/pid",
            "APACHE_RUN_DIR": str(side), "APACHE_LOCK_DIR": str(side), "APACHE_LOG_DIR": str(side)}


def lay_out(home, name, layout, www, port, back):
    side = home / name
    side.mkdir()
    files = debian(side) if layout is None else layout
    words = {"@PORT@": str(port), "@SIDE@": str(side), "@WWW@": str(www), "@BACK@": str(back)}
    for path, text in {**files, "mime.types": "text/html html\ntext/plain txt\n"}.items():
        for word, value in words.items():
            text = text.replace(word, value)
        (side / path).parent.mkdir(parents=True, exist_ok=True)
        (side / path).write_text(text)
    return side


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    backend = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    asked, differences = 0, []
    for name, layout, conf, requests in LAYOUTS:
        if wanted and name not in wanted:
            continue
        home = pathlib.Path(tempfile.mkdtemp(prefix="bolide-import."))
        home.chmod(0o755)
        www = home / "www"
        for path, text in FILES.items():
            (www / path).parent.mkdir(parents=True, exist_ok=True)
            (www / path).write_text(text)
        ports = free_port(), free_port()
        sides = [lay_out(home, side, layout, www, port, backend.server_port)
                 for side, port in zip(("apache", "bolide"), ports)]
        processes = [
            subprocess.Popen([APACHE, "-d", str(sides[0]), "-f", str(sides[0] / conf), "-DFOREGROUND"],
                             env={**os.environ, **variables(sides[0])}, stderr=subprocess.PIPE),
            subprocess.Popen([program, "-c", str(sides[1] / conf), "-g", "daemon off;"], stderr=subprocess.PIPE),
        ]
        try:
            for port, process in zip(ports, processes):
                wait_for(port, process)
            for request in requests:
                theirs, ours = (ask(port, request) for port in ports)
                asked += 1
                if theirs != ours:
                    differences.append(f"{name} {request}\n  apache {theirs}\n  bolide {ours}")
        finally:
            end(processes, home)
    report(asked, differences)


main()
