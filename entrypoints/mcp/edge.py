"""ASGI application at /mcp; requests are authenticated and limited like API requests before the protocol library reads them."""

import asyncio
import gc
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from adapters.wire.resource import Body
from domain.access.model import Principal
from domain.agents.usecases import ToolManifest
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import (
    AuthenticationRequired,
    InvalidRequest,
    MethodNotAllowed,
    PermissionDenied,
    Unavailable,
    UnsupportedMediaType,
)
from entrypoints.http.addresses import address_of
from entrypoints.http.body import SMALL, IncomingBody
from entrypoints.http.checks import RequestState, choose_mode, is_json
from entrypoints.http.exchange import COMMON, JSON, NO_STORE, Response, from_scope
from entrypoints.http.fast_path import send_response
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.problems import Problems
from entrypoints.http.representations import metadata_address
from entrypoints.mcp.calls import VIA, Calls, Message
from entrypoints.mcp.resources import Resources
from entrypoints.operations.codes import CODES
from entrypoints.operations.tools import manifest_of
from entrypoints.operations.validation import Validator

_PORTS = {"http": 80, "https": 443}


class OwnOrigin:
    """The service's own origin. A service on a loopback address accepts all names of this machine."""

    def __init__(self, base_url: str) -> None:
        self._own = urlsplit(base_url)
        self._local = _is_loopback(self._own.hostname)

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Check Origin and Host. Raises PermissionDenied for another origin, or a foreign host name of a local service."""
        for name, value in headers:
            text = value.decode("latin-1")
            if name == b"origin" and not self._is_own(_split(text)):
                raise PermissionDenied("Pages of other origins must not call this endpoint. Call it from a program.")
            if name == b"host" and self._local and not _is_loopback(_split(f"//{text}").hostname):
                raise PermissionDenied(
                    "This service accepts local requests only. Call it as 127.0.0.1 or localhost. To serve other machines, the operator sets "
                    "JOINERY_BASE_URL."
                )

    def _is_own(self, value: SplitResult) -> bool:
        if value.scheme != self._own.scheme or _port(value) != _port(self._own):
            return False
        return value.hostname == self._own.hostname or (self._local and _is_loopback(value.hostname))


def _split(text: str) -> SplitResult:
    """Parse an origin; return an empty result for a malformed one."""
    try:
        parts = urlsplit(text.strip())
        _ = parts.port, parts.hostname
    except ValueError:
        return urlsplit("")
    return parts


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)


def _is_loopback(host: str | None) -> bool:
    address = address_of(host or "")
    return host == "localhost" or (address is not None and address.is_loopback)


if TYPE_CHECKING:
    from entrypoints.mcp.protocol import Protocol

PATH = "/mcp"
LIMIT = Body.LIMIT
"""Maximum bytes of a message."""
SECONDS = 90.0
"""Maximum seconds of a message: longer than any operation that waits."""
LONGEST_ID = 256
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_ANY_JSON = Validator({})


class McpEdge:
    """ASGI application that serves /mcp."""

    def __init__(self, pipeline: Pipeline, base_url: str, docs_url: str) -> None:
        self._pipeline, self._base_url = pipeline, base_url.rstrip("/")
        manifest: ToolManifest = pipeline.services.get("agents") or manifest_of(pipeline.table)
        self._calls = Calls(pipeline, manifest)
        self._resources = Resources(self._calls, CODES, docs_url)
        self._origin = OwnOrigin(base_url)
        self._admission = ConcurrencyLimit(512, 64, noun="calls in hand over MCP")
        self.scopes = scopes_needed(manifest)
        metadata = metadata_address(self._base_url, PATH)
        self._problems = Problems(docs_url, base_url, _challenge(metadata, self.scopes))
        self._metadata = metadata
        self._protocol: asyncio.Task[Protocol] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        body = IncomingBody(receive)
        request = from_scope(scope, body.read)
        response = await self._pipeline.attend(request, lambda state: self._answer(state, scope), place=PATH, via=VIA)
        await send_response(response, body.receive, body.answering(send))

    async def stop(self) -> None:
        """Stop the protocol library, at the end of the process."""
        if self._protocol is not None:
            await (await self._protocol).stop()

    async def _answer(self, state: RequestState, scope: Mapping[str, Any]) -> Response:
        self._origin.check(scope["headers"])
        if state.request.method == "OPTIONS":
            return Response(204, [*COMMON, (b"allow", b"POST, OPTIONS")])
        try:
            await self._authenticate(state)
        except AuthenticationRequired as error:
            state.error_code = error.code
            return self._problems.answer(error, state.request_id)
        if state.request.method != "POST":
            raise MethodNotAllowed(
                "This MCP server supports POST only, without sessions and separate streams.",
                extra={"allow": "POST, OPTIONS"},
            )
        if not is_json(state.request.headers.get("content-type", "")):
            raise UnsupportedMediaType
        with self._admission.holding(state.caller.tenant.org):
            raw = await self._pipeline.parameters.received(state, LIMIT)
            try:
                async with asyncio.timeout(SECONDS):
                    return await self._process(state, scope, raw)
            except TimeoutError:
                raise Unavailable(
                    f"The call took more than {SECONDS:g} s and was cancelled. It may have been executed."
                ) from None

    async def _authenticate(self, state: RequestState) -> None:
        """Set the caller and the mode. Raises AuthenticationRequired."""
        pending = self._pipeline.authenticate(state)
        if pending is not None:
            await pending
        choose_mode(state)

    async def _process(self, state: RequestState, scope: Mapping[str, Any], raw: bytes) -> Response:
        """Parse and execute the message; one that does not become an API request is charged as a read."""
        try:
            value, _ = await self._pipeline.parameters.parsed(state, raw, Body.VALUES, _ANY_JSON)
        except InvalidRequest as error:
            await self._charge(state)
            return _json_rpc_error(PARSE_ERROR, error.detail)
        if not isinstance(value, dict) or not _is_id(value.get("id", 0)):
            await self._charge(state)
            return _json_rpc_error(
                INVALID_REQUEST, "Send a single JSON-RPC message with an ID of at most 256 characters."
            )
        message = Message(state, raw, value)
        if len(message.bare()) > SMALL:
            await self._charge(state)
            return _json_rpc_error(
                INVALID_REQUEST, f"Only the arguments of a call can be long. The rest has at most {SMALL} bytes."
            )
        tool = self._calls.manifest.find(str(message.params.get("name"))) if _has_method(value, "tools/call") else None
        if tool is not None and not self._calls.manifest.permits(state.caller.scopes, tool):
            return await self._insufficient(message, tool.name)
        if tool is None and not (
            _has_method(value, "resources/read") and self._resources.asks_the_api(str(message.params.get("uri")))
        ):
            await self._charge(state)
        response = await (await self._get_protocol()).answer(scope, message)
        response.headers += [NO_STORE, *COMMON]
        return response

    async def _charge(self, state: RequestState) -> None:
        await self._pipeline.charge(state)
        self._pipeline.shed(state)

    async def _insufficient(self, message: Message, name: str) -> Response:
        """Return the response for a tool beyond the credential's scopes, with the required scopes (RFC 6750 §3.1)."""
        tool = self._calls.manifest.find(name)
        assert tool is not None
        outcome = await self._calls.refuse(message, tool)
        headers = [(b"content-type", outcome.headers.get("content-type", "").encode()), NO_STORE, *COMMON]
        if "retry-after" in outcome.headers:
            headers.append((b"retry-after", outcome.headers["retry-after"].encode()))
        if outcome.status == 403:
            scopes = _required_scopes(message.state.caller, tool.scope)
            headers.append((b"www-authenticate", _challenge(self._metadata, scopes, "insufficient_scope").encode()))
        return Response(outcome.status, headers, outcome.body)

    async def _get_protocol(self) -> "Protocol":
        """Return the protocol library's part, imported in a thread at its first use."""
        if self._protocol is None:
            self._protocol = asyncio.create_task(self._create_protocol(), name="mcp import")
        try:
            return await asyncio.shield(self._protocol)
        except ImportError:
            self._protocol = None
            raise

    async def _create_protocol(self) -> "Protocol":
        module = await asyncio.to_thread(import_module, "entrypoints.mcp.protocol")
        gc.freeze()  # imported objects are permanent, so the collector can skip them
        protocol: Protocol = module.Protocol(self._calls, self._resources, self._base_url)
        return protocol


def scopes_needed(manifest: ToolManifest) -> tuple[str, ...]:
    """Return the scopes requested at first sign-in: those of all read-only tools."""
    return tuple(sorted({tool.scope for tool in manifest if tool.read_only and tool.scope}))


def _required_scopes(caller: Principal, missing: str | None) -> tuple[str, ...]:
    """Return all scopes that a new token needs: the present ones and the missing one."""
    return tuple(sorted(caller.scopes | ({missing} if missing else set())))


def _challenge(metadata: str, scopes: tuple[str, ...], error: str = "") -> str:
    error_part = f'error="{error}", ' if error else ""
    return f'Bearer {error_part}resource_metadata="{metadata}", scope="{" ".join(scopes)}"'


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= LONGEST_ID


def _has_method(value: Mapping[str, Any], method: str) -> bool:
    return value.get("method") == method


def _json_rpc_error(code: int, detail: str) -> Response:
    """Return a JSON-RPC error for a message without a usable ID."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": detail}}
    return Response(400, [JSON, NO_STORE, *COMMON], msgspec.json.encode(error))
