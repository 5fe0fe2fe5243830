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

from bolide_lab import compare, stats
from bolide_lab.catalogue import load_catalogue
from bolide_lab.report import data, html, markdown, published, tables
from bolide_lab.report.data import Contestant, Run
from bolide_lab.report.source import UnreadableError

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
    assert "Apache: in 5 of 5 repetitions the link delivered late" in page
    assert page.count("PHP, database CPU µs") == 1


def test_the_links_own_test_is_shown_where_a_link_was_used(tmp_path: Path) -> None:
    directory = fake_results.write(tmp_path / "results/run")
    run = data.read(directory, load_catalogue())
    assert "own test" not in html.page(run)
    (tmp_path / "results" / data.LINK_TEST).write_text("rtt 20 & 20.1\n")
    run = data.read(directory, load_catalogue())
    assert "<pre>rtt 20 &amp; 20.1" in html.page(run)
    run.scenarios = {name: one for name, one in run.scenarios.items() if one.link is None}
    assert "own test" not in html.page(run)


def test_times_of_curl_are_printed_in_milliseconds(run: Run, page: str) -> None:
    found = next(one for one in tables.tests(run) if (one.label, one.a) == ("nginx", "C1:h3"))
    assert found.unit == "ms" and found.means[0] == pytest.approx(222, rel=0.05)
    assert "means, ms" in page and "difference, ms" in markdown.report(run)


def test_figures_of_others_in_a_drawing_are_of_one_source(page: str) -> None:
    drawing = page.partition('aria-label="B-h1-html: requests per second')[2].partition("</svg>")[0]
    assert "nginx, published" in drawing and "15 580" not in drawing.replace("\u2009", " ")
    assert "Grey: five-server benchmark, B3, 2019-09-06" in page


def test_with_few_repetitions_nothing_is_bold(tmp_path: Path) -> None:
    run = data.read(fake_results.write(tmp_path / "run"), load_catalogue())
    assert "**" in markdown.readme(run)
    run.samples = [one for one in run.samples if one.repetition < 4]
    assert "**" not in markdown.readme(run) and 'class="best"' not in html.page(run)


@pytest.mark.parametrize(
    ("name", "said", "text"),
    [
        ("nginx", "nginx version: nginx/1.30.6", "nginx 1.30.6"),
        ("h2o", "h2o version 2.2.5", "H2O 2.2.5"),
        ("caddy", "2.11.4", "Caddy 2.11.4"),
        ("apache", "Server version: Apache/2.4.69 (Debian)", "Apache 2.4.69"),
        ("wrk", "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 A B", "wrk 4.1.0"),
        ("vinyl", "vinyld (vinyl-cache-9.0.1 revision 423648c)", "Vinyl 9.0.1"),
        ("openloop", "bolide_lab.clients.openloop, Python 3.11.7", "openloop"),
        ("odd", "of today", "odd"),
    ],
)
def test_a_version_is_told_in_few_words(name: str, said: str, text: str) -> None:
    assert markdown.brief(name, said) == text


def test_what_is_better_is_said_beside_each_figure(run: Run) -> None:
    rows = {row.scenario: row.measure() for row in tables.lines(run)}
    assert rows["Q1b"] == "req/s ↑" and rows["C1:h3"] == "s ↓"
    assert rows["own-open-1k"] == "µs p99 ↓"


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
    with pytest.raises(UnreadableError, match="has no run.jsonl"):
        data.read(tmp_path, {})
    with pytest.raises(UnreadableError, match="does not exist"):
        data.read(tmp_path / "none", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableError, match="is a file, not a run's directory"):
        data.read(tmp_path / "file", {})


def test_a_report_of_nothing_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("")
    with pytest.raises(UnreadableError, match="nothing was measured; begin a new one"):
        data.read_full(tmp_path, {})
    (tmp_path / "run.jsonl").write_text('{"kind":"note","text":"t","plan":{"seed":1}}\n')
    with pytest.raises(UnreadableError, match="nothing was measured; lab run --resume"):
        data.read_full(tmp_path, {})
    (tmp_path / "run.jsonl").write_text('{"kind":"sample","scenario":"Q1a","rate":3}\n\x00\n[]\n')
    with pytest.raises(UnreadableError, match="could not be read: 3 "):
        data.read_full(tmp_path, {})
    with pytest.raises(UnreadableError, match="could not be read"):
        compare.report(tmp_path, tmp_path)
    (tmp_path / "run.jsonl").write_text('{"kind":"excluded","server":"nginx","reason":"gone"}\n')
    assert "gone" in html.page(data.read_full(tmp_path, {}))


@pytest.mark.parametrize("field", ["seconds", "latency_us", "series", "extra", "server"])
def test_a_sample_of_another_form_is_counted_and_left_out(tmp_path: Path, field: str) -> None:
    directory = fake_results.write(tmp_path / "run")
    path = directory / "run.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()[:-1]]
    bad = next(line for line in lines if line["kind"] == "sample")
    bad[field] = 3 if field == "server" else "x"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = data.read_full(directory, {})
    assert run.unreadable == 1
    assert len(run.samples) == sum(line["kind"] == "sample" for line in lines) - 1


@pytest.mark.parametrize("size", [0.5, 0.999])
def test_a_compressed_file_that_ends_early_is_read_until_there(tmp_path: Path, size: float) -> None:
    directory = fake_results.write(tmp_path / "run")
    whole = gzip.compress((directory / "run.jsonl").read_bytes())
    (directory / "run.jsonl").unlink()
    (directory / "run.jsonl.gz").write_bytes(whole[: int(len(whole) * size)])
    run = data.read_full(directory, {})
    assert run.samples
    assert any("run.jsonl.gz is damaged" in note for note in run.notes)


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
