"""Adapters of load generators: their command lines and what they print."""

from __future__ import annotations

from importlib import import_module

from bolide_lab.clients.base import Client

MODULES = {
    "h2load": "H2load",
    "wrk": "Wrk",
    "siege": "Siege",
    "idle": "Idle",
    "curl": "Curl",
    "openloop": "OpenLoop",
}


def client(name: str) -> Client:
    """The adapter of that name. Raises KeyError for one that is not known."""
    module = import_module(f"bolide_lab.clients.{name}") if name in MODULES else None
    if module is None:
        raise KeyError(f"no client {name!r}; there are {', '.join(MODULES)}")
    made: Client = getattr(module, MODULES[name])()
    return made
