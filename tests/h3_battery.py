#!/usr/bin/env python3
"""Sends well-formed and malformed HTTP/3 to a server and says what came back.

usage: h3_battery.py PORT CERTIFICATE [CASE...]

One JSON line per case: {"case", "want", "got", "ok"}. An outcome is one of
  conn 0xCODE     the server closed the connection with this application error
  reset 0xCODE    the server reset the request stream (or stopped reading it)
  status N        the server answered
  silence         nothing within the time
Requests are for /hello.txt, whose body is "hello, bolide\\n".
"""

import asyncio
import json
import os
import socket
import ssl
import sys

import pylsqpack
from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration

from h3_peer import (
    CANCEL_PUSH,
    DATA,
    GOAWAY,
    HEADERS,
    MAX_PUSH_ID,
    PSEUDO,
    PUSH_PROMISE,
    SETTINGS,
    Peer,
    field_section,
    frame,
    head,
    prefix_int,
    read_varint,
    replaced,
    settings,
    varint,
    without,
)

CASES = []


def case(*want):
    """Registers a case; `want` lists the outcomes that are right."""

    def register(function):
        CASES.append((function.__name__, want, function))
        return function

    return register


def conn_case(name, code, *also):
    def register(function):
        CASES.append((name, (f"conn {code:#x}", *also), function))

    return register


# ---- what must be answered ------------------------------------------------


@case("status 200")
async def plain_request(peer):
    peer.control()
    stream = peer.request(head())
    got = await peer.outcome(stream)
    return got if peer.body(stream) == b"hello, bolide\n" else f"{got}, body {peer.body(stream)}"


@case("status 200")
async def request_before_settings(peer):
    stream = peer.request(head())
    peer.control()
    return await peer.outcome(stream)


@case("status 200")
async def byte_by_byte(peer):
    peer.control()
    data = head()
    stream = peer.open(data[:1])
    for i in range(1, len(data)):
        await asyncio.sleep(0.001)
        peer.write(stream, data[i : i + 1], fin=i + 1 == len(data))
    return await peer.outcome(stream)


@case("status 200")
async def grease_frames_settings_and_streams(peer):
    grease = 0x1F * 7 + 0x21
    peer.control((grease, 5), (0x7, 0), (0x1, 0))
    peer.open(varint(grease) + b"anything", uni=True)
    stream = peer.request(frame(grease, b"x" * 100) + head() + frame(grease + 0x1F))
    return await peer.outcome(stream)


@case("status 200")
async def grease_frame_on_the_control_stream(peer):
    control = peer.control()
    peer.write(control, frame(0x1F * 9 + 0x21, b"abc"))
    return await peer.outcome(peer.request(head()))


@case("status 200")
async def unknown_unidirectional_stream(peer):
    peer.control()
    peer.open(varint(0x4242) + b"x" * 500, uni=True)
    return await peer.outcome(peer.request(head()))


@case("status 200")
async def qpack_streams_of_the_client(peer):
    peer.control((0x1, 4096), (0x7, 16))
    peer.open(b"\x02", uni=True)
    peer.open(b"\x03", uni=True)
    return await peer.outcome(peer.request(head()))


@case("status 200")
async def static_table_and_huffman(peer):
    peer.control()
    encoder = pylsqpack.Encoder()
    fields = [(n.encode(), v.encode()) for n, v in [*PSEUDO, ("accept-encoding", "gzip, br")]]
    _, section = encoder.encode(0, fields)
    return await peer.outcome(peer.request(frame(HEADERS, section)))


@case("status 200")
async def dynamic_table(peer):
    """Fields inserted through the encoder stream, used by the requests after them."""
    peer.control()
    encoder = pylsqpack.Encoder()
    server_settings = await peer_settings(peer)
    capacity = min(server_settings.get(1, 0), 4096)
    prelude = encoder.apply_settings(capacity, server_settings.get(7, 0))
    stream_id = peer.open(b"\x02" + prelude, uni=True)
    peer.open(b"\x03", uni=True)
    for n in range(20):
        fields = [(k.encode(), v.encode()) for k, v in PSEUDO]
        fields += [(b"x-same", b"a value that comes again and again"), (b"x-n", str(n).encode())]
        instructions, section = encoder.encode(4 * n, fields)
        # The section first: the server has to wait for the instructions.
        stream = peer.request(frame(HEADERS, section))
        peer.write(stream_id, instructions)
        got = await peer.outcome(stream)
        if got != "status 200":
            return f"{got} at request {n}"
        for data in decoder_stream(peer):
            encoder.feed_decoder(data)
    return got


