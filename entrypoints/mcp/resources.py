"""MCP resources: categories, health of a source, and meanings of error codes."""

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
    """Content of a resource."""

    kind: str
    text: str


class Resources:
    """Reader of resources: the caller's data through the API, error codes from their catalogue."""

    def __init__(self, calls: Calls, codes: Mapping[str, Code], docs_url: str) -> None:
        self._calls, self._codes, self._docs_url = calls, codes, docs_url

    @staticmethod
    def asks_the_api(uri: str) -> bool:
        """Return whether the URI is read through the API."""
        return uri == CATEGORIES or _SOURCE.fullmatch(uri) is not None

    async def read(self, message: Message, uri: str) -> Text | Outcome | None:
        """Return the resource, the API's error, or None if the resource does not exist."""
        if uri == CATEGORIES:
            return _text(await self._calls.read(message, "/v1/categories"))
        if uri == ERRORS:
            return Text(MARKDOWN, self._index())
        if (match := _SOURCE.fullmatch(uri)) is not None:
            return _text(await self._calls.read(message, f"/v1/sources/{match[1]}"), _health)
        match = _CODE.fullmatch(uri)
        code = self._codes.get(match[1]) if match is not None else None
        return Text(MARKDOWN, self._page(code)) if code is not None else None

    def codes_like(self, start: str) -> list[str]:
        """Return the codes with the prefix."""
        return [name for name in self._codes if name.startswith(start)]

    def _index(self) -> str:
        lines = [f"- `{code.name}` ({code.status}): {code.title}" for code in self._codes.values()]
        return "\n".join(["# Error codes", "", *lines, ""])

    def _page(self, code: Code) -> str:
        address = f"{self._docs_url.rstrip('/')}/errors/{code.name}"
        return f"# {code.title}\n\n`{code.name}`, HTTP status {code.status}\n\n{code.cause}\n\n## What to do\n\n{code.remedy}\n\n{address}\n"


def _text(outcome: Outcome, convert: Any = None) -> Text | Outcome:
    if outcome.refused:
        return outcome
    body = outcome.body if convert is None else convert(outcome.body)
    return Text(JSON, body.decode())


def _health(source: bytes) -> bytes:
    fields = msgspec.json.decode(source)
    return encode({"object": "source_health"} | {name: fields[name] for name in _HEALTH if name in fields})
