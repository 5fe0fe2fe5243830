"""Owns the shop that stands in for Magento, which no registry has: addresses, weights, files.

The addresses are those of the shop experiment; css, js and pictures have the weights of such a
shop's theme. PHP costs far less here than there, so only pages from a cache compare. The site is
`shop/*.php` and files made here from numbers, the same on every machine.
"""

from __future__ import annotations

import gzip
import random
import shutil
from pathlib import Path

from bolide_lab.sites.contest import ContestSite
from bolide_lab.sites.pages import HERE, DynamicSite

URLS = (
    "/what-is-new.html",
    "/women.html",
    "/men.html",
    "/gear.html",
    "/training.html",
    "/sale.html",
    "/catalogsearch/result/?q=hoodie",
    "/customer/account/login",
    "/contact/",
    "/catalogsearch/advanced/",
    "/privacy-policy-cookie-restriction-mode",
    "/customer/account/create/",
    "/women/tops-women/hoodies-and-sweatshirts-women.html",
    "/men/tops-men/hoodies-and-sweatshirts-men.html",
    "/catalogsearch/result/?q=bag",
    "/tiffany-fitness-tee.html",
    "/adrienne-trek-jacket.html",
    "/zoltan-gym-tee.html",
    "/taurus-elements-shell.html",
    "/luma-analog-watch.html",
)
# What caches must not keep: pages of a session.
NEVER_CACHED = ("/customer/account/login", "/customer/account/create/")
CATEGORY = "/gear/bags.html"
HOME_IMAGES_BYTES = {
    "/media/wysiwyg/home/home-pants.jpg": 52_000,
    "/media/wysiwyg/home/home-erin.jpg": 68_000,
    "/media/wysiwyg/home/home-main.jpg": 152_000,
    "/media/wysiwyg/home/home-eco.jpg": 44_000,
    "/media/wysiwyg/home/home-t-shirts.png": 96_000,
}
STATIC_URLS = tuple(HOME_IMAGES_BYTES)
COLD_PAGES = 2000
PRODUCT_IMAGES = 24
STYLES_BYTES = {"styles-m": 410_000, "styles-l": 130_000, "calendar": 14_000}
SCRIPTS_BYTES = {
    "require": 86_000,
    "mixins": 4_000,
    "requirejs-config": 24_000,
    "jquery": 290_000,
    "knockout": 68_000,
    "theme": 6_000,
    "menu": 21_000,
    "swatch": 42_000,
}
WORDS = (
    *("block", "page", "product", "price", "action", "field", "header", "footer"),
    *("label", "option", "grid", "primary", "hover"),
)


def text(kind: str, bytes_wanted: int, chance: random.Random) -> bytes:
    """Rules or functions that compress as such files do, about one to five."""
    out: list[str] = []
    size = 0
    while size < bytes_wanted:
        names = [chance.choice(WORDS) for _ in range(3)]
        number = chance.randrange(10_000)
        if kind == "css":
            line = (
                f".{'-'.join(names)}-{number % 97}{{margin:{number % 40}px;color:#{number:04x}}}\n"
            )
        else:
            line = f"function {names[0]}{number}({names[1]})"
            line += f"{{return {names[1]}.{names[2]}+{number};}}\n"
        out.append(line)
        size += len(line)
    return "".join(out).encode()[:bytes_wanted]


def picture(kind: str, bytes_wanted: int, chance: random.Random) -> bytes:
    """What does not compress, with the beginning of its kind."""
    start = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" if kind == "jpg" else b"\x89PNG\r\n\x1a\n"
    return start + chance.randbytes(bytes_wanted - len(start))


def files() -> dict[str, bytes]:
    """All static files by their address."""
    chance = random.Random(2020)
    made: dict[str, bytes] = {}
    for name, size in STYLES_BYTES.items():
        made[f"/static/css/{name}.css"] = text("css", size, chance)
    for name, size in SCRIPTS_BYTES.items():
        made[f"/static/js/{name}.js"] = text("js", size, chance)
    logo = '<svg xmlns="http://www.w3.org/2000/svg" width="148" height="43">'
    made["/static/images/logo.svg"] = f'{logo}<path d="M0 0h148v43H0z"/></svg>\n'.encode()
    for path, size in HOME_IMAGES_BYTES.items():
        made[path] = picture(path.rpartition(".")[2], size, chance)
    for number in range(PRODUCT_IMAGES):
        size = 12_000 + chance.randrange(10_000)
        made[f"/media/catalog/product/{number}.jpg"] = picture("jpg", size, chance)
    return made


class Shop(DynamicSite):
    """The shop in a directory of its own."""

    name = "shop"

    def install(self) -> None:
        """Writes PHP, files and the lists of addresses."""
        self.place_cache_code()
        for source in sorted((HERE / "shop").glob("*.php")):
            inner = "lab" if source.name in ("catalogue.php", "template.php") else ""
            shutil.copyfile(source, self.root / inner / source.name)
        for path, content in files().items():
            file = self.root / path[1:]
            if file.exists():
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            if file.suffix in (".css", ".js", ".svg"):
                packed = file.with_name(file.name + ".gz")
                packed.write_bytes(gzip.compress(content, 9, mtime=0))
        self.urls_file("urls.txt").write_text("\n".join(URLS) + "\n")
        cold = "".join(f"/cold.php?page={number}\n" for number in range(COLD_PAGES))
        self.urls_file("urls-cold.txt").write_text(cold)
        self.urls_file("urls-static.txt").write_text("\n".join(STATIC_URLS) + "\n")

    def urls_file(self, name: str) -> Path:
        """The list that a scenario names; one path in each line."""
        return self.directory / name


class ShopSite(ContestSite):
    """The shop in a run."""

    name = "shop"
    makes = Shop
    lists = ("urls.txt", "urls-static.txt", "urls-cold.txt")
