"""Outgoing mail in PostgreSQL: it lies in one place, with the coordinator."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from adapters.postgres.coordinator_store import CoordinatorStore, Row
from adapters.postgres.sqlfile import statements
from domain.outbox.model import OutgoingMessage

SQL = statements("outbox")


class PostgresOutbox(CoordinatorStore):
    """Outbox. Rows are claimed by an update, so that a second scheduler finds none of them."""

    _sql = SQL

    async def add(self, message: OutgoingMessage) -> None:
        await self._run("add", **{field.name: getattr(message, field.name) for field in fields(message)})

    async def latest(self, limit: int) -> Sequence[OutgoingMessage]:
        return await self._messages("latest", limit=limit)

    async def claim(
        self, now: datetime, until: datetime, not_before: datetime, limit: int
    ) -> Sequence[OutgoingMessage]:
        return await self._messages("claim", now=now, until=until, not_before=not_before, limit=limit)

    async def sent(self, id: str, now: datetime) -> None:
        await self._run("sent", id=id, now=now)

    async def failed(self, id: str, failure: str, next_at: datetime | None) -> None:
        await self._run("failed", id=id, failure=failure, next_at=next_at)

    async def forget(self, before: datetime) -> int:
        return await self._run("forget", before=before)

    async def _messages(self, statement: str, **values: Any) -> list[OutgoingMessage]:
        return [_message(row) for row in await self._rows(statement, **values)]


def _message(row: Row) -> OutgoingMessage:
    id_, to, subject, purpose, sealed, *rest = row
    return OutgoingMessage(id_, to, subject, purpose, bytes(sealed), *rest)
