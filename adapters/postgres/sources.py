"""Sources in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from adapters.postgres.listing import newest_first, page_of, page_params
from adapters.postgres.pool import Pool
from adapters.postgres.session import Fetched, Session, jsonb
from adapters.postgres.sqlfile import statements
from domain.kernel.errors import PreconditionFailed
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.sources.model import Schedule, Source, StatusReason

SQL = statements("sources")
_COLUMNS = (
    "id", "catalogue", "name", "kind", "connector", "config", "schedule", "status", "licence_basis", "first_party",
    "has_credentials", "version", "created_at", "updated_at", "status_reason", "inbound_address", "failures", "catalogue_at",
    "stock_at", "next_pull", "next_stock_pull", "interval_factor",
)  # fmt: skip


def _source(row: Fetched) -> Source:
    values = dict(zip(_COLUMNS, row, strict=True))
    reason = values["status_reason"]
    values["schedule"] = Schedule(**values["schedule"])
    values["status_reason"] = StatusReason(**reason) if reason else None
    return Source(**values)


def _values(source: Source) -> dict[str, Any]:
    return {
        "id": source.id,
        "catalogue": source.catalogue,
        "name": source.name,
        "kind": source.kind,
        "connector": source.connector,
        "config": jsonb(source.config),
        "schedule": jsonb(asdict(source.schedule)),
        "status": source.status,
        "status_reason": jsonb(asdict(source.status_reason)) if source.status_reason else None,
        "licence_basis": source.licence_basis,
        "first_party": source.first_party,
        "inbound_address": source.inbound_address,
        "failures": source.failures,
        "catalogue_at": source.catalogue_at,
        "stock_at": source.stock_at,
        "next_pull": source.next_pull,
        "next_stock_pull": source.next_stock_pull,
        "interval_factor": jsonb(source.interval_factor),
        "version": source.version,
        "created_at": source.created_at,
        "updated_at": source.updated_at,
    }


class PostgresSourceStore:
    """The tenant's sources."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def get(self, id: str, *, lock: bool = False) -> Source | None:
        """One source; `lock` keeps others from changing it until the transaction ends."""
        statement = SQL["columns"] + " AND id = %(id)s"
        row = await self.session.one(statement + " FOR UPDATE" if lock else statement, id=id)
        return _source(row) if row else None

    async def add(self, source: Source) -> None:
        """Keep a new source."""
        await self.session.run(SQL["add"], **_values(source))

    async def save(self, source: Source, *, expected_version: int | None = None) -> None:
        """Keep the new state. Raises PreconditionFailed when another version than expected is stored."""
        if not await self.session.run(SQL["save"], expected=expected_version, **_values(source)):
            raise PreconditionFailed("The source has changed since it was read; read it again and retry.")

    async def page(self, page_request: PageRequest) -> Page[Source]:
        """The tenant's sources, newest first."""
        where, order = newest_first(page_request)
        rows = await self.session.all(SQL["columns"] + where + order, **page_params(page_request))
        return page_of([_source(row) for row in rows], page_request, lambda source: source.id)

    async def seal(self, id: str, sealed: bytes | None) -> None:
        """Keep sealed credentials, or forget them (None)."""
        await self.session.run(SQL["seal"], id=id, sealed=sealed)

    async def sealed(self, id: str) -> bytes | None:
        """The sealed credentials."""
        row = await self.session.one(SQL["sealed"], id=id)
        return row[0] if row else None


class PostgresSourceSchedule:
    """Across tenants, for the scheduler."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        """Runnable sources whose next pull is due, the longest due first."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["due"], {"now": now, "limit": limit})
            return [(Tenant(row[0], row[1]), row[2], row[3]) for row in await cursor.fetchall()]

    async def next_due(self) -> datetime | None:
        """When the earliest pull falls due, or None."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["next_due"])
            row = await cursor.fetchone()
            return row[0] if row else None
