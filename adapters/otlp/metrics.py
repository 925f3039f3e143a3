"""Export of the metrics of /metrics to a collector, at intervals and in a separate thread."""

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

from adapters.otlp.collector import CLOSING, TIMEOUT, Collector, quiet
from domain.kernel.clock import CLOCK

EVERY = 15.0
"""Seconds between two exports, as scraping would have it."""
CUMULATIVE = export.AggregationTemporality.CUMULATIVE
LOG = logging.getLogger("joinery.metrics")


class OtlpMetrics:
    """Exporter of the metrics that `collect` returns, from `start` to `close`."""

    def __init__(self, collector: Collector, collect: Callable[[], Iterable[Metric]], every: float = EVERY) -> None:
        quiet()
        self._collect, self._every = collect, every
        self._resource, self._scope = collector.resource, InstrumentationScope("joinery", collector.version)
        self._exporter = OTLPMetricExporter(
            f"{collector.url}/v1/metrics", timeout=TIMEOUT, compression=Compression.Gzip
        )
        self._since = CLOCK.unix_ms() * 1_000_000
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="figures to the collector", daemon=True)

    def start(self) -> None:
        """Start the export thread."""
        self._thread.start()

    def close(self) -> None:
        """Export once more, within CLOSING seconds. Blocks, so it runs in a thread."""
        self._stopped.set()
        self._thread.join(CLOSING)
        with contextlib.suppress(Exception):
            self._exporter.shutdown()

    def _run(self) -> None:
        while True:
            stopped = self._stopped.wait(self._every)
            try:
                self._exporter.export(self._data())
            except Exception:
                LOG.exception("the figures could not be exported, again in %.0f s", self._every)
            if stopped:
                return

    def _data(self) -> export.MetricsData:
        metrics = [
            made
            for family in self._collect()
            if (made := told(family, self._since, CLOCK.unix_ms() * 1_000_000)) is not None
        ]
        scoped = export.ScopeMetrics(self._scope, metrics, "")
        return export.MetricsData([export.ResourceMetrics(self._resource, [scoped], "")])


def told(family: Metric, since: int, now: int) -> export.Metric | None:
    """Convert a Prometheus metric family to OpenTelemetry, or return None without samples. Times are in nanoseconds."""
    data: export.Sum | export.Gauge | export.Histogram
    if not family.samples:
        return None
    if family.type == "histogram":
        data = export.Histogram(_histograms(family, since, now), CUMULATIVE)
    elif family.type == "counter":
        counts = [one for one in family.samples if one.name.endswith("_total")]
        data = export.Sum(_numbers(counts, since, now), CUMULATIVE, is_monotonic=True)
    else:
        data = export.Gauge(_numbers(family.samples, since, now))
    unit = "s" if family.name.endswith("_seconds") else "By" if family.name.endswith("_bytes") else "1"
    return export.Metric(family.name, family.documentation, unit, data)


def _numbers(samples: Iterable[Sample], since: int, now: int) -> list[export.NumberDataPoint]:
    return [export.NumberDataPoint(dict(one.labels), since, now, float(one.value)) for one in samples]


def _histograms(family: Metric, since: int, now: int) -> list[export.HistogramDataPoint]:
    series: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    for sample in family.samples:
        series[tuple((name, value) for name, value in sample.labels.items() if name != "le")].append(sample)
    return [_histogram(dict(labels), samples, since, now) for labels, samples in series.items()]


def _histogram(labels: Mapping[str, str], samples: list[Sample], since: int, now: int) -> export.HistogramDataPoint:
    buckets = [one for one in samples if one.name.endswith("_bucket")]
    running = [0, *(int(one.value) for one in buckets)]
    counts = [after - before for before, after in pairwise(running)]
    total = next((one.value for one in samples if one.name.endswith("_sum")), 0.0)
    bounds = [float(one.labels["le"]) for one in buckets[:-1]]
    unknown = cast("float", None)  # which Prometheus does not keep; the field is left out
    return export.HistogramDataPoint(labels, since, now, sum(counts), total, counts, bounds, unknown, unknown)
