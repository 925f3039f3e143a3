"""The ledger of what is stored: what counts against a plan, and what may go."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.storage.model import Holding, StoredKind, StoredObject


class StorageLedger(Protocol):
    """In a tenant's transaction. Whoever counts takes turns with others of the tenant until the transaction ends."""

    async def get(self, key: str) -> StoredObject | None:
        """Return the entry with the key, unless it was freed."""
        ...

    async def used(self) -> int:
        """How many bytes count now."""
        ...

    async def make_room(self, bytes: int) -> bool:
        """Whether the plan has room for so many bytes more.

        Where it has not, snapshots that no run needs are freed, the longest unused first. When it is not enough, the
        transaction must be undone.
        """
        ...

    async def keep(self, wanted: StoredObject, instead_of: str | None = None) -> StoredObject | None:
        """Count an object in before it is written; answers the entry to write under, None when there is no room.

        Of the same `content` the entry that is there already is answered, kept for at least as long. The bytes of the
        entry `instead_of` count no more: they are those of this one.
        """
        ...

    async def count(self, kind: StoredKind) -> int:
        """How many entries of that kind no run reads; exact after `keep` or `make_room`."""
        ...

    async def assign(self, key: str, run: str) -> None:
        """Assign the bytes to a run: they are kept while it is open."""
        ...

    async def settle(self, key: str) -> bool:
        """Keep the bytes until they are freed, whatever their age; return False if they were already freed."""
        ...

    async def holds(self, key: str) -> bool:
        """Whether the bytes are still there to be read."""
        ...

    async def free(self, key: str) -> None:
        """Free the bytes, which are deleted soon; an unknown key is ignored."""
        ...

    async def free_due(self, keys: Collection[str], again: datetime) -> int:
        """Free those of the entries that are due and that no run needs; the others are looked at `again` then.

        Answers how many bytes.
        """
        ...


class StorageUpkeep(Protocol):
    """Across tenants, for the scheduler and for operators."""

    async def due(self, kinds: Collection[StoredKind], now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Entries that may go by their age, the longest due first: (tenant, key)."""
        ...

    async def freed(self, after: str, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Entries that were freed and whose objects may lie there still, by key, from behind the key `after`."""
        ...

    async def forget(self, tenant: Tenant, keys: Collection[str]) -> None:
        """Remove freed entries after their objects were deleted."""
        ...

    async def orphans(self, keys: Mapping[Tenant, Collection[str]]) -> Collection[str]:
        """Which of the keys belong to nothing: neither entry nor run names them, though the organisation is known."""
        ...

    async def holdings(self, now: datetime) -> Sequence[Holding]:
        """Return the counted storage by kind."""
        ...

    async def waiting(self) -> tuple[int, int]:
        """Return the entries and bytes that were freed and are not deleted yet."""
        ...

    async def batches(self) -> Sequence[tuple[Tenant, str, int, datetime]]:
        """Pushed batches that are open, the oldest first, at most a hundred: (tenant, run, bytes, since when)."""
        ...
