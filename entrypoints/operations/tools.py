"""Agent tools, derived from the operation table for /mcp and the manifest."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from adapters.wire import problems
from domain.agents.model import AgentTool
from domain.agents.usecases import ToolManifest
from domain.kernel import schema
from entrypoints.operations.openapi import PREVIEW
from entrypoints.operations.operation import Operation, Tool, Undoing, Write
from entrypoints.operations.query_string import parameters_of

Json = dict[str, Any]

BODY = "body"
KEY = "idempotency_key"
DRY_RUN = "dry_run"
IF_MATCH = "if_match"

KEY_SCHEMA = schema.text("import-2026-11-20-001", longest=257) | {
    "description": "A unique value of your choice. Repeating a call with the same value within 24 hours has no further effect. Without it, only "
    "an identical message within a minute counts as a repetition."
}
DRY_RUN_SCHEMA = schema.enum("true", "explain") | {
    "description": "`true` returns the result without changing anything, `explain` returns a preview of the changes."
}
IF_MATCH_SCHEMA = schema.text("7", longest=200) | {
    "description": "The `version` that you read, or `*` for any version. Prevents overwriting changes that others have made since."
}
_FORMATS = frozenset({"date-time", "date", "uri", "email"})
"""Formats that JSON Schema defines; others are the service's own."""
_OF_PROPERTIES = frozenset({"properties", "patternProperties", "$defs"})
_DATA = frozenset({"examples", "enum", "const", "default", "required"})
MADE = (201, 202)
"""Statuses of operations that only add or queue something, so that no existing data is lost."""

_TOOL_CACHE: Final[dict[int, tuple[Operation, AgentTool]]] = {}
"""Tools by `id()` of their operations, shared by all applications and edges of the process."""


def manifest_of(operations: Iterable[Operation]) -> ToolManifest:
    """Return the tools of all operations that are offered to agents. Raises ValueError if two arguments of a tool share a name."""
    return ToolManifest(_cached_tool(row, row.agent) for row in operations if row.agent is not None)


def _cached_tool(operation: Operation, offered: Tool) -> AgentTool:
    """Return the operation's tool from the cache, or create it."""
    row, tool = _TOOL_CACHE.get(id(operation), (None, None))
    if row is not operation or tool is None:
        tool = _create_tool(operation, offered)
        _TOOL_CACHE[id(operation)] = operation, tool
    return tool


def _create_tool(operation: Operation, offered: Tool) -> AgentTool:
    return AgentTool(
        name=operation.slug,
        operation=operation.id,
        title=operation.summary,
        description=_describe(operation, offered),
        method=operation.method,
        path=operation.path,
        scope=operation.scope,
        rate=operation.rate,
        read_only=not operation.writes,
        destructive=_is_destructive(operation),
        idempotent=operation.method != "POST",
        outside=offered.outside,
        approval=offered.approval,
        input_schema=_input(operation),
        output_schema=_output(operation),
    )


def _is_destructive(operation: Operation) -> bool:
    """Return whether the operation may lose existing data permanently: a change in place that cannot be undone."""
    return isinstance(operation, Write) and not operation.reversible and operation.status not in MADE


def _describe(operation: Operation, offered: Tool) -> str:
    notes = [operation.description or f"{operation.summary}."]
    if operation.paging in ("both", "forward"):
        notes.append("Returns one page. For the next page, send next_cursor as starting_after.")
    if isinstance(operation.undo, Undoing):
        notes.append(f"Can be undone through the audit log: {operation.undo.how}")
    if offered.approval:
        notes.append("Ask a person to confirm each call.")
    if operation.scope:
        notes.append(f"Requires the scope {operation.scope}.")
    return "\n\n".join(notes)


def _input(operation: Operation) -> Json:
    """Return the schema of an object with path IDs, query parameters, the body, and the values that HTTP sends as headers."""
    parts: list[Mapping[str, Any]] = [
        {name: _id(operation, name) for name in operation.path_parameters},
        {name: _to_json_schema(given) for name, given in parameters_of(operation).items()},
        {BODY: _to_json_schema(operation.body.schema)} if operation.body is not None else {},
        _header_arguments(operation),
    ]
    names = [name for part in parts for name in part]
    if len(names) != len(set(names)):
        raise ValueError(f"{operation.id}: two arguments of its tool share a name")
    required = [*operation.path_parameters]
    required += [name for name, given in operation.query.items() if given.get("x-required")]
    required += [BODY] if operation.body is not None and operation.body.required else []
    required += [IF_MATCH] if operation.if_match else []
    result = {name: given for part in parts for name, given in part.items()}
    return {"type": "object", "properties": result, "required": required, "additionalProperties": False}


def _id(operation: Operation, name: str) -> Json:
    prefix = operation.ids.get(name)
    return schema.id_of(prefix) if prefix else schema.text(name)


def _header_arguments(operation: Operation) -> Json:
    arguments: Json = {KEY: KEY_SCHEMA} if operation.idempotent else {}
    if operation.writes:
        arguments[DRY_RUN] = DRY_RUN_SCHEMA
    if operation.if_match:
        arguments[IF_MATCH] = IF_MATCH_SCHEMA
    return arguments


def _output(operation: Operation) -> Json | None:
    """Return the schema of the response: the reply, for a write also the preview, or a problem. None if there is no reply.

    The problem is included because some clients validate errors against the schema as well.
    """
    if operation.reply is None:
        return None
    previews = [PREVIEW] if operation.writes else []
    answers = [_to_json_schema(answer, examples=False) for answer in (operation.reply, *previews, problems.PROBLEM)]
    return {"type": "object", "anyOf": answers}


def _to_json_schema(given: Any, *, examples: bool = True) -> Any:
    """Convert a schema to plain JSON Schema without our own keywords, other formats, and type names."""
    if isinstance(given, list | tuple):
        return [_to_json_schema(part, examples=examples) for part in given]
    if not isinstance(given, Mapping):
        return given
    result: Json = {}
    for key, value in given.items():
        if key.startswith("x-") or key in ("title", "discriminator") or (key == "examples" and not examples):
            continue
        if key == "format" and value not in _FORMATS:
            continue
        if key in _OF_PROPERTIES:
            result[key] = {name: _to_json_schema(part, examples=examples) for name, part in value.items()}
        else:
            result[key] = value if key in _DATA else _to_json_schema(value, examples=examples)
    return result
