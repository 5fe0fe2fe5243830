"""Owns: how sites and requests for the php-fpm of the comparison are written.

The answers of these sites come later than the request, and a client that has said that it will send
nothing more is one that left, for nginx: so the connection stays open, and the request behind each
case asks for its end. What the error log got from a case is compared with its answer. Words behind
a status are compared in one site only.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from .. import site
from ..site import Case

HEAD = """
    listen 127.0.0.1:@P0@; server_name localhost; root @DIR@/app;
    location = /next { return 204; }
"""
DEAD = "unix:@DIR@/none.sock"


def http(name: str, conf: str, cases: Sequence[Case], **options: Any) -> None:
    """Adds a site whose configuration is all of an http block."""
    site.http(f"php {name}", conf, cases, **{"open": True, "errors": True, **options})


def server(name: str, conf: str, cases: Sequence[Case], before: str = "", **options: Any) -> None:
    """Adds a site with one server, and what stands before it."""
    http(name, f"{before}\nserver {{ {HEAD}\n{conf}\n}}", cases, **options)


def php(
    name: str,
    directives: str,
    cases: Sequence[Case],
    rest: str = "",
    before: str = "",
    **options: Any,
) -> None:
    """Adds the usual location for scripts with these directives, and what else the server has."""
    usual = "include fastcgi.conf; fastcgi_pass @PHPA@;"
    conf = f"location ~ \\.php$ {{ {usual} {directives} }}\n{rest}"
    server(name, conf, cases, before, **options)


def post(
    path: str, body: str | bytes, *fields: str, method: str = "POST", label: str | None = None
) -> tuple[str, bytes]:
    """A request with this body and its length."""
    body = body if isinstance(body, bytes) else body.encode()
    lines = "".join(field + "\r\n" for field in fields)
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    whole = f"{head}{lines}\r\n".encode() + body
    return label or f"{method} {path} of {len(body)} {lines[:40]!r}", whole


def chunked(
    path: str,
    *chunks: bytes,
    fields: str = "",
    end: bytes = b"0\r\n\r\n",
    method: str = "POST",
) -> tuple[str, bytes]:
    """A request with a body in these chunks."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    sizes = ",".join(str(len(chunk)) for chunk in chunks)
    whole = f"{head}{fields}\r\n".encode() + body + end
    return f"{method} {path} chunked {sizes} {fields!r} {end!r}", whole


def say(
    *fields: str,
    request: str = "GET",
    more: str = "",
    text: str | None = None,
    path: str = "/say.php",
    **query: str | int,
) -> str:
    """A request for an answer with these fields."""
    asked = [f"h[]={quote(field)}" for field in fields]
    asked += [f"{name}={quote(str(value))}" for name, value in query.items()]
    if text is not None:
        asked.append(f"b={quote(text)}")
    return f"{request} {path}?{'&'.join(asked)}{more}"


FORM = "Content-Type: application/x-www-form-urlencoded"
BOUNDARY = "Content-Type: multipart/form-data; boundary=xYx"
MULTIPART = (
    b'--xYx\r\nContent-Disposition: form-data; name="field"\r\n\r\nvalue\r\n'
    b'--xYx\r\nContent-Disposition: form-data; name="file"; filename="a b.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\n" + b"content of the file\n" * 50 + b"\r\n--xYx--\r\n"
)
