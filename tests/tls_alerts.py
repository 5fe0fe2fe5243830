"""Faults of TLS clients, and the alerts that they get: `tls_alerts.py PORT` prints a line for each.

Written over bare sockets, because a library would not make these mistakes.
"""

import socket
import ssl
import sys

V = ssl.TLSVersion
TIMEOUT = 60.0


def client(version=None, alpn=None):
    """A client over memory and the flight that it begins with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols([alpn])
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = context.wrap_bio(into, out, server_hostname="localhost")
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return side, into, out, out.read()


def connect(port):
    peer = socket.create_connection(("127.0.0.1", port))
    peer.settimeout(TIMEOUT)
    return peer


def rest(peer):
    """What comes until the end."""
    got = b""
    try:
        while data := peer.recv(65536):
            got += data
    except ConnectionResetError:
        pass
    return got


def last_record(got):
    """The last record, if it is an alert in the clear."""
    record = b""
    while got:
        size = 5 + int.from_bytes(got[3:5], "big")
        record, got = got[:size], got[size:]
    return f"alert {record[6]}" if record[:1] == b"\x15" and len(record) == 7 else f"no alert: {record[:9].hex()}"


def at_once(port, data):
    peer = connect(port)
    peer.sendall(data)
    return last_record(rest(peer))


def established(port, version):
    side, into, out, flight = client(version)
    peer = connect(port)
    peer.sendall(flight)
    while True:
        into.write(peer.recv(65536))
        try:
            side.do_handshake()
            break
        except ssl.SSLWantReadError:
            peer.sendall(out.read())
    peer.sendall(out.read())
    return side, into, out, peer


def later(port, version, make):
    side, into, out, peer = established(port, version)
    peer.sendall(make(side, out))
    into.write(rest(peer))
    try:
        while side.read(100):
            pass
    except ssl.SSLError as error:
        # What stands before the word depends on the version of the library.
        return error.reason.rpartition("ALERT_")[2]
    return "no alert"


def flipped(side, out):
    side.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    record = bytearray(out.read())
    record[-1] ^= 1
    return bytes(record)


def main(port):
    hello = client()[3]
    old = b"\x03\x02" + bytes(32) + b"\0" + b"\0\4\xc0\x13\0\x2f" + b"\1\0"
    old = b"\x16\x03\x01" + (len(old) + 4).to_bytes(2, "big") + b"\1" + len(old).to_bytes(3, "big") + old
    start = {
        "a record of an unknown type": b"\x16\x03\x01\0\2\1\0" + b"\x63\x03\x03\0\1a",
        "a record that is too long": b"\x16\x03\x01\xff\xff" + bytes(200),
        "an empty record": b"\x16\x03\x01\0\0",
        "a hello that is none": b"\x16\x03\x01\0\x0a\1\0\0\6abcdef",
        "a hello that ends too early": hello[:5] + b"\1\0\0\5\x03\x03abc" + hello[14:],
        "a message that is too long": b"\x16\x03\x01\x10\0\1\xff\xff\xff" + bytes(4092),
        "a hello of TLS 1.1": old,
    }
    for name, data in start.items():
        print(f"{name}: {at_once(port, data)}", flush=True)
    garbage = lambda *_: b"\x17\x03\x03\0\x20" + b"a" * 32
    for version in (V.TLSv1_2, V.TLSv1_3):
        for name, make in (("flipped", flipped), ("garbage", garbage)):
            print(f"{name} {version.name}: {later(port, version, make)}", flush=True)
    long = lambda *_: b"\x17\x03\x03\x60\0" + b"a" * 100
    print(f"too long TLSv1_3: {later(port, V.TLSv1_3, long)}", flush=True)
    strange = lambda *_: b"\x63\x03\x03\0\x20" + b"a" * 32
    print(f"strange TLSv1_3: {later(port, V.TLSv1_3, strange)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
