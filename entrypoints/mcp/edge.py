"""/mcp on ASGI: who calls, from where and how much may come is judged as for any request of the API, before the protocol sees anything."""

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
    """The service's own origin. One that runs on this machine alone goes by all names of this machine."""

    def __init__(self, base_url: str) -> None:
        self._own = urlsplit(base_url)
        self._local = _is_loopback(self._own.hostname)

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises PermissionDenied for a page of another origin, and for a foreign name of a service on this machine alone."""
        for name, value in headers:
            text = value.decode("latin-1")
            if name == b"origin" and not self._is_own(_split(text)):
                raise PermissionDenied("Pages of other sites may not call this address; call it from a program.")
            if name == b"host" and self._local and not _is_loopback(_split(f"//{text}").hostname):
                raise PermissionDenied(
                    "This service is meant for this machine alone; call it as 127.0.0.1 or localhost. An operator who serves others "
                    "names its address in JOINERY_BASE_URL."
                )

    def _is_own(self, given: SplitResult) -> bool:
        if given.scheme != self._own.scheme or _port(given) != _port(self._own):
            return False
        return given.hostname == self._own.hostname or (self._local and _is_loopback(given.hostname))


def _split(text: str) -> SplitResult:
    """The parts of an origin; of what is none, nothing."""
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
"""Bytes of a message."""
SECONDS = 90.0
"""How long a message may take: longer than any operation that waits."""
LONGEST_ID = 256
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_ANY = Validator({})


class McpEdge:
    """The ASGI application of /mcp."""

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
        """Answer one request."""
        body = IncomingBody(receive)
        request = from_scope(scope, body.read)
        response = await self._pipeline.attend(request, lambda state: self._answer(state, scope), place=PATH, via=VIA)
        await send_response(response, body.receive, body.answering(send))

    async def stop(self) -> None:
        """End with the process."""
        if self._protocol is not None:
            await (await self._protocol).stop()

    async def _answer(self, state: RequestState, scope: Mapping[str, Any]) -> Response:
        self._origin.check(scope["headers"])
        if state.request.method == "OPTIONS":
            return Response(204, [*COMMON, (b"allow", b"POST, OPTIONS")])
        try:
            await self._known(state)
        except AuthenticationRequired as error:
            state.error_code = error.code
            return self._problems.answer(error, state.request_id)
        if state.request.method != "POST":
            raise MethodNotAllowed(
                "MCP comes by POST here: there are no sessions, and no streams of their own.",
                extra={"allow": "POST, OPTIONS"},
            )
        if not is_json(state.request.headers.get("content-type", "")):
            raise UnsupportedMediaType
        with self._admission.holding(state.caller.tenant.org):
            raw = await self._pipeline.parameters.received(state, LIMIT)
            try:
                async with asyncio.timeout(SECONDS):
                    return await self._take(state, scope, raw)
            except TimeoutError:
                raise Unavailable(
                    f"The call took more than {SECONDS:g} s and was given up; it may have been done."
                ) from None

    async def _known(self, state: RequestState) -> None:
        """Who calls, and in which mode. Raises AuthenticationRequired."""
        pending = self._pipeline.authenticate(state)
        if pending is not None:
            await pending
        choose_mode(state)

    async def _take(self, state: RequestState, scope: Mapping[str, Any], raw: bytes) -> Response:
        """Read the message and have it answered; whatever does not end as a request of the API is charged as a read."""
        try:
            value, _ = await self._pipeline.parameters.parsed(state, raw, Body.VALUES, _ANY)
        except InvalidRequest as error:
            await self._charge(state)
            return _failed(PARSE_ERROR, error.detail)
        if not isinstance(value, dict) or not _is_id(value.get("id", 0)):
            await self._charge(state)
            return _failed(
                INVALID_REQUEST, "Send one JSON-RPC message at a time, with an id of at most 256 characters."
            )
        message = Message(state, raw, value)
        if len(message.bare()) > SMALL:
            await self._charge(state)
            return _failed(
                INVALID_REQUEST, f"Only the arguments of a call may be long; the rest has {SMALL} bytes at most."
            )
        tool = self._calls.manifest.find(str(message.params.get("name"))) if _is(value, "tools/call") else None
        if tool is not None and not self._calls.manifest.permits(state.caller.scopes, tool):
            return await self._insufficient(message, tool.name)
        if tool is None and not (
            _is(value, "resources/read") and self._resources.asks_the_api(str(message.params.get("uri")))
        ):
            await self._charge(state)
        response = await (await self._loaded()).answer(scope, message)
        response.headers += [NO_STORE, *COMMON]
        return response

    async def _charge(self, state: RequestState) -> None:
        await self._pipeline.charge(state)
        self._pipeline.shed(state)

    async def _insufficient(self, message: Message, name: str) -> Response:
        """A tool beyond the credential's scopes: what an app has to ask its person for (RFC 6750 §3.1)."""
        tool = self._calls.manifest.find(name)
        assert tool is not None
        outcome = await self._calls.refuse(message, tool)
        headers = [(b"content-type", outcome.headers.get("content-type", "").encode()), NO_STORE, *COMMON]
        if "retry-after" in outcome.headers:
            headers.append((b"retry-after", outcome.headers["retry-after"].encode()))
        if outcome.status == 403:
            wanted = _wanted(message.state.caller, tool.scope)
            headers.append((b"www-authenticate", _challenge(self._metadata, wanted, "insufficient_scope").encode()))
        return Response(outcome.status, headers, outcome.body)

    async def _loaded(self) -> "Protocol":
        """The protocol's part, imported beside the event loop by whoever comes first."""
        if self._protocol is None:
            self._protocol = asyncio.create_task(self._load(), name="mcp import")
        try:
            return await asyncio.shield(self._protocol)
        except ImportError:
            self._protocol = None
            raise

    async def _load(self) -> "Protocol":
        module = await asyncio.to_thread(import_module, "entrypoints.mcp.protocol")
        gc.freeze()  # what was imported stays, and need not be looked at again and again
        made: Protocol = module.Protocol(self._calls, self._resources, self._base_url)
        return made


def scopes_needed(manifest: ToolManifest) -> tuple[str, ...]:
    """What signing in asks for at first: the scopes of all tools that only read."""
    return tuple(sorted({tool.scope for tool in manifest if tool.read_only and tool.scope}))


def _wanted(caller: Principal, missing: str | None) -> tuple[str, ...]:
    """All scopes that a new token needs, once: those it had, and the one it lacked."""
    return tuple(sorted(caller.scopes | ({missing} if missing else set())))


def _challenge(metadata: str, scopes: tuple[str, ...], error: str = "") -> str:
    said = f'error="{error}", ' if error else ""
    return f'Bearer {said}resource_metadata="{metadata}", scope="{" ".join(scopes)}"'


def _is_id(given: object) -> bool:
    return isinstance(given, str | int) and not isinstance(given, bool) and len(str(given)) <= LONGEST_ID


def _is(value: Mapping[str, Any], method: str) -> bool:
    return value.get("method") == method


def _failed(code: int, detail: str) -> Response:
    """What JSON-RPC answers to what is no message of its own."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": detail}}
    return Response(400, [JSON, NO_STORE, *COMMON], msgspec.json.encode(error))
