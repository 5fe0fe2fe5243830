from pathlib import Path

import pytest

from bolide_lab.catalogue import (
    CatalogueError,
    choose,
    load_catalogue,
    merge,
    quick_form,
    read_file,
)
from bolide_lab.clients import MODULES
from bolide_lab.servers import SERVERS

CATALOGUE = load_catalogue()
PUBLISHED_IDS = [
    *("Q1a", "Q1b", "Q1c", "Q2a", "Q2b", "Q2c", "Q3a", "Q3b", "Q3c", "Q4"),
    *("Q5a", "Q5b", "Q5c", "Q6a", "Q6b", "Q6c", "Q7", "Q8a", "Q8b"),
    *("B-h2-html", "B-h2-jpg", "B-h2-wp", "B-h1-html", "B-h1-jpg", "B-h1-wp"),
    *("C1", "C2", "C3", "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8"),
]


def numbers(name: str) -> list[float]:
    return [p.value for p in CATALOGUE[name].published]


def test_every_published_test_is_there() -> None:
    assert [name for name in PUBLISHED_IDS if name not in CATALOGUE] == []


def test_published_numbers_are_those_of_the_sources() -> None:
    assert numbers("Q1a") == [935, 890, 925, 880]
    assert numbers("Q8b") == [29.6, 48.1, 29.5, 47.9]
    assert numbers("Q7") == []
    assert numbers("B-h2-wp")[:4] == [36089.90, 3597.00, 69421.10, 6045.70]
    assert numbers("B-h1-jpg")[4:] == [27796.50, 17230.10, 4789.95, 26642.90, 5085.11]
    assert numbers("C1") == [222.43, 223.867]


def test_every_scenario_names_its_faults_or_is_ours() -> None:
    assert [s.id for s in CATALOGUE.values() if s.group != "own" and not s.faults] == []


def test_servers_and_clients_of_the_scenarios_are_known() -> None:
    for scenario in CATALOGUE.values():
        assert set(scenario.servers) <= set(SERVERS), scenario.id
        assert scenario.load.client in MODULES, scenario.id


def test_no_load_has_both_a_count_and_a_time_except_a_held_one() -> None:
    for scenario in CATALOGUE.values():
        for form in (scenario, quick_form(scenario)):
            for load in (form.load, form.warmup) if form else ():
                if load is not None and load.client != "idle":
                    assert (load.requests is None) != (load.seconds is None), scenario.id


def test_a_quick_form_is_shorter_and_its_warm_up_asks_for_the_same() -> None:
    quick = quick_form(CATALOGUE["Q3b"])
    assert quick is not None
    assert quick.load.requests == 15000
    assert quick.repetitions == 2
    assert quick.warmup is not None
    assert (quick.warmup.url, quick.warmup.requests) == (quick.load.url, 200)
    assert quick_form(CATALOGUE["Q7"]) is None


def test_choosing_takes_ids_beginnings_groups_and_sites() -> None:
    assert [s.id for s in choose(CATALOGUE, ["Q1"])] == ["Q1a", "Q1b", "Q1c"]
    assert [s.id for s in choose(CATALOGUE, ["M4", "C1"])] == ["C1", "M4"]
    assert {s.group for s in choose(CATALOGUE, ["B"])} == {"B"}
    assert {s.site for s in choose(CATALOGUE, ["static"])} == {"static"}
    with pytest.raises(CatalogueError, match="no scenario 'X9'"):
        choose(CATALOGUE, ["X9"])


def test_tables_merge_word_by_word_and_faults_add_up() -> None:
    one = merge(
        {"a": {"x": 1, "y": 2}, "faults": ["f"], "b": 1}, {"a": {"y": 3}, "faults": ["g"], "b": 2}
    )
    assert one == {"a": {"x": 1, "y": 3}, "faults": ["f", "g"], "b": 2}


def test_a_word_nobody_knows_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('[[scenario]]\nid = "X"\ncolour = "red"\n')
    with pytest.raises(CatalogueError, match="X: unknown word 'colour'"):
        read_file(path)
    path.write_text('[[scenario]]\nid = "X"\n')
    with pytest.raises(CatalogueError, match=r"x\.toml: X: 'load'"):
        read_file(path)
