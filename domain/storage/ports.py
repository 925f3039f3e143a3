"""Ports of the storage ledger, which has an entry for each stored object with its size and expiry."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.storage.model import StorageTotal, StoredKind, StoredObject


class StorageLedger(Protocol):
    """Storage ledger in a tenant's transaction. Methods that count bytes lock it until the transaction ends."""

    async def get(self, key: str) -> StoredObject | None:
        """Return the entry with this key, or None if there is none or it was freed."""
        ...

    async def count_used_bytes(self) -> int:
        """Return the number of bytes that count against the storage quota."""
        ...

    async def make_space(self, bytes: int) -> bool:
        """Free unneeded snapshots, longest unused first, until the quota suffices for `bytes` more bytes.

        Returns False if it does not suffice even so; the transaction must then be rolled back.
        """
        ...

    async def add_entry(self, new_entry: StoredObject, replaced_key: str | None = None) -> StoredObject | None:
        """Add an entry for an object before it is written; return the entry, or None if the quota does not suffice.

        If an object with the same `content` is stored already, its entry is returned instead. That entry is assigned to
        the run of the new entry, and not freed before `free_after` of the new entry.

        Args:
            new_entry: The new entry.
            replaced_key: Key of an entry in place of which the new one counts against the quota, or None.
        """
        ...

    async def count_unassigned(self, kind: StoredKind) -> int:
        """Return the number of entries of the kind that belong to no run.

        Call `add_entry` or `make_space` first, which lock the ledger; otherwise concurrent additions may be missed.
        """
        ...

    async def assign_to_run(self, key: str, run: str) -> None:
        """Assign the object to a run, so that it is not freed while the run is open."""
        ...

    async def remove_age_limit(self, key: str) -> bool:
        """Store the object without a time limit, until it is freed explicitly; return False if it was freed already."""
        ...

    async def is_stored(self, key: str) -> bool:
        """Return whether the object has an entry and was not freed."""
        ...

    async def free(self, key: str) -> None:
        """Mark the object for deletion, so that it no longer counts; unknown keys are ignored."""
        ...

    async def free_due(self, keys: Collection[str], recheck_at: datetime) -> int:
        """Free the entries that are due and no longer needed; return the number of bytes freed.

        Entries that are still needed are due again at `recheck_at`.
        """
        ...


class StorageUpkeep(Protocol):
    """Storage ledger of all tenants, for the scheduler and operators."""

    async def list_due(self, kinds: Collection[StoredKind], now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return entries of these kinds whose `free_after` has passed, as (tenant, key), earliest first."""
        ...

    async def list_freed(self, after: str, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return freed entries whose objects may still exist, as (tenant, key), in order of keys after `after`."""
        ...

    async def delete_entries(self, tenant: Tenant, keys: Collection[str]) -> None:
        """Delete freed entries whose objects were deleted."""
        ...

    async def select_orphans(self, keys: Mapping[Tenant, Collection[str]]) -> Collection[str]:
        """Return the given keys to which neither an entry nor a run refers, except keys of deleted organisations."""
        ...

    async def sum_by_kind(self, now: datetime) -> Sequence[StorageTotal]:
        """Return the totals of entries by kind at the time `now`."""
        ...

    async def sum_freed(self) -> tuple[int, int]:
        """Return the number and the total bytes of freed entries that are not deleted yet."""
        ...

    async def list_open_batches(self) -> Sequence[tuple[Tenant, str, int, datetime]]:
        """Return up to a hundred open batches, oldest first, as (tenant, run ID, bytes, time of creation)."""
        ...
