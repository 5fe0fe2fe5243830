"""Adapters of load generators: their command lines and what they print."""
