import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bolide_lab import measure
from bolide_lab.catalogue import load_catalogue
from bolide_lab.clients.base import Address, Client
from bolide_lab.clients.curl import Curl
from bolide_lab.clients.h2load import H2load
from bolide_lab.clients.idle import Idle, hold
from bolide_lab.clients.openloop import OpenLoop
from bolide_lab.links.base import Counters, Direction
from bolide_lab.model import Load, Outcome
from bolide_lab.plan import Trial
from bolide_lab.sites.base import Served, SiteError

CATALOGUE = load_catalogue()


class Counting(Client):
    """Says how long it took, by the protocol it was asked for."""

    name = "counting"

    def find(self) -> Path:
        return Path(sys.executable)

    def argv(self, load: Load, address: Address) -> list[str]:
        with (address.directory / "asked").open("a") as out:
            out.write(f"{load.protocol}\n")
        return [sys.executable, "-c", f"print({load.protocol!r})"]

    def parse(self, text: str) -> Outcome:
        return Outcome(seconds=1.0, requests=2, failed=0, requests_per_s=2.0, bytes_total=20)


def bench(tmp_path: Path) -> measure.Bench:
    import os

    return measure.Bench(
        client=Counting(),
        served=Served(tmp_path),
        address=Address("127.0.0.1", 1, 2, tmp_path),
        into=(),
        pids=(os.getpid(),),
        cores=frozenset(os.sched_getaffinity(0)),
    )


def test_each_arm_is_a_sample_by_its_name(tmp_path: Path) -> None:
    scenario = replace(CATALOGUE["C1"], link=None, warmup=None)
    found = measure.samples(bench(tmp_path), Trial(scenario, "nginx", "best", 6, 3), seed=1)
    assert sorted(s.key() for s in found) == sorted(Trial(scenario, "nginx", "best", 6, 3).keys())
    assert {s.extra["arm"] for s in found if s.scenario == "C1:h3"} == {"h3"}
    asked = (tmp_path / "asked").read_text().split()
    assert sorted(asked) == ["h2"] * 3 + ["h3"] * 3
    assert all(len({*asked[at : at + 2]}) == 2 for at in (0, 2, 4))


def test_a_scenario_without_arms_is_one_sample(tmp_path: Path) -> None:
    scenario = replace(CATALOGUE["B-h2-html"], warmup=None)
    (one,) = measure.samples(bench(tmp_path), Trial(scenario, "nginx", "best", 1), seed=1)
    assert (one.scenario, one.bytes_per_answer, one.requests) == ("B-h2-html", 10.0, 2)
    assert "arm" not in one.extra
    assert one.peak_rss_mib > 1


def direction(packets: int, late: int, dropped: int = 0) -> Direction:
    return Direction(packets, packets * 100, dropped, 0, late_packets=late)


def test_a_late_link_is_marked() -> None:
    before = Counters(direction(100, 50, 1), direction(100, 0), 1.0)
    good = Counters(direction(1100, 51, 4), direction(1100, 0), 1.5)
    words = measure.link_words(before, good)
    assert words["link_late"] is False
    assert words["link_late_packets"] == 1
    assert words["link_to_client_dropped"] == 3
    assert words["link_cpu_s"] == 0.5
    late = Counters(direction(1100, 100), direction(1100, 0), 1.5)
    assert measure.link_words(before, late)["link_late"] is True
    assert measure.link_words(None, None) == {}


def test_a_list_of_addresses_that_the_site_has_not_is_named() -> None:
    load = CATALOGUE["M1"].load
    with pytest.raises(SiteError, match="no list of addresses urls-static"):
        measure.with_urls(load, {})


def test_who_was_the_limit() -> None:
    plain = Outcome(1.0, 1, 0, 1.0)
    assert H2load().was_limit(plain, 0.9)
    assert not H2load().was_limit(plain, 0.7)
    # It spins: only its own lateness counts.
    assert not OpenLoop().was_limit(replace(plain, extra={"saturated": False}), 1.0)
    assert OpenLoop().was_limit(replace(plain, extra={"saturated": True}), 0.1)
    assert not Curl().was_limit(plain, 1.0)
    assert not Idle().was_limit(plain, 1.0)


def test_idle_connections_are_given_up_after_a_few_refusals() -> None:
    said = hold("127.0.0.1", 1, 50_000, 0.0)
    assert (said["open"], said["failed"]) == (0, 50_000)
    assert said["opening_s"] < 10
