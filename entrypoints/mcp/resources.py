"""MCP resources: product categories, the health of a source, and explanations of error codes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from entrypoints.http.tool_calls import encode_json
from entrypoints.mcp.calls import ApiResult, McpMessage, ToolExecutor
from entrypoints.operations.codes import ErrorCode

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
class ResourceText:
    """Content of an MCP resource; `media_type` is the media type."""

    media_type: str
    text: str


class Resources:
    """Reader of MCP resources. Categories and sources are read from the API, error codes from `codes`."""

    def __init__(self, calls: ToolExecutor, codes: Mapping[str, ErrorCode], docs_url: str) -> None:
        self._calls, self._codes, self._docs_url = calls, codes, docs_url

    @staticmethod
    def is_read_from_api(uri: str) -> bool:
        """Return whether reading the resource with that URI sends an API request."""
        return uri == CATEGORIES or _SOURCE.fullmatch(uri) is not None

    async def read(self, message: McpMessage, uri: str) -> ResourceText | ApiResult | None:
        """Return the content of the resource with that URI, or the API's error response.

        None if there is no such resource.
        """
        if uri == CATEGORIES:
            return _to_resource_text(await self._calls.request_path(message, "/v1/categories"))
        if uri == ERRORS:
            return ResourceText(MARKDOWN, self._format_index())
        if (match := _SOURCE.fullmatch(uri)) is not None:
            return _to_resource_text(
                await self._calls.request_path(message, f"/v1/sources/{match[1]}"), _select_health_fields
            )
        match = _CODE.fullmatch(uri)
        code = self._codes.get(match[1]) if match is not None else None
        return ResourceText(MARKDOWN, self._format_code(code)) if code is not None else None

    def list_code_names(self, prefix: str) -> list[str]:
        """Return the names of the error codes that start with the prefix."""
        return [name for name in self._codes if name.startswith(prefix)]

    def _format_index(self) -> str:
        lines = [f"- `{code.name}` ({code.status}): {code.title}" for code in self._codes.values()]
        return "\n".join(["# Error codes", "", *lines, ""])

    def _format_code(self, code: ErrorCode) -> str:
        address = f"{self._docs_url.rstrip('/')}/errors/{code.name}"
        return f"# {code.title}\n\n`{code.name}`, HTTP status {code.status}\n\n{code.cause}\n\n## What to do\n\n{code.remedy}\n\n{address}\n"


def _to_resource_text(result: ApiResult, convert: Any = None) -> ResourceText | ApiResult:
    if result.is_error:
        return result
    body = result.body if convert is None else convert(result.body)
    return ResourceText(JSON, body.decode())


def _select_health_fields(source: bytes) -> bytes:
    fields = msgspec.json.decode(source)
    return encode_json({"object": "source_health"} | {name: fields[name] for name in _HEALTH if name in fields})
