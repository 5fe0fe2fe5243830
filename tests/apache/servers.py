"""Apache and Bolide before the same tree, and what of their answers is compared."""

import gzip
import http.client
import subprocess

from common import APACHE

MODULES = """authn_core authn_file authz_core authz_host authz_user authz_groupfile access_compat auth_basic alias
 brotli deflate dir autoindex env expires filter headers mime rewrite setenvif socache_shmcb ssl substitute""".split()
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
    if answer.status >= 300 and (b"<" in body or method == "HEAD") or is_listing:
        # Pages of the servers' own are written in other words.
        body = b""
        told = [field for field in told if field[0] != "content-type"]
    if method == "HEAD":
        told = [field for field in told if field[0] != "content-type" or "text/html" not in field[1]]
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
