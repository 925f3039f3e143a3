"""Address of the collector, and the resource attributes of the exporting process."""

import logging
from dataclasses import dataclass
from time import monotonic

from opentelemetry.sdk.resources import Resource

TIMEOUT = 5.0
"""Seconds that one export may take, including retries."""
CLOSING = 2.0
"""Seconds that a stopping process waits for its last export."""
_QUIET = 60.0


@dataclass(frozen=True, slots=True)
class Collector:
    """OTLP over HTTP at `url`, such as `http://localhost:4318`; `process` is the exporter (`joinery-api`)."""

    url: str
    process: str
    version: str
    instance: str

    @property
    def resource(self) -> Resource:
        """Resource attributes of the exporter, extended by OTEL_RESOURCE_ATTRIBUTES."""
        named = {"service.name": self.process, "service.version": self.version, "service.instance.id": self.instance}
        return Resource.create({**named, "service.namespace": "joinery"})


class _RateLimitFilter(logging.Filter):
    """Filter that passes at most one record a minute of each logger, as every export fails while the collector is down."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is due; its traceback is removed, as it shows only the exporter's internals."""
        now, last = monotonic(), self._last.get(record.name)
        if last is not None and now - last < _QUIET:
            return False
        self._last[record.name] = now
        record.exc_info = record.exc_text = None
        return True


def quiet() -> None:
    """Limit the rate of the exporters' log records."""
    for name in (
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry.exporter.otlp.proto.http.metric_exporter",
        "opentelemetry.sdk._shared_internal",
    ):
        logger = logging.getLogger(name)
        if not any(isinstance(log_filter, _RateLimitFilter) for log_filter in logger.filters):
            logger.addFilter(_RateLimitFilter())
