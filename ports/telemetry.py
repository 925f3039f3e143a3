"""Export of a process's spans and metrics to a collector, in background threads."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

Collect = Callable[[], Iterable[Any]]
"""Function that returns the current values of the metrics (`prometheus_client.Metric`)."""


class MetricsExport(Protocol):
    """Periodic export of metrics in a background thread."""

    def start(self) -> None:
        """Start the thread."""
        ...

    def close(self) -> None:
        """Export once more and stop; blocks for a bounded time."""
        ...


class WorkMetrics(Protocol):
    """Metrics of background work, one object per process; methods never block or raise. Without an export it is None."""

    def job_ended(self, kind: str, outcome: str, seconds: float) -> None:
        """Record the end of a job's attempt: `done`, `failed` (will be retried), `lost` (to another worker) or `stopped`."""
        ...

    def run_ended(self, stream: str, status: str, seconds: float) -> None:
        """Record the end of a run and its duration."""
        ...

    def delivery_attempted(self, outcome: str, seconds: float) -> None:
        """Record a webhook request: `succeeded` or the reason of its failure."""
        ...


Note = str | int | float | bool


class SpanKind(Enum):
    """Kind of a span: inbound request, queued work or outbound request."""

    SERVER = "server"
    CONSUMER = "consumer"
    CLIENT = "client"


class Span(Protocol):
    """Operation in progress."""

    def note(self, **notes: Note | None) -> None:
        """Add attributes, except those that are None; `__` in a name stands for a dot. Secrets and query values are forbidden."""
        ...

    def failed(self, why: str) -> None:
        """Mark the span as failed; `why` is a fixed term such as a status or an exception's class."""
        ...


class Tracing(Protocol):
    """Tracer, one per process; methods never block or raise. Contexts are values of the W3C `traceparent` header."""

    def span(
        self, name: str, kind: SpanKind, *, parent: str | None = None, link: str | None = None
    ) -> AbstractContextManager[Span]:
        """Open a span, as a child of `parent` or the root of a new trace; `link` is another context that caused it.

        Invalid contexts are ignored. An exception marks the span as failed and propagates.
        """
        ...

    def current(self) -> str | None:
        """Return the context of this task's innermost span, or None."""
        ...


class Telemetry(Protocol):
    """Export to a collector, one object per process."""

    @property
    def tracing(self) -> Tracing:
        """Tracer that exports spans."""
        ...

    def export(self, collect: Collect) -> MetricsExport:
        """Return an export of the metrics, not yet started."""
        ...

    async def close(self) -> None:
        """Export what is pending, within a bounded time."""
        ...
