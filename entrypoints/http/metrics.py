"""Metrics about requests, and a trace span per request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import nan
from time import monotonic

from domain.matching.index import Backlog
from domain.matching.ports import MatchBacklog
from domain.platform.instances import RequestTotals
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import Response
from entrypoints.metrics import Counts, Durations, Metrics
from ports.telemetry import Span, SpanKind, Tracing

METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"})


class RequestMetrics(Metrics):
    """Request counters and durations; `seen` is called once per request."""

    def __init__(self) -> None:
        self._requests = Counts("joinery_http_requests", "Requests answered.", ("method", "route", "status"))
        self._durations = Durations("joinery_http_request_seconds", "Time to answer.", ("route",))
        super().__init__(self._requests, self._durations)

    def answered(self) -> RequestTotals:
        """Return the totals of answered and failed requests."""
        by_status = self._requests.totals("status")
        failed = sum(count for status, count in by_status.items() if status >= "500")
        return RequestTotals(sum(by_status.values()) - failed, failed)

    def seen(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request; `route` is a path template, so that the number of series is bounded."""
        self._requests.add(method if method in METHODS else "other", route, str(status))
        self._durations.add(seconds, route)


LOG = logging.getLogger("joinery.http")
BACKLOG_SECONDS = 10.0
"""Seconds between two refreshes."""
_TIMEOUT = 2.0
_UNKNOWN = Backlog(0, nan)


class MatchingBehind:
    """Gauges of the match queue; the age is NaN while the store does not respond."""

    def __init__(self, store: MatchBacklog, metrics: Metrics) -> None:
        self._store, self._next, self._backlog = store, 0.0, _UNKNOWN
        metrics.gauge(
            "joinery_match_queue_variants", "Variants that wait to be matched.", lambda: self._backlog.variants
        )
        metrics.gauge(
            "joinery_match_queue_oldest_seconds",
            "How long the oldest of them has waited.",
            lambda: self._backlog.seconds,
        )

    async def refresh(self) -> None:
        """Query the backlog if the last query is old enough."""
        if monotonic() < self._next:
            return
        self._next = monotonic() + BACKLOG_SECONDS
        try:
            async with asyncio.timeout(_TIMEOUT):
                self._backlog = await self._store.backlog()
        except Exception as error:
            LOG.warning("match queue backlog not read: %s", error)
            self._backlog = _UNKNOWN

    async def run(self) -> None:
        """Refresh periodically, for metrics ports whose readers cannot wait for a refresh."""
        while True:
            await self.refresh()
            await asyncio.sleep(BACKLOG_SECONDS)


async def traced(
    tracing: Tracing, state: RequestState, answer: Callable[[RequestState], Awaitable[Response]]
) -> Response:
    """Run `answer` within a span, whose parent is the caller's `traceparent` if given."""
    request, route = state.request, state.match.route
    method = request.method if request.method in METHODS else "_OTHER"
    name = f"{method} {route.operation.path}" if route is not None else method
    with tracing.span(name, SpanKind.SERVER, parent=request.headers.get("traceparent")) as span:
        span.note(http__request__method=method, http__route=route.operation.path if route is not None else None)
        if route is not None:
            span.note(joinery__operation=route.operation.id)
        response = await answer(state)
        _annotate(span, state, response)
        return response


def _annotate(span: Span, state: RequestState, response: Response) -> None:
    """Set the attributes of the response; only a server error marks the span as failed."""
    span.note(http__response__status_code=response.status, joinery__request_id=state.request_id)
    if state.error_code is not None:
        span.note(joinery__error_code=state.error_code)
    if state.principal is not None:
        tenant = state.principal.tenant
        span.note(joinery__org=tenant.org, joinery__livemode=tenant.livemode)
    if response.status >= 500:
        span.failed(state.error_code or str(response.status))
