"""ASGI application at /mcp, which authenticates and limits requests like the API before the MCP library reads them."""

import asyncio
import gc
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from adapters.api_json.resource import Body
from domain.access.model import Principal
from domain.agents.usecases.tools import ToolManifest
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import (
    AuthenticationRequired,
    InvalidRequest,
    MethodNotAllowed,
    PermissionDenied,
    Unavailable,
    UnsupportedMediaType,
)
from entrypoints.http.addresses import parse_address
from entrypoints.http.body import SMALL_BODY_BYTES, IncomingBody
from entrypoints.http.checks import RequestState, is_json_content_type, set_mode
from entrypoints.http.exchange import COMMON_HEADERS, JSON, NO_STORE, Response, build_request
from entrypoints.http.fast_path import send_response
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.problems import ProblemResponses
from entrypoints.http.representations import build_metadata_url
from entrypoints.mcp.calls import CHANNEL, McpMessage, ToolExecutor
from entrypoints.mcp.resources import Resources
from entrypoints.operations.codes import CODES
from entrypoints.operations.tools import build_manifest
from entrypoints.operations.validation import Validator

_PORTS = {"http": 80, "https": 443}


class OriginCheck:
    """Check that requests from web pages come from the service's origin (DNS rebinding).

    A service on a loopback address accepts all loopback host names.
    """

    def __init__(self, base_url: str) -> None:
        self._own_url = urlsplit(base_url)
        self._is_local = _is_loopback(self._own_url.hostname)

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Check the headers Origin and Host.

        Raises:
            PermissionDenied: Origin is a foreign origin, or Host is not a loopback host although the service is on one.
        """
        for name, value in headers:
            text = value.decode("latin-1")
            if name == b"origin" and not self._is_own_origin(_parse_origin(text)):
                raise PermissionDenied("Web pages of other origins cannot call this endpoint. Call it from a program.")
            if name == b"host" and self._is_local and not _is_loopback(_parse_origin(f"//{text}").hostname):
                raise PermissionDenied(
                    "This service accepts local requests only. Use a URL with the host 127.0.0.1 or localhost. "
                    "To serve other machines, the operator sets JOINERY_BASE_URL."
                )

    def _is_own_origin(self, origin: SplitResult) -> bool:
        if origin.scheme != self._own_url.scheme or _find_port(origin) != _find_port(self._own_url):
            return False
        return origin.hostname == self._own_url.hostname or (self._is_local and _is_loopback(origin.hostname))


def _parse_origin(text: str) -> SplitResult:
    """Parse an origin or `//host`; the result is empty if the text is malformed."""
    try:
        parts = urlsplit(text.strip())
        _ = parts.port, parts.hostname
    except ValueError:
        return urlsplit("")
    return parts


def _find_port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)


def _is_loopback(host: str | None) -> bool:
    address = parse_address(host or "")
    return host == "localhost" or (address is not None and address.is_loopback)


if TYPE_CHECKING:
    from entrypoints.mcp.protocol import McpServer

PATH = "/mcp"
MAX_MESSAGE_BYTES = Body.DEFAULT_MAX_BYTES
"""Maximum bytes of a message."""
MAX_MESSAGE_SECONDS = 90.0
"""Maximum seconds for the response to a message; longer than any operation waits."""
MAX_ID_CHARS = 256
"""Maximum characters of the ID of a JSON-RPC message."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
"""Error codes of JSON-RPC 2.0."""
_ANY_JSON = Validator({})


