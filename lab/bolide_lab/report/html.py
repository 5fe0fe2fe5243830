"""Owns the page: one self-contained file with the summary, all scenarios and what they ran on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import groupby
from typing import Any

from bolide_lab import stats, titles
from bolide_lab.report import tables
from bolide_lab.report.data import Run, describe, display
from bolide_lab.report.numbers import NONE, chance, short
from bolide_lab.report.plots import Axis, Curve, lines
from bolide_lab.report.section import faults, published_table, section, table
from bolide_lab.report.style import CSS

GROUPS = {
    "Q": "HTTP/3 on shaped links",
    "B": "Small files and WordPress over TLS",
    "C": "HTTP/3 against HTTP/2, by curl",
    "M": "A shop",
    "own": "Beyond the published tests",
    "": "Other scenarios",
}
OPENING = (
    "Every published test of the field, repeated on one machine, each server in its best "
    "configuration, in interleaved and shuffled order. All scenarios of the run are printed, "
    "whichever server wins."
)


def page(run: Run) -> str:
    """The whole report as one HTML document that needs no other file."""
    title = f"Web servers side by side: {run.name}"
    short_of = run.shortened()
    body = [
        f"<h1>Web servers side by side</h1><p class=soft>{escape(run.name)}</p><p>{OPENING}</p>",
        f"<p><strong>Not the full length:</strong> {escape(short_of)}.</p>" if short_of else "",
        _navigation(run),
        _summary(run),
        *[_group(run, group, list(ids)) for group, ids in _by_group(run)],
        _tests(run),
        _conditions(run),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _navigation(run: Run) -> str:
    links = "".join(
        f'<a href="#{escape(name)}" title="{escape(run.title(name))}">{escape(name)}</a>'
        for name in run.ids()
    )
    ends = '<a href="#conditions">Conditions</a><a href="#configurations">Configurations</a>'
    return f"<nav aria-label='Scenarios'>{links}{ends}</nav>"


def _summary(run: Run) -> str:
    main, cpu = tables.lines(run), tables.lines(run, tables.CPU)
    cpu = [row for row in cpu if row.metric != run.metric(row.scenario)[0]]
    said = f"Medians of each scenario's own measure. {tables.BOLD}"
    out = ["<h2>Summary</h2>", _medians(main, f"{said} {tables.ARROWS} {tables.MARKS}")]
    if cpu:
        out.append(_medians(cpu, "Server CPU per request, medians in µs; less is better."))
    out += [_places(main), f'<p class="soft">The rule: {escape(stats.RULE)}</p>']
    return "".join(out)


def _medians(found: list[tables.Line], caption: str) -> str:
    servers = tables.columns(found)
    rows = []
    for row in found:
        name = escape(row.scenario)
        cells = [
            f'<td class="text"><a href="#{name}">{name}</a><small>{escape(row.title)}</small></td>',
            escape(row.measure()),
        ]
        for one in servers:
            cell = row.cells.get(one)
            if cell is None:
                cells.append(NONE)
                continue
            kind = "best" if cell.beside_best is None else "even" if cell.leads() else ""
            kind = kind if row.decided() else ""
            cells.append(f'<td class="{kind}">{short(cell.interval.median)}{cell.marks}</td>')
        rows.append(cells)
    return table(["scenario", "", *[one.label() for one in servers]], rows, caption)


def _places(found: list[tables.Line]) -> str:
    rows = [
        [
            escape(one.label()),
            str(len(places.best)),
            str(len(places.even)),
            str(len(places.behind)),
            f'<td class="text">{_links(places.behind)}</td>',
        ]
        for one, places in tables.places(found).items()
    ]
    head = ["", "best", "no clear difference", "behind", "behind in"]
    said = (
        "Places by the rule below, in scenarios of two servers and more with "
        f"{stats.MINIMUM} repetitions or more."
    )
    return table(head, rows, said)


def _links(ids: Iterable[str]) -> str:
    return " ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in ids) or "nothing"


def _by_group(run: Run) -> Iterable[tuple[str, Iterable[str]]]:
    def group(name: str) -> str:
        known = run.scenario(name)
        return known.group if known else ""

    order = list(GROUPS)
    return groupby(sorted(run.ids(), key=lambda name: order.index(group(name))), key=group)


def _group(run: Run, group: str, ids: list[str]) -> str:
    head = f"<h2>{escape(GROUPS[group])}</h2>"
    return head + _rates(run, ids) + "".join(section(run, name) for name in ids)


def _rates(run: Run, ids: list[str]) -> str:
    """Latency over the offered rate, where scenarios differ in nothing but their rate."""
    families: dict[tuple[str, str, str], list[tuple[float, str]]] = {}
    for name in ids:
        known = run.scenario(name)
        if known is not None and known.load.rate_per_s:
            load = known.load
            family = families.setdefault((load.client, load.protocol, load.url), [])
            family.append((float(known.load.rate_per_s), name))
    out = []
    for (_, protocol, url), members in families.items():
        if len(members) < 2:
            continue
        for metric in ("latency_us_p50", "latency_us_p99"):
            curves = _rate_curves(run, sorted(members), metric)
            label = describe(metric).label
            title = f"{label.capitalize()} over offered rate: {protocol}, {url}"
            up = Axis("µs (logarithmic)", logarithmic=True)
            across = Axis("requests offered a second", from_zero=True)
            drawn = lines(curves, across, up, title)
            out.append(f"<h4>{escape(title)}</h4>{drawn}" if drawn else "")
    return "".join(out)


def _rate_curves(run: Run, members: list[tuple[float, str]], metric: str) -> list[Curve]:
    points: dict[str, list[tuple[float, float]]] = {}
    for rate, name in members:
        row = tables.line(run, name, metric)
        for one, cell in row.cells.items() if row else ():
            points.setdefault(one.server, []).append((rate, cell.interval.median))
    return [Curve(display(server), server, tuple(found)) for server, found in points.items()]


def _tests(run: Run) -> str:
    found = tables.tests(run)
    if not found:
        return ""
    below = []
    rows = [
        [
            escape(one.label),
            f'<td class="text">{escape(one.a)} – {escape(one.b)}</td>',
            f"{one.counts[0]}, {one.counts[1]}",
            f"{short(one.means[0])}, {short(one.means[1])}",
            f"{short(one.different.difference)}"
            f"<small>{short(one.different.low)} to {short(one.different.high)}</small>",
            f"{one.different.t:.2f}",
            chance(one.different.p),
            f"±{short(one.equivalent.margin)}",
            chance(one.equivalent.p),
            f'<td class="text">{stats.read_tests(one.different, one.equivalent)}</td>',
        ]
        for one in found
    ]
    for known in run.scenarios.values():
        if known.load.extra.get("compare"):
            title = f"{escape(known.id)}: {escape(titles.full(known))}"
            below.append(f"<h4>{title}</h4>{published_table(known, {})}{faults(known)}")
    unit = found[0].unit
    head = ["", "pair", "n", f"means, {unit}", f"difference, {unit}", "t", "p (Welch)"]
    head += [f"margin, {unit}", "p (TOST)", "says"]
    said = (
        "Welch's two-tailed t-test asks whether there is a difference, two one-sided tests (TOST) "
        f"whether there is none larger than {stats.MARGIN:.0%} of the second mean. "
        "Small: 95 % interval of the difference; a negative one: the first of the pair took less."
    )
    return f"<h2>Tests of the curl scenarios</h2>{table(head, rows, said)}{''.join(below)}"


def _conditions(run: Run) -> str:
    out = ['<h2 id="conditions">Conditions</h2>']
    for machine in _distinct(run.machines):
        out.append(f"<h4>Machine</h4>{_definitions(machine)}")
    versions = {display(name): text for name, text in sorted(run.versions.items())}
    out.append(f"<h4>Versions</h4>{_definitions(versions)}" if versions else "")
    missing = _excluded(run)
    out.append(f"<h4>Not measured</h4>{missing}" if missing else "")
    if run.link_test and any(one.link for one in run.scenarios.values()):
        said = "What it gave beside what was asked of it, measured from packet to packet."
        out.append(f"<h4>The link's own test</h4><p class=soft>{said}</p>")
        out.append(f"<pre>{escape(run.link_test)}</pre>")
    out.append(_notes(run))
    out.append(f'<h2 id="configurations">Configurations</h2>{_configurations(run)}')
    return "".join(out)


def _excluded(run: Run) -> str:
    """Who was left out where: one line for all scenarios with the same reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, where, reason in tables.excluded(run):
        found.setdefault((name, reason), []).append(where)
    rows = [
        [
            escape(name),
            f'<td class="text">{escape(reason)}</td>',
            f'<td class="text">{escape(", ".join(where))}</td>',
        ]
        for (name, reason), where in found.items()
    ]
    return table(["server", "reason", "scenarios"], rows)


