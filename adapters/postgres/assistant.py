"""The assistant in PostgreSQL: conversations, turns with their frames, memories, settings and spend."""

from datetime import datetime
from typing import Any

from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    execute_count,
    fetch_all,
    fetch_first,
    fetch_scalar,
    load_statements,
)
from adapters.postgres.table import RowMapping, Table
from domain.assistant.model import (
    AssistantMemory,
    AssistantPreferences,
    AssistantSettings,
    Conversation,
    SpendEntry,
    Turn,
)
from domain.assistant.ports import AssistantUpkeep, MemoryStore, SpendStore, TurnStore
from domain.assistant.usecases.turns import FINAL_CHUNK
from domain.kernel import retention
from domain.kernel.paging import Page, PageRequest

_CONFLICT = "Another request changed the settings at the same time. Read them and try again."
CONVERSATIONS = Table(Conversation, "conversations", list_expression_by_field={"history": "'[]'::bytea"})
MEMORIES = Table(AssistantMemory, "assistant_memories")
SETTINGS = Table(AssistantSettings, "assistant_settings", conflicts={"assistant_settings_pkey": _CONFLICT})
PREFERENCES = Table(AssistantPreferences, "assistant_preferences", conflicts={"assistant_preferences_pkey": _CONFLICT})
_TURNS = RowMapping(Turn)
SQL = load_statements("assistant", turn=_TURNS.build_column_list(), memory=MEMORIES.build_column_list())


class PostgresTurnStore(TenantStore, TurnStore):
    """Turns of the tenant."""

    _sql = SQL
    get_newest = fetch_first(_TURNS.build_from_row)
    find = fetch_first(_TURNS.build_from_row)
    has_answer = fetch_scalar()
    save = execute_count(values=_TURNS.build_params)
    extend = fetch_scalar(
        values=lambda turn, alive_until: {
            "conversation": turn.conversation,
            "number": turn.number,
            "attempt": turn.attempt,
            "alive_until": alive_until,
        }
    )
    append = execute_count(
        values=lambda turn, number, data: {
            "conversation": turn.conversation,
            "turn": turn.number,
            "number": number,
            "data": data,
        }
    )
    delete_chunks = execute_count(values=lambda turn: {"conversation": turn.conversation, "number": turn.number})

    list_chunks = fetch_all(
        lambda turn, number, data: ((turn, number), bytes(data)),
        values=lambda turn, until, after: {
            "conversation": turn.conversation,
            "answer": turn.answer,
            "newest": turn.number,
            "attempt": turn.attempt,
            "until": until,
            "after_turn": after[0],
            "after_number": after[1],
            "final": FINAL_CHUNK,
        },
    )

    async def delete_turns(self, conversation: str) -> None:
        await self._run("delete_frames_of_conversation", conversation=conversation)
        await self._run("delete_turns", conversation=conversation)


class PostgresSpendStore(TenantStore, SpendStore):
    """Spend of the tenant."""

    _sql = SQL
    list_entries = fetch_all(SpendEntry)
    add = execute_count("add_spend")

    async def lock(self) -> None:
        await self._session.acquire_lock("assistant spend")


class PostgresMemoryStore(TenantStore, MemoryStore):
    """Memories of the tenant."""

    _sql = SQL
    list_usable = fetch_all(MEMORIES.build_from_row)
    count = fetch_scalar()
    delete_scope = fetch_all(MEMORIES.build_from_row)

    async def lock(self) -> None:
        await self._session.acquire_lock("assistant memories")

    async def page_visible(self, person: str, scope: str | None, page_request: PageRequest) -> Page[AssistantMemory]:
        values: dict[str, Any] = {"person": person} | ({"scope": scope} if scope else {})
        page: Page[AssistantMemory] = await self._fetch_page(
            MEMORIES.build_from_row, "page_visible", page_request, names=["scope"] if scope else [], **values
        )
        return page


class PostgresAssistantUpkeep(CoordinatorStore, AssistantUpkeep):
    """Conversations of all tenants, node by node."""

    _sql = SQL

    async def count_ended_turns(self, since: datetime) -> tuple[int, int]:
        rows = await self._gather("count_ended_turns", since=since)
        return sum(failed for failed, _ in rows), sum(total for _, total in rows)

    async def delete_expired(self, now: datetime) -> None:
        for name, before in (
            ("conversations", now - retention.CONVERSATIONS),
            ("frames", now - retention.ASSISTANT_FRAMES),
            ("memories", now),
        ):
            await self._delete_by_org(f"list_orgs_with_old_{name}", f"delete_{name}", before=before)
