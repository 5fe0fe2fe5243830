"""Owns: the comparison of the published styles of configurations, with their requests.

Both stand in tests/published.
"""

from pathlib import Path
from typing import Any

from ..site import Case, http

HOME = Path(__file__).parents[2] / "published"
SCRIPT = (HOME / "env.php").read_text()
USERS = "alice:$apr1$abcdefgh$YoZRc15qZGhK2NX/RWmro.\n"
_FILES: dict[str, str] = {}


def _read(name: str) -> str:
    """The configuration of a style, with the words of this comparison."""
    text = (HOME / f"{name}.conf").read_text()
    for word, value in (
        ("@HTTP@", "@P0@"),
        ("@HTTPS@", "@P1@"),
        ("@PHP@", "@PHPA@"),
        ("@ROOT@", f"@DIR@/published/{name.partition('-')[0]}"),
        ("include @RULES@;", (HOME / "magento-rules.conf").read_text()),
    ):
        text = text.replace(word, value)
    return text.replace("@ROOT@", f"@DIR@/published/{name}").replace("@PHP@", "@PHPA@")


def _add(name: str) -> None:
    """Adds one style with its files and requests."""
    cases: list[Case] = []
    tls = None
    for line in (HOME / f"{name}.txt").read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if not line or line.startswith("  "):
            continue
        if kind in ("php", "file", "users"):
            content = {"php": SCRIPT, "file": f"this is {rest}\n", "users": USERS}[kind]
            _FILES[f"published/{name}/{rest}"] = content
        elif kind == "tls":
            tls = rest
        else:
            host = f" | Host: {tls}" if tls and "Host:" not in line else ""
            cases.append(line + host + (" | Connection: close" if tls else ""))
    options: dict[str, Any] = {"tls": tls, "port": 1, "alone": True} if tls else {}
    http(f"published {name}", _read(name), cases, open=True, **options)


for _name in ("wordpress", "network", "nextcloud", "laravel", "drupal", "magento", "hardened"):
    _add(_name)


def fill(home: Path) -> None:
    """Makes the files of all applications below `home`."""
    for name, content in _FILES.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
