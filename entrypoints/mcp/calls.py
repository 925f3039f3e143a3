"""Calls of tools and reads of resources: each is a request, made of the tool's arguments, that the API's own pipeline answers, in this process."""

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
"""Headers of the message that count for the operation, too."""
_SEPARATE = frozenset({BODY, DRY_RUN, IF_MATCH, KEY})
_WINDOW = 60
"""Seconds within which the very same message is taken for a repetition."""
encode = msgspec.json.Encoder(decimal_format="number").encode
_encode_sorted = msgspec.json.Encoder(decimal_format="number", order="sorted").encode


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


VIA = "mcp"
LARGEST = 1 << 19
"""Bytes of an answer that is passed on: it is written twice, as text and as values, in some 25 ms; what models read is far less."""
_NO_OBJECT = "Must be an object of the tool's arguments."
_KEPT = ("etag", "location", "retry-after", "idempotent-replayed", "service-dry-run", "content-type")


@dataclass(slots=True)
class Message:
    """One JSON-RPC message: its bytes, its value with exact numbers, and the HTTP request that brought it, whose caller is known."""

    state: RequestState
    raw: bytes
    value: Mapping[str, Any]

    @property
    def params(self) -> Mapping[str, Any]:
        """Its parameters; none when they are no object."""
        given = self.value.get("params")
        return given if isinstance(given, dict) else {}

    def bare(self) -> bytes:
        """What the protocol has to read of it: of a long one, arguments are left out, which only the API reads."""
        if len(self.raw) <= SMALL:
            return self.raw
        params = self.params
        if isinstance(params.get("arguments"), dict):
            return encode({**self.value, "params": {**params, "arguments": {}}})
        return self.raw


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the API answered: an object of JSON or a problem, and the headers that say more; `key` is the Idempotency-Key used."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    key: str | None = None

    @property
    def refused(self) -> bool:
        """Whether it is a problem."""
        return self.status >= 400


class Calls:
    """Carries out messages' calls on the pipeline."""

    def __init__(self, pipeline: Pipeline, manifest: ToolManifest) -> None:
        self._pipeline, self.manifest = pipeline, manifest
        self._validator = lru_cache(maxsize=None)(self._compiled)

    async def call(self, message: Message, tool: AgentTool) -> Outcome:
        """Call a tool with the arguments of the message. What is wrong with them is told like everything the API refuses."""
        given = message.params.get("arguments")
        arguments = {} if given is None else given
        faults = await self._pipeline.parameters.read(message.state, message.raw, lambda: self.faults(tool, arguments))
        if faults:
            await self._pipeline.charge(message.state)
            return self._refusal(message.state, InvalidRequest(summary_of(faults), fields=faults))
        key = key_of(tool, arguments, message.state, message.value.get("id"))
        return await self._ask(message, request_of(tool, arguments, message.state, key), key)

    async def refuse(self, message: Message, tool: AgentTool) -> Outcome:
        """What the API says to a caller without the tool's scope, before it looks at any argument."""
        state = message.state
        path = "/".join("-" if part.startswith("{") else part for part in tool.path.split("/"))
        return await self._ask(
            message, Request(tool.method, path, "", headers_of(state), state.request.client, no_body)
        )

    async def read(self, message: Message, path: str) -> Outcome:
        """Read what stands at a path of the API."""
        state = message.state
        return await self._ask(message, Request("GET", path, "", headers_of(state), state.request.client, no_body))

    def faults(self, tool: AgentTool, arguments: Any) -> tuple[FieldError, ...]:
        """What is wrong with a tool's arguments, by their dotted paths."""
        if not isinstance(arguments, dict):
            return (FieldError("arguments", "invalid_type", _NO_OBJECT),)
        return self._validator(tool.name).faults(arguments)

    def _compiled(self, name: str) -> Validator:
        tool = self.manifest.find(name)
        return Validator(tool.input_schema if tool is not None else {})

    async def _ask(self, message: Message, request: Request, key: str | None = None) -> Outcome:
        """The pipeline's answer. The message itself is one request in flight already."""
        state = message.state
        with self._pipeline.pressure.idle():
            answer = await self._pipeline.answer(request, via=VIA)
        state.relayed = True
        state.budget = [header for header in answer.headers if header[0].startswith(b"ratelimit")]
        if len(answer.body) > LARGEST:
            return self._refusal(state, InvalidRequest(_too_large(len(answer.body))))
        return _outcome(answer, key)

    def _refusal(self, state: RequestState, error: DomainError) -> Outcome:
        state.error_code = error.code
        return _outcome(self._pipeline.problems.answer(error, state.request_id), None)


def _too_large(size: int) -> str:
    return f"The answer has {size} bytes; over MCP at most {LARGEST} are passed on. Ask for less: a smaller limit, more filters."


def _outcome(answer: Response, key: str | None) -> Outcome:
    headers = {name: value for name in _KEPT if (value := answer.header(name)) is not None}
    return Outcome(answer.status, answer.body, headers, key)
