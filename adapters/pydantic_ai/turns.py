"""Turns of the assistant: an agent of pydantic-ai whose tools are operations, as frames of the AI SDK UI message stream."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

import msgspec
from pydantic_ai import (
    Agent,
    CancellationToken,
    DeferredToolRequests,
    ModelMessagesTypeAdapter,
    UsageLimits,
    capture_run_messages,
)
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolResults, RunContext, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_ai.ui.vercel_ai import VercelAIAdapter, VercelAIEventStream
from pydantic_ai.ui.vercel_ai.request_types import DataUIPart, SubmitMessage, TextUIPart, UIMessage
from pydantic_ai.ui.vercel_ai.response_types import (
    AbortChunk,
    BaseChunk,
    DataChunk,
    DoneChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    TextDeltaChunk,
    TextEndChunk,
    ToolApprovalRequestChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
from pydantic_core import SchemaValidator, core_schema

from adapters.pydantic_ai.providers import MAX_OUTPUT_TOKENS
from adapters.pydantic_ai.threads import compute
from adapters.pydantic_ai.tool_search import rank_tools
from domain.agents.model import AgentTool
from domain.assistant.links import LinkFilter, find_addresses, find_new_addresses, remove_links
from domain.assistant.model import (
    MAX_STEPS,
    MAX_TOOL_CALLS,
    MAX_TURN_SECONDS,
    ApprovalDecision,
    PendingCall,
    build_answer_id,
)
from domain.assistant.ports import Frame, ToolResult, TurnHost, TurnOutcome, TurnRequest
from domain.kernel.errors import DomainError
from ports.language_models import ModelUsage

_LOG = logging.getLogger("joinery.assistant")
_CORE_TOOLS = frozenset(
    {
        "catalogue_list_products",
        "catalogue_read_product",
        "catalogue_list_offers",
        "sources_list",
        "sources_read",
        "runs_list",
    }
)
"""Tools that every request contains; the model finds the others by search."""
_OMITTED_ARGUMENTS = frozenset({"dry_run", "idempotency_key"})
MAX_RESULT_BYTES = 48 * 1024
"""Maximum bytes of a tool's result."""
_MAX_TOKENS = 400_000
_BYTES_PER_TOKEN = 3
"""Assumed bytes per input token for the reservation of a request's cost, which is corrected afterwards."""
_CALL_ENDS = (
    ToolApprovalRequestChunk,
    ToolInputErrorChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
"""Chunks after which a call is no longer running."""
_DEFINITIONS: dict[str, ToolDefinition] = {}
_ANY_VALUE = SchemaValidator(core_schema.any_schema())
_LIMIT_MESSAGE = "The turn has reached its limit of steps or tool calls. Send a message to continue."
_NOT_APPROVED = "Nobody has approved this call. Call the tool again with a new ID."
_REPEATED_ID = "An earlier call has the same ID. Call the tool again with a new ID."
_INTERNAL_MESSAGE = "The language model could not be reached or failed. Try again."
_UNFINISHED_MESSAGE = "The call was not completed."
_STOPPED_DATA = "data-stopped"
_PREVIEW_DATA = "data-preview"
_AGENT: Agent[None, Any] = Agent(
    output_type=[str, DeferredToolRequests], capabilities=[ToolSearch(strategy=rank_tools)], name="assistant"
)


class _OperationToolset(AbstractToolset[None]):
    """Operations as tools: reads run, changes wait for approval with their preview."""

    def __init__(self, turn: "TurnRun") -> None:
        self._turn = turn
        self._tools = {tool.name: tool for tool in turn.host.tools}

    @property
    def id(self) -> str:
        """Name of the toolset."""
        return "operations"

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        """Return the tools that the person may use."""
        return {
            name: ToolsetTool(toolset=self, tool_def=_define_tool(tool), max_retries=1, args_validator=_ANY_VALUE)
            for name, tool in self._tools.items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> Any:
        """Call a tool; raises ApprovalRequired for a change that is not approved, and ToolFailed for an error response.

        Addresses in the result that contain arguments which no person has approved do not count as data.
        """
        host, operation, call_id = self._turn.host, self._tools[name], ctx.tool_call_id or ""
        arguments = _omit_headers(tool_args)
        if operation.is_read_only:
            result = await host.read(operation, arguments)
        elif ctx.tool_call_approved:
            result = await host.execute(call_id, operation, self._turn.take_approved_arguments(call_id, operation))
        else:
            if _is_repeated_id(call_id, ctx.messages):
                raise ToolFailed(_REPEATED_ID)
            preview = await host.preview(call_id, operation, arguments)
            if isinstance(preview, PendingCall):
                self._turn.previews[call_id] = preview
                raise ApprovalRequired
            result = preview
        body = self._turn.record_result(result)
        untrusted = arguments if operation.is_read_only else {}
        self._turn.addresses |= await compute(partial(find_new_addresses, body, untrusted))
        return body


def _is_repeated_id(call_id: str, messages: Sequence[ModelMessage]) -> bool:
    """Return whether a call before the newest message has the ID, by which approvals and results are found."""
    return any(
        isinstance(part, ToolCallPart) and part.tool_call_id == call_id
        for message in messages[:-1]
        for part in message.parts
    )


def _omit_headers(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in _OMITTED_ARGUMENTS}


def _define_tool(tool: AgentTool) -> ToolDefinition:
    """Return the definition of a tool for the model; the tools are the same in every turn of the process."""
    if (definition := _DEFINITIONS.get(tool.name)) is None:
        schema = dict(tool.input_schema)
        definition = _DEFINITIONS[tool.name] = ToolDefinition(
            name=tool.name,
            description=f"{tool.title}.\n{tool.description}",
            parameters_json_schema=schema | {"properties": _omit_headers(schema["properties"])},
            defer_loading=tool.name not in _CORE_TOOLS,
        )
    return definition


class _MeteredModel(WrapperModel):
    """Model that reserves the cost of each request before it is sent, and settles it afterwards."""

    def __init__(
        self, model: Model, name: str, host: TurnHost, compute_usage: Callable[[str, int, int], ModelUsage]
    ) -> None:
        super().__init__(model)
        self._name, self._host, self._compute_usage = name, host, compute_usage

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Send a request, and yield its response."""
        size = len(ModelMessagesTypeAdapter.dump_json(messages)) + sum(
            len(json.dumps(tool.parameters_json_schema)) + len(tool.description or "")
            for tool in model_request_parameters.function_tools
        )
        max_usage = self._compute_usage(self._name, size // _BYTES_PER_TOKEN, MAX_OUTPUT_TOKENS)
        use = await self._host.reserve(max_usage)
        usage: ModelUsage | None = None
        try:
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as response:
                usage = max_usage  # until the response is complete, its usage is unknown
                yield response
                read, written = response.usage.input_tokens, response.usage.output_tokens
                if read or written:
                    usage = self._compute_usage(self._name, read, written)
        finally:
            await asyncio.shield(asyncio.ensure_future(self._host.settle(use, usage)))


@dataclass
class _EventStream(VercelAIEventStream[None, Any]):
    """Stream whose errors contain no text of exceptions, which may contain secrets."""

    _: KW_ONLY
    outcome: TurnOutcome

    async def on_error(self, error: Exception) -> AsyncIterator[BaseChunk]:
        """Yield the frames for an error."""
        async for chunk in super().on_error(error):
            yield (
                ErrorChunk(error_text=_describe_error(error, self.outcome)) if isinstance(chunk, ErrorChunk) else chunk
            )


def _describe_error(error: BaseException, outcome: TurnOutcome) -> str:
    """Return a code and a message for an error, and record in the outcome whether the model failed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, DomainError):
            return f"{cause.code}: {cause.detail}"
        cause = cause.__cause__
    if isinstance(error, UsageLimitExceeded):
        return f"limit_reached: {_LIMIT_MESSAGE}"
    outcome.has_failed = True
    _LOG.warning("turn failed", extra={"reason": type(error).__name__})
    return f"model_failed: {_INTERNAL_MESSAGE}"


@dataclass
class _Adapter(VercelAIAdapter[None, Any]):
    _: KW_ONLY
    outcome: TurnOutcome

    def build_event_stream(self) -> _EventStream:
        return _EventStream(
            self.run_input, sdk_version=7, server_message_id=self.server_message_id, outcome=self.outcome
        )


@dataclass
class TurnRun:
    """One turn.

    Attributes:
        model: The model.
        model_name: The name of the model, under which it has a price.
        compute_usage: Computes the cost of a model's input and output tokens.
        previews: Calls that wait for approval since this turn, by ID.
        addresses: Addresses in the data of the conversation, which answers may contain.
        decisions: Decisions on pending calls that were not executed yet, by ID.
    """

    request: TurnRequest
    host: TurnHost
    outcome: TurnOutcome
    model: Model
    model_name: str
    compute_usage: Callable[[str, int, int], ModelUsage]
    previews: dict[str, PendingCall] = field(default_factory=dict)
    addresses: set[str] = field(default_factory=set)
    decisions: dict[str, ApprovalDecision] = field(init=False)

    def __post_init__(self) -> None:
        self.decisions = {decision.id: decision for decision in self.request.decisions}

    def take_approved_arguments(self, call_id: str, tool: AgentTool) -> Mapping[str, Any]:
        """Return the arguments that the person has seen and approved, once. Raises ToolFailed if there are none.

        The model chooses the IDs of its calls, so that several calls can have the ID of an approved one.
        """
        decision = self.decisions.pop(call_id, None)
        call = next((call for call in self.request.pending if call.id == call_id and call.tool == tool.name), None)
        if call is None or decision is None or not decision.approve:
            raise ToolFailed(_NOT_APPROVED)
        return _omit_headers(call.arguments)

    def record_result(self, result: ToolResult) -> Any:
        """Return the result for the model. Raises ToolFailed for an error response, or if the result is too large."""
        size = len(msgspec.json.encode(result.body))
        if size > MAX_RESULT_BYTES:
            raise ToolFailed(f"The response has {size} bytes. Use a smaller limit or more filters.")
        self.outcome.has_read_data = True
        if result.is_error:
            problem = {name: result.body[name] for name in ("code", "detail", "errors") if name in result.body}
            raise ToolFailed(msgspec.json.encode(problem).decode())
        return result.body

    async def iter_frames(self) -> AsyncGenerator[Frame, None]:
        """Run the turn and yield its frames; the outcome contains the messages, also after an error."""
        request, cancellation = self.request, CancellationToken()
        history, addresses = await compute(partial(_load_history, request))
        self.addresses |= addresses
        message = request.message
        if message is not None:
            self.addresses |= find_addresses(message.text)
        prompt = (
            [UIMessage(id=message.id, role="user", parts=[TextUIPart(text=message.text)])]
            if message is not None
            else []
        )
        adapter = _Adapter(
            agent=_AGENT,
            run_input=SubmitMessage(id=request.conversation, messages=prompt),
            sdk_version=7,
            manage_message_history="server",
            server_message_id=request.answer,
            outcome=self.outcome,
        )
        stopper = asyncio.create_task(self._cancel_when_stopped(cancellation))
        with capture_run_messages() as messages:
            try:
                chunks = adapter.run_stream(
                    model=_MeteredModel(self.model, self.model_name, self.host, self.compute_usage),
                    instructions=request.instructions,
                    message_history=history,
                    deferred_tool_results=_build_results(request),
                    toolsets=[_OperationToolset(self)],
                    model_settings=ModelSettings(max_tokens=MAX_OUTPUT_TOKENS),
                    usage_limits=UsageLimits(
                        request_limit=MAX_STEPS, tool_calls_limit=MAX_TOOL_CALLS, total_tokens_limit=_MAX_TOKENS
                    ),
                    timeout=MAX_TURN_SECONDS,
                    cancellation_token=cancellation,
                    on_complete=self._list_previews,
                )
                async with aclosing(_filter_links(_end_open_calls(chunks), self.addresses)) as filtered:
                    async for chunk in filtered:
                        if getattr(chunk, "delta", None) == "":
                            continue  # words are held back until they are complete
                        yield Frame(
                            f"data: {chunk.encode(7)}\n\n".encode(),
                            isinstance(chunk, (ErrorChunk, AbortChunk, FinishChunk, DoneChunk)),
                        )
            finally:
                stopper.cancel()
                if messages:
                    self.outcome.history = ModelMessagesTypeAdapter.dump_json(messages)
                    # a message abandons the pending calls
                    waiting = () if request.message is not None else request.pending
                    calls = {call.id: call for call in waiting} | self.previews
                    self.outcome.pending = tuple(calls[id] for id in _find_open_calls(messages) if id in calls)

    async def _cancel_when_stopped(self, cancellation: CancellationToken) -> None:
        await self.host.stopping.wait()
        cancellation.cancel()

    async def _list_previews(self, result: Any) -> AsyncIterator[BaseChunk]:
        """Yield the preview of each call that waits for approval."""
        if isinstance(result.output, DeferredToolRequests):
            for call in result.output.approvals:
                if (pending := self.previews.get(call.tool_call_id)) is not None:
                    yield DataChunk(type=_PREVIEW_DATA, id=pending.id, data=_render_preview(pending))


def _render_preview(call: PendingCall) -> dict[str, Any]:
    return {"operation": call.operation, "arguments": call.arguments, "preview": call.preview}


def _build_results(request: TurnRequest) -> DeferredToolResults | None:
    if not request.decisions:
        return None
    return DeferredToolResults(
        approvals={
            decision.id: True if decision.approve else ToolDenied(decision.reason or "The person rejected the change.")
            for decision in request.decisions
        }
    )


def _load_history(request: TurnRequest) -> tuple[list[ModelMessage], set[str]]:
    """Return the messages of the conversation, and the addresses in its data. This is slow for long conversations."""
    messages = ModelMessagesTypeAdapter.validate_json(request.history)
    _apply_changed_arguments(messages, request.pending)
    return messages, _find_history_addresses(messages)


def _apply_changed_arguments(messages: Sequence[ModelMessage], pending: Sequence[PendingCall]) -> None:
    """Replace the arguments that the person changed before approving."""
    arguments = {call.id: call.arguments for call in pending if call.attempted}
    for part in [part for message in messages for part in message.parts]:
        if isinstance(part, ToolCallPart) and (changed := arguments.get(part.tool_call_id)) is not None:
            part.args = json.dumps(changed)


def _find_open_calls(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the IDs of the calls in the messages that have no result."""
    parts = [part for message in messages for part in message.parts]
    answered = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
    return [part.tool_call_id for part in parts if isinstance(part, ToolCallPart) and part.tool_call_id not in answered]


def _find_history_addresses(messages: Sequence[ModelMessage]) -> set[str]:
    """Return the addresses in successful results of tools, and in messages of the person."""
    found: set[str] = set()
    arguments = {
        part.tool_call_id: part.args_as_dict()
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, UserPromptPart):
                found |= find_addresses(part.content)
            elif isinstance(part, ToolReturnPart) and part.outcome == "success":
                found |= find_new_addresses(part.content, arguments.get(part.tool_call_id, {}))
    return found


async def _end_open_calls(chunks: AsyncIterator[BaseChunk]) -> AsyncIterator[BaseChunk]:
    """Yield the chunks; before an error or a stop also the end of each call without result, so that clients do not show it as running."""
    open_calls: dict[str, None] = {}
    async for chunk in chunks:
        if isinstance(chunk, ToolInputStartChunk):
            open_calls[chunk.tool_call_id] = None
        elif isinstance(chunk, _CALL_ENDS):
            open_calls.pop(chunk.tool_call_id, None)
        elif isinstance(chunk, (ErrorChunk, AbortChunk)):
            for call in open_calls:
                yield ToolOutputErrorChunk(tool_call_id=call, error_text=_UNFINISHED_MESSAGE)
        yield chunk


async def _filter_links(
    chunks: AsyncIterator[BaseChunk], addresses: Collection[str]
) -> AsyncGenerator[BaseChunk, None]:
    """Yield the chunks with filtered text.

    Arguments of tools follow when it is known whether a person decides on the call; the person receives them unchanged.
    """
    filters: dict[str, LinkFilter] = defaultdict(lambda: LinkFilter(addresses))
    calls: dict[str, ToolInputAvailableChunk] = {}
    async for chunk in chunks:
        if (call := calls.pop(getattr(chunk, "tool_call_id", ""), None)) is not None:
            yield call if isinstance(chunk, ToolApprovalRequestChunk) else _remove_links_of_call(call, addresses)
        match chunk:
            case TextDeltaChunk() | ReasoningDeltaChunk():
                yield chunk.model_copy(update={"delta": filters[chunk.id].add(chunk.delta)})
            case TextEndChunk() | ReasoningEndChunk():
                delta = TextDeltaChunk if isinstance(chunk, TextEndChunk) else ReasoningDeltaChunk
                yield delta(id=chunk.id, delta=filters.pop(chunk.id, LinkFilter(addresses)).finish())
                yield chunk
            case AbortChunk():
                yield DataChunk(type=_STOPPED_DATA, data={"reason": chunk.reason}, transient=True)
                yield chunk
            case ToolInputAvailableChunk():
                calls[chunk.tool_call_id] = chunk
            case ToolInputDeltaChunk() | FileChunk() | SourceUrlChunk() | SourceDocumentChunk():
                pass
            case ToolInputStartChunk() | ToolInputErrorChunk() | ToolOutputErrorChunk():
                yield _remove_links_of_call(chunk, addresses)
            case _:
                yield chunk


def _remove_links_of_call(chunk: BaseChunk, addresses: Collection[str]) -> BaseChunk:
    fields = {name: getattr(chunk, name, None) for name in ("tool_name", "input", "error_text")}
    return chunk.model_copy(
        update={name: remove_links(value, addresses) for name, value in fields.items() if value is not None}
    )


def _remove_links_of_part(part: Any, addresses: Collection[str]) -> None:
    """Remove links from what a model wrote: texts, calls, and results that repeat a call."""
    if isinstance(part, (TextPart, ThinkingPart)):
        part.content = remove_links(part.content, addresses)
    elif isinstance(part, ToolCallPart):
        part.tool_name, part.args = (
            remove_links(part.tool_name, addresses),
            remove_links(part.args_as_dict(), addresses),
        )
    elif isinstance(part, ToolReturnPart) and part.outcome != "success":
        part.tool_name, part.content = remove_links(part.tool_name, addresses), remove_links(part.content, addresses)


def render_messages(history: bytes, pending: Sequence[PendingCall]) -> list[Any]:
    """Return the history as UI messages of the AI SDK, as clients have them after the streams of the turns.

    The answer to a message of the person is one message, with a step for each response of the model.
    """
    messages = ModelMessagesTypeAdapter.validate_json(history)
    addresses, previews = _find_history_addresses(messages), {call.id: call for call in pending}
    for message in messages:
        if isinstance(message, ModelRequest):  # the library adds such a result to a call without one, at a later turn
            message.parts = [part for part in message.parts if getattr(part, "outcome", None) != "interrupted"]
        for part in message.parts:
            if not (isinstance(part, ToolCallPart) and part.tool_call_id in previews):
                _remove_links_of_part(part, addresses)
    rendered: list[dict[str, Any]] = []
    for one in VercelAIAdapter.dump_messages(messages, sdk_version=7):
        value = one.model_dump(mode="json", by_alias=True, exclude_none=True)
        if value["role"] == "assistant":
            value["parts"] = [{"type": "step-start"}, *(_render_part(part, previews) for part in value["parts"])]
        if rendered and value["role"] == "assistant" == rendered[-1]["role"]:
            rendered[-1]["parts"] += value["parts"]
            rendered[-1]["metadata"] = value.get("metadata", {})
            continue
        if value["role"] == "assistant" and rendered:
            value["id"] = build_answer_id(rendered[-1]["id"])
        rendered.append(value)
    for value in rendered:
        value["parts"] += [
            DataUIPart(type=_PREVIEW_DATA, id=call, data=_render_preview(previews[call])).model_dump(
                mode="json", by_alias=True, exclude_none=True
            )
            for call in [part["toolCallId"] for part in value["parts"] if part.get("state") == "approval-requested"]
        ]
    return rendered


def _render_part(part: dict[str, Any], pending: Collection[str]) -> dict[str, Any]:
    """Return a part of a message, in which a call without result waits for approval only if it is in `pending`."""
    state, call = part.get("state"), part.get("toolCallId")
    if state == "output-denied":
        return part | {"approval": part["approval"] | {"id": call}}
    if state == "approval-requested" and call not in pending:
        part = part | {"state": "output-error", "errorText": _UNFINISHED_MESSAGE}
        del part["approval"]
    return part
