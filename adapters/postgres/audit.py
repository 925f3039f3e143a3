"""Audit log in PostgreSQL; entries are chained as the last step of a transaction (docs/decisions)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from adapters.postgres.errors import CONFLICTS
from adapters.postgres.session import Session, jsonb
from adapters.postgres.stores import (
    EVER,
    LOOKED,
    TenantStore,
    first,
    page_of,
    statements,
    value,
)
from domain.audit.chain import GENESIS, ChainHead, digest_of, linked
from domain.audit.model import AuditEntry, AuditFilter, Change, id_at
from domain.audit.ports import AuditLog, Chain
from domain.kernel import retention
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, AuditContext

_ENCODE = msgspec.json.Encoder().encode
_COLUMNS = (
    "id, actor, action, request_id, reversible, target, target_id, change, before, after, created_at, act, undoes, undone, "
    "kept, sequence, hash"
)
SQL = statements("audit", entry=_COLUMNS, walked=statements("audit")["walk_one"], looked=str(LOOKED))
CONFLICTS["audit_entries_undoes"] = "The change was undone at the same time by another request."
_CHUNK = 1_000
"""Number of entries per query when all entries are read."""
_SLACK = timedelta(minutes=1)
"""Upper bound of the time between the start of a transaction, which dates its entries, and the creation of their ids."""
_INDEXED = ("target", "actor", "action", "object")
"""Filters with an index, the most selective first; the first given one determines the index."""


def _json(value: Any) -> Jsonb:
    return Jsonb(value, dumps=_ENCODE)


def _row(entry: AuditEntry) -> dict[str, Any]:
    context, change = entry.context, entry.change
    return {
        "id": entry.id,
        "actor": _json(context.actor),
        "action": context.operation,
        "target": change.object,
        "target_id": change.id,
        "change": change.action,
        "before": _json(change.before),
        "after": _json(change.after),
        "request_id": context.request_id,
        "created_at": entry.created_at,
        "act": None if entry.act == entry.id else entry.act,
        "undoes": entry.undoes,
        "undone": list(entry.undone) or None,
        "reversible": context.reversible,
        "kept": entry.kept,
    }


def _entry(*row: Any) -> AuditEntry:
    id, actor, action, request_id, reversible, target, target_id, change, before, after, created_at, *rest = row
    act, undoes, undone, kept, sequence, hash = rest
    context = AuditContext(Actor(**actor), action, request_id, reversible)
    audited = Change(target, target_id, change, before, after, id)
    return AuditEntry(id, context, audited, created_at, act or id, undoes, tuple(undone or ()), kept, sequence, hash)


class PostgresAuditLog(TenantStore, AuditLog):
    """Audit log of the tenant; `flush` stores the changes of the transaction."""

    _sql = SQL
    kept = value()
    get = first(_entry)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._flushed = 0
        """Number of the unit's changes that already have entries."""
        self._kept: set[str] = set()
        self._undoes: str | None = None
        self._undone: tuple[int, ...] = ()

    async def add(self, change: Change) -> str:
        identified = replace(change, entry=new_id("aud"))
        self._session.recorded.changes.append(identified)
        return identified.entry

    async def add_all(self, changes: Sequence[Change]) -> None:
        for change in changes:
            await self.add(change)

    async def keep(self, entry: str, sealed: bytes) -> None:
        expires = self._session.now + retention.KEPT_FOR_UNDOING
        await self._run("keep", entry=entry, sealed=sealed, expires_at=expires)
        self._kept.add(entry)

    async def take_back(self, act: Sequence[AuditEntry]) -> None:
        self._undoes, self._undone = act[0].act, (*act[0].undone, act[0].sequence)

    async def take_turn(self, act: str) -> None:
        await self._session.take_turn("audit", act)

    async def flush(self) -> None:
        """Append the added changes to the chain, just before the commit, since this locks the chain's head."""
        changes = self._session.recorded.changes[self._flushed :]
        if not changes:
            return
        session = self._session
        act = session.recorded.changes[0].entry
        entries = [
            AuditEntry(
                id=change.entry,
                context=session.context,
                change=change,
                created_at=session.now,
                act=act,
                undoes=self._undoes if change.entry == act else None,
                undone=self._undone,
                kept=change.entry in self._kept,
            )
            for change in changes
        ]
        if len(entries) == 1:
            await self._append(entries[0])
        else:
            await self._append_all(entries)
        self._flushed += len(entries)

    async def _append(self, entry: AuditEntry) -> None:
        values = {**_row(entry), "digest": digest_of(self._session.tenant, entry)}
        if not await self._run("append", **values):
            await self._run("begin", genesis=GENESIS)
            await self._run("append", **values)

    async def _append_all(self, entries: Sequence[AuditEntry]) -> None:
        head = await self._first(ChainHead, "lock_head")
        if head is None:
            await self._run("begin", genesis=GENESIS)
            head = await self._first(ChainHead, "lock_head")
        assert head is not None, "a chain without a head"
        links = list(linked(self._session.tenant, head, entries))
        rows = [
            {**_row(entry), "sequence": sequence, "hash": hash}
            for entry, (sequence, hash) in zip(entries, links, strict=True)
        ]
        await self._session.insert_all("audit_entries", rows)
        await self._run("raise", last=links[-1][0], hash=links[-1][1])

    async def acts(self, acts: Sequence[str]) -> Sequence[AuditEntry]:
        return sorted(await self._every(_entry, "acts", acts=list(acts)), key=lambda entry: entry.sequence)

    async def undone_by(self, acts: Sequence[str]) -> Mapping[str, str]:
        return dict(await self._rows("undone_by", acts=list(acts)))

    async def standing_on(self, entries: Sequence[AuditEntry]) -> Mapping[str, str]:
        criteria = [
            {
                "act": entry.act,
                "object": entry.change.object,
                "target": entry.change.id,
                "sequence": entry.sequence,
                "bound": id_at(entry.created_at - _SLACK),
                "whole": entry.change.action != "update",
                "fields": sorted(entry.change.before.keys() | entry.change.after.keys()),
            }
            for entry in entries
        ]
        dependents = await self._rows("standing_on", entries=jsonb(criteria))
        return {act: max(id for base, id in dependents if base == act) for act, _ in dependents}

    async def page(self, request: PageRequest, filter: AuditFilter) -> Page[AuditEntry]:
        given = {name: value for name, value in asdict(filter).items() if value is not None}
        values = {**given, "since_id": None, "until_id": None}
        if filter.since is not None:
            values["since_id"] = id_at(max(filter.since, EVER[0]) - _SLACK)
        if filter.until is not None:
            values["until_id"] = id_at(min(filter.until, EVER[1]) + _SLACK)
        walked = next((name for name in _INDEXED if name in given), None)
        if walked is None or len(given.keys() - {"since", "until"}) == 1:
            return await self._page(_entry, "list", request, names=given, **values)
        names = (given.keys() | {f"walk_{walked}"}) - {walked}
        rows = await self._listed("walked", request, names, **values)
        end = None
        if len(rows) <= request.limit:
            last = await self._listed("walked_end", request, names, **values)
            end = last[0][0] if last else None
        return page_of([_entry(*row) for row in rows], request, end=end)

    @asynccontextmanager
    async def chain(self) -> AsyncIterator[Chain]:
        async with self._session.snapshot():
            yield await self._first(ChainHead, "head"), self._walk()

    async def _walk(self) -> AsyncIterator[Sequence[AuditEntry]]:
        after = -1
        while entries := await self._every(_entry, "walk", after=after, limit=_CHUNK):
            yield entries
            after = entries[-1].sequence
