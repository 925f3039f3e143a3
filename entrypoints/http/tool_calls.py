"""Calls of operations as tools, which are executed as API requests by the pipeline of this process."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from domain.access.model import Principal
from domain.agents.model import AgentTool
from domain.agents.usecases.tools import ToolManifest
from domain.assistant.ports import ToolResult
from domain.kernel.errors import FieldError, InvalidRequest, PayloadTooLarge
from domain.kernel.versions import SUPPORTED
from entrypoints.http.body import describe_size_limit
from entrypoints.http.exchange import Request, Response
from entrypoints.operations.tools import BODY, DRY_RUN, IF_MATCH, KEY, build_manifest
from entrypoints.operations.validation import Validator, summarise_field_errors

if TYPE_CHECKING:
    from entrypoints.http.checks import RequestState
    from entrypoints.http.pipeline import Pipeline

_NON_QUERY_ARGUMENTS = frozenset({BODY, DRY_RUN, IF_MATCH, KEY})
_NOT_AN_OBJECT = "The arguments must be a JSON object with the names and values of the tool's arguments."
encode_json = msgspec.json.Encoder(decimal_format="number").encode


def build_api_request(
    tool: AgentTool,
    arguments: Mapping[str, Any],
    headers: Mapping[str, str],
    client_address: str,
    idempotency_key: str | None,
) -> Request:
    """Build the API request of a tool call.

    Args:
        tool: The tool.
        arguments: The validated arguments.
        headers: Headers of the request, without those that follow from the arguments.
        client_address: The address of the client's connection.
        idempotency_key: The Idempotency-Key; None if there is none.
    """
    body = encode_json(arguments[BODY]) if BODY in arguments else b""
    headers = dict(headers)
    if body:
        headers |= {"content-type": "application/json", "content-length": str(len(body))}
    if idempotency_key is not None:
        headers["idempotency-key"] = idempotency_key
    if DRY_RUN in arguments:
        headers["service-dry-run"] = arguments[DRY_RUN]
    if IF_MATCH in arguments:
        headers["if-match"] = _to_entity_tag(arguments[IF_MATCH])
    path, path_names = _fill_path(tool.path, arguments)
    query_arguments = {
        name: value for name, value in arguments.items() if name not in path_names | _NON_QUERY_ARGUMENTS
    }
    return Request(tool.method, path, _build_query(query_arguments), headers, client_address, _create_body_reader(body))


def _fill_path(path: str, arguments: Mapping[str, Any]) -> tuple[str, set[str]]:
    names = {segment[1:-1] for segment in path.split("/") if segment.startswith("{")}
    for name in names:
        path = path.replace(f"{{{name}}}", quote(str(arguments[name]), safe=""))
    return path, names


def _build_query(values: Mapping[str, Any]) -> str:
    return "&".join(
        f"{quote(name, safe='')}={quote(_format_parameter(value), safe='')}" for name, value in values.items()
    )


def _format_parameter(value: Any) -> str:
    """Return the value of a query parameter as text: lists are comma-separated, with commas inside values escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(_format_parameter(item).replace("\\", "\\\\").replace(",", "\\,") for item in value)
    return str(value)


def _to_entity_tag(version: str) -> str:
    """Return a version number as an entity tag; `*` and entity tags are returned unchanged."""
    return f'"{version}"' if version.isascii() and version.isdigit() else version


def _create_body_reader(body: bytes) -> Any:
    async def read(limit: int) -> bytes:
        if len(body) > limit:
            raise PayloadTooLarge(describe_size_limit(limit))
        return body

    return read


class ToolArgumentsValidator:
    """Validation of the arguments of tools against their schemas."""

    def __init__(self, manifest: ToolManifest) -> None:
        self._manifest = manifest
        self._validator = lru_cache(maxsize=None)(self._compile_validator)

    def find_field_errors(self, tool: AgentTool, arguments: Any) -> tuple[FieldError, ...]:
        """Return the validation errors of the arguments of a tool, each with the dotted path of its field."""
        if not isinstance(arguments, dict):
            return (FieldError("arguments", "invalid_type", _NOT_AN_OBJECT),)
        return self._validator(tool.name).find_field_errors(arguments)

    def _compile_validator(self, name: str) -> Validator:
        tool = self._manifest.find(name)
        return Validator(tool.input_schema if tool is not None else {})


class AssistantTools:
    """Tools of the assistant, which it calls for a person within the request of a turn."""

    def __init__(self, pipeline: "Pipeline") -> None:
        self._pipeline = pipeline
        self.manifest = build_manifest(pipeline.table)
        self._validator = ToolArgumentsValidator(self.manifest)

    async def call(
        self,
        state: "RequestState",
        caller: Principal,
        tool: AgentTool,
        arguments: Mapping[str, Any],
        key: str | None,
        dry_run: str | None,
    ) -> ToolResult:
        """Call a tool; return the API's response, or the problem for invalid arguments.

        Args:
            state: State of the request of the turn.
            caller: The identity under which the tool is called.
            tool: The tool.
            arguments: The arguments, without headers.
            key: The Idempotency-Key, also for operations that do not require one; None for reads.
            dry_run: The kind of dry run, or None.
        """
        if field_errors := self._validator.find_field_errors(tool, dict(arguments)):
            error = InvalidRequest(summarise_field_errors(field_errors), fields=field_errors)
            return _to_result(self._pipeline.problems.respond(error, state.request_id))
        headers = {"service-version": SUPPORTED.latest} | ({"service-dry-run": dry_run} if dry_run else {})
        request = build_api_request(tool, arguments, headers, state.request.client_address, key)
        response = await self._pipeline.process_request(
            request, caller=await self._pipeline.refresh_caller(state, caller), via="assistant"
        )
        return _to_result(response)


def _to_result(response: Response) -> ToolResult:
    return ToolResult(response.status, msgspec.json.decode(response.body) if response.body else None)
