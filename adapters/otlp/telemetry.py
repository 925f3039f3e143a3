"""Spans and metrics of one process for one collector."""

import asyncio
from secrets import token_hex

from adapters.otlp.collector import Collector
from adapters.otlp.metrics import OtlpMetrics
from adapters.otlp.tracing import OtlpTracing
from ports.telemetry import Collect


class OtlpTelemetry:
    """ports.telemetry.Telemetry: OTLP over HTTP, as protobuf in gzip."""

    def __init__(self, url: str, process: str, version: str) -> None:
        self._collector = Collector(url, process, version, token_hex(8))
        self.tracing = OtlpTracing(self._collector)

    def export(self, collect: Collect) -> OtlpMetrics:
        return OtlpMetrics(self._collector, collect)

    async def close(self) -> None:
        await asyncio.to_thread(self.tracing.close)
