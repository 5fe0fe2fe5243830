"""Owns: a gRPC service that echoes; messages are plain bytes.

Its arguments are addresses to listen on; one with `tls:` before it uses the certificate and the key
that follow. It says `ready` and its ports when it listens.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc

#: Whether calls of `Wait` were cancelled, in order.
CANCELLED: list[bool] = []


def unary(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Returns the message, and metadata of the client in both places."""
    own = [(key, value) for key, value in context.invocation_metadata() if key.startswith("x-")]
    context.send_initial_metadata((("x-begin", "1"), *own))
    context.set_trailing_metadata((("x-end", "2"), ("x-bytes-bin", b"\0\xff")))
    return request


def told(_request: bytes, context: grpc.ServicerContext) -> bytes:
    """The metadata of the client."""
    lines = sorted(f"{key}: {value!s}" for key, value in context.invocation_metadata())
    return "\n".join(lines).encode()


def fail(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Fails without a message; the head of the response has the status."""
    context.abort(grpc.StatusCode.NOT_FOUND, "nothing at " + request.decode())


def fail_late(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
    """Fails behind a message."""
    yield request
    context.abort(grpc.StatusCode.DATA_LOSS, "50% lost")


def count(request: bytes, _context: grpc.ServicerContext) -> Iterator[bytes]:
    """So many messages of such a size."""
    number, size = request.split()
    for at in range(int(number)):
        yield bytes([at % 256]) * int(size)


def total(requests: Iterator[bytes], _context: grpc.ServicerContext) -> bytes:
    """The length of all messages."""
    return str(sum(len(request) for request in requests)).encode()


def chat(requests: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
    """Each message at once."""
    for request in requests:
        yield b"re: " + request


def greet(requests: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
    """A message before the first one of the client, and one behind its last."""
    yield b"hello"
    yield str(sum(1 for _ in requests)).encode()


def wait(_request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
    """A message, then nothing until the client has left."""
    over = threading.Event()
    context.add_callback(over.set)
    yield b"waiting"
    left = over.wait(20)
    CANCELLED.append(left and not context.is_active())


def sleep(request: bytes, _context: grpc.ServicerContext) -> bytes:
    """Answers after so many seconds."""
    time.sleep(float(request))
    return request


def cancelled(_request: bytes, _context: grpc.ServicerContext) -> bytes:
    """How many calls of `Wait` were cancelled."""
    return str(sum(CANCELLED)).encode()


METHODS: dict[str, tuple[Callable[..., grpc.RpcMethodHandler], Callable[..., object]]] = {
    "Unary": (grpc.unary_unary_rpc_method_handler, unary),
    "Told": (grpc.unary_unary_rpc_method_handler, told),
    "Fail": (grpc.unary_unary_rpc_method_handler, fail),
    "FailLate": (grpc.unary_stream_rpc_method_handler, fail_late),
    "Count": (grpc.unary_stream_rpc_method_handler, count),
    "Total": (grpc.stream_unary_rpc_method_handler, total),
    "Chat": (grpc.stream_stream_rpc_method_handler, chat),
    "Greet": (grpc.stream_stream_rpc_method_handler, greet),
    "Wait": (grpc.unary_stream_rpc_method_handler, wait),
    "Sleep": (grpc.unary_unary_rpc_method_handler, sleep),
    "Cancelled": (grpc.unary_unary_rpc_method_handler, cancelled),
}


def read(path: str) -> bytes:
    """The contents of a file."""
    with open(path, "rb") as file:
        return file.read()


def main(words: list[str]) -> None:
    """Serves until its standard input ends."""
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=options)
    handlers = {name: make(method) for name, (make, method) in METHODS.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    ports = []
    while words:
        address = words.pop(0)
        if address.startswith("tls:"):
            certificate, key = words.pop(0), words.pop(0)
            shown = grpc.ssl_server_credentials([(read(key), read(certificate))])
            ports.append(server.add_secure_port(address[4:], shown))
        else:
            ports.append(server.add_insecure_port(address))
    server.start()
    print("ready", *ports, flush=True)
    sys.stdin.read()
    server.stop(0)


if __name__ == "__main__":
    main(sys.argv[1:])