def decoder_stream(peer):
    for stream, data in peer.streams.items():
        if stream % 4 == 3 and data[:1] == b"\x03":
            yield bytes(data[1:])
            del data[1:]


async def peer_settings(peer):
    def control():
        return next((s for s, d in peer.streams.items() if s % 4 == 3 and d[:1] == b"\0"), None)

    await peer.until(lambda: control() is not None and len(peer.streams[control()]) > 2)
    data = bytes(peer.streams[control()])
    _, at = read_varint(data, 1)
    size, at = read_varint(data, at)
    end, out = at + size, {}
    while at < end:
        key, at = read_varint(data, at)
        out[key], at = read_varint(data, at)
    return out


@case("status 405")
async def post_with_body(peer):
    peer.control()
    pseudo = replaced(":method", "POST")
    data = head(("content-length", "5"), pseudo=pseudo) + frame(DATA, b"he") + frame(DATA, b"llo")
    return await peer.outcome(peer.request(data))


@case("status 405")
async def post_with_trailers(peer):
    peer.control()
    data = head(pseudo=replaced(":method", "POST")) + frame(DATA, b"x")
    data += frame(HEADERS, field_section([("x-checksum", "1")]))
    return await peer.outcome(peer.request(data))


@case("status 200")
async def cookie_crumbs(peer):
    peer.control()
    return await peer.outcome(peer.request(head(("cookie", "a=1"), ("cookie", "b=2"))))


@case("status 200")
async def host_instead_of_authority(peer):
    peer.control()
    pseudo = without(":authority")
    return await peer.outcome(peer.request(head(("host", "localhost"), pseudo=pseudo)))


@case("status 200")
async def hundred_requests_at_once(peer):
    peer.control()
    streams = [peer.request(head()) for _ in range(100)]
    for stream in streams:
        got = await peer.outcome(stream)
        if got != "status 200":
            return got
    return got


@case("status 200")
async def max_push_id_grows(peer):
    control = peer.control()
    peer.write(control, frame(MAX_PUSH_ID, varint(3)) + frame(MAX_PUSH_ID, varint(8)))
    return await peer.outcome(peer.request(head()))


@case("status 200")
async def goaway_of_the_client(peer):
    control = peer.control()
    peer.write(control, frame(GOAWAY, varint(0)))
    return await peer.outcome(peer.request(head()))


@case("status 200")
async def after_a_cancelled_request(peer):
    peer.control()
    stream = peer.request(head(), fin=False)
    peer._quic.reset_stream(stream, 0x10C)
    peer._quic.stop_stream(stream, 0x10C)
    peer.transmit()
    return await peer.outcome(peer.request(head()))


@case("reset 0x10c")
async def a_response_that_is_stopped_on_its_way(peer):
    peer.control()
    stream = peer.request(head(pseudo=replaced(":path", "/slow/big.bin")))
    await peer.until(lambda: stream in peer.streams)
    peer._quic.stop_stream(stream, 0x10C)
    peer.transmit()
    return await peer.outcome(stream)


@case("status 400", "status 431", "reset 0x10e", "reset 0x107", "conn 0x107")
async def field_section_too_large(peer):
    peer.control()
    return await peer.outcome(peer.request(head(("x-large", "y" * 60_000))))


@case("status 200")
async def other_requests_go_on_beside_a_malformed_one(peer):
    peer.control()
    bad = peer.request(head(pseudo=without(":path")))
    good = peer.request(head())
    first = await peer.outcome(bad)
    if first not in MALFORMED:
        return f"malformed one: {first}"
    return await peer.outcome(good)


# ---- connection errors ----------------------------------------------------


@conn_case("data_before_headers", 0x105)
async def _(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(DATA, b"x") + head()))


@conn_case("data_after_trailers", 0x105)
async def _(peer):
    peer.control()
    data = head(pseudo=replaced(":method", "POST")) + frame(DATA, b"x")
    trailers = frame(HEADERS, field_section([("x", "y")]))
    return await peer.outcome(peer.request(data + trailers + frame(DATA, b"x"), fin=False), 5)


