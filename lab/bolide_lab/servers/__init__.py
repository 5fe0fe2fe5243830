"""Adapters of servers: configuration, start, version, stop."""

from __future__ import annotations

from bolide_lab.servers.apache import Apache
from bolide_lab.servers.base import Place, Server, ServerError
from bolide_lab.servers.bolide import Bolide
from bolide_lab.servers.caddy import Caddy
from bolide_lab.servers.floor import Floor
from bolide_lab.servers.h2o import H2o
from bolide_lab.servers.haproxy import Haproxy
from bolide_lab.servers.lighttpd import Lighttpd
from bolide_lab.servers.litespeed import LiteSpeed, OpenLiteSpeed
from bolide_lab.servers.nginx import Angie, Nginx
from bolide_lab.servers.vinyl import Vinyl

SERVERS: dict[str, type[Server]] = {
    one.name: one
    for one in (
        Bolide,
        Nginx,
        Apache,
        Caddy,
        H2o,
        Haproxy,
        Vinyl,
        Lighttpd,
        OpenLiteSpeed,
        LiteSpeed,
        Angie,
        Floor,
    )
}

__all__ = ["SERVERS", "Place", "Server", "ServerError"]
