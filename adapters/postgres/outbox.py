"""Outgoing mail in PostgreSQL: it lies in one place, with the coordinator."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.sqlfile import statements
from domain.outbox.model import OutgoingMessage

SQL = statements("outbox")


class PostgresOutbox:
    """Outbox. Rows are claimed by an update, so that a second scheduler finds none of them."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

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

    async def _run(self, statement: str, **values: Any) -> int:
        async with self._pool.system() as link:
            return (await link.cursor.execute(SQL[statement], values)).rowcount

    async def _messages(self, statement: str, **values: Any) -> list[OutgoingMessage]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL[statement], values)
            rows = await cursor.fetchall()
        return [_message(row) for row in rows]


def _message(row: tuple[Any, ...]) -> OutgoingMessage:
    id_, to, subject, purpose, sealed, *rest = row
    return OutgoingMessage(id_, to, subject, purpose, bytes(sealed), *rest)
