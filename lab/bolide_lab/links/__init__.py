"""Shaped links between a client's namespace and a server's."""
