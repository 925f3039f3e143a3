"""Ledger entries of stored objects: counted while they exist, freed when nothing needs them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

METER = "stored_bytes"
"""The plan's meter of bytes stored at once, in each mode separately."""
KEPT_IN_OBJECTS = ("snapshots", "uploads", "images", "exports")
"""Prefixes of object keys; pushed records are rows."""
RECENT = timedelta(minutes=10)
"""Age below which a snapshot is not freed to make room, because its run may still be writing it."""
OPEN_UPLOADS = 100
"""Maximum pending uploads of an organisation and mode."""


class StoredKind(StoredEnum):
    """Kinds of stored bytes."""

    SNAPSHOT = "snapshot"
    UPLOAD = "upload"
    PUSH = "push"
    IMAGE = "image"
    EXPORT = "export"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A ledger entry of `bytes` that count from before they are written until they are freed.

    Every key is used once, so that a deletion never meets a rewritten object. `content` is the digest by which equal
    bytes are stored once; `run` is the run that reads or fetched them. From `free_after` on they may be freed, unless a
    run still needs them. A pushed batch's entry holds its expiry; its parts count separately.
    """

    key: str
    kind: StoredKind
    bytes: int
    free_after: datetime
    content: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """Totals of one kind over all organisations: entries, bytes, and what the next sweep would free."""

    kind: StoredKind
    count: int
    bytes: int
    due_count: int
    due_bytes: int


def owner(tenant: Tenant) -> str:
    """Return the middle part of a tenant's keys, so that tenants never share an object."""
    return f"{tenant.org}/{tenant.mode}"


def snapshot_key(tenant: Tenant, content: str, once: str) -> str:
    """Return a new key for a snapshot of that content; `once` is unique."""
    return f"snapshots/{owner(tenant)}/{once}-{content}"


def upload_key(tenant: Tenant, upload: str) -> str:
    """Return the key of an upload's bytes."""
    return f"uploads/{owner(tenant)}/{upload}"


def image_key(tenant: Tenant, content: str, once: str) -> str:
    """Return a new key for a stored image of that content; `once` is unique."""
    return f"images/{owner(tenant)}/{once}-{content}"


def export_key(tenant: Tenant, export: str, attempt: int, dataset: str) -> str:
    """Return the key of a dataset of an attempt at an export; attempts increase, so that no key is used twice."""
    return f"exports/{owner(tenant)}/{export}-{attempt}-{dataset}.jsonl.gz"


def push_key(tenant: Tenant, run: str) -> str:
    """Return the ledger key of a run's pushed parts."""
    return f"pushes/{owner(tenant)}/{run}"


def tenant_of(key: str) -> Tenant | None:
    """Return the tenant of the object; None for keys of another form."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] not in KEPT_IN_OBJECTS or parts[2] not in ("live", "test"):
        return None
    return Tenant(parts[1], parts[2] == "live")
