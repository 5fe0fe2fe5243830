"""Links: their settings, their commands, and how their figures are judged."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bolide_lab.links import netem, selftest, tun
from bolide_lab.links.base import LinkUnavailable, check, open_link
from bolide_lab.links.selftest import Arrival
from bolide_lab.model import LinkSpec

SPEC = LinkSpec(5, 20, 7)


def arrivals(spec: LinkSpec, count: int, queue: int) -> list[Arrival]:
    """A flood through a perfect link: every packet finds the queue full but one place."""
    packet_ns = int(selftest.packet_ms(spec) * 1e6)
    wait_ns = queue * packet_ns + int(spec.rtt_ms * 5e5)
    return [Arrival(n, n * packet_ns, n * packet_ns + wait_ns) for n in range(count)]


def test_a_perfect_link_holds() -> None:
    flood = arrivals(SPEC, 100, 7)
    assert selftest.rate_figure(SPEC, flood).measured == pytest.approx(5, rel=1e-3)
    assert selftest.queue_figure(SPEC, flood).measured == pytest.approx(7, abs=0.01)
    assert selftest.rtt_figure(SPEC, [20.1, 20.2, 29]).holds()
    assert selftest.loss_figure(SPEC, 100, 100).holds()


def test_another_link_does_not_hold() -> None:
    flood = arrivals(replace(SPEC, rate_mbit=6), 100, 20)
    assert not selftest.rate_figure(SPEC, flood).holds()
    assert not selftest.queue_figure(SPEC, flood).holds()
    assert not selftest.rtt_figure(SPEC, [40, 41, 42]).holds()
    assert not selftest.loss_figure(SPEC, 1000, 900).holds()
    assert not selftest.rate_figure(SPEC, []).holds()
    assert not selftest.queue_figure(SPEC, []).holds()
    assert not selftest.rtt_figure(SPEC, []).holds()


def test_a_late_sender_does_not_make_a_slow_link() -> None:
    flood = arrivals(SPEC, 100, 7)
    pause_ns = 10**9
    flood += [
        Arrival(a.number, a.sent_ns + pause_ns, a.got_ns + pause_ns)
        for a in arrivals(SPEC, 200, 7)[100:]
    ]
    idle = Arrival(100, flood[100].got_ns - 11_000_000, flood[100].got_ns)
    flood[100] = idle
    assert selftest.rate_figure(SPEC, flood).holds()


def test_the_table_names_what_does_not_hold() -> None:
    text = selftest.table([("tun", SPEC, selftest.rtt_figure(SPEC, [40.0]))])
    assert "NOT within 1" in text
    assert "5 Mbit/s 20 ms q7" in text


def test_netem_is_told_half_of_the_round_trip() -> None:
    said = netem.words(LinkSpec(100, 20, 333, 0.5))
    assert " ".join(said) == "delay 10ms rate 100mbit limit 333 loss random 0.5%"
    assert "loss" not in netem.words(SPEC)


def test_netem_counters_are_read() -> None:
    text = """[{"kind":"netem","handle":"8001:","root":true,"options":{"limit":7,
      "delay":{"delay":0.01,"jitter":0,"correlation":0},"ecn":false,"gap":0},
      "bytes":152034,"packets":110,"drops":21,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}]"""
    queue = netem.parse_queue(text)
    assert (queue.packets, queue.bytes, queue.dropped_queue) == (110, 152034, 21)
    with pytest.raises(LinkUnavailable):
        netem.parse_queue('[{"kind":"noqueue"}]')


def test_the_user_space_link_is_told_microseconds() -> None:
    argv = tun.TunLink(LinkSpec(100, 20, 333, 0.5), seed=7).argv(Path("/x/link"))
    assert argv == ["/x/link", "100", "100", "10000", "333", "0.5", "7", "1500"]


def test_its_counters_are_read() -> None:
    way = (
        '{"packets": 10, "bytes": 900, "dropped_queue": 2, "lost_random": 1, '
        '"queue_packets_max": 7, "late_us_max": 80, "late_packets": 0}'
    )
    line = f'{{"cpu_s": 0.25, "to_client": {way}, "to_server": {way}}}'
    counters = tun.parse_counters(line)
    assert counters.cpu_s == 0.25
    assert counters.to_client.queue_packets_max == 7
    with pytest.raises(LinkUnavailable):
        tun.parse_counters("")


def test_pings_report_is_read() -> None:
    text = "10 packets transmitted, 10 received, 0% packet loss, time 182ms\nrtt min/avg/max/mdev ="
    assert selftest.parse_ping(text + " 20.194/21.224/24.523/1.431 ms\n") == 21.224
    assert selftest.parse_ping("ping: connect: Network is unreachable") is None


@pytest.mark.parametrize(
    "spec",
    [LinkSpec(0, 20, 7), LinkSpec(5, -1, 7), LinkSpec(5, 20, 0), LinkSpec(5, 20, 7, 100)],
)
def test_what_no_link_can_be_is_refused(spec: LinkSpec) -> None:
    with pytest.raises(LinkUnavailable):
        check(spec)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(LinkUnavailable, match="unknown kind"):
        open_link(SPEC, kind="wire")


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="a link needs root and TUN"
)
def test_a_link_carries_loses_and_leaves_nothing_behind() -> None:
    link = tun.TunLink(LinkSpec(50, 2, 50, 50.0), seed=3)
    with link:
        server = selftest.socket_in(link.server_namespace(), link.server_address)
        client = selftest.socket_in(link.client_namespace(), link.client_address)
        with server, client:
            sent, came = selftest.flow(server, client, 5, 0.05, 0.2)
        counters = link.counters()
        place = Path(link.server_namespace()).parent
    assert counters.to_client.packets == sent
    assert counters.to_client.lost_random == sent - len(came) > 0
    assert not place.exists()
    assert link.down() is None
