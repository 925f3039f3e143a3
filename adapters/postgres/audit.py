"""The audit log in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from psycopg.types.json import Jsonb

from adapters.postgres.session import Session, jsonb
from adapters.postgres.sqlfile import statements
from domain.audit.model import Change
from domain.kernel.ids import new_id

SQL = statements("audit")


class PostgresAuditLog:
    """Entries of the transaction's own call."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, change: Change) -> None:
        self._session.recorded.changes.append(change)
        await self._session.run(SQL["add"], **self._row(change, self._actor()))

    async def add_all(self, changes: Sequence[Change]) -> None:
        self._session.recorded.changes.extend(changes)
        actor = self._actor()
        await self._session.insert_all("audit_entries", [self._row(change, actor) for change in changes])

    def _actor(self) -> Jsonb | None:
        return jsonb(asdict(self._session.context.actor))

    def _row(self, change: Change, actor: Jsonb | None) -> dict[str, Any]:
        session = self._session
        return {
            "id": new_id("aud"),
            "actor": actor,
            "action": session.context.operation,
            "target": change.object,
            "target_id": change.id,
            "change": change.action,
            "before": jsonb(change.before),
            "after": jsonb(change.after),
            "request_id": session.context.request_id,
            "created_at": session.now,
        }
