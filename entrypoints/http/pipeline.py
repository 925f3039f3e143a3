"""The pipeline of API requests: checks in a fixed order, execution, response and logging."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import perf_counter
from typing import TypeAlias

from adapters.api_json.cursors import CursorSigner
from domain.access.model import Principal
from domain.access.usecases import AccessService
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import AuthenticationRequired, NotFound
from domain.kernel.versions import SUPPORTED, Versions
from domain.platform.ports import SchemaCheck
from domain.secrets.keys import ActiveKeys
from entrypoints.dependencies import Dependencies, WaitingRequestCounter
from entrypoints.http import representations as content_coding
from entrypoints.http.addresses import TrustedProxies
from entrypoints.http.body import BodyLimits, OrganisationThreadPool
from entrypoints.http.checks import (
    LoadShedding,
    ParameterReader,
    RateLimit,
    RequestState,
    Step,
    VersionSelection,
    check_permission,
    check_request_line,
    choose_request_id,
    set_mode,
)
from entrypoints.http.credentials import RequestAuthentication
from entrypoints.http.exchange import COMMON_HEADERS, CROSS_ORIGIN_HEADERS, Request, Response
from entrypoints.http.execute import OpenStreams, OperationExecutor, ResponseBuilder
from entrypoints.http.logs import AccessLog, RequestLogger, RequestLogQueue
from entrypoints.http.metrics import RequestMetrics, run_traced
from entrypoints.http.pressure import LoadThresholds, Pressure
from entrypoints.http.problems import NotFoundMessages, ProblemResponses
from entrypoints.http.tool_calls import AssistantTools
from entrypoints.metrics import add_process_metrics
from entrypoints.operations.operation import create_services
from entrypoints.operations.table import NO_MATCH, OperationTable
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.parsing import ParserRunner
from ports.telemetry import Tracing

MAX_WAITING_REQUESTS = 1_000
"""Maximum number of open long polls and event streams of one organisation in a process."""
METHODS = "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS"
HEADERS = (
    b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Request-Id, "
    b"Service-Dry-Run, Service-Mode, Service-Version"
)


NonOperationHandler: TypeAlias = Callable[[RequestState], Awaitable[Response]]
"""Handler of a request that is not an operation of the API, such as an MCP message; returns the response or raises an error."""


class Pipeline:
    """Pipeline that each API request passes through: checks, execution, response and logging."""

    def __init__(
        self,
        dependencies: Dependencies,
        table: OperationTable,
        versions: Versions = SUPPORTED,
        thresholds: LoadThresholds | None = None,
    ) -> None:
        settings, cursors = dependencies[Settings], CursorSigner(dependencies[ActiveKeys].cursor_keys)
        self._access = dependencies[AccessService]
        self.table, self._clock, self._tracing = table, dependencies[Clock], dependencies.find_optional(Tracing)
        self.services = create_services(table.areas, dependencies)
        self.problems = ProblemResponses(settings.docs_url, settings.base_url)
        self.not_found_messages = NotFoundMessages(table)
        self.pressure = Pressure(dependencies[WaitingRequestCounter], thresholds or LoadThresholds())
        self.waiting_requests = waiters = ConcurrencyLimit(
            None, MAX_WAITING_REQUESTS, noun="open long polls and streams"
        )
        self.streams = OpenStreams(dependencies[AccessService], dependencies[Clock], waiters)
        self.request_logs = dependencies[RequestLogQueue]
        self.body_limits = BodyLimits()
        self._threads = OrganisationThreadPool()
        self.metrics = self._create_metrics()
        add_process_metrics(self.metrics, dependencies)
        self.authenticate = RequestAuthentication(
            dependencies[AccessService], dependencies[TrustedProxies], dependencies[SchemaCheck]
        )
        self.enforce_rate_limit, self.shed_load = dependencies[RateLimit], LoadShedding(self.pressure)
        self.parameter_reader = ParameterReader(cursors, self.body_limits, self.pressure, dependencies[ParserRunner])
        self._checks: tuple[Step, ...] = (
            check_request_line,
            self.authenticate,
            set_mode,
            VersionSelection(dependencies[AccessService], versions),
            self.enforce_rate_limit,
            self.shed_load,
            check_permission,
            self.parameter_reader,
        )
        """The checks before the transaction, in their order (docs/conventions.md#order-of-checks)."""
        responses = ResponseBuilder(versions)
        self._execute = OperationExecutor(
            dependencies,
            self.services,
            cursors,
            waiters,
            self.pressure,
            responses,
            self.problems,
            self.not_found_messages,
            AssistantTools(self),
        )
        self.access_log = AccessLog(enabled=settings.access_log)
        self._request_logger = RequestLogger(self.request_logs, versions.latest)

    def _create_metrics(self) -> RequestMetrics:
        metrics, pressure, logs, streams, bodies = (
            RequestMetrics(),
            self.pressure,
            self.request_logs,
            self.streams,
            self.body_limits,
        )
        metrics.add_gauge("joinery_http_in_flight", "Requests in progress.", lambda: pressure.in_flight)
        metrics.add_gauge(
            "joinery_http_bodies_open", "Request bodies in progress.", lambda: bodies.incoming_bodies.amount_in_use
        )
        metrics.add_gauge(
            "joinery_http_body_bytes", "Bytes of the request bodies in memory.", lambda: bodies.body_bytes.amount_in_use
        )
        metrics.add_gauge("joinery_event_loop_lag_seconds", "Lag of the event loop.", lambda: pressure.lag)
        metrics.add_gauge("joinery_request_logs_waiting", "Request logs that wait to be written.", lambda: len(logs))
        metrics.add_gauge("joinery_streams_open", "Open event streams.", lambda: len(streams))
        metrics.add_gauge("joinery_request_logs_lost", "Dropped request logs.", lambda: logs.dropped_count)
        return metrics

    async def refresh_caller(self, state: RequestState, caller: Principal) -> Principal:
        """Return the caller with the current permissions of the request's credential or session. Raises AuthenticationRequired."""
        if state.find_caller is not None:
            current = await state.find_caller()
            if current is None or current.tenant != caller.tenant:
                raise AuthenticationRequired
        else:
            stored = (await self._access.find_all({state.credential_digest})).get(state.credential_digest)
            current = self._access.verify(stored, state.address, self._clock.now())
        return replace(caller, role=current.role, scopes=current.scopes, organisation=current.organisation)

    async def process_request(
        self,
        request: Request,
        *,
        caller: Principal | None = None,
        via: str | None = None,
        find_caller: Callable[[], Awaitable[Principal | None]] | None = None,
    ) -> Response:
        """Process an API request; return the response, or an error response if the request fails.

        Args:
            request: The request.
            caller: The principal of a request that is already authenticated, such as a request of the console, or None.
            via: The channel of a request that another part of the service sends, such as `console`; else None.
            find_caller: Returns the principal as of now, for an operation that outlasts the request; None if it has none any more.
        """
        if request.method == "OPTIONS":
            return respond_to_preflight(self.table, request)
        state = RequestState(
            request, self.table.match_request(request.method, request.path), self._clock.now(), channel=via
        )
        if caller is not None:
            state.principal = state.caller = caller
            state.find_caller = find_caller
        return await (
            self._respond(state) if self._tracing is None else run_traced(self._tracing, state, self._respond)
        )

    async def process_non_operation(
        self, request: Request, handler: NonOperationHandler, *, path: str, via: str
    ) -> Response:
        """Process a request that is not an operation of the API; return the response, or a problem response if `handler` fails.

        If `handler` sends an API request, the request log contains only the API request.

        Args:
            request: The request.
            handler: Function that handles the request.
            path: The path under which the request is counted and logged.
            via: The channel of the request, such as `mcp`.
        """
        state = RequestState(request, NO_MATCH, self._clock.now(), channel=via, route_label=path)
        state.request_id = choose_request_id(request)
        return await self._respond(state, handler)

    async def _respond(self, state: RequestState, handler: NonOperationHandler | None = None) -> Response:
        request = state.request
        self.pressure.in_flight += 1
        try:
            try:
                response = await (handler or self._run_operation)(state)
            except Exception as error:
                response = self._build_error_response(state, error)
            accept_encoding = request.headers.get("accept-encoding")
            if accept_encoding is not None and content_coding.should_compress(accept_encoding, len(response.body)):
                await self._compress(state, response)
        finally:
            self.pressure.in_flight -= 1
            if state.counted_bytes:
                self.body_limits.body_bytes.release(state.caller.tenant.org, state.counted_bytes)
        self._complete_response(state, response)
        pending_log = None if state.is_forwarded else self._request_logger(state, response)
        if pending_log is not None:
            await pending_log
        return response

    async def _run_operation(self, state: RequestState) -> Response:
        for step in self._checks:
            pending: Awaitable[None] | None = step(state)
            if pending is not None:
                await pending
        return await self._execute(state)

    def _build_error_response(self, state: RequestState, error: Exception) -> Response:
        is_not_found = isinstance(error, NotFound)
        domain_error = (
            self.not_found_messages.build_error(state)
            if is_not_found
            else self.problems.to_domain_error(error, state.request_id)
        )
        state.error_code = domain_error.code
        return self.problems.respond(domain_error, state.request_id)

    async def _compress(self, state: RequestState, response: Response) -> None:
        """Compress the body of the response with gzip; above MAX_INLINE_BYTES, in a thread."""
        body = response.body
        if len(body) <= content_coding.MAX_INLINE_BYTES:
            content_coding.apply_compression(response, content_coding.compress(body))
            return
        org = state.principal.tenant.org if state.principal is not None else ""
        content_coding.apply_compression(response, await self._threads.run(org, lambda: content_coding.compress(body)))

    def _complete_response(self, state: RequestState, response: Response) -> None:
        """Add the headers of every response, and record the request in the metrics and the access log."""
        headers, status = response.headers, response.status
        headers.append((b"request-id", state.request_id.encode()))
        headers += state.rate_headers
        if "origin" in state.request.headers:
            headers += CROSS_ORIGIN_HEADERS
        if state.stream is not None:
            response.stream = self.streams.iterate_chunks(state, state.stream)
        elif status not in (204, 304) and not (
            state.match.route and state.match.route.operation.is_stream and status == 200
        ):
            headers.append((b"content-length", str(len(response.body)).encode()))
        if state.request.method == "HEAD":
            response.body = b""
        route = state.match.route
        name = route.operation.path if route is not None else state.route_label or "unknown"
        seconds = perf_counter() - state.started
        self.metrics.record_request(state.request.method, name, status, seconds)
        org = state.principal.tenant.org if state.principal is not None else None
        self.access_log(state.request.method, name, status, seconds, state.request_id, org)


def respond_to_preflight(table: OperationTable, request: Request) -> Response:
    """Respond to an OPTIONS request (CORS preflight of the Fetch standard), which needs no credential."""
    allowed = ", ".join(table.match_request("OPTIONS", request.path).allowed_methods) or METHODS
    headers = [
        *COMMON_HEADERS,
        *CROSS_ORIGIN_HEADERS,
        (b"allow", allowed.encode()),
        (b"access-control-allow-methods", allowed.encode()),
        (b"access-control-allow-headers", HEADERS),
        (b"access-control-max-age", b"86400"),
        (b"request-id", choose_request_id(request).encode()),
    ]
    return Response(204, headers)