@conn_case("headers_after_trailers", 0x105)
async def _(peer):
    peer.control()
    trailers = frame(HEADERS, field_section([("x", "y")]))
    data = head(pseudo=replaced(":method", "POST")) + trailers + trailers
    return await peer.outcome(peer.request(data, fin=False), 5)


@conn_case("settings_on_a_request_stream", 0x105)
async def _(peer):
    peer.control()
    return await peer.outcome(peer.request(settings() + head()))


@conn_case("goaway_on_a_request_stream", 0x105)
async def _(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(GOAWAY, varint(0)) + head()))


@conn_case("max_push_id_on_a_request_stream", 0x105)
async def _(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(MAX_PUSH_ID, varint(0)) + head()))


@conn_case("push_promise_on_a_request_stream", 0x105)
async def _(peer):
    peer.control()
    promise = frame(PUSH_PROMISE, varint(0) + field_section(PSEUDO))
    return await peer.outcome(peer.request(promise + head()))


for reserved in (0x2, 0x6, 0x8, 0x9):

    @conn_case(f"h2_frame_{reserved}_on_a_request_stream", 0x105)
    async def _(peer, reserved=reserved):
        peer.control()
        return await peer.outcome(peer.request(frame(reserved, b"\0" * 8) + head()))

    @conn_case(f"h2_frame_{reserved}_on_the_control_stream", 0x105)
    async def _(peer, reserved=reserved):
        peer.write(peer.control(), frame(reserved, b"\0" * 8))
        return await peer.outcome()


@conn_case("second_control_stream", 0x103)
async def _(peer):
    peer.control()
    peer.control()
    return await peer.outcome()


@conn_case("second_qpack_encoder_stream", 0x103)
async def _(peer):
    peer.control()
    peer.open(b"\x02", uni=True)
    peer.open(b"\x02", uni=True)
    return await peer.outcome()


@conn_case("second_qpack_decoder_stream", 0x103)
async def _(peer):
    peer.control()
    peer.open(b"\x03", uni=True)
    peer.open(b"\x03", uni=True)
    return await peer.outcome()


@conn_case("push_stream_of_a_client", 0x103)
async def _(peer):
    peer.control()
    peer.open(b"\x01" + varint(0), uni=True)
    return await peer.outcome()


@conn_case("no_settings_first", 0x10A)
async def _(peer):
    peer.open(b"\0" + frame(GOAWAY, varint(0)), uni=True)
    return await peer.outcome()


@conn_case("grease_before_settings", 0x10A)
async def _(peer):
    peer.open(b"\0" + frame(0x21, b"x") + settings(), uni=True)
    return await peer.outcome()


@conn_case("second_settings", 0x105)
async def _(peer):
    peer.write(peer.control(), settings())
    return await peer.outcome()


@conn_case("duplicate_setting", 0x109)
async def _(peer):
    peer.control((0x6, 1000), (0x6, 2000))
    return await peer.outcome()


for reserved in (0x2, 0x3, 0x4, 0x5):

    @conn_case(f"h2_setting_{reserved}", 0x109)
    async def _(peer, reserved=reserved):
        peer.control((reserved, 1))
        return await peer.outcome()


@conn_case("half_a_setting", 0x106)
async def _(peer):
    peer.open(b"\0" + frame(SETTINGS, varint(0x6)), uni=True)
    return await peer.outcome()


@conn_case("data_on_the_control_stream", 0x105)
async def _(peer):
    peer.write(peer.control(), frame(DATA, b"x"))
    return await peer.outcome()


@conn_case("headers_on_the_control_stream", 0x105)
async def _(peer):
    peer.write(peer.control(), head())
    return await peer.outcome()


@conn_case("push_promise_on_the_control_stream", 0x105)
async def _(peer):
    peer.write(peer.control(), frame(PUSH_PROMISE, varint(0)))
    return await peer.outcome()


@conn_case("closed_control_stream", 0x104)
async def _(peer):
    peer.open(b"\0" + settings(), uni=True, fin=True)
    return await peer.outcome()


@conn_case("reset_control_stream", 0x104)
async def _(peer):
    control = peer.control()
    await asyncio.sleep(0.1)
    peer._quic.reset_stream(control, 0x100)
    peer.transmit()
    return await peer.outcome()


@conn_case("closed_qpack_encoder_stream", 0x104)
async def _(peer):
    peer.control()
    peer.open(b"\x02", uni=True, fin=True)
    return await peer.outcome()


