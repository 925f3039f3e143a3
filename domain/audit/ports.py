"""The audit log in store."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from domain.audit.chain import ChainHead
from domain.audit.model import AuditEntry, AuditFilter, Change
from domain.kernel.paging import Page, PageRequest

Chain = tuple[ChainHead | None, AsyncIterator[Sequence[AuditEntry]]]


class AuditLog(Protocol):
    """In a tenant's transaction; who acts and in which request is the transaction's own call.

    Entries are chained as the transaction's last step: until then they are found by no question here.
    """

    async def add(self, change: Change) -> str:
        """Keep one entry, in the same transaction as the change itself; answers its id."""
        ...

    async def add_all(self, changes: Sequence[Change]) -> None:
        """Keep many entries."""
        ...

    async def keep(self, entry: str, sealed: bytes) -> None:
        """Keep what undoing will need, sealed for the entry, for as long as retention.KEPT_FOR_UNDOING; no API reads it."""
        ...

    async def kept(self, entry: str) -> bytes | None:
        """Return the sealed data that are stored for an entry."""
        ...

    async def take_back(self, act: Sequence[AuditEntry]) -> None:
        """Mark the changes that follow in this transaction as undoing the act. Raises Conflict if it is already undone."""
        ...

    async def take_turn(self, act: str) -> None:
        """Wait for whoever is undoing that act."""
        ...

    async def get(self, id: str) -> AuditEntry | None:
        """One entry."""
        ...

    async def acts(self, acts: Sequence[str]) -> Sequence[AuditEntry]:
        """Return the entries of these acts in the order of their numbers."""
        ...

    async def undone_by(self, acts: Sequence[str]) -> Mapping[str, str]:
        """Which act has undone each of these; those that nobody has undone are left out."""
        ...

    async def standing_on(self, entries: Sequence[AuditEntry]) -> Mapping[str, str]:
        """For each of these acts that a later entry stands on (AuditEntry.stands_on): the latest such entry."""
        ...

    async def page(self, request: PageRequest, filter: AuditFilter) -> Page[AuditEntry]:
        """Return a page of entries, newest first; with several filters it may be short."""
        ...

    def chain(self) -> AbstractAsyncContextManager[Chain]:
        """Of one moment: the head of the tenant's chain, and all entries in the order of their numbers, many at a time."""
        ...
