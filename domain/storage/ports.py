"""The ledger of stored objects."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.storage.model import Holding, StoredKind, StoredObject


class StorageLedger(Protocol):
    """The ledger in a tenant's transaction. Counting locks the tenant's ledger until the transaction ends."""

    async def get(self, key: str) -> StoredObject | None:
        """Return the entry of that key, unless it was freed."""
        ...

    async def used(self) -> int:
        """Return the number of bytes that count now."""
        ...

    async def make_room(self, bytes: int) -> bool:
        """Return whether the plan has room for that many more bytes.

        If not, unneeded snapshots are freed, longest unused first; if that is not enough, the transaction must be
        rolled back.
        """
        ...

    async def keep(self, wanted: StoredObject, instead_of: str | None = None) -> StoredObject | None:
        """Count an object before it is written; return the entry to write, or None if there is no room.

        An existing entry of the same `content` is returned instead and kept at least as long. The entry `instead_of`,
        which has the same bytes, no longer counts.
        """
        ...

    async def count(self, kind: StoredKind) -> int:
        """Return the number of entries of that kind that no run reads; exact after `keep` or `make_room`."""
        ...

    async def assign(self, key: str, run: str) -> None:
        """Assign the bytes to a run, which keeps them while it is open."""
        ...

    async def settle(self, key: str) -> bool:
        """Keep the bytes until they are freed, whatever their age; return False if they were freed already."""
        ...

    async def holds(self, key: str) -> bool:
        """Return whether the bytes still exist."""
        ...

    async def free(self, key: str) -> None:
        """Stop counting the bytes and delete them soon; unknown keys are ignored."""
        ...

    async def free_due(self, keys: Collection[str], again: datetime) -> int:
        """Free the entries that are due and unneeded; return their bytes. The others are checked `again` then."""
        ...


class StorageUpkeep(Protocol):
    """The ledger across tenants, for the scheduler and operators."""

    async def due(self, kinds: Collection[StoredKind], now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return entries that may be freed by age, longest due first, as (tenant, key)."""
        ...

    async def freed(self, after: str, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return freed entries whose objects may still exist, by key, after the key `after`."""
        ...

    async def forget(self, tenant: Tenant, keys: Collection[str]) -> None:
        """Delete the freed entries, whose objects were deleted."""
        ...

    async def orphans(self, keys: Mapping[Tenant, Collection[str]]) -> Collection[str]:
        """Return the keys of known organisations that neither an entry nor a run names."""
        ...

    async def holdings(self, now: datetime) -> Sequence[Holding]:
        """Return the totals by kind."""
        ...

    async def waiting(self) -> tuple[int, int]:
        """Return the number and bytes of freed entries that are not deleted yet."""
        ...

    async def batches(self) -> Sequence[tuple[Tenant, str, int, datetime]]:
        """Return open pushed batches, oldest first, at most a hundred, as (tenant, run, bytes, since)."""
        ...
