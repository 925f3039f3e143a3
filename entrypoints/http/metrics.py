"""Counters and durations of requests, cheap to keep and exposed to Prometheus."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the duration buckets in seconds."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"})
Gauge = Callable[[], float]


class _Series:
    """One route's durations: a count per bucket, and their sum."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.total = 0.0


class Metrics(Collector):
    """`seen` is called once per request; `gauges` are read when somebody asks."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._durations: dict[str, _Series] = {}
        self._gauges: dict[str, tuple[str, Gauge]] = {}
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def seen(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request; `route` is a path template, never a path, so that the number of series is bounded."""
        key = (method if method in METHODS else "other", route, status)
        self._counts[key] = self._counts.get(key, 0) + 1
        series = self._durations.get(route)
        if series is None:
            series = self._durations[route] = _Series()
        series.buckets[bisect_left(BOUNDS, seconds)] += 1
        series.total += seconds

    def gauge(self, name: str, description: str, read: Gauge) -> None:
        """Expose a value that is read when asked for."""
        self._gauges[name] = (description, read)

    def collect(self) -> Iterator[Metric]:
        """Everything kept, in Prometheus' own terms."""
        requests = CounterMetricFamily(
            "joinery_http_requests", "Requests answered.", labels=["method", "route", "status"]
        )
        for (method, route, status), count in list(self._counts.items()):
            requests.add_metric([method, route, str(status)], count)
        yield requests
        durations = HistogramMetricFamily("joinery_http_request_seconds", "Time to answer.", labels=["route"])
        for route, series in list(self._durations.items()):
            durations.add_metric([route], _cumulative(series.buckets), series.total)
        yield durations
        for name, (description, read) in self._gauges.items():
            yield GaugeMetricFamily(name, description, value=read())

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    names = [*(str(bound) for bound in BOUNDS), "+Inf"]
    running, pairs = 0, []
    for name, count in zip(names, buckets, strict=True):
        running += count
        pairs.append((name, float(running)))
    return pairs
