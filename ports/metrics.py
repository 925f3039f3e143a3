"""What workers count about their work, for graphs and alerts: totals by words of ours, never by tenant."""

from collections.abc import Callable, Iterable
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
