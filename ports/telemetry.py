"""The way to a collector: spans and figures of one process, told by threads of their own."""

from typing import Protocol

from ports.metrics import Collect, MetricsExport
from ports.tracing import Tracing


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
