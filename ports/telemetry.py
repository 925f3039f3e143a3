"""The way to a collector: spans and figures of one process, told by threads of their own."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

Collect = Callable[[], Iterable[Any]]
"""A process's figures as they stand, in Prometheus' terms (`prometheus_client.Metric`)."""


class MetricsExport(Protocol):
    """Tells a collector the figures now and then, from a thread of its own."""

    def start(self) -> None:
        """Begin."""
        ...

    def close(self) -> None:
        """Tell them once more and end; takes a moment at most, and blocks."""
        ...


class WorkMetrics(Protocol):
    """One a process. Nothing it does waits for anybody or raises; where nobody looks there is none at all (None)."""

    def job_ended(self, kind: str, outcome: str, seconds: float) -> None:
        """An attempt at a job is over: `done`, `failed` (it is tried again), `lost` (to another worker) or `stopped`."""
        ...

    def run_ended(self, stream: str, status: str, seconds: float) -> None:
        """A run is over, after so many seconds from its start."""
        ...

    def delivery_attempted(self, outcome: str, seconds: float) -> None:
        """A POST to a receiver is over: `succeeded`, or why it failed."""
        ...


Note = str | int | float | bool


class SpanKind(Enum):
    """What a span is about: a request that came in, work out of the queue, or a request that goes out."""

    SERVER = "server"
    CONSUMER = "consumer"
    CLIENT = "client"


class Span(Protocol):
    """Something that is being done."""

    def note(self, **notes: Note | None) -> None:
        """Say more about it, by names with `__` for a dot; what is None is left out. Never a secret or a query's value."""
        ...

    def failed(self, why: str) -> None:
        """It ends badly; `why` is a word of ours, such as a status or an exception's class."""
        ...


class Tracing(Protocol):
    """One a process. Nothing it does waits for anybody or raises; contexts are texts as W3C's `traceparent` has them."""

    def span(
        self, name: str, kind: SpanKind, *, parent: str | None = None, link: str | None = None
    ) -> AbstractContextManager[Span]:
        """Around what is done: a part of `parent`, or a trace of its own; `link` is what else it follows from.

        Contexts that are none are passed over. An exception that leaves it makes it failed, and goes on to the caller.
        """
        ...

    def current(self) -> str | None:
        """The context of the innermost span that this task is in; None outside of any."""
        ...


class Telemetry(Protocol):
    """One a process, where a collector is named."""

    @property
    def tracing(self) -> Tracing:
        """What tells spans."""
        ...

    def export(self, collect: Collect) -> MetricsExport:
        """What tells these figures, once it is started."""
        ...

    async def close(self) -> None:
        """Tell what waits to be told; takes a moment at most."""
        ...
