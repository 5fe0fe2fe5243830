"""Random histories of a site behind a cache: who visits, what changes, what is purged.

Owns: nothing itself; `tests/histories.py` is the command, and `checks` says what is checked.
"""
