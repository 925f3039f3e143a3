"""Entries of the storage ledger, which count stored objects against the quota, and keys of objects."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

METER = "stored_bytes"
"""Meter of stored bytes. Each mode has a separate quota."""
OBJECT_PREFIXES = ("snapshots", "uploads", "images", "exports")
"""Prefixes of the keys of stored objects; pushed records are in the database instead of the object store."""
MIN_FREED_AGE = timedelta(minutes=10)
"""Minimum age of a snapshot that may be freed to make space, because a run may still be writing a younger one."""
MAX_PENDING_UPLOADS = 100
"""Maximum number of a tenant's pending uploads and draft files; a further one raises Conflict."""


class StoredKind(StoredEnum):
    """Kinds of stored objects."""

    SNAPSHOT = "snapshot"
    UPLOAD = "upload"
    PUSH = "push"
    IMAGE = "image"
    EXPORT = "export"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Entry of the storage ledger: a stored object, or the records of a push, which count against the quota.

    Attributes:
        key: Key of the object; it is never used again, so that a deletion cannot affect a new object.
        bytes: Size in bytes.
        free_after: When the object may be freed, unless a run still needs it; for a pushed batch, when the batch
            expires.
        content: Digest of the object's content, by which equal content is stored only once.
        run: ID of the run that fetched or reads the object.
    """

    key: str
    kind: StoredKind
    bytes: int
    free_after: datetime
    content: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class StorageTotal:
    """Totals of all organisations' ledger entries of one kind; `due_…` are the totals of entries that the next sweep frees."""

    kind: StoredKind
    count: int
    bytes: int
    due_count: int
    due_bytes: int


def build_tenant_path(tenant: Tenant) -> str:
    """Return the part of an object key that identifies the tenant."""
    return f"{tenant.org}/{tenant.mode}"


def build_snapshot_key(tenant: Tenant, digest: str, nonce: str) -> str:
    """Return the key for a new snapshot with the digest `digest`; the random text `nonce` makes the key unique."""
    return f"snapshots/{build_tenant_path(tenant)}/{nonce}-{digest}"


def build_upload_key(tenant: Tenant, upload: str) -> str:
    """Return the key of an uploaded file."""
    return f"uploads/{build_tenant_path(tenant)}/{upload}"


def build_image_key(tenant: Tenant, digest: str, nonce: str) -> str:
    """Return the key for a new image with the digest `digest`; the random text `nonce` makes the key unique."""
    return f"images/{build_tenant_path(tenant)}/{nonce}-{digest}"


def build_export_key(tenant: Tenant, export: str, attempt: int, dataset: str, extension: str = "jsonl.gz") -> str:
    """Return the key of the file of a dataset in an export; each attempt has different keys."""
    return f"exports/{build_tenant_path(tenant)}/{export}-{attempt}-{dataset}.{extension}"


def build_push_key(tenant: Tenant, run: str) -> str:
    """Return the key of the ledger entry for the pushed records of a run."""
    return f"pushes/{build_tenant_path(tenant)}/{run}"


def parse_tenant(key: str) -> Tenant | None:
    """Return the tenant that an object key contains, or None for other keys."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] not in OBJECT_PREFIXES or parts[2] not in ("live", "test"):
        return None
    return Tenant(parts[1], parts[2] == "live")
