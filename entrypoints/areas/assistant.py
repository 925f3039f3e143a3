"""The assistant: /v1/assistant/conversations, /memories, /me, /settings and /spend."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from adapters.api_json import assistant as wire
from domain.access.model import Principal
from domain.assistant.model import SETTINGS_ID, MemoryScope, Surface
from domain.assistant.ports import AssistantUpkeep
from domain.assistant.usecases.conversations import (
    ConversationService,
    MemoryService,
    require_person,
)
from domain.assistant.usecases.turns import TurnCaller, TurnService, create_assistant_principal
from domain.audit.model import AuditAct
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import enum
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    AgentToolSettings,
    Area,
    ReadContext,
    Reply,
    StreamContext,
    StreamOperation,
    UndoSupport,
    WriteContext,
)
from ports.clock import Clock
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class AssistantServices:
    """Use cases of the assistant."""

    conversations: ConversationService
    turns: TurnService
    memories: MemoryService


AssistantReadContext: TypeAlias = ReadContext[AssistantServices]
AssistantWriteContext: TypeAlias = WriteContext[AssistantServices]


def _create_services(turns: TurnService) -> AssistantServices:
    return AssistantServices(turns.conversations, turns, MemoryService())


def _create_ticks(upkeep: AssistantUpkeep, clock: Clock) -> Sequence[Tick]:
    async def delete_expired() -> None:
        await upkeep.delete_expired(clock.now())

    return [Tick("old conversations", 3600, delete_expired, is_purge=True)]


def _find_surface(caller: Principal) -> Surface:
    return Surface.CONSOLE if caller.via == "console" else Surface.API


async def list_conversations(context: AssistantReadContext) -> Reply:
    """Return a page of the caller's conversations."""
    person = require_person(context.principal)
    page = await context.service.conversations.page(context.tx, person, context.page_request)
    return context.build_list_reply(wire.CONVERSATION, page)


async def create_conversation(context: AssistantWriteContext) -> Reply:
    """Create an empty conversation."""
    caller, service = context.principal, context.service.conversations
    person = require_person(caller)
    settings, _ = await service.check_access(context.tx, person, caller.role)
    context.service.turns.prepare(settings)
    new = await service.create(context.tx, person, _find_surface(caller), context.command)
    return context.build_created_reply(wire.CONVERSATION, new)


async def read_conversation(context: AssistantReadContext) -> Reply:
    """Return a conversation with its messages."""
    person = require_person(context.principal)
    conversation = await context.service.conversations.get(context.tx, person, context.ids["conversation"])
    reply = context.build_resource_reply(wire.CONVERSATION, conversation)

    async def add_messages() -> Reply:
        reply.body["messages"] = await context.service.turns.render_messages(conversation)
        return reply

    reply.complete_later = add_messages
    return reply


async def delete_conversation(context: AssistantWriteContext) -> Reply:
    """Delete a conversation."""
    person = require_person(context.principal)
    await context.service.conversations.delete(context.tx, person, context.ids["conversation"])
    return Reply()


async def run_turn(context: StreamContext[AssistantServices]) -> Reply:
    """Start a turn, and return its stream; or stop the running turn."""
    conversation, turns = context.ids["conversation"], context.service.turns
    principal = create_assistant_principal(context.principal, conversation)
    caller = TurnCaller(context.principal, context.tools, partial(context.call_tool, principal), context.audit_context)
    if context.is_dry_run:
        await turns.check(caller, conversation, context.command)
        return Reply()
    if context.command is None:
        await turns.stop(caller, conversation)
        return Reply()
    stream = await turns.start(caller, conversation, context.command, context.idempotency_key, context.fingerprint)
    replayed = {"Idempotent-Replayed": "true"} if stream.is_replay else {}
    return Reply(stream=stream, headers={"X-Vercel-Ai-Ui-Message-Stream": "v1"} | replayed)


async def list_memories(context: AssistantReadContext) -> Reply:
    """Return a page of the memories of the caller and of the organisation."""
    person, scope = context.principal.user or "", context.query.get("scope")
    page = await context.service.memories.page_visible(context.tx, person, scope, context.page_request)
    return context.build_list_reply(wire.MEMORY, page)


async def create_memory(context: AssistantWriteContext) -> Reply:
    """Create a memory."""
    caller = context.principal
    memory = await context.service.memories.create_memory(context.tx, caller, _find_surface(caller), context.command)
    return context.build_created_reply(wire.MEMORY, memory)


