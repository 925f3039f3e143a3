"""Taking bytes in: what is counted before it is written, and how it is refused when the plan has no room."""

import secrets
from datetime import datetime

from domain.kernel import retention
from domain.kernel.errors import QuotaExceeded
from domain.kernel.tenancy import Tenant
from domain.orgs.quota import exceeded
from domain.storage.model import METER, StoredKind, StoredObject, snapshot_key


def no_room(bytes: int, now: datetime) -> QuotaExceeded:
    """Return the error for data that exceed the plan's storage."""
    detail = (
        f"The plan's storage in this mode is used up: {bytes} bytes more do not fit. What open uploads and batches hold "
        "is free again when they end or expire; a larger plan includes more."
    )
    return exceeded(METER, detail, now)


def new_snapshot(tenant: Tenant, run: str, content: str, bytes: int, now: datetime) -> StoredObject:
    """Return a run's snapshot with the content (a hexadecimal digest), before it is written."""
    key = snapshot_key(tenant, content, secrets.token_hex(8))
    return StoredObject(key, StoredKind.SNAPSHOT, bytes, now + retention.SNAPSHOTS, content, run)
