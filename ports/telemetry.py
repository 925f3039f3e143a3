"""Export of a process's spans and metrics to a collector, in background threads."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

MetricsCollector = Callable[[], Iterable[Any]]
"""Function that returns the current values of the metrics (`prometheus_client.Metric`)."""


class MetricsExport(Protocol):
    """Periodic export of metrics in a background thread."""

    def start(self) -> None:
        """Start the thread."""
        ...

    def close(self) -> None:
        """Export once more and stop; this blocks for a limited time."""
        ...


class WorkMetrics(Protocol):
    """Recorder of metrics of background work, one object per process. Methods never block or raise."""

    def record_job(self, kind: str, outcome: str, seconds: float) -> None:
        """Record the end of an attempt at a job, and the attempt's duration in seconds.

        `outcome` is `done`, `failed` (the job will be retried), `lost` (to another worker) or `stopped`.
        """
        ...

    def record_run(self, stream: str, status: str, seconds: float) -> None:
        """Record the end of a run, and the run's duration in seconds."""
        ...

    def record_delivery_attempt(self, outcome: str, seconds: float) -> None:
        """Record a webhook request and its duration in seconds; `outcome` is `succeeded` or the reason for the failure."""
        ...


AttributeValue = str | int | float | bool


class SpanKind(Enum):
    """Kinds of spans: inbound request, queued work, outbound request."""

    SERVER = "server"
    CONSUMER = "consumer"
    CLIENT = "client"


class Span(Protocol):
    """Operation in progress, for a trace."""

    def set_attributes(self, **attributes: AttributeValue | None) -> None:
        """Set attributes of the span. Do not pass secrets or query values.

        Args:
            attributes: Attributes by name, in which `__` stands for a dot. Attributes that are None are not set.
        """
        ...

    def mark_failed(self, reason: str) -> None:
        """Mark the span as failed; `reason` is a constant term, such as a status or the name of an exception class."""
        ...


class Tracing(Protocol):
    """Creation of spans, one object per process.

    Trace contexts are values of the header `traceparent` (W3C). Methods never block or raise.
    """

    def open_span(
        self, name: str, kind: SpanKind, *, parent_context: str | None = None, linked_context: str | None = None
    ) -> AbstractContextManager[Span]:
        """Open a span as a child of the trace context `parent_context`, or as the root of a new trace.

        `linked_context` is the trace context of another operation that caused this one. Invalid contexts are ignored. An exception
        marks the span as failed, and is raised again.
        """
        ...

    def get_current(self) -> str | None:
        """Return the trace context of the innermost open span of this task, or None."""
        ...


class Telemetry(Protocol):
    """Export of spans and metrics to a collector, one object per process."""

    @property
    def tracing(self) -> Tracing:
        """The tracer, whose spans are exported."""
        ...

    def create_export(self, collect: MetricsCollector) -> MetricsExport:
        """Create an export of the metrics that `collect` returns; the caller must start the export."""
        ...

    async def close(self) -> None:
        """Export the pending spans, within a limited time."""
        ...
