"""Dynamic sites: who caches how, what PHP says to each cache, and the shop's files."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bolide_lab.sites import pages, shop, wordpress
from bolide_lab.sites.base import SiteError, TellsCaches, site
from bolide_lab.sites.php import Fpm, Origin, program

RUN = r"""<?php
[, $root, $mode, $uri, $cart] = $argv;
file_put_contents("$root/lab/mode", $mode);
$_SERVER = ['REQUEST_URI' => $uri, 'REQUEST_METHOD' => 'GET', 'HTTP_ACCEPT_ENCODING' => 'gzip',
    'X-LSCACHE' => 'on,esi', 'HTTP_SURROGATE_CAPABILITY' => 'x=ESI/1.0'] + $_SERVER;
$_COOKIE = $cart === '' ? [] : ['cart_items' => $cart];
parse_str(parse_url($uri, PHP_URL_QUERY) ?? '', $_GET);
http_response_code(200);
ob_start(null, 0, 0);
register_shutdown_function(function () {
    $page = ob_get_contents();
    $said = ['fields' => fields(), 'page' => base64_encode($page)];
    file_put_contents(__DIR__ . '/said.json', json_encode($said));
});
function fields(): array { return $GLOBALS['said'] ?? []; }
eval('namespace Lab\Cache; function header(string $line): void { $GLOBALS["said"][] = $line; }');
require "$root/index.php";
"""


def ask(tmp_path: Path, mode: str, uri: str, cart: str = "") -> tuple[list[str], bytes]:
    """What the shop's PHP says and sends in a mode, without a server."""
    assert shutil.which("php"), "missing: php; run: scripts/setup.sh test"
    one = shop.Shop(tmp_path)
    if not one.root.exists():
        one.root.mkdir()
        one.install()
    script = tmp_path / "ask.php"
    script.write_text(RUN)
    argv = ["php", str(script), str(one.root), mode, uri, cart]
    subprocess.run(argv, capture_output=True, check=True)
    said = json.loads((tmp_path / "said.json").read_text())
    return said["fields"], base64.b64decode(said["page"])


def test_each_cache_is_told_in_its_own_words(tmp_path: Path) -> None:
    fields, page = ask(tmp_path, "lscache", shop.CATEGORY)
    assert "X-LiteSpeed-Cache-Control: public,max-age=3600,esi=on" in fields
    assert any(field.startswith("X-LiteSpeed-Tag: CAT_C_7,") for field in fields)
    assert "X-LiteSpeed-Vary: cookie=cart_items" in fields
    assert page.count(b"<esi:include") == 1 and b"minicart" in page
    fields, page = ask(tmp_path, "lscache", shop.CATEGORY, cart="2")
    assert "X-LiteSpeed-Vary: cookie=cart_items" in fields
    assert b'<esi:include src="/esi/cart" />' in page and b"minicart" not in page
    fields, page = ask(tmp_path, "surrogate", shop.CATEGORY)
    assert 'Surrogate-Control: content="ESI/1.0"' in fields
    assert any(field.startswith("X-Tags: CAT_C_7,") for field in fields)
    assert page.count(b"<esi:include") == 1
    fields, page = ask(tmp_path, "gzip", shop.CATEGORY)
    assert "Content-Encoding: gzip" in fields and "Vary: Accept-Encoding" in fields
    assert page[:2] == b"\x1f\x8b"
    fields, page = ask(tmp_path, "none", shop.CATEGORY)
    assert fields[0] == "Content-Type: text/html; charset=UTF-8"
    assert fields[1:] == [f"Content-Length: {len(page)}"]
    assert b"esi:include" not in page and 40_000 < len(page) < 200_000


@pytest.mark.parametrize(
    "mode", ["lscache", "surrogate", "gzip", "plain", "disk", "files", "basic"]
)
def test_pages_of_a_session_are_never_kept(tmp_path: Path, mode: str) -> None:
    for path in (*shop.NEVER_CACHED, "/none"):
        fields, _ = ask(tmp_path, mode, path)
        assert "Cache-Control: private, no-cache, no-store" in fields
        assert not any("public" in field for field in fields)
    assert not (tmp_path / "root" / "lab-pages").exists()


def test_copies_are_where_servers_look_and_can_be_forgotten(tmp_path: Path) -> None:
    ask(tmp_path, "disk", shop.CATEGORY)
    root = tmp_path / "root"
    copy = root / "lab-pages/gear/bags.html/index.html"
    assert copy.exists() and copy.with_name("index.html.gz").exists()
    ask(tmp_path, "files", shop.CATEGORY)
    assert (root / "gear/bags.html").is_file()
    fields, page = ask(tmp_path, "basic", shop.CATEGORY)
    assert (
        "Content-Encoding: gzip" in fields and page == copy.with_name("index.html.gz").read_bytes()
    )
    shop.Shop(tmp_path).forget_copies()
    assert not copy.exists() and not (root / "gear/bags.html").exists()
    assert (root / "static/css/styles-m.css").exists()


def test_every_server_of_the_catalogue_has_a_cache_or_is_said_to_have_none() -> None:
    assert pages.caching("bolide", "best")[0] == "lscache"
    assert pages.caching("nginx", "best")[0] == "gzip"
    assert pages.caching("nginx", "original")[0] == "plain"
    assert pages.caching("haproxy", "original") == pages.caching("haproxy", "best")
    assert pages.caching("unheard-of", "best")[0] == "none"
    assert set(pages.ORIGINAL) <= set(pages.BEST)


def test_the_shop_has_the_addresses_and_weights_of_the_original() -> None:
    assert len(shop.URLS) == 20 and len(shop.STATIC_URLS) == 5
    made = shop.files()
    assert made == shop.files()
    assert {path: len(made[path]) for path in shop.STATIC_URLS} == shop.HOME_IMAGES_BYTES
    assert len(made["/static/css/styles-m.css"]) == 410_000


def test_the_resources_of_a_page_are_files(tmp_path: Path) -> None:
    styles = tmp_path / "wp-includes/css"
    styles.mkdir(parents=True)
    for n in range(50):
        (styles / f"{n:02}.css").write_text("a{}")
    (tmp_path / "index.php").write_text("")
    text = '<link href="https://localhost/wp-includes/css/40.css?ver=6"><a href="https://localhost/x/">'
    found = wordpress.resources(text, tmp_path)
    assert found[:3] == ["/", "/wp-includes/css/40.css", "/wp-includes/css/00.css"]
    assert len(found) == len(set(found)) == 38


def test_configurations_name_their_sockets(tmp_path: Path) -> None:
    fpm = Fpm(tmp_path, children=3)
    assert f"listen = {tmp_path}/php.sock" in fpm.configuration()
    assert "pm.max_children = 3" in fpm.configuration()
    origin = Origin(tmp_path, tmp_path / "root", fpm.socket, 8099)
    assert f"fastcgi_pass unix:{fpm.socket};" in origin.configuration()
    assert "listen 127.0.0.1:8099;" in origin.configuration()
    assert "localhost:/run/x.sock" in wordpress.configuration(Path("/run/x.sock"))


def test_what_is_missing_is_named_with_its_command() -> None:
    with pytest.raises(SiteError, match="missing: no-such-program; run: apt-get install a-package"):
        program(["no-such-program"], "a-package")


def test_a_run_knows_both_sites() -> None:
    for name in ("shop", "wordpress"):
        one = site(name)
        assert one.name == name and isinstance(one, TellsCaches)
