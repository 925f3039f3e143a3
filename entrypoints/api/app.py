"""The Quart application of the API, the console and the public pages."""

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
from domain.billing.ports import InvalidSignature
from domain.billing.usecases.synchronisation import AccountSynchroniser
from domain.changes.usecases.log_tailer import LogTailer
from domain.kernel.errors import InvalidRequest, MethodNotAllowed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.versions import SUPPORTED, Versions
from domain.matching.ports import MatchBacklogReader
from domain.oauth.model import DEFAULT_SCOPES
from domain.platform.ports import Instances, SchemaCheck
from domain.platform.usecases import Heartbeat, PlatformService
from entrypoints.api.pages import PublicPages, StatusPage
from entrypoints.areas.registry import AREAS
from entrypoints.console.console import Console
from entrypoints.console.pages import PAGES
from entrypoints.console.request import ConsoleRequest
from entrypoints.dependencies import Dependencies, ReadinessChecks
from entrypoints.http import health
from entrypoints.http.addresses import TrustedProxies
from entrypoints.http.exchange import NO_STORE, Request, Response, build_request, read_no_body
from entrypoints.http.fast_path import SCHEMA_INDEPENDENT_PATHS, FastPathMiddleware, get_body, is_api_path
from entrypoints.http.logs import AccessLog
from entrypoints.http.metrics import MatchBacklogGauges
from entrypoints.http.objects import ObjectAdmission, ObjectApplication
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.pressure import LoadThresholds
from entrypoints.http.representations import METADATA_PATH, SingleThreadExecutor, build_resource_metadata
from entrypoints.mcp import edge as mcp_edge
from entrypoints.mcp.edge import McpApplication
from entrypoints.metrics import expose_metrics
from entrypoints.oauth_endpoints import OAuthEndpoints
from entrypoints.operations.operation import Area
from entrypoints.operations.table import OperationTable
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.objects import ObjectStore
from ports.telemetry import Telemetry

ViewFunction = Callable[..., Awaitable[Response]]
METHODS = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"]

MAX_HOOK_BYTES = 1 << 20
"""Maximum size of a notification of the payment provider."""
_NO_SUCH_PAGE = (
    "This page does not exist. The API's paths start with /v1: see /docs or /openapi.json. "
    "For error codes, see /errors."
)


