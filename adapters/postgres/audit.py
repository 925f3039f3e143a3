"""Audit log in PostgreSQL; entries are chained as the last step of a transaction (docs/decisions)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from adapters.postgres.errors import CONFLICT_MESSAGES
from adapters.postgres.session import TenantSession, encode_jsonb
from adapters.postgres.stores import (
    SCAN_LIMIT,
    TIME_BOUNDS,
    TenantStore,
    build_page,
    fetch_first,
    fetch_scalar,
    load_statements,
)
from domain.audit.chain import GENESIS, ChainHead, compute_entry_digest, compute_hashes
from domain.audit.model import AuditEntry, AuditFilter, Change, compute_lowest_id
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
SQL = load_statements(
    "audit", entry=_COLUMNS, index_scan=load_statements("audit")["index_scan"], scan_limit=str(SCAN_LIMIT)
)
CONFLICT_MESSAGES["audit_entries_undoes"] = "Another request undid the change at the same time."
_ENTRIES_PER_QUERY = 1_000
"""Number of entries per query when all entries are read."""
_MAX_ID_DELAY = timedelta(minutes=1)
"""Maximum time between the start of a transaction (its entries' `created_at`) and the creation of the entries' IDs."""
_INDEXED_FILTERS = ("target", "actor", "action", "object")
"""Filters with an index, the most selective first; a list scans the index of the first one that its filter contains."""


def _encode_value(value: Any) -> Jsonb:
    return Jsonb(value, dumps=_ENCODE)


def _build_entry_params(entry: AuditEntry) -> dict[str, Any]:
    context, change = entry.context, entry.change
    return {
        "id": entry.id,
        "actor": _encode_value(context.actor),
        "action": context.operation,
        "target": change.object,
        "target_id": change.id,
        "change": change.action,
        "before": _encode_value(change.before),
        "after": _encode_value(change.after),
        "request_id": context.request_id,
        "created_at": entry.created_at,
        "act": None if entry.act == entry.id else entry.act,
        "undoes": entry.undoes,
        "undone": list(entry.undone) or None,
        "reversible": context.is_reversible,
        "kept": entry.has_sealed,
    }


def _build_entry(*row: Any) -> AuditEntry:
    id, actor, action, request_id, reversible, target, target_id, change, before, after, created_at, *rest = row
    act, undoes, undone, kept, sequence, hash = rest
    context = AuditContext(Actor(**actor), action, request_id, reversible)
    audited = Change(target, target_id, change, before, after, id)
    return AuditEntry(id, context, audited, created_at, act or id, undoes, tuple(undone or ()), kept, sequence, hash)


class PostgresAuditLog(TenantStore, AuditLog):
    """Audit log of the tenant. Changes are collected until `flush` stores them, just before the transaction commits."""

    _sql = SQL
    get_sealed = fetch_scalar()
    get = fetch_first(_build_entry)

    def __init__(self, session: TenantSession) -> None:
        super().__init__(session)
        self._stored_count = 0
        """Number of the transaction's changes that already have audit entries."""
        self._sealed_entries: set[str] = set()
        self._undoes: str | None = None
        self._undone: tuple[int, ...] = ()

    async def add(self, change: Change) -> str:
        identified = replace(change, entry=new_id("aud"))
        self._session.recorded.changes.append(identified)
        return identified.entry

    async def add_all(self, changes: Sequence[Change]) -> None:
        for change in changes:
            await self.add(change)

    async def store_sealed(self, entry: str, sealed: bytes) -> None:
        expires = self._session.now + retention.KEPT_FOR_UNDOING
        await self._run("store_sealed", entry=entry, sealed=sealed, expires_at=expires)
        self._sealed_entries.add(entry)

    async def link_undone_act(self, undone_entries: Sequence[AuditEntry]) -> None:
        self._undoes, self._undone = undone_entries[0].act, (*undone_entries[0].undone, undone_entries[0].sequence)

    async def lock_act(self, act: str) -> None:
        await self._session.acquire_lock("audit", act)

    async def flush(self) -> None:
        """Append entries for the collected changes to the audit chain, as the last step before the commit.

        This locks the chain's last entry, so other writers of the chain wait until the transaction ends.
        """
        changes = self._session.recorded.changes[self._stored_count :]
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
                has_sealed=change.entry in self._sealed_entries,
            )
            for change in changes
        ]
        if len(entries) == 1:
            await self._append(entries[0])
        else:
            await self._append_all(entries)
        self._stored_count += len(entries)

    async def _append(self, entry: AuditEntry) -> None:
        values = {**_build_entry_params(entry), "digest": compute_entry_digest(self._session.tenant, entry)}
        if not await self._run("append_entry", **values):
            await self._run("create_chain", genesis=GENESIS)
            await self._run("append_entry", **values)

    async def _append_all(self, entries: Sequence[AuditEntry]) -> None:
        head = await self._fetch_first(ChainHead, "lock_head")
        if head is None:
            await self._run("create_chain", genesis=GENESIS)
            head = await self._fetch_first(ChainHead, "lock_head")
        assert head is not None, "the audit chain has no head"
        links = list(compute_hashes(self._session.tenant, head, entries))
        rows = [
            {**_build_entry_params(entry), "sequence": sequence, "hash": hash}
            for entry, (sequence, hash) in zip(entries, links, strict=True)
        ]
        await self._session.insert_all("audit_entries", rows)
        await self._run("advance_head", last=links[-1][0], hash=links[-1][1])

    async def list_entries_of_acts(self, acts: Sequence[str]) -> Sequence[AuditEntry]:
        return sorted(
            await self._fetch_all(_build_entry, "list_entries_of_acts", acts=list(acts)),
            key=lambda entry: entry.sequence,
        )

    async def find_undoing_acts(self, acts: Sequence[str]) -> Mapping[str, str]:
        return dict(await self._fetch_rows("find_undoing_acts", acts=list(acts)))

    async def find_dependents(self, entries: Sequence[AuditEntry]) -> Mapping[str, str]:
        criteria = [
            {
                "act": entry.act,
                "object": entry.change.object,
                "target": entry.change.id,
                "sequence": entry.sequence,
                "bound": compute_lowest_id(entry.created_at - _MAX_ID_DELAY),
                "affects_all_fields": entry.change.action != "update",
                "fields": sorted(entry.change.before.keys() | entry.change.after.keys()),
            }
            for entry in entries
        ]
        dependents = await self._fetch_rows("find_dependents", entries=encode_jsonb(criteria))
        return {act: max(id for base, id in dependents if base == act) for act, _ in dependents}

    async def page(self, request: PageRequest, filter: AuditFilter) -> Page[AuditEntry]:
        given = {name: value for name, value in asdict(filter).items() if value is not None}
        values = {**given, "since_id": None, "until_id": None}
        if filter.since is not None:
            values["since_id"] = compute_lowest_id(max(filter.since, TIME_BOUNDS[0]) - _MAX_ID_DELAY)
        if filter.until is not None:
            values["until_id"] = compute_lowest_id(min(filter.until, TIME_BOUNDS[1]) + _MAX_ID_DELAY)
        scanned_filter = next((name for name in _INDEXED_FILTERS if name in given), None)
        if scanned_filter is None or len(given.keys() - {"since", "until"}) == 1:
            return await self._fetch_page(_build_entry, "list_entries", request, names=given, **values)
        names = (given.keys() | {f"scan_{scanned_filter}"}) - {scanned_filter}
        rows = await self._fetch_page_rows("scan_by_index", request, names, **values)
        end = None
        if len(rows) <= request.limit:
            last = await self._fetch_page_rows("find_scan_end", request, names, **values)
            end = last[0][0] if last else None
        return build_page([_build_entry(*row) for row in rows], request, scan_end=end)

    @asynccontextmanager
    async def open_chain(self) -> AsyncIterator[Chain]:
        async with self._session.snapshot():
            yield await self._fetch_first(ChainHead, "get_head"), self._iterate_chain()

    async def _iterate_chain(self) -> AsyncIterator[Sequence[AuditEntry]]:
        after = -1
        while entries := await self._fetch_all(_build_entry, "read_chain", after=after, limit=_ENTRIES_PER_QUERY):
            yield entries
            after = entries[-1].sequence