async def update_memory(context: AssistantWriteContext) -> Reply:
    """Change or renew a memory."""
    change, id = context.command, context.ids["memory"]
    return context.build_resource_reply(
        wire.MEMORY, await context.service.memories.change_memory(context.tx, context.principal, id, change)
    )


async def delete_memory(context: AssistantWriteContext) -> Reply:
    """Delete a memory."""
    await context.service.memories.delete_memory(context.tx, context.principal, context.ids["memory"])
    return Reply()


async def delete_memories(context: AssistantWriteContext) -> Reply:
    """Delete all memories of a scope."""
    scope = context.query.get("scope", MemoryScope.PERSON)
    deleted = await context.service.memories.delete_all(context.tx, context.principal, scope)
    return Reply({"object": "deletion", "deleted": deleted})


async def read_preferences(context: AssistantReadContext) -> Reply:
    """Return the caller's preferences."""
    person = require_person(context.principal)
    return context.build_resource_reply(
        wire.PREFERENCES, await context.service.conversations.preferences.get(context.tx, person)
    )


async def update_preferences(context: AssistantWriteContext) -> Reply:
    """Change the caller's preferences."""
    person = require_person(context.principal)
    changed = await context.service.conversations.preferences.update(context.tx, person, context.command)
    return context.build_resource_reply(wire.PREFERENCES, changed)


async def read_settings(context: AssistantReadContext) -> Reply:
    """Return the settings."""
    settings = await context.service.conversations.settings.get(context.tx, SETTINGS_ID)
    return context.build_resource_reply(wire.SETTINGS, settings)


async def update_settings(context: AssistantWriteContext) -> Reply:
    """Change the settings."""
    changed = await context.service.conversations.settings.update(context.tx, SETTINGS_ID, context.command)
    return context.build_resource_reply(wire.SETTINGS, changed)


async def read_spend(context: AssistantReadContext) -> Reply:
    """Return the spend of the month."""
    return context.build_resource_reply(wire.SPEND, await context.service.conversations.get_spend(context.tx))


async def _undo_memories(services: AssistantServices, tx: Tx, act: AuditAct) -> None:
    await services.memories.undo(tx, act)


_PERSON: Final[dict[str, Any]] = {"scope": None, "caller_kind": "person", "agent": None}
_CONVERSATIONS: Final = Collection("assistant", wire.CONVERSATION, "assistant", noun="conversation")
_MEMORIES: Final = Collection("assistant", wire.MEMORY, "assistant_memories", noun="memory")
_PREFERENCES: Final = Collection("assistant", wire.PREFERENCES, "assistant", noun="preferences")
_SETTINGS: Final = Collection("assistant", wire.SETTINGS, "assistant_settings", noun="settings")
_SPEND: Final = Collection("assistant", wire.SPEND, "usage", noun="spend")
_SCOPE: Final = enum(*MemoryScope)

