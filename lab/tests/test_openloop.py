"""The open-loop client: its wire, what it says, and a server that stops for a while."""

import asyncio
import json
from dataclasses import replace

import pytest

from bolide_lab.clients import openloop
from bolide_lab.clients import openloop_wire as wire
from bolide_lab.model import Load

LOAD = Load("openloop", "/", "h1", None, 0.3, 4, 1, rate_per_s=200)


class Pipe(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        pass


def test_the_length_of_an_answer_is_known_when_it_is_there() -> None:
    plain = bytearray(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    assert wire.answer_length(plain) == len(plain)
    assert wire.answer_length(plain[:20]) is None
    chunked = bytearray(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    )
    assert wire.answer_length(chunked) == len(chunked)
    assert wire.answer_length(chunked[:-9]) is None
    assert wire.answer_length(bytearray(b"HTTP/1.1 304 Not Modified\r\n\r\n")) == 29


def test_an_answer_of_http1_is_counted_once() -> None:
    seen: list[tuple[int, bool, int]] = []
    one = wire.WireH1(lambda *answer: seen.append(answer), b"GET / HTTP/1.1\r\n\r\n")
    one.connection_made(Pipe())
    one.send(7)
    assert not one.has_room()
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":
        one.data_received(bytes((byte,)))
    assert seen == [(7, True, 40)] and one.has_room()
    one.send(8)
    one.data_received(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
    one.send(9)
    one.connection_lost(None)
    assert [answer[:2] for answer in seen[1:]] == [(8, False), (9, False)]


def test_answers_of_http2_come_in_any_order() -> None:
    seen: list[tuple[int, bool, int]] = []
    two = wire.WireH2(lambda *answer: seen.append(answer), b"\x82", 2)
    pipe = Pipe()
    two.connection_made(pipe)
    assert pipe.written.startswith(wire.PREFACE)
    two.send(0)
    two.send(1)
    assert not two.has_room()
    answers = wire.frame(wire.SETTINGS, 0, 0, b"\x00\x03\x00\x00\x00\x64")
    answers += wire.frame(wire.HEADERS, wire.END_HEADERS, 3, b"\x3f\xe1\x1f\x88")
    answers += wire.frame(wire.HEADERS, wire.END_HEADERS, 1, b"\x8d")
    answers += wire.frame(wire.DATA, wire.END_STREAM, 3, b"hello")
    answers += wire.frame(wire.DATA, wire.END_STREAM, 1, b"gone")
    for byte in answers:
        two.data_received(bytes((byte,)))
    assert [answer[:2] for answer in seen] == [(1, True), (0, False)]
    two.send(2)
    two.data_received(wire.frame(wire.RESET, 0, 5, b"\x00\x00\x00\x01"))
    two.send(3)
    two.connection_lost(None)
    assert [answer[:2] for answer in seen[2:]] == [(2, False), (3, False)]


@pytest.mark.parametrize(
    ("block", "is_good"),
    [
        (b"\x88", True),
        (b"\x3f\xe1\x1f\x88", True),
        (b"\x20\x8b", True),
        (b"\x8d", False),
        (b"", False),
    ],
)
def test_the_status_is_read_behind_changes_of_the_table(block: bytes, is_good: bool) -> None:
    assert wire.status_is_good(block) is is_good


def test_long_strings_of_hpack_have_long_lengths() -> None:
    assert wire.text("a" * 126)[:2] == b"\x7ea"
    assert wire.text("a" * 127)[:3] == b"\x7f\x00a"
    assert wire.text("a" * 300)[:3] == b"\x7f\xad\x01"


def test_reports_of_processes_are_joined() -> None:
    part = {"seconds": 0.5, "good": 2, "failed": 1, "bytes": 90, "cpu_s": 0.1}
    first = json.dumps({**part, "latency_us": [100.0, 300.0], "late_us": [1.0, 2.0, 2.0]})
    other = json.dumps({**part, "latency_us": [200.0, 4000.0], "late_us": [1.0, 1500.0, 2.0]})
    outcome = openloop.parse(f"{first}\n{other}\n")
    assert (outcome.requests, outcome.failed, outcome.bytes_total) == (4, 2, 180)
    assert outcome.requests_per_s == 8
    assert outcome.latency_us is not None
    assert (outcome.latency_us.p50, outcome.latency_us.p999) == (300.0, 4000.0)
    assert outcome.extra["saturated"]
    assert openloop.parse("").latency_us is None


def test_what_it_cannot_do_it_says() -> None:
    assert openloop.supports(LOAD) is None
    assert "HTTP/3" in str(openloop.supports(replace(LOAD, protocol="h3")))
    assert "rate_per_s" in str(openloop.supports(replace(LOAD, rate_per_s=None)))
    with pytest.raises(ValueError, match="rate_per_s"):
        openloop.argv(replace(LOAD, seconds=None), "127.0.0.1:1")


def test_a_server_that_stops_is_seen_by_all_requests_of_that_time() -> None:
    paused_s = 0.15

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            await gate.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def stop_for_a_while() -> None:
        await asyncio.sleep(0.05)
        gate.clear()
        await asyncio.sleep(paused_s)
        gate.set()

    async def measure() -> openloop.Run:
        gate.set()
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pause = asyncio.create_task(stop_for_a_while())
        run = openloop.Run(LOAD, f"127.0.0.1:{port}", "localhost", 0)
        await run.go()
        await pause
        server.close()
        return run

    gate = asyncio.Event()
    run = asyncio.run(measure())
    assert (run.good, run.failed) == (54, 0)
    # Four connections alone could only have seen four of them.
    assert sum(us > 20_000 for us in run.done) > 12
