from __future__ import annotations

from bolide_lab import bench
from bolide_lab.catalogue import read_file
from bolide_lab.model import Sample
from bolide_lab.servers import SERVERS

SCENARIOS = {one.id: one for one in read_file(bench.FILE)}


def sample(scenario: str, server: str, cost_us: float, failed: int = 0) -> Sample:
    return Sample(
        scenario=scenario,
        server=server,
        config="best",
        repetition=1,
        started_unix_ms=0,
        seconds=1.0,
        requests=1000,
        failed=failed,
        requests_per_s=1000.0,
        server_cpu_user_s=0.5,
        server_cpu_system_s=0.1,
        server_cpu_us_per_request=cost_us,
        peak_rss_mib=10.0,
        client_cpu_utilisation=0.5,
        saturated=False,
        latency_us=None,
        bytes_per_answer=None,
        extra={"kib_per_connection": 3.5},
    )


def test_every_goal_names_a_scenario_and_a_server_that_is_measured_in_it() -> None:
    for name, goals in bench.load_goals().items():
        assert bench.OURS in SCENARIOS[name].servers
        for goal in goals:
            assert (goal.most_us is None) == bool(goal.server)
            if goal.server:
                assert goal.server in SCENARIOS[goal.of or name].servers


def test_every_scenario_has_servers_that_exist_and_a_short_form() -> None:
    for one in SCENARIOS.values():
        assert set(one.servers) <= set(SERVERS)
        assert one.quick or one.id == bench.LONG


def test_the_table_has_the_medians_and_says_which_goals_are_missed() -> None:
    taken = [sample("h2-html", "bolide", cost) for cost in (1.0, 2.0, 9.0)]
    taken += [sample("h2-html", "nginx", 10.0), sample("h2-html", "h2o", 2.5, failed=3)]
    results = bench.by_scenario([SCENARIOS["h2-html"]], taken)
    cost, rate, memory = bench.tables(
        [SCENARIOS["h2-html"]], results, {"h2-html": bench.load_goals()["h2-html"]}
    )
    assert cost[0] == ["server CPU µs per request", "bolide", "nginx", "h2o", "goal"]
    assert cost[1][1:4] == ["2.0", "10.0", "2.5 (3 failed)"]
    assert cost[1][4] == "0.200 × nginx (≤ 0.25) ok; 0.800 × h2o (≤ 0.7) MISSED"
    assert rate[1][1:] == ["1,000", "1,000", "1,000"]
    assert memory[1][1:] == ["10.0", "10.0", "10.0"]


def test_a_goal_may_look_at_another_scenario_or_at_microseconds() -> None:
    names = ("h2-jpg", "h2-gzip", "page-h1")
    taken = [sample(name, "bolide", cost) for name, cost in zip(names, (2, 1, 14), strict=True)]
    results = bench.by_scenario([SCENARIOS[name] for name in names], taken)
    goals = bench.load_goals()
    assert bench.verdicts("h2-gzip", goals["h2-gzip"], results) == "0.500 × bolide h2-jpg (≤ 1) ok"
    assert bench.verdicts("page-h1", goals["page-h1"], results) == "≤ 13 µs MISSED"


def test_idle_connections_are_told_by_their_memory_and_have_no_rate() -> None:
    one = SCENARIOS["idle"]
    results = bench.by_scenario([one], [sample("idle", "bolide", 100.0)])
    cost, rate, _ = bench.tables([one], results, {})
    assert cost[1] == [one.title, "3.5 KiB", ""]
    assert len(rate) == 1


def test_a_table_is_text_or_markdown() -> None:
    rows = [["a", "b"], ["long", "–"]]
    assert bench.shown(rows, markdown=False) == "a     b\n----  -\nlong  –"
    assert bench.shown(rows, markdown=True).splitlines()[1] == "| ---- | - |"
