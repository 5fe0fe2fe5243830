"""A server under mixed traffic for a while, and whether it is afterwards what it was before."""
