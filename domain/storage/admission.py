"""Admission of objects to the storage, where they are counted before they are written."""

import secrets
from datetime import datetime

from domain.kernel import retention
from domain.kernel.errors import QuotaExceeded
from domain.kernel.tenancy import Tenant
from domain.orgs.quota import build_quota_error
from domain.storage.model import METER, StoredKind, StoredObject, build_snapshot_key


def create_quota_error(bytes: int, now: datetime) -> QuotaExceeded:
    """Return the error for a storage quota that does not suffice for `bytes` more bytes."""
    detail = (
        f"The storage quota of the plan does not suffice for {bytes} more bytes in this mode. Wait until open uploads "
        "and batches have ended or expired, or change the plan."
    )
    return build_quota_error(METER, detail, now)


def create_snapshot_entry(tenant: Tenant, run: str, digest: str, bytes: int, now: datetime) -> StoredObject:
    """Return a ledger entry for a run's new snapshot, with the hexadecimal digest `digest`."""
    key = build_snapshot_key(tenant, digest, secrets.token_hex(8))
    return StoredObject(key, StoredKind.SNAPSHOT, bytes, now + retention.SNAPSHOTS, digest, run)
