"""What the audit log keeps of a change, the entry that it is kept in, and when a later one stands on it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.kernel.ids import encode, uuid7
from domain.kernel.plain import plain
from domain.kernel.resource import fields_of
from domain.kernel.tenancy import AuditContext


@dataclass(frozen=True, slots=True)
class Change:
    """A resource was created, updated or deleted; `before` and `after` hold the changed fields in wire shape.

    Secrets never stand in either. `entry` is the id of its audit entry, once it has one.
    """

    object: str
    id: str
    action: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    entry: str = field(default="", compare=False)

    def fields(self) -> list[dict[str, Any]]:
        """Return the changed fields as `{path, old, new}`."""
        paths = sorted(self.before.keys() | self.after.keys())
        return [{"path": path, "old": self.before.get(path), "new": self.after.get(path)} for path in paths]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change, by whom and when. What one transaction changed is one act, named by the id of its first entry.

    `undoes` is the act that this one took back; `undone` are the sequence numbers of that act and of those which it had taken
    back itself, from the first one on. `kept`: something sealed is kept beside it, for undoing. `sequence` counts the tenant's
    entries from 1; `hash` chains them (chain.py), None for those from before there was a chain.
    """

    id: str
    context: AuditContext
    change: Change
    created_at: datetime
    act: str
    undoes: str | None = None
    undone: tuple[int, ...] = ()
    kept: bool = False
    sequence: int = 0
    hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries a list shows; None means any. `since` and `until` (excluded) bound when they were made."""

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    target: str | None = None
    reversible: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Act:
    """What one transaction changed: its entries in their order. `first` was done by hand; undoing and doing again go back to it."""

    entries: tuple[AuditEntry, ...]
    first: AuditEntry

    @property
    def id(self) -> str:
        """That of the first entry."""
        return self.entries[0].act

    def changes(self, *objects: str) -> Iterable[tuple[str, Change]]:
        """Return the changes of these resources with their entry IDs, latest first."""
        return [(one.id, one.change) for one in reversed(self.entries) if one.change.object in objects]


def id_at(moment: datetime) -> str:
    """Return the lowest ID of an entry created at the time."""
    return f"aud_{encode(uuid7(max(0, int(moment.timestamp() * 1000)), 0))}"


@dataclass(frozen=True, slots=True)
class Audited:
    """Which fields of a resource the audit log tells, by its name on the wire. Secrets are never among them."""

    object: str
    fields: tuple[str, ...]

    @classmethod
    def of(cls, kind: type, object: str, *more: str) -> "Audited":
        """Return what the declaration of a resource says (`domain.kernel.resource`), and `more` attributes of its rows."""
        return cls(object, (*(name for name, field in fields_of(kind).items() if field.in_audit_log), *more))

    def created(self, row: Any) -> Change:
        """Return the change of a created resource."""
        return Change(self.object, row.id, "create", {}, self.reported(row))

    def updated(self, before: Any, after: Any) -> Change:
        """Return the change of an updated resource, limited to the fields that differ."""
        old, new = self.reported(before), self.reported(after)
        differing = [name for name in self.fields if old.get(name) != new.get(name)]
        return Change(
            self.object,
            after.id,
            "update",
            {name: old[name] for name in differing if name in old},
            {name: new[name] for name in differing if name in new},
        )

    def deleted(self, row: Any) -> Change:
        """Return the change of a deleted resource."""
        return Change(self.object, row.id, "delete", self.reported(row), {})

    def reported(self, row: Any) -> dict[str, Any]:
        """Return the audited fields that have a value, as JSON types."""
        values = ((name, getattr(row, name)) for name in self.fields)
        return {name: plain(value) for name, value in values if value is not None}
