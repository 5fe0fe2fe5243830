"""Owns: which tables of sites there are, in the order in which they are compared."""

from importlib import import_module

TABLES = (
    "basics",
    "filters",
    "found",
    "identity",
    "limiting",
    "logs",
    "moments",
    "caught",
    "post_action",
    "rewriting",
    "bodies",
    "connections",
    "happenings",
    "framing",
    "handshakes",
    "harmless",
    "headers",
    "inheriting",
    "ssi",
    "variables",
    "charsets",
    "visitors",
    "videos",
    "mirrors",
    "changes",
    "fastcgi",
    "groups",
    "zones",
    "slices",
    "sticky",
    "client_certs",
    "published",
    "applications",
    "named_applications",
    "named_gateways",
    "named_services",
    "named_federation",
    "named_homes",
    "named_pages",
    "named_recipes",
    "named_clients",
    "named_fronts",
    "pitfalls",
    "php_applications",
    "proxying",
    "secured",
    "servers",
    "memcached",
    "overriding",
    "wishes",
    "names",
    "certificates",
)


def load() -> None:
    """Reads all tables; what they add is in `site.SITES` and `mistake.MISTAKES`."""
    for name in TABLES:
        import_module(f".{name}", __name__)
