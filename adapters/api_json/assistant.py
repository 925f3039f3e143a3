"""JSON of the assistant: conversations, turns, memories, settings, preferences and spend."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict

import msgspec

from adapters.api_json.resource import Body, JsonResource, create_decoder
from domain.assistant.model import (
    MAX_TITLE_CHARS,
    ApprovalDecision,
    AssistantMemory,
    AssistantPreferences,
    AssistantSettings,
    AssistantSpend,
    Conversation,
    MemoryChange,
    NewConversation,
    NewMemory,
    SpendEntry,
    Surface,
    TurnInput,
    UserMessage,
)
from domain.kernel.errors import InvalidRequest
from domain.kernel.ids import find_noun, new_id
from domain.kernel.resource import Field, RenderContext, computed, optional
from domain.kernel.schema import (
    array,
    boolean,
    constant,
    date,
    enum,
    id_schema,
    integer,
    map_schema,
    response_object,
    strict_object,
    text,
    timestamp,
    with_title,
)

MAX_MESSAGE_CHARS = 10_000
_ENCODE = msgspec.json.Encoder(decimal_format="number").encode
_CONTEXT = {
    "object": text("product", max_length=40, description="Type of the object that the person is looking at."),
    "id": text("prod_01J8ZQ5T3V7XK2M9RB4CDW", max_length=40, description="ID of the object."),
}
_PENDING = with_title(
    "pending_approval",
    response_object(
        None,
        {
            "id": text("call_1", max_length=200),
            "operation": text("sources.update", max_length=100),
            "arguments": map_schema({}, {"id": "src_01J8ZQ5T3V7XK2M9RB4CDW"}, "Arguments of the call."),
            "preview": map_schema(
                {}, {"object": "preview"}, "Effects of the operation, as of `Service-Dry-Run: explain`."
            ),
        },
    ),
)


def _render_context(conversation: Conversation, _: RenderContext) -> Mapping[str, str | None] | None:
    if conversation.context_id is None:
        return None
    return {"object": conversation.context_object, "id": conversation.context_id}


def _render_pending(conversation: Conversation, _: RenderContext) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "operation": call.operation, "arguments": call.arguments, "preview": call.preview}
        for call in conversation.pending
    ]


CONVERSATION = JsonResource[Conversation](
    "conversation",
    {
        "id": id_schema("cnv"),
        "title": optional(text("Prices of oak tables", max_length=MAX_TITLE_CHARS)),
        "surface": enum(*Surface),
        "context": optional(
            computed(with_title("conversation_context", response_object(None, _CONTEXT)), _render_context)
        ),
        "messages": Field(
            array(
                map_schema({}, {"id": "msg-1", "role": "user", "parts": []}),
                description="Messages in the format of the AI SDK; only when a single conversation is read.",
            ),
            lambda row, view: None,
            optional=True,
        ),
        "pending_approvals": Field(
            array(_PENDING, description="Changes that wait for your approval."), _render_pending
        ),
        "last_turn_at": optional(timestamp()),
        "created_at": timestamp(),
    },
    path="/v1/assistant/conversations/{id}",
    description="Conversation of one person with the assistant. Only that person can read it.",
)


def _decode_new_conversation(value: Any) -> NewConversation:
    new: NewConversation = create_decoder(NewConversation)(value)
    context = new.get("context")
    if context is not None and find_noun(context["id"]) is None:
        raise InvalidRequest.for_field(
            "context.id", "invalid_format", "The ID is malformed. Enter the ID of an object."
        )
    if context is not None and not context["object"].isidentifier():
        raise InvalidRequest.for_field(
            "context.object", "invalid_format", "Enter the type of the object, such as product."
        )
    return new


NEW_CONVERSATION = Body(
    with_title(
        "conversation_create",
        strict_object(
            {
                "title": text("Prices of oak tables", max_length=MAX_TITLE_CHARS),
                "context": strict_object(_CONTEXT, ("object", "id")),
            }
        ),
    ),
    _decode_new_conversation,
    is_required=False,
)
_APPROVAL = with_title(
    "approval",
    strict_object(
        {
            "id": text("call_1", max_length=200, description="ID of the pending approval."),
            "approve": boolean(True, "Whether the change is made."),
            "reason": text("Only for beds.", max_length=1000, description="Reason of a rejection, for the assistant."),
            "arguments": map_schema({}, {}, "Arguments that replace those of the assistant."),
        },
        ("id", "approve"),
    ),
)
TURN_STREAM = with_title(
    "assistant_stream",
    {"type": "string", "description": "UI message stream of the AI SDK.", "examples": ["data: [DONE]\n\n"]},
)


class _Message(TypedDict, total=False):
    id: str
    text: str


class _Turn(TypedDict, total=False):
    message: _Message
    approvals: list[ApprovalDecision]
    stop: bool


def _decode_turn(value: Any) -> TurnInput | None:
    """Return the input of a turn; None to stop the running turn."""
    turn: _Turn = create_decoder(_Turn)(value)
    if len(turn) != 1:
        raise InvalidRequest("Send exactly one of message, approvals and stop.")
    if turn.get("stop"):
        return None
    if (message := turn.get("message")) is not None:
        return TurnInput(message=UserMessage(message.get("id") or new_id("msg"), message["text"]))
    return TurnInput(decisions=tuple(map(_with_plain_numbers, turn.get("approvals", ()))))


def _with_plain_numbers(decision: ApprovalDecision) -> ApprovalDecision:
    """Return the decision with arguments in JSON types, as those of a model: other numbers than integers become floats."""
    return replace(decision, arguments=msgspec.json.decode(_ENCODE(decision.arguments)))


TURN = Body(
    with_title(
        "assistant_turn",
        strict_object(
            {
                "message": with_title(
                    "assistant_message",
                    strict_object(
                        {
                            "id": text(
                                "msg-1", max_length=100, description="ID of the message, unique in the conversation."
                            ),
                            "text": text("Which oak tables cost less than 500 euros?", max_length=MAX_MESSAGE_CHARS),
                        },
                        ("text",),
                    ),
                ),
                "approvals": array(
                    _APPROVAL, min_items=1, max_items=25, description="A decision on every pending approval."
                ),
                "stop": {
                    "const": True,
                    "type": "boolean",
                    "description": "Stops the running turn.",
                    "examples": [True],
                },
            }
        )
        | {"examples": [{"message": {"id": "msg-1", "text": "Which oak tables cost less than 500 euros?"}}]},
    ),
    _decode_turn,
)
MEMORY = JsonResource.from_dataclass(
    AssistantMemory,
    "assistant_memory",
    path="/v1/assistant/memories/{id}",
    description="Fact or preference that the assistant considers in every turn.",
)


NEW_MEMORY = MEMORY.build_create_body(NewMemory)
MEMORY_CHANGE: Final = Body(
    with_title(
        "assistant_memory_update",
        strict_object(
            {
                "content": MEMORY.fields["content"].schema,
                "renew": {
                    "const": True,
                    "type": "boolean",
                    "description": "Extends the lifetime to a year from now without a change of the words.",
                    "examples": [True],
                },
            }
        ),
    ),
    create_decoder(MemoryChange),
)
SETTINGS = JsonResource.from_dataclass(
    AssistantSettings,
    "assistant_settings",
    path="/v1/assistant/settings",
    description="Settings of the assistant in this mode.",
)
PREFERENCES = JsonResource.from_dataclass(
    AssistantPreferences,
    "assistant_preferences",
    path="/v1/assistant/me",
    description="Your preferences for the assistant in this mode.",
)


def _sum_by(entries: Iterable[SpendEntry], get_key: Callable[[SpendEntry], str], name: str) -> list[dict[str, Any]]:
    """Return the cost by key, as objects with the key under `name`."""
    sums: Counter[str] = Counter()
    for entry in entries:
        sums[get_key(entry)] += entry.micros
    return [{name: key, "micros": micros} for key, micros in sums.items()]


def _render_allowance(spend: AssistantSpend, _: RenderContext) -> dict[str, int]:
    used = sum(entry.allowance_micros for entry in spend.entries if entry.day == spend.today)
    return {"used_micros": used, "total_micros": spend.allowance_micros}


_MICROS = integer(120_000, minimum=0, description="Cost in millionths of a US dollar.")
SPEND = JsonResource[AssistantSpend](
    "assistant_spend",
    {
        "period": computed(text("2026-11", description="The month (UTC)."), lambda spend, _: f"{spend.today:%Y-%m}"),
        "allowance": computed(
            with_title("assistant_allowance", response_object(None, {"used_micros": _MICROS, "total_micros": _MICROS})),
            _render_allowance,
        ),
        "credit_micros": computed(
            integer(0, minimum=0, description="Cost of the month that was paid with credit."),
            lambda spend, _: sum(entry.credit_micros for entry in spend.entries),
        ),
        "by_person": Field(
            array(with_title("person_spend", response_object(None, {"user": id_schema("usr"), "micros": _MICROS}))),
            lambda spend, _: _sum_by(spend.entries, lambda entry: entry.person, "user"),
        ),
        "by_day": Field(
            array(with_title("day_spend", response_object(None, {"date": date(), "micros": _MICROS}))),
            lambda spend, _: _sum_by(spend.entries, lambda entry: entry.day.isoformat(), "date"),
        ),
    },
    path="/v1/assistant/spend",
    description="Spend of the assistant in this month (UTC). `allowance` is that of today.",
)
DELETION = with_title(
    "deletion", response_object(None, {"object": constant("deletion"), "deleted": integer(3, minimum=0)})
)
