"""Stored answers in memory."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.table import MemoryDatabase, Table, Transaction
from domain.kernel.errors import RequestInProgress
from domain.kernel.retention import IDEMPOTENT_ANSWERS
from ports.clock import Clock
from ports.idempotency import StoredAnswer


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer under its key, and when it may be forgotten."""

    key: str
    answer: StoredAnswer
    until: datetime


ANSWERS: Final = Table[Kept]("idempotency", lambda kept: kept.key)


class MemoryIdempotency:
    """IdempotencyStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows(ANSWERS)

    async def hold(self, key: str) -> StoredAnswer | None:
        place = (self._transaction.tenant, key)
        if self._transaction.store.holds.setdefault(place, self._transaction) is not self._transaction:
            raise RequestInProgress(retry_after=1)
        kept = self._rows.get(key)
        return kept.answer if kept and kept.until > self._transaction.now else None

    async def keep(self, key: str, answer: StoredAnswer) -> None:
        await self._rows.put(Kept(key, answer, self._transaction.now + IDEMPOTENT_ANSWERS))

    async def revise(self, key: str, body: bytes) -> None:
        if kept := self._rows.get(key):
            await self._rows.put(replace(kept, answer=replace(kept.answer, body=body)))


class MemoryIdempotencyMaintenance:
    """IdempotencyMaintenance."""

    def __init__(self, store: MemoryDatabase, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def purge_expired(self) -> int:
        now = self._clock.now()
        expired = [(tenant, kept.key) for tenant, kept in self._store.everyone(ANSWERS) if kept.until <= now]
        for tenant, key in expired:
            self._store.erase(ANSWERS, tenant, key)
        return len(expired)
