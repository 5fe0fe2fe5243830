#!/usr/bin/env python3
"""Starts the real Apache and Bolide by the same httpd.conf: certificates of backends and of clients, and who the client
is behind a proxy. Tells where one lets in what the other does not.

certified.py BOLIDE
"""

import http.server
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

from common import APACHE, end, free_port, report, wait_for

MODULES = """mpm_event authz_core authz_host ssl proxy proxy_http proxy_balancer lbmethod_byrequests slotmem_shm
 socache_shmcb remoteip headers""".split()

OPENSSL = """[ca]
default_ca = own
[own]
database = @DIR@/index
serial = @DIR@/serial
new_certs_dir = @DIR@
default_md = sha256
default_days = 30
default_crl_days = 30
policy = any
x509_extensions = leaf
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
[leaf]
basicConstraints = CA:FALSE
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = keyCertSign,cRLSign
[req]
distinguished_name = name
[name]
"""
PAST = ["-startdate", "20200101000000Z", "-enddate", "20210101000000Z"]
AUTHORITY = ["-extensions", "authority"]
# Name, issuer, host, further words.
CERTIFICATES = [
    ("middle", "root", "middle", AUTHORITY), ("good", "root", "localhost", []), ("chained", "middle", "localhost", []),
    ("impostor", "other", "localhost", []), ("wrong", "root", "elsewhere.test", []),
    ("expired", "root", "localhost", PAST), ("revoked", "root", "localhost", []),
]
BACKENDS = ["good", "chained", "impostor", "wrong", "expired", "revoked"]


def openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


