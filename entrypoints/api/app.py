"""The Quart application, built from explicit dependencies without globals, so that several can coexist."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import perf_counter

from quart import Quart, g, request
from quart.wrappers import Response as QuartResponse
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import MethodNotAllowed as WerkzeugMethodNotAllowed
from werkzeug.exceptions import NotFound as WerkzeugNotFound

from adapters.files.objects import FileObjects
from domain.access.model import SCOPES
from domain.changes.usecases.tailing import LogTailer
from domain.kernel.errors import MethodNotAllowed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.versions import SUPPORTED, Versions
from domain.matching.ports import MatchBacklog
from domain.oauth.model import DEFAULT_SCOPES
from domain.platform.ports import Instances, SchemaCheck
from domain.platform.usecases import Heartbeat, PlatformService
from entrypoints.api.pages import Pages, StatusPage
from entrypoints.areas.registry import AREAS
from entrypoints.console.console import Console
from entrypoints.console.pages import PAGES
from entrypoints.console.request import ConsoleRequest
from entrypoints.dependencies import Dependencies, Readiness
from entrypoints.http import health
from entrypoints.http.addresses import Proxies
from entrypoints.http.exchange import Request, Response, from_scope, no_body
from entrypoints.http.fast_path import UNGATED, FastPathMiddleware, body_of, is_api
from entrypoints.http.logs import AccessLog
from entrypoints.http.metrics import MatchingBehind
from entrypoints.http.objects import ObjectAdmission, ObjectEdge
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.pressure import Thresholds
from entrypoints.http.representations import METADATA_PATH, OneThread, resource_metadata
from entrypoints.mcp import edge as mcp_edge
from entrypoints.mcp.edge import McpEdge
from entrypoints.metrics import exposed
from entrypoints.oauth import OAuthEndpoints
from entrypoints.operations.operation import Area
from entrypoints.operations.table import Table
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.objects import Objects
from ports.telemetry import Telemetry

View = Callable[..., Awaitable[Response]]
METHODS = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"]

_NO_SUCH_PAGE = (
    "This page does not exist. The API's paths start with /v1: see /docs or /openapi.json. "
    "For error codes, see /errors."
)


def create_app(
    dependencies: Dependencies,
    areas: Sequence[Area] = AREAS,
    *,
    thresholds: Thresholds | None = None,
    versions: Versions = SUPPORTED,
) -> Quart:
    """Create the application: /v1 through the pipeline, /console, /objects/ by links, documentation, and health endpoints."""
    pipeline = Pipeline(dependencies, Table(areas), versions, thresholds)
    app = Quart("joinery", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = None  # Quart never receives bodies
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    mcp = McpEdge(pipeline, dependencies[Settings].base_url, dependencies[Settings].docs_url)
    app.asgi_app = FastPathMiddleware(  # type: ignore[assignment,method-assign]
        app.asgi_app, pipeline, _object_edge(dependencies, pipeline), {mcp_edge.PATH: mcp}, dependencies[SchemaCheck]
    )
    app.after_serving(mcp.stop)
    _mount_api(app, pipeline)
    _mount_pages(app, Pages(pipeline.table, dependencies[Settings].base_url, dependencies[Settings].docs_url))
    console = Console(dependencies, pipeline, PAGES)
    _mount_oauth(app, dependencies, console, mcp.scopes)
    _mount_console(app, console)
    backlog = MatchingBehind(dependencies[MatchBacklog], pipeline.metrics)
    _mount_health(app, dependencies, pipeline, backlog)
    _mount_access_log(app, pipeline.access_log)
    _mount_lifecycle(app, dependencies, pipeline, backlog)
    return app


def _object_edge(dependencies: Dependencies, pipeline: Pipeline) -> ObjectEdge | None:
    """Return the server of objects by links; None if the object store serves them itself."""
    objects = dependencies[Objects]
    if not isinstance(objects, FileObjects):
        return None
    admission, clock = dependencies[ObjectAdmission], dependencies[Clock]
    return ObjectEdge(objects, clock, pipeline.problems, pipeline.bodies, admission)


def to_quart(response: Response) -> QuartResponse:
    """Convert a response to Quart's type with exactly its own headers."""
    result = QuartResponse(response.body if response.stream is None else response.stream, status=response.status)
    if response.stream is not None:
        result.timeout = None
    result.headers = Headers([(name.decode(), value.decode("latin-1")) for name, value in response.headers])
    return result


def _mount(app: Quart, rules: Iterable[str], view: View, methods: Sequence[str], *, options: bool = False) -> None:
    """Route paths to a view; HEAD returns only its headers. With `options`, the framework responds to OPTIONS."""

    async def answer(**parts: str) -> QuartResponse:
        response = await view(**parts)
        if request.method == "HEAD":
            response.body = b""
        return to_quart(response)

    for rule in rules:
        endpoint = f"{' '.join(methods)} {rule}"
        app.add_url_rule(rule, endpoint, answer, methods=methods, provide_automatic_options=options)


def _request() -> Request:
    return from_scope(request.scope, body_of(request.scope).read)


