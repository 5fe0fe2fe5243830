"""Owns: a client of HTTP/1.1 over TLS that sees the records: how long each one of an answer is."""

import socket
import ssl
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# What a record has beside its plain bytes: TLS 1.3 with type and tag, TLS 1.2 with nonce and tag.
EXTRA = {"TLSv1.3": 17, "TLSv1.2": 24}


class Client:
    """One connection that keeps the lengths of the records of data that came."""

    def __init__(
        self, port: int, name: str, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        # Of TLS 1.2 those whose records are as much longer as those of GCM are.
        context.set_ciphers("ECDHE+AESGCM")
        self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.coming, self.going, server_hostname=name)
        self.socket = socket.create_connection(("127.0.0.1", port), 3)
        self.raw = b""
        self.records: list[int] = []
        self.drive(self.tls.do_handshake)
        self.extra = EXTRA[self.tls.version() or ""]

    def drive(self, step: Callable[[], T]) -> T:
        """Does a step of TLS, with what it needs of the connection."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.flush()
                got = self.socket.recv(65536)
                self.coming.write(got) if got else self.coming.write_eof()
                self.note(got)
            finally:
                self.flush()

    def flush(self) -> None:
        """Sends what TLS has to send."""
        if data := self.going.read():
            self.socket.sendall(data)

    def note(self, got: bytes) -> None:
        """Keeps the lengths of records of data."""
        self.raw += got
        while len(self.raw) >= 5:
            size = int.from_bytes(self.raw[3:5], "big")
            if len(self.raw) < 5 + size:
                return
            if self.raw[0] == 23:
                self.records.append(size)
            self.raw = self.raw[5 + size :]

    def get(self, path: str) -> tuple[list[int], int]:
        """The plain bytes in each record of an answer, and the length of its body."""
        # Tickets are records, too.
        self.records.clear()
        self.drive(lambda: self.tls.write(f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode()))
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.drive(lambda: self.tls.read(65536))
        head, _, body = got.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
        while len(body) < length:
            body += self.drive(lambda: self.tls.read(65536))
        return [size - self.extra for size in self.records], len(body)

    def close(self) -> None:
        """Ends the connection."""
        self.socket.close()
