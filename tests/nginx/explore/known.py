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
    return settled_errors(wanted), settled_errors(found)


def settled_log(wanted: Lines, found: Lines) -> tuple[Lines, Lines]:
    """Both access logs."""
    # Variables of heads that cannot be read mean nothing.
    wanted, found = ([line for line in log if "|400|" not in line] for log in (wanted, found))
    # Not compared at all: the Allow of a 405.
    found = [
        re.sub(r"\|GET, HEAD[A-Z, ]*", "|-", line) if "|405|" in line else line for line in found
    ]
    if len(wanted) != len(found):
        return wanted, found
    readable = [at for at, line in enumerate(wanted) if not line.startswith(("log -|", "log |"))]
    one, other = (
        [re.sub(r"boundary=\d{20}", "boundary", log[at]) for at in readable]
        for log in (wanted, found)
    )
    return one, other


# What is not told, or told in other words.
UNTOLD = (
    "client sent ",
    "client prematurely",  # Lines of the error log about heads
    " is buffered to a temporary file ",
    "upstream sent duplicate header line",  # ... about origins
    " to override while reading",  # X-Accel and its errors
    "realpath() ",  # Variables
)
# Questions of auth_request, X-Accel and its errors: what a server was at.
ACTIONS = (
    " while sending response to client",
    " while reading response header from upstream",
    " while reading upstream",
    " while sending to client",
)


def settled_errors(lines: Lines) -> Lines:
    """Lines of an error log."""
    kept = [line for line in lines if not any(words in line for words in UNTOLD)]
    for action in ACTIONS:
        kept = [line.replace(action, "") for line in kept]
    # Lines of the error log: control characters are escaped, nginx writes them as they are.
    return [re.sub(r"\\x[01][0-9A-F]|\\x7F|[\x00-\x1f\x7f]", "", line) for line in kept]


def settled_answers(request: Request, wanted: Lines, found: Lines) -> tuple[Lines, Lines]:
    """Both answers to a request."""
    # Answers have a length: what is compressed, listed or put together may have one or not.
    is_packed = any(line.startswith("Content-Encoding: gzip") for line in wanted)
    if lengths(wanted) != lengths(found) or is_packed:
        wanted, found = without_length(wanted), without_length(found)
    # X-Accel and its errors: an error page does not have the type of the application.
    if b"X-Accel-Redirect" in told_origin(request):
        wanted, found = without(wanted, "content-type:"), without(found, "content-type:")
    return wanted, found


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
    return bytes.fromhex(code[1]) if code and len(code[1]) % 2 == 0 else b""