def create_app(
    dependencies: Dependencies,
    areas: Sequence[Area] = AREAS,
    *,
    thresholds: LoadThresholds | None = None,
    versions: Versions = SUPPORTED,
) -> Quart:
    """Create the application, which serves the API, MCP, OAuth, the console, the documentation and signed links.

    Several applications can coexist in a process, because they share no state.
    """
    pipeline = Pipeline(dependencies, OperationTable(areas), versions, thresholds)
    app = Quart("joinery", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = None  # Quart never receives bodies
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    mcp = McpApplication(pipeline, dependencies[Settings].base_url, dependencies[Settings].docs_url)
    app.asgi_app = FastPathMiddleware(  # type: ignore[assignment,method-assign]
        app.asgi_app,
        pipeline,
        _create_object_application(dependencies, pipeline),
        {mcp_edge.PATH: mcp},
        dependencies[SchemaCheck],
    )
    app.after_serving(mcp.stop)
    _mount_api(app, pipeline)
    _mount_pages(app, PublicPages(pipeline.table, dependencies[Settings].base_url, dependencies[Settings].docs_url))
    console = Console(dependencies, pipeline, PAGES)
    _mount_oauth(app, dependencies, console, mcp.initial_scopes)
    _mount_console(app, console)
    _mount_hooks(app, dependencies[AccountSynchroniser])
    backlog = MatchBacklogGauges(dependencies[MatchBacklogReader], pipeline.metrics)
    _mount_health(app, dependencies, pipeline, backlog)
    _mount_access_log(app, pipeline.access_log)
    _mount_lifecycle(app, dependencies, pipeline, backlog)
    return app


def _create_object_application(dependencies: Dependencies, pipeline: Pipeline) -> ObjectApplication | None:
    """Create the ASGI application that serves stored files by signed links; None if the object store serves them."""
    objects = dependencies[ObjectStore]
    if not isinstance(objects, FileObjects):
        return None
    admission, clock = dependencies[ObjectAdmission], dependencies[Clock]
    return ObjectApplication(objects, clock, pipeline.problems, pipeline.body_limits, admission)


def convert_to_quart(response: Response) -> QuartResponse:
    """Convert a response to Quart's type, without the default headers that Quart would add."""
    quart_response = QuartResponse(
        response.body if response.stream is None else response.stream, status=response.status
    )
    if response.stream is not None:
        quart_response.timeout = None
    quart_response.headers = Headers([(name.decode(), value.decode("latin-1")) for name, value in response.headers])
    return quart_response


def _route(
    app: Quart, paths: Iterable[str], view: ViewFunction, methods: Sequence[str], *, responds_to_options: bool = False
) -> None:
    """Route paths to a view.

    Args:
        app: The application.
        paths: The paths, with variables in the syntax of Werkzeug, such as `<code>`.
        view: Returns the response. For HEAD, the response's body is removed.
        methods: The HTTP methods.
        responds_to_options: Whether Quart responds to OPTIONS.
    """

    async def respond(**variables: str) -> QuartResponse:
        response = await view(**variables)
        if request.method == "HEAD":
            response.body = b""
        return convert_to_quart(response)

    for path in paths:
        endpoint = f"{' '.join(methods)} {path}"
        app.add_url_rule(path, endpoint, respond, methods=methods, provide_automatic_options=responds_to_options)


def _create_request() -> Request:
    return build_request(request.scope, get_body(request.scope).read)


def _mount_api(app: Quart, pipeline: Pipeline) -> None:
    async def respond(**_: str) -> Response:
        return await pipeline.process_request(_create_request())

    async def respond_to_error(error: Exception) -> QuartResponse:
        """Respond to errors of other paths. Under /v1, the pipeline responds to unknown paths and methods."""
        api_error, request_id = error, new_id("req")
        if isinstance(error, HTTPException) and is_api_path(request.path):
            return convert_to_quart(await respond())
        if isinstance(error, WerkzeugNotFound):
            api_error = NotFound(_NO_SUCH_PAGE)
        elif isinstance(error, WerkzeugMethodNotAllowed):
            api_error = MethodNotAllowed(extra={"allow": ", ".join(sorted(error.valid_methods or ("GET", "HEAD")))})
        result = pipeline.problems.respond(pipeline.problems.to_domain_error(api_error, request_id), request_id)
        result.headers.append((b"request-id", request_id.encode()))
        return convert_to_quart(result)

    _route(app, ("/v1", "/v1/", "/v1/<path:rest>"), respond, METHODS)
    app.register_error_handler(HTTPException, respond_to_error)
    app.register_error_handler(Exception, respond_to_error)


def _mount_pages(app: Quart, pages: PublicPages) -> None:
    executor = SingleThreadExecutor("pages", max_tasks=200)

    async def respond_with_file(**_: str) -> Response:
        path, headers = request.path, request.headers
        arguments = (path, headers.get("If-None-Match", ""), headers.get("Accept-Encoding"))
        response = (
            pages.find_response(*arguments)
            if pages.is_cached(path)
            else await executor.run(pages.find_response, *arguments)
        )
        if response is not None:
            return response
        if "text/html" not in headers.get("Accept", ""):
            raise NotFound(_NO_SUCH_PAGE)  # programs get a problem, browsers a page
        return await executor.run(pages.build_not_found_response, path, headers.get("Accept-Encoding"))

    rules = ("/", "/openapi.json", "/docs", "/docs/<path:rest>", "/errors", "/errors/<code>")
    _route(app, rules, respond_with_file, ["GET"], responds_to_options=True)


def _mount_console(app: Quart, console: Console) -> None:
    async def respond_with_page(**_: str) -> Response:
        return await console.respond(ConsoleRequest.from_scope(request.scope, get_body(request.scope)))

    for rule in console.rules:
        _route(app, (rule,), respond_with_page, METHODS if rule.startswith("/console") else console.list_methods(rule))


def _mount_oauth(app: Quart, dependencies: Dependencies, console: Console, scopes: Sequence[str]) -> None:
    endpoints = dependencies[OAuthEndpoints]
    base_url = dependencies[Settings].base_url
    documents = {
        "": build_resource_metadata(base_url, scopes=sorted(SCOPES)),
        "v1": build_resource_metadata(base_url, "/v1", sorted(DEFAULT_SCOPES)),
        mcp_edge.PATH.strip("/"): build_resource_metadata(base_url, mcp_edge.PATH, scopes, "/docs/mcp"),
    }

    async def respond_to_program() -> Response:
        return await endpoints.respond(_create_request())

    async def respond_with_server_metadata() -> Response:
        return endpoints.respond_to_preflight() if request.method == "OPTIONS" else endpoints.respond_with_metadata()

    async def respond_with_resource_metadata(edge: str = "") -> Response:
        if edge not in documents:
            raise NotFound(_NO_SUCH_PAGE)
        if_none_match = request.headers.get("If-None-Match", "")
        return (
            endpoints.respond_to_preflight() if request.method == "OPTIONS" else documents[edge].respond(if_none_match)
        )

    for path in endpoints.handler_by_path:
        # the device endpoint's path also has a page
        _route(app, (path,), respond_to_program, ["POST", "OPTIONS"] if path in console.rules else METHODS)
    _route(app, ("/.well-known/oauth-authorization-server",), respond_with_server_metadata, ["GET", "OPTIONS"])
    _route(app, (METADATA_PATH, f"{METADATA_PATH}/<edge>"), respond_with_resource_metadata, ["GET", "OPTIONS"])


def _mount_hooks(app: Quart, synchroniser: AccountSynchroniser) -> None:
    async def respond_to_stripe() -> Response:
        """Receive a notification of Stripe. Stripe repeats notifications without a successful response."""
        body = await get_body(request.scope).read(MAX_HOOK_BYTES)
        try:
            await synchroniser.receive(body, request.headers.get("Stripe-Signature", ""))
        except InvalidSignature:
            raise InvalidRequest("The signature of the notification is invalid.") from None
        return Response(204, [NO_STORE])

    _route(app, ("/hooks/stripe",), respond_to_stripe, ["POST"])


def _mount_health(app: Quart, dependencies: Dependencies, pipeline: Pipeline, backlog: MatchBacklogGauges) -> None:
    ready = health.ReadinessEndpoint(dependencies[ReadinessChecks])
    platform = dependencies[PlatformService]

    async def respond_with_metrics() -> Response:
        client = build_request(request.scope, read_no_body)
        if dependencies[Settings].monitoring.api_port or not TrustedProxies.is_local(
            client.client_address, client.headers
        ):
            raise NotFound(_NO_SUCH_PAGE)
        await backlog.refresh()
        return health.respond_metrics(pipeline.metrics.render_text())

    page = StatusPage(platform, ready.check, dependencies[Clock])
    _route(app, ("/healthz",), health.respond_alive, ["GET"], responds_to_options=True)
    _route(app, ("/readyz",), ready.__call__, ["GET"], responds_to_options=True)
    _route(app, ("/metrics",), respond_with_metrics, ["GET"], responds_to_options=True)
    _route(app, ("/status",), page.__call__, ["GET"], responds_to_options=True)


def _mount_access_log(app: Quart, access_log: AccessLog) -> None:
    """Add the requests that the pipeline does not log to the access log, such as pages and OAuth requests.

    Health checks are not logged.
    """

    @app.before_request
    async def start_timer() -> None:
        g.began = perf_counter()

    @app.after_request
    async def log_request(response: QuartResponse) -> QuartResponse:
        if not is_api_path(request.path) and request.path not in SCHEMA_INDEPENDENT_PATHS:
            route = request.url_rule.rule if request.url_rule is not None else "unknown"
            request_id = response.headers.setdefault("Request-Id", new_id("req"))
            access_log(request.method, route, response.status_code, perf_counter() - g.began, request_id)
        return response


def _mount_lifecycle(app: Quart, dependencies: Dependencies, pipeline: Pipeline, backlog: MatchBacklogGauges) -> None:
    exit_stack, port = contextlib.AsyncExitStack(), dependencies[Settings].monitoring.api_port
    tailer = dependencies[LogTailer]
    tasks: list[asyncio.Task[None]] = []

    heartbeat = Heartbeat(dependencies[Instances], ["api"], pipeline.metrics.count_requests)

    async def start_tasks() -> None:
        tasks.append(asyncio.create_task(heartbeat.run(), name="heartbeat"))
        tasks.append(asyncio.create_task(tailer.run(), name="log tailer"))
        await pipeline.request_logs.start()
        await pipeline.pressure.start()
        await exit_stack.enter_async_context(expose_metrics(pipeline.metrics, dependencies, port))
        if port or dependencies.find_optional(Telemetry) is not None:
            tasks.append(asyncio.create_task(backlog.run(), name="match backlog"))

    async def stop_tasks() -> None:
        tailer.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await heartbeat.remove()
        await pipeline.pressure.stop()
        await pipeline.request_logs.stop()
        pipeline.access_log.flush()
        await exit_stack.aclose()

    app.before_serving(start_tasks)
    app.after_serving(stop_tasks)
