"""Dated API versions: bodies are built in the newest shape and converted step by step to the requested version."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Version:
    """A dated version. `older` converts an object (by its `object` marker) to the shape of the version before."""

    date: str
    older: Mapping[str, Callable[[Body], Body]] = field(default_factory=dict)


class Versions:
    """All supported versions, from the oldest to the newest."""

    def __init__(self, versions: tuple[Version, ...]) -> None:
        self.dates: tuple[str, ...] = tuple(version.date for version in versions)
        self.latest = versions[-1].date
        self._rewriters = {
            version.date: tuple(newer.older for newer in reversed(versions[index + 1 :]) if newer.older)
            for index, version in enumerate(versions)
        }

    def unchanged(self, date: str) -> bool:
        """Return whether bodies of that version equal those of the newest, so that no conversion is needed."""
        return not self._rewriters[date]

    def shape(self, body: Any, date: str) -> Any:
        """Convert the JSON value to that version, including nested objects."""
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
