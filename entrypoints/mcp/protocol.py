"""The protocol itself, by the official package: messages in, messages out. Imported with the first message, for it is large."""

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
from entrypoints.mcp import resources as told
from entrypoints.mcp.calls import Calls, Message, Outcome, encode
from entrypoints.mcp.resources import Resources, Text

METHOD = "tools/list"
MOST_KEPT = 32
LONGEST = 4096
"""Bytes of what is asked; clients say who they are, and little else."""
_ASKED_BY = (b"accept", b"content-type", b"mcp-")
"""Headers, by their beginnings, that the answer depends on."""


class _KeptAnswer(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw()


class Remembered:
    """Answers by all that they depend on; the id alone is each message's own."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[HeaderList, bytes]] = OrderedDict()

    @staticmethod
    def key(message: Message, headers: Iterable[tuple[bytes, bytes]], offered: Iterable[str]) -> bytes | None:
        """What the answer depends on; None for what is not remembered."""
        if message.value.get("method") != METHOD or "id" not in message.value:
            return None
        asked = {name: value for name, value in message.value.items() if name != "id"}
        told = [[name.decode(), value.decode("latin-1")] for name, value in headers if name.startswith(_ASKED_BY)]
        made = encode([asked, told, list(offered)])
        return made if len(message.raw) <= LONGEST else None

    def find(self, key: bytes | None, message: Mapping[str, Any]) -> Response | None:
        """The answer under that key, for this message."""
        known = self._known.get(key) if key is not None else None
        if known is None or key is None:
            return None
        self._known.move_to_end(key)
        headers, result = known
        return Response(200, list(headers), b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(message["id"]), result))

    def keep(self, key: bytes | None, response: Response) -> None:
        """Remember a good answer."""
        if key is None or response.status != 200:
            return
        result = bytes(msgspec.json.decode(response.body, type=_KeptAnswer).result)
        if result:
            self._known[key] = (list(response.headers), result)
            if len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)


PAGE = 20
"""Tools of a page."""
NOT_FOUND = -32002
"""What reading an unknown resource answers, through 2025-11-25; later it is INVALID_PARAMS."""
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
    "under your credential's permissions and in its mode (live data or the sandbox). Lists come a page at a time: while has_more is true, "
    "give next_cursor as starting_after. Money is in minor units of its currency. A refusal is an error with a code; "
    "joinery://errors/{code} says what to do. Writes take dry_run: `explain` shows what would change. Tools marked for approval need a "
    "person's word before each call. To repeat a call that may or may not have got through, give it the idempotency_key it had."
)

Context = ServerRequestContext[Any, Any]


class Protocol:
    """The server of both generations: 2026-07-28 without a handshake, and those before it with one; neither keeps a session."""

    def __init__(self, calls: Calls, resources: Resources, base_url: str) -> None:
        self._calls, self._resources = calls, resources
        self._remembered = Remembered()
        self._tools = {tool.name: _shown(tool) for tool in calls.manifest}
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
        server.middleware.clear()  # operations are traced by the pipeline
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._ready, self._over = asyncio.Event(), asyncio.Event()
        self._running = asyncio.create_task(self._run(), name="mcp")

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._over.wait()

    async def stop(self) -> None:
        """End; messages in hand are given up."""
        self._over.set()
        await asyncio.gather(self._running, return_exceptions=True)

    async def answer(self, scope: Mapping[str, Any], message: Message) -> Response:
        """The HTTP response to a message."""
        key = self._remembered.key(message, scope["headers"], (tool.name for tool in self._offered(message)))
        response = self._remembered.find(key, message.value)
        if response is None:
            response = await self._answered(scope, message)
            self._remembered.keep(key, response)
        return response

    async def _answered(self, scope: Mapping[str, Any], message: Message) -> Response:
        await self._ready.wait()
        sent: list[Any] = []
        unread = [{"type": "http.request", "body": message.bare(), "more_body": False}]

        async def receive() -> Any:
            if not unread:
                await asyncio.Event().wait()  # the client may leave: nothing is done differently for that
            return unread.pop()

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
        start = _start(params.cursor if params is not None else None)
        if start > len(names):
            raise MCPError(types.INVALID_PARAMS, "This cursor is none of this list; start without one.")
        page = [self._tools[name] for name in names[start : start + PAGE]]
        return types.ListToolsResult(
            tools=page, next_cursor=_cursor(start + PAGE) if start + PAGE < len(names) else None
        )

    def _offered(self, message: Message) -> tuple[AgentTool, ...]:
        """What a key's scopes permit; of an app that a person signed in to, what that person could let it do, for it may ask for more."""
        caller = message.state.caller
        return self._calls.manifest.permitted(caller.scopes if caller.mode_fixed else ROLES[caller.role])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._calls.manifest.find(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        return _result(await self._calls.call(_message(context), tool))

    async def _list_resources(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        categories = types.Resource(
            uri=told.CATEGORIES, name="categories", title="Categories", mime_type=told.JSON,
            description="The taxonomy that products are filed in, whole.",
        )  # fmt: skip
        errors = types.Resource(
            uri=told.ERRORS, name="errors", title="Error codes", mime_type=told.MARKDOWN,
            description="Every code that a refusal may have.",
        )  # fmt: skip
        return types.ListResourcesResult(resources=[categories, errors])

    async def _list_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        health = types.ResourceTemplate(
            uri_template=told.SOURCE_HEALTH, name="source_health", title="Health of a source", mime_type=told.JSON,
            description="Status, the reason for it, and how fresh each stream is.",
        )  # fmt: skip
        error = types.ResourceTemplate(
            uri_template=told.ERROR, name="error", title="Error code", mime_type=told.MARKDOWN,
            description="What a code means, and what to do.",
        )  # fmt: skip
        return types.ListResourceTemplatesResult(resource_templates=[health, error])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = await self._resources.read(_message(context), uri)
        if isinstance(found, Text):
            contents = types.TextResourceContents(uri=uri, mime_type=found.kind, text=found.text)
            return types.ReadResourceResult(contents=[contents])
        missing = types.INVALID_PARAMS if context.protocol_version >= _NEWEST else NOT_FOUND
        if found is None:
            raise MCPError(missing, "There is no such resource.", {"uri": uri[:500]})
        problem = msgspec.json.decode(found.body)
        raise MCPError(missing if found.status == 404 else types.INVALID_REQUEST, problem["detail"], problem)

    async def _complete(self, _context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        is_code = getattr(params.ref, "uri", None) == told.ERROR and params.argument.name == "code"
        values = self._resources.codes_like(params.argument.value) if is_code else []
        return types.CompleteResult(completion=types.Completion(values=values[:100], total=len(values), has_more=False))


def _message(context: Context) -> Message:
    if context.request is None:
        raise LookupError("no request")
    message: Message = context.request.scope[_KEY]
    return message


def _shown(tool: AgentTool) -> types.Tool:
    """A tool as it is listed. The mark of approval stands beside the hints, which have no word for it."""
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


def _result(outcome: Outcome) -> types.CallToolResult:
    """The answer twice, as values and as the text they came in; a refusal is the problem, marked as an error."""
    value = msgspec.json.decode(outcome.body) if outcome.body else {"status": outcome.status}
    text = outcome.body.decode() if outcome.body else "Done."
    meta: dict[str, Any] = {f"joinery/{name.replace('-', '_')}": said for name, said in outcome.headers.items()}
    meta |= {"joinery/status": outcome.status} | ({"joinery/idempotency_key": outcome.key} if outcome.key else {})
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=value, is_error=outcome.refused, _meta=meta
    )


def _cursor(start: int) -> str:
    return urlsafe_b64encode(b"tools:%d" % start).decode().rstrip("=")


def _start(cursor: str | None) -> int:
    """Where a page starts. Raises MCPError for a cursor of another list."""
    if cursor is None:
        return 0
    with contextlib.suppress(ValueError):
        word, _, number = urlsafe_b64decode(cursor[:64] + "=" * (-len(cursor) % 4)).partition(b":")
        if word == b"tools" and number.isdigit() and len(number) < 6:
            return int(number)
    raise MCPError(types.INVALID_PARAMS, "This cursor is none of this list; start without one.")
