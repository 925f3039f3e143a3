"""The audit log in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.memory.table import Table, Transaction
from domain.audit.model import Change
from domain.kernel.ids import new_id
from domain.kernel.tenancy import AuditContext


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A change, who made it and when."""

    id: str
    context: AuditContext
    change: Change
    created_at: datetime


AUDIT: Final = Table[AuditEntry]("audit", lambda entry: entry.id)


class MemoryAudit:
    """AuditLog."""

    def __init__(self, transaction: Transaction, context: AuditContext) -> None:
        self._transaction, self._context = transaction, context
        self._rows = transaction.rows(AUDIT)

    async def add(self, change: Change) -> None:
        await self._rows.add(AuditEntry(new_id("aud"), self._context, change, self._transaction.now))
        self._transaction.recorded.changes.append(change)

    async def add_all(self, changes: Sequence[Change]) -> None:
        for change in changes:
            await self.add(change)
