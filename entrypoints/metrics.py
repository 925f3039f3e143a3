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
from entrypoints.dependencies import Dependencies, Waiting
from entrypoints.factories import product_version
from entrypoints.settings import Settings
from ports.telemetry import Telemetry

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bucket bounds of short durations, in seconds."""
LONG_BOUNDS = (0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
"""Bucket bounds of long durations, in seconds."""
LOG = logging.getLogger("joinery.metrics")

Gauge = Callable[[], float]
Gauges = Callable[[], Mapping[Sequence[str], float]]
"""Values by label values."""


class Counts:
    """Counter by the values of `labels`, which are fixed words."""

    def __init__(self, name: str, description: str, labels: Sequence[str]) -> None:
        self.name, self.description, self.labels = name, description, labels
        self._totals: dict[tuple[str, ...], int] = {}

    def add(self, *values: str) -> None:
        """Add one."""
        self._totals[values] = self._totals.get(values, 0) + 1

    def totals(self, label: str) -> Counter[str]:
        """Return the totals by one of the labels."""
        place, totals_by_value = self.labels.index(label), Counter[str]()
        for values, total in list(self._totals.items()):
            totals_by_value[values[place]] += total
        return totals_by_value

    def family(self) -> Metric:
        """Return the current values."""
        family = CounterMetricFamily(self.name, self.description, labels=self.labels)
        for values, total in list(self._totals.items()):
            family.add_metric(values, total)
        return family


class _Series:
    """Durations of one set of label values: bucket counts and sum."""

    __slots__ = ("buckets", "total")

    def __init__(self, buckets: int) -> None:
        self.buckets = [0] * buckets
        self.total = 0.0


class Durations:
    """Histogram of seconds by the values of `labels`."""

    def __init__(self, name: str, description: str, labels: Sequence[str], bounds: Sequence[float] = BOUNDS) -> None:
        self.name, self.description, self.labels, self._bounds = name, description, labels, bounds
        self._series: dict[tuple[str, ...], _Series] = {}

    def add(self, seconds: float, *values: str) -> None:
        """Add a duration."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = _Series(len(self._bounds) + 1)
        series.buckets[bisect_left(self._bounds, seconds)] += 1
        series.total += seconds

    def family(self) -> Metric:
        """Return the current values."""
        family = HistogramMetricFamily(self.name, self.description, labels=self.labels)
        for values, series in list(self._series.items()):
            family.add_metric(values, self._cumulative(series.buckets), series.total)
        return family

    def _cumulative(self, buckets: Sequence[int]) -> list[tuple[str, float]]:
        names = [*(str(bound) for bound in self._bounds), "+Inf"]
        running, pairs = 0, []
        for name, count in zip(names, buckets, strict=True):
            running += count
            pairs.append((name, float(running)))
        return pairs


class Metrics(Collector):
    """Metrics of a process: counters, gauges that are read on export, and its CPU, memory and files."""

    def __init__(self, *counted: Counts | Durations) -> None:
        self._counted = counted
        self._gauges: dict[str, tuple[str, Sequence[str], Gauges]] = {}
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def gauge(self, name: str, description: str, read: Gauge) -> None:
        """Expose a value that is read on export."""
        self.gauges(name, description, (), lambda: {(): read()})

    def gauges(self, name: str, description: str, labels: Sequence[str], read: Gauges) -> None:
        """Expose values by labels; missing ones are omitted."""
        self._gauges[name] = (description, labels, read)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics in Prometheus' types."""
        for counted in self._counted:
            yield counted.family()
        for name, (description, labels, read) in self._gauges.items():
            family = GaugeMetricFamily(name, description, labels=labels)
            for values, value in read().items():
                family.add_metric(values, value)
            yield family

    def text(self) -> bytes:
        """Return the exposition format."""
        return generate_latest(self.registry)


def with_surroundings(metrics: Metrics, dependencies: Dependencies) -> None:
    """Add metrics of the environment of every process: database connections, clock, schema, and disks."""
    settings, schema = dependencies[Settings], dependencies[SchemaCheck]
    build = "joinery_build_info"
    metrics.gauges(build, "Always 1, labelled with the release.", ("version",), lambda: {(product_version(),): 1.0})
    mismatch = "joinery_schema_mismatch"
    metrics.gauge(
        mismatch, "1 when this release is incompatible with the database's schema, else 0.",
        lambda: float(schema is not None and schema.fault is not None),
    )  # fmt: skip
    metrics.gauge("joinery_pool_size", "Maximum database connections to each node.", lambda: settings.pool_size)
    metrics.gauge("joinery_pool_waiting", "Requests waiting for a database connection.", dependencies[Waiting])
    metrics.gauge(
        "joinery_clock_offset_seconds", "Seconds by which the machine's clock is ahead of the database's.", CLOCK.offset
    )
    disks = _disks(settings)
    free, size = "joinery_disk_free_bytes", "joinery_disk_size_bytes"
    metrics.gauges(
        free, "Free bytes of the disks of snapshots and objects.", ("place",), lambda: _disk_usage(disks, "free")
    )
    metrics.gauges(
        size, "Total bytes of the disks of snapshots and objects.", ("place",), lambda: _disk_usage(disks, "total")
    )


def _disks(settings: Settings) -> Mapping[str, Path]:
    disks = {"work": settings.work_dir or Path(tempfile.gettempdir())}
    if settings.objects_url.startswith("file://"):
        disks["objects"] = Path(unquote(urlsplit(settings.objects_url).path))
    return disks


def _disk_usage(disks: Mapping[str, Path], attribute: str) -> Mapping[Sequence[str], float]:
    """Return one figure of the existing disks."""
    totals_by_value: dict[Sequence[str], float] = {}
    for place, path in disks.items():
        with contextlib.suppress(OSError):
            totals_by_value[(place,)] = float(getattr(shutil.disk_usage(path), attribute))
    return totals_by_value


@contextlib.asynccontextmanager
async def exposed(metrics: Metrics, dependencies: Dependencies, port: int) -> AsyncIterator[None]:
    """Expose the metrics on a port (0 for none) and to the collector, if there is one, during the context.

    A port in use is logged and ignored, so that missing monitoring stops no process.
    """
    server = _start_server(metrics, dependencies[Settings].watching.host, port) if port else None
    telemetry = dependencies.find(Telemetry)
    export = telemetry.export(metrics.registry.collect) if telemetry is not None else None
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
    try:
        return start_http_server(port, host, metrics.registry)
    except OSError as error:
        LOG.error("no /metrics on %s port %d: %s", host, port, error)  # noqa: TRY400  a traceback would not help
        return None
