"""Export of a process's Prometheus metrics to an OTLP collector, regularly and in a separate thread."""

import contextlib
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import cast

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric
from prometheus_client.samples import Sample

from adapters.otlp.collector import MAX_CLOSE_SECONDS, TIMEOUT_SECONDS, OtlpCollector, limit_exporter_logging
from domain.kernel.clock import CLOCK

EXPORT_SECONDS = 15.0
"""Seconds between two exports."""
CUMULATIVE = export.AggregationTemporality.CUMULATIVE
LOG = logging.getLogger("joinery.metrics")


class OtlpMetrics:
    """Exporter of Prometheus metrics, which runs from `start` until `close`.

    Args:
        collector: The collector.
        collect_metrics: Returns the metrics.
        interval_seconds: Seconds between two exports.
    """

    def __init__(
        self,
        collector: OtlpCollector,
        collect_metrics: Callable[[], Iterable[Metric]],
        interval_seconds: float = EXPORT_SECONDS,
    ) -> None:
        limit_exporter_logging()
        self._collect, self._every = collect_metrics, interval_seconds
        self._resource, self._scope = collector.resource, InstrumentationScope("joinery", collector.version)
        self._exporter = OTLPMetricExporter(
            f"{collector.url}/v1/metrics", timeout=TIMEOUT_SECONDS, compression=Compression.Gzip
        )
        self._since = CLOCK.unix_ms() * 1_000_000
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._export_regularly, name="metrics export", daemon=True)

    def start(self) -> None:
        """Start the export thread."""
        self._thread.start()

    def close(self) -> None:
        """Export a last time, within MAX_CLOSE_SECONDS, and stop. This method blocks, so call it in a thread."""
        self._stopped.set()
        self._thread.join(MAX_CLOSE_SECONDS)
        with contextlib.suppress(Exception):
            self._exporter.shutdown()

    def _export_regularly(self) -> None:
        """Export at regular intervals until `close`, and once after it."""
        while True:
            stopped = self._stopped.wait(self._every)
            try:
                self._exporter.export(self._collect_data())
            except Exception:
                LOG.exception("metrics not exported, retrying in %.0f s", self._every)
            if stopped:
                return

    def _collect_data(self) -> export.MetricsData:
        """Return the current metrics in OpenTelemetry's types."""
        metrics = [
            made
            for family in self._collect()
            if (made := convert_metric(family, self._since, CLOCK.unix_ms() * 1_000_000)) is not None
        ]
        scoped = export.ScopeMetrics(self._scope, metrics, "")
        return export.MetricsData([export.ResourceMetrics(self._resource, [scoped], "")])


def convert_metric(family: Metric, started_at_ns: int, now_ns: int) -> export.Metric | None:
    """Convert a Prometheus metric family to an OpenTelemetry metric; return None if the family has no samples.

    Args:
        family: The metric family.
        started_at_ns: The start of the process in Unix nanoseconds.
        now_ns: The current time in Unix nanoseconds.
    """
    data: export.Sum | export.Gauge | export.Histogram
    if not family.samples:
        return None
    if family.type == "histogram":
        data = export.Histogram(_convert_histograms(family, started_at_ns, now_ns), CUMULATIVE)
    elif family.type == "counter":
        counts = [one for one in family.samples if one.name.endswith("_total")]
        data = export.Sum(_convert_numbers(counts, started_at_ns, now_ns), CUMULATIVE, is_monotonic=True)
    else:
        data = export.Gauge(_convert_numbers(family.samples, started_at_ns, now_ns))
    unit = "s" if family.name.endswith("_seconds") else "By" if family.name.endswith("_bytes") else "1"
    return export.Metric(family.name, family.documentation, unit, data)


def _convert_numbers(samples: Iterable[Sample], started_at_ns: int, now_ns: int) -> list[export.NumberDataPoint]:
    return [export.NumberDataPoint(dict(one.labels), started_at_ns, now_ns, float(one.value)) for one in samples]


def _convert_histograms(family: Metric, started_at_ns: int, now_ns: int) -> list[export.HistogramDataPoint]:
    series: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    for sample in family.samples:
        series[tuple((name, value) for name, value in sample.labels.items() if name != "le")].append(sample)
    return [_convert_histogram(dict(labels), samples, started_at_ns, now_ns) for labels, samples in series.items()]


def _convert_histogram(
    labels: Mapping[str, str], samples: list[Sample], started_at_ns: int, now_ns: int
) -> export.HistogramDataPoint:
    buckets = [one for one in samples if one.name.endswith("_bucket")]
    running = [0, *(int(one.value) for one in buckets)]
    counts = [after - before for before, after in pairwise(running)]
    total = next((one.value for one in samples if one.name.endswith("_sum")), 0.0)
    bounds = [float(one.labels["le"]) for one in buckets[:-1]]
    unknown = cast("float", None)  # not stored by Prometheus; the field is omitted
    return export.HistogramDataPoint(
        labels, started_at_ns, now_ns, sum(counts), total, counts, bounds, unknown, unknown
    )
