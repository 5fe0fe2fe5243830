"""Owns: the comparison of the published styles of configurations, with the requests of
tests/published.
"""
from pathlib import Path

HOME = Path(__file__).parents[2] / "tests/published"
SCRIPT = (HOME / "env.php").read_text()
USERS = "alice:$apr1$abcdefgh$YoZRc15qZGhK2NX/RWmro.\n"
SITES = []
_FILES = {}


def _read(name):
    text = (HOME / f"{name}.conf").read_text()
    for word, value in (("@HTTP@", "@P0@"), ("@HTTPS@", "@P1@"), ("@PHP@", "@PHPA@"),
                        ("@ROOT@", f"@DIR@/published/{name.partition('-')[0]}"),
                        ("include @RULES@;", (HOME / "magento-rules.conf").read_text())):
        text = text.replace(word, value)
    return text.replace("@ROOT@", f"@DIR@/published/{name}").replace("@PHP@", "@PHPA@")


def _add(name):
    cases, tls = [], None
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
            cases.append(line if not tls or "Host:" in line else f"{line} | Host: {tls}")
    if tls:
        cases = [f"{case} | Connection: close" for case in cases]
    SITES.append({"name": f"published {name}", "conf": _read(name), "cases": cases, "open": True,
                  **({"tls": tls, "port": 1, "alone": True} if tls else {})})


for _name in ("wordpress", "network", "nextcloud", "laravel", "drupal", "magento", "hardened"):
    _add(_name)


def fill(home):
    """Makes the files of all applications below `home`."""
    for name, content in _FILES.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
