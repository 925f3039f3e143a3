"""The audit log in memory."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.table import Table, Transaction
from domain.audit.chain import ChainHead, linked
from domain.audit.model import AuditEntry, AuditFilter, Change
from domain.audit.ports import Chain
from domain.kernel import retention
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import AuditContext


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept sealed for undoing an entry."""

    entry: str
    sealed: bytes
    expires_at: datetime


AUDIT: Final = Table[AuditEntry]("audit", lambda entry: entry.id)
KEPT: Final = Table[Kept]("audit_kept", lambda kept: kept.entry)
HEADS: Final = Table[ChainHead]("audit_chains", lambda _: "head")
UNDONE: Final = "It was undone at the same moment."


class MemoryAudit:
    """AuditLog. As one writes at a time, entries are chained at once."""

    def __init__(self, transaction: Transaction, context: AuditContext) -> None:
        self._transaction, self._context = transaction, context
        self._rows, self._kept = transaction.rows(AUDIT), transaction.rows(KEPT)
        self._heads = transaction.rows(HEADS)
        self._act: str | None = None
        self._undoes: str | None = None
        self._undone: tuple[int, ...] = ()

    async def add(self, change: Change) -> str:
        await self._transaction.lock()
        id = new_id("aud")
        leads = self._act is None or self._rows.get(self._act) is None
        self._act = id if leads or self._act is None else self._act
        await self._chain(
            AuditEntry(
                id,
                self._context,
                change,
                self._transaction.now,
                self._act,
                self._undoes if leads else None,
                self._undone,
            )
        )
        self._transaction.recorded.changes.append(replace(change, entry=id))
        return id

    async def _chain(self, entry: AuditEntry) -> None:
        head = self._heads.get("head") or ChainHead(0, ChainHead(0, b"").anchor)
        [(sequence, hash)] = linked(self._transaction.tenant, head, [entry])
        await self._rows.put(replace(entry, sequence=sequence, hash=hash))
        await self._heads.put(replace(head, last=sequence, hash=hash))

    async def add_all(self, changes: Sequence[Change]) -> None:
        for change in changes:
            await self.add(change)

    async def keep(self, entry: str, sealed: bytes) -> None:
        await self._kept.put(Kept(entry, sealed, self._transaction.now + retention.KEPT_FOR_UNDOING))
        last = self._rows.get(entry)
        head = self._heads.get("head")
        assert last is not None
        assert head is not None
        assert head.last == last.sequence, "kept for the entry that was added last"
        before = self._rows.where(lambda other: other.sequence == last.sequence - 1)
        hash = before[0].hash if before else None
        await self._heads.put(replace(head, last=last.sequence - 1, hash=hash or head.anchor))
        await self._chain(replace(last, kept=True))

    async def kept(self, entry: str) -> bytes | None:
        found = self._kept.get(entry)
        return found.sealed if found and self._transaction.now < found.expires_at else None

    async def take_back(self, act: Sequence[AuditEntry]) -> None:
        first = act[0]
        if await self.undone_by([first.act]):
            raise Conflict(UNDONE)
        self._undoes, self._undone = first.act, (*first.undone, first.sequence)

    async def take_turn(self, act: str) -> None:
        await self._transaction.lock()

    async def get(self, id: str) -> AuditEntry | None:
        return self._rows.get(id)

    async def acts(self, acts: Sequence[str]) -> Sequence[AuditEntry]:
        return sorted(self._rows.where(lambda entry: entry.act in acts), key=lambda entry: entry.sequence)

    async def undone_by(self, acts: Sequence[str]) -> Mapping[str, str]:
        return {entry.undoes: entry.act for entry in self._rows.where() if entry.undoes in acts and entry.undoes}

    async def standing_on(self, entries: Sequence[AuditEntry]) -> Mapping[str, str]:
        rows = sorted(self._rows.where(), key=lambda entry: entry.sequence)
        undone = await self.undone_by([entry.act for entry in rows])
        found: dict[str, str] = {}
        for later in rows:
            if later.act not in undone and later.act != self._act:
                found.update({entry.act: later.id for entry in entries if later.stands_on(entry)})
        return found

    async def page(self, request: PageRequest, filter: AuditFilter) -> Page[AuditEntry]:
        return self._rows.page(request, filter.matches)

    @asynccontextmanager
    async def chain(self) -> AsyncIterator[Chain]:
        rows = sorted(self._rows.where(), key=lambda entry: entry.sequence)

        async def all_at_once() -> AsyncIterator[Sequence[AuditEntry]]:
            yield rows

        yield self._heads.get("head"), all_at_once()
