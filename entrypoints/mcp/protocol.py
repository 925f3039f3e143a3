"""MCP protocol on the official package; imported with the first message, because the package is large."""

import asyncio
import contextlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import mcp_types as types
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from domain.access.model import ROLES
from domain.agents.model import AgentTool
from entrypoints.clients.shipped import VERSION
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.mcp import resources as resource_module
from entrypoints.mcp.calls import Calls, Message, Outcome, encode
from entrypoints.mcp.resources import Resources, Text

METHOD = "tools/list"
MOST_KEPT = 32
LONGEST = 4096
"""Maximum bytes of a cached request; clients identify themselves and send little else."""
_RELEVANT_HEADERS = (b"accept", b"content-type", b"mcp-")
"""Prefixes of the headers on which the response depends."""


class _CachedResult(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw()


class Remembered:
    """Cache of responses, keyed by everything on which they depend except the message ID."""

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, tuple[HeaderList, bytes]] = OrderedDict()

    @staticmethod
    def key(message: Message, headers: Iterable[tuple[bytes, bytes]], offered: Iterable[str]) -> bytes | None:
        """Return the cache key of a message; None if its response is not cached."""
        if message.value.get("method") != METHOD or "id" not in message.value:
            return None
        request = {name: value for name, value in message.value.items() if name != "id"}
        relevant = [
            [name.decode(), value.decode("latin-1")] for name, value in headers if name.startswith(_RELEVANT_HEADERS)
        ]
        cache_key = encode([request, relevant, list(offered)])
        return cache_key if len(message.raw) <= LONGEST else None

    def find(self, key: bytes | None, message: Mapping[str, Any]) -> Response | None:
        """Return the cached response under the key, with the message's ID, or None."""
        entry = self._entries.get(key) if key is not None else None
        if entry is None or key is None:
            return None
        self._entries.move_to_end(key)
        headers, result = entry
        return Response(200, list(headers), b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(message["id"]), result))

    def keep(self, key: bytes | None, response: Response) -> None:
        """Cache a successful response."""
        if key is None or response.status != 200:
            return
        result = bytes(msgspec.json.decode(response.body, type=_CachedResult).result)
        if result:
            self._entries[key] = (list(response.headers), result)
            if len(self._entries) > MOST_KEPT:
                self._entries.popitem(last=False)


PAGE = 20
"""Tools per page."""
NOT_FOUND = -32002
"""Error code for an unknown resource up to version 2025-11-25; later versions use INVALID_PARAMS."""
_KEY = "joinery.mcp"
_HINTS: Final[Mapping[Any, CacheHint]] = {
    "tools/list": CacheHint(300_000, "private"),
    "resources/list": CacheHint(300_000, "public"),
    "resources/templates/list": CacheHint(300_000, "public"),
    "server/discover": CacheHint(300_000, "public"),
}
_NEWEST = "2026-07-28"
INSTRUCTIONS = (
    "Joinery joins furniture vendors' feeds into one catalogue of products, variants and offers. Each tool is an operation of its API, "
    "with your credential's permissions and mode (live or test data). Lists are paged: while has_more is true, send next_cursor as "
    "starting_after. Prices are in minor units of their currency. A failed call returns an error with a code; "
    "joinery://errors/{code} describes its remedy. Writes accept dry_run: `explain` previews the changes. Tools marked for approval "
    "require a person's confirmation of each call. To retry a call whose result is unknown, send the same idempotency_key."
)

Context = ServerRequestContext[Any, Any]


