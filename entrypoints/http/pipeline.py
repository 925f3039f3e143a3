"""The way of every request under /v1, written once: the checks in their order, the work, the answer, the log."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from time import perf_counter

from adapters.wire.cursors import Cursors, FeedCursors
from adapters.wire.versions import SUPPORTED, Versions
from domain.access.usecases import AccessService
from entrypoints.http.addresses import Proxies
from entrypoints.http.cross_origin import preflight
from entrypoints.http.exchange import Request, Response
from entrypoints.http.metrics import Metrics
from entrypoints.http.open_streams import OpenStreams
from entrypoints.http.pressure import Pressure
from entrypoints.http.problems import Problems
from entrypoints.http.request_log_queue import RequestLogQueue
from entrypoints.http.request_state import RequestState, Step
from entrypoints.http.route import CROSS_ORIGIN
from entrypoints.http.steps.authenticate import Authenticate
from entrypoints.http.steps.dry_run import read_dry_run
from entrypoints.http.steps.execute import Execute
from entrypoints.http.steps.idempotency_key import read_idempotency_key
from entrypoints.http.steps.mode import choose_mode
from entrypoints.http.steps.parameters import ReadParameters
from entrypoints.http.steps.permission import check_permission
from entrypoints.http.steps.rate_limit import RateLimit
from entrypoints.http.steps.request_id import give_request_id
from entrypoints.http.steps.request_line import read_request_line
from entrypoints.http.steps.request_log import LogRequest
from entrypoints.http.steps.require_route import require_route
from entrypoints.http.steps.respond import ResponseBuilder
from entrypoints.http.steps.shedding import ShedLoad
from entrypoints.http.steps.version import ChooseVersion
from entrypoints.http.table import Table
from entrypoints.http.use_cases import UseCases
from ports.clock import Clock
from ports.limits import Limits
from ports.secrets import Vault
from ports.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class Services:
    """What the pipeline is made of. `secret` keys cursors; `docs_url` and `base_url` have no slash at the end."""

    table: Table
    uow: UnitOfWork
    use: UseCases
    access: AccessService
    limits: Limits
    clock: Clock
    logs: RequestLogQueue
    pressure: Pressure
    secret: bytes
    vault: Vault
    base_url: str
    docs_url: str
    streams: OpenStreams
    proxies: Proxies = field(default_factory=Proxies)
    versions: Versions = SUPPORTED
    metrics: Metrics = field(default_factory=Metrics)


def checks(services: Services, cursors: Cursors) -> tuple[Step, ...]:
    """The order of checks (decisions.md §1); ids, preconditions and state follow inside the unit of work."""
    return (
        read_request_line,
        give_request_id,
        Authenticate(services.access, services.proxies),
        choose_mode,
        ChooseVersion(services.access, services.versions),
        RateLimit(services.limits),
        ShedLoad(services.pressure),
        require_route,
        check_permission,
        ReadParameters(cursors),
        read_dry_run,
        read_idempotency_key,
    )


class Pipeline:
    """Answers requests under /v1."""

    def __init__(self, services: Services) -> None:
        cursors = Cursors(services.secret)
        self.services = services
        self.problems = Problems(services.docs_url, services.base_url)
        self._checks = checks(services, cursors)
        answers = ResponseBuilder(services.versions)
        self._execute = Execute(
            services.uow,
            services.use,
            cursors,
            FeedCursors(services.secret),
            services.pressure,
            services.base_url,
            answers,
            self.problems,
            services.vault,
        )
        self._log = LogRequest(services.logs, services.versions.latest)
        self._table, self._clock = services.table, services.clock
        self._pressure, self._metrics = services.pressure, services.metrics

    async def answer(self, request: Request) -> Response:
        """The response, whatever happens; only a cancelled request has none."""
        if request.method == "OPTIONS":
            return preflight(self._table, request)
        state = RequestState(request, self._table.find(request.method, request.path), self._clock.now())
        self._pressure.in_flight += 1
        try:
            response = await self._response(state)
        finally:
            self._pressure.in_flight -= 1
        self._finish(state, response)
        waiting = self._log(state, response)
        if waiting is not None:
            await waiting
        return response

    async def _response(self, state: RequestState) -> Response:
        try:
            for step in self._checks:
                pending: Awaitable[None] | None = step(state)
                if pending is not None:
                    await pending
            return await self._execute(state)
        except Exception as error:
            if not state.request_id:
                give_request_id(state)
            known = self.problems.known(error, state.request_id)
            state.error_code = known.code
            return self.problems.answer(known, state.request_id)

    def _finish(self, state: RequestState, response: Response) -> None:
        """What every answer carries, and what is counted about it."""
        headers, status = response.headers, response.status
        headers.append((b"request-id", state.request_id.encode()))
        headers += state.budget
        if "origin" in state.request.headers:
            headers += CROSS_ORIGIN
        if state.stream is not None:
            response.stream = self.services.streams.kept(state, state.stream)
        elif status not in (204, 304) and not (
            state.match.route and state.match.route.operation.stream and status == 200
        ):
            headers.append((b"content-length", str(len(response.body)).encode()))
        if state.request.method == "HEAD":
            response.body = b""
        route = state.match.route
        name = route.operation.path if route is not None else "unknown"
        self._metrics.seen(state.request.method, name, status, perf_counter() - state.started)
