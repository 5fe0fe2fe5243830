from itertools import chain

import pytest

from bolide_lab.catalogue import load_catalogue
from bolide_lab.model import Scenario
from bolide_lab.plan import Trial, load_seconds, order, with_compared
from bolide_lab.shorten import Contestant, limited, to_minutes

CATALOGUE = load_catalogue()


def contestants(chosen: list[Scenario]) -> list[Contestant]:
    return [(scenario, name, "best") for scenario in chosen for name in ("nginx", "bolide")]


def whole_s(several: list[Contestant]) -> float:
    return sum(trial.seconds() for trial in order(several, 1))


@pytest.mark.parametrize("minutes", [12.0, 30.0])
def test_a_run_is_as_long_as_it_may_be(minutes: float) -> None:
    several = contestants([s for s in CATALOGUE.values() if s.group == "Q"])
    short, notes = to_minutes(several, minutes)
    assert 0.8 * minutes * 60 < whole_s(short) <= minutes * 60
    assert f"{minutes:g} minutes" in notes[0]


def test_every_repetition_stays_and_five_at_least() -> None:
    for scenario in CATALOGUE.values():
        short = limited(scenario, 2.0)
        assert short.repetitions == (30 if scenario.load.client == "curl" else 5)
        assert (short.link, short.load.protocol) == (scenario.link, scenario.load.protocol)


def test_no_load_is_longer_than_the_limit() -> None:
    for scenario in CATALOGUE.values():
        short = limited(scenario, 2.0)
        if scenario.load.client == "idle":
            assert load_seconds(short.load, short) <= 4.0
        elif not scenario.load.extra.get("empty_cache"):
            assert load_seconds(short.load, short) <= 2.05


def test_a_large_file_becomes_a_smaller_one_and_a_count_a_time() -> None:
    short = limited(CATALOGUE["Q6b"], 2.0)
    assert (short.load.url, short.load.requests) == ("/15m", 1)
    short = limited(CATALOGUE["Q2c"], 2.0)
    assert (short.load.requests, short.load.seconds) == (None, 2.0)
    assert (short.load.connections, short.load.streams) == (100, 1)
    _, notes = to_minutes(contestants([CATALOGUE["Q6b"]]), 0.5)
    assert "instead of 100m" in notes[1]


def test_each_connection_of_a_churn_still_has_one_request() -> None:
    load = limited(CATALOGUE["own-churn-h1"], 1.0).load
    assert load.requests == load.connections < 2000


def test_warm_ups_that_take_whole_seconds_are_made_otherwise() -> None:
    short = limited(CATALOGUE["B-h1-html"], 2.0)
    assert short.load.client == "wrk"
    assert short.warmup is not None
    assert short.warmup.client == "h2load"
    assert short.warmup.seconds == 0.5
    short = limited(CATALOGUE["M3"], 2.0)
    assert short.warmup is not None
    assert (short.warmup.requests, short.warmup.seconds) == (200, None)


def test_a_scenario_that_only_compares_stands_for_those_it_compares() -> None:
    assert [s.id for s in with_compared([CATALOGUE["C3"]], CATALOGUE)] == ["C1", "C2"]
    assert [s.id for s in with_compared([CATALOGUE["Q1a"]], CATALOGUE)] == ["Q1a"]


def test_a_comparison_makes_a_sample_of_each_arm_and_resumes() -> None:
    trials = order([(CATALOGUE["C1"], "nginx", "best")], 1)
    keys = list(chain.from_iterable(map(Trial.keys, trials)))
    assert len(keys) == len(set(keys)) == 60
    assert ("C1:h3", "nginx", "best", 30) in keys
    assert order([(CATALOGUE["C1"], "nginx", "best")], 1, keys[:10]) == trials[1:]
    # Half of what one start of the server gives is not enough.
    assert order([(CATALOGUE["C1"], "nginx", "best")], 1, keys[:9]) == trials
