"""Owns: which tables of mistakes there are."""

from importlib import import_module

TABLES = ("basics", "cache", "fastcgi", "log", "tls")


def load() -> None:
    """Reads all tables; what they add is in `mistake.MISTAKES` and `mistake.STARTS`."""
    for name in TABLES:
        import_module(f".{name}", __name__)
