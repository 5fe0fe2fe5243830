"""A collector of spans (OTLP over HTTP), which reads them with the official messages.

usage: otel_collector.py PORT [CERTIFICATE KEY]

Prints "port N", then a line for each request: "post PATH FIELDS", and for each span in it
"span NAME=VALUE|..." by sorted names: its own fields, its attributes, those of its resource after
"resource.", the scope. What a path ends in says how it is answered: /busy with 503 the first three
times, /never with 503, /bad with 400, /hang not at all.
"""

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

LOCK = threading.Lock()
BUSY = {"left": 3}


def value_of(value):
    """Return the value of an attribute as text, an error where it is neither text nor number."""
    kind = value.WhichOneof("value")
    assert kind in ("string_value", "int_value"), kind
    return str(getattr(value, kind))


def told(span, scope, resource):
    """One span as a line."""
    known = {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "state": span.trace_state,
        "kind": str(span.kind),
        "status": str(span.status.code),
        "flags": hex(span.flags),
        "start": str(span.start_time_unix_nano),
        "end": str(span.end_time_unix_nano),
        "scope": scope.name,
    }
    for attribute in span.attributes:
        assert attribute.key not in known, attribute.key
        known[attribute.key] = value_of(attribute.value)
    for attribute in resource.attributes:
        known["resource." + attribute.key] = value_of(attribute.value)
    clean = {name: value.replace("|", "%7C").replace("\n", "%0A") for name, value in known.items()}
    return "|".join(f"{name}={value}" for name, value in sorted(clean.items()))


class Collector(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Say nothing."""

    def lines(self, body):
        """Return what is printed of a request."""
        names = ("content-type", "x-token", "host")
        fields = " ".join(f"{name}={self.headers.get(name)}" for name in names)
        yield f"post {self.path} {fields}"
        request = ExportTraceServiceRequest.FromString(body)
        for spans in request.resource_spans:
            for scoped in spans.scope_spans:
                for span in scoped.spans:
                    yield "span " + told(span, scoped.scope, spans.resource)

    def do_POST(self):  # noqa: N802
        """Take spans."""
        body = self.rfile.read(int(self.headers["content-length"]))
        status = 200
        if self.path.endswith("/hang"):
            with LOCK:
                print("hang", flush=True)
            threading.Event().wait()
        with LOCK:
            if self.path.endswith("/busy") and BUSY["left"] > 0:
                BUSY["left"] -= 1
                status = 503
            elif self.path.endswith("/never"):
                status = 503
            elif self.path.endswith("/bad"):
                status = 400
            if status == 200:
                print("\n".join(self.lines(body)), flush=True)
            else:
                print(f"refused {status}", flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        if status == 503:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(answer)


def main(port, certificate=None, key=None):
    """Serve until killed."""
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Collector)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("port", server.server_address[1], flush=True)
    server.serve_forever()


main(*sys.argv[1:])
