#!/usr/bin/env python3
"""Every form of a handler in every kind of section, before the real Apache and Bolide with the same httpd.conf.

handlers.py BOLIDE [CASE...]. Bolide runs nothing that Apache does not run, and shows no source that Apache does not
show. Where a form is translated, what Apache runs is run, and other files are what they are in Apache.
"""

import glob
import http.client
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

from common import APACHE, end, free_port, report, wait_for

RUNS = '"proxy:unix:@SOCK@|fcgi://localhost/"'
PHP = '<?php header("Content-Type: text/plain"); echo "RAN ", basename(dirname(__FILE__)), "/", basename(__FILE__), " ", '\
    '$_SERVER["SCRIPT_NAME"], " ", $_SERVER["PATH_INFO"] ?? "";\n'
FILES = {"app/x.php": PHP, "app/x.inc": PHP, "app/f.txt": "text\n", "app/evil.jpg": PHP, "app/v1.2/x.php": PHP,
         "app/index.php": PHP, "up/x.php": PHP, "x.php": PHP, "up/f.txt": "text\n", "other/t.php": PHP}
REQUESTS = ["/app/x.php", "/app/x.php/pi", "/app/x.inc", "/app/f.txt", "/app/evil.jpg/x.php", "/app/v1.2/x.php",
            "/app/v1.2/x.php/a.b/c", "/app/", "/app", "/app/nope.php", "/up/x.php", "/x.php", "/up/x.php/pi", "/up/f.txt",
            "/other/t.php", "/other/t.php/pi"]
SECTIONS = {
    "bare": "@LINE@",
    "directory": "<Directory @ROOT@/app>\n@LINE@\n</Directory>",
    "wildcard": '<Directory "@ROOT@/a*">\n@LINE@\n</Directory>',
    "directory-regex": '<Directory ~ "@ROOT@/app">\n@LINE@\n</Directory>',
    "directorymatch": '<DirectoryMatch "/app(/|$)">\n@LINE@\n</DirectoryMatch>',
    "location": "<Location /app>\n@LINE@\n</Location>",
    "location-wildcard": "<Location /a*/x*>\n@LINE@\n</Location>",
    "location-regex": '<Location ~ "\\.php$">\n@LINE@\n</Location>',
    "locationmatch": '<LocationMatch "^/app/.*\\.p">\n@LINE@\n</LocationMatch>',
    "files": "<Files *.php>\n@LINE@\n</Files>",
    "files-regex": '<Files ~ "\\.(php|inc)$">\n@LINE@\n</Files>',
    "filesmatch": '<FilesMatch "^x\\.">\n@LINE@\n</FilesMatch>',
    "if": '<If "%{REQUEST_URI} =~ m#^/app/#">\n@LINE@\n</If>',
    "if-file": '<If "-f %{REQUEST_FILENAME}">\n@LINE@\n</If>',
    "files-in-directory": "<Directory @ROOT@/app>\n<Files *.php>\n@LINE@\n</Files>\n</Directory>",
    "if-in-directory": '<Directory @ROOT@/app>\n<If "%{REQUEST_URI} =~ /php/">\n@LINE@\n</If>\n</Directory>',
    "if-in-location": '<Location /app>\n<If "%{REQUEST_URI} =~ /php/">\n@LINE@\n</If>\n</Location>',
    "if-in-files": '<FilesMatch "\\.php$">\n<If "true">\n@LINE@\n</If>\n</FilesMatch>',
    "alias": "<Directory @ROOT@/../aliased>\n@LINE@\n</Directory>",
}
ALL = f'<FilesMatch "\\.php$">\nSetHandler {RUNS}\n</FilesMatch>\n'
OF_NAME = f"AddHandler {RUNS} .php\n"
# Name: what stands before the section, the line in it, whether it is translated.
FORMS = {
    "set": ("", f"SetHandler {RUNS}", True),
    "add": ("", f"AddHandler {RUNS} .php .inc", True),
    "type": ("", f"AddType {RUNS} .php", False),
    "force": ("", f"ForceType {RUNS}", False),
    "cgi": ("", "SetHandler cgi-script", False),
    "add-cgi": ("", "AddHandler cgi-script .php", False),
    "type-cgi": ("", "AddType application/x-httpd-cgi .php", False),
    "source": ("", "AddType application/x-httpd-php-source .php", False),
    "unknown": ("", "SetHandler of-a-module", False),
    "add-unknown": ("", "AddHandler of-a-module .php", False),
    "status": ("", "SetHandler server-info", False),
    "http": ("", 'SetHandler "proxy:http://127.0.0.1:9/"', False),
    "expression": ("", 'SetHandler "expr=%{REQUEST_URI}"', False),
    "unset": (ALL, "SetHandler None", True),
    "usual": (ALL, "SetHandler default-handler", True),
    "forced": (ALL, "ForceType text/plain", True),
    "removed": (OF_NAME, "RemoveHandler .php", True),
    "added": (OF_NAME, "AddHandler default-handler .php", True),
    "set-over": (OF_NAME, "SetHandler default-handler", True),
    "none-over": (OF_NAME, "SetHandler None", True),
    "typed": (OF_NAME, "AddType text/plain .php", True),
}
MODULES = "authz_core dir mime proxy proxy_fcgi proxy_http alias info".split()