class McpApplication:
    """ASGI application that serves the Model Context Protocol at /mcp."""

    def __init__(self, pipeline: Pipeline, base_url: str, docs_url: str) -> None:
        self._pipeline, self._base_url = pipeline, base_url.rstrip("/")
        manifest = build_manifest(pipeline.table)
        self._calls = ToolExecutor(pipeline, manifest)
        self._resources = Resources(self._calls, CODES, docs_url)
        self._origin = OriginCheck(base_url)
        self._admission = ConcurrencyLimit(512, 64, noun="MCP calls in progress")
        self.initial_scopes = list_initial_scopes(manifest)
        metadata = build_metadata_url(self._base_url, PATH)
        self._problems = ProblemResponses(docs_url, base_url, _build_challenge(metadata, self.initial_scopes))
        self._metadata_url = metadata
        self._server_task: asyncio.Task[McpServer] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one HTTP request."""
        body = IncomingBody(receive)
        request = build_request(scope, body.read)
        response = await self._pipeline.process_non_operation(
            request, lambda state: self._respond(state, scope), path=PATH, via=CHANNEL
        )
        await send_response(response, body.receive_after_body, body.wrap_send(send))

    async def stop(self) -> None:
        """Stop the MCP server when the process ends."""
        if self._server_task is not None:
            await (await self._server_task).stop()

    async def _respond(self, state: RequestState, scope: Mapping[str, Any]) -> Response:
        self._origin.check(scope["headers"])
        if state.request.method == "OPTIONS":
            return Response(204, [*COMMON_HEADERS, (b"allow", b"POST, OPTIONS")])
        try:
            await self._authenticate(state)
        except AuthenticationRequired as error:
            state.error_code = error.code
            return self._problems.respond(error, state.request_id)
        if state.request.method != "POST":
            raise MethodNotAllowed(
                "This MCP server supports POST only. It has no sessions and no separate event streams.",
                extra={"allow": "POST, OPTIONS"},
            )
        if not is_json_content_type(state.request.headers.get("content-type", "")):
            raise UnsupportedMediaType
        with self._admission.immediate_slot(state.caller.tenant.org):
            raw = await self._pipeline.parameter_reader.receive_body(state, MAX_MESSAGE_BYTES)
            try:
                async with asyncio.timeout(MAX_MESSAGE_SECONDS):
                    return await self._execute_message(state, scope, raw)
            except TimeoutError:
                raise Unavailable(
                    f"The call was cancelled after {MAX_MESSAGE_SECONDS:g} s, but may have been executed. "
                    "If you sent an idempotency_key, retry with the same one."
                ) from None

    async def _authenticate(self, state: RequestState) -> None:
        """Set the caller and the mode in the state. Raises AuthenticationRequired."""
        pending = self._pipeline.authenticate(state)
        if pending is not None:
            await pending
        set_mode(state)

    async def _execute_message(self, state: RequestState, scope: Mapping[str, Any], raw: bytes) -> Response:
        """Parse and execute a message; return the response.

        A message that causes no API request counts as a read against the rate limit.
        """
        try:
            value, _ = await self._pipeline.parameter_reader.decode_body(state, raw, Body.MAX_VALUES_PER_MIB, _ANY_JSON)
        except InvalidRequest as error:
            await self._charge_read(state)
            return _build_json_rpc_error(PARSE_ERROR, error.detail)
        if not isinstance(value, dict) or not _is_id(value.get("id", 0)):
            await self._charge_read(state)
            return _build_json_rpc_error(
                INVALID_REQUEST, "Send a single JSON-RPC message with an ID of at most 256 characters."
            )
        message = McpMessage(state, raw, value)
        if len(message.encode_for_library()) > SMALL_BODY_BYTES:
            await self._charge_read(state)
            return _build_json_rpc_error(
                INVALID_REQUEST,
                f"The message has more than {SMALL_BODY_BYTES} bytes, not counting a tool's arguments. Send a shorter message.",
            )
        tool = self._calls.manifest.find(str(message.params.get("name"))) if _has_method(value, "tools/call") else None
        if tool is not None and not self._calls.manifest.permits(state.caller.scopes, tool):
            return await self._respond_missing_scope(message, tool.name)
        if tool is None and not (
            _has_method(value, "resources/read") and self._resources.is_read_from_api(str(message.params.get("uri")))
        ):
            await self._charge_read(state)
        response = await (await self._get_server()).respond(scope, message)
        response.headers += [NO_STORE, *COMMON_HEADERS]
        return response

    async def _charge_read(self, state: RequestState) -> None:
        await self._pipeline.enforce_rate_limit(state)
        self._pipeline.shed_load(state)

    async def _respond_missing_scope(self, message: McpMessage, tool_name: str) -> Response:
        """Return the response to a call of a tool whose scope the credential lacks.

        It names the required scopes (RFC 6750 §3.1).
        """
        tool = self._calls.manifest.find(tool_name)
        assert tool is not None
        result = await self._calls.fetch_scope_error(message, tool)
        headers = [(b"content-type", result.headers.get("content-type", "").encode()), NO_STORE, *COMMON_HEADERS]
        if "retry-after" in result.headers:
            headers.append((b"retry-after", result.headers["retry-after"].encode()))
        if result.status == 403:
            scopes = _add_scope(message.state.caller, tool.scope)
            headers.append(
                (b"www-authenticate", _build_challenge(self._metadata_url, scopes, "insufficient_scope").encode())
            )
        return Response(result.status, headers, result.body)

    async def _get_server(self) -> "McpServer":
        """Return the MCP server; the first call imports the MCP library in a thread."""
        if self._server_task is None:
            self._server_task = asyncio.create_task(self._create_server(), name="mcp import")
        try:
            return await asyncio.shield(self._server_task)
        except ImportError:
            self._server_task = None
            raise

    async def _create_server(self) -> "McpServer":
        module = await asyncio.to_thread(import_module, "entrypoints.mcp.protocol")
        gc.freeze()  # imported objects are permanent, so the collector can skip them
        server: McpServer = module.McpServer(self._calls, self._resources, self._base_url)
        return server


def list_initial_scopes(manifest: ToolManifest) -> tuple[str, ...]:
    """Return the scopes of all read-only tools, which apps request at their first sign-in."""
    return tuple(sorted({tool.scope for tool in manifest if tool.is_read_only and tool.scope}))


def _add_scope(caller: Principal, missing: str | None) -> tuple[str, ...]:
    """Return the scopes that a new token needs: the caller's scopes and the missing scope."""
    return tuple(sorted(caller.scopes | ({missing} if missing else set())))


def _build_challenge(metadata_url: str, scopes: tuple[str, ...], error: str = "") -> str:
    error_part = f'error="{error}", ' if error else ""
    return f'Bearer {error_part}resource_metadata="{metadata_url}", scope="{" ".join(scopes)}"'


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= MAX_ID_CHARS


def _has_method(value: Mapping[str, Any], method: str) -> bool:
    return value.get("method") == method


def _build_json_rpc_error(code: int, detail: str) -> Response:
    """Return a JSON-RPC error response without a message ID, for a message that cannot be read."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": detail}}
    return Response(400, [JSON, NO_STORE, *COMMON_HEADERS], msgspec.json.encode(error))
