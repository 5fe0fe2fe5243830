"""Owns one scenario's part of the page: drawings, numbers, published figures, faults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from bolide_lab.model import LinkSpec, Load, Sample, Scenario
from bolide_lab.report import published, tables
from bolide_lab.report.data import Contestant, Run, arm_of, describe, values
from bolide_lab.report.numbers import NONE, bounds, digits, short
from bolide_lab.report.plots import Axis, Bar, Curve, bars, lines
from bolide_lab.stats import Interval, interval, median

PERCENTILES = ("p50", "p90", "p99", "p999")
NAMES = ((0.0, "50 %"), (1.0, "90 %"), (2.0, "99 %"), (3.0, "99.9 %"))
# Metric, its head, and by how much it is divided.
COLUMNS = (
    ("requests_per_s", "req/s", 1),
    ("seconds", "seconds", 1),
    (tables.CPU, "CPU µs per request", 1),
    ("helpers_cpu_us_per_request", "PHP, database CPU µs", 1),
    ("peak_rss_mib", "peak MiB", 1),
    ("latency_us_p50", "p50 ms", 1000),
    ("latency_us_p90", "p90 ms", 1000),
    ("latency_us_p99", "p99 ms", 1000),
    ("latency_us_p999", "p99.9 ms", 1000),
    ("bytes_per_answer", "B per answer", 1),
)
WITH_BOUNDS = ("requests_per_s", tables.CPU, "latency_us_p99")
TOLD = ("steal_s", "udp_buffer_errors", "helpers_cpu_s", "client_seconds")

Measured = Mapping[Contestant, Sequence[Sample]]


def section(run: Run, scenario: str) -> str:
    """The part of the page about one scenario."""
    known = run.scenario(scenario)
    measured = run.of(scenario)
    out = [
        f'<h3 id="{escape(scenario)}"><code>{escape(scenario)}</code> '
        f"{escape(run.title(scenario))}</h3>",
        _setup(known, arm_of(scenario)),
        _main_bars(run, scenario, known, measured),
        _numbers(run, scenario, measured),
        _more(measured),
        published_table(known, measured, arm_of(scenario)),
        _latency(measured),
        _series(run, scenario, measured),
        _excluded(run, scenario),
        faults(known),
    ]
    return "".join(out)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of cells that are HTML already; a cell that begins with "<td" stands for itself."""
    found = [list(row) for row in rows]
    if not found:
        return ""
    sides = ["text" if cell.startswith('<td class="text"') else "" for cell in found[0]]
    top = "".join(
        f'<th scope="col" class="{side}">{escape(name)}</th>'
        for name, side in zip(head, sides, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(c if c.startswith("<td") else f"<td>{c}</td>" for c in row) + "</tr>"
        for row in found
    )
    said = f'<p class="soft">{escape(caption)}</p>' if caption else ""
    return f'{said}<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def spread(known: Interval) -> str:
    """A median with its interval, small, below it."""
    if not math.isfinite(known.median):
        return NONE
    below = f"<small>{bounds(known.low, known.high)}</small>" if known.low < known.high else ""
    return short(known.median) + below


def say_load(load: Load, arm: str = "") -> str:
    """A load in words; the protocol is that of the arm, if there are arms."""
    much = f"{digits(load.requests, 0)} requests" if load.requests else ""
    much = "one request" if load.requests == 1 else much
    long = f"{load.seconds:g} s" if load.seconds else ""
    rate = f"{digits(load.rate_per_s, 0)} requests a second, open loop" if load.rate_per_s else ""
    parts = [
        load.client,
        arm or load.protocol,
        load.url,
        " or ".join(part for part in (much, long) if part),
        f"{load.connections} connections" if load.connections != 1 else "one connection",
        f"{load.streams} streams each" if load.streams > 1 else "",
        f"{load.threads} threads" if load.threads > 1 else "",
        rate,
    ]
    return ", ".join(part for part in parts if part)


def say_link(link: LinkSpec | None) -> str:
    """A link in words."""
    if link is None:
        return "loopback, not shaped"
    loss = f", {link.loss_percent:g} % loss" if link.loss_percent else ""
    return (
        f"{link.rate_mbit:g} Mbit/s, {link.rtt_ms:g} ms round trip, "
        f"queue of {link.queue_packets} packets{loss}"
    )


def _setup(known: Scenario | None, arm: str) -> str:
    if known is None:
        return '<p class="soft">The catalogue does not know this scenario any more.</p>'
    original = known.load.extra.get("original")
    bound = known.load.extra.get("bound")
    parts = [escape(say_load(known.load, arm)) + ". Link: " + escape(say_link(known.link)) + "."]
    if original:
        parts.append(f"Originally <code>{escape(str(original))}</code>.")
    if bound:
        parts.append(f"What the set-up allows: {escape(str(bound))}.")
    return f'<p class="soft">{" ".join(parts)}</p>'


def _main_bars(run: Run, scenario: str, known: Scenario | None, measured: Measured) -> str:
    metric, higher = run.metric(scenario)
    told = describe(metric)
    rows = [
        Bar(
            one.label(),
            interval(values(samples, metric)),
            one.server,
            one.config != "best",
            tables.marks(samples),
        )
        for one, samples in measured.items()
    ]
    source = ""
    if known is not None:
        source, others = _published_bars(known, measured, told.unit, arm_of(scenario))
        rows += others
    better = "more is better" if higher else "less is better"
    title = f"{scenario}: {told.label} ({better})"
    drawn = bars(rows, told.unit, title)
    head = f"<h4>{escape(told.label.capitalize())} <small class=soft>({better})</small></h4>"
    said = f"Grey: {source}, on another machine and with other versions." if source else ""
    note = f'<p class="soft">{escape(said)}</p>' if said else ""
    return head + drawn + note + _cpu_bars(scenario, metric, measured) if drawn else ""


def _published_bars(
    known: Scenario, measured: Measured, unit: str, arm: str
) -> tuple[str, list[Bar]]:
    """The source that tells of most servers in the same unit, and a bar for each of them."""
    found: dict[str, dict[str, Bar]] = {}
    for row in published.rows(known, measured, unit, arm)[1]:
        figure = published.convert(row.interval, row.unit, unit)
        if row.source != published.HERE and figure is not None:
            bar = Bar(f"{row.label}, published", figure, "")
            found.setdefault(row.source, {}).setdefault(row.label, bar)
    source = max(found, key=lambda name: len(found[name]), default="")
    return source, list(found.get(source, {}).values())


def _cpu_bars(scenario: str, metric: str, measured: Measured) -> str:
    rows = [
        Bar(one.label(), interval(_positive(samples)), one.server, one.config != "best")
        for one, samples in measured.items()
    ]
    drawn = bars(rows, "µs", f"{scenario}: server CPU per request (less is better)")
    if metric == tables.CPU or not drawn:
        return ""
    return f"<h4>Server CPU per request <small class=soft>(less is better)</small></h4>{drawn}"


def _positive(samples: Sequence[Sample]) -> list[float]:
    return [number for number in values(samples, tables.CPU) if number > 0]


def _numbers(run: Run, scenario: str, measured: Measured) -> str:
    row = tables.line(run, scenario, variants=True)
    if row is None:
        return ""
    metric = run.metric(scenario)[0]
    shown = [told for told in COLUMNS if any(values(s, told[0]) for s in measured.values())]
    if metric not in (name for name, _, _ in COLUMNS):
        shown.insert(0, (metric, f"{describe(metric).label} {describe(metric).unit}", 1))
    label = describe(metric).label
    head = ["", "n", f"beside the best ({label})", *[name for _, name, _ in shown]]
    head += ["user CPU", "client CPU", "failed"]
    body = []
    for one, samples in measured.items():
        known = [
            (name, [number / size for number in values(samples, name)]) for name, _, size in shown
        ]
        body.append(
            [
                escape(one.label()) + tables.marks(samples),
                str(len(samples)),
                _beside(row.cells.get(one)),
                *[
                    spread(interval(found)) if name in (*WITH_BOUNDS, metric) else _middle(found)
                    for name, found in known
                ],
                _user_share(samples),
                f"{median(values(samples, 'client_cpu_utilisation')):.0%}",
                digits(sum(sample.failed for sample in samples), 0),
            ]
        )
    said = "Medians; small: 95 % bootstrap intervals. " + tables.MARKS
    return table(head, body, said) + _disturbances(measured)


def _middle(found: Sequence[float]) -> str:
    return short(median(found))


def _more(measured: Measured) -> str:
    """Medians of what the client or the runner recorded besides, folded away."""
    every = [sample.extra for samples in measured.values() for sample in samples]
    names = {
        name: None
        for extra in every
        for name, found in extra.items()
        if isinstance(found, int | float) and not isinstance(found, bool) and name not in TOLD
    }
    if not names:
        return ""
    head = ["", *[one.label() for one in measured]]
    rows = [
        [
            f"<code>{escape(name)}</code>",
            *[short(median(values(samples, name))) for samples in measured.values()],
        ]
        for name in names
    ]
    return f"<details><summary>More that was recorded</summary>{table(head, rows)}</details>"


def _disturbances(measured: Measured) -> str:
    """What the machine did to the runs: time taken by its neighbours, datagrams dropped."""
    taken = max(
        (
            float(sample.extra["steal_s"]) / float(sample.extra["client_seconds"])
            for samples in measured.values()
            for sample in samples
            if sample.extra.get("steal_s") and sample.extra.get("client_seconds")
        ),
        default=0.0,
    )
    said = [f"Neighbours took up to {taken:.1%} of one core's time."] if taken >= 0.005 else []
    for one, samples in measured.items():
        dropped = sum(values(samples, "udp_buffer_errors"))
        if dropped:
            said.append(
                f"{one.label()}: the kernel dropped {digits(dropped, 0)} datagrams for want of "
                "room in a receive buffer."
            )
        late = sum(sample.extra.get("link_late") is True for sample in samples)
        if late:
            said.append(
                f"{one.label()}: in {late} of {len(samples)} repetitions the link delivered late: "
                "it was not the link that was asked for."
            )
    return f'<p class="soft">{escape(" ".join(said))}</p>' if said else ""


def _user_share(samples: Sequence[Sample]) -> str:
    user = sum(sample.server_cpu_user_s for sample in samples)
    whole = user + sum(sample.server_cpu_system_s for sample in samples)
    return f"{user / whole:.0%}" if whole > 0 else NONE


def _beside(cell: tables.Cell | None) -> str:
    if cell is None:
        return NONE
    if cell.beside_best is None:
        return "best"
    told = cell.beside_best
    below = f"{told.verdict.value}, {bounds(told.low, told.high)}"
    return f"×{short(told.ratio)}<small>{below}</small>"


def published_table(known: Scenario | None, measured: Measured, arm: str = "") -> str:
    """What others printed, then what was measured here, with ratios to a server of both."""
    if known is None or not known.published:
        return ""
    yardstick, found = published.rows(known, measured, describe(known.metric).unit, arm)
    head = ["", "source", "figure", "unit", *([f"× {yardstick}"] if yardstick else []), "note"]
    body = [
        [
            escape(row.label),
            f'<td class="text">{escape(row.source)}</td>',
            spread(row.interval),
            escape(row.unit),
            *([short(row.relative)] if yardstick else []),
            f'<td class="text">{escape(row.note)}</td>',
        ]
        for row in found
    ]
    said = "Other machines and other versions: compare the ratios, not the figures."
    return "<h4>Published, and measured here</h4>" + table(head, body, said)


def _latency(measured: Measured) -> str:
    curves = []
    for one, samples in measured.items():
        points = tuple(
            (float(place), median(values(samples, f"latency_us_{name}")))
            for place, name in enumerate(PERCENTILES)
        )
        if one.config == "best":
            curves.append(Curve(one.label(), one.server, points))
    drawn = lines(
        curves,
        Axis("percentile of the answers", names=NAMES),
        Axis("latency, µs (logarithmic)", logarithmic=True),
        "Latency by percentile",
    )
    return f"<h4>Latency by percentile</h4>{drawn}" if drawn else ""


def _series(run: Run, scenario: str, measured: Measured) -> str:
    chosen = {
        one: sample
        for one, samples in measured.items()
        if one.config == "best"
        and (sample := tables.middle(samples, run.metric(scenario)[0])) is not None
    }
    if not chosen:
        return ""
    drawn = []
    for place, name in ((1, "server CPU, %"), (2, "server memory (RSS), MiB")):
        curves = [
            Curve(one.label(), one.server, tuple((row[0], row[place]) for row in sample.series))
            for one, sample in chosen.items()
        ]
        up = Axis(name, from_zero=True)
        picture = lines(curves, Axis("seconds", from_zero=True), up, f"{scenario}: {name}", 500)
        drawn.append(f"<div>{picture}</div>")
    return (
        "<h4>Over time <small class=soft>(the repetition in the middle)</small></h4>"
        f'<div class="pair">{"".join(drawn)}</div>'
    )


def _excluded(run: Run, scenario: str) -> str:
    found = [row for row in tables.excluded(run) if row[1] == scenario]
    if not found:
        return ""
    items = "".join(f"<li>{escape(name)}: {escape(reason)}</li>" for name, _, reason in found)
    return f"<h4>Not measured</h4><ul>{items}</ul>"


def faults(known: Scenario | None) -> str:
    """What was wrong with the original, and what was done about it."""
    if known is None or not known.faults:
        return ""
    items = "".join(f"<li>{escape(fault)}</li>" for fault in known.faults)
    head = "<summary>Faults of the original, and their repair</summary>"
    return f"<details>{head}<ul>{items}</ul></details>"
