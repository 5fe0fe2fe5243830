"""Owns a dynamic site as servers see it: its root, its PHP, its origin, and who caches how.

Each server has the best page cache that it knows; `original` is what the experiments of the time
used. The page itself says what its server's cache wants to hear (`cache.php`).
"""

from __future__ import annotations

import contextlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bolide_lab.model import Variant
from bolide_lab.sites.php import Fpm, Origin, Service

HERE = Path(__file__).parent

# Server: (mode of cache.php, what that is in a report); the second row of a server is its original.
BEST: dict[str, tuple[str, str]] = {
    "bolide": ("lscache", "page_cache auto, driven by LSCache's fields"),
    "openlitespeed": ("lscache", "its own cache, driven by LSCache's fields"),
    "nginx": ("gzip", "fastcgi_cache; the page stored compressed"),
    "angie": ("gzip", "fastcgi_cache; the page stored compressed"),
    "apache": ("gzip", "mod_cache on disk; the page stored compressed"),
    "caddy": ("disk", "copies on disk, plain and compressed, found without PHP"),
    "h2o": ("files", "copies in the document root, found without PHP"),
    "haproxy": ("gzip", "its own cache in front of nginx; the page stored compressed"),
    "vinyl": ("surrogate", "its own cache in front of nginx; parts by ESI"),
}
ORIGINAL: dict[str, tuple[str, str]] = {
    "nginx": ("plain", "fastcgi_cache; compressed again for each request"),
    "apache": ("basic", "copies on disk that PHP reads for each request"),
    "caddy": ("basic", "copies on disk that PHP reads for each request"),
    "h2o": ("basic", "copies on disk that PHP reads for each request"),
}
NEEDS_ORIGIN = frozenset({"haproxy", "vinyl"})

RULES: dict[str, str] = {
    "caddy": """@copy {
		method GET HEAD
		not header Cookie *wordpress_logged_in*
		expression {query} == ""
		file /lab-pages{path}/index.html
	}
	handle @copy {
		rewrite * /lab-pages{path}/index.html
		file_server {
			precompressed gzip
		}
	}
""",
    "vinyl": """sub vcl_backend_fetch {
    set bereq.http.Surrogate-Capability = "lab=ESI/1.0";
}
""",
}


def caching(server: str, variant: Variant) -> tuple[str, str]:
    """The mode of `cache.php` for a server, and what to say of it in a report."""
    known = {**BEST, **ORIGINAL} if variant == "original" else BEST
    return known.get(server, ("none", "no page cache: PHP runs for each request"))


@dataclass(frozen=True)
class Serving:
    """What a server needs to know of a running site."""

    root: Path
    php: Path
    origin: str | None
    rules: dict[str, str]
    cache: str


class DynamicSite(ABC):
    """A site of PHP; a context manager that is up inside its block."""

    name: str

    def __init__(self, directory: Path, children: int = 5, prefix: Sequence[str] = ()) -> None:
        """All files are below `directory`; `prefix` pins or places the site's processes."""
        self.directory = directory
        self.root = directory / "root"
        self.fpm = Fpm(directory / "php", children, prefix)
        self.origin: Origin | None = None

    @abstractmethod
    def urls_file(self, name: str) -> Path:
        """A list of addresses by the name that scenarios use; one path in each line."""

    @abstractmethod
    def install(self) -> None:
        """Makes `root`; what is there already stays."""

    def services(self) -> list[Service]:
        """What runs behind the site, in the order of starting."""
        return [self.fpm]

    def start(self) -> None:
        """Starts the services and makes the site."""
        try:
            for service in self.services():
                service.start()
            self.install()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends all of it; the files stay."""
        self.stop_origin()
        for service in reversed(self.services()):
            service.stop()

    def stop_origin(self) -> None:
        """Ends the origin, if there is one."""
        if self.origin is not None:
            self.origin.stop()
            self.origin = None

    def __enter__(self) -> DynamicSite:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def place_cache_code(self) -> None:
        """Puts `cache.php` where the site finds it."""
        lab = self.root / "lab"
        lab.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE / "cache.php", lab / "cache.php")

    def serve_with(
        self,
        server: str,
        variant: Variant,
        origin_port: int = 8081,
        prefix: Sequence[str] = (),
    ) -> Serving:
        """Makes the site ready for a server: its mode, no old copies, an origin if it needs one.

        `prefix` places the origin where the server is: in the server's namespace.
        """
        mode, cache = caching(server, variant)
        self.forget_copies()
        (self.root / "lab" / "mode").write_text(mode)
        # What a server sets by PHP_VALUE stays with the child: each server begins with fresh ones.
        self.fpm.stop()
        self.fpm.start()
        self.stop_origin()
        if server in NEEDS_ORIGIN:
            place = self.directory / "origin"
            (place / "origin.pid").unlink(missing_ok=True)
            self.origin = Origin(place, self.root, self.fpm.socket, origin_port, prefix)
            self.origin.start()
        where = f"127.0.0.1:{origin_port}" if self.origin else None
        rules = {server: RULES[server]} if server in RULES and variant == "best" else {}
        if server == "vinyl":
            rules = {server: RULES[server]}
        return Serving(self.root, self.fpm.socket, where, rules, cache)

    def forget_copies(self) -> None:
        """Removes pages that an earlier server's PHP has left on disk."""
        shutil.rmtree(self.root / "lab-pages", ignore_errors=True)
        copies = self.root / "lab" / "copies"
        if copies.exists():
            for line in copies.read_text().split("\n"):
                if line.startswith(str(self.root)):
                    with contextlib.suppress(OSError):
                        Path(line).unlink()
            copies.unlink()
