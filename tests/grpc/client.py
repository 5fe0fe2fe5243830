"""Owns: a gRPC client of `service.py` behind a server, and what it expects.

Its arguments are the target, the file of a trusted certificate or `-` for plain text, and the names
of checks.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator

import grpc

LARGE = 3_000_000


class Checks:
    """The checks by their names."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def unary(self, name: str, message: bytes, **rest: object) -> bytes:
        """A call with a message each."""
        return self.channel.unary_unary(f"/test.Echo/{name}")(message, timeout=20, **rest)

    def messages(self) -> None:
        """Messages of any size come back as they were."""
        for size in (0, 1, 1000, 65_535, 70_000, LARGE):
            message = bytes([size % 251]) * size
            assert self.unary("Unary", message) == message, size

    def metadata(self) -> None:
        """Metadata arrive, and come back before and behind the message."""
        call = self.channel.unary_unary("/test.Echo/Unary")
        sent = (("x-own", "a b"), ("x-long", "v" * 3000))
        reply, done = call.with_call(b"m", metadata=sent, timeout=20)
        begin, end = dict(done.initial_metadata()), dict(done.trailing_metadata())
        assert reply == b"m" and begin["x-own"] == "a b" and len(begin["x-long"]) == 3000, begin
        assert begin["x-begin"] == "1" and end["x-end"] == "2", (begin, end)
        assert end["x-bytes-bin"] == b"\0\xff", end

    def errors(self) -> None:
        """A status arrives with its text, with a message before it or without."""
        try:
            self.unary("Fail", "ä%".encode())
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error
            assert error.details() == "nothing at ä%", error
        else:
            raise AssertionError("it fails")
        replies = self.channel.unary_stream("/test.Echo/FailLate")(b"one", timeout=20)
        assert next(replies) == b"one"
        try:
            next(replies)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DATA_LOSS, error
            assert error.details() == "50% lost", error
        else:
            raise AssertionError("it fails late")
        try:
            self.unary("Nothing", b"")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error

    def streams(self) -> None:
        """Many messages in one direction."""
        count = self.channel.unary_stream("/test.Echo/Count")
        sizes = [len(reply) for reply in count(b"200 40000", timeout=20)]
        assert sizes == [40_000] * 200, sizes
        total = self.channel.stream_unary("/test.Echo/Total")
        assert total((b"x" * 40_000 for _ in range(200)), timeout=20) == b"8000000"
        assert total(iter(()), timeout=20) == b"0"

    def chat(self) -> None:
        """Each message is answered before the next one is sent."""
        self.answered = threading.Semaphore(0)

        def sent() -> Iterator[bytes]:
            for at in range(50):
                yield b"%d" % at
                assert self.answered.acquire(timeout=10), "an answer comes at once"

        replies = self.channel.stream_stream("/test.Echo/Chat")(sent(), timeout=20)
        for at, reply in enumerate(replies):
            assert reply == b"re: %d" % at, reply
            self.answered.release()

    def greeting(self) -> None:
        """The response begins before the request has a message."""
        greeted = threading.Event()

        def sent() -> Iterator[bytes]:
            assert greeted.wait(10), "the greeting comes first"
            yield b"one"
            yield b"two"

        replies = self.channel.stream_stream("/test.Echo/Greet")(sent(), timeout=20)
        assert next(replies) == b"hello"
        greeted.set()
        assert list(replies) == [b"2"]

    def cancel(self) -> None:
        """A call that the client cancels ends at the service."""
        before = int(self.unary("Cancelled", b""))
        replies = self.channel.unary_stream("/test.Echo/Wait")(b"")
        assert next(replies) == b"waiting"
        replies.cancel()
        until = time.monotonic() + 10
        while int(self.unary("Cancelled", b"")) == before:
            assert time.monotonic() < until, "the service is told"
            time.sleep(0.05)

    def deadline(self) -> None:
        """A deadline passes at the client."""
        try:
            self.channel.unary_unary("/test.Echo/Sleep")(b"3", timeout=0.3)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        else:
            raise AssertionError("the deadline passes")

    def many(self) -> None:
        """Calls beside one another."""
        call = self.channel.unary_unary("/test.Echo/Unary")
        futures = [call.future(b"%d" % at, timeout=20) for at in range(60)]
        assert [future.result() for future in futures] == [b"%d" % at for at in range(60)]

    def unavailable(self) -> None:
        """An upstream that is not there."""
        try:
            self.unary("Unary", b"")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
            print(error.details())
        else:
            raise AssertionError("nobody is there")

    def told(self) -> None:
        """What the service is told."""
        print(self.unary("Told", b"", metadata=(("x-own", "1"), ("x-gone", "2"))).decode())


def main(target: str, trusted: str, names: list[str]) -> None:
    """Runs the checks."""
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.enable_http_proxy", 0),
        ("grpc.ssl_target_name_override", "localhost"),
    ]
    if trusted == "-":
        channel = grpc.insecure_channel(target, options)
    else:
        with open(trusted, "rb") as file:
            channel = grpc.secure_channel(
                target, grpc.ssl_channel_credentials(file.read()), options
            )
    checks = Checks(channel)
    for name in names:
        check: Callable[[], None] = getattr(checks, name)
        check()
        print(f"ok {name}")
    channel.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
