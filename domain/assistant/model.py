"""Conversations, turns, memories, settings, preferences and spend of the assistant."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Required, TypedDict

from domain.assistant.links import find_addresses
from domain.audit.model import AuditedFields
from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.paging import Filter
from domain.kernel.resource import VERSION, audited, changeable, optional, set_at_creation, settable
from domain.kernel.schema import array, boolean, enum, id_schema, integer, nullable, text, timestamp
from domain.usage.model import MAX_BUDGET_MICROS

TASK = "assistant"
"""Task of the assistant's requests to language models."""
SETTINGS_ID = "assistant"
"""ID of the only row of settings of a tenant."""
MAX_STEPS, MAX_TOOL_CALLS, MAX_TURN_SECONDS = 20, 25, 120
"""Limits of a turn: requests to the model, tool calls, and seconds."""
APPROVAL_PERIOD = timedelta(hours=23)
"""Time in which a person can approve a change; less than the time for which responses of repeated requests are stored."""
MAX_MEMORIES = 25
"""Maximum number of memories of a person, and of those of an organisation."""
MEMORY_LIFETIME = timedelta(days=365)
MAX_HISTORY_BYTES = 1 << 20
"""Bytes of the messages of a conversation above which no further turn is possible."""
MAX_TITLE_CHARS = 120
DEFAULT_ROLES = ("owner", "admin", "developer", "editor", "billing")


class Surface(StrEnum):
    """Interface in which a conversation or memory was created."""

    CONSOLE = "console"
    API = "api"


class MemoryScope(StrEnum):
    """People for whom the assistant uses a memory."""

    PERSON = "person"
    ORG = "org"


@dataclass(frozen=True, slots=True)
class PendingCall:
    """Call of a tool that changes something and waits for a person's approval.

    Attributes:
        id: ID of the call, which the model's provider assigned.
        operation: ID of the operation.
        tool: Name of the tool.
        arguments: Arguments of the call.
        preview: Effects of the operation (`Service-Dry-Run: explain`).
        requested_at: Time of the request.
        attempted: Whether the approved call was started in a turn that did not end, so that it may have been executed.
    """

    id: str
    operation: str
    tool: str
    arguments: Mapping[str, Any]
    preview: Mapping[str, Any]
    requested_at: datetime
    attempted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Conversation of one person with the assistant.

    Attributes:
        person: The person, the only one who can read the conversation.
        context_object: Type of the object that the person was looking at when the conversation began, or None.
        history: Messages in the format of the adapter that runs turns; none in lists.
        pending: Calls that wait for approval.
        has_read_data: Whether tools have returned data, which third parties may have written.
        last_turn_at: Start of the newest turn, or its end if it has ended; None before the first turn.
        active_at: Start of the newest turn, else of the conversation; old conversations are deleted by it.
    """

    id: str
    person: str
    title: str | None = None
    surface: str = Surface.API
    context_object: str | None = None
    context_id: str | None = None
    history: bytes = b"[]"
    pending: tuple[PendingCall, ...] = ()
    has_read_data: bool = False
    last_turn_at: datetime | None = None
    active_at: datetime
    version: int = 1
    created_at: datetime
    updated_at: datetime


AUDITED_CONVERSATION = AuditedFields("conversation", ("person", "surface"))


@dataclass(frozen=True, slots=True)
class ConversationFilter(Filter):
    """Condition of a list of conversations: those of one person."""

    person: str


class NewConversation(TypedDict, total=False):
    """Values of a new conversation; `context` contains `object` and `id` of what the person is looking at."""

    title: str
    context: dict[str, str]


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """Decision of a person on a pending call.

    Attributes:
        arguments: Arguments that replace those of the model; None for no changes.
    """

    id: str
    approve: bool
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """Message of the person; `id` is unique in the conversation."""

    id: str
    text: str


def build_answer_id(message: str) -> str:
    """Return the ID of the assistant's message that answers the message with this ID."""
    return f"{message}-answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """Input of a turn: a message, or decisions on all pending calls."""

    message: UserMessage | None = None
    decisions: tuple[ApprovalDecision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Turn of a conversation, which one process at a time runs.

    Attributes:
        number: Number of the turn in the conversation, from 1.
        request_key: Idempotency-Key of the request.
        fingerprint: Digest of the request.
        answer: ID of the message of the assistant; turns with decisions continue the message of the preceding turn.
        attempt: Number of the attempt, from 1; a repeated request continues a turn whose process ended.
        alive_until: Time after which the process that runs the turn is considered to have ended.
        is_stopping: Whether the person has stopped the turn.
        ended_at: Time of the end; None while the turn is running.
        has_failed: Whether the model could not be reached, or failed.
    """

    conversation: str
    number: int
    request_key: str
    fingerprint: bytes
    input: TurnInput
    answer: str
    attempt: int
    alive_until: datetime
    is_stopping: bool = False
    ended_at: datetime | None = None
    has_failed: bool = False

    def is_running(self, now: datetime) -> bool:
        """Return whether a process runs the turn."""
        return self.ended_at is None and now < self.alive_until


_MARKUP = re.compile(r"[`*_#<>\[\]{}|\\~^]|^\s*(?:[-+]|\d+\.)\s", re.MULTILINE)
_LINE_BREAK = re.compile(r"[\r\n\x0b\x0c\x85\u2028\u2029]")


def _find_memory_fault(content: str) -> str | None:
    """Return why a text cannot be a memory, or None."""
    if not content.strip():
        return "The memory is empty. Enter a sentence."
    if _LINE_BREAK.search(content) or not content.isprintable():
        return "A memory is one paragraph. Remove line breaks and control characters."
    if find_addresses(content):
        return "A memory must not contain links or addresses. Remove them."
    if _MARKUP.search(content):
        return "A memory must not contain Markdown or code. Use plain words."
    return None


