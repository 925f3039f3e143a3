"""Export of spans to an OTLP collector, in batches and in a separate thread."""

import contextlib
import threading
from collections.abc import Iterator

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from adapters.otlp.collector import MAX_CLOSE_SECONDS, TIMEOUT_SECONDS, OtlpCollector, limit_exporter_logging
from domain.kernel.trace_context import TraceContext, parse_trace_context
from ports.telemetry import AttributeValue, SpanKind

MAX_QUEUED_SPANS = 8_192
"""Maximum spans that wait to be sent; further spans are dropped."""
MAX_BATCH_SPANS = 512
"""Maximum spans in a batch."""
BATCH_INTERVAL_MILLISECONDS = 1_000
"""Milliseconds between two batches."""
MAX_ATTRIBUTE_CHARS = 500
"""Maximum characters of an attribute of a span; longer values are truncated."""
_KINDS = {
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
}
_EMPTY_CONTEXT = Context()


def _convert_context(context: TraceContext) -> trace.SpanContext:
    """Convert a trace context to OpenTelemetry's type."""
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if context.sampled else trace.TraceFlags.DEFAULT)
    return trace.SpanContext(int(context.trace, 16), int(context.span, 16), is_remote=True, trace_flags=flags)


class OtlpSpan:
    """Span that is exported by OTLP (port Span in ports/telemetry.py)."""

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set_attributes(self, **attributes: AttributeValue | None) -> None:
        for name, value in attributes.items():
            if value is not None:
                self._span.set_attribute(name.replace("__", "."), value)

    def mark_failed(self, reason: str) -> None:
        self._span.set_attribute("error.type", reason)
        self._span.set_status(trace.StatusCode.ERROR)


class OtlpTracing:
    """Recording and export of spans (port Tracing in ports/telemetry.py).

    OTEL_TRACES_SAMPLER sets the proportion of recorded traces; by default, all traces are recorded.
    """

    def __init__(self, collector: OtlpCollector) -> None:
        limit_exporter_logging()
        exporter = OTLPSpanExporter(f"{collector.url}/v1/traces", timeout=TIMEOUT_SECONDS, compression=Compression.Gzip)
        self._sending = BatchSpanProcessor(
            exporter, MAX_QUEUED_SPANS, BATCH_INTERVAL_MILLISECONDS, MAX_BATCH_SPANS, TIMEOUT_SECONDS * 1000
        )
        self._provider = TracerProvider(
            resource=collector.resource,
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attribute_length=MAX_ATTRIBUTE_CHARS),
        )
        self._provider.add_span_processor(self._sending)
        self._tracer = self._provider.get_tracer("joinery", collector.version)

    @contextlib.contextmanager
    def open_span(
        self, name: str, kind: SpanKind, *, parent_context: str | None = None, linked_context: str | None = None
    ) -> Iterator[OtlpSpan]:
        parent_span, linked_span = parse_trace_context(parent_context), parse_trace_context(linked_context)
        within = (
            trace.set_span_in_context(trace.NonRecordingSpan(_convert_context(parent_span)))
            if parent_span
            else _EMPTY_CONTEXT
        )
        links = [trace.Link(_convert_context(linked_span))] if linked_span else None
        with self._tracer.start_as_current_span(
            name, within, _KINDS[kind], links=links, record_exception=False, set_status_on_exception=False
        ) as span:
            otlp_span = OtlpSpan(span)
            try:
                yield otlp_span
            except BaseException as error:
                otlp_span.mark_failed(type(error).__name__)
                raise

    def get_current(self) -> str | None:
        found = trace.get_current_span().get_span_context()
        if not found.is_valid:
            return None
        return str(TraceContext(f"{found.trace_id:032x}", f"{found.span_id:016x}", found.trace_flags.sampled))

    def close(self) -> None:
        """Send the waiting spans within MAX_CLOSE_SECONDS, and stop. This method blocks, so call it in a thread."""
        closing = threading.Thread(
            target=self._provider.shutdown, name="last spans", daemon=True
        )  # the library would wait for half a minute
        closing.start()
        closing.join(MAX_CLOSE_SECONDS)
