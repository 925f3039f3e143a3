"""Address of the OTLP collector, and the resource attributes of the exporting process."""

import logging
from dataclasses import dataclass
from time import monotonic

from opentelemetry.sdk.resources import Resource

TIMEOUT_SECONDS = 5.0
"""Maximum seconds of one export, including retries."""
MAX_CLOSE_SECONDS = 2.0
"""Maximum seconds that a process waits at its end for the last export."""
_MIN_INTERVAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class OtlpCollector:
    """OTLP collector, and the process that exports to it.

    Attributes:
        url: The URL of the collector, such as `http://localhost:4318`.
        process_name: The name of the exporting process, such as `joinery-api`.
        version: The release.
        process_id: The random ID of the exporting process.
    """

    url: str
    process_name: str
    version: str
    process_id: str

    @property
    def resource(self) -> Resource:
        """Resource attributes of the exporting process, with those in OTEL_RESOURCE_ATTRIBUTES."""
        named = {
            "service.name": self.process_name,
            "service.version": self.version,
            "service.instance.id": self.process_id,
        }
        return Resource.create({**named, "service.namespace": "joinery"})


class _RateLimitFilter(logging.Filter):
    """Filter that passes at most one record a minute of each logger."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record passes, and remove its traceback."""
        now, last = monotonic(), self._last.get(record.name)
        if last is not None and now - last < _MIN_INTERVAL_SECONDS:
            return False
        self._last[record.name] = now
        record.exc_info = record.exc_text = None
        return True


def limit_exporter_logging() -> None:
    """Limit the log records of each exporter to one a minute, because every export fails while the collector is unavailable."""
    for name in (
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry.exporter.otlp.proto.http.metric_exporter",
        "opentelemetry.sdk._shared_internal",
    ):
        logger = logging.getLogger(name)
        if not any(isinstance(log_filter, _RateLimitFilter) for log_filter in logger.filters):
            logger.addFilter(_RateLimitFilter())
