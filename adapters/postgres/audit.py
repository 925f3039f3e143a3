"""The audit log in PostgreSQL."""

from dataclasses import asdict

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
        session = self._session
        session.recorded.changes.append(change)
        await session.run(
            SQL["add"],
            id=new_id("aud"),
            actor=jsonb(asdict(session.context.actor)),
            action=session.context.operation,
            target=change.object,
            target_id=change.id,
            change=change.action,
            before=jsonb(change.before),
            after=jsonb(change.after),
            request_id=session.context.request_id,
            created_at=session.now,
        )
