import json
from pathlib import Path

import pytest

from bolide_lab.model import LatencyUs, Sample, sample_from_json, sample_to_json
from bolide_lab.records import FILE, Records, RecordsError, done_keys, first, samples


def sample(repetition: int = 1) -> Sample:
    return Sample(
        scenario="Q1a",
        server="nginx",
        config="best",
        repetition=repetition,
        started_unix_ms=1,
        seconds=2.0,
        requests=10,
        failed=0,
        requests_per_s=5.0,
        server_cpu_user_s=0.1,
        server_cpu_system_s=0.2,
        server_cpu_us_per_request=30000.0,
        peak_rss_mib=12.5,
        client_cpu_utilisation=0.5,
        saturated=False,
        latency_us=LatencyUs(1, None, 3, None),
        bytes_per_answer=100.0,
        series=((1.0, 50.0, 12.0),),
        extra={"a": 1},
    )


def test_a_sample_survives_json() -> None:
    text = json.dumps(sample_to_json(sample()))
    assert sample_from_json(json.loads(text)) == sample()


def test_unknown_words_of_a_sample_are_left_out() -> None:
    assert sample_from_json({**sample_to_json(sample()), "later": 1}) == sample()


def test_lines_are_appended_and_never_overwritten(tmp_path: Path) -> None:
    with Records.create(tmp_path, "2026-01-02", "a run") as one:
        one.append("note", text="ä")
        one.sample(sample())
    assert one.directory.name == "2026-01-02-a-run"
    with Records.create(tmp_path, "2026-01-02", "a run") as other:
        assert other.directory.name == "2026-01-02-a-run-2"
    with Records.resume(one.directory) as again:
        again.sample(sample(2))
    assert [s.repetition for s in samples(one.directory)] == [1, 2]
    assert done_keys(one.directory) == {("Q1a", "nginx", "best", 1), ("Q1a", "nginx", "best", 2)}
    assert first(one.directory, "note") == {"kind": "note", "text": "ä"}
    assert first(one.directory, "machine") is None


def test_a_line_cut_in_two_costs_only_itself(tmp_path: Path) -> None:
    with Records.create(tmp_path, "d", "n") as one:
        one.sample(sample())
    with (one.directory / FILE).open("a") as out:
        out.write('{"kind":"sample","scen')
    with Records.resume(one.directory) as again:
        again.sample(sample(2))
    assert [s.repetition for s in samples(one.directory)] == [1, 2]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="nothing to resume"):
        Records.resume(tmp_path)
    with Records.create(tmp_path, "d", "../x") as one:
        assert one.directory.parent == tmp_path
        with pytest.raises(RecordsError, match="no such kind"):
            one.append("colour")
        with pytest.raises(ValueError, match="JSON"):
            one.append("note", value=float("nan"))