@conn_case("closed_qpack_decoder_stream", 0x104)
async def _(peer):
    peer.control()
    peer.open(b"\x03", uni=True, fin=True)
    return await peer.outcome()


@conn_case("max_push_id_shrinks", 0x108)
async def _(peer):
    peer.write(peer.control(), frame(MAX_PUSH_ID, varint(8)) + frame(MAX_PUSH_ID, varint(3)))
    return await peer.outcome()


@conn_case("cancel_push_of_nothing", 0x108)
async def _(peer):
    peer.write(peer.control(), frame(CANCEL_PUSH, varint(5)))
    return await peer.outcome()


@conn_case("goaway_grows", 0x108)
async def _(peer):
    peer.write(peer.control(), frame(GOAWAY, varint(4)) + frame(GOAWAY, varint(8)))
    return await peer.outcome()


@conn_case("max_push_id_with_junk", 0x106)
async def _(peer):
    peer.write(peer.control(), frame(MAX_PUSH_ID, varint(8) + b"x"))
    return await peer.outcome()


@conn_case("goaway_without_id", 0x106)
async def _(peer):
    peer.write(peer.control(), frame(GOAWAY))
    return await peer.outcome()


@conn_case("truncated_frame_at_the_end", 0x106)
async def _(peer):
    peer.control()
    return await peer.outcome(peer.request(head()[:-5]))


@conn_case("truncated_frame_header_at_the_end", 0x106)
async def _(peer):
    peer.control()
    return await peer.outcome(peer.request(head() + b"\0"))


@conn_case("truncated_data_at_the_end", 0x106)
async def _(peer):
    peer.control()
    data = head(pseudo=replaced(":method", "POST")) + frame(DATA, b"xxxxx")[:-2]
    return await peer.outcome(peer.request(data))


@case("reset 0x200")
async def qpack_index_beyond_the_static_table(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(HEADERS, b"\0\0" + prefix_int(0xC0, 6, 99))))


@case("reset 0x200")
async def qpack_index_into_an_empty_dynamic_table(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(HEADERS, b"\0\0\x80")))


@case("reset 0x200")
async def qpack_insert_count_beyond_the_limit(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(HEADERS, b"\xff\xff\x7f\0\x80")))


@case("reset 0x200")
async def qpack_section_cut_short(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(HEADERS, b"\0\0\x27\x00ab")))


@case("reset 0x200")
async def qpack_bad_huffman(peer):
    peer.control()
    section = b"\0\0" + prefix_int(0x28, 3, 4) + b"\xff\xff\xff\xff" + b"\x01x"
    return await peer.outcome(peer.request(frame(HEADERS, section)))


@conn_case("qpack_encoder_capacity_beyond_the_limit", 0x201)
async def _(peer):
    peer.control()
    peer.open(b"\x02" + prefix_int(0x20, 5, 1 << 30), uni=True)
    return await peer.outcome()


@conn_case("qpack_encoder_bad_static_name", 0x201)
async def _(peer):
    peer.control()
    peer.open(b"\x02" + prefix_int(0xC0, 6, 200) + b"\x01x", uni=True)
    return await peer.outcome()


@conn_case("qpack_encoder_duplicate_of_nothing", 0x201)
async def _(peer):
    peer.control()
    peer.open(b"\x02" + prefix_int(0, 5, 7), uni=True)
    return await peer.outcome()


@conn_case("qpack_decoder_acknowledges_nothing", 0x202)
async def _(peer):
    peer.control()
    peer.open(b"\x03" + prefix_int(0x80, 7, 0), uni=True)
    return await peer.outcome()


@conn_case("qpack_decoder_increment_of_zero", 0x202)
async def _(peer):
    peer.control()
    peer.open(b"\x03\x00", uni=True)
    return await peer.outcome()


@conn_case("qpack_decoder_increment_beyond_what_was_sent", 0x202)
async def _(peer):
    peer.control()
    peer.open(b"\x03" + prefix_int(0, 6, 50), uni=True)
    return await peer.outcome()


# ---- malformed messages: a response, then the end of the stream (RFC 9114 §4.1.2) ----

MALFORMED = ("status 400",)
# A body that nothing reads is not looked at.
UNREAD = ("status 405",)

