"""Prints every path of the JSON text in a file, one a line: `a.b`, `c[].d`."""
import json
import sys
from pathlib import Path


def paths(value, at):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, f"{at}.{name}" if at else name)
    elif isinstance(value, list):
        if not value:
            yield f"{at}[]"
        for inner in value:
            yield from paths(inner, f"{at}[]")
    else:
        yield at


print("\n".join(sorted(set(paths(json.loads(Path(sys.argv[1]).read_text()), "")))))
