"""Ports of the assistant."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

from domain.agents.model import AgentTool
from domain.assistant.model import ApprovalDecision, AssistantMemory, PendingCall, SpendEntry, Turn, UserMessage
from domain.kernel.paging import Page, PageRequest
from domain.usage.model import ModelUse
from ports.language_models import ModelUsage

ChunkPosition: TypeAlias = tuple[int, int]
"""Position of a chunk: the number of its turn, and its number in the turn."""


class TurnStore(Protocol):
    """Turns of a tenant's conversations, and what they have sent."""

    async def get_newest(self, conversation: str) -> Turn | None:
        """Return the newest turn of a conversation, or None."""
        ...

    async def find(self, conversation: str, request_key: str) -> Turn | None:
        """Return the turn of a request, or None."""
        ...

    async def has_answer(self, conversation: str, answer: str) -> bool:
        """Return whether a turn of the conversation has created the message of the assistant with this ID."""
        ...

    async def save(self, turn: Turn) -> None:
        """Insert or replace a turn."""
        ...

    async def extend(self, turn: Turn, alive_until: datetime) -> bool | None:
        """Extend the time until which an attempt is considered running.

        Return whether the person has stopped the turn; None if another attempt has replaced this one, or the turn ended.
        """
        ...

    async def append(self, turn: Turn, number: int, data: bytes) -> None:
        """Store a chunk of frames that the turn has sent; `number` orders the chunks."""
        ...

    async def list_chunks(self, turn: Turn, until: int, after: ChunkPosition) -> Sequence[tuple[ChunkPosition, bytes]]:
        """Return the first chunks after a position, in order: those of the turn and of earlier turns of the same message.

        Final chunks of earlier turns, and chunks of other attempts of the turn are omitted.

        Args:
            turn: The turn.
            until: The number of the last turn of which chunks are returned.
            after: The position of the last chunk that the caller has.
        """
        ...

    async def delete_chunks(self, turn: Turn) -> None:
        """Delete the chunks of a turn, before the turn is attempted again."""
        ...

    async def delete_turns(self, conversation: str) -> None:
        """Delete the turns of a conversation with their chunks."""
        ...


class SpendStore(Protocol):
    """Spend of a tenant on the assistant."""

    async def lock(self) -> None:
        """Lock the spend until the transaction ends."""
        ...

    async def list_entries(self, since: date) -> Sequence[SpendEntry]:
        """Return the entries since a day, oldest first."""
        ...

    async def add(self, entry: SpendEntry) -> None:
        """Add the amounts, which may be negative, to those of the person on the day."""
        ...


class MemoryStore(Protocol):
    """Memories of a tenant."""

    async def lock(self) -> None:
        """Lock the number of memories until the transaction ends."""
        ...

    async def page_visible(self, person: str, scope: str | None, page_request: PageRequest) -> Page[AssistantMemory]:
        """Return a page of the unexpired memories of the person and of the organisation, newest first."""
        ...

    async def list_usable(self, person: str) -> Sequence[AssistantMemory]:
        """Return the unexpired memories of the person and of the organisation, oldest first."""
        ...

    async def count(self, scope: str, person: str) -> int:
        """Return the number of unexpired memories of the organisation, or of the person."""
        ...

    async def delete_scope(self, scope: str, person: str) -> Sequence[AssistantMemory]:
        """Delete the memories of the organisation or of the person; return them."""
        ...


class AssistantUpkeep(Protocol):
    """Conversations, turns and memories of all tenants, for the scheduler and the health check."""

    async def count_ended_turns(self, since: datetime) -> tuple[int, int]:
        """Return the numbers of turns that ended since a time: those in which the model failed, and all."""
        ...

    async def delete_expired(self, now: datetime) -> None:
        """Delete old conversations with their turns, old frames, and expired memories."""
        ...


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool call: the HTTP status and the decoded body of the operation's response."""

    status: int
    body: Any

    @property
    def is_error(self) -> bool:
        """True if the operation failed."""
        return self.status >= 400


CallTool = Callable[[AgentTool, Mapping[str, Any], str | None, str | None], Awaitable[ToolResult]]
"""Function that calls a tool with arguments as the caller of a turn; the last arguments are the idempotency key and the kind of dry run."""


class TurnHost(Protocol):
    """Use cases that the engine calls during a turn."""

    @property
    def tools(self) -> Sequence[AgentTool]:
        """The tools that the person may use."""
        ...

    async def read(self, tool: AgentTool, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool that changes nothing."""
        ...

    async def preview(self, call_id: str, tool: AgentTool, arguments: Mapping[str, Any]) -> ToolResult | PendingCall:
        """Return the pending call with its preview; the result if the operation would fail."""
        ...

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the turn must stop."""
        ...

    async def execute(self, call_id: str, tool: AgentTool, arguments: Mapping[str, Any]) -> ToolResult:
        """Execute an approved call once; a repetition returns the stored result."""
        ...

    async def reserve(self, usage: ModelUsage) -> ModelUse:
        """Reserve the cost of a request to the model. Raises QuotaExceeded or AiBudgetReached."""
        ...

    async def settle(self, use: ModelUse, usage: ModelUsage | None) -> None:
        """Replace a reservation by the actual usage; None if the request was not sent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """Turn for the engine.

    Attributes:
        conversation: ID of the conversation.
        model: Name of the model; None for the default.
        instructions: Instructions of the service, with the memories.
        history: The messages so far.
        pending: The calls that wait for approval.
        message: The person's message; None for a turn with decisions.
        decisions: Decisions on the pending calls; empty for a turn with a message.
        answer: ID of the assistant's message.
    """

    conversation: str
    model: str | None
    instructions: str
    history: bytes
    pending: tuple[PendingCall, ...]
    message: UserMessage | None
    decisions: Sequence[ApprovalDecision]
    answer: str


@dataclass(slots=True)
class TurnOutcome:
    """State of a conversation after a turn, which the engine updates while the turn runs.

    Attributes:
        history: The messages.
        pending: The calls that wait for approval.
        has_read_data: Whether a tool has returned data.
        has_failed: Whether the model could not be reached, or failed.
    """

    history: bytes
    pending: tuple[PendingCall, ...] = ()
    has_read_data: bool = False
    has_failed: bool = False


class Frame(NamedTuple):
    """Frame of the AI SDK UI message stream; `is_final` marks those after which a client does not wait: an error, a stop, the end."""

    data: bytes
    is_final: bool


class AssistantEngine(Protocol):
    """Runs turns with a language model, and renders conversations as messages of the AI SDK."""

    def is_available(self, model: str | None) -> bool:
        """Return whether the model has a price; None means the default model."""
        ...

    async def prepare(self, model: str | None) -> None:
        """Load what turns with the model need, which takes seconds when it is first done in a process."""
        ...

    def run_turn(self, request: TurnRequest, host: TurnHost, outcome: TurnOutcome) -> AsyncGenerator[Frame, None]:
        """Run a turn, and yield the frames of the AI SDK UI message stream. Errors become frames."""
        ...

    async def render_messages(self, history: bytes, pending: Sequence[PendingCall]) -> Sequence[Any]:
        """Return the history as UI messages of the AI SDK, in JSON types."""
        ...
