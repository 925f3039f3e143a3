"""The Quart application, made from explicit parts: no globals, so that any number can stand side by side."""

import asyncio
import contextlib
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final

from domain.kernel.versions import SUPPORTED, Versions
from quart import Quart, g, request
from quart.wrappers import Response as QuartResponse
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException

from domain.access.model import SCOPES
from domain.kernel.errors import MethodNotAllowed, NotFound
from domain.kernel.ids import new_id
from domain.oauth.model import DEFAULT_SCOPES
from domain.platform.usecases import Heartbeat, PlatformService
from domain.uploads.usecases import UploadService
from entrypoints.areas.area import Area
from entrypoints.areas.registry import AREAS
from entrypoints.console.console import Console
from entrypoints.console.pages import PAGES
from entrypoints.console.request import ConsoleRequest
from entrypoints.dependencies import Dependencies
from entrypoints.http import health, resource_metadata
from entrypoints.http.access_log import AccessLog
from entrypoints.http.addresses import Proxies
from entrypoints.http.backlog import MatchingBehind
from entrypoints.http.client_files import PLACE, ClientFiles
from entrypoints.http.exchange import Response, from_scope, no_body
from entrypoints.http.fast_path import UNGATED, FastPathMiddleware, body_of, is_api
from entrypoints.http.object_admission import ObjectAdmission
from entrypoints.http.objects import ObjectEdge, ObjectServer
from entrypoints.http.pages import Pages
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.pressure import Thresholds
from entrypoints.http.public_threads import OneThread
from entrypoints.http.status_page import StatusPage
from entrypoints.http.table import Table
from entrypoints.mcp import edge as mcp_edge
from entrypoints.mcp.edge import McpEdge
from entrypoints.metrics import exposed
from entrypoints.oauth.endpoints import OAuthEndpoints
from entrypoints.oauth.services import oauth_services

METHODS: Final = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"]

_NOWHERE: Final = (
    "There is nothing at this address. The API's paths start with /v1; /docs and /openapi.json have every one of them, "
    "/errors every error code."
)


