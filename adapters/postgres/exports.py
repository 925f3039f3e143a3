"""Exports in PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.session import lock_number
from adapters.postgres.sqlfile import statements
from adapters.postgres.table import Table, TableStore
from domain.exports.model import OPEN, Export, ExportStatus
from domain.kernel.tenancy import Tenant

EXPORTS: Final = Table(Export, "exports")
SQL = statements("exports", columns=EXPORTS.columns())


class PostgresExportStore(TableStore[Export]):
    """The tenant's exports."""

    async def take_turns(self) -> None:
        tenant = self.session.tenant
        await self.session.run(SQL["take_turns"], lock=lock_number("exports", tenant.org, tenant.livemode))

    async def open(self) -> int:
        row = await self.session.one(SQL["open"], open=sorted(OPEN))
        return int(row[0]) if row else 0

    async def kept(self) -> Sequence[Export]:
        found = await self.session.all(SQL["kept"], status=ExportStatus.SUCCEEDED)
        return [self.table.row_of(row) for row in found]


class PostgresExportUpkeep:
    """Across tenants, for the scheduler."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        found = await self._pool.scatter_best_effort(reading(SQL["due"], now=now, limit=limit))
        due = sorted(row for rows in found for row in rows)[:limit]
        return [(Tenant(org, livemode), id) for _, org, livemode, id in due]

    async def waiting_since(self) -> datetime | None:
        found = await self._pool.scatter_best_effort(reading(SQL["waiting_since"]))
        return min((rows[0][0] for rows in found if rows[0][0] is not None), default=None)
