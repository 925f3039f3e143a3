"""What agents may read without calling anything: the categories, the health of a source, what an error code means."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from entrypoints.mcp.calls import Calls, Message, Outcome, encode
from entrypoints.operations.codes import Code

CATEGORIES = "joinery://categories"
ERRORS = "joinery://errors"
SOURCE_HEALTH = "joinery://sources/{id}/health"
ERROR = "joinery://errors/{code}"
JSON = "application/json"
MARKDOWN = "text/markdown"
_SOURCE = re.compile(r"joinery://sources/([0-9A-Za-z_]{1,64})/health")
_CODE = re.compile(r"joinery://errors/([a-z_]{1,64})")
_HEALTH = ("id", "name", "kind", "status", "status_reason", "freshness", "schedule", "updated_at", "version")


@dataclass(frozen=True, slots=True)
class Text:
    """A resource as it is read."""

    kind: str
    text: str


class Resources:
    """Reads resources: what belongs to the caller through the API, the codes out of its own catalogue."""

    def __init__(self, calls: Calls, codes: Mapping[str, Code], docs_url: str) -> None:
        self._calls, self._codes, self._docs_url = calls, codes, docs_url

    @staticmethod
    def asks_the_api(uri: str) -> bool:
        """Whether an operation of the API answers it."""
        return uri == CATEGORIES or _SOURCE.fullmatch(uri) is not None

    async def read(self, message: Message, uri: str) -> Text | Outcome | None:
        """The resource, the API's refusal, or None when there is no such resource."""
        if uri == CATEGORIES:
            return _text(await self._calls.read(message, "/v1/categories"))
        if uri == ERRORS:
            return Text(MARKDOWN, self._index())
        if (found := _SOURCE.fullmatch(uri)) is not None:
            return _text(await self._calls.read(message, f"/v1/sources/{found[1]}"), _health)
        found = _CODE.fullmatch(uri)
        code = self._codes.get(found[1]) if found is not None else None
        return Text(MARKDOWN, self._page(code)) if code is not None else None

    def codes_like(self, start: str) -> list[str]:
        """The codes that begin so."""
        return [name for name in self._codes if name.startswith(start)]

    def _index(self) -> str:
        lines = [f"- `{code.name}` ({code.status}): {code.title}" for code in self._codes.values()]
        return "\n".join(["# Error codes", "", *lines, ""])

    def _page(self, code: Code) -> str:
        address = f"{self._docs_url.rstrip('/')}/errors/{code.name}"
        return f"# {code.title}\n\n`{code.name}`, HTTP status {code.status}\n\n{code.cause}\n\n## What to do\n\n{code.remedy}\n\n{address}\n"


def _text(outcome: Outcome, shown: Any = None) -> Text | Outcome:
    if outcome.refused:
        return outcome
    body = outcome.body if shown is None else shown(outcome.body)
    return Text(JSON, body.decode())


def _health(source: bytes) -> bytes:
    told = msgspec.json.decode(source)
    return encode({"object": "source_health"} | {name: told[name] for name in _HEALTH if name in told})
