"""Random histories of a site behind a cache: who visits, what changes, what is purged.

Owns: nothing itself; `tests/histories.py` is the command, and `run` says what is checked.
"""
