"""Storage of the audit log."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from domain.audit.chain import ChainHead
from domain.audit.model import AuditEntry, AuditFilter, Change
from domain.kernel.paging import Page, PageRequest

Chain = tuple[ChainHead | None, AsyncIterator[Sequence[AuditEntry]]]


class AuditLog(Protocol):
    """The audit log in a tenant's transaction, whose context supplies actor and request.

    Entries are chained as the last step of the transaction; until then queries do not return them.
    """

    async def add(self, change: Change) -> str:
        """Record a change in its own transaction; return the entry's id."""
        ...

    async def add_all(self, changes: Sequence[Change]) -> None:
        """Record many changes."""
        ...

    async def keep(self, entry: str, sealed: bytes) -> None:
        """Store a sealed value that undoing needs, for retention.KEPT_FOR_UNDOING; no API returns it."""
        ...

    async def kept(self, entry: str) -> bytes | None:
        """Return the sealed value stored for an entry, or None."""
        ...

    async def take_back(self, act: Sequence[AuditEntry]) -> None:
        """Mark all further entries of this transaction as undoing the act.

        Raises Conflict if the act was undone meanwhile.
        """
        ...

    async def take_turn(self, act: str) -> None:
        """Lock the act against concurrent undoing until the transaction ends."""
        ...

    async def get(self, id: str) -> AuditEntry | None:
        """Return an entry, or None."""
        ...

    async def acts(self, acts: Sequence[str]) -> Sequence[AuditEntry]:
        """Return the entries of these acts, ordered by number."""
        ...

    async def undone_by(self, acts: Sequence[str]) -> Mapping[str, str]:
        """Return the undoing act by act; acts that were not undone are omitted."""
        ...

    async def standing_on(self, entries: Sequence[AuditEntry]) -> Mapping[str, str]:
        """Return, by act, the latest entry that depends on the act; acts without one are omitted."""
        ...

    async def page(self, request: PageRequest, filter: AuditFilter) -> Page[AuditEntry]:
        """Return a page of entries, newest first; with several filters a page may be short."""
        ...

    def chain(self) -> AbstractAsyncContextManager[Chain]:
        """Open one snapshot of the chain's head and of all entries in batches, ordered by number."""
        ...
