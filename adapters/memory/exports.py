"""Exports in memory."""

from collections.abc import Sequence
from datetime import datetime

from adapters.memory.table import MemoryDatabase, TableStore, Transaction, table_of
from domain.exports.model import OPEN, Export, ExportStatus
from domain.kernel.tenancy import Tenant

EXPORTS = table_of(Export)


class MemoryExports(TableStore[Export]):
    """ExportStore."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, EXPORTS)

    async def take_turns(self) -> None:
        await self.transaction.lock()

    async def open(self) -> int:
        return len(self.rows.where(lambda export: export.status in OPEN))

    async def kept(self) -> Sequence[Export]:
        return self.rows.sorted(lambda export: export.status == ExportStatus.SUCCEEDED)


class MemoryExportUpkeep:
    """ExportUpkeep."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        due = sorted(
            (export.expires_at, export.id, tenant)
            for tenant, export in self._store.everyone(EXPORTS)
            if export.status == ExportStatus.SUCCEEDED and export.expires_at is not None and export.expires_at <= now
        )
        return [(tenant, id) for _, id, tenant in due[:limit]]

    async def waiting_since(self) -> datetime | None:
        pending = (
            export.created_at for _, export in self._store.everyone(EXPORTS) if export.status == ExportStatus.PENDING
        )
        return min(pending, default=None)
