"""Calls of tools and reads of resources: each is a request that the API's own pipeline answers, in this process."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from domain.agents.model import AgentTool
from domain.agents.usecases import ToolManifest
from domain.kernel.errors import DomainError, FieldError, InvalidRequest
from entrypoints.http.body import SMALL
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import Request, Response, no_body
from entrypoints.http.pipeline import Pipeline
from entrypoints.mcp.arguments import encode, headers_of, key_of, request_of
from entrypoints.operations.validation import MOST_FAULTS, Validator

VIA: Final = "mcp"
LARGEST: Final = 1 << 19
"""Bytes of an answer that is passed on: it is written twice, as text and as values, in some 25 ms; what models read is far less."""
_NO_OBJECT: Final = "Must be an object of the tool's arguments."
_KEPT: Final = ("etag", "location", "retry-after", "idempotent-replayed", "service-dry-run", "content-type")


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
            return self._refusal(message.state, InvalidRequest(_summary(faults), fields=faults))
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


def _summary(faults: tuple[FieldError, ...]) -> str:
    first = f"{faults[0].field}: {faults[0].detail}"
    rest = min(len(faults) - 1, MOST_FAULTS)
    return f"{first} And {rest} more; errors[] names each." if rest else first
