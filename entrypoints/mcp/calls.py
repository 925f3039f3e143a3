"""Tool calls and resource reads, executed as API requests on the pipeline in this process."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from domain.agents.model import AgentTool
from domain.agents.usecases import ToolManifest
from domain.kernel.errors import DomainError, FieldError, InvalidRequest, PayloadTooLarge
from domain.kernel.versions import SUPPORTED
from entrypoints.http.body import SMALL, too_large
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import Request, Response, no_body
from entrypoints.http.pipeline import Pipeline
from entrypoints.operations.tools import BODY, DRY_RUN, IF_MATCH, KEY
from entrypoints.operations.validation import Validator, summary_of

PASSED_ON = (
    "authorization",
    "service-mode",
    "user-agent",
    "x-forwarded-for",
    "forwarded",
    "traceparent",
)
"""Headers of the message that are passed on to the operation."""
_SEPARATE = frozenset({BODY, DRY_RUN, IF_MATCH, KEY})
_REPETITION_SECONDS = 60
"""Seconds within which an identical message counts as a repetition."""
encode = msgspec.json.Encoder(decimal_format="number").encode
_encode_sorted = msgspec.json.Encoder(decimal_format="number", order="sorted").encode


def request_of(tool: AgentTool, arguments: Mapping[str, Any], state: RequestState, key: str | None) -> Request:
    """Build the API request of validated arguments; `state` is the message's, `key` the Idempotency-Key, if required."""
    body = encode(arguments[BODY]) if BODY in arguments else b""
    headers = headers_of(state)
    if body:
        headers |= {"content-type": "application/json", "content-length": str(len(body))}
    if key is not None:
        headers["idempotency-key"] = key
    if DRY_RUN in arguments:
        headers["service-dry-run"] = arguments[DRY_RUN]
    if IF_MATCH in arguments:
        headers["if-match"] = _entity_tag(arguments[IF_MATCH])
    path, used = _path(tool.path, arguments)
    rest = {name: value for name, value in arguments.items() if name not in used | _SEPARATE}
    return Request(tool.method, path, _query(rest), headers, state.request.client, _body_reader(body))


def headers_of(state: RequestState) -> dict[str, str]:
    """Return the headers of every request made for a message: credential, request ID, and the schemas' API version."""
    raw_arguments = state.request.headers
    forwarded = {name: raw_arguments[name] for name in PASSED_ON if name in raw_arguments}
    return forwarded | {"request-id": state.request_id, "service-version": SUPPORTED.latest}


def key_of(tool: AgentTool, arguments: Mapping[str, Any], state: RequestState, message: object) -> str | None:
    """Return the Idempotency-Key: the caller's own, else one derived from the message; None if the tool takes none.

    The derived key is the same for identical messages within a minute. `message` is the ID of the JSON-RPC request, by
    which intentional repetitions differ.
    """
    if KEY not in tool.input_schema["properties"]:
        return None
    if KEY in arguments:
        return str(arguments[KEY])
    window = int(state.now.timestamp()) // _REPETITION_SECONDS
    message_identity = _encode_sorted(
        [tool.name, dict(arguments), message if isinstance(message, int | str) else None, window]
    )
    return "mcp-" + hashlib.sha256(state.credential + message_identity).hexdigest()[:40]


def _path(path: str, arguments: Mapping[str, Any]) -> tuple[str, set[str]]:
    names = {part[1:-1] for part in path.split("/") if part.startswith("{")}
    for name in names:
        path = path.replace(f"{{{name}}}", quote(str(arguments[name]), safe=""))
    return path, names


def _query(values: Mapping[str, Any]) -> str:
    return "&".join(
        f"{quote(name, safe='')}={quote(_parameter_text(value), safe='')}" for name, value in values.items()
    )