def certificates(directory):
    directory.mkdir()
    (directory / "conf").write_text(OPENSSL.replace("@DIR@", str(directory)))
    (directory / "index").write_text("")
    (directory / "serial").write_text("01\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "conf"]
    for name in ("root", "other"):
        openssl(directory, "req", "-x509", *key, "-subj", f"/CN={name}", "-extensions", "authority", "-days", "30",
                "-keyout", f"{name}.key", "-out", f"{name}.pem")
    for name, issuer, host, more in CERTIFICATES:
        openssl(directory, "req", *key, "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(directory, "ca", "-batch", "-notext", "-config", "conf", "-cert", f"{issuer}.pem",
                "-keyfile", f"{issuer}.key", "-in", f"{name}.csr", "-out", f"{name}.pem", *more)
    issuer = ["-config", "conf", "-cert", "root.pem", "-keyfile", "root.key"]
    openssl(directory, "ca", *issuer, "-revoke", "revoked.pem")
    openssl(directory, "ca", *issuer, "-gencrl", "-out", "crl.pem")
    with (directory / "chained.pem").open("a") as chained:
        chained.write((directory / "middle.pem").read_text())


class Backend(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class TlsServer(http.server.ThreadingHTTPServer):
    """Shakes hands in the thread of the connection; clients that refuse the certificate say nothing of it."""

    def __init__(self, directory, name):
        super().__init__(("127.0.0.1", 0), Backend)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(directory / f"{name}.pem", directory / f"{name}.key")

    def finish_request(self, request, client_address):
        with self.context.wrap_socket(request, server_side=True) as stream:
            super().finish_request(stream, client_address)

    def handle_error(self, *_):
        pass


CA = "SSLProxyCACertificateFile @PKI@/root.pem"
CRL = "SSLProxyCARevocationFile @PKI@/crl.pem"
ON = "SSLProxyEngine on"
# What is as open as Apache, in every place: name, lines.
SAME = {
    "require": [ON, "SSLProxyVerify require", CA],
    "upper": [ON, "SSLProxyVerify Require", CA],
    "on": [ON, "SSLProxyVerify on", CA],
    "optional": [ON, "SSLProxyVerify OPTIONAL", CA],
    "section": [ON, "<Proxy *>", "SSLProxyVerify require", CA, "</Proxy>"],
    "depth1": [ON, "SSLProxyVerify require", CA, "SSLProxyVerifyDepth 1"],
    "depth2": [ON, "SSLProxyVerify require", CA, "SSLProxyVerifyDepth 2"],
    "crl": [ON, "SSLProxyVerify require", CA, "SSLProxyVerifyDepth 2", CRL, "SSLProxyCARevocationCheck leaf"],
    "unlisted": [ON, "SSLProxyVerify require", CA, CRL, "SSLProxyCARevocationCheck None"],
    "kept": [ON, "SSLProxyVerify require", CA, "ProxyPreserveHost on"],
    "engine": [],
    "unchecked": [ON, "SSLProxyCheckPeerName off", "SSLProxyCheckPeerExpire Off"],
}
# What is closed, or stricter than Apache.
CLOSED = {
    "depth0": [ON, "SSLProxyVerify require", CA, "SSLProxyVerifyDepth 0"],
    "noca": [ON, "SSLProxyVerify optional_no_ca", CA],
    "without": [ON, "SSLProxyVerify require"],
    "path": [ON, "SSLProxyVerify require", "SSLProxyCACertificatePath @PKI@"],
    "crlpath": [ON, "SSLProxyVerify require", CA, "SSLProxyCARevocationPath @PKI@", CRL,
                "SSLProxyCARevocationCheck chain"],
    "nameless": [ON, "SSLProxyVerify require", CA, "SSLProxyCheckPeerName off"],
}
# What only Apache checks where no authority is asked for, and tells of.
NONE = {"none": [ON], "never": [ON, "SSLProxyVerify none"]}
ONLY_APACHE = ["wrong", "expired"]


def backend_host(name, lines):
    passed = [f"ProxyPass /{back} https://localhost:@{back}@/" for back in BACKENDS]
    member = "<Proxy balancer://good>\nBalancerMember https://localhost:@good@\n</Proxy>\nProxyPass /bal balancer://good/"
    return f"<VirtualHost *:@PORT@>\nServerName {name}.test\n" + "\n".join(lines + passed + [member]) + "\n</VirtualHost>\n"


CLIENT = "SSLEngine on\nSSLCertificateFile @PKI@/good.pem\nSSLCertificateKeyFile @PKI@/good.key\n" \
         "SSLCACertificateFile @PKI@/root.pem\n"
CLIENTS = {
    "DEFAULT": "SSLVerifyClient Require", "DEPTH2": "SSLVerifyClient on\nSSLVerifyDepth 2",
    "DEPTH1": "SSLVerifyClient OPTIONAL\nSSLVerifyDepth 1", "NOBODY": "SSLVerifyClient Off",
    "LISTED": "SSLVerifyClient require\nSSLCARevocationFile @PKI@/crl.pem\nSSLCARevocationCheck chain",
}
SHOWN = "ProxyPass / http://127.0.0.1:@PLAIN@/\n"
PEERS = {
    "FIELD": "RemoteIPHeader X-Client-IP\nRemoteIPInternalProxy 127.0.0.1 10.0.0.0/8",
    "FORWARDED": "RemoteIPHeader x-forwarded-for\nRemoteIPInternalProxy 127.0.0.1 10.0.0.0/8",
    "PROTOCOL": "RemoteIPProxyProtocol ON\nRemoteIPHeader X-Client-IP\nRemoteIPInternalProxy 127.0.0.1",
}
TRUE, FALSE = "192.0.2.7", "192.0.2.8"
GUARD = f"<Location />\nRequire ip {TRUE}\n</Location>\n"


def configuration(side, words):
    text = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in MODULES)
    text += f"ServerRoot {side}\nPidFile {side}/pid\nErrorLog {side}/error.log\nServerName main.test\n"
    text += "User www-data\nGroup www-data\n"
    text += "".join(f"Listen 127.0.0.1:@{name}@\n" for name in ("PORT", *CLIENTS, *PEERS))
    text += "".join(backend_host(*item) for item in {**SAME, **CLOSED, **NONE}.items())
    for name, lines in CLIENTS.items():
        text += f"<VirtualHost *:@{name}@>\nServerName localhost\n{CLIENT}{lines}\n{SHOWN}</VirtualHost>\n"
    for name, lines in PEERS.items():
        text += f"<VirtualHost *:@{name}@>\nServerName localhost\n{lines}\n{SHOWN}{GUARD}</VirtualHost>\n"
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    return text


def exchange(stream, head):
    """The status of what is answered, once the server has closed."""
    stream.sendall(head)
    answer = b""
    while part := stream.recv(65536):
        answer += part
    return answer[9:12].decode()


def ask(port, host, path="/", fields=(), before=""):
    lines = [f"{before}GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", *fields, "", ""]
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as stream:
            return exchange(stream, "\r\n".join(lines).encode())
    except ConnectionError:
        return ""


def ask_as(port, pki, name):
    context = ssl.create_default_context(cafile=pki / "root.pem")
    if name:
        context.load_cert_chain(pki / f"{name}.pem", pki / f"{name}.key")
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as stream:
            return exchange(stream, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") == "200"
    except (ConnectionError, ssl.SSLError):
        return False


def clients():
    """Fields, and what comes before the request, that a proxy in front could send on."""
    values = [[TRUE], [FALSE], [TRUE, FALSE], [FALSE, TRUE], [f"{FALSE}, {TRUE}", "10.1.1.1"],
              [f"{TRUE}, {FALSE}", "10.1.1.1"], [TRUE, "unknown"]]
    heads = ["", *(f"PROXY TCP4 {address} 127.0.0.1 1 2\r\n" for address in (TRUE, FALSE))]
    for name in ("X-Client-IP", "X-Forwarded-For"):
        for lines in values:
            for head in heads:
                yield [f"{name}: {line}" for line in lines], head


def compare(ports, pki):
    """Each question with both answers, and whether they are as they should be."""
    for name in {**SAME, **CLOSED, **NONE}:
        for back in [*BACKENDS, "bal"]:
            theirs, ours = (ask(side["PORT"], f"{name}.test", f"/{back}") == "200" for side in ports)
            is_right = theirs == ours
            if name in CLOSED:
                is_right = theirs or not ours
            elif name in NONE and back in ONLY_APACHE:
                is_right = ours and (not theirs or back == "wrong")
            yield is_right, (name, back), theirs, ours
    for name in CLIENTS:
        for own in (None, "good", "chained", "impostor", "revoked"):
            theirs, ours = (ask_as(side[name], pki, own) for side in ports)
            yield theirs == ours, (name, own), theirs, ours
    for name in PEERS:
        for fields, before in clients():
            theirs, ours = (ask(side[name], "localhost", "/", fields, before) for side in ports)
            # What is no request is answered, or is not.
            is_right = theirs == ours or {theirs, ours} <= {"", "400"}
            yield is_right, (name, fields, before), theirs, ours


def main():
    program = sys.argv[1]
    home = pathlib.Path(tempfile.mkdtemp(prefix="bolide-certified."))
    home.chmod(0o755)
    pki = home / "pki"
    certificates(pki)
    servers = {name: TlsServer(pki, name) for name in BACKENDS}
    servers["PLAIN"] = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    for server in servers.values():
        threading.Thread(target=server.serve_forever, daemon=True).start()
    asked, differences, processes, ports = 0, [], [], []
    try:
        for side in (home / "apache", home / "bolide"):
            side.mkdir()
            own = {name: free_port() for name in ("PORT", *CLIENTS, *PEERS)}
            words = {**own, "PKI": pki, **{name: server.server_port for name, server in servers.items()}}
            (side / "httpd.conf").write_text(configuration(side, words))
            command = [program, "-c", str(side / "httpd.conf"), "-g", "daemon off;"]
            if side.name == "apache":
                command = [APACHE, "-d", str(side), "-f", str(side / "httpd.conf"), "-DFOREGROUND"]
            processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ))
            wait_for(own["PORT"], processes[-1])
            ports.append(own)
        for is_right, question, theirs, ours in compare(ports, pki):
            asked += 1
            if not is_right:
                differences.append(f"{question}\n  apache {theirs}\n  bolide {ours}")
    finally:
        end(processes, home)
    report(asked, differences)


main()
