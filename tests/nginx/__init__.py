"""Owns: the comparison of Bolide with the real nginx, and the search for differences.

`compare` is the comparison and `explore` the search; `sites` and `mistakes` are what both servers
are given, `allowed` says what may differ. Run by tests/compare.py and tests/explore.py.
"""
