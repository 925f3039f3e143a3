"""Metrics of requests and of the match queue, and one trace span per request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import nan
from time import monotonic

from domain.matching.index import MatchingBacklog
from domain.matching.ports import MatchBacklogReader
from domain.platform.instances import RequestTotals
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import Response
from entrypoints.metrics import CounterMetric, HistogramMetric, Metrics
from ports.telemetry import Span, SpanKind, Tracing

METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"})


class RequestMetrics(Metrics):
    """Metrics of completed requests: number and duration."""

    def __init__(self) -> None:
        self._requests = CounterMetric("joinery_http_requests", "Completed requests.", ("method", "route", "status"))
        self._durations = HistogramMetric("joinery_http_request_seconds", "Duration of requests.", ("route",))
        super().__init__(self._requests, self._durations)

    def count_requests(self) -> RequestTotals:
        """Return the numbers of requests that succeeded and that failed with a server error (5xx)."""
        by_status = self._requests.sum_by_label("status")
        failed = sum(count for status, count in by_status.items() if status >= "500")
        return RequestTotals(sum(by_status.values()) - failed, failed)

    def record_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one completed request and its duration.

        `route` is the path template, which bounds the number of series.
        """
        self._requests.increment(method if method in METHODS else "other", route, str(status))
        self._durations.observe(seconds, route)


LOG = logging.getLogger("joinery.http")
BACKLOG_SECONDS = 10.0
"""Seconds between two queries of the match queue."""
_TIMEOUT = 2.0
_UNKNOWN = MatchingBacklog(0, nan)


class MatchBacklogGauges:
    """Gauges of the match queue: number of variants, and age of the oldest; NaN if the database does not respond."""

    def __init__(self, store: MatchBacklogReader, metrics: Metrics) -> None:
        self._store, self._next_refresh_at, self._backlog = store, 0.0, _UNKNOWN
        metrics.add_gauge(
            "joinery_match_queue_variants", "Variants in the match queue.", lambda: self._backlog.variant_count
        )
        metrics.add_gauge(
            "joinery_match_queue_oldest_seconds",
            "Age of the oldest variant in the match queue.",
            lambda: self._backlog.max_age_seconds,
        )

    async def refresh(self) -> None:
        """Query the match queue, unless the last query was less than BACKLOG_SECONDS ago, and update the gauges."""
        if monotonic() < self._next_refresh_at:
            return
        self._next_refresh_at = monotonic() + BACKLOG_SECONDS
        try:
            async with asyncio.timeout(_TIMEOUT):
                self._backlog = await self._store.measure_backlog()
        except Exception as error:
            LOG.warning("match queue backlog not read: %s", error)
            self._backlog = _UNKNOWN

    async def run(self) -> None:
        """Refresh the gauges periodically until cancelled."""
        # Reading a metric cannot wait for a query.
        while True:
            await self.refresh()
            await asyncio.sleep(BACKLOG_SECONDS)


async def run_traced(
    tracing: Tracing, state: RequestState, handler: Callable[[RequestState], Awaitable[Response]]
) -> Response:
    """Call `handler` within a trace span; return its response.

    The parent of the span is the one in the request's header `traceparent`, if any.
    """
    request, route = state.request, state.match.route
    method = request.method if request.method in METHODS else "_OTHER"
    name = f"{method} {route.operation.path}" if route is not None else method
    with tracing.open_span(name, SpanKind.SERVER, parent_context=request.headers.get("traceparent")) as span:
        span.set_attributes(
            http__request__method=method, http__route=route.operation.path if route is not None else None
        )
        if route is not None:
            span.set_attributes(joinery__operation=route.operation.id)
        response = await handler(state)
        _set_response_attributes(span, state, response)
        return response


def _set_response_attributes(span: Span, state: RequestState, response: Response) -> None:
    """Set the span's attributes about the response; only a server error marks the span as failed."""
    span.set_attributes(http__response__status_code=response.status, joinery__request_id=state.request_id)
    if state.error_code is not None:
        span.set_attributes(joinery__error_code=state.error_code)
    if state.principal is not None:
        tenant = state.principal.tenant
        span.set_attributes(joinery__org=tenant.org, joinery__livemode=tenant.livemode)
    if response.status >= 500:
        span.mark_failed(state.error_code or str(response.status))
