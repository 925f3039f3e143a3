"""Audit entries, acts (all entries of one transaction), and the changes that entries record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.kernel.ids import build_uuid7, encode_base62
from domain.kernel.json_values import to_json_value
from domain.kernel.resource import fields_of
from domain.kernel.tenancy import AuditContext


@dataclass(frozen=True, slots=True)
class Change:
    """Creation, update or deletion of a resource.

    `before` and `after` have the changed fields as in the API, without secrets. `entry` is the ID of its audit entry, or
    empty.
    """

    object: str
    id: str
    action: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    entry: str = field(default="", compare=False)

    def list_changed_fields(self) -> list[dict[str, Any]]:
        """Return the changed fields as objects with path, old and new value, sorted by path."""
        paths = sorted(self.before.keys() | self.after.keys())
        return [{"path": path, "old": self.before.get(path), "new": self.after.get(path)} for path in paths]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One recorded change.

    Attributes:
        act: The ID of the act, which is the ID of the first entry of the same transaction.
        undoes: In the first entry of an act that undoes another one, the ID of that other act; otherwise None.
        undone: Sequence numbers of the first entries of the undone acts: the act that this act undoes, preceded by the
            acts that the undone act had undone. Empty for an original change.
        has_sealed: Whether an encrypted value is stored for undoing.
        sequence: Number among the tenant's entries, from 1.
        hash: Hash in the chain (chain.py); None if the entry is older than the chain.
    """

    id: str
    context: AuditContext
    change: Change
    created_at: datetime
    act: str
    undoes: str | None = None
    undone: tuple[int, ...] = ()
    has_sealed: bool = False
    sequence: int = 0
    hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter of a list of entries; None means any.

    Attributes:
        actor: The ID of the actor.
        action: The ID of the operation that made the change, such as `sources.update`.
        object: The type of the changed resource, such as `source`.
        target: The ID of the changed resource.
        reversible: True for only the changes that can be undone in principle (`AuditContext.is_reversible`).
        since: The start of the range of creation times (inclusive).
        until: The end of the range of creation times (exclusive).
    """

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    target: str | None = None
    reversible: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditAct:
    """All entries of one transaction, in order.

    `original_entry` is the first entry of the change that the act undoes or redoes; otherwise the first entry of the act itself.
    """

    entries: tuple[AuditEntry, ...]
    original_entry: AuditEntry

    @property
    def id(self) -> str:
        """The ID of the act, which is the ID of the act's first entry."""
        return self.entries[0].act

    def list_changes(self, *objects: str) -> Iterable[tuple[str, Change]]:
        """Return the changes of resources of these types, latest first, each with the ID of the audit entry."""
        return [(entry.id, entry.change) for entry in reversed(self.entries) if entry.change.object in objects]


def compute_lowest_id(moment: datetime) -> str:
    """Return the lowest ID that an audit entry created at `moment` can have."""
    return f"aud_{encode_base62(build_uuid7(max(0, int(moment.timestamp() * 1000)), 0))}"


@dataclass(frozen=True, slots=True)
class AuditedFields:
    """Names of a resource's fields that the audit log records, as in the API; never secrets."""

    object: str
    fields: tuple[str, ...]

    @classmethod
    def from_resource(cls, kind: type, object: str, *more: str) -> "AuditedFields":
        """Return the fields that a resource type declares as audited (`domain.kernel.resource`), and the fields `more`."""
        return cls(object, (*(name for name, field in fields_of(kind).items() if field.is_in_audit_log), *more))

    def describe_creation(self, row: Any) -> Change:
        """Return the change for an audit entry about a new resource."""
        return Change(self.object, row.id, "create", {}, self.collect_fields(row))

    def describe_update(self, before: Any, after: Any) -> Change:
        """Return the change for an audit entry about an update, with only the fields that differ."""
        old, new = self.collect_fields(before), self.collect_fields(after)
        differing = [name for name in self.fields if old.get(name) != new.get(name)]
        return Change(
            self.object,
            after.id,
            "update",
            {name: old[name] for name in differing if name in old},
            {name: new[name] for name in differing if name in new},
        )

    def describe_deletion(self, row: Any) -> Change:
        """Return the change for an audit entry about a deleted resource."""
        return Change(self.object, row.id, "delete", self.collect_fields(row), {})

    def collect_fields(self, row: Any) -> dict[str, Any]:
        """Return the names and values of the audited fields that have a value, in plain JSON types."""
        values = ((name, getattr(row, name)) for name in self.fields)
        return {name: to_json_value(value) for name, value in values if value is not None}
