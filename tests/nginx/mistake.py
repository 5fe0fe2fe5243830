"""Owns: lists of configurations with a mistake or an oddity, and how tables fill them.

Both programs must say the same about each. MISTAKES are only tested (-t); STARTS are started and
end at once. @P9@ is a port that is in use.
"""

MISTAKES: list[tuple[str, str]] = []
STARTS: list[tuple[str, str]] = []
HEAD = "pid @LOGS@/pid; error_log @LOGS@/start.log; events {}\n"
SERVER = "http { access_log off; server { listen 127.0.0.1:@P0@;"


def whole(name: str, text: str) -> None:
    """Adds a whole configuration."""
    MISTAKES.append((name, text))


def main(text: str) -> None:
    """Adds what stands outside of blocks."""
    whole(f"main: {text}", HEAD + text)


def http(text: str) -> None:
    """Adds what stands in an http block."""
    whole(f"http: {text}", f"{HEAD}http {{ access_log off;\n{text}\n}}\n")


def server(text: str) -> None:
    """Adds what stands in a server."""
    whole(f"server: {text}", f"{HEAD}{SERVER}\n{text}\n}} }}\n")


def location(text: str) -> None:
    """Adds what stands in a location."""
    whole(f"location: {text}", f"{HEAD}{SERVER} location / {{\n{text}\n}} }} }}\n")


def start(name: str, text: str) -> None:
    """Adds a configuration that is started."""
    text = text.replace("http { server {", "http { access_log off; server {")
    STARTS.append((name, "daemon off;\n" + text))