MESSAGES = {
    "without_method": head(pseudo=without(":method")),
    "without_scheme": head(pseudo=without(":scheme")),
    "without_path": head(pseudo=without(":path")),
    "without_authority_and_host": head(pseudo=without(":authority")),
    "scheme_with_a_blank": head(pseudo=replaced(":scheme", "ht tp")),
    "scheme_with_a_digit_first": head(pseudo=replaced(":scheme", "1https")),
    "empty_path": head(pseudo=replaced(":path", "")),
    "path_without_slash": head(pseudo=replaced(":path", "hello.txt")),
    "two_paths": head(pseudo=[*PSEUDO, (":path", "/")]),
    "two_methods": head(pseudo=[*PSEUDO, (":method", "GET")]),
    "unknown_pseudo_header": head(pseudo=[*PSEUDO, (":colour", "red")]),
    "status_in_a_request": head(pseudo=[*PSEUDO, (":status", "200")]),
    "pseudo_header_after_a_field": frame(
        HEADERS, field_section([PSEUDO[0], ("x", "y"), *PSEUDO[1:]])
    ),
    "upper_case_name": head(("X-Upper", "y")),
    "connection_field": head(("connection", "keep-alive")),
    "transfer_encoding_field": head(("transfer-encoding", "chunked")),
    "te_other_than_trailers": head(("te", "gzip")),
    "host_other_than_authority": head(("host", "elsewhere")),
    "line_feed_in_a_value": head(("x", "a\nb")),
    "carriage_return_in_a_value": head(("x", "a\rb")),
    "nul_in_a_value": head(("x", "a\0b")),
    "blank_in_a_name": head(("x y", "z")),
    "empty_name": head(("", "z")),
    "lower_case_method": head(pseudo=replaced(":method", "get")),
    "blank_in_the_path": head(pseudo=replaced(":path", "/a b")),
    "content_length_without_body": head(
        ("content-length", "5"), pseudo=replaced(":method", "POST")
    ),
    "content_length_too_small": head(("content-length", "1"), pseudo=replaced(":method", "POST"))
    + frame(DATA, b"hello"),
    "content_length_too_large": head(("content-length", "9"), pseudo=replaced(":method", "POST"))
    + frame(DATA, b"hello"),
    "content_length_not_a_number": head(("content-length", "x")),
    "two_content_lengths": head(("content-length", "5"), ("content-length", "6"))
    + frame(DATA, b"hello"),
    "pseudo_header_in_trailers": head(pseudo=replaced(":method", "POST"))
    + frame(HEADERS, field_section([(":path", "/")])),
}
for name, message in MESSAGES.items():

    async def send(peer, message=message):
        peer.control()
        return await peer.outcome(peer.request(message))

    is_unread = name in (
        "content_length_too_small",
        "content_length_too_large",
        "pseudo_header_in_trailers",
    )
    CASES.append((name, UNREAD if is_unread else MALFORMED, send))


@case("reset 0x10d")
async def end_without_headers(peer):
    peer.control()
    return await peer.outcome(peer.request(b""))


@case("reset 0x10d")
async def grease_and_no_headers(peer):
    peer.control()
    return await peer.outcome(peer.request(frame(0x21, b"x")))


# ---- below HTTP/3 ----------------------------------------------------------


async def version_negotiation(port):
    """An unknown version gets the versions that are spoken (RFC 9000 §6)."""
    dcid, scid = os.urandom(8), os.urandom(8)
    packet = b"\xc0" + b"\x1a\x2a\x3a\x4a" + b"\x08" + dcid + b"\x08" + scid
    answer = await datagram(port, packet + os.urandom(1200 - len(packet)))
    if answer is None:
        return "silence"
    ids = b"\x08" + scid + b"\x08" + dcid
    versions = [answer[i : i + 4] for i in range(5 + len(ids), len(answer), 4)]
    right = answer[1:5] == b"\0\0\0\0" and answer[5 : 5 + len(ids)] == ids
    return "version 1" if right and b"\0\0\0\1" in versions else f"other: {answer.hex()}"


async def small_initial(port):
    """A short Initial is dropped: answering it would amplify (RFC 9000 §14.1)."""
    packet = b"\xc0\0\0\0\1\x08" + os.urandom(8) + b"\x08" + os.urandom(8)
    packet += b"\0" + b"\x40\x40" + os.urandom(64)
    return "silence" if await datagram(port, packet, 1) is None else "answer"


