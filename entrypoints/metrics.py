"""Prometheus metrics of one process, exposed at /metrics and by OTLP."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.kernel.clock import CLOCK
from domain.platform.ports import SchemaCheck
from entrypoints.dependencies import Dependencies, WaitingRequestCounter
from entrypoints.settings import Settings, get_release_version
from ports.telemetry import Telemetry

BUCKET_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bucket bounds of short durations, in seconds."""
LONG_BUCKET_BOUNDS = (0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
"""Bucket bounds of long durations, in seconds."""
LOG = logging.getLogger("joinery.metrics")

ReadGauge = Callable[[], float]
"""Function that returns the current value of a gauge."""
ReadLabelledGauges = Callable[[], Mapping[Sequence[str], float]]
"""Function that returns the current values of gauges by their label values."""


class CounterMetric:
    """Prometheus counter with one total for each combination of label values. The possible label values are fixed."""

    def __init__(self, name: str, description: str, labels: Sequence[str]) -> None:
        self.name, self.description, self.labels = name, description, labels
        self._totals: dict[tuple[str, ...], int] = {}

    def increment(self, *label_values: str) -> None:
        """Add one to the total of these label values."""
        self._totals[label_values] = self._totals.get(label_values, 0) + 1

    def sum_by_label(self, label: str) -> Counter[str]:
        """Return the totals by the values of one label, summed over the other labels."""
        index, totals_by_value = self.labels.index(label), Counter[str]()
        for values, total in list(self._totals.items()):
            totals_by_value[values[index]] += total
        return totals_by_value

    def build_family(self) -> Metric:
        """Build the Prometheus metric family with the current totals."""
        family = CounterMetricFamily(self.name, self.description, labels=self.labels)
        for values, total in list(self._totals.items()):
            family.add_metric(values, total)
        return family


class _DurationSeries:
    """Durations with the same label values: the number in each bucket, and the sum in seconds."""

    __slots__ = ("buckets", "total")

    def __init__(self, bucket_count: int) -> None:
        self.buckets = [0] * bucket_count
        self.total = 0.0


class HistogramMetric:
    """Prometheus histogram of durations in seconds, for each combination of label values."""

    def __init__(
        self, name: str, description: str, labels: Sequence[str], bounds: Sequence[float] = BUCKET_BOUNDS
    ) -> None:
        self.name, self.description, self.labels, self._bounds = name, description, labels, bounds
        self._series: dict[tuple[str, ...], _DurationSeries] = {}

    def observe(self, seconds: float, *label_values: str) -> None:
        """Add a duration to the histogram with these label values."""
        series = self._series.get(label_values)
        if series is None:
            series = self._series[label_values] = _DurationSeries(len(self._bounds) + 1)
        series.buckets[bisect_left(self._bounds, seconds)] += 1
        series.total += seconds

    def build_family(self) -> Metric:
        """Build the Prometheus metric family with the current histograms."""
        family = HistogramMetricFamily(self.name, self.description, labels=self.labels)
        for values, series in list(self._series.items()):
            family.add_metric(values, self._accumulate(series.buckets), series.total)
        return family

    def _accumulate(self, buckets: Sequence[int]) -> list[tuple[str, float]]:
        """Return each bucket's upper bound with the number of durations up to that bound."""
        names = [*(str(bound) for bound in self._bounds), "+Inf"]
        running, pairs = 0, []
        for name, count in zip(names, buckets, strict=True):
            running += count
            pairs.append((name, float(running)))
        return pairs


class Metrics(Collector):
    """Metrics of a process: counters, histograms, gauges that are read at each export, and CPU, memory and open files."""

    def __init__(self, *counted: CounterMetric | HistogramMetric) -> None:
        self._counted = counted
        self._gauges: dict[str, tuple[str, Sequence[str], ReadLabelledGauges]] = {}
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def add_gauge(self, name: str, description: str, read_value: ReadGauge) -> None:
        """Add a gauge whose value `read_value` returns at each export."""
        self.add_gauges(name, description, (), lambda: {(): read_value()})

    def add_gauges(self, name: str, description: str, labels: Sequence[str], read_values: ReadLabelledGauges) -> None:
        """Add a gauge with labels, whose values by label values `read_values` returns at each export."""
        self._gauges[name] = (description, labels, read_values)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics as Prometheus metric families."""
        for counted in self._counted:
            yield counted.build_family()
        for name, (description, labels, read) in self._gauges.items():
            family = GaugeMetricFamily(name, description, labels=labels)
            for values, value in read().items():
                family.add_metric(values, value)
            yield family

    def render_text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


def add_process_metrics(metrics: Metrics, dependencies: Dependencies) -> None:
    """Add the metrics that every kind of process has: release, schema, database connections, clock, and disks."""
    settings, schema = dependencies[Settings], dependencies[SchemaCheck]
    build = "joinery_build_info"
    metrics.add_gauges(
        build, "Always 1, labelled with the release.", ("version",), lambda: {(get_release_version(),): 1.0}
    )
    mismatch = "joinery_schema_mismatch"
    metrics.add_gauge(
        mismatch, "1 when this release is incompatible with the database's schema, else 0.",
        lambda: float(schema is not None and schema.incompatibility is not None),
    )  # fmt: skip
    metrics.add_gauge("joinery_pool_size", "Maximum database connections to each node.", lambda: settings.pool_size)
    metrics.add_gauge(
        "joinery_pool_waiting", "Requests waiting for a database connection.", dependencies[WaitingRequestCounter]
    )
    metrics.add_gauge(
        "joinery_clock_offset_seconds",
        "Seconds by which the machine's clock is ahead of the database's.",
        CLOCK.compute_offset,
    )
    folder_by_place = _find_measured_folders(settings)
    free, size = "joinery_disk_free_bytes", "joinery_disk_size_bytes"
    metrics.add_gauges(
        free,
        "Free bytes on the disks with temporary files (`work`) and with stored objects (`objects`).",
        ("place",),
        lambda: _read_disk_usage(folder_by_place, "free"),
    )
    metrics.add_gauges(
        size,
        "Size in bytes of the disks with temporary files (`work`) and with stored objects (`objects`).",
        ("place",),
        lambda: _read_disk_usage(folder_by_place, "total"),
    )


def _find_measured_folders(settings: Settings) -> Mapping[str, Path]:
    """Return the folders whose disks are measured, by place (a label of the metrics).

    `work` is the folder of temporary files. `objects` is the folder of the object store, which is missing if objects are in S3.
    """
    folder_by_place = {"work": settings.work_dir or Path(tempfile.gettempdir())}
    if settings.objects_url.startswith("file://"):
        folder_by_place["objects"] = Path(unquote(urlsplit(settings.objects_url).path))
    return folder_by_place


def _read_disk_usage(folder_by_place: Mapping[str, Path], attribute: str) -> Mapping[Sequence[str], float]:
    """Return an attribute of shutil.disk_usage, such as `free`, of the disk of each existing folder, by place."""
    bytes_by_place: dict[Sequence[str], float] = {}
    for place, path in folder_by_place.items():
        with contextlib.suppress(OSError):
            bytes_by_place[(place,)] = float(getattr(shutil.disk_usage(path), attribute))
    return bytes_by_place


@contextlib.asynccontextmanager
async def expose_metrics(metrics: Metrics, dependencies: Dependencies, port: int) -> AsyncIterator[None]:
    """Serve the metrics at /metrics on a port during the context, and export them to the OTLP collector if one is configured.

    Port 0 disables /metrics. If the port is in use, an error is logged, and the context is entered without /metrics.
    """
    server = _start_server(metrics, dependencies[Settings].monitoring.host, port) if port else None
    telemetry = dependencies.find_optional(Telemetry)
    export = telemetry.create_export(metrics.registry.collect) if telemetry is not None else None
    if export is not None:
        export.start()
    try:
        yield
    finally:
        if export is not None:
            await asyncio.to_thread(export.close)
        if server is not None:
            server[0].shutdown()
            await asyncio.to_thread(server[1].join)
            server[0].server_close()


def _start_server(metrics: Metrics, host: str, port: int) -> Any:
    """Start the server of /metrics; log an error and return None if the port is not usable."""
    try:
        return start_http_server(port, host, metrics.registry)
    except OSError as error:
        LOG.error("/metrics not served on %s port %d: %s", host, port, error)  # noqa: TRY400  a traceback would not help
        return None