class Protocol:
    """Stateless server of both protocol generations: 2026-07-28 without a handshake, and earlier ones with one."""

    def __init__(self, calls: Calls, resources: Resources, base_url: str) -> None:
        self._calls, self._resources = calls, resources
        self._cache = Remembered()
        self._tools = {tool.name: _to_mcp_tool(tool) for tool in calls.manifest}
        server: Server[Any] = Server(
            "joinery",
            version=VERSION,
            title="Joinery",
            instructions=INSTRUCTIONS,
            website_url=f"{base_url}/docs/mcp",
            cache_hints=_HINTS,
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_completion=self._complete,
        )
        server.middleware.clear()  # the pipeline traces operations
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._ready, self._stopped = asyncio.Event(), asyncio.Event()
        self._running = asyncio.create_task(self._run(), name="mcp")

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._stopped.wait()

    async def stop(self) -> None:
        """Stop; messages in progress are abandoned."""
        self._stopped.set()
        await asyncio.gather(self._running, return_exceptions=True)

    async def answer(self, scope: Mapping[str, Any], message: Message) -> Response:
        """Return the HTTP response to a message."""
        key = self._cache.key(message, scope["headers"], (tool.name for tool in self._offered(message)))
        response = self._cache.find(key, message.value)
        if response is None:
            response = await self._call_library(scope, message)
            self._cache.keep(key, response)
        return response

    async def _call_library(self, scope: Mapping[str, Any], message: Message) -> Response:
        await self._ready.wait()
        sent: list[Any] = []
        pending = [{"type": "http.request", "body": message.bare(), "more_body": False}]

        async def receive() -> Any:
            if not pending:
                await asyncio.Event().wait()  # a disconnect of the client changes nothing
            return pending.pop()

        async def send(part: Any) -> None:
            sent.append(part)

        await self._manager.handle_request({**scope, _KEY: message}, receive, send)
        headers: HeaderList = [pair for pair in sent[0]["headers"] if pair[0] != b"content-length"]
        return Response(int(sent[0]["status"]), headers, b"".join(part.get("body", b"") for part in sent[1:]))

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._calls.manifest.find(name)
        return tool.input_schema if tool is not None else None

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        names = [tool.name for tool in self._offered(_message(context))]
        start = _offset_of(params.cursor if params is not None else None)
        if start > len(names):
            raise MCPError(types.INVALID_PARAMS, "The cursor does not belong to this list. Start without a cursor.")
        page = [self._tools[name] for name in names[start : start + PAGE]]
        return types.ListToolsResult(
            tools=page, next_cursor=_cursor_of(start + PAGE) if start + PAGE < len(names) else None
        )

    def _offered(self, message: Message) -> tuple[AgentTool, ...]:
        """Return the tools that an API key's scopes permit; for an app, those that its user's role permits, as it can request them."""
        caller = message.state.caller
        return self._calls.manifest.permitted(caller.scopes if caller.mode_fixed else ROLES[caller.role])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._calls.manifest.find(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        return _to_mcp_result(await self._calls.call(_message(context), tool))

    async def _list_resources(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        categories = types.Resource(
            uri=resource_module.CATEGORIES, name="categories", title="Categories", mime_type=resource_module.JSON,
            description="The whole product taxonomy.",
        )  # fmt: skip
        errors = types.Resource(
            uri=resource_module.ERRORS, name="errors", title="Error codes", mime_type=resource_module.MARKDOWN,
            description="All error codes.",
        )  # fmt: skip
        return types.ListResourcesResult(resources=[categories, errors])

    async def _list_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        health = types.ResourceTemplate(
            uri_template=resource_module.SOURCE_HEALTH, name="source_health", title="Health of a source", mime_type=resource_module.JSON,
            description="Status, its reason, and the freshness of each stream.",
        )  # fmt: skip
        error = types.ResourceTemplate(
            uri_template=resource_module.ERROR, name="error", title="Error code", mime_type=resource_module.MARKDOWN,
            description="Meaning and remedy of an error code.",
        )  # fmt: skip
        return types.ListResourceTemplatesResult(resource_templates=[health, error])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        resource = await self._resources.read(_message(context), uri)
        if isinstance(resource, Text):
            contents = types.TextResourceContents(uri=uri, mime_type=resource.kind, text=resource.text)
            return types.ReadResourceResult(contents=[contents])
        missing = types.INVALID_PARAMS if context.protocol_version >= _NEWEST else NOT_FOUND
        if resource is None:
            raise MCPError(missing, "This resource does not exist.", {"uri": uri[:500]})
        problem = msgspec.json.decode(resource.body)
        raise MCPError(missing if resource.status == 404 else types.INVALID_REQUEST, problem["detail"], problem)

    async def _complete(self, _context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        is_code = getattr(params.ref, "uri", None) == resource_module.ERROR and params.argument.name == "code"
        values = self._resources.codes_like(params.argument.value) if is_code else []
        return types.CompleteResult(completion=types.Completion(values=values[:100], total=len(values), has_more=False))


def _message(context: Context) -> Message:
    if context.request is None:
        raise LookupError("no request")
    message: Message = context.request.scope[_KEY]
    return message


def _to_mcp_tool(tool: AgentTool) -> types.Tool:
    """Convert a tool. The approval mark is in `_meta`, as the annotations have no field for it."""
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.read_only,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.idempotent,
        open_world_hint=tool.outside,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema) if tool.output_schema is not None else None,
        annotations=hints,
        _meta={"joinery/approval": tool.approval, "joinery/operation": tool.operation, "joinery/scope": tool.scope},
    )


def _to_mcp_result(outcome: Outcome) -> types.CallToolResult:
    """Convert an outcome: the response as values and as text; a problem is marked as an error."""
    structured = msgspec.json.decode(outcome.body) if outcome.body else {"status": outcome.status}
    text = outcome.body.decode() if outcome.body else "Done."
    meta: dict[str, Any] = {f"joinery/{name.replace('-', '_')}": value for name, value in outcome.headers.items()}
    meta |= {"joinery/status": outcome.status} | ({"joinery/idempotency_key": outcome.key} if outcome.key else {})
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=structured, is_error=outcome.refused, _meta=meta
    )


def _cursor_of(start: int) -> str:
    return urlsafe_b64encode(b"tools:%d" % start).decode().rstrip("=")


def _offset_of(cursor: str | None) -> int:
    """Return the offset of a cursor. Raises MCPError for a cursor of another list."""
    if cursor is None:
        return 0
    with contextlib.suppress(ValueError):
        word, _, number = urlsafe_b64decode(cursor[:64] + "=" * (-len(cursor) % 4)).partition(b":")
        if word == b"tools" and number.isdigit() and len(number) < 6:
            return int(number)
    raise MCPError(types.INVALID_PARAMS, "The cursor does not belong to this list. Start without a cursor.")
