"""Exports in PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from adapters.postgres.sqlfile import statements
from adapters.postgres.stores import CoordinatorStore
from adapters.postgres.table import Table, TableStore
from domain.exports.model import OPEN, Export, ExportStatus
from domain.kernel.tenancy import Tenant

EXPORTS: Final = Table(Export, "exports")
SQL = statements("exports", columns=EXPORTS.columns())


class PostgresExportStore(TableStore[Export]):
    """The tenant's exports."""

    _sql, _table = SQL, EXPORTS

    async def take_turns(self) -> None:
        await self._session.take_turn("exports")

    async def open(self) -> int:
        return int(await self._value("open", open=sorted(OPEN)))

    async def kept(self) -> Sequence[Export]:
        return await self._selected("kept", status=ExportStatus.SUCCEEDED)


class PostgresExportUpkeep(CoordinatorStore):
    """Across tenants, for the scheduler."""

    _sql = SQL

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        due = await self._gather_due("due", now=now, limit=limit)
        return [(Tenant(org, livemode), id) for _, org, livemode, id in due]

    async def waiting_since(self) -> datetime | None:
        return await self._earliest("waiting_since")