def require_memory_content(content: str) -> None:
    """Raise InvalidRequest if the text cannot be a memory, which is one paragraph of plain words."""
    if fault := _find_memory_fault(content):
        raise InvalidRequest(fault, fields=(FieldError("content", "invalid_format", fault),))


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMemory:
    """Fact or preference that the assistant considers in every turn, in the exact words that a person approved."""

    id: Annotated[str, id_schema("mem")]
    scope: Annotated[
        str,
        set_at_creation(
            enum(*MemoryScope)
            | {"description": "Whether the assistant uses the memory for you (default) or for every member."}
        ),
    ] = MemoryScope.PERSON
    content: Annotated[
        str,
        settable(
            text(
                "Prices in lists are net, in euros.",
                max_length=400,
                description="One paragraph of plain words, without links, addresses, Markdown or code.",
            ),
            required=True,
        ),
    ]
    source: Annotated[
        str, audited(enum("person", "assistant") | {"description": "Who wrote the words; a person approved them."})
    ] = "person"
    created_by: Annotated[str, audited(id_schema("usr"))]
    surface: Annotated[str, audited(enum(*Surface))] = Surface.API
    conversation_id: Annotated[str | None, optional(audited(id_schema("cnv")))] = None
    tool_data_seen: Annotated[
        bool, audited(boolean(False, "Whether the conversation had read data when the memory was created."))
    ] = False
    expires_at: Annotated[datetime, audited(timestamp("One year after the last change."))]
    version: Annotated[int, VERSION] = 1
    created_at: Annotated[datetime, timestamp()]
    updated_at: Annotated[datetime, timestamp()]


class NewMemory(TypedDict, total=False):
    """Values of a new memory."""

    content: Required[str]
    scope: str


class MemoryChange(TypedDict, total=False):
    """Change of a memory: another content, or `renew` to extend its lifetime only."""

    content: str
    renew: bool


def _micros(example: int, description: str) -> Any:
    return integer(example, minimum=0, maximum=MAX_BUDGET_MICROS, description=description)


_BUDGET = "Maximum cost per month (UTC) of {0}, in millionths of a US dollar; {1}."


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSettings:
    """Settings of the assistant of an organisation in one mode.

    Attributes:
        roles: Roles whose members may use the assistant.
        daily_allowance_micros: Cost per day (UTC) that is not paid with credit.
    """

    id: str = SETTINGS_ID
    enabled: Annotated[bool, changeable(boolean(True, "Whether members can use the assistant."))] = True
    roles: Annotated[
        tuple[str, ...],
        changeable(
            array(
                enum("owner", "admin", "developer", "editor", "billing", "viewer"),
                description="Roles whose members can use the assistant.",
            )
            | {"maxItems": 6, "uniqueItems": True}
        ),
    ] = DEFAULT_ROLES
    model: Annotated[
        str | None,
        optional(
            changeable(
                text("large-1", max_length=100, description="The language model; omitted for the service's default."),
                nullable(text("large-1", max_length=100, description="Null selects the service's default model.")),
            )
        ),
    ] = None
    daily_allowance_micros: Annotated[
        int,
        changeable(
            _micros(
                2_000_000, "Cost of model requests per day (UTC) before credit is spent, in millionths of a US dollar."
            )
        ),
    ] = 2_000_000
    spend_credit: Annotated[
        bool, changeable(boolean(False, "Whether credit is spent when the allowance of the day is used up."))
    ] = False
    per_person_budget_micros: Annotated[
        int | None,
        optional(
            changeable(
                _micros(20_000_000, _BUDGET.format("one person", "omitted if unlimited")),
                nullable(_micros(20_000_000, "Null removes the limit.")),
            )
        ),
    ] = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


class AssistantSettingsChange(TypedDict, total=False):
    """Changes of the assistant's settings; omitted fields stay unchanged."""

    enabled: bool
    roles: tuple[str, ...]
    model: str | None
    daily_allowance_micros: int
    spend_credit: bool
    per_person_budget_micros: int | None


AUDITED_SETTINGS = AuditedFields.from_resource(AssistantSettings, "assistant_settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantPreferences:
    """Preferences of one person for the assistant; `id` is the ID of the person."""

    id: str
    enabled: Annotated[bool, changeable(boolean(True, "Whether you use the assistant."))] = True
    personal_budget_micros: Annotated[
        int | None,
        optional(
            changeable(
                _micros(5_000_000, _BUDGET.format("your turns", "omitted if unlimited")),
                nullable(_micros(5_000_000, "Null removes the limit.")),
            )
        ),
    ] = None
    memory_enabled: Annotated[bool, changeable(boolean(True, "Whether the assistant uses memories in your turns."))] = (
        True
    )
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


class AssistantPreferencesChange(TypedDict, total=False):
    """Changes of a person's preferences; omitted fields stay unchanged."""

    enabled: bool
    personal_budget_micros: int | None
    memory_enabled: bool


AUDITED_PREFERENCES = AuditedFields.from_resource(AssistantPreferences, "assistant_preferences")


@dataclass(frozen=True, slots=True)
class SpendEntry:
    """Cost of a person's turns on a day (UTC), in millionths of a US dollar."""

    day: date
    person: str
    allowance_micros: int
    credit_micros: int

    @property
    def micros(self) -> int:
        """The whole cost."""
        return self.allowance_micros + self.credit_micros


@dataclass(frozen=True, slots=True)
class AssistantSpend:
    """Spend of a month.

    Attributes:
        entries: The month's entries.
        today: The current day (UTC).
        allowance_micros: The allowance of a day.
    """

    entries: Sequence[SpendEntry]
    today: date
    allowance_micros: int
