"""What was run has a title that says so: a shortened run never has the title of the full one."""

from __future__ import annotations

import json
from pathlib import Path

import fake_results
import pytest

from bolide_lab import titles
from bolide_lab.catalogue import load_catalogue, quick_form
from bolide_lab.report import data
from bolide_lab.shorten import limited, words

CATALOGUE = load_catalogue()


def test_titles_say_what_the_load_says() -> None:
    assert titles.full(CATALOGUE["Q5a"]) == "HTTP/3, one file: 10 MB at 10 Mbit/s, 100 ms"
    assert "100 ms, 10,000 requests, one stream" in titles.full(CATALOGUE["Q1a"])
    assert titles.full(CATALOGUE["own-idle-tls"]).startswith("10,000 TLS connections ")


@pytest.mark.parametrize("limit_s", [1.0, 2.0, 7.0])
def test_a_shortened_load_never_has_the_full_title(limit_s: float) -> None:
    for scenario in CATALOGUE.values():
        short = limited(scenario, limit_s)
        if short.load == scenario.load:
            continue
        said = titles.of_run(scenario, short.load)
        assert said != titles.full(scenario) and "(shortened: " in said
        # What the notes of a run keep is enough to know it.
        notes = titles.notes_of([f"{scenario.id}: {words(scenario, short)}."])
        read = titles.load_of(scenario, notes, quick=False, seconds=None)
        assert titles.of_run(scenario, read) == said


def test_quick_runs_and_runs_of_so_many_seconds_are_told() -> None:
    for scenario in CATALOGUE.values():
        quick = quick_form(scenario)
        if quick is not None and (quick.load.url, quick.load.requests, quick.load.seconds) != (
            scenario.load.url,
            scenario.load.requests,
            scenario.load.seconds,
        ):
            load = titles.load_of(scenario, {}, quick=True, seconds=None)
            assert titles.of_run(scenario, load) != titles.full(scenario), scenario.id
    load = titles.load_of(CATALOGUE["B-h2-html"], {}, quick=False, seconds=5.0)
    assert titles.of_run(CATALOGUE["B-h2-html"], load).endswith("(shortened: 5 s instead of 30 s)")


def test_a_file_of_another_size_is_in_the_title(tmp_path: Path) -> None:
    scenario = CATALOGUE["Q5a"]
    load = titles.load_of(
        scenario, {"Q5a": "the file 512k instead of 10m"}, quick=False, seconds=None
    )
    assert titles.of_run(scenario, load) == (
        "HTTP/3, one file: 512 KB at 10 Mbit/s, 100 ms (shortened: 512 KB instead of 10 MB)"
    )


def test_merged_runs_have_the_titles_of_their_own_samples(tmp_path: Path) -> None:
    note = json.dumps({"kind": "note", "text": "Q1b: 1.26 s instead of 10000 requests."}) + "\n"
    runs = []
    for name, first in (("old", note), ("new", "")):
        directory = fake_results.write(tmp_path / name, seed=len(name))
        path = directory / "run.jsonl"
        text = path.read_text()
        if name == "new":
            text = text.replace('_ms": 1795', '_ms": 1796')
        path.write_text(first + text)
        runs.append(data.read(directory, CATALOGUE))
    assert "1.26 s, one stream (shortened: " in runs[0].title("Q1b")
    assert data.merge(runs).title("Q1b") == titles.full(CATALOGUE["Q1b"])
