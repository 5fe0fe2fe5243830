"""curl: commands, recorded reports, and the order of the arms."""

import subprocess
from pathlib import Path

import pytest

from bolide_lab.clients import curl
from bolide_lab.clients.base import Address, ClientError
from bolide_lab.model import Load

RECORDED = Path(__file__).parent / "recorded"
LOAD = Load("curl", "/", "h3", 1, None, 1, 1, extra={"arms": ["h3", "h2"]})

ONE_PAGE = (
    '{"conn_id":0,"errormsg":null,"exitcode":0,"http_code":200,"http_version":"2",'
    '"num_connects":1,"size_download":1024,"size_header":180,"time_appconnect":0.005651,'
    '"time_connect":0.000210,"time_namelookup":0.000072,"time_pretransfer":0.005807,'
    '"time_starttransfer":0.005944,"time_total":0.006050,"urlnum":0}\n'
)
REFUSED = (
    '{"conn_id":0,"errormsg":"Failed to connect","exitcode":7,"http_code":0,"http_version":"0",'
    '"num_connects":0,"size_download":0,"size_header":0,"time_appconnect":0.0,'
    '"time_connect":0.0,"time_namelookup":0.00003,"time_pretransfer":0.0,'
    '"time_starttransfer":0.0,"time_total":0.0004,"urlnum":0}\n'
)


def test_one_page_is_split_into_phases() -> None:
    outcome = curl.parse(ONE_PAGE, "h2")
    assert (outcome.requests, outcome.failed, outcome.bytes_total) == (1, 0, 1204)
    assert outcome.seconds == 0.00605
    phases = {name: us for name, us in outcome.extra.items() if name.endswith("_us")}
    assert phases == {
        "dns_us": 72,
        "handshake_us": 5579,
        "first_byte_us": 137,
        "body_us": 106,
        "total_us": 6050,
    }


@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_38_resources_came_over_one_connection(protocol: str) -> None:
    text = (RECORDED / f"curl-{protocol}-38.txt").read_text(encoding="utf-8")
    outcome = curl.parse(text, "h2" if protocol == "h2" else "h3")
    assert (outcome.requests, outcome.failed) == (38, 0)
    assert outcome.extra["connections"] == 1
    assert outcome.extra["http_versions"] == [protocol[1:]]
    assert outcome.bytes_total is not None and outcome.bytes_total > 38 * 1024
    assert 0 < outcome.seconds < 1


def test_another_protocol_than_asked_for_is_a_failure() -> None:
    assert curl.parse(ONE_PAGE, "h3").failed == 1
    assert curl.parse(ONE_PAGE, None).failed == 0


def test_errors_are_failures() -> None:
    outcome = curl.parse(REFUSED, "h2")
    assert (outcome.requests, outcome.failed, outcome.requests_per_s) == (0, 1, 0.0)
    assert curl.parse(ONE_PAGE.replace("200", "404"), "h2").failed == 1
    nothing = curl.parse("", "h2")
    assert (nothing.requests, nothing.failed, nothing.seconds) == (0, 0, 0.0)


def test_the_process_is_what_curl_does_not_account_for() -> None:
    outcome = curl.with_wall_time(curl.parse(ONE_PAGE, "h2"), 0.02)
    assert outcome.seconds == 0.02
    assert outcome.extra["process_us"] == 13950


def test_one_page_needs_no_parallel_transfers() -> None:
    argv = curl.argv(LOAD, "10.77.0.1:8443", "/x/curl")
    assert argv[:2] == ["/x/curl", "-q"]
    assert "--http3-only" in argv and "-Z" not in argv
    assert "localhost:8443:10.77.0.1" in argv
    assert argv[-1] == "https://localhost:8443/"


def test_many_resources_are_fetched_in_parallel(tmp_path: Path) -> None:
    listing = tmp_path / "urls.txt"
    listing.write_text("".join(f"/r{n}\n" for n in range(40)))
    load = Load("curl", "/", "h2", 38, None, 1, 38, urls_file=str(listing))
    argv = curl.argv(load, "10.77.0.1:8443")
    assert "-Z" in argv and argv[argv.index("--parallel-max") + 1] == "38"
    assert [word for word in argv if word.startswith("https:")][-1].endswith("/r37")
    assert argv.count("-o") == 38


def test_arms_take_turns_in_an_order_of_chance() -> None:
    turns = list(curl.order(["h3", "h2"], 30, seed=5))
    assert turns == list(curl.order(["h3", "h2"], 30, seed=5))
    assert turns != list(curl.order(["h3", "h2"], 30, seed=6))
    for turn in range(30):
        assert {arm for n, arm in turns if n == turn} == {"h2", "h3"}
    first = [turns[2 * turn][1] for turn in range(30)]
    assert 5 < first.count("h3") < 25


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="no such arm"):
        curl.for_arm(LOAD, "h4")


def test_a_curl_that_does_not_run_has_failed() -> None:
    outcome = curl.run_once(["sh", "-c", "exit 2", "/dev/null"], "h2")
    assert (outcome.requests, outcome.failed, outcome.extra["exit_code"]) == (0, 1, 2)


def test_a_run_reports_one_timed_process(tmp_path: Path) -> None:
    address = Address("127.0.0.1", 1, 2, tmp_path)
    command = curl.Curl().argv(LOAD, address)
    assert "localhost:2:127.0.0.1" in command
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    outcome = curl.Curl().parse(done.stdout)
    assert (outcome.requests, outcome.failed) == (0, 1)
    assert outcome.seconds > 0 and outcome.extra["process_us"] >= 0
    with pytest.raises(ClientError):
        curl.Curl().parse("no such program")
