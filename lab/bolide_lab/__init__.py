"""The laboratory: published tests of web servers, repeated side by side."""

__version__ = "0.1.0"
