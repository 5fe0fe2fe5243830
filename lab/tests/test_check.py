"""What is kept of a run, and whether the README says what the kept runs say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import fake_results
import pytest

from bolide_lab import check, keep
from bolide_lab.catalogue import load_catalogue
from bolide_lab.report import data, html, markdown

PAGE = f"# Name\n\n{check.BEGIN}\nold\n{check.END}\n\nrest\n"


def pages(root: Path) -> Path:
    """Both pages with the markers and nothing true between them."""
    for name in check.PAGES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(PAGE)
    return root


def kept(results: Path, name: str, seed: int = 1, first: str = "") -> Path:
    """A made-up run, kept below `results`; `first` is a line before its own."""
    directory = fake_results.write(results.parent / "runs" / name, seed)
    path = directory / "run.jsonl"
    path.write_text(first + path.read_text())
    keep.keep(directory, results)
    return results / name


def test_the_check_writes_the_section_and_then_agrees(tmp_path: Path) -> None:
    results, root = tmp_path / "results", pages(tmp_path)
    kept(results, "2026-11-21-fake")
    page = root / "docs/PERFORMANCE.md"
    good, said = check.check(False, root, results)
    assert not good and "+| Q1b: " in said and "old" in page.read_text()
    assert check.check(True, root, results)[0]
    assert check.check(False, root, results)[0]
    text = page.read_text()
    assert text.startswith("# Name\n\n") and text.endswith("\n\nrest\n")
    assert "2026-11-21-fake" in text and "| Q1b: " in text
    page.write_text(text.replace("| Q1b: ", "| Q1c: "))
    assert not check.check(False, root, results)[0]


def test_the_readme_has_rows_of_the_page(tmp_path: Path) -> None:
    run = check.newest([kept(tmp_path / "results", "run")])
    text = check.section(run, "README.md")
    assert "| B-h2-html: " in text and "| M3: " in text and "Q1b" not in text
    assert "B-h2-html" in markdown.README


def test_losing_rows_and_servers_are_in_the_section(tmp_path: Path) -> None:
    run = check.newest([kept(tmp_path / "results", "run")])
    assert run is not None
    text = check.section(run, "docs/PERFORMANCE.md")
    for name in run.ids():
        assert text.count(f"\n| {name}: ") == 1 and text.count(f"\n| {name} | µs ↓") == 1
    assert "Apache" in text
    assert "- has no HTTP/3: lighttpd (Q1b)" in text
    assert "- not installed: <apt-get install angie>: Angie (all)" in text


def test_the_check_takes_the_newest_full_run_of_each_scenario(tmp_path: Path) -> None:
    results = tmp_path / "results"
    kept(results, "2026-11-20-old")
    new = fake_results.write(tmp_path / "2026-11-21-new", seed=3)
    path = new / "run.jsonl"
    lines = path.read_text().replace('_ms": 1795', '_ms": 1796').splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"M3"' not in line))
    keep.keep(new, results)
    kept(results, "2026-11-22-quick", 4, '{"kind":"note","text":"s","plan":{"quick":true}}\n')
    fake_results.write(results / "2026-11-23-not-kept", seed=5)
    run = check.newest(check.directories(results))
    assert run is not None and run.name == "2026-11-20-old + 2026-11-21-new"
    old = data.read(results / "2026-11-20-old", load_catalogue())
    assert {one.key() for one in run.samples if one.scenario == "M3"} == {
        one.key() for one in old.samples if one.scenario == "M3"
    }
    short = data.read(results / "2026-11-22-quick", load_catalogue())
    assert "shorter loads than the scenarios say" in html.page(short)
    assert "shorter loads than the scenarios say" in markdown.report(short)


def test_a_page_says_that_loads_were_shortened(tmp_path: Path) -> None:
    words = '{"kind":"note","text":"t","plan":{"seconds":5.0}}\n'
    run = check.newest([kept(tmp_path / "results", "run", 1, words)])
    assert "Not the full length: run: seconds set to 5." in check.section(
        run, "docs/PERFORMANCE.md"
    )


def test_without_kept_results_the_readme_must_have_no_table(tmp_path: Path) -> None:
    results, root = tmp_path / "results", pages(tmp_path)
    fake_results.write(results / "2026-11-23-not-kept")
    good, said = check.check(False, root, results)
    assert not good and "should have no generated table, as no full run is kept in" in said
    assert check.check(True, root, results)[0]
    assert check.check(False, root, results)[0]
    for name in check.PAGES:
        assert "so there is no table here" in (root / name).read_text()


def test_a_check_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(check.CheckError, match="does not exist"):
        check.check(False, tmp_path, tmp_path)
    (tmp_path / "README.md").write_text("# Name\n")
    with pytest.raises(check.CheckError, match="has no lines"):
        check.check(False, tmp_path, tmp_path / "none")
    directory = kept(tmp_path / "results", "run")
    packed = (directory / keep.FILE).read_bytes()
    (directory / keep.FILE).write_bytes(packed[: len(packed) // 2])
    with pytest.raises(check.CheckError, match="damaged or of another version"):
        check.newest([directory])


def test_a_kept_run_has_the_same_samples_and_a_page(tmp_path: Path) -> None:
    directory = fake_results.write(tmp_path / "run")
    raw = (directory / "run.jsonl").read_bytes()
    keep.keep(directory, tmp_path / "results")
    assert (directory / "run.jsonl").read_bytes() == raw
    assert sorted(path.name for path in (tmp_path / "results/run").iterdir()) == [
        keep.PAGE,
        keep.FILE,
    ]
    one, two = (data.read(tmp_path / name, {}) for name in ("run", "results/run"))
    assert one.samples == two.samples and (one.unreadable, two.unreadable) == (1, 0)


def test_a_run_is_kept_where_it_lies_and_again_after_more_samples(tmp_path: Path) -> None:
    directory = fake_results.write(tmp_path / "run")
    keep.keep(directory, tmp_path)
    before = (directory / keep.FILE).read_bytes()
    keep.keep(directory, tmp_path)
    assert (directory / keep.FILE).read_bytes() == before
    assert check.directories(tmp_path) == [directory]
    (directory / "run.jsonl").unlink()
    with pytest.raises(keep.KeepError, match="is kept already"):
        keep.keep(directory, tmp_path)


def test_another_run_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    keep.keep(fake_results.write(tmp_path / "a/run"), tmp_path / "results")
    other = fake_results.write(tmp_path / "b/run", seed=2)
    path = other / "run.jsonl"
    path.write_text(path.read_text().replace('_ms": 1795', '_ms": 1796'))
    with pytest.raises(keep.KeepError, match="is another run: rename"):
        keep.keep(other, tmp_path / "results")


def test_long_series_are_thinned_and_a_note_says_so() -> None:
    series = [[float(second), second % 2 * 100.0, float(second)] for second in range(1000)]
    lines = [{"kind": "sample", "series": series, "seconds": 9.0}, {"kind": "note", "text": "n"}]
    text = keep.thinned("".join(json.dumps(line) + "\n" for line in lines) + '{"kind', 100)
    found = [json.loads(line) for line in text.splitlines()]
    assert [line["kind"] for line in found] == ["sample", "note", "note"]
    assert found[0]["seconds"] == 9.0 and found[1]["text"] == "n"
    assert "up to 1000 points are kept as 100 at most" in found[2]["text"]
    rows = found[0]["series"]
    assert len(rows) == 100 and rows[0] == [9.0, 50.0, 9.0] and rows[-1] == [999.0, 50.0, 999.0]
    assert keep.thinned('{"kind":"note"}\n', 100) == '{"kind":"note"}\n'


def test_a_run_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = fake_results.write(tmp_path / "run")
    monkeypatch.setattr(keep, "SIZE_MAX", 20_000)
    with pytest.raises(keep.KeepError, match="would be 0.2 MB"):
        keep.keep(directory, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_kept_bytes_depend_on_the_lines_alone(tmp_path: Path) -> None:
    directory = fake_results.write(tmp_path / "run")
    for name in ("a", "b"):
        keep.keep(directory, tmp_path / name)
    first, second = ((tmp_path / name / "run" / keep.FILE).read_bytes() for name in "ab")
    assert first == second and gzip.decompress(first)
