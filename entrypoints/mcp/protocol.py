"""MCP server based on the official MCP library, which is large and therefore imported with the first message."""

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
from entrypoints.clients.distribution import VERSION
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.tool_calls import encode_json
from entrypoints.mcp import resources as resource_module
from entrypoints.mcp.calls import ApiResult, McpMessage, ToolExecutor
from entrypoints.mcp.resources import Resources, ResourceText

CACHED_METHOD = "tools/list"
"""Method of the MCP messages whose responses are cached."""
MAX_CACHED_RESPONSES = 32
"""Maximum number of cached responses; the least recently used response is removed."""
MAX_CACHED_REQUEST_BYTES = 4096
"""Maximum bytes of a request whose response is cached."""
_RELEVANT_HEADERS = (b"accept", b"content-type", b"mcp-")
"""Prefixes of the headers on which the response depends."""


class _CachedResult(msgspec.Struct):
    """Encoded result in a JSON-RPC response; empty if the response has no result."""

    result: msgspec.Raw = msgspec.Raw()


class ResponseCache:
    """Cache of responses to `tools/list` messages, by everything on which a response depends except the message's ID."""

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, tuple[HeaderList, bytes]] = OrderedDict()

    @staticmethod
    def build_key(
        message: McpMessage, headers: Iterable[tuple[bytes, bytes]], tool_names: Iterable[str]
    ) -> bytes | None:
        """Return the cache key for the response to a message; None if the response must not be cached.

        Args:
            message: The message.
            headers: The headers of the HTTP request that contains the message.
            tool_names: The names of the tools that the caller may call.
        """
        if message.value.get("method") != CACHED_METHOD or "id" not in message.value:
            return None
        request = {name: value for name, value in message.value.items() if name != "id"}
        relevant = [
            [name.decode(), value.decode("latin-1")] for name, value in headers if name.startswith(_RELEVANT_HEADERS)
        ]
        cache_key = encode_json([request, relevant, list(tool_names)])
        return cache_key if len(message.raw) <= MAX_CACHED_REQUEST_BYTES else None

    def find(self, key: bytes | None, message: Mapping[str, Any]) -> Response | None:
        """Return the response cached under the key, with the ID of `message`.

        None if nothing is cached or `key` is None.
        """
        entry = self._entries.get(key) if key is not None else None
        if entry is None or key is None:
            return None
        self._entries.move_to_end(key)
        headers, result = entry
        return Response(
            200, list(headers), b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode_json(message["id"]), result)
        )

    def store(self, key: bytes | None, response: Response) -> None:
        """Cache the response under the key if it is successful and `key` is not None."""
        if key is None or response.status != 200:
            return
        result = bytes(msgspec.json.decode(response.body, type=_CachedResult).result)
        if result:
            self._entries[key] = (list(response.headers), result)
            if len(self._entries) > MAX_CACHED_RESPONSES:
                self._entries.popitem(last=False)


TOOLS_PER_PAGE = 20
"""Number of tools on a page of the tool list."""
NOT_FOUND = -32002
"""Error code for an unknown resource up to protocol version 2025-11-25; later versions use INVALID_PARAMS."""
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


