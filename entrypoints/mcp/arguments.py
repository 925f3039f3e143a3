"""A tool's arguments as the request that the API takes: the path, the query, the headers and the body."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from adapters.wire.versions import SUPPORTED
from domain.agents.model import AgentTool
from domain.kernel.errors import PayloadTooLarge
from entrypoints.http.body import too_large
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import Request
from entrypoints.operations.tools import BODY, DRY_RUN, IF_MATCH, KEY

PASSED_ON: Final = (
    "authorization",
    "service-mode",
    "user-agent",
    "x-forwarded-for",
    "forwarded",
    "traceparent",
)
"""Headers of the message that count for the operation, too."""
_SEPARATE: Final = frozenset({BODY, DRY_RUN, IF_MATCH, KEY})
_WINDOW: Final = 60
"""Seconds within which the very same message is taken for a repetition."""
encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_encode_sorted: Final = msgspec.json.Encoder(decimal_format="number", order="sorted").encode


def request_of(tool: AgentTool, arguments: Mapping[str, Any], state: RequestState, key: str | None) -> Request:
    """The request of valid arguments; `state` is of the message that brought them, `key` the Idempotency-Key, if it takes one."""
    body = encode(arguments[BODY]) if BODY in arguments else b""
    headers = headers_of(state)
    if body:
        headers |= {"content-type": "application/json", "content-length": str(len(body))}
    if key is not None:
        headers["idempotency-key"] = key
    if DRY_RUN in arguments:
        headers["service-dry-run"] = arguments[DRY_RUN]
    if IF_MATCH in arguments:
        headers["if-match"] = _tag(arguments[IF_MATCH])
    path, used = _path(tool.path, arguments)
    rest = {name: value for name, value in arguments.items() if name not in used | _SEPARATE}
    return Request(tool.method, path, _query(rest), headers, state.request.client, _reader(body))


def headers_of(state: RequestState) -> dict[str, str]:
    """What every request made for a message carries: its credential and id, and the version that schemas describe."""
    given = state.request.headers
    passed = {name: given[name] for name in PASSED_ON if name in given}
    return passed | {"request-id": state.request_id, "service-version": SUPPORTED.latest}


def key_of(tool: AgentTool, arguments: Mapping[str, Any], state: RequestState, message: object) -> str | None:
    """The Idempotency-Key: the caller's own, else one that the same message has for a minute. None where none is taken.

    `message` is the id of the JSON-RPC request: a program that asks twice on purpose gives two.
    """
    if KEY not in tool.input_schema["properties"]:
        return None
    if KEY in arguments:
        return str(arguments[KEY])
    window = int(state.now.timestamp()) // _WINDOW
    said = _encode_sorted([tool.name, dict(arguments), message if isinstance(message, int | str) else None, window])
    return "mcp-" + hashlib.sha256(state.credential + said).hexdigest()[:40]


def _path(path: str, arguments: Mapping[str, Any]) -> tuple[str, set[str]]:
    names = {part[1:-1] for part in path.split("/") if part.startswith("{")}
    for name in names:
        path = path.replace(f"{{{name}}}", quote(str(arguments[name]), safe=""))
    return path, names


def _query(values: Mapping[str, Any]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(_text(value), safe='')}" for name, value in values.items())


def _text(value: Any) -> str:
    """A parameter's text: of lists the values between commas, those inside a value escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(_text(item).replace("\\", "\\\\").replace(",", "\\,") for item in value)
    return str(value)


def _tag(version: str) -> str:
    """An entity tag of a bare version; `*` and whole tags stay."""
    return f'"{version}"' if version.isascii() and version.isdigit() else version


def _reader(body: bytes) -> Any:
    async def read(limit: int) -> bytes:
        if len(body) > limit:
            raise PayloadTooLarge(too_large(limit))
        return body

    return read
