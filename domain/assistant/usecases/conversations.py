"""Use cases of conversations, memories, settings, preferences and spend."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from domain.access.model import Principal
from domain.assistant.model import (
    AUDITED_CONVERSATION,
    AUDITED_PREFERENCES,
    AUDITED_SETTINGS,
    MAX_MEMORIES,
    MEMORY_LIFETIME,
    SETTINGS_ID,
    AssistantMemory,
    AssistantPreferences,
    AssistantSettings,
    AssistantSpend,
    Conversation,
    ConversationFilter,
    MemoryChange,
    MemoryScope,
    NewConversation,
    NewMemory,
    Surface,
    require_memory_content,
)
from domain.assistant.ports import MemoryStore, SpendStore, TurnStore
from domain.audit.model import AuditAct, AuditedFields
from domain.audit.ports import AuditLog
from domain.audit.resources import ResourceService, SettingsService
from domain.kernel.errors import Conflict, MemoryLimitReached, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.usage.meters import find_month_start
from domain.usage.model_budget import require_priced_model
from ports.unit_of_work import Tx


class AssistantSettingsService(SettingsService[AssistantSettings]):
    """Use cases of a tenant's settings of the assistant."""

    kind = AssistantSettings
    audited = AUDITED_SETTINGS

    def __init__(self, has_price: Callable[[str | None], bool] | None) -> None:
        """Create the service; `has_price` returns whether a model has a price, and is None if no model is configured."""
        self._has_price = has_price

    async def _validate(self, tx: Tx, row: AssistantSettings, names: Collection[str]) -> AssistantSettings:
        if "model" in names and row.model is not None:
            require_priced_model(self._has_price, row.model)
        return row


class AssistantPreferencesService(SettingsService[AssistantPreferences]):
    """Use cases of a person's preferences; the ID is the ID of the person."""

    kind = AssistantPreferences
    audited = AUDITED_PREFERENCES

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Restore the preferences to their state before the act. Raises PermissionDenied for those of others."""
        for _, change in act.list_changes(self.audited.object):
            _require_owner(tx, change.id)
        await super().undo(tx, act)


@dataclass(frozen=True, slots=True)
class ConversationService:
    """Use cases of conversations and memories. Conversations and personal memories of others count as unknown.

    Attributes:
        settings: Settings of the organisation.
        preferences: Preferences of a person.
    """

    settings: AssistantSettingsService
    preferences: AssistantPreferencesService

    async def check_access(self, tx: Tx, person: str, role: str) -> tuple[AssistantSettings, AssistantPreferences]:
        """Return the settings and preferences. Raises PermissionDenied if the person may not use the assistant."""
        settings = await self.settings.get(tx, SETTINGS_ID)
        preferences = await self.preferences.get(tx, person)
        if not settings.enabled:
            raise PermissionDenied("The assistant is off for your organisation. An administrator can enable it.")
        if role not in settings.roles:
            raise PermissionDenied(f"Members with the role {role} may not use the assistant. Ask an administrator.")
        if not preferences.enabled:
            raise PermissionDenied("The assistant is off in your preferences. Enable it there.")
        return settings, preferences

    async def page(self, tx: Tx, person: str, request: PageRequest) -> Page[Conversation]:
        """Return a page of the person's conversations, newest first."""
        return await tx.store(Conversation).page(request, ConversationFilter(person))

    async def get(self, tx: Tx, person: str, id: str, *, lock: bool = False) -> Conversation:
        """Return a conversation of the person. Raises NotFound."""
        conversation = await tx.store(Conversation).get(id, lock=lock)
        if conversation is None or conversation.person != person:
            raise NotFound
        return conversation

    async def create(self, tx: Tx, person: str, surface: Surface, new: NewConversation) -> Conversation:
        """Create an empty conversation."""
        context = new.get("context", {})
        conversation = Conversation(
            id=new_id("cnv"),
            person=person,
            title=new.get("title"),
            surface=surface,
            context_object=context.get("object"),
            context_id=context.get("id"),
            active_at=tx.now,
            created_at=tx.now,
            updated_at=tx.now,
        )
        await tx.store(Conversation).add(conversation)
        await tx[AuditLog].add(AUDITED_CONVERSATION.describe_creation(conversation))
        return conversation

    async def delete(self, tx: Tx, person: str, id: str) -> None:
        """Delete a conversation with its turns. Raises NotFound; Conflict while a turn is running."""
        conversation = await self.get(tx, person, id, lock=True)
        newest = await tx[TurnStore].get_newest(id)
        if newest is not None and newest.is_running(tx.now):
            raise Conflict("A turn of this conversation is running. Wait until it ends, or stop it.")
        await tx[TurnStore].delete_turns(id)
        await tx.store(Conversation).remove(id)
        await tx[AuditLog].add(AUDITED_CONVERSATION.describe_deletion(conversation))

    async def get_spend(self, tx: Tx) -> AssistantSpend:
        """Return the spend of the current month (UTC)."""
        today = tx.now.date()
        settings = await self.settings.get(tx, SETTINGS_ID)
        entries = await tx[SpendStore].list_entries(find_month_start(today))
        return AssistantSpend(entries, today, settings.daily_allowance_micros)


