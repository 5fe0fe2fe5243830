"""Adapters of servers: configuration, start, version, stop."""
