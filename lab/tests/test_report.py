"""The page, the Markdown, the README's section and the comparison, from runs that never were."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from html.parser import HTMLParser
from pathlib import Path

import fake_results
import pytest

from bolide_lab import check, compare, stats
from bolide_lab.catalogue import load_catalogue
from bolide_lab.report import data, html, markdown, published, tables
from bolide_lab.report.data import Contestant, Run

VOID = {"meta", "br", "line", "rect", "path", "polyline"}
BOLIDE, H2O = Contestant("bolide", "best"), Contestant("h2o", "best")


class Balanced(HTMLParser):
    """Fails on a tag that is closed by another; keeps ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [found for name, found in attrs if name == "id" and found]
        self.links += [found for name, found in attrs if name in ("href", "src") and found]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = fake_results.write(tmp_path_factory.mktemp("results") / "2026-11-21-fake")
    return data.read(directory, load_catalogue())


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return html.page(run)


def test_a_page_is_balanced_and_its_links_lead_somewhere(page: str) -> None:
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert {link.removeprefix("#") for link in parser.links} <= set(parser.ids)


def test_a_page_needs_nothing_from_elsewhere(page: str) -> None:
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert not re.search(r"<script|<link|@import|url\(|<img", page)


def test_every_scenario_has_its_part_and_its_numbers(run: Run, page: str) -> None:
    for name in run.ids():
        assert f'<h3 id="{name}">' in page
    assert page.count("NaN") == 0 and page.count(">nan") == 0 and page.count(">inf") == 0


def test_text_from_the_results_is_escaped(page: str) -> None:
    assert "&lt;apt-get install angie&gt;" in page and "busy &amp;" not in page
    assert "other work &amp; was noisy" in page


def test_conditions_are_all_there(page: str) -> None:
    for text in (
        "Some CPU at 2.5 GHz",
        "nginx/1.30.6",
        "has no HTTP/3",
        "gzip_static on",
        "1 lines of the results could not be read",
        stats.RULE[:40],
    ):
        assert text in page


def test_a_configuration_used_twice_is_printed_once(page: str) -> None:
    assert page.count("worker_connections 4096") == 1
    assert "nginx, best: Q1b, B-h2-html" in page


def test_published_figures_stand_beside_measured_ones(run: Run, page: str) -> None:
    scenario = run.scenarios["Q1b"]
    yardstick, rows = published.rows(scenario, run.of("Q1b"), "req/s")
    assert yardstick == "nginx"
    theirs = [row for row in rows if row.source == "HTTP/3 article"]
    assert [round(row.relative, 2) for row in theirs] == [1.35, 1.0]
    ours = {row.label: row.relative for row in rows if row.source == published.HERE}
    assert ours["Bolide"] == pytest.approx(1.9, rel=0.1) and ours["nginx"] == 1.0
    assert "OpenLiteSpeed, published" in page


def test_units_are_converted_only_within_a_kind() -> None:
    one = stats.interval([222.43])
    converted = published.convert(one, "ms", "s")
    assert converted is not None and converted.median == pytest.approx(0.22243)
    assert published.convert(one, "ms", "req/s") is None


def test_an_arm_sees_the_figures_of_its_protocol(run: Run) -> None:
    _, rows = published.rows(run.scenarios["C1"], {}, "s", "h3")
    assert [row.interval.median for row in rows] == [222.43]


def test_two_rates_that_the_client_limited_are_not_told_apart(run: Run) -> None:
    line = tables.line(run, "B-h2-html")
    assert line is not None
    assert {BOLIDE, H2O} <= {one for one, cell in line.cells.items() if cell.leads()}
    assert line.cells[BOLIDE].marks == "*"
    cpu = tables.line(run, "B-h2-html", tables.CPU)
    assert cpu is not None and not cpu.cells[H2O].leads()


def test_a_server_that_loses_is_in_every_form(run: Run, page: str) -> None:
    places = tables.places(tables.lines(run))[Contestant("apache", "best")]
    assert "B-h2-html" in places.behind and not places.best
    for text in (page, markdown.report(run), markdown.readme(run)):
        assert "Apache" in text


def test_the_curl_scenarios_are_tested_arm_by_arm(run: Run) -> None:
    found = {(one.label, one.a, one.b): one for one in tables.tests(run)}
    pairs = {(a, b) for _, a, b in found}
    assert pairs == {("C1:h3", "C1:h2"), ("C2:h3", "C2:h2"), ("C1:h3", "C2:h3"), ("C1:h2", "C2:h2")}
    second = found["nginx", "C2:h3", "C2:h2"]
    assert second.counts == (30, 30) and second.different.p < 1e-6
    assert not second.equivalent.equivalent


def test_an_arm_in_extra_becomes_part_of_the_id(tmp_path: Path) -> None:
    directory = fake_results.write(tmp_path / "run")
    lines = (directory / "run.jsonl").read_text().splitlines()
    one = json.loads(next(line for line in lines if '"C1:h3"' in line))
    one["scenario"], one["extra"] = "C1", {"arm": "h2"}
    (directory / "run.jsonl").write_text(json.dumps(one) + "\n")
    assert data.read(directory, load_catalogue()).ids() == ["C1:h2"]


