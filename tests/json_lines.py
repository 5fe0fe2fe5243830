"""Reads a file of JSON lines strictly and prints the members that are named, one line for each."""

import json
import sys


def refuse(word):
    """Refuse what JSON has no number for: NaN and infinities (RFC 8259 section 6)."""
    raise ValueError(word)


def main(path, *names):
    """Print members, joined by bars."""
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    assert lines.pop() == b"", "the last line ends"
    for line in lines:
        record = json.loads(line.decode("utf-8", "strict"), parse_constant=refuse)
        values = [record[name] for name in names]
        print("|".join(value if isinstance(value, str) else repr(value) for value in values))


main(*sys.argv[1:])