def _notes(run: Run) -> str:
    notes = list(dict.fromkeys(run.notes))
    if run.unreadable:
        notes.append(f"{run.unreadable} lines of the results could not be read.")
    failed = [check for check in run.body_checks if check.get("ok") is False]
    notes.append(
        f"Bodies were compared {len(run.body_checks)} times before timing; "
        f"{len(failed)} did not agree."
    )
    return "<h4>Notes</h4><ul>" + "".join(f"<li>{escape(one)}</li>" for one in notes) + "</ul>"


def _configurations(run: Run) -> str:
    seen: dict[tuple[str, str, str], list[str]] = {}
    for one in run.configs:
        key = (str(one.get("server")), str(one.get("config", "best")), config_text(one))
        seen.setdefault(key, []).append(str(one.get("scenario", "all")))
    out = []
    for (server, variant, text), where in seen.items():
        said = ", ".join(dict.fromkeys(where))
        head = f"{escape(display(server))}, {escape(variant)}: {escape(said)}"
        out.append(
            f'<details class="source"><summary>{head}</summary><pre>{escape(text)}</pre></details>'
        )
    return "".join(out) or "<p>None recorded.</p>"


def config_text(entry: Mapping[str, Any]) -> str:
    """The text of a configuration line, whether it is one text or several files."""
    files = entry.get("files")
    if isinstance(files, dict):
        return "\n\n".join(f"### {name}\n{text}" for name, text in files.items())
    return str(entry.get("text", ""))


def _definitions(found: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(str(name).replace('_', ' '))}</dt><dd>{escape(_plain(value))}</dd>"
        for name, value in found.items()
    )
    return f"<dl>{rows}</dl>"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_plain(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _distinct(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for place, one in enumerate(found) if one not in found[:place]]
