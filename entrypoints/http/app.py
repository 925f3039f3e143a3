"""The Quart application, made from explicit parts: no globals, so that any number can stand side by side."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from prometheus_client import start_http_server
from quart import Quart, request
from quart.wrappers import Response as QuartResponse
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from adapters.wire.versions import SUPPORTED, Versions
from domain.access.usecases import AccessService
from domain.kernel.errors import InvalidRequest, MethodNotAllowed, NotFound, PayloadTooLarge
from domain.kernel.ids import new_id
from entrypoints.http import health
from entrypoints.http.addresses import Proxies
from entrypoints.http.exchange import Response, from_scope
from entrypoints.http.fast_path import FastPathMiddleware, is_api
from entrypoints.http.health import Readiness
from entrypoints.http.metrics import Metrics
from entrypoints.http.objects import ObjectEdge, ObjectServer
from entrypoints.http.open_streams import OpenStreams
from entrypoints.http.pages import Pages
from entrypoints.http.pipeline import Pipeline, Services
from entrypoints.http.pressure import Pressure, Thresholds
from entrypoints.http.request_log_queue import RequestLogQueue
from entrypoints.http.table import Table, whole
from entrypoints.http.use_cases import UseCases
from ports.clock import Clock
from ports.limits import Limits
from ports.request_logs import RequestLogSink
from ports.secrets import Vault
from ports.unit_of_work import UnitOfWork

METHODS: Final = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"]
BODY_SECONDS: Final = 30
"""How long a body may take to arrive."""


def nobody_waits() -> int:
    """For stores without a connection pool."""
    return 0


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything the application is made of.

    `secret` is the deployment's key material; `base_url` and `docs_url` have no slash at the end. `waiting` tells how
    many requests wait for a database connection; `readiness` names the dependencies that /readyz asks. `objects` is None
    when objects lie on S3. With `metrics_port` 0 /metrics answers this machine only.
    """

    use: UseCases
    uow: UnitOfWork
    access: AccessService
    limits: Limits
    clock: Clock
    request_logs: RequestLogSink
    secret: bytes
    vault: Vault
    base_url: str
    docs_url: str
    objects: ObjectServer | None = None
    waiting: Callable[[], int] = nobody_waits
    readiness: Mapping[str, Readiness] = field(default_factory=dict)
    trusted_proxies: frozenset[str] = frozenset()
    metrics_port: int = 0
    thresholds: Thresholds = field(default_factory=Thresholds)
    versions: Versions = SUPPORTED
    table: Table | None = None
    """The operations to serve; None for all."""


