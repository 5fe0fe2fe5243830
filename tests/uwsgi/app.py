"""Owns: the WSGI application that tests run in uWSGI. It answers with what it was asked."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any


def application(
    environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterator[bytes]:
    """`/large` has a body of 3 MB, `/dies` ends within its own, all others are an echo."""
    source = environ["wsgi.input"]
    path = environ["PATH_INFO"]
    body = source.read()
    if path == "/large":
        start_response("200 Large", [("Content-Type", "text/plain")])
        yield from (b"%07d\n" % number for number in range(393_216))
        return
    if path == "/dies":
        start_response("200 OK", [("Content-Length", "100")])
        yield b"half"
        return
    texts = sorted((name, text) for name, text in environ.items() if isinstance(text, str))
    lines = [f"{name}={text}" for name, text in texts]
    lines.append(f"body of {len(body)}: {hashlib.md5(body).hexdigest()}")
    status = "404 Not Here" if path == "/missing" else "200 OK"
    start_response(status, [("Content-Type", "text/plain"), ("X-App", "uWSGI")])
    yield "\n".join(lines).encode()