def create_app(
    dependencies: Dependencies,
    areas: Sequence[Area] = AREAS,
    *,
    thresholds: Thresholds | None = None,
    versions: Versions = SUPPORTED,
) -> Quart:
    """The application: /v1 by the pipeline, /console, /objects/ by links, the docs, and the health pages."""
    pipeline = Pipeline(dependencies, Table(areas), versions, thresholds)
    app = Quart("joinery", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = None  # bodies never come this way
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    mcp = McpEdge(pipeline, dependencies.settings.base_url, dependencies.settings.docs_url)
    app.asgi_app = FastPathMiddleware(  # type: ignore[assignment,method-assign]
        app.asgi_app, pipeline, _object_edge(dependencies, pipeline), {mcp_edge.PATH: mcp}, dependencies.schema
    )
    app.after_serving(mcp.stop)
    _mount_api(app, pipeline)
    described = (pipeline.table, dependencies.settings.base_url, dependencies.settings.docs_url)
    _mount_pages(app, Pages(*described), ClientFiles(*described))
    console = Console(dependencies, pipeline, PAGES)
    _mount_oauth(app, dependencies, console, mcp.scopes)
    _mount_console(app, console)
    behind = MatchingBehind(dependencies.match_backlog, pipeline.metrics)
    _mount_health(app, dependencies, pipeline, behind)
    _mount_access_log(app, pipeline.access_log)
    _mount_lifecycle(app, dependencies, pipeline, behind)
    return app


def _object_edge(dependencies: Dependencies, pipeline: Pipeline) -> ObjectEdge | None:
    """What serves objects by links; None when the store does so itself."""
    objects = dependencies.objects
    if not isinstance(objects, ObjectServer):
        return None
    admission = ObjectAdmission(dependencies.uow, dependencies.limits, UploadService(objects))
    return ObjectEdge(objects, dependencies.clock, pipeline.problems, pipeline.bodies, admission)


def to_quart(response: Response) -> QuartResponse:
    """The response in Quart's terms, with exactly its own headers."""
    made = QuartResponse(response.body if response.stream is None else response.stream, status=response.status)
    if response.stream is not None:
        made.timeout = None
    made.headers = Headers([(name.decode(), value.decode("latin-1")) for name, value in response.headers])
    return made


def _mount_api(app: Quart, pipeline: Pipeline) -> None:
    async def answer(**_: str) -> QuartResponse:
        return to_quart(await pipeline.answer(from_scope(request.scope, body_of(request.scope).read)))

    async def refuse(error: HTTPException) -> QuartResponse:
        """Unknown paths and methods: under /v1 shown only after authentication, elsewhere at once."""
        if is_api(request.path):
            return await answer()
        code = error.code or 500
        problem = NotFound(_NOWHERE) if code == 404 else MethodNotAllowed(extra={"allow": _allowed(error)})
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


def _to_visitor(found: Response) -> QuartResponse:
    """What anybody may read; HEAD gets its headers alone."""
    if request.method == "HEAD":
        found.body = b""
    return to_quart(found)


def _mount_pages(app: Quart, pages: Pages, files: ClientFiles) -> None:
    searching, making = OneThread("searches"), OneThread("pages", most=200)

    async def page(**_: str) -> QuartResponse:
        headers, query = request.headers, request.args.get("q", "")
        asked = (request.path, query, headers.get("If-None-Match", ""), headers.get("Accept-Encoding"))
        if pages.is_ready(request.path):
            found = pages.find(*asked)
        else:
            found = await (searching if request.path == Pages.SEARCH else making).run(pages.find, *asked)
        return _to_visitor(found or await lost())

    async def file(name: str) -> QuartResponse:
        asked = (PLACE + name, request.headers.get("If-None-Match", ""))
        found = files.find(*asked) if files.is_ready else await making.run(files.find, *asked)
        return _to_visitor(found or await lost())

    async def lost() -> Response:
        """A page for whoever reads pages; programs get the problem."""
        if "text/html" not in request.headers.get("Accept", ""):
            raise NotFound(_NOWHERE)
        return await searching.run(pages.lost, request.path, request.headers.get("Accept-Encoding"))

    app.add_url_rule(f"{PLACE}<name>", "clients", file, methods=["GET"])
    for rule in ("/", "/openapi.json", "/docs", "/docs/<path:rest>", "/errors", "/errors/<code>"):
        app.add_url_rule(rule, rule, page, methods=["GET"])


def _mount_console(app: Quart, console: Console) -> None:
    async def page(**_: str) -> QuartResponse:
        return to_quart(await console.answer(ConsoleRequest.from_scope(request.scope, body_of(request.scope))))

    for rule in console.rules:
        methods = METHODS if rule.startswith("/console") else console.methods_of(rule)
        app.add_url_rule(rule, f"console {rule}", page, methods=methods, provide_automatic_options=False)


def _mount_oauth(app: Quart, dependencies: Dependencies, console: Console, scopes: Sequence[str]) -> None:
    endpoints = OAuthEndpoints(oauth_services(dependencies), Proxies(dependencies.settings.trusted_proxies))
    base_url = dependencies.settings.base_url
    documents = {
        "": resource_metadata.file(base_url, scopes=sorted(SCOPES)),
        "/v1": resource_metadata.file(base_url, "/v1", sorted(DEFAULT_SCOPES)),
        mcp_edge.PATH: resource_metadata.file(base_url, mcp_edge.PATH, scopes, "/docs/mcp"),
    }

    async def asked() -> QuartResponse:
        return to_quart(await endpoints.answer(from_scope(request.scope, body_of(request.scope).read)))

    async def metadata() -> QuartResponse:
        return _to_visitor(endpoints.preflight() if request.method == "OPTIONS" else endpoints.metadata())

    async def resource(edge: str = "") -> QuartResponse:
        document = documents.get(f"/{edge}" if edge else "")
        if document is None:
            raise NotFound(_NOWHERE)
        if request.method == "OPTIONS":
            return to_quart(endpoints.preflight())
        return _to_visitor(document.answer(request.headers.get("If-None-Match", "")))

    for path in endpoints.by_path:
        # a page stands at the address where devices ask
        methods = ["POST", "OPTIONS"] if path in console.rules else METHODS
        app.add_url_rule(path, path, asked, methods=methods, provide_automatic_options=False)
    for rule, view in (
        ("/.well-known/oauth-authorization-server", metadata),
        (resource_metadata.PATH, resource),
        (f"{resource_metadata.PATH}/<edge>", resource),
    ):
        app.add_url_rule(rule, rule, view, methods=["GET", "OPTIONS"], provide_automatic_options=False)


def _mount_health(app: Quart, dependencies: Dependencies, pipeline: Pipeline, behind: MatchingBehind) -> None:
    ready = health.Ready(dependencies.readiness)
    platform = PlatformService(dependencies.platform_checks, dependencies.incidents, dependencies.clock)
    status = StatusPage(platform, ready.look, dependencies.clock)

    async def healthz() -> QuartResponse:
        return to_quart(health.alive())

    async def readyz() -> QuartResponse:
        return to_quart(await ready())

    async def shown() -> QuartResponse:
        return _to_visitor(await status())

    async def metrics() -> QuartResponse:
        client = from_scope(request.scope, no_body)
        if dependencies.settings.watching.api or not Proxies.is_local(client.client, client.headers):
            raise NotFound(_NOWHERE)
        await behind.refresh()
        return to_quart(health.metrics(pipeline.metrics.text()))

    for rule, view in (("/healthz", healthz), ("/readyz", readyz), ("/metrics", metrics), ("/status", shown)):
        app.add_url_rule(rule, rule, view, methods=["GET"])


def _mount_access_log(app: Quart, access_log: AccessLog) -> None:
    """Log what the pipeline does not: pages, forms and endpoints of OAuth. Probes and scrapes are left out."""

    @app.before_request
    async def begin() -> None:
        g.began = perf_counter()

    @app.after_request
    async def end(response: QuartResponse) -> QuartResponse:
        if not is_api(request.path) and request.path not in UNGATED:
            route = request.url_rule.rule if request.url_rule is not None else "unknown"
            request_id = response.headers.setdefault("Request-Id", new_id("req"))
            access_log(request.method, route, response.status_code, perf_counter() - g.began, request_id)
        return response


def _mount_lifecycle(app: Quart, dependencies: Dependencies, pipeline: Pipeline, behind: MatchingBehind) -> None:
    exposing, port = contextlib.AsyncExitStack(), dependencies.settings.watching.api
    tailer = dependencies.tailer
    tailing: list[asyncio.Task[None]] = []

    heartbeats: list[Heartbeat] = []

    async def start() -> None:
        if dependencies.instances is not None:
            heartbeats.append(heartbeat := Heartbeat(dependencies.instances, ["api"], pipeline.metrics.answered))
            tailing.append(asyncio.create_task(heartbeat.run(), name="heartbeat"))
        tailing.append(asyncio.create_task(tailer.run(), name="log tailer"))
        await pipeline.logs.start()
        await pipeline.pressure.start()
        await exposing.enter_async_context(exposed(pipeline.metrics, dependencies, port))
        if port or dependencies.metrics_export:
            tailing.append(asyncio.create_task(behind.run(), name="match backlog"))

    async def stop() -> None:
        tailer.close()
        for task in tailing:
            task.cancel()
        await asyncio.gather(*tailing, return_exceptions=True)
        for heartbeat in heartbeats:
            await heartbeat.leave()
        await pipeline.pressure.stop()
        await pipeline.logs.stop()
        pipeline.access_log.flush()
        await exposing.aclose()

    app.before_serving(start)
    app.after_serving(stop)
