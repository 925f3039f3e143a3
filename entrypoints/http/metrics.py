"""Counters and durations of requests, cheap to keep."""

from typing import Final

from domain.platform.instances import RequestTotals
from entrypoints.metrics import Counts, Durations, Metrics

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"})


class RequestMetrics(Metrics):
    """`seen` is called once per request."""

    def __init__(self) -> None:
        self._requests = Counts("joinery_http_requests", "Requests answered.", ("method", "route", "status"))
        self._durations = Durations("joinery_http_request_seconds", "Time to answer.", ("route",))
        super().__init__(self._requests, self._durations)

    def answered(self) -> RequestTotals:
        """Return the requests that were counted."""
        by_status = self._requests.totals("status")
        failed = sum(count for status, count in by_status.items() if status >= "500")
        return RequestTotals(sum(by_status.values()) - failed, failed)

    def seen(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request; `route` is a path template, never a path, so that the number of series is bounded."""
        self._requests.add(method if method in METHODS else "other", route, str(status))
        self._durations.add(seconds, route)
