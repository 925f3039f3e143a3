"""Dated versions of the wire: bodies are made in the newest shape and rewritten, step by step, to the one asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Version:
    """A dated version. `older` takes an object (by its `object` marker) back to the shape of the version before.

    A rewriter gets the object's fields in this version's shape and answers them in the previous version's.
    """

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
        """Whether bodies of that version look like those of the newest, so that nothing need be read again."""
        return not self._rewriters[date]

    def shape(self, body: Any, date: str) -> Any:
        """Return the JSON value in the shape of the version, including nested objects."""
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