def _parameter_text(value: Any) -> str:
    """Return a parameter as text: lists are comma-separated, with commas inside values escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(_parameter_text(item).replace("\\", "\\\\").replace(",", "\\,") for item in value)
    return str(value)


def _entity_tag(version: str) -> str:
    """Return an entity tag for a bare version; `*` and complete tags stay unchanged."""
    return f'"{version}"' if version.isascii() and version.isdigit() else version


def _body_reader(body: bytes) -> Any:
    async def read(limit: int) -> bytes:
        if len(body) > limit:
            raise PayloadTooLarge(too_large(limit))
        return body

    return read


VIA = "mcp"
LARGEST = 1 << 19
"""Maximum bytes of a response passed on; encoding it as text and as values takes about 25 ms."""
_NOT_AN_OBJECT = "Must be an object of the tool's arguments."
_HEADERS = ("etag", "location", "retry-after", "idempotent-replayed", "service-dry-run", "content-type")


@dataclass(slots=True)
class Message:
    """One JSON-RPC message: its bytes, its value with exact numbers, and the state of its authenticated request."""

    state: RequestState
    raw: bytes
    value: Mapping[str, Any]

    @property
    def params(self) -> Mapping[str, Any]:
        """Parameters; empty if they are not an object."""
        raw_arguments = self.value.get("params")
        return raw_arguments if isinstance(raw_arguments, dict) else {}

    def bare(self) -> bytes:
        """Return the bytes for the protocol library; the arguments of a long message, which only the API needs, are omitted."""
        if len(self.raw) <= SMALL:
            return self.raw
        params = self.params
        if isinstance(params.get("arguments"), dict):
            return encode({**self.value, "params": {**params, "arguments": {}}})
        return self.raw


@dataclass(frozen=True, slots=True)
class Outcome:
    """Response of the API: a JSON object or a problem, with selected headers; `key` is the Idempotency-Key used."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    key: str | None = None

    @property
    def refused(self) -> bool:
        """True if the response is a problem."""
        return self.status >= 400


class Calls:
    """Executor of tool calls on the pipeline."""

    def __init__(self, pipeline: Pipeline, manifest: ToolManifest) -> None:
        self._pipeline, self.manifest = pipeline, manifest
        self._validator = lru_cache(maxsize=None)(self._compile_validator)

    async def call(self, message: Message, tool: AgentTool) -> Outcome:
        """Call a tool with the message's arguments; invalid arguments become a problem, as in the API."""
        raw_arguments = message.params.get("arguments")
        arguments = {} if raw_arguments is None else raw_arguments
        faults = await self._pipeline.parameters.read(message.state, message.raw, lambda: self.faults(tool, arguments))
        if faults:
            await self._pipeline.charge(message.state)
            return self._refused_outcome(message.state, InvalidRequest(summary_of(faults), fields=faults))
        key = key_of(tool, arguments, message.state, message.value.get("id"))
        return await self._send(message, request_of(tool, arguments, message.state, key), key)

    async def refuse(self, message: Message, tool: AgentTool) -> Outcome:
        """Return the API's error for a caller without the tool's scope, before any argument is validated."""
        state = message.state
        path = "/".join("-" if part.startswith("{") else part for part in tool.path.split("/"))
        return await self._send(
            message, Request(tool.method, path, "", headers_of(state), state.request.client, no_body)
        )

    async def read(self, message: Message, path: str) -> Outcome:
        """Send GET to a path of the API."""
        state = message.state
        return await self._send(message, Request("GET", path, "", headers_of(state), state.request.client, no_body))

    def faults(self, tool: AgentTool, arguments: Any) -> tuple[FieldError, ...]:
        """Return the faults of a tool's arguments by dotted path."""
        if not isinstance(arguments, dict):
            return (FieldError("arguments", "invalid_type", _NOT_AN_OBJECT),)
        return self._validator(tool.name).faults(arguments)

    def _compile_validator(self, name: str) -> Validator:
        tool = self.manifest.find(name)
        return Validator(tool.input_schema if tool is not None else {})

    async def _send(self, message: Message, request: Request, key: str | None = None) -> Outcome:
        """Return the pipeline's response. The message itself already counts as a request in flight."""
        state = message.state
        with self._pipeline.pressure.idle():
            answer = await self._pipeline.answer(request, via=VIA)
        state.relayed = True
        state.budget = [header for header in answer.headers if header[0].startswith(b"ratelimit")]
        if len(answer.body) > LARGEST:
            return self._refused_outcome(state, InvalidRequest(_too_large(len(answer.body))))
        return _outcome(answer, key)

    def _refused_outcome(self, state: RequestState, error: DomainError) -> Outcome:
        state.error_code = error.code
        return _outcome(self._pipeline.problems.answer(error, state.request_id), None)


def _too_large(size: int) -> str:
    return f"The response has {size} bytes, more than the maximum of {LARGEST} over MCP. Use a smaller limit or more filters."


def _outcome(answer: Response, key: str | None) -> Outcome:
    headers = {name: value for name in _HEADERS if (value := answer.header(name)) is not None}
    return Outcome(answer.status, answer.body, headers, key)
