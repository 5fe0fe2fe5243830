"""Owns WordPress: Debian's package with MariaDB and php-fpm, filled like a site that is used.

The package's files are copied, so nothing of the system's own installation is touched. Requests to
the world are blocked.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bolide_lab.sites.base import SiteError
from bolide_lab.sites.contest import ContestSite
from bolide_lab.sites.pages import HERE, DynamicSite
from bolide_lab.sites.php import MariaDb, Service, program

PACKAGE = Path("/usr/share/wordpress")
RESOURCES = 38


def configuration(socket: Path) -> str:
    """`wp-config.php`: whoever serves the site and by what address, its links fit."""
    keys = "".join(
        f"define('{name}_{what}', '{what.lower()} of {name}');\n"
        for name in ("AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE")
        for what in ("KEY", "SALT")
    )
    return f"""<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:{socket}');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('DISABLE_WP_CRON', true);
define('FS_METHOD', 'direct');
define('WP_CACHE', true);
define('WP_HOME', 'https://localhost');
define('WP_SITEURL', 'https://localhost');
{keys}$table_prefix = 'wp_';
// A page is the same whoever serves it: no redirect to another port or scheme.
$_SERVER['HTTPS'] = 'on';
$_SERVER['HTTP_HOST'] = 'localhost';
if (!defined('ABSPATH')) {{ define('ABSPATH', __DIR__ . '/'); }}
require_once ABSPATH . 'wp-settings.php';
"""


def resources(page: str, root: Path, count: int = RESOURCES) -> list[str]:
    """The page and what a browser may load with it, as paths: `count` in all.

    First what the page names, then styles, scripts and pictures of the theme and of WordPress.
    """
    found = ["/"]
    kinds = (".css", ".js", ".png", ".jpg", ".webp", ".woff2", ".svg")
    for address in re.findall(r"""(?:src|href)=["']https?://localhost(/[^"'?#]+)""", page):
        if address not in found and address.endswith(kinds) and (root / address[1:]).is_file():
            found.append(address)
    for place in ("wp-content/themes", "wp-includes/css", "wp-includes/js", "wp-includes/images"):
        for file in sorted((root / place).rglob("*")):
            address = "/" + str(file.relative_to(root))
            if len(found) < count and file.suffix in kinds and address not in found:
                found.append(address)
    return found[:count]


class WordPress(DynamicSite):
    """WordPress in a directory of its own."""

    name = "wordpress"

    def __init__(self, directory: Path, children: int = 5, prefix: Sequence[str] = ()) -> None:
        """MariaDB runs beside php-fpm."""
        super().__init__(directory, children, prefix)
        self.database = MariaDb(directory / "sql", prefix)

    def services(self) -> list[Service]:
        """The database first."""
        return [self.database, self.fpm]

    def install(self) -> None:
        """Copies the package and fills the database, once for each directory."""
        if not (PACKAGE / "wp-load.php").exists():
            raise SiteError("missing: wordpress; run: apt-get install wordpress php-mysql")
        done = self.directory / "filled"
        if not done.exists():
            shutil.rmtree(self.root, ignore_errors=True)
            self._copy()
            self.database.sql("drop database if exists wordpress; create database wordpress")
            self._fill()
            done.touch()
        self._place_plugins()

    def _copy(self) -> None:
        # Links lead to files of other packages; some of those may not be installed.
        def copy(source: str, target: str) -> str:
            return str(shutil.copyfile(source, target)) if Path(source).exists() else target

        unwanted = shutil.ignore_patterns(".htaccess", "wp-config.php")
        shutil.copytree(
            PACKAGE, self.root, ignore=unwanted, copy_function=copy, ignore_dangling_symlinks=True
        )
        (self.root / "wp-config.php").write_text(configuration(self.database.socket))

    def _fill(self) -> None:
        script = HERE / "wordpress_cache" / "fill.php"
        argv = [program(["php"], "php-cli php-mysql"), str(script), str(self.root)]
        done = subprocess.run(
            [*argv, "https://localhost"], capture_output=True, text=True, check=False
        )
        if "filled" not in done.stdout:
            raise SiteError(f"WordPress was not installed: {(done.stdout + done.stderr)[-600:]}")

    def _place_plugins(self) -> None:
        self.place_cache_code()
        content = self.root / "wp-content"
        (content / "mu-plugins").mkdir(exist_ok=True)
        own = HERE / "wordpress_cache"
        shutil.copyfile(own / "tells-the-cache.php", content / "mu-plugins" / "tells-the-cache.php")
        shutil.copyfile(own / "advanced-cache.php", content / "advanced-cache.php")

    def version(self) -> str:
        """Of WordPress."""
        source = (PACKAGE / "wp-includes" / "version.php").read_text(errors="replace")
        found = re.search(r"\$wp_version = '([^']+)'", source)
        return f"WordPress {found[1] if found else 'of unknown version'}"

    def home_page(self) -> str:
        """The home page as PHP makes it, asked for without a web server."""
        program_ = "$_SERVER += ['REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/', "
        program_ += "'SERVER_PROTOCOL' => 'HTTP/1.1']; chdir($argv[1]); "
        program_ += "define('WP_USE_THEMES', true); require 'wp-blog-header.php';"
        argv = [program(["php"], "php-cli"), "-r", program_, str(self.root)]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout

    def urls_file(self, name: str = "resources.txt") -> Path:
        """The list of the page and its resources, made on first use."""
        path = self.directory / name
        if not path.exists():
            path.write_text("\n".join(resources(self.home_page(), self.root)) + "\n")
        return path


class WordPressSite(ContestSite):
    """WordPress in a run."""

    name = "wordpress"
    makes = WordPress
    lists = ("resources.txt",)
