"""Where the collector is, and what every export says of the process that it comes from."""

import logging
from dataclasses import dataclass
from time import monotonic

from opentelemetry.sdk.resources import Resource

TIMEOUT = 5.0
"""Seconds that one export may take, further tries included."""
CLOSING = 2.0
"""Seconds that a process which stops waits for its last spans and figures to be taken."""
_QUIET = 60.0


@dataclass(frozen=True, slots=True)
class Collector:
    """OTLP over HTTP at `url`, such as `http://localhost:4318`; `process` is what exports (`joinery-api`)."""

    url: str
    process: str
    version: str
    instance: str

    @property
    def resource(self) -> Resource:
        """Who exports; OTEL_RESOURCE_ATTRIBUTES may say more."""
        named = {"service.name": self.process, "service.version": self.version, "service.instance.id": self.instance}
        return Resource.create({**named, "service.namespace": "joinery"})


class _NowAndThen(logging.Filter):
    """Of each module at most one line a minute: while the collector is away, every export says so."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is time to say something again. Without tracebacks: they would be of the exporter's own insides."""
        now, last = monotonic(), self._last.get(record.name)
        if last is not None and now - last < _QUIET:
            return False
        self._last[record.name] = now
        record.exc_info = record.exc_text = None
        return True


def quiet() -> None:
    """Have the exporters' troubles told now and then."""
    for name in (
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry.exporter.otlp.proto.http.metric_exporter",
        "opentelemetry.sdk._shared_internal",
    ):
        logger = logging.getLogger(name)
        if not any(isinstance(one, _NowAndThen) for one in logger.filters):
            logger.addFilter(_NowAndThen())
