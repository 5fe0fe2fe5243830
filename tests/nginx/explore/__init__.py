"""Owns: the search for differences from nginx with random configurations and requests."""