class MemoryService(ResourceService[AssistantMemory]):
    """Use cases of memories. Those of the organisation require the scope `assistant_memories:write` to change."""

    kind = AssistantMemory
    prefix = "mem"
    audited = AuditedFields.from_resource(AssistantMemory, "assistant_memory")

    async def page_visible(self, tx: Tx, person: str, scope: str | None, request: PageRequest) -> Page[AssistantMemory]:
        """Return a page of the memories that the person can see, newest first."""
        return await tx[MemoryStore].page_visible(person, scope, request)

    async def create_memory(self, tx: Tx, caller: Principal, surface: Surface, new: NewMemory) -> AssistantMemory:
        """Create a memory; one that the assistant proposed refers to its conversation.

        Raises:
            InvalidRequest: The content is not one paragraph of plain words.
            MemoryLimitReached: The person or the organisation has the maximum number of memories.
            PermissionDenied: The caller may not create memories of the organisation.
        """
        scope, actor = MemoryScope(new.get("scope", MemoryScope.PERSON)), caller.actor
        _require_permission(caller, scope)
        conversation = await tx.store(Conversation).get(actor.id) if actor.kind == "agent" else None
        values: dict[str, Any] = {
            "scope": scope,
            "content": new["content"],
            "created_by": require_person(caller),
            "surface": conversation.surface if conversation else surface,
            "expires_at": tx.now + MEMORY_LIFETIME,
        }
        if conversation is not None:
            values |= {"source": "assistant", "conversation_id": conversation.id}
            values |= {"tool_data_seen": conversation.has_read_data}
        return await self.create(tx, values)

    async def change_memory(self, tx: Tx, caller: Principal, id: str, change: MemoryChange) -> AssistantMemory:
        """Replace the words of a memory, or renew it, and extend its lifetime to a year. Raises NotFound; errors of `create_memory`."""
        memory = await self._get_changeable(tx, caller, id)
        if not change.get("renew") and change.get("content", memory.content) == memory.content:
            return memory
        content = {name: value for name, value in change.items() if name == "content"}
        return await self.update(tx, id, content, restored_values={"expires_at": tx.now + MEMORY_LIFETIME})

    async def delete_memory(self, tx: Tx, caller: Principal, id: str) -> None:
        """Delete a memory. Raises NotFound; PermissionDenied."""
        await self._get_changeable(tx, caller, id)
        await self.delete(tx, id)

    async def delete_all(self, tx: Tx, caller: Principal, scope: str) -> int:
        """Delete all memories of the scope that belong to the caller or the organisation; return their number."""
        _require_permission(caller, MemoryScope(scope))
        deleted = await tx[MemoryStore].delete_scope(scope, require_person(caller))
        for memory in deleted:
            await tx[AuditLog].add(self.audited.describe_deletion(memory))
        return len(deleted)

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Restore memories to their state before the act. Raises PermissionDenied for personal memories of others."""
        for _, change in act.list_changes(self.audited.object):
            recorded = {**change.before, **change.after}
            if change.action == "update":
                recorded = self.audited.collect_fields(await self.get(tx, change.id))
            if recorded["scope"] == MemoryScope.PERSON:
                _require_owner(tx, recorded["created_by"])
        await super().undo(tx, act)

    async def _get_changeable(self, tx: Tx, caller: Principal, id: str) -> AssistantMemory:
        memory = await self.get(tx, id, lock=True)
        if memory.scope == MemoryScope.PERSON and memory.created_by != caller.user:
            raise NotFound
        _require_permission(caller, memory.scope)
        return memory

    async def _validate(self, tx: Tx, row: AssistantMemory, names: Collection[str]) -> AssistantMemory:
        require_memory_content(row.content)
        if "created_by" in names:
            await tx[MemoryStore].lock()
            if await tx[MemoryStore].count(row.scope, row.created_by) >= MAX_MEMORIES:
                owner = "A person" if row.scope == MemoryScope.PERSON else "An organisation"
                raise MemoryLimitReached(f"{owner} can have at most {MAX_MEMORIES} memories. Delete one first.")
        return row


def require_person(caller: Principal) -> str:
    """Return the ID of the person behind a credential. Raises PermissionDenied for API keys."""
    if caller.user is None:
        raise PermissionDenied("Only a signed-in person may do this, not an API key or an app.")
    return caller.user


def _require_owner(tx: Tx, person: str) -> None:
    """Raise PermissionDenied unless the transaction's actor is the person, or acts for the person."""
    if person != tx.context.actor.responsible:
        raise PermissionDenied("Only the person to whom the preferences or the memory belong may undo the change.")


def _require_permission(caller: Principal, scope: str) -> None:
    if scope == MemoryScope.ORG and "assistant_memories:write" not in caller.scopes:
        raise PermissionDenied(
            "Memories of the organisation require the scope assistant_memories:write, which administrators have."
        )
