"""Admission of bytes to storage, counted before they are written."""

import secrets
from datetime import datetime

from domain.kernel import retention
from domain.kernel.errors import QuotaExceeded
from domain.kernel.tenancy import Tenant
from domain.orgs.quota import exceeded
from domain.storage.model import METER, StoredKind, StoredObject, snapshot_key


def no_room(bytes: int, now: datetime) -> QuotaExceeded:
    """Return the refusal of that many bytes."""
    detail = (
        f"The plan's storage in this mode has no room for {bytes} more bytes. The space of open uploads and batches "
        "becomes free when they end or expire. A larger plan includes more."
    )
    return exceeded(METER, detail, now)


def new_snapshot(tenant: Tenant, run: str, content: str, bytes: int, now: datetime) -> StoredObject:
    """Return the ledger entry of a run's snapshot of that content (a hexadecimal digest), before it is written."""
    key = snapshot_key(tenant, content, secrets.token_hex(8))
    return StoredObject(key, StoredKind.SNAPSHOT, bytes, now + retention.SNAPSHOTS, content, run)
