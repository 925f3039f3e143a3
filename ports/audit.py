"""The audit log in store."""

from collections.abc import Sequence
from typing import Protocol

from domain.audit.model import Change


class AuditLog(Protocol):
    """In a tenant's transaction; who acts and in which request is the transaction's own call."""

    async def add(self, change: Change) -> None:
        """Keep one entry, in the same transaction as the change itself."""
        ...

    async def add_all(self, changes: Sequence[Change]) -> None:
        """Keep many entries."""
        ...
