"""One audited change (decisions.md §6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