def test_what_disturbed_a_run_is_said(page: str) -> None:
    assert "Neighbours took up to 2.0% of one core&#x27;s time." in page
    assert "Caddy: the kernel dropped 60 datagrams" in page
    assert page.count("PHP, database CPU µs") == 1


def test_what_a_client_says_besides_is_kept(run: Run, page: str) -> None:
    assert page.count("<code>connect_us_p50</code>") == len(run.ids())
    assert "<code>steal_s</code>" not in page


def test_latency_over_rate_and_series_are_drawn(page: str) -> None:
    assert "over offered rate: h1-tls" in page
    assert 'aria-label="M3: server memory (RSS), MiB"' in page


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_results_read_the_same(tmp_path: Path, pack: object) -> None:
    directory = fake_results.write(tmp_path / "run")
    plain = data.read(directory, {})
    raw = (directory / "run.jsonl").read_bytes()
    (directory / "run.jsonl").unlink()
    name = "run.jsonl.gz" if pack is gzip.compress else "run.jsonl.xz"
    assert callable(pack)
    (directory / name).write_bytes(pack(raw))
    assert data.read(directory, {}).samples == plain.samples


def test_a_run_of_nothing_makes_a_page(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("")
    run = data.read(tmp_path, load_catalogue())
    Balanced().feed(html.page(run))
    assert markdown.report(run)


def test_a_directory_without_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no run.jsonl"):
        data.read(tmp_path, {})


def test_an_unknown_scenario_is_printed_all_the_same(run: Run) -> None:
    bare = Run(name="bare", samples=run.samples)
    assert '<h3 id="Q1b">' in html.page(bare)


def test_comparing_a_run_with_a_faster_one(tmp_path: Path) -> None:
    old = fake_results.write(tmp_path / "old", seed=1)
    new = fake_results.write(tmp_path / "new", seed=2, faster=1.5)
    catalogue = load_catalogue()
    found = compare.changes(data.read(old, catalogue), data.read(new, catalogue))
    rates = [one for one in found if one.scenario == "Q1b" and one.metric == "requests_per_s"]
    assert rates and all(one.comparison.verdict is stats.Verdict.BETTER for one in rates)
    assert "| Q1b | Bolide |" in compare.report(old, new)
    assert "better" not in compare.report(old, old).split("\n")[2].replace("0 better", "")


def test_what_else_differs_between_runs_is_said(run: Run) -> None:
    other = Run(name="other", machines=[{"kernel": "7.0"}], versions={"nginx": "nginx/2"})
    said = compare.conditions(run, other)
    assert "nginx: nginx/1.30.6 → nginx/2" in said
    assert any(line.startswith("kernel of the machine: 6.18.0 → 7.0") for line in said)


def test_the_check_writes_the_section_and_then_agrees(tmp_path: Path) -> None:
    results, readme = tmp_path / "results", tmp_path / "README.md"
    fake_results.write(results / "2026-11-21-fake")
    readme.write_text(f"# Name\n\n{check.BEGIN}\nold\n{check.END}\n\nrest\n")
    assert "+| Q1b: " in check.check(False, readme, results)
    assert "old" in readme.read_text()
    assert check.check(True, readme, results) == ""
    assert check.check(False, readme, results) == ""
    text = readme.read_text()
    assert text.startswith("# Name\n\n") and text.endswith("\n\nrest\n")
    assert "2026-11-21-fake" in text and "| Q1b: " in text


def test_the_check_takes_the_newest_full_run(tmp_path: Path) -> None:
    results = tmp_path / "results"
    fake_results.write(results / "2026-11-20-old")
    new = fake_results.write(results / "2026-11-21-new", seed=3)
    quick = fake_results.write(results / "2026-11-22-quick")
    path = new / "run.jsonl"
    path.write_text(path.read_text().replace('_ms": 1795', '_ms": 1796'))
    path = quick / "run.jsonl"
    path.write_text('{"kind":"note","text":"short","plan":{"quick":true}}\n' + path.read_text())
    assert check.newest(check.directories(results)).name == "2026-11-21-new"
    run = data.read(quick, load_catalogue())
    assert "shorter loads than the scenarios say" in html.page(run)
    assert "shorter loads than the scenarios say" in markdown.report(run)


def test_a_readme_says_that_loads_were_shortened(tmp_path: Path) -> None:
    directory = fake_results.write(tmp_path / "run")
    path = directory / "run.jsonl"
    path.write_text('{"kind":"note","text":"t","plan":{"seconds":5.0}}\n' + path.read_text())
    whole = check.newest([directory])
    assert "Not the full length: run: seconds set to 5." in markdown.readme(whole)


def test_a_check_without_results_or_markers_says_so(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# Name\n")
    with pytest.raises(check.CheckError, match="no full run"):
        check.check(False, readme, tmp_path / "none")
    with pytest.raises(check.CheckError, match="has no lines"):
        check.replaced("# Name\n", "section")
