"""Owns: which differences of random cases are meant.

Each rule takes away from both sides what may differ; what is left must be equal. Where
docs/differences-from-nginx.md says so is said beside it.
"""

import re
from collections.abc import Sequence

from .requests import Request

Lines = list[str]


def settle(
    requests: Sequence[Request], at: int, wanted: Lines, found: Lines
) -> tuple[Lines, Lines]:
    """Both sides of part `at` without what is known to differ."""
    if at < len(requests):
        return settled_answers(requests[at], wanted, found)
    if at == len(requests):
        return settled_log(wanted, found)
    wanted = [escaped(line) for line in wanted]
    return settled_errors(wanted), settled_errors(found)


def settled_log(wanted: Lines, found: Lines) -> tuple[Lines, Lines]:
    """Both access logs."""
    if len(wanted) != len(found):
        return wanted, found
    found = [as_piped(*pair) for pair in zip(wanted, found, strict=True)]
    found = [without_allow(*pair) for pair in zip(wanted, found, strict=True)]
    readable = [at for at, line in enumerate(wanted) if not line.startswith(("log -|", "log |"))]
    one, other = ([settled_line(log[at]) for at in readable] for log in (wanted, found))
    return one, other


def settled_line(line: str) -> str:
    """A line of an access log without what is left to chance.

    A kept connection that has just ended makes two attempts of one.
    """
    line = re.sub(r"boundary=\d{20}", "boundary", line)
    # The first of two attempts brings nothing.
    line = re.sub(r"(?<=[| ])0, (?=\d)", "", line)
    return re.sub(r"\bORIGIN(, ORIGIN)+", "ORIGIN", line)


def as_piped(wanted: str, found: str) -> str:
    """Our line with nginx's $pipe where the request came to nginx in another read (Variables)."""
    columns, others = found.split("|"), wanted.split("|")
    if len(columns) != len(others):
        return found
    pairs = zip(columns, others, strict=True)
    return "|".join("." if (own, other) == ("p", ".") else own for own, other in pairs)


def without_allow(wanted: str, found: str) -> str:
    """Our line with nginx's column where ours is the Allow of a 405, which is not compared.

    What nginx writes in its place goes by the format: `-`, or nothing.
    """
    columns, others = found.split("|"), wanted.split("|")
    if "|405|" not in found or len(columns) != len(others):
        return found
    pairs = zip(columns, others, strict=True)
    return "|".join(
        other if re.fullmatch(r"(GET, HEAD[A-Z, ]*)?", own) and other in ("", "-") else own
        for own, other in pairs
    )


# What is not told, or told in other words.
UNTOLD = (
    "client sent ",
    "client prematurely",  # Lines of the error log about heads
    " is buffered to a temporary file ",
    "upstream sent duplicate header line",  # ... about origins
    " to override while reading",  # X-Accel and its errors
    "realpath() ",  # Variables
    "is not enough for cache key",  # What zones keep
    "quic no hs keys",  # Whether a packet comes before its keys is chance.
    # Whether a kept connection ends before or behind the next request on it is chance.
    "upstream prematurely closed connection",
    "upstream closed kept connection",
)
# Questions of auth_request, X-Accel and its errors: what a server was at.
ACTIONS = (
    " while sending response to client",
    " while reading response header from upstream",
    " while reading upstream",
    " while sending to client",
    " while reading client request line",
    " while reading client request headers",
)
HOST = re.compile(r', host: "[^"]*"')
# Lines are longer before they are cut.
SHOWN_MAX = 700
# Controls in the error log: C0, DEL, C1 as bare bytes and as UTF-8 has it.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\udc80-\udc9f]")


def settled_errors(lines: Lines) -> Lines:
    """Lines of an error log."""
    kept = [line for line in lines if not any(words in line for words in UNTOLD)]
    for action in ACTIONS:
        kept = [line.replace(action, "") for line in kept]
    # Connections of HTTP/2 and HTTP/3: over HTTP/3 nginx has no Host.
    kept = [HOST.sub("", line) if "HTTP/3.0" in line else line for line in kept]
    return [line[:SHOWN_MAX] for line in kept]


