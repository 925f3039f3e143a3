"""Tool calls and resource reads, which are executed as API requests by the pipeline of this process."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from domain.agents.model import AgentTool
from domain.agents.usecases.tools import ToolManifest
from domain.kernel.errors import DomainError, InvalidRequest
from domain.kernel.versions import SUPPORTED
from entrypoints.http.body import SMALL_BODY_BYTES
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import Request, Response, read_no_body
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.tool_calls import ToolArgumentsValidator, build_api_request, encode_json
from entrypoints.operations.tools import KEY
from entrypoints.operations.validation import summarise_field_errors

FORWARDED_HEADERS = (
    "authorization",
    "service-mode",
    "user-agent",
    "x-forwarded-for",
    "forwarded",
    "traceparent",
)
"""Headers of an MCP request that are passed on to the API request."""
_REPETITION_SECONDS = 60
"""Seconds within which an identical message counts as a retry."""
_encode_sorted = msgspec.json.Encoder(decimal_format="number", order="sorted").encode


def build_headers(state: RequestState) -> dict[str, str]:
    """Return the headers of an API request for a message.

    These are FORWARDED_HEADERS of the message's HTTP request, its request ID, and the API version of the tools'
    schemas.
    """
    headers = state.request.headers
    forwarded = {name: headers[name] for name in FORWARDED_HEADERS if name in headers}
    return forwarded | {"request-id": state.request_id, "service-version": SUPPORTED.latest}


def choose_idempotency_key(
    tool: AgentTool, arguments: Mapping[str, Any], state: RequestState, message_id: object
) -> str | None:
    """Return the idempotency key in the arguments, else a key derived from the message; None if the tool takes no key.

    Identical messages within a minute have the same derived key. `message_id` is the ID of the JSON-RPC request, which
    differs if the caller repeats a call on purpose.
    """
    if KEY not in tool.input_schema["properties"]:
        return None
    if KEY in arguments:
        return str(arguments[KEY])
    window = int(state.now.timestamp()) // _REPETITION_SECONDS
    message_identity = _encode_sorted(
        [tool.name, dict(arguments), message_id if isinstance(message_id, int | str) else None, window]
    )
    return "mcp-" + hashlib.sha256(state.credential_digest + message_identity).hexdigest()[:40]


CHANNEL = "mcp"
MAX_RESPONSE_BYTES = 1 << 19
"""Maximum bytes of an API response to an agent (encoded in about 25 ms); a larger one is replaced by an error."""
_HEADERS = ("etag", "location", "retry-after", "idempotent-replayed", "service-dry-run", "content-type")


@dataclass(slots=True)
class McpMessage:
    """One JSON-RPC message.

    Attributes:
        state: State of the authenticated HTTP request that contains the message.
        raw: The message as received.
        value: The decoded message; numbers that are not whole are Decimal.
    """

    state: RequestState
    raw: bytes
    value: Mapping[str, Any]

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the message; empty if there are none or they are not an object."""
        params = self.value.get("params")
        return params if isinstance(params, dict) else {}

    def encode_for_library(self) -> bytes:
        """Return the message as bytes for the MCP library; above SMALL_BODY_BYTES, a tool's arguments are omitted."""
        # Only the API needs the arguments.
        if len(self.raw) <= SMALL_BODY_BYTES:
            return self.raw
        params = self.params
        if isinstance(params.get("arguments"), dict):
            return encode_json({**self.value, "params": {**params, "arguments": {}}})
        return self.raw


@dataclass(frozen=True, slots=True)
class ApiResult:
    """Response of the API to a tool call or resource read.

    Attributes:
        status: The HTTP status.
        body: The encoded body; for an error, a problem.
        headers: The response's headers that are in _HEADERS, by lower-case name.
        idempotency_key: The Idempotency-Key of the request, or None.
    """

    status: int
    body: bytes
    headers: Mapping[str, str]
    idempotency_key: str | None = None

    @property
    def is_error(self) -> bool:
        """True if the response is an error."""
        return self.status >= 400


class ToolExecutor:
    """Executor of tool calls and resource reads, which sends them as API requests to the pipeline of this process."""

    def __init__(self, pipeline: Pipeline, manifest: ToolManifest) -> None:
        self._pipeline, self.manifest = pipeline, manifest
        self._validator = ToolArgumentsValidator(manifest)

    async def call_tool(self, message: McpMessage, tool: AgentTool) -> ApiResult:
        """Validate the arguments in the message and call the tool.

        Return the API's response, or the error for invalid arguments.
        """
        raw_arguments = message.params.get("arguments")
        arguments = {} if raw_arguments is None else raw_arguments
        field_errors = await self._pipeline.parameter_reader.run_off_loop(
            message.state, message.raw, lambda: self._validator.find_field_errors(tool, arguments)
        )
        if field_errors:
            await self._pipeline.enforce_rate_limit(message.state)
            return self._to_problem_result(
                message.state, InvalidRequest(summarise_field_errors(field_errors), fields=field_errors)
            )
        key = choose_idempotency_key(tool, arguments, message.state, message.value.get("id"))
        state = message.state
        request = build_api_request(tool, arguments, build_headers(state), state.request.client_address, key)
        return await self._send(message, request, key)

    async def fetch_scope_error(self, message: McpMessage, tool: AgentTool) -> ApiResult:
        """Return the API's error response for a caller whose credential lacks the tool's scope.

        The arguments are not validated.
        """
        state = message.state
        path = "/".join("-" if segment.startswith("{") else segment for segment in tool.path.split("/"))
        return await self._send(
            message, Request(tool.method, path, "", build_headers(state), state.request.client_address, read_no_body)
        )

    async def request_path(self, message: McpMessage, path: str) -> ApiResult:
        """Send GET for a path to the API; return the response."""
        state = message.state
        return await self._send(
            message, Request("GET", path, "", build_headers(state), state.request.client_address, read_no_body)
        )

    async def _send(self, message: McpMessage, request: Request, key: str | None = None) -> ApiResult:
        """Send a request to the API; return the response."""
        state = message.state
        # The message already counts as a request in flight, so the API request does not count again.
        with self._pipeline.pressure.count_as_waiting():
            response = await self._pipeline.process_request(request, via=CHANNEL)
        state.is_forwarded = True
        state.rate_headers = [header for header in response.headers if header[0].startswith(b"ratelimit")]
        if len(response.body) > MAX_RESPONSE_BYTES:
            return self._to_problem_result(state, InvalidRequest(_describe_large_response(len(response.body))))
        return _to_api_result(response, key)

    def _to_problem_result(self, state: RequestState, error: DomainError) -> ApiResult:
        state.error_code = error.code
        return _to_api_result(self._pipeline.problems.respond(error, state.request_id), None)


def _describe_large_response(size: int) -> str:
    return f"The response has {size} bytes, more than the MCP maximum of {MAX_RESPONSE_BYTES}. Use a smaller limit or more filters."


def _to_api_result(response: Response, key: str | None) -> ApiResult:
    headers = {name: value for name in _HEADERS if (value := response.find_header(name)) is not None}
    return ApiResult(response.status, response.body, headers, key)
