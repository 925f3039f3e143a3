"""Outgoing mail in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table
from domain.outbox.model import OutgoingMessage

OUTGOING: Final = Table[OutgoingMessage]("outgoing_mail", lambda message: message.id)


class MemoryOutbox:
    """Outbox."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def add(self, message: OutgoingMessage) -> None:
        self._store.write(OUTGOING, EVERYWHERE, message)

    async def latest(self, limit: int) -> Sequence[OutgoingMessage]:
        return sorted(self._all(), key=lambda one: one.id, reverse=True)[:limit]

    async def claim(
        self, now: datetime, until: datetime, not_before: datetime, limit: int
    ) -> Sequence[OutgoingMessage]:
        due = sorted((one.next_at, one.id, one) for one in self._all() if one.next_at and one.next_at <= now)
        claimed = [one for _, _, one in due if one.created_at >= not_before][:limit]
        return [self._changed(one, attempts=one.attempts + 1, next_at=until) for one in claimed]

    async def sent(self, id: str, now: datetime) -> None:
        if (one := self._store.committed(OUTGOING, EVERYWHERE).get(id)) is not None:
            self._changed(one, sent_at=now, next_at=None, failure="", sealed=b"")

    async def failed(self, id: str, failure: str, next_at: datetime | None) -> None:
        if (one := self._store.committed(OUTGOING, EVERYWHERE).get(id)) is not None:
            self._changed(one, failure=failure, next_at=next_at)

    async def forget(self, before: datetime) -> int:
        old = [one for one in self._all() if one.created_at < before]
        for one in old:
            self._store.erase(OUTGOING, EVERYWHERE, one.id)
        return len(old)

    def _all(self) -> Sequence[OutgoingMessage]:
        return list(self._store.committed(OUTGOING, EVERYWHERE).values())

    def _changed(self, message: OutgoingMessage, **changes: Any) -> OutgoingMessage:
        changed = replace(message, **changes)
        self._store.write(OUTGOING, EVERYWHERE, changed)
        return changed
