"""Sources in PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.session import lock_number
from adapters.postgres.sqlfile import statements
from adapters.postgres.table import Table, TableStore
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source, SourceStatus

SQL = statements("sources")
SOURCES: Final = Table(
    Source,
    "sources",
    computed={"has_credentials": "credentials IS NOT NULL"},
    conflicts={"sources_inbound_address": "The inbound address is taken."},
)


class PostgresSourceStore(TableStore[Source]):
    """The tenant's sources, and their sealed credentials beside them."""

    async def seal(self, id: str, sealed: bytes | None) -> None:
        await self.session.run(SQL["seal"], id=id, sealed=sealed)

    async def count(self, *, lock: bool = False) -> int:
        if lock:
            number = lock_number("sources", self.session.tenant.org, self.session.tenant.livemode)
            await self.session.run(SQL["take_turns"], lock=number)
        row = await self.session.one(SQL["count"], disabled=SourceStatus.DISABLED)
        return int(row[0]) if row else 0

    async def sealed(self, id: str) -> bytes | None:
        row = await self.session.one(SQL["sealed"], id=id)
        return row[0] if row else None


class PostgresSourceSchedule:
    """Across tenants, for the scheduler."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        found = await self._pool.scatter_best_effort(reading(SQL["due"], now=now, limit=limit))
        due = sorted(row for rows in found for row in rows)[:limit]
        return [(Tenant(org, livemode), id, stream) for _, org, livemode, id, stream in due]

    async def next_due(self) -> datetime | None:
        found = await self._pool.scatter_best_effort(reading(SQL["next_due"]))
        return min((rows[0][0] for rows in found if rows[0][0] is not None), default=None)
