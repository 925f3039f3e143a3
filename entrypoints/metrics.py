"""Figures of one process, in Prometheus' terms: counted cheaply, read when somebody asks, told at /metrics and by OTLP."""

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
"""Upper bounds of the buckets of what should take a moment, in seconds."""
LONG_BOUNDS = (0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
"""Of what may take long."""
LOG = logging.getLogger("joinery.metrics")

Gauge = Callable[[], float]
Gauges = Callable[[], Mapping[Sequence[str], float]]
"""Values by those of the labels."""


class Counts:
    """Totals by the values of `labels`, all of them words of ours."""

    def __init__(self, name: str, description: str, labels: Sequence[str]) -> None:
        self.name, self.description, self.labels = name, description, labels
        self._totals: dict[tuple[str, ...], int] = {}

    def add(self, *values: str) -> None:
        """One more."""
        self._totals[values] = self._totals.get(values, 0) + 1

    def totals(self, label: str) -> Counter[str]:
        """Return the totals by one of the labels."""
        place, found = self.labels.index(label), Counter[str]()
        for values, total in list(self._totals.items()):
            found[values[place]] += total
        return found

    def family(self) -> Metric:
        """As it stands."""
        family = CounterMetricFamily(self.name, self.description, labels=self.labels)
        for values, total in list(self._totals.items()):
            family.add_metric(values, total)
        return family


class _Series:
    """The durations of one set of labels: a count a bucket, and their sum."""

    __slots__ = ("buckets", "total")

    def __init__(self, buckets: int) -> None:
        self.buckets = [0] * buckets
        self.total = 0.0


class Durations:
    """Seconds by the values of `labels`, in buckets."""

    def __init__(self, name: str, description: str, labels: Sequence[str], bounds: Sequence[float] = BOUNDS) -> None:
        self.name, self.description, self.labels, self._bounds = name, description, labels, bounds
        self._series: dict[tuple[str, ...], _Series] = {}

    def add(self, seconds: float, *values: str) -> None:
        """One took so long."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = _Series(len(self._bounds) + 1)
        series.buckets[bisect_left(self._bounds, seconds)] += 1
        series.total += seconds

    def family(self) -> Metric:
        """As it stands."""
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
    """A process's figures: those that it counts, gauges that are read when somebody asks, and its CPU, memory and files."""

    def __init__(self, *counted: Counts | Durations) -> None:
        self._counted = counted
        self._gauges: dict[str, tuple[str, Sequence[str], Gauges]] = {}
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def gauge(self, name: str, description: str, read: Gauge) -> None:
        """Expose a value that is read when asked for."""
        self.gauges(name, description, (), lambda: {(): read()})

    def gauges(self, name: str, description: str, labels: Sequence[str], read: Gauges) -> None:
        """Expose values by labels; those that are not answered are not shown."""
        self._gauges[name] = (description, labels, read)

    def collect(self) -> Iterator[Metric]:
        """Everything kept, in Prometheus' own terms."""
        for counted in self._counted:
            yield counted.family()
        for name, (description, labels, read) in self._gauges.items():
            family = GaugeMetricFamily(name, description, labels=labels)
            for values, value in read().items():
                family.add_metric(values, value)
            yield family

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)


def with_surroundings(metrics: Metrics, dependencies: Dependencies) -> None:
    """What every process works in: connections to the database, and disks."""
    settings, schema = dependencies[Settings], dependencies[SchemaCheck]
    build = "joinery_build_info"
    metrics.gauges(build, "Always 1, labelled with the release.", ("version",), lambda: {(product_version(),): 1.0})
    mismatch = "joinery_schema_mismatch"
    metrics.gauge(
        mismatch, "1 when this release is incompatible with the database's schema, else 0.",
        lambda: float(schema is not None and schema.fault is not None),
    )  # fmt: skip
    metrics.gauge(
        "joinery_pool_size", "Database connections that it may have to each node.", lambda: settings.pool_size
    )
    metrics.gauge("joinery_pool_waiting", "What waits for a database connection.", dependencies[Waiting])
    metrics.gauge(
        "joinery_clock_offset_seconds", "Seconds by which the machine's clock is ahead of the database's.", CLOCK.offset
    )
    disks = _disks(settings)
    free, size = "joinery_disk_free_bytes", "joinery_disk_size_bytes"
    metrics.gauges(free, "Bytes left where snapshots and objects lie.", ("place",), lambda: _measured(disks, "free"))
    metrics.gauges(size, "Bytes of those disks.", ("place",), lambda: _measured(disks, "total"))


def _disks(settings: Settings) -> Mapping[str, Path]:
    disks = {"work": settings.work_dir or Path(tempfile.gettempdir())}
    if settings.objects_url.startswith("file://"):
        disks["objects"] = Path(unquote(urlsplit(settings.objects_url).path))
    return disks


def _measured(disks: Mapping[str, Path], what: str) -> Mapping[Sequence[str], float]:
    """Of those that are there."""
    found: dict[Sequence[str], float] = {}
    for place, path in disks.items():
        with contextlib.suppress(OSError):
            found[(place,)] = float(getattr(shutil.disk_usage(path), what))
    return found


@contextlib.asynccontextmanager
async def exposed(metrics: Metrics, dependencies: Dependencies, port: int) -> AsyncIterator[None]:
    """Show them on a port (none for 0) and to the collector, if there is one, for as long as the context lasts.

    A port that is taken is told and passed over: no process ends because nobody can watch it.
    """
    server = _serving(metrics, dependencies[Settings].watching.host, port) if port else None
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


def _serving(metrics: Metrics, host: str, port: int) -> Any:
    try:
        return start_http_server(port, host, metrics.registry)
    except OSError as error:
        LOG.error("no /metrics on %s port %d: %s", host, port, error)  # noqa: TRY400  where it stands says nothing
        return None