def create_app(parts: Parts) -> Quart:
    """The application: /v1 by the pipeline, /objects/ by links, the docs, and the health pages."""
    pipeline = Pipeline(_services(parts))
    app = Quart("joinery", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max(operation.body_limit for operation in pipeline.services.table)
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    edge = ObjectEdge(parts.objects, parts.clock, pipeline.problems) if parts.objects is not None else None
    app.asgi_app = FastPathMiddleware(app.asgi_app, pipeline, edge)  # type: ignore[assignment,method-assign]
    _mount_api(app, pipeline)
    _mount_pages(app, Pages(pipeline.services.table, parts.base_url, parts.docs_url))
    _mount_health(app, parts, pipeline.services)
    _mount_lifecycle(app, parts, pipeline.services)
    return app


def _services(parts: Parts) -> Services:
    metrics, pressure = Metrics(), Pressure(parts.waiting, parts.thresholds)
    logs, streams = RequestLogQueue(parts.request_logs), OpenStreams(parts.access, parts.clock)
    metrics.gauge("joinery_http_in_flight", "Requests being answered.", lambda: pressure.in_flight)
    metrics.gauge("joinery_event_loop_lag_seconds", "How late the event loop is.", lambda: pressure.lag)
    metrics.gauge("joinery_request_logs_waiting", "Request logs not written yet.", lambda: len(logs))
    metrics.gauge("joinery_streams_open", "Event streams being sent.", lambda: len(streams))
    metrics.gauge("joinery_request_logs_lost", "Request logs dropped.", lambda: logs.lost)
    return Services(
        table=parts.table or whole(),
        uow=parts.uow,
        use=parts.use,
        access=parts.access,
        limits=parts.limits,
        clock=parts.clock,
        logs=logs,
        pressure=pressure,
        secret=parts.secret,
        vault=parts.vault,
        base_url=parts.base_url.rstrip("/"),
        docs_url=parts.docs_url.rstrip("/"),
        streams=streams,
        proxies=Proxies(parts.trusted_proxies),
        versions=parts.versions,
        metrics=metrics,
    )


def to_quart(response: Response) -> QuartResponse:
    """The response in Quart's terms, with exactly its own headers."""
    made = QuartResponse(response.body, status=response.status)
    made.headers = Headers([(name.decode(), value.decode("latin-1")) for name, value in response.headers])
    return made


async def read_body(limit: int) -> bytes:
    """The present request's body. Raises PayloadTooLarge, or InvalidRequest when it takes too long to arrive."""
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.body:
                received += chunk
                if len(received) > limit:
                    raise PayloadTooLarge(f"The body has more than {limit} bytes.")
    except RequestEntityTooLarge:
        raise PayloadTooLarge(f"The body has more than {limit} bytes.") from None
    except TimeoutError:
        raise InvalidRequest(f"The body did not arrive within {BODY_SECONDS} s.") from None
    return bytes(received)


def _mount_api(app: Quart, pipeline: Pipeline) -> None:
    async def answer(**_: str) -> QuartResponse:
        return to_quart(await pipeline.answer(from_scope(request.scope, read_body)))

    async def refuse(error: HTTPException) -> QuartResponse:
        """Unknown paths and methods: under /v1 told only after authentication, elsewhere at once."""
        if is_api(request.path):
            return await answer()
        code = error.code or 500
        problem = NotFound() if code == 404 else MethodNotAllowed(extra={"allow": _allowed(error)})
        return problem_of(problem if code in (404, 405) else error)

    async def fail(error: Exception) -> QuartResponse:
        return problem_of(error)

    def problem_of(error: Exception) -> QuartResponse:
        request_id = new_id("req")
        made = pipeline.problems.answer(pipeline.problems.known(error, request_id), request_id)
        made.headers.append((b"request-id", request_id.encode()))
        return to_quart(made)

    for rule in ("/v1", "/v1/", "/v1/<path:rest>"):
        app.add_url_rule(rule, rule, answer, methods=METHODS, provide_automatic_options=False)
    app.register_error_handler(HTTPException, refuse)
    app.register_error_handler(Exception, fail)


def _allowed(error: Any) -> str:
    return ", ".join(sorted(getattr(error, "valid_methods", None) or ("GET", "HEAD")))


def _mount_pages(app: Quart, pages: Pages) -> None:
    async def page(**_: str) -> QuartResponse:
        headers = request.headers
        found = pages.find(request.path, headers.get("If-None-Match", ""), headers.get("Accept-Encoding", ""))
        if found is None:
            raise NotFound
        if request.method == "HEAD":
            found.body = b""
        return to_quart(found)

    for rule in ("/", "/openapi.json", "/docs", "/errors", "/errors/<code>"):
        app.add_url_rule(rule, rule, page, methods=["GET"])


def _mount_health(app: Quart, parts: Parts, services: Services) -> None:
    async def healthz() -> QuartResponse:
        return to_quart(health.alive())

    async def readyz() -> QuartResponse:
        return to_quart(await health.ready(parts.readiness))

    async def metrics() -> QuartResponse:
        client = from_scope(request.scope, read_body)
        if parts.metrics_port or not Proxies.is_local(client.client, client.headers):
            raise NotFound
        return to_quart(health.metrics(services.metrics.text()))

    for rule, view in (("/healthz", healthz), ("/readyz", readyz), ("/metrics", metrics)):
        app.add_url_rule(rule, rule, view, methods=["GET"])


def _mount_lifecycle(app: Quart, parts: Parts, services: Services) -> None:
    servers: list[Any] = []
    tailer = parts.use.changes.tailer
    following: list[asyncio.Task[None]] = []

    async def start() -> None:
        following.append(asyncio.create_task(tailer.run(), name="follower"))
        await services.logs.start()
        await services.pressure.start()
        if parts.metrics_port:
            servers.append(start_http_server(parts.metrics_port, "127.0.0.1", services.metrics.registry))

    async def stop() -> None:
        tailer.close()
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await services.pressure.stop()
        await services.logs.stop()
        for server, thread in servers:
            server.shutdown()
            await asyncio.to_thread(thread.join)

    app.before_serving(start)
    app.after_serving(stop)
