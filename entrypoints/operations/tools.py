"""Tools for AI agents, derived from the operation table for /mcp and GET /v1/agent/tools."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from adapters.api_json import problems
from domain.agents.model import AgentTool
from domain.agents.usecases.tools import ToolManifest
from domain.kernel import schema
from entrypoints.operations.openapi import PREVIEW
from entrypoints.operations.operation import AgentToolSettings, Operation, UndoSupport, Write
from entrypoints.operations.query_string import list_query_parameters

Json = dict[str, Any]

BODY = "body"
KEY = "idempotency_key"
DRY_RUN = "dry_run"
IF_MATCH = "if_match"

KEY_SCHEMA = schema.text("import-2026-11-20-001", max_length=257) | {
    "description": "A unique value of your choice. Repeating a call with the same value within 24 hours has no further effect. Without a "
    "value, this applies only to network retries within the same minute."
}
DRY_RUN_SCHEMA = schema.enum("true", "explain") | {
    "description": "`true` returns the result without changing anything, `explain` returns a preview of the changes."
}
IF_MATCH_SCHEMA = schema.text("7", max_length=200) | {
    "description": "The `version` that you read, or `*` for any version. Prevents overwriting changes that others have made since."
}
_STANDARD_FORMATS = frozenset({"date-time", "date", "uri", "email"})
"""Formats that JSON Schema defines, unlike the other formats in the schemas of this service."""
_SCHEMAS_BY_NAME_KEYWORDS = frozenset({"properties", "patternProperties", "$defs"})
_DATA_KEYWORDS = frozenset({"examples", "enum", "const", "default", "required"})
ADDITIVE_STATUSES = (201, 202)
"""HTTP statuses of operations that only add or queue something, so that no existing data is lost."""

_TOOL_CACHE: Final[dict[int, tuple[Operation, AgentTool]]] = {}
"""Operations and their tools by the `id()` of the operation, shared by all applications of the process."""


def build_manifest(operations: Iterable[Operation]) -> ToolManifest:
    """Return the tools of all operations that agents can call.

    Raises ValueError if two arguments of a tool have the same name.
    """
    return ToolManifest(_get_tool(row, row.agent) for row in operations if row.agent is not None)


def _get_tool(operation: Operation, settings: AgentToolSettings) -> AgentTool:
    """Return the tool for the operation from the cache, or create it."""
    cached_operation, tool = _TOOL_CACHE.get(id(operation), (None, None))
    if cached_operation is not operation or tool is None:
        tool = _create_tool(operation, settings)
        _TOOL_CACHE[id(operation)] = operation, tool
    return tool


def _create_tool(operation: Operation, settings: AgentToolSettings) -> AgentTool:
    return AgentTool(
        name=operation.slug,
        operation=operation.id,
        title=operation.summary,
        description=_build_tool_description(operation, settings),
        method=operation.method,
        path=operation.path,
        scope=operation.scope,
        rate=operation.rate,
        is_read_only=not operation.is_write,
        is_destructive=_is_destructive(operation),
        is_idempotent=operation.method != "POST",
        contacts_external_systems=settings.contacts_external_systems,
        requires_approval=settings.requires_approval,
        input_schema=_build_input_schema(operation),
        output_schema=_build_output_schema(operation),
    )


def _is_destructive(operation: Operation) -> bool:
    """Return whether the operation may permanently overwrite or delete existing data, because it cannot be undone."""
    return isinstance(operation, Write) and not operation.is_reversible and operation.status not in ADDITIVE_STATUSES


def _build_tool_description(operation: Operation, settings: AgentToolSettings) -> str:
    notes = [operation.description or f"{operation.summary}."]
    if operation.paging in ("both", "forward"):
        notes.append("Returns one page. For the next page, send next_cursor as starting_after.")
    if isinstance(operation.undo, UndoSupport):
        notes.append(f"Can be undone through the audit log: {operation.undo.description}")
    if settings.requires_approval:
        notes.append("Ask a person to confirm each call.")
    if operation.scope:
        notes.append(f"Requires the scope {operation.scope}.")
    return "\n\n".join(notes)


def _build_input_schema(operation: Operation) -> Json:
    """Return the schema of a tool's arguments: path and query parameters, body, and values of request headers."""
    parts: list[Mapping[str, Any]] = [
        {name: _to_json_schema(operation.build_path_schema(name)) for name in operation.path_parameters},
        {name: _to_json_schema(argument_schema) for name, argument_schema in list_query_parameters(operation).items()},
        {BODY: _to_json_schema(operation.body.schema)} if operation.body is not None else {},
        _build_header_schemas(operation),
    ]
    names = [name for part in parts for name in part]
    if len(names) != len(set(names)):
        raise ValueError(f"{operation.id}: two arguments of the tool have the same name")
    required = [*operation.path_parameters]
    required += [name for name, argument_schema in operation.query.items() if argument_schema.get("x-required")]
    required += [BODY] if operation.body is not None and operation.body.is_required else []
    required += [IF_MATCH] if operation.requires_if_match else []
    result = {name: argument_schema for part in parts for name, argument_schema in part.items()}
    return {"type": "object", "properties": result, "required": required, "additionalProperties": False}


def _build_header_schemas(operation: Operation) -> Json:
    arguments: Json = {KEY: KEY_SCHEMA} if operation.requires_idempotency_key else {}
    if operation.is_write:
        arguments[DRY_RUN] = DRY_RUN_SCHEMA
    if operation.requires_if_match:
        arguments[IF_MATCH] = IF_MATCH_SCHEMA
    return arguments


def _build_output_schema(operation: Operation) -> Json | None:
    """Return the schema of a tool's result, or None if the operation has no response body.

    The schema allows the response body, a problem (some clients validate errors as well) and, for a write, the preview.
    """
    if operation.reply is None:
        return None
    previews = [PREVIEW] if operation.is_write else []
    alternatives = [
        _to_json_schema(alternative, with_examples=False)
        for alternative in (operation.reply, *previews, problems.PROBLEM)
    ]
    return {"type": "object", "anyOf": alternatives}


def _to_json_schema(source: Any, *, with_examples: bool = True) -> Any:
    """Convert a schema to standard JSON Schema, without titles, and without keywords and formats of this service.

    Args:
        source: A schema, or a value inside a schema.
        with_examples: Whether the result contains the schema's examples.
    """
    if isinstance(source, list | tuple):
        return [_to_json_schema(part, with_examples=with_examples) for part in source]
    if not isinstance(source, Mapping):
        return source
    result: Json = {}
    for key, value in source.items():
        if key.startswith("x-") or key in ("title", "discriminator") or (key == "examples" and not with_examples):
            continue
        if key == "format" and value not in _STANDARD_FORMATS:
            continue
        if key in _SCHEMAS_BY_NAME_KEYWORDS:
            result[key] = {name: _to_json_schema(part, with_examples=with_examples) for name, part in value.items()}
        else:
            result[key] = value if key in _DATA_KEYWORDS else _to_json_schema(value, with_examples=with_examples)
    return result
