"""Owns: which differences of random cases are meant, and where docs/differences-from-nginx.md says so.

Each rule takes away from both sides what may differ; what is left must be equal.
"""
import re


def settle(case, at, wanted, found):
    """Both sides without what is known to differ."""
    if at < len(case.requests):
        return answers(case, at, wanted, found)
    if at == len(case.requests):
        # Heads that cannot be read: their variables are nobody's business.
        wanted, found = ([line for line in lines if "|400|" not in line] for lines in (wanted, found))
        # Not compared at all: the Allow of a 405.
        found = [re.sub(r"\|GET, HEAD[A-Z, ]*", "|-", line) if "|405|" in line else line for line in found]
        if len(wanted) != len(found):
            return wanted, found
        readable = [at for at, line in enumerate(wanted) if not line.startswith(("log -|", "log |"))]
        return [[re.sub(r"boundary=\d{20}", "boundary", lines[at]) for at in readable] for lines in (wanted, found)]
    return settled_errors(wanted), settled_errors(found)


# What is not told, or told in other words.
UNTOLD = (
    "client sent ", "client prematurely",  # Lines of the error log about heads
    " is buffered to a temporary file ", "upstream sent duplicate header line",  # ... about origins
    " to override while reading",  # X-Accel and its errors
    "realpath() ",  # Variables
)
# Questions of auth_request, X-Accel and its errors: what a server was at.
ACTIONS = (" while sending response to client", " while reading response header from upstream", " while reading upstream", " while sending to client")


def settled_errors(lines):
    kept = [line for line in lines if not any(words in line for words in UNTOLD)]
    for action in ACTIONS:
        kept = [line.replace(action, "") for line in kept]
    return kept


def answers(case, at, wanted, found):
    # Answers have a length: what is compressed, listed or put together may have one or not.
    if has_length(wanted) != has_length(found) or any(line.startswith("Content-Encoding: gzip") for line in wanted):
        wanted, found = without_length(wanted), without_length(found)
    # X-Accel and its errors: an error page does not have the type of the application.
    if b"X-Accel-Redirect" in told_origin(case.requests[at]):
        wanted, found = ([line for line in lines if not line.startswith("Content-Type:")] for lines in (wanted, found))
    return wanted, found


def has_length(lines):
    return sum(line.startswith("Content-Length:") for line in lines)


def without_length(lines):
    return [line for line in lines if not line.lower().startswith(("content-length:", "transfer-encoding:")) and line != "end "]


def told_origin(request):
    """What a request asks the origin to answer, if it does."""
    code = re.search(r"raw/([0-9a-f]+)", request.target)
    return bytes.fromhex(code[1]) if code and len(code[1]) % 2 == 0 else b""
