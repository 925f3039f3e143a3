"""Dated API versions: bodies are created in the newest version's shape, and converted to the requested version's shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Version:
    """Dated API version, with functions that convert its objects to the previous version's shape.

    `downgraders` has such a function for each type of object (value of `object`) whose shape differs.
    """

    date: str
    downgraders: Mapping[str, Callable[[Body], Body]] = field(default_factory=dict)


class Versions:
    """All supported API versions, oldest first."""

    def __init__(self, versions: tuple[Version, ...]) -> None:
        self.dates: tuple[str, ...] = tuple(version.date for version in versions)
        self.latest = versions[-1].date
        self._rewriters = {
            version.date: tuple(newer.downgraders for newer in reversed(versions[index + 1 :]) if newer.downgraders)
            for index, version in enumerate(versions)
        }

    def has_latest_shape(self, date: str) -> bool:
        """Return whether bodies of the version have the same shape as bodies of the newest version."""
        return not self._rewriters[date]

    def convert(self, body: Any, date: str) -> Any:
        """Convert a JSON value, including nested objects, from the newest version's shape to the given version's shape."""
        for rewriters in self._rewriters[date]:
            body = _rewrite(body, rewriters)
        return body


def _rewrite(value: Any, rewriters: Mapping[str, Callable[[Body], Body]]) -> Any:
    if isinstance(value, list):
        return [_rewrite(item, rewriters) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {name: _rewrite(item, rewriters) for name, item in value.items()}
    rewriter = rewriters.get(str(inner.get("object")))
    return rewriter(inner) if rewriter else inner


SUPPORTED = Versions((Version("2026-10-01"), Version("2026-10-04")))
"""The service's versions; neither has breaking changes (docs/conventions.md#versions)."""