async def noise(port):
    """Random datagrams get nothing worse than nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        for n in range(2000):
            s.send(os.urandom(1 + n % 1400))
    return "survived"


async def datagram(port, data, limit=3):
    def ask():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(limit)
            s.sendto(data, ("127.0.0.1", port))
            try:
                return s.recv(4096)
            except TimeoutError:
                return None

    return await asyncio.to_thread(ask)


BARE = [
    ("version_negotiation", ("version 1",), version_negotiation),
    ("small_initial", ("silence",), small_initial),
    ("noise", ("survived",), noise),
]


# ---- the run -----------------------------------------------------------------


def configuration(cert, **more):
    return QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        server_name="localhost",
        cafile=cert,
        verify_mode=ssl.CERT_REQUIRED,
        **more,
    )


async def run_case(port, cert, function):
    try:
        async with connect(
            "127.0.0.1", port, configuration=configuration(cert), create_protocol=Peer
        ) as peer:
            return await function(peer)
    except ConnectionError as error:
        return f"no connection: {error}"
    except Exception as error:  # a case that breaks is a failed case, not the end
        return f"{type(error).__name__}: {error}"


async def alive(port, cert):
    got = await run_case(port, cert, plain_request)
    return None if got == "status 200" else f"the server is gone afterwards: {got}"


async def early_data(port, cert):
    """A resumed connection whose first flight is a request (RFC 9001 §4.6)."""
    tickets = []
    async with connect(
        "127.0.0.1",
        port,
        configuration=configuration(cert),
        create_protocol=Peer,
        session_ticket_handler=tickets.append,
    ) as peer:
        peer.control()
        await peer.outcome(peer.request(head()))
        await peer.until(lambda: tickets, 5)
    if not tickets:
        return "no ticket"
    resumed = configuration(cert, session_ticket=tickets[0])
    async with connect(
        "127.0.0.1",
        port,
        configuration=resumed,
        create_protocol=Peer,
        wait_connected=False,
    ) as peer:
        peer.control()
        stream = peer.request(head())
        got = await peer.outcome(stream)
        used = peer._quic.tls.session_resumed
        return got if used else f"{got}, but not resumed"


async def key_update(port, cert):
    async with connect(
        "127.0.0.1", port, configuration=configuration(cert), create_protocol=Peer
    ) as peer:
        peer.control()
        got = await peer.outcome(peer.request(head()))
        for _ in range(3):
            peer._quic.request_key_update()
            got = await peer.outcome(peer.request(head()))
        return got


async def migration(port, cert, host=None):
    """The client's port changes (NAT rebinding): the connection goes on."""
    async with connect(
        "127.0.0.1", port, configuration=configuration(cert), create_protocol=Peer
    ) as peer:
        peer.control()
        await peer.outcome(peer.request(head()))
        loop = asyncio.get_running_loop()
        old = peer._transport
        transport, _ = await loop.create_datagram_endpoint(
            lambda: Forward(peer), local_addr=(host or old.get_extra_info("sockname")[0], 0)
        )
        peer._transport = transport
        peer._quic.change_connection_id()
        got = await peer.outcome(peer.request(head()))
        peer._transport = old
        transport.close()
        return got


async def another_address(port, cert):
    """The client's address changes: what it may is settled by the old one, so requests are
    rejected, to be made again over a new connection."""
    return await migration(port, cert, "::ffff:127.0.0.9")


class Forward(asyncio.DatagramProtocol):
    def __init__(self, peer):
        self.peer = peer

    def datagram_received(self, data, addr):
        self.peer.datagram_received(data, addr)


WHOLE = [
    ("early_data", ("status 200",), early_data),
    ("key_update", ("status 200",), key_update),
    ("migration", ("status 200",), migration),
    ("another_address", ("reset 0x10b",), another_address),
]


async def main(port, cert, only):
    for name, want, function in CASES:
        if not only or name in only:
            say(name, want, await run_case(port, cert, function), await alive(port, cert))
    for name, want, function in BARE:
        if not only or name in only:
            say(name, want, await function(port), await alive(port, cert))
    for name, want, function in WHOLE:
        if not only or name in only:
            try:
                got = await function(port, cert)
            except Exception as error:
                got = f"{type(error).__name__}: {error}"
            say(name, want, got, await alive(port, cert))


def say(name, want, got, dead):
    got = dead or got
    print(json.dumps({"case": name, "want": want, "got": got, "ok": got in want}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
