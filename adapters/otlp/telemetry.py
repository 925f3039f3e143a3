"""Export of spans and metrics of one process to one collector."""

import asyncio
from secrets import token_hex

from adapters.otlp.collector import OtlpCollector
from adapters.otlp.metrics import OtlpMetrics
from adapters.otlp.tracing import OtlpTracing
from ports.telemetry import MetricsCollector


class OtlpTelemetry:
    """Export of spans and metrics by OTLP over HTTP (port Telemetry in ports/telemetry.py).

    Args:
        url: The URL of the collector.
        process: The name of the exporting process, such as `joinery-api`.
        version: The release.
    """

    def __init__(self, url: str, process: str, version: str) -> None:
        self._collector = OtlpCollector(url, process, version, token_hex(8))
        self.tracing = OtlpTracing(self._collector)

    def create_export(self, collect: MetricsCollector) -> OtlpMetrics:
        return OtlpMetrics(self._collector, collect)

    async def close(self) -> None:
        await asyncio.to_thread(self.tracing.close)