def escaped(line: str) -> str:
    """A line of nginx's with its controls escaped as ours are (Controls in the error log)."""
    text = line.encode("latin-1").decode("utf-8", "surrogateescape")
    text = CONTROLS.sub(lambda found: "".join(map(r"\x{:02X}".format, raw(found[0]))), text)
    return raw(text).decode("latin-1")


def raw(text: str) -> bytes:
    """The bytes of a text that was read from any."""
    return text.encode("utf-8", "surrogateescape")


def settled_answers(request: Request, wanted: Lines, found: Lines) -> tuple[Lines, Lines]:
    """Both answers to a request."""
    # Answers have a length: what is compressed, listed or put together may have one or not.
    is_packed = any(line.startswith("Content-Encoding: gzip") for line in wanted)
    if lengths(wanted) != lengths(found) or is_packed:
        wanted, found = without_length(wanted), without_length(found)
    # Small things about error pages: what is always added stands twice in nginx's 416, and the
    # page of a compressed file says that it is compressed.
    if any(line.startswith("HTTP/1.1 416 ") for line in wanted):
        wanted = without_added(without(wanted, "content-encoding:"))
        found = without_added(found)
    # Bodies that are changed: what would grow is not compressed.
    if is_packed and not any(line.startswith("Content-Encoding:") for line in found):
        wanted, found = without_coding(wanted), without_coding(found)
    # Small things about error pages: who is asked again behind one is asked in one field.
    # So do the fields of an application that hands a request on to itself.
    if len(wanted) > len(found):
        wanted = once(wanted)
    # A second may have passed between the two answers: the moment is the same.
    if moment(wanted) and moment(wanted) == moment(found):
        wanted, found = without_age(wanted), without_age(found)
    # X-Accel and its errors: an error page does not have the type of the application.
    if b"X-Accel-Redirect" in told_origin(request):
        wanted, found = without(wanted, "content-type:"), without(found, "content-type:")
    return wanted, found


def once(lines: Lines) -> Lines:
    """Lines without the second of two fields that are the same."""
    kept = [line for at, line in enumerate(lines) if at == 0 or line != lines[at - 1]]
    return kept


# What `add_header` adds to random answers.
ADDED = ("x-a: ", "x-b: ", "x-late: ", "link: ", "content-language: ", "set-cookie: ")


def without_added(lines: Lines) -> Lines:
    """Lines of a 416 without the values of what is added.

    They tell of the page, and in nginx of the file.
    """
    texts = [line.split(" ")[0] if line.lower().startswith(ADDED) else line for line in lines]
    return once(texts)


def without_coding(lines: Lines) -> Lines:
    """Lines but those that say whether the body was compressed."""
    kept = without(lines, "content-encoding:", "accept-ranges:")
    return [re.sub(r"^(etag: )W/", r"\1", line, flags=re.I) for line in kept]


def moment(lines: Lines) -> str:
    """When an answer expires, as its field says it."""
    told = [line.partition(" = ")[0] for line in lines if line.startswith("Expires: ")]
    return " ".join(told)


def without_age(lines: Lines) -> Lines:
    """Lines without the seconds until then."""
    return [re.sub(r"^(Cache-Control: max-age=)\d+", r"\1", line) for line in lines]


def lengths(lines: Lines) -> int:
    """How many fields tell a length."""
    return sum(line.startswith("Content-Length:") for line in lines)


def without(lines: Lines, *fields: str) -> Lines:
    """Lines but those of these fields."""
    return [line for line in lines if not line.lower().startswith(fields)]


def without_length(lines: Lines) -> Lines:
    """Lines but those about what frames the body."""
    kept = without(lines, "content-length:", "transfer-encoding:")
    return [line for line in kept if line != "end "]


def told_origin(request: Request) -> bytes:
    """What a request asks the origin to answer, if it does."""
    code = re.search(r"raw/([0-9a-f]+)", request.target)
    own = bytes.fromhex(code[1]) if code and len(code[1]) % 2 == 0 else b""
    return own + (told_origin(request.more) if request.more else b"")