AREA = Area(
    "assistant",
    "Assistant",
    "Conversations in which a language model reads your data, and proposes changes that you approve.",
    create_service=_create_services,
    operations=(
        _CONVERSATIONS.list(
            "List your conversations",
            "Returns your conversations in this mode, newest first. They are deleted 90 days after the last turn.",
            id="assistant.list_conversations",
            handler=list_conversations,
            no_dataset_reason="A conversation belongs to one person.",
            **_PERSON,
        ),
        _CONVERSATIONS.create(
            "Create a conversation",
            "Creates an empty conversation. The first message becomes the title if you send none. `context` is the object that you "
            "are looking at.",
            handler=create_conversation,
            body=wire.NEW_CONVERSATION,
            undo="Delete the conversation instead.",
            feature="assistant",
            **_PERSON,
        ),
        _CONVERSATIONS.read(
            "Read a conversation",
            "Returns a conversation with its messages and the changes that wait for approval.",
            handler=read_conversation,
            path="/v1/assistant/conversations/{conversation}",
            is_exclusive=True,
            **_PERSON,
        ),
        _CONVERSATIONS.delete(
            "Delete a conversation",
            "Deletes a conversation with its messages.",
            handler=delete_conversation,
            path="/v1/assistant/conversations/{conversation}",
            undo="A deleted conversation cannot be restored.",
            **_PERSON,
        ),
        StreamOperation(
            id="assistant.run_turn",
            path="/v1/assistant/conversations/{conversation}/turns",
            method="POST",
            summary="Run a turn",
            description="Sends a message, or a decision on every pending approval, and streams the answer as a UI message stream of "
            "the AI SDK. The assistant acts with your permissions: it reads at once, and every change waits for your approval with its "
            "preview. A turn has at most 20 steps, 25 tool calls and 120 seconds, and continues if you disconnect. To receive its "
            "stream again, repeat the request with the same Idempotency-Key. `stop` stops the running turn.",
            handler=run_turn,
            body=wire.TURN,
            reply=wire.TURN_STREAM,
            rate="write",
            feature="assistant",
            undo="The changes that the assistant made have their own audit entries. Undo those.",
            errors=("conflict", "unprocessable", "ai_budget_reached", "quota_exceeded", "idempotency_key_reused"),
            **_PERSON,
        ),
        _PREFERENCES.read(
            "Read your preferences",
            "Returns whether you use the assistant and its memories, and your budget.",
            handler=read_preferences,
            path=wire.PREFERENCES.path,
            **_PERSON,
        ),
        _PREFERENCES.write(
            "update",
            "Change your preferences",
            "Omitted fields keep their values.",
            handler=update_preferences,
            method="PATCH",
            path=wire.PREFERENCES.path,
            body=wire.PREFERENCES.build_patch_body(),
            undo=UndoSupport(
                "The previous preferences are restored.",
                lambda services, tx, act: services.conversations.preferences.undo(tx, act),
            ),
            **_PERSON,
        ),
        _MEMORIES.list(
            "List memories",
            "Returns your memories and those of the organisation, newest first.",
            id="assistant.list_memories",
            handler=list_memories,
            query={"scope": _SCOPE},
            dataset="assistant_notes",
            **_PERSON,
        ),
        _MEMORIES.create(
            "Create a memory",
            "Remembers a fact or preference in your turns, or with `scope` `org` in those of every member, which requires the scope "
            "`assistant_memories:write`. A memory expires a year after its last change. A person and an organisation have at most 25.",
            handler=create_memory,
            body=wire.NEW_MEMORY,
            errors=("memory_limit",),
            undo=UndoSupport("The memory is deleted.", _undo_memories),
            **_PERSON | {"agent": AgentToolSettings(requires_approval=True)},
        ),
        _MEMORIES.write(
            "delete_all",
            "Delete memories",
            "Deletes all your memories, or with `scope=org` those of the organisation.",
            id="assistant.delete_memories",
            handler=delete_memories,
            method="DELETE",
            path="/v1/assistant/memories",
            query={"scope": _SCOPE},
            reply=wire.DELETION,
            undo=UndoSupport("The memories are created again.", _undo_memories),
            **_PERSON,
        ),
        _MEMORIES.write(
            "update",
            "Change a memory",
            "Replaces the words, or with `renew` extends the lifetime to a year from now.",
            handler=update_memory,
            method="PATCH",
            path="/v1/assistant/memories/{memory}",
            body=wire.MEMORY_CHANGE,
            undo=UndoSupport("The previous words are restored.", _undo_memories),
            **_PERSON,
        ),
        _MEMORIES.delete(
            "Delete a memory",
            "Deletes one of your memories, or one of the organisation, which requires the scope `assistant_memories:write`.",
            handler=delete_memory,
            path="/v1/assistant/memories/{memory}",
            undo=UndoSupport("The memory is created again.", _undo_memories),
            **_PERSON,
        ),
        _SETTINGS.read(
            "Read the settings of the assistant",
            "Returns who can use the assistant, its language model, and what it may cost.",
            handler=read_settings,
            path=wire.SETTINGS.path,
            agent=None,
        ),
        _SETTINGS.write(
            "update",
            "Change the settings of the assistant",
            "Omitted fields keep their values.",
            handler=update_settings,
            method="PATCH",
            path=wire.SETTINGS.path,
            body=wire.SETTINGS.build_patch_body(),
            caller_kind="member_session",
            errors=("model_unpriced",),
            undo=UndoSupport(
                "The previous settings are restored.",
                lambda services, tx, act: services.conversations.settings.undo(tx, act),
            ),
            agent=None,
        ),
        _SPEND.read(
            "Read the spend of the assistant",
            "Returns the cost of the assistant in this month (UTC), by person and day.",
            handler=read_spend,
            path=wire.SPEND.path,
            agent=None,
        ),
    ),
    create_ticks=_create_ticks,
)
