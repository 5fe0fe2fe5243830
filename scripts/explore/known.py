"""Owns: which differences of random cases are meant, and where docs/differences-from-nginx.md says so.

Each rule takes away from both sides what may differ; what is left must be equal.
"""

def settle(case, at, wanted, found):
    """Both sides without what is known to differ."""
    for rule in RULES:
        wanted, found = rule(case, at, wanted, found)
    return wanted, found


def lengths(_case, _at, wanted, found):
    """Answers have a length: what is compressed, listed or put together may have one or not."""
    def names(lines):
        return {line.partition(":")[0].lower() for line in lines}

    if names(wanted) != names(found) and "content-length" in names(wanted) ^ names(found) or any(line.startswith("Content-Encoding: gzip") for line in wanted):
        def drop(lines):
            return [line for line in lines if not line.lower().startswith(("content-length:", "transfer-encoding:")) and line != "end "]

        return drop(wanted), drop(found)
    return wanted, found


def bad_heads(case, at, wanted, found):
    """Heads that cannot be read: their variables are nobody's business."""
    if at < len(case.requests):
        return wanted, found
    return [[line for line in lines if "|400|" not in line and "client sent " not in line and "client prematurely" not in line] for lines in (wanted, found)]


def charsets(case, at, wanted, found):
    """X-Accel and its errors: no map of character sets is needed."""
    return [line for line in wanted if " to override while reading" not in line] if at > len(case.requests) else wanted, found


RULES = [lengths, bad_heads, charsets]
