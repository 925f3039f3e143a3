"""Export of spans to a collector, from a bounded queue, in batches and in a separate thread."""

import contextlib
import threading
from collections.abc import Iterator

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from adapters.otlp.collector import CLOSING, TIMEOUT, Collector, quiet
from domain.kernel.trace_context import TraceContext, context_of
from ports.telemetry import Note, SpanKind

QUEUE = 8_192
"""Spans that wait to be sent; surplus ones are dropped."""
BATCH = 512
EVERY = 1_000
"""Milliseconds between batches."""
LONGEST = 500
"""Characters of a note."""
_KINDS = {
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
}
_NOWHERE = Context()


def _span_context(context: TraceContext) -> trace.SpanContext:
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if context.sampled else trace.TraceFlags.DEFAULT)
    return trace.SpanContext(int(context.trace, 16), int(context.span, 16), is_remote=True, trace_flags=flags)


class OtlpSpan:
    """ports.tracing.Span."""

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def note(self, **notes: Note | None) -> None:
        for name, value in notes.items():
            if value is not None:
                self._span.set_attribute(name.replace("__", "."), value)

    def failed(self, why: str) -> None:
        self._span.set_attribute("error.type", why)
        self._span.set_status(trace.StatusCode.ERROR)


class OtlpTracing:
    """Tracing. OTEL_TRACES_SAMPLER sets the share of recorded traces; the default is all."""

    def __init__(self, collector: Collector) -> None:
        quiet()
        exporter = OTLPSpanExporter(f"{collector.url}/v1/traces", timeout=TIMEOUT, compression=Compression.Gzip)
        self._sending = BatchSpanProcessor(exporter, QUEUE, EVERY, BATCH, TIMEOUT * 1000)
        self._provider = TracerProvider(
            resource=collector.resource,
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attribute_length=LONGEST),
        )
        self._provider.add_span_processor(self._sending)
        self._tracer = self._provider.get_tracer("joinery", collector.version)

    @contextlib.contextmanager
    def span(
        self, name: str, kind: SpanKind, *, parent: str | None = None, link: str | None = None
    ) -> Iterator[OtlpSpan]:
        parent_context, link_context = context_of(parent), context_of(link)
        within = (
            trace.set_span_in_context(trace.NonRecordingSpan(_span_context(parent_context)))
            if parent_context
            else _NOWHERE
        )
        links = [trace.Link(_span_context(link_context))] if link_context else None
        with self._tracer.start_as_current_span(
            name, within, _KINDS[kind], links=links, record_exception=False, set_status_on_exception=False
        ) as span:
            otlp_span = OtlpSpan(span)
            try:
                yield otlp_span
            except BaseException as error:
                otlp_span.failed(type(error).__name__)
                raise

    def current(self) -> str | None:
        found = trace.get_current_span().get_span_context()
        if not found.is_valid:
            return None
        return str(TraceContext(f"{found.trace_id:032x}", f"{found.span_id:016x}", found.trace_flags.sampled))

    def close(self) -> None:
        """Send the waiting spans within CLOSING seconds, so that a hanging collector cannot block shutdown. Blocks."""
        closing = threading.Thread(
            target=self._provider.shutdown, name="last spans", daemon=True
        )  # it waits for half a minute
        closing.start()
        closing.join(CLOSING)
