"""What is stored for an organisation beside its rows: counted while it is there, freed when nothing needs it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

METER = "stored_bytes"
"""The plan's meter: how many bytes may lie there at once, in each mode by itself."""
KEPT_IN_OBJECTS = ("snapshots", "uploads", "images", "exports")
"""What the keys of objects begin with; pushed records are rows."""
RECENT = timedelta(minutes=10)
"""A snapshot that was fetched so lately is not freed to make room: the run that fetched it may still be writing it."""
OPEN_UPLOADS = 100
"""How many announced files of an organisation's mode may wait for their bytes at once."""


class StoredKind(StoredEnum):
    """What the bytes are."""

    SNAPSHOT = "snapshot"
    UPLOAD = "upload"
    PUSH = "push"
    IMAGE = "image"
    EXPORT = "export"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An entry of the ledger: `bytes` that count, from before they are written until they are freed.

    Every key is used once, so whatever deletes an object can never meet one that was written anew. `content` is the
    digest by which the same bytes are kept once; `run` the run that reads or has fetched them. From `free_after` on they
    may go, unless a run needs them still. A pushed batch's entry says when it may expire; its parts count by themselves.
    """

    key: str
    kind: StoredKind
    bytes: int
    free_after: datetime
    content: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """What the ledger says of one kind over all organisations: entries, bytes, and what the next sweep would free."""

    kind: StoredKind
    count: int
    bytes: int
    due_count: int
    due_bytes: int


def owner(tenant: Tenant) -> str:
    """Return the middle part of a tenant's keys, so that tenants never share an object."""
    return f"{tenant.org}/{tenant.mode}"


def snapshot_key(tenant: Tenant, content: str, once: str) -> str:
    """Return a new key for a snapshot of the content; `once` must be unique."""
    return f"snapshots/{owner(tenant)}/{once}-{content}"


def upload_key(tenant: Tenant, upload: str) -> str:
    """Where an upload's bytes are PUT."""
    return f"uploads/{owner(tenant)}/{upload}"


def image_key(tenant: Tenant, content: str, once: str) -> str:
    """Return a new key for a stored image of the content; `once` must be unique."""
    return f"images/{owner(tenant)}/{once}-{content}"


def export_key(tenant: Tenant, export: str, attempt: int, dataset: str) -> str:
    """Where an attempt at an export writes a dataset; attempts only rise, so no key is used twice."""
    return f"exports/{owner(tenant)}/{export}-{attempt}-{dataset}.jsonl.gz"


def push_key(tenant: Tenant, run: str) -> str:
    """Return the key of a run's pushed parts."""
    return f"pushes/{owner(tenant)}/{run}"


def tenant_of(key: str) -> Tenant | None:
    """Whose object it is; None for keys that are none of ours."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] not in KEPT_IN_OBJECTS or parts[2] not in ("live", "test"):
        return None
    return Tenant(parts[1], parts[2] == "live")
