"""The pipeline of all requests under /v1: the checks in their order, execution, response and logging."""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TypeAlias

from adapters.wire.cursors import Cursors
from domain.access.model import Principal
from domain.access.usecases import AccessService
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import NotFound
from domain.kernel.versions import SUPPORTED, Versions
from domain.platform.ports import SchemaCheck
from domain.secrets.keys import WorkingKeys
from entrypoints.dependencies import Dependencies, Waiting
from entrypoints.http import representations as content_coding
from entrypoints.http.addresses import Proxies
from entrypoints.http.body import BodyThreads, HeldBodies
from entrypoints.http.checks import (
    ChooseVersion,
    RateLimit,
    ReadParameters,
    RequestState,
    ShedLoad,
    Step,
    check_permission,
    choose_mode,
    read_request_line,
    request_id_of,
)
from entrypoints.http.credentials import Authenticate
from entrypoints.http.exchange import COMMON, CROSS_ORIGIN, Request, Response
from entrypoints.http.execute import Execute, OpenStreams, ResponseBuilder
from entrypoints.http.logs import AccessLog, LogRequest, RequestLogQueue
from entrypoints.http.metrics import RequestMetrics, traced
from entrypoints.http.pressure import Pressure, Thresholds
from entrypoints.http.problems import Absence, Problems
from entrypoints.metrics import with_surroundings
from entrypoints.operations.operation import services_of
from entrypoints.operations.table import NOTHING, Table
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.parsing import ParserRunner
from ports.telemetry import Tracing

MOST_WAITERS = 1_000
"""Maximum long polls and streams that one organisation may have open in a process."""
METHODS = "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS"
HEADERS = (
    b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Request-Id, "
    b"Service-Dry-Run, Service-Mode, Service-Version"
)


Way: TypeAlias = Callable[[RequestState], Awaitable[Response]]
"""Returns the response of a request, or raises an error."""


