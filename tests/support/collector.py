"""OpenTelemetry collector on this machine, which receives OTLP over HTTP, or does not respond."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MESSAGES: dict[str, Any] = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


@dataclass
class ReceivedSpan:
    """One span as received."""

    process: str
    name: str
    kind: int
    trace: str
    span: str
    parent: str
    notes: dict[str, Any]
    links: list[tuple[str, str]]
    failed: bool


@dataclass
class Collector:
    """Recorded requests of the collector. While `hangs` is set, requests are not answered."""

    url: str = ""
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    hangs: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def spans(self) -> list[ReceivedSpan]:
        """Return all spans in the order of arrival."""
        return [
            parse_span(value(resource.resource.attributes)["service.name"], span)
            for path, _, message in list(self.requests)
            if path == "/v1/traces"
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metrics(self) -> dict[tuple[str, str], Any]:
        """Return the latest value of each metric, by process and name."""
        return {
            (value(resource.resource.attributes)["service.name"], metric.name): metric
            for path, _, message in list(self.requests)
            if path == "/v1/metrics"
            for resource in message.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def value(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def parse_span(process: str, span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        process, span.name, span.kind, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(),
        value(span.attributes), [(link.trace_id.hex(), link.span_id.hex()) for link in span.links], span.status.code == 2,
    )  # fmt: skip


@contextmanager
def run_collector() -> Iterator[Collector]:
    """Run a collector."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if collector.hangs.is_set():
                collector.ended.wait(60)
                return
            assert self.headers["content-type"] == "application/x-protobuf"
            message = MESSAGES[self.path].FromString(
                gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
            )
            collector.requests.append((self.path, dict(self.headers.items()), message))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Ignore the message."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.ended.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
