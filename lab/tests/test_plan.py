import io

import pytest

from bolide_lab.catalogue import choose, load_catalogue
from bolide_lab.cli import main, parser, scenarios_of
from bolide_lab.model import Variant
from bolide_lab.plan import duration, order, table, trial_seconds
from bolide_lab.progress import Progress, bar

CATALOGUE = load_catalogue()
BEST: Variant = "best"
SEVERAL = [(CATALOGUE["B-h2-html"], name, BEST) for name in ("bolide", "nginx", "h2o", "caddy")]


def test_each_round_has_each_contestant_once_in_an_order_of_its_own() -> None:
    trials = order(list(SEVERAL), seed=3)
    rounds = [[t.server for t in trials if t.repetition == n] for n in range(1, 11)]
    assert all(sorted(r) == ["bolide", "caddy", "h2o", "nginx"] for r in rounds)
    assert len({tuple(r) for r in rounds}) > 3
    assert [t.repetition for t in trials] == sorted(t.repetition for t in trials)


def test_the_same_seed_gives_the_same_order_and_what_is_done_is_left_out() -> None:
    trials = order(list(SEVERAL), seed=3)
    done = [t.key() for t in trials[:5]]
    assert order(list(SEVERAL), seed=3, done=done) == trials[5:]
    assert order(list(SEVERAL), seed=4) != trials


def test_links_bound_the_estimate() -> None:
    assert 8.4 < trial_seconds(CATALOGUE["Q5a"]) < 14
    assert 100 < trial_seconds(CATALOGUE["Q2a"]) < 140
    assert 32 < trial_seconds(CATALOGUE["B-h1-jpg"]) < 36


def test_the_quick_static_run_is_within_ten_minutes() -> None:
    args = parser().parse_args(["plan", "--quick"])
    scenarios, servers = scenarios_of(args)
    assert servers == ["bolide", "nginx", "h2o", "caddy"]
    assert {s.site for s in scenarios} == {"static"}
    several = [
        (s, name, BEST)
        for s in scenarios
        for name in servers
        if name in s.servers and not (name == "h2o" and s.load.protocol == "h3")
    ]
    assert sum(trial_seconds(t.scenario) for t in order(several, 1)) < 600


def test_the_table_has_the_sum() -> None:
    lines = table(order(list(SEVERAL), 1)).splitlines()
    assert lines[1].startswith("B-h2-html             40     22 min")
    assert lines[2].split() == ["bolide", "caddy", "h2o", "nginx"]
    assert lines[-1].startswith("in all                40     22 min")


def test_durations() -> None:
    assert [duration(s) for s in (4.4, 120, 7500)] == ["4 s", "2 min", "2 h 05 min"]


def test_progress_learns_how_right_the_estimates_are() -> None:
    out = io.StringIO()
    progress = Progress([10.0, 10.0, 20.0], out)
    assert progress.left_s() == 40
    progress.spent_s, progress.expected_s, progress.done = 5.0, 10.0, 1
    assert progress.left_s() == 15
    progress.begin("x")
    progress.end("x", "fine")
    assert out.getvalue().startswith("[      2/3] x ")
    assert bar(1, 2) == "[############............]  50 %"


def test_wrong_words_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "Z1"]) == 1
    assert "no scenario 'Z1'" in capsys.readouterr().err
    assert main(["plan", "Q1a", "--servers", "iis"]) == 1
    assert "no server 'iis'" in capsys.readouterr().err
    assert main(["run", "--resume", "/nonexistent"]) == 1


def test_groups_are_chosen_in_the_catalogues_order() -> None:
    groups = [s.group for s in choose(CATALOGUE, ["own", "Q"])]
    assert groups == sorted(groups, key=["Q", "own"].index)
