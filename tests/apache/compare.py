#!/usr/bin/env python3
"""Asks the real Apache and Bolide the same about the same trees, and tells where they differ.

compare.py BOLIDE [SITE...]; Apache is /usr/sbin/apache2 (scripts/setup.sh test installs it). What differs on
purpose is left out here, with its reason in docs/differences-from-apache.md.
"""

import gzip
import http.client
import pathlib
import shutil
import subprocess
import sys
import tempfile

from common import APACHE, free_port, wait_for
from sites import SITES

MODULES = """authn_core authn_file authz_core authz_host authz_user authz_groupfile access_compat auth_basic alias
 brotli deflate dir autoindex env expires filter headers mime rewrite setenvif""".split()
TYPES = {"text/html": "html htm", "text/plain": "txt", "text/css": "css", "image/png": "png", "image/svg+xml": "svg"}
# Fields whose values depend on the server or the moment.
IGNORED = {"date", "server", "content-length", "accept-ranges", "etag", "last-modified", "connection", "keep-alive",
           "expires", "vary", "transfer-encoding", "allow", "upgrade"}


def ask(port, request):
    method, path, fields, *bodies = request if isinstance(request, tuple) else ("GET", request, {})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, *bodies, headers={"Host": "site.test", **fields})
    answer = connection.getresponse()
    body = answer.read()
    told = sorted((name.lower(), value) for name, value in answer.getheaders() if name.lower() not in IGNORED)
    coding = answer.getheader("content-encoding")
    if coding == "gzip" and body[:2] == b"\x1f\x8b":
        body = gzip.decompress(body)
    elif coding == "br":
        body = b""
    is_listing = b"Index of " in body
    if answer.status >= 300 and b"<" in body or is_listing:
        # Pages of the servers' own are written in other words.
        body = b""
        told = [field for field in told if field[0] != "content-type"]
    varies = sorted(part.strip().lower() for line in answer.msg.get_all("vary") or [] for part in line.split(","))
    # docs/differences-from-apache.md: answers say more often on what they depend, redirects above all.
    return (answer.status, told, body), set() if 300 <= answer.status < 400 else set(varies)


def apache(home, www, port):
    lines = [f"ServerRoot {home}", f"PidFile {home}/pid", f"Listen 127.0.0.1:{port}", "ServerName site.test",
             f"ErrorLog {home}/error.log", "User www-data", "Group www-data", f"TypesConfig {home}/mime.types",
             f"DocumentRoot {www}", "DirectoryIndex index.html", "StartServers 1", "ServerLimit 1", "ThreadsPerChild 4", "MaxRequestWorkers 4",
             f"<Directory {www}>\nAllowOverride All\nOptions Indexes FollowSymLinks\nRequire all granted\n</Directory>",
             '<Files ".ht*">\nRequire all denied\n</Files>']
    loads = [f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in ["mpm_event", *MODULES]]
    (home / "mime.types").write_text("".join(f"{kind} {names}\n" for kind, names in TYPES.items()))
    conf = home / "apache.conf"
    conf.write_text("\n".join(loads + lines) + "\n")
    return subprocess.Popen([APACHE, "-f", str(conf), "-DFOREGROUND"], stderr=subprocess.DEVNULL)


def bolide(program, home, www, port):
    conf = home / "bolide.conf"
    conf.write_text(f"""daemon off; pid {home}/bolide.pid; error_log {home}/bolide.log info; worker_processes 1;
events {{}}
http {{ access_log off; include {home}/mime.conf; default_type ""; etag on;
  server {{ listen 127.0.0.1:{port}; root {www}; index index.html; autoindex on; apache_htaccess on; port_in_redirect off; }}
}}
""")
    types = "".join(f"  {kind} {names};\n" for kind, names in TYPES.items())
    (home / "mime.conf").write_text("types {\n" + types + "}\n")
    return subprocess.Popen([program, "-c", str(conf)], stderr=subprocess.DEVNULL)


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    home = pathlib.Path(tempfile.mkdtemp(prefix="bolide-apache."))
    home.chmod(0o755)
    asked, differences = 0, []
    try:
        for name, files, requests in SITES:
            if wanted and name not in wanted:
                continue
            www = home / name
            for path, text in files.items():
                (www / path).parent.mkdir(parents=True, exist_ok=True)
                (www / path).write_text(text.replace("@ROOT@", str(www)))
            ports = free_port(), free_port()
            processes = apache(home, www, ports[0]), bolide(program, home, www, ports[1])
            try:
                for port, process in zip(ports, processes):
                    wait_for(port, process)
                for request in requests:
                    (theirs, their_vary), (ours, our_vary) = (ask(port, request) for port in ports)
                    asked += 1
                    if theirs != ours or not their_vary <= our_vary:
                        differences.append(f"{name} {request}\n  apache {theirs} {their_vary}\n"
                                           f"  bolide {ours} {our_vary}")
            finally:
                for process in processes:
                    process.terminate()
                    process.wait()
    finally:
        shutil.rmtree(home)
    print("\n".join(differences))
    print(f"{asked} requests, {len(differences)} differences")
    sys.exit(bool(differences))


main()
