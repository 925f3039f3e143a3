"""Storage of the audit log."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from domain.audit.chain import ChainHead
from domain.audit.model import AuditEntry, AuditFilter, Change
from domain.kernel.paging import Page, PageRequest

Chain = tuple[ChainHead | None, AsyncIterator[Sequence[AuditEntry]]]


class AuditLog(Protocol):
    """Audit log in a tenant's transaction; the transaction's context supplies actor and request.

    Entries are numbered and chained at the end of the transaction; until then, queries do not return them.
    """

    async def add(self, change: Change) -> str:
        """Record a change in the same transaction; return the entry's ID."""
        ...

    async def add_all(self, changes: Sequence[Change]) -> None:
        """Record many changes."""
        ...

    async def store_sealed(self, entry: str, sealed: bytes) -> None:
        """Store an encrypted value with which the entry can be undone, for retention.KEPT_FOR_UNDOING."""
        ...

    async def get_sealed(self, entry: str) -> bytes | None:
        """Return the encrypted value that is stored for undoing the entry, or None."""
        ...

    async def link_undone_act(self, undone_entries: Sequence[AuditEntry]) -> None:
        """Link all entries that are stored later in this transaction to the act that they undo.

        Storing the entries raises Conflict if another transaction has undone the act meanwhile.

        Args:
            undone_entries: The entries of the undone act, in order of their numbers.
        """
        ...

    async def lock_act(self, act: str) -> None:
        """Lock the act, so that no other transaction can undo the act until this one ends."""
        ...

    async def get(self, id: str) -> AuditEntry | None:
        """Return an entry, or None."""
        ...

    async def list_entries_of_acts(self, acts: Sequence[str]) -> Sequence[AuditEntry]:
        """Return the entries of these acts, in order of their numbers."""
        ...

    async def find_undoing_acts(self, acts: Sequence[str]) -> Mapping[str, str]:
        """Map each act that was undone to the act that undid it; acts that were not undone are omitted."""
        ...

    async def find_dependents(self, entries: Sequence[AuditEntry]) -> Mapping[str, str]:
        """Map the ID of each act to the ID of the latest entry that depends on the act, and so prevents its undoing.

        A later entry of another act depends on an act if both change the same field of a resource. A creation or deletion
        changes all fields. Undone entries are ignored, and acts without dependent entries are omitted.

        Args:
            entries: All entries of the acts.
        """
        ...

    async def page(self, request: PageRequest, filter: AuditFilter) -> Page[AuditEntry]:
        """Return a page of entries, newest first; a page may be shorter than the limit if several filters are set."""
        ...

    def open_chain(self) -> AbstractAsyncContextManager[Chain]:
        """Open a snapshot of the hash chain: the head, and batches of all entries in order of their numbers."""
        ...
