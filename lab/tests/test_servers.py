from dataclasses import replace
from pathlib import Path

import pytest

from bolide_lab.catalogue import load_catalogue
from bolide_lab.model import Scenario, Variant
from bolide_lab.servers import SERVERS, Place, Server, ServerError
from bolide_lab.servers.apache import Apache

CATALOGUE = load_catalogue()
NAMES = [name for name in SERVERS if name not in ("openlitespeed", "litespeed")]


def place(tmp_path: Path, **words: object) -> Place:
    site = tmp_path / "site"
    site.mkdir(exist_ok=True)
    (site / "1kstatic.html").write_text("x")
    plain = Place(site, tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "both.pem")
    return replace(plain, **words)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _no_server_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration is only text: apache's modules need not be there to be named."""
    monkeypatch.setattr(Apache, "modules", lambda self: Path("/usr/lib/apache2/modules"))


def text(server: Server, scenario: Scenario, directory: Path, variant: Variant = "best") -> str:
    return "\n".join(server.write_config(scenario, directory, variant).texts.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_configuration_has_its_ports_and_no_log_of_accesses(
    name: str, tmp_path: Path
) -> None:
    where = place(tmp_path, plain_port=18081, tls_port=18444, origin="127.0.0.1:18082")
    server = SERVERS[name](where)
    found = text(server, CATALOGUE["B-h2-html"], tmp_path / "server")
    said = found + " ".join(" ".join(c) for c in server.commands(tmp_path)) if server.find() else ""
    if said:
        assert "18081" in said
        assert all(str(port) in said for port in server.needs_ports())
    assert "CustomLog" not in found
    assert "access.log" not in found


@pytest.mark.parametrize("name", NAMES)
def test_configurations_are_the_same_each_time(name: str, tmp_path: Path) -> None:
    server = SERVERS[name](place(tmp_path, origin="127.0.0.1:1"))
    one = text(server, CATALOGUE["B-h1-html"], tmp_path / "server")
    assert text(server, CATALOGUE["B-h1-html"], tmp_path / "server") == one


def test_the_old_nginx_compresses_each_answer_and_renews_connections(tmp_path: Path) -> None:
    server = SERVERS["nginx"](place(tmp_path))
    best = text(server, CATALOGUE["B-h1-html"], tmp_path / "a")
    old = text(server, CATALOGUE["B-h1-html"], tmp_path / "b", "original")
    assert "gzip_static on" in best
    assert "gzip_static off" in old
    assert "keepalive_requests 100;" in old
    assert "rcvbuf=4m" not in old
    assert "keepalive_requests 10000;" in text(server, CATALOGUE["Q1a"], tmp_path, "original")


def test_only_servers_of_the_old_experiment_have_an_old_configuration() -> None:
    old = {n for n, s in SERVERS.items() if s().has_original(CATALOGUE["B-h2-html"])}
    assert old == {"nginx", "apache", "caddy", "h2o", "openlitespeed", "litespeed"}
    assert not SERVERS["nginx"]().has_original(CATALOGUE["own-h1-plain"])
    assert SERVERS["vinyl"]().has_original(CATALOGUE["M3"])


def test_a_server_says_why_it_cannot(tmp_path: Path) -> None:
    where = place(tmp_path)
    assert SERVERS["lighttpd"](where).supports(CATALOGUE["Q1a"]) == "this lighttpd has no h3"
    assert SERVERS["vinyl"](where).supports(CATALOGUE["B-h2-html"]) == "vinyl serves no files"
    (where.site / "100m").write_bytes(b"x" * 20_000)
    reason = SERVERS["haproxy"](where).supports(CATALOGUE["own-large-h1"])
    assert reason is not None
    assert reason.startswith("haproxy serves no files")


def test_virtual_hosts_are_configured_by_number(tmp_path: Path) -> None:
    scenario = CATALOGUE["own-vhosts"]
    for name in ("bolide", "nginx", "apache", "caddy", "h2o", "lighttpd"):
        found = text(SERVERS[name](place(tmp_path)), scenario, tmp_path / name)
        assert "site999" in found, name
        assert "site1000" not in found, name


def test_pages_are_cached_where_the_server_can(tmp_path: Path) -> None:
    where = place(tmp_path, php=Path("/x/php.sock"), origin="127.0.0.1:1")
    scenario = CATALOGUE["B-h2-wp"]
    words = {"bolide": "page_cache auto", "nginx": "fastcgi_cache pages", "apache": "CacheEnable"}
    for name, word in words.items():
        assert word in text(SERVERS[name](where), scenario, tmp_path / name)
    assert "cache-use" in text(SERVERS["haproxy"](where), scenario, tmp_path / "haproxy")


def test_a_server_without_a_place_is_only_looked_for() -> None:
    server = SERVERS["nginx"]()
    server.find()
    with pytest.raises(ServerError, match="no place"):
        _ = server.place