class McpServer:
    """Stateless MCP server for protocol version 2026-07-28 and earlier versions."""

    def __init__(self, calls: ToolExecutor, resources: Resources, base_url: str) -> None:
        self._calls, self._resources = calls, resources
        self._cache = ResponseCache()
        self._tools = {tool.name: _to_mcp_tool(tool) for tool in calls.manifest}
        server: Server[Any] = Server(
            "joinery",
            version=VERSION,
            title="Joinery",
            instructions=INSTRUCTIONS,
            website_url=f"{base_url}/docs/mcp",
            cache_hints=_HINTS,
            get_tool_input_schema=self._find_input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_completion=self._complete_argument,
        )
        server.middleware.clear()  # the pipeline traces operations
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._ready, self._stopped = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="mcp")

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._stopped.wait()

    async def stop(self) -> None:
        """Stop the server; messages in progress are abandoned."""
        self._stopped.set()
        await asyncio.gather(self._task, return_exceptions=True)

    async def respond(self, scope: Mapping[str, Any], message: McpMessage) -> Response:
        """Return the HTTP response to a message, from the cache or the MCP library.

        `scope` is the ASGI scope of its request.
        """
        key = self._cache.build_key(
            message, scope["headers"], (tool.name for tool in self._list_permitted_tools(message))
        )
        response = self._cache.find(key, message.value)
        if response is None:
            response = await self._call_library(scope, message)
            self._cache.store(key, response)
        return response

    async def _call_library(self, scope: Mapping[str, Any], message: McpMessage) -> Response:
        await self._ready.wait()
        sent: list[Any] = []
        messages = [{"type": "http.request", "body": message.encode_for_library(), "more_body": False}]

        async def receive() -> Any:
            if not messages:
                await asyncio.Event().wait()  # a disconnect of the client changes nothing
            return messages.pop()

        async def send(event: Any) -> None:
            sent.append(event)

        await self._manager.handle_request({**scope, _KEY: message}, receive, send)
        headers: HeaderList = [header for header in sent[0]["headers"] if header[0] != b"content-length"]
        return Response(int(sent[0]["status"]), headers, b"".join(event.get("body", b"") for event in sent[1:]))

    def _find_input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._calls.manifest.find(name)
        return tool.input_schema if tool is not None else None

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        names = [tool.name for tool in self._list_permitted_tools(_get_message(context))]
        start = _parse_offset(params.cursor if params is not None else None)
        if start > len(names):
            raise MCPError(types.INVALID_PARAMS, "The cursor does not belong to this list. Start without a cursor.")
        page = [self._tools[name] for name in names[start : start + TOOLS_PER_PAGE]]
        return types.ListToolsResult(
            tools=page,
            next_cursor=_format_cursor(start + TOOLS_PER_PAGE) if start + TOOLS_PER_PAGE < len(names) else None,
        )

    def _list_permitted_tools(self, message: McpMessage) -> tuple[AgentTool, ...]:
        """Return the tools that the tool list shows to the caller.

        An API key sees the tools that its scopes permit. An app sees the tools that the user's role permits, because
        the app can request missing scopes.
        """
        caller = message.state.caller
        return self._calls.manifest.list_permitted(caller.scopes if caller.has_fixed_mode else ROLES[caller.role])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._calls.manifest.find(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        return _to_mcp_result(await self._calls.call_tool(_get_message(context), tool))

    async def _list_resources(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        categories = types.Resource(
            uri=resource_module.CATEGORIES, name="categories", title="Categories", mime_type=resource_module.JSON,
            description="All categories of the product taxonomy.",
        )  # fmt: skip
        errors = types.Resource(
            uri=resource_module.ERRORS, name="errors", title="Error codes", mime_type=resource_module.MARKDOWN,
            description="List of all error codes.",
        )  # fmt: skip
        return types.ListResourcesResult(resources=[categories, errors])

    async def _list_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        health = types.ResourceTemplate(
            uri_template=resource_module.SOURCE_HEALTH, name="source_health", title="Health of a source", mime_type=resource_module.JSON,
            description="Status of a source with the reason, and the freshness of each stream.",
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
        resource = await self._resources.read(_get_message(context), uri)
        if isinstance(resource, ResourceText):
            contents = types.TextResourceContents(uri=uri, mime_type=resource.media_type, text=resource.text)
            return types.ReadResourceResult(contents=[contents])
        missing = types.INVALID_PARAMS if context.protocol_version >= _NEWEST else NOT_FOUND
        if resource is None:
            raise MCPError(missing, "This resource does not exist.", {"uri": uri[:500]})
        problem = msgspec.json.decode(resource.body)
        raise MCPError(missing if resource.status == 404 else types.INVALID_REQUEST, problem["detail"], problem)

    async def _complete_argument(self, _context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        is_code = getattr(params.ref, "uri", None) == resource_module.ERROR and params.argument.name == "code"
        values = self._resources.list_code_names(params.argument.value) if is_code else []
        return types.CompleteResult(completion=types.Completion(values=values[:100], total=len(values), has_more=False))


def _get_message(context: Context) -> McpMessage:
    if context.request is None:
        raise LookupError("the MCP message was not received in an HTTP request")
    message: McpMessage = context.request.scope[_KEY]
    return message


def _to_mcp_tool(tool: AgentTool) -> types.Tool:
    """Convert a tool to the MCP library's type."""
    # Annotations have no field for a required approval, so `_meta` contains it.
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.is_read_only,
        destructive_hint=tool.is_destructive,
        idempotent_hint=tool.is_idempotent,
        open_world_hint=tool.contacts_external_systems,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema) if tool.output_schema is not None else None,
        annotations=hints,
        _meta={
            "joinery/approval": tool.requires_approval,
            "joinery/operation": tool.operation,
            "joinery/scope": tool.scope,
        },
    )


def _to_mcp_result(result: ApiResult) -> types.CallToolResult:
    """Convert the API's response to the MCP library's type, which contains the body both as JSON values and as text."""
    structured = msgspec.json.decode(result.body) if result.body else {"status": result.status}
    text = result.body.decode() if result.body else "Done."
    meta: dict[str, Any] = {f"joinery/{name.replace('-', '_')}": value for name, value in result.headers.items()}
    meta |= {"joinery/status": result.status} | (
        {"joinery/idempotency_key": result.idempotency_key} if result.idempotency_key else {}
    )
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=structured, is_error=result.is_error, _meta=meta
    )


def _format_cursor(start: int) -> str:
    return urlsafe_b64encode(b"tools:%d" % start).decode().rstrip("=")


def _parse_offset(cursor: str | None) -> int:
    """Return the offset in a cursor of the tool list, 0 for None. Raises MCPError for a cursor of another list."""
    if cursor is None:
        return 0
    with contextlib.suppress(ValueError):
        word, _, number = urlsafe_b64decode(cursor[:64] + "=" * (-len(cursor) % 4)).partition(b":")
        if word == b"tools" and number.isdigit() and len(number) < 6:
            return int(number)
    raise MCPError(types.INVALID_PARAMS, "The cursor does not belong to this list. Start without a cursor.")
