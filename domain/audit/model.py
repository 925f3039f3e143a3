"""What the audit log keeps of a change: the audited fields of a resource that differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.kernel.plain import plain


@dataclass(frozen=True, slots=True)
class Change:
    """A resource was created, updated or deleted; `before` and `after` hold the changed fields in wire shape.

    Secrets never stand in either.
    """

    object: str
    id: str
    action: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def fields(self) -> list[dict[str, Any]]:
        """The changed fields as `{path, old, new}`."""
        paths = sorted(self.before.keys() | self.after.keys())
        return [{"path": path, "old": self.before.get(path), "new": self.after.get(path)} for path in paths]


@dataclass(frozen=True, slots=True)
class Audited:
    """Which fields of a resource the audit log tells, by its name on the wire. Secrets are never among them."""

    object: str
    fields: tuple[str, ...]

    def created(self, row: Any) -> Change:
        """The entry of a new resource."""
        return Change(self.object, row.id, "create", {}, self.reported(row))

    def updated(self, before: Any, after: Any) -> Change:
        """The entry of a changed resource: only the fields that differ."""
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
        """The entry of a resource that is gone."""
        return Change(self.object, row.id, "delete", self.reported(row), {})

    def reported(self, row: Any) -> dict[str, Any]:
        """The audited fields that have a value, as JSON."""
        values = ((name, getattr(row, name)) for name in self.fields)
        return {name: plain(value) for name, value in values if value is not None}
