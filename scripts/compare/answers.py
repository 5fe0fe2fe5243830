"""Owns: how bytes are sent to a server, and how what comes back becomes lines that can be compared."""
import difflib
import gzip
import os
import re
import socket
import ssl
import zlib
from email.utils import parsedate_to_datetime

TIMEOUT = 8
# Sent behind every request: whether it is answered shows what became of the connection.
NEXT = b"GET /next HTTP/1.1\r\nHost: next\r\n\r\n"
LAST = b"GET /next HTTP/1.1\r\nHost: next\r\nConnection: close\r\n\r\n"


def connect(port, tls, address="127.0.0.1"):
    plain = socket.create_connection((address, port), TIMEOUT)
    if not tls:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    name, stem = tls if isinstance(tls, tuple) else (tls, None)
    if stem:
        context.load_cert_chain(f"{stem}.crt", f"{stem}.key")
    return context.wrap_socket(plain, server_hostname=name)


def exchange(port, request, tls, stay=False, address="127.0.0.1"):
    """Everything that comes back, and whether the end was clean."""
    got, end = b"", ""
    try:
        with connect(port, tls, address) as peer:
            try:
                peer.sendall(request)
                if not tls and not stay:
                    peer.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            while data := peer.recv(65536):
                got += data
                if tls and got.count(b"</html>") + got.count(b"\n--end--") and not request.endswith(NEXT):
                    break
    except socket.timeout:
        end = "TIMEOUT"
    except OSError:
        pass
    return got, end


def unchunk(data):
    body = b""
    while True:
        line, mark, data = data.partition(b"\r\n")
        if not mark:
            return body, b"", "cut"
        size = int(line.split(b";")[0], 16)
        body, rest = body + data[:size], data[size + 2:]
        if size == 0:
            trailers, _, rest = (b"\r\n" + data).partition(b"\r\n\r\n")
            return body, rest, trailers.decode("latin-1").replace("\r\n", " trailer ")
        if len(data) < size:
            return body, b"", "cut"
        data = rest


def decoded(coding, body):
    if coding == "gzip" and body.startswith(b"\x1f\x8b\x08"):
        try:
            return gzip.decompress(body)
        except EOFError:
            return b"cut gzip"
    if coding == "deflate":
        return zlib.decompress(body)
    return body


def answers(program, got, methods, lengths):
    """The answers in `got` as comparable lines."""
    lines = []
    while got:
        head, mark, rest = got.partition(b"\r\n\r\n")
        if not got.startswith(b"HTTP/1.1 ") or not mark:
            lines.append(f"raw {program.normalise(got.decode('latin-1'))!r}")
            return lines
        method = methods.pop(0) if methods else "GET"
        got, text = read_answer(program, head, rest, method, lengths)
        lines += text
        if head.startswith(b"HTTP/1.1 1") and method != "GET":
            methods.insert(0, method)
    return lines


def since(end, now):
    """How long after `now` a date is; nothing if it is none."""
    try:
        return " = DATE%+d" % (parsedate_to_datetime(end) - parsedate_to_datetime(now)).total_seconds()
    except (TypeError, ValueError):
        return ""


def is_same(wanted, found):
    """Whether two lines say the same, one maybe a second later: a moment is as far away or the same."""
    if wanted == found or not wanted.startswith("Expires: "):
        return wanted == found
    pairs = zip(wanted.split(" = "), found.split(" = "))
    return any(one == other for one, other in pairs)


def read_answer(program, head, rest, method, lengths):
    status_line, *fields = head.decode("latin-1").split("\r\n")
    fields = [field.partition(": ")[::2] for field in fields]
    value = {name.lower(): text for name, text in fields}
    status, note, length = status_line.split(" ")[1], "", None
    if method == "HEAD" or status[0] == "1" or status in ("204", "304"):
        body, length = b"", value.get("content-length")
    elif value.get("transfer-encoding") == "chunked":
        body, rest, note = unchunk(rest)
    elif "content-length" in value:
        size = int(value["content-length"])
        body, rest = rest[:size], rest[size:]
        note = "cut" if len(body) < size else ""
    else:
        body, rest = rest, b""
    coding = value.get("content-encoding")
    packed = coding and lengths == "coded"
    text = program.normalise(decoded(coding, body).decode("latin-1"))
    boundary = re.search(r"boundary=(\w+)", value.get("content-type", ""))
    out, ordered = [status_line], []
    for name, field in fields:
        field = program.normalise(field)
        lower = name.lower()
        if lower == "date":
            field = "DATE" if re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", field) else field
        elif lower == "expires":
            field += since(field, value.get("date", ""))
        elif boundary and lower == "content-type":
            field = field.replace(boundary[1], f"{len(boundary[1])} letters")
        elif lower == "content-length" and length is None:
            field = f"{len(text)} {note}".strip()
        elif lower == "content-length" and status >= "300" and status != "304" and "last-modified" not in value:
            # A page that the server wrote: the two names are not equally long.
            off = 6 if program.name == "bolide" else 5
            field = str(int(field) - (12 if "/" in value.get("server", "/") else off))
        if lower == "allow" and status == "405":
            continue
        if packed and lower in ("content-length", "transfer-encoding", "etag"):
            continue
        if lengths == "any" and lower in ("content-length", "transfer-encoding"):
            continue
        ordered.append(f"{name}: {field}")
    # The order of fields with different names means nothing (RFC 9110, 5.3).
    out += sorted(ordered, key=lambda line: line.partition(":")[0].lower())
    if boundary:
        text = text.replace(boundary[1], "BOUNDARY")
    if note and "transfer-encoding" in value and lengths is None:
        out.append(f"end {program.normalise(note)}")
    out.append(f"body {text!r}" if len(text) < 3000 else f"body of {len(text)}, crc {zlib.crc32(text.encode())}")
    return rest, out


def blame(wanted, found):
    """Lines that differ, as a small diff; of long lines the place where they do."""
    lines = [line for line in difflib.unified_diff(wanted, found, lineterm="", n=0)
             if not line.startswith(("---", "+++", "@@"))]
    long = [line[1:] for line in lines if len(line) > 200]
    start = max(len(os.path.commonprefix(long)) - 40, 0) if len(long) == 2 else 0
    return [line if len(line) <= 200 else f"{line[0]}...{line[1 + start:201 + start]}" for line in lines]