def conf(side, www, port, cases, sock):
    loads = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in ["mpm_event", *MODULES])
    servers = "\n".join(
        f"<VirtualHost *:{port}>\nServerName {name}.test\nDocumentRoot {www}/{name}\nAlias /other {www}/aliased\n"
        f"{text.replace('@ROOT@', f'{www}/{name}').replace('@SOCK@', str(sock))}\n</VirtualHost>"
        for name, (text, _) in cases.items())
    path = side / "httpd.conf"
    path.write_text(f"""ServerRoot {side}
{loads}
PidFile {side}/pid
Listen 127.0.0.1:{port}
ServerName main.test
User www-data
Group www-data
ErrorLog {side}/error.log
TypesConfig {side}/mime.types
DirectoryIndex index.php
<Directory {www}>
Require all granted
</Directory>
{servers}
""")
    (side / "mime.types").write_text("text/plain txt\nimage/jpeg jpg\n")
    return path


def wait_for_socket(path, process):
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"php-fpm ended at once: {process.returncode}")
        with socket.socket(socket.AF_UNIX) as one:
            try:
                return one.connect(str(path))
            except OSError:
                time.sleep(0.1)
    raise SystemExit("php-fpm does not listen")


def ask(port, name, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Host": f"{name}.test"})
    answer = connection.getresponse()
    body = answer.read()
    if body.startswith(b"RAN "):
        return "runs", body
    if b"<?php" in body:
        return "source", b""
    return answer.status, body if answer.status == 200 else b""


def fault(theirs, ours, is_translated):
    """Why an answer of Bolide's is none that it may give."""
    is_refused = isinstance(ours[0], int) and ours[0] >= 400
    if ours[0] == "runs" and ours != theirs:
        return "runs, and not in Apache"
    if ours[0] == "source" and theirs[0] != "source":
        return "shows source"
    if is_translated and ours != theirs and not (is_refused and theirs[0] in ("source", 403, 404)):
        return "is not what Apache says"
    return None


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    # Not below TMPDIR: Apache writes the socket of AddHandler in small letters.
    home = pathlib.Path(tempfile.mkdtemp(prefix="bolide-handlers.", dir="/tmp"))
    home.chmod(0o755)
    www, sock = home / "www", home / "fpm.sock"
    cases = {}
    for section, around in SECTIONS.items():
        for form, (before, line, is_translated) in FORMS.items():
            name = f"{section}-{form}"
            if not wanted or name in wanted:
                cases[name] = before + around.replace("@LINE@", line), is_translated
    for name in [*cases, "aliased"]:
        for path, text in FILES.items():
            path = path.removeprefix("other/") if name == "aliased" else path
            (www / name / path).parent.mkdir(parents=True, exist_ok=True)
            (www / name / path).write_text(text)
    (home / "fpm.conf").write_text(
        f"[global]\nerror_log={home}/fpm.log\ndaemonize=no\n[w]\nlisten={sock}\nlisten.mode=0666\nuser=www-data\n"
        "group=www-data\npm=static\npm.max_children=2\nsecurity.limit_extensions=\n")
    fpm = max(glob.glob("/usr/sbin/php-fpm*"))
    ports = free_port(), free_port()
    sides = []
    for name, port in zip(("apache", "bolide"), ports):
        (home / name).mkdir()
        sides.append(conf(home / name, www, port, cases, sock))
    php = subprocess.Popen([fpm, "-y", str(home / "fpm.conf"), "-F", "-n", "-R"], stderr=subprocess.DEVNULL)
    wait_for_socket(sock, php)
    processes = [
        subprocess.Popen([APACHE, "-d", str(sides[0].parent), "-f", str(sides[0]), "-DFOREGROUND"], stderr=subprocess.PIPE),
        subprocess.Popen([program, "-c", str(sides[1]), "-g", "daemon off;"], stderr=subprocess.DEVNULL),
        php,
    ]
    asked, differences = 0, []
    try:
        for port, process in zip(ports, processes):
            wait_for(port, process)
        for name, (_, is_translated) in cases.items():
            for path in REQUESTS:
                theirs, ours = (ask(port, name, path) for port in ports)
                asked += 1
                if why := fault(theirs, ours, is_translated):
                    differences.append(f"{name} {path}: {why}\n  apache {theirs}\n  bolide {ours}")
        printed = subprocess.run([program, "import", "apache", str(sides[1])], capture_output=True, text=True).stdout
        # A form that is not translated is closed, and said to be.
        untold = [name for name, (_, is_translated) in cases.items() if not is_translated]
        told = len(re.findall(r"httpd\.conf:\d+: CLOSED: (?:Set|Add)Handler|: CLOSED: (?:Add|Force)Type", printed))
        if told < len(untold):
            differences.append(f"{len(untold)} lines are not translated, {told} are said to close their files")
    finally:
        if differences:
            for log in (home / "apache/error.log", home / "fpm.log"):
                differences.append(f"{log.name}:\n{log.read_text()[:2000]}")
        end(processes, home)
    report(asked, differences)


main()
