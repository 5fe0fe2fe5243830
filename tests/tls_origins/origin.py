"""An HTTPS origin for tests: says what it saw of the handshake and of the request.

Usage: origin.py CERT KEY CA; each line of standard input names a kind of origin, and the port where
it listens is answered. Kinds: good, asks (wants a certificate), tls12, silent (no handshake),
plain (no TLS), leaves (hangs up in the handshake), rude (no goodbye behind the body), half (no
length, no goodbye), unsaid (no length), short (less than its length, no goodbye), resets (in the handshake), gone (at
once), speaks (first), eager (answers along with the end of the handshake, of TLS 1.2), alarmed (a
fatal alert along with the answer, and nothing more), uwsgi and uwsgi asks (that protocol), grpc
asks (HTTP/2).
"""

import socket
import ssl
import struct
import sys
import threading

CERT, KEY, CA = sys.argv[1:4]


def context(kind, seen):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(CERT, KEY)
    made.sni_callback = lambda sock, name, _: seen.__setitem__(sock, name)
    if kind.endswith("asks"):
        made.load_verify_locations(CA)
        made.verify_mode = ssl.CERT_OPTIONAL
    if kind.startswith("grpc"):
        made.set_alpn_protocols(["h2"])
    if kind in ("tls12", "eager"):
        made.maximum_version = ssl.TLSVersion.TLSv1_2
    return made


def head_of(conn):
    text = b""
    while b"\r\n\r\n" not in text:
        piece = conn.recv(65536)
        if not piece:
            return None
        text += piece
    return text


def packet_of(conn):
    text = conn.recv(65536)
    while len(text) < 4 or len(text) < 4 + int.from_bytes(text[1:3], "little"):
        text += conn.recv(65536)
    return text


def frame(kind, flags, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags, 0, 0, 0, 1]) + payload


def answer_by_frames(conn, about):
    """Answers the first request, which has no body, over HTTP/2."""
    text = b""
    while b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" not in text or b"\x01\x05\0\0\0\1" not in text:
        text += conn.recv(65536)
    head, end = b"\x88", b"\0\x0bgrpc-status\x010"
    body = f"{about}alpn={conn.selected_alpn_protocol()}\n".encode()
    settings = (0).to_bytes(3, "big") + bytes([4, 0, 0, 0, 0, 0])
    conn.sendall(settings + frame(1, 4, head) + frame(0, 0, body) + frame(1, 5, end))


def described(conn, sni, number):
    cert = conn.getpeercert() if conn.context.verify_mode else None
    name = dict(x[0] for x in cert["subject"]).get("commonName") if cert else "-"
    return (
        f"sni={sni} version={conn.version()} cipher={conn.cipher()[0]} "
        f"reused={conn.session_reused} cert={name} connection={number}\n"
    )


def echo(conn):
    while piece := conn.recv(65536):
        conn.sendall(piece.upper())


def answer(conn, kind, text, about):
    lines = text.split(b"\r\n")
    path = lines[0].split(b" ")[1].decode()
    lower = text.lower()
    if b"upgrade: websocket" in lower:
        conn.sendall(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        echo(conn)
        return False
    host = next((line for line in lines if line.lower().startswith(b"host:")), b"-").decode()
    body = f"{about}{host} {path}\n".encode()
    length = 0
    for line in lines:
        if line.lower().startswith(b"content-length:"):
            length = int(line[15:])
    got = len(text.split(b"\r\n\r\n", 1)[1])
    while got < length:
        got += len(conn.recv(65536))
    if length:
        body += f"body={got}\n".encode()
    if path.startswith("/big/"):
        body = b"x" * int(path[5:])
    if kind in ("half", "unsaid"):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + body)
        return False
    if kind == "short":
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body)
        return False
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return b"connection: close" not in lower


def serve_at_once(plain, kind, made, seen, number):
    """Says in one piece what a socket would say in two."""
    heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
    conn = made.wrap_bio(heard, said, server_side=True)

    def until(act):
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                plain.sendall(said.read())
                heard.write(plain.recv(65536))

    until(conn.do_handshake)
    body = described(conn, seen.pop(conn, None), number).encode()
    if kind == "alarmed":
        until(lambda: conn.read(65536))
    conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    if kind == "alarmed":
        heard.write(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        try:
            conn.read(1)
        except ssl.SSLError:
            pass
    plain.sendall(said.read())
    while plain.recv(65536):
        pass


def serve(plain, kind, made, seen, number):
    try:
        if kind == "gone":
            return
        if kind == "speaks":
            plain.sendall(b"220 hello\r\n")
            plain.recv(65536)
            return
        if kind == "silent":
            while plain.recv(65536):
                pass
            return
        if kind == "resets":
            plain.recv(65536)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if kind == "leaves":
            plain.recv(65536)
            return
        if kind == "plain":
            plain.recv(65536)
            plain.sendall(b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        if kind in ("eager", "alarmed"):
            serve_at_once(plain, kind, made, seen, number)
            return
        conn = made.wrap_socket(plain, server_side=True)
        about = described(conn, seen.pop(conn, None), number)
        if kind.startswith("uwsgi"):
            size = b"size=%d\n" % len(packet_of(conn))
            conn.sendall(b"Status: 200 OK\r\n\r\n" + about.encode() + size)
            conn.unwrap()
            return
        if kind.startswith("grpc"):
            answer_by_frames(conn, about)
            while conn.recv(65536):
                pass
            return
        while text := head_of(conn):
            if not answer(conn, kind, text, about):
                break
        if kind not in ("half", "rude", "short"):
            conn.unwrap()
    except OSError as error:
        print("fault:", kind, error, file=sys.stderr, flush=True)
    finally:
        plain.close()


def listen(kind):
    seen = {}
    made = context(kind, seen)
    door = socket.create_server(("127.0.0.1", 0))

    def run():
        number = 0
        while True:
            conn, _ = door.accept()
            number += 1
            args = (conn, kind, made, seen, number)
            threading.Thread(target=serve, args=args, daemon=True).start()

    threading.Thread(target=run, daemon=True).start()
    return door.getsockname()[1]


for line in sys.stdin:
    print(listen(line.strip()), flush=True)
