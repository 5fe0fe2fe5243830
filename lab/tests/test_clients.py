import json
from pathlib import Path

import pytest

from bolide_lab.clients import client
from bolide_lab.clients.base import Address, ClientError, seconds, size_bytes, split_url
from bolide_lab.clients.h2load import H2load, percentiles, percentiles_of_log
from bolide_lab.clients.idle import Idle
from bolide_lab.clients.siege import Siege
from bolide_lab.clients.wrk import Wrk
from bolide_lab.model import LatencyUs, Load

RECORDED = Path(__file__).parent / "recorded"


def said(name: str) -> str:
    return (RECORDED / name).read_text()


def load(**words: object) -> Load:
    plain: dict[str, object] = {
        "client": "h2load",
        "url": "/a.html",
        "protocol": "h2",
        "requests": 1000,
        "seconds": None,
        "connections": 10,
        "streams": 2,
    }
    return Load(**{**plain, **words})  # type: ignore[arg-type]


def test_h2load_over_http2() -> None:
    got = H2load().parse(said("h2load-h2.txt"))
    assert (got.requests, got.failed) == (2000, 0)
    assert got.seconds == pytest.approx(0.05346)
    assert got.requests_per_s == pytest.approx(37411, rel=1e-3)
    assert got.bytes_total == 2302490
    assert got.latency_us is not None
    assert got.latency_us.p90 is None
    assert (got.latency_us.p50, got.latency_us.p99) == pytest.approx((1480, 4190))
    assert got.extra["header_savings_percent"] == 39.11
    assert got.extra["latency_us_p95"] == pytest.approx(2920)


def test_h2load_over_http3_by_time() -> None:
    got = H2load().parse(said("h2load-h3.txt"))
    assert (got.requests, got.failed) == (18482, 0)
    assert got.latency_us is not None
    assert got.latency_us.p99 == pytest.approx(83630)
    assert got.extra["packets_lost_mean"] == 0


def test_h2load_counts_what_failed() -> None:
    got = H2load().parse(said("h2load-fail.txt"))
    assert (got.requests, got.failed) == (0, 3)
    dead = H2load().parse(said("h2load-dead.txt"))
    assert (dead.requests, dead.failed, dead.latency_us) == (0, 3, None)


def test_percentiles_come_from_all_good_answers_of_the_log() -> None:
    assert percentiles_of_log(said("h2load-log.txt")) is None
    lines = "".join(f"1795269669378252\t200\t{n}\n" for n in range(1, 1001))
    assert percentiles_of_log(lines) == LatencyUs(500, 900, 990, 999)
    assert percentiles([7]) == LatencyUs(7, 7, 7, 7)


def test_wrk() -> None:
    got = Wrk().parse(said("wrk.txt"))
    assert (got.requests, got.failed) == (59064, 0)
    assert got.seconds == pytest.approx(1.36)
    assert got.latency_us is not None
    assert got.latency_us.p999 is None
    assert (got.latency_us.p90, got.latency_us.p99) == pytest.approx((70600, 212020))
    exact = said("wrk.txt") + "LAB p50 170 p90 70601 p99 212022 p999 230000\n"
    assert Wrk().parse(exact).latency_us == LatencyUs(170, 70601, 212022, 230000)
    failed = Wrk().parse(said("wrk-fail.txt"))
    assert (failed.requests, failed.failed) == (0, 10348)


def test_siege() -> None:
    got = Siege().parse(said("siege.txt"))
    assert (got.requests, got.failed, got.seconds) == (23521, 0, 1.13)
    assert got.requests_per_s == pytest.approx(20815.04, abs=0.01)
    assert got.bytes_total == round(22.97 * 1024 * 1024)
    assert got.extra["longest_s"] == 0.01


def test_siege_before_it_spoke_json() -> None:
    text = """Transactions:		        1000 hits
Availability:		      100.00 %
Elapsed time:		        2.50 secs
Successful transactions:        1000
Failed transactions:	           3
Longest transaction:	        0.03
"""
    got = Siege().parse(text)
    assert (got.requests, got.failed, got.requests_per_s) == (1000, 3, 400)
    assert got.extra["availability_percent"] == 100


def test_idle() -> None:
    text = json.dumps({"opening_s": 2.0, "open": 90, "failed": 10, "held_s": 1.0})
    got = Idle().parse("a warning\n" + text + "\n")
    assert (got.requests, got.failed, got.requests_per_s) == (90, 10, 45)


@pytest.mark.parametrize("name", ["h2load", "wrk", "siege", "idle"])
@pytest.mark.parametrize("text", ["", "command not found", "{}", "finished in 0us"])
def test_no_report_is_an_error_that_says_what_was_printed(name: str, text: str) -> None:
    with pytest.raises(ClientError, match="no report"):
        client(name).parse(text)
    with pytest.raises(ClientError):
        client("wrk").parse(said("wrk-dead.txt"))


def test_command_lines(tmp_path: Path) -> None:
    where = Address("127.0.0.1", 8080, 8443, tmp_path)
    argv = H2load().argv(load(headers=("A: b",), extra={"log": True}), where)
    assert argv[1:6] == ["--alpn-list=h2", "-n1000", "-c10", "-m2", "-t1"]
    assert argv[-1] == "https://127.0.0.1:8443/a.html"
    assert f"--log-file={tmp_path}/h2load.log" in argv
    plain = H2load().argv(load(protocol="h1", requests=None, seconds=2.4), where)
    assert plain[1:3] == ["--h1", "-D2400ms"]
    assert plain[-1] == "http://127.0.0.1:8080/a.html"
    wrk = Wrk().argv(load(protocol="h1-tls", seconds=3.0, url="shop.test/x"), where)
    assert wrk[1:4] == ["-t1", "-c10", "-d3s"]
    assert "Host: shop.test" in wrk
    urls = tmp_path / "list"
    urls.write_text("/one\n/two\n")
    siege = Siege().argv(load(protocol="h1", urls_file=str(urls), extra={"parser": True}), where)
    assert "--parser" in siege
    made = (tmp_path / "siege-urls.txt").read_text().split()
    assert made == ["http://127.0.0.1:8080/one", "http://127.0.0.1:8080/two"]
    assert "parser = true" in (tmp_path / "siegerc").read_text()


def test_what_a_client_cannot_do_is_said() -> None:
    assert Wrk().supports(load(protocol="h2")) == "wrk has no h2"
    assert Siege().supports(load(protocol="h3")) == "siege has no h3"
    assert "open files" in (Idle().supports(load(protocol="h1-tls", connections=10**9)) or "")


def test_units() -> None:
    assert seconds("1.5ms") == pytest.approx(0.0015)
    assert size_bytes("2.20MB") == round(2.2 * 1024 * 1024)
    assert size_bytes("712B") == 712
    assert split_url("shop.test/a/b") == ("shop.test", "/a/b")
    assert split_url("/a") == (None, "/a")