def _mount_api(app: Quart, pipeline: Pipeline) -> None:
    async def answer(**_: str) -> Response:
        return await pipeline.answer(_request())

    async def refuse(error: Exception) -> QuartResponse:
        """Respond to unknown paths and methods, under /v1 only after authentication, and to unexpected errors."""
        api_error, request_id = error, new_id("req")
        if isinstance(error, HTTPException) and is_api(request.path):
            return to_quart(await answer())
        if isinstance(error, WerkzeugNotFound):
            api_error = NotFound(_NO_SUCH_PAGE)
        elif isinstance(error, WerkzeugMethodNotAllowed):
            api_error = MethodNotAllowed(extra={"allow": ", ".join(sorted(error.valid_methods or ("GET", "HEAD")))})
        result = pipeline.problems.answer(pipeline.problems.known(api_error, request_id), request_id)
        result.headers.append((b"request-id", request_id.encode()))
        return to_quart(result)

    _mount(app, ("/v1", "/v1/", "/v1/<path:rest>"), answer, METHODS)
    app.register_error_handler(HTTPException, refuse)
    app.register_error_handler(Exception, refuse)


def _mount_pages(app: Quart, pages: Pages) -> None:
    executor = OneThread("pages", most=200)

    async def page(**_: str) -> Response:
        path, headers = request.path, request.headers
        arguments = (path, headers.get("If-None-Match", ""), headers.get("Accept-Encoding"))
        response = pages.find(*arguments) if pages.is_ready(path) else await executor.run(pages.find, *arguments)
        if response is not None:
            return response
        if "text/html" not in headers.get("Accept", ""):
            raise NotFound(_NO_SUCH_PAGE)  # programs get a problem, browsers a page
        return await executor.run(pages.lost, path, headers.get("Accept-Encoding"))

    rules = ("/", "/openapi.json", "/docs", "/docs/<path:rest>", "/errors", "/errors/<code>")
    _mount(app, rules, page, ["GET"], options=True)


def _mount_console(app: Quart, console: Console) -> None:
    async def page(**_: str) -> Response:
        return await console.answer(ConsoleRequest.from_scope(request.scope, body_of(request.scope)))

    for rule in console.rules:
        _mount(app, (rule,), page, METHODS if rule.startswith("/console") else console.methods_of(rule))


def _mount_oauth(app: Quart, dependencies: Dependencies, console: Console, scopes: Sequence[str]) -> None:
    endpoints = dependencies[OAuthEndpoints]
    base_url = dependencies[Settings].base_url
    documents = {
        "": resource_metadata(base_url, scopes=sorted(SCOPES)),
        "v1": resource_metadata(base_url, "/v1", sorted(DEFAULT_SCOPES)),
        mcp_edge.PATH.strip("/"): resource_metadata(base_url, mcp_edge.PATH, scopes, "/docs/mcp"),
    }

    async def oauth_endpoint() -> Response:
        return await endpoints.answer(_request())

    async def metadata() -> Response:
        return endpoints.preflight() if request.method == "OPTIONS" else endpoints.metadata()

    async def resource(edge: str = "") -> Response:
        if edge not in documents:
            raise NotFound(_NO_SUCH_PAGE)
        if_none_match = request.headers.get("If-None-Match", "")
        return endpoints.preflight() if request.method == "OPTIONS" else documents[edge].answer(if_none_match)

    for path in endpoints.by_path:
        # the device endpoint's path also has a page
        _mount(app, (path,), oauth_endpoint, ["POST", "OPTIONS"] if path in console.rules else METHODS)
    _mount(app, ("/.well-known/oauth-authorization-server",), metadata, ["GET", "OPTIONS"])
    _mount(app, (METADATA_PATH, f"{METADATA_PATH}/<edge>"), resource, ["GET", "OPTIONS"])


def _mount_health(app: Quart, dependencies: Dependencies, pipeline: Pipeline, backlog: MatchingBehind) -> None:
    ready = health.Ready(dependencies[Readiness])
    platform = dependencies[PlatformService]

    async def metrics() -> Response:
        client = from_scope(request.scope, no_body)
        if dependencies[Settings].watching.api or not Proxies.is_local(client.client, client.headers):
            raise NotFound(_NO_SUCH_PAGE)
        await backlog.refresh()
        return health.metrics(pipeline.metrics.text())

    page = StatusPage(platform, ready.look, dependencies[Clock])
    _mount(app, ("/healthz",), health.alive, ["GET"], options=True)
    _mount(app, ("/readyz",), ready.__call__, ["GET"], options=True)
    _mount(app, ("/metrics",), metrics, ["GET"], options=True)
    _mount(app, ("/status",), page.__call__, ["GET"], options=True)


def _mount_access_log(app: Quart, access_log: AccessLog) -> None:
    """Log requests outside the pipeline: pages, forms and OAuth endpoints, but no probes and scrapes."""

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


def _mount_lifecycle(app: Quart, dependencies: Dependencies, pipeline: Pipeline, backlog: MatchingBehind) -> None:
    exit_stack, port = contextlib.AsyncExitStack(), dependencies[Settings].watching.api
    tailer = dependencies[LogTailer]
    tasks: list[asyncio.Task[None]] = []

    heartbeat = Heartbeat(dependencies[Instances], ["api"], pipeline.metrics.answered)

    async def start() -> None:
        tasks.append(asyncio.create_task(heartbeat.run(), name="heartbeat"))
        tasks.append(asyncio.create_task(tailer.run(), name="log tailer"))
        await pipeline.logs.start()
        await pipeline.pressure.start()
        await exit_stack.enter_async_context(exposed(pipeline.metrics, dependencies, port))
        if port or dependencies.find(Telemetry) is not None:
            tasks.append(asyncio.create_task(backlog.run(), name="match backlog"))

    async def stop() -> None:
        tailer.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await heartbeat.leave()
        await pipeline.pressure.stop()
        await pipeline.logs.stop()
        pipeline.access_log.flush()
        await exit_stack.aclose()

    app.before_serving(start)
    app.after_serving(stop)
