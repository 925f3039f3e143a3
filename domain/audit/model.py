"""Audit entries, acts and the recording of changes."""

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
    """A creation, update or deletion of a resource.

    `before` and `after` hold the changed fields as on the wire, without secrets. `entry` is the id of its audit entry,
    or empty.
    """

    object: str
    id: str
    action: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    entry: str = field(default="", compare=False)

    def fields(self) -> list[dict[str, Any]]:
        """Return the changed fields as `{path, old, new}`, sorted by path."""
        paths = sorted(self.before.keys() | self.after.keys())
        return [{"path": path, "old": self.before.get(path), "new": self.after.get(path)} for path in paths]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One recorded change.

    All entries of one transaction form an act, named by the id of its first entry. `undoes` is the act that this one
    undid; `undone` are the sequence numbers of that act's entries and of those that it had undone itself. `kept`: a
    sealed value is stored for undoing. `sequence` counts the tenant's entries from 1; `hash` chains them (chain.py) and
    is None for entries older than the chain.
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
    """Filter of a list of entries; None means any.

    `since` (included) and `until` (excluded) bound the time of creation.
    """

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    target: str | None = None
    reversible: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Act:
    """The entries of one transaction in their order.

    `first` is the entry of the original change if the act undoes or redoes one.
    """

    entries: tuple[AuditEntry, ...]
    first: AuditEntry

    @property
    def id(self) -> str:
        """The id of the first entry."""
        return self.entries[0].act

    def changes(self, *objects: str) -> Iterable[tuple[str, Change]]:
        """Return the changes of resources of these types with the ids of their entries, latest first."""
        return [(entry.id, entry.change) for entry in reversed(self.entries) if entry.change.object in objects]


def id_at(moment: datetime) -> str:
    """Return the least id of an entry that is created at that moment."""
    return f"aud_{encode(uuid7(max(0, int(moment.timestamp() * 1000)), 0))}"


@dataclass(frozen=True, slots=True)
class Audited:
    """The audited fields of a resource, by its name on the wire. Secrets are never among them."""

    object: str
    fields: tuple[str, ...]

    @classmethod
    def of(cls, kind: type, object: str, *more: str) -> "Audited":
        """Return the audited fields that a resource declares (`domain.kernel.resource`), and `more` of its attributes."""
        return cls(object, (*(name for name, field in fields_of(kind).items() if field.in_audit_log), *more))

    def created(self, row: Any) -> Change:
        """Return the change that records a new resource."""
        return Change(self.object, row.id, "create", {}, self.reported(row))

    def updated(self, before: Any, after: Any) -> Change:
        """Return the change that records an update, with only the fields that differ."""
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
        """Return the change that records a deletion."""
        return Change(self.object, row.id, "delete", self.reported(row), {})

    def reported(self, row: Any) -> dict[str, Any]:
        """Return the audited fields that have a value, as JSON."""
        values = ((name, getattr(row, name)) for name in self.fields)
        return {name: plain(value) for name, value in values if value is not None}