class Pipeline:
    """Pipeline that answers requests under /v1."""

    def __init__(
        self,
        dependencies: Dependencies,
        table: Table,
        versions: Versions = SUPPORTED,
        thresholds: Thresholds | None = None,
    ) -> None:
        settings, cursors = dependencies[Settings], Cursors(dependencies[WorkingKeys].cursors)
        self.table, self._clock, self._tracing = table, dependencies[Clock], dependencies.find(Tracing)
        self.services = services_of(table.areas, dependencies)
        self.problems = Problems(settings.docs_url, settings.base_url)
        self.absence = Absence(table)
        self.pressure = Pressure(dependencies[Waiting], thresholds or Thresholds())
        self.waiters = waiters = ConcurrencyLimit(None, MOST_WAITERS, noun="long polls and streams open")
        self.streams = OpenStreams(dependencies[AccessService], dependencies[Clock], waiters)
        self.logs = dependencies[RequestLogQueue]
        self.bodies = HeldBodies()
        self._threads = BodyThreads()
        self.metrics = self._create_metrics()
        with_surroundings(self.metrics, dependencies)
        self.authenticate = Authenticate(dependencies[AccessService], dependencies[Proxies], dependencies[SchemaCheck])
        self.charge, self.shed = dependencies[RateLimit], ShedLoad(self.pressure)
        self.parameters = ReadParameters(cursors, self.bodies, self.pressure, dependencies[ParserRunner])
        self._checks: tuple[Step, ...] = (
            read_request_line,
            self.authenticate,
            choose_mode,
            ChooseVersion(dependencies[AccessService], versions),
            self.charge,
            self.shed,
            check_permission,
            self.parameters,
        )
        """In this order (docs/conventions.md#order-of-checks); IDs, preconditions and state are checked inside the unit of work."""
        responses = ResponseBuilder(versions)
        self._execute = Execute(
            dependencies, self.services, cursors, waiters, self.pressure, responses, self.problems, self.absence
        )
        self.access_log = AccessLog(enabled=settings.access_log)
        self._log = LogRequest(self.logs, versions.latest)

    def _create_metrics(self) -> RequestMetrics:
        metrics, pressure, logs, streams, bodies = RequestMetrics(), self.pressure, self.logs, self.streams, self.bodies
        metrics.gauge("joinery_http_in_flight", "Requests being answered.", lambda: pressure.in_flight)
        metrics.gauge(
            "joinery_http_bodies_open", "Request bodies that are still arriving.", lambda: bodies.arriving.in_hand
        )
        metrics.gauge(
            "joinery_http_body_bytes", "Bytes of the bodies of requests in hand.", lambda: bodies.bytes.in_hand
        )
        metrics.gauge("joinery_event_loop_lag_seconds", "How late the event loop is.", lambda: pressure.lag)
        metrics.gauge("joinery_request_logs_waiting", "Request logs not written yet.", lambda: len(logs))
        metrics.gauge("joinery_streams_open", "Event streams being sent.", lambda: len(streams))
        metrics.gauge("joinery_request_logs_lost", "Request logs dropped.", lambda: logs.lost)
        return metrics

    async def answer(self, request: Request, *, caller: Principal | None = None, via: str | None = None) -> Response:
        """Return the response in all cases; only a cancelled request has none.

        `caller` is given by edges that authenticate the caller themselves, as the console does by session; `via` is the
        channel of a credential that did not come over the API.
        """
        if request.method == "OPTIONS":
            return preflight(self.table, request)
        state = RequestState(request, self.table.find(request.method, request.path), self._clock.now(), via=via)
        if caller is not None:
            state.principal = state.caller = caller
        return await (self._answer(state) if self._tracing is None else traced(self._tracing, state, self._answer))

    async def attend(self, request: Request, way: Way, *, place: str, via: str) -> Response:
        """Return the response of `way` to a request that is not an operation, or the problem that `way` raises.

        The request is counted under `place`, and logged unless `way` executes an operation for it (`RequestState.relayed`).
        """
        state = RequestState(request, NOTHING, self._clock.now(), via=via, place=place)
        state.request_id = request_id_of(request)
        return await self._answer(state, way)

    async def _answer(self, state: RequestState, way: Way | None = None) -> Response:
        request = state.request
        self.pressure.in_flight += 1
        try:
            try:
                response = await (way or self._run_operation)(state)
            except Exception as error:
                response = self._error_response(state, error)
            accepted = request.headers.get("accept-encoding")
            if accepted is not None and content_coding.is_packed(accepted, len(response.body)):
                await self._compress(state, response)
        finally:
            self.pressure.in_flight -= 1
            if state.held:
                self.bodies.bytes.release(state.caller.tenant.org, state.held)
        self._finish(state, response)
        waiting = None if state.relayed else self._log(state, response)
        if waiting is not None:
            await waiting
        return response

    async def _run_operation(self, state: RequestState) -> Response:
        for step in self._checks:
            pending: Awaitable[None] | None = step(state)
            if pending is not None:
                await pending
        return await self._execute(state)

    def _error_response(self, state: RequestState, error: Exception) -> Response:
        is_not_found = isinstance(error, NotFound)
        domain_error = self.absence.worded(state) if is_not_found else self.problems.known(error, state.request_id)
        state.error_code = domain_error.code
        return self.problems.answer(domain_error, state.request_id)

    async def _compress(self, state: RequestState, response: Response) -> None:
        """Compress the response with gzip; a large body is compressed in a thread."""
        body = response.body
        if len(body) <= content_coding.INLINE:
            content_coding.put(response, content_coding.packed(body))
            return
        org = state.principal.tenant.org if state.principal is not None else ""
        content_coding.put(response, await self._threads.run(org, lambda: content_coding.packed(body)))

    def _finish(self, state: RequestState, response: Response) -> None:
        """Add the headers that every response has, and record metrics and access log."""
        headers, status = response.headers, response.status
        headers.append((b"request-id", state.request_id.encode()))
        headers += state.budget
        if "origin" in state.request.headers:
            headers += CROSS_ORIGIN
        if state.stream is not None:
            response.stream = self.streams.kept(state, state.stream)
        elif status not in (204, 304) and not (
            state.match.route and state.match.route.operation.streams and status == 200
        ):
            headers.append((b"content-length", str(len(response.body)).encode()))
        if state.request.method == "HEAD":
            response.body = b""
        route = state.match.route
        name = route.operation.path if route is not None else state.place or "unknown"
        seconds = perf_counter() - state.started
        self.metrics.seen(state.request.method, name, status, seconds)
        org = state.principal.tenant.org if state.principal is not None else None
        self.access_log(state.request.method, name, status, seconds, state.request_id, org)


def preflight(table: Table, request: Request) -> Response:
    """Respond to OPTIONS (WHATWG Fetch, CORS preflight) without a credential, revealing nothing about existing paths."""
    allowed = ", ".join(table.find("OPTIONS", request.path).allowed) or METHODS
    headers = [
        *COMMON,
        *CROSS_ORIGIN,
        (b"allow", allowed.encode()),
        (b"access-control-allow-methods", allowed.encode()),
        (b"access-control-allow-headers", HEADERS),
        (b"access-control-max-age", b"86400"),
        (b"request-id", request_id_of(request).encode()),
    ]
    return Response(204, headers)
