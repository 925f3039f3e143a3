"""Tools made of the operation table: the one place that says what agents are told of an operation, at /mcp and in the manifest."""

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
    "description": "Your own text, the same when you repeat this call: within 24 hours nothing is done twice under it. Without one, only "
    "the very same message within a minute counts as a repetition."
}
DRY_RUN_SCHEMA = schema.enum("true", "explain") | {
    "description": "`true` answers as if it were done, `explain` tells what would change; nothing is done."
}
IF_MATCH_SCHEMA = schema.text("7", longest=200) | {
    "description": "The `version` that you read, or `*` for any: what somebody else changed meanwhile is not overwritten."
}
_FORMATS = frozenset({"date-time", "date", "uri", "email"})
"""The formats that JSON Schema names; others are the service's own."""
_OF_PROPERTIES = frozenset({"properties", "patternProperties", "$defs"})
_DATA = frozenset({"examples", "enum", "const", "default", "required"})
MADE = (201, 202)
"""Statuses of what is added or queued: nothing that was there before is lost by it."""

_MADE: Final[dict[int, tuple[Operation, AgentTool]]] = {}
"""Tools by their rows, which a process has once: several applications in it, and both edges of one, share them."""


def manifest_of(operations: Iterable[Operation]) -> ToolManifest:
    """The tools of all operations that are offered to agents. Raises ValueError for one that could not be called."""
    return ToolManifest(_tool(row, row.agent) for row in operations if row.agent is not None)


def _tool(operation: Operation, offered: Tool) -> AgentTool:
    """The operation's tool, made once."""
    row, tool = _MADE.get(id(operation), (None, None))
    if row is not operation or tool is None:
        tool = _made(operation, offered)
        _MADE[id(operation)] = operation, tool
    return tool


def _made(operation: Operation, offered: Tool) -> AgentTool:
    return AgentTool(
        name=operation.slug,
        operation=operation.id,
        title=operation.summary,
        description=_described(operation, offered),
        method=operation.method,
        path=operation.path,
        scope=operation.scope,
        rate=operation.rate,
        read_only=not operation.writes,
        destructive=_destroys(operation),
        idempotent=operation.method != "POST",
        outside=offered.outside,
        approval=offered.approval,
        input_schema=_input(operation),
        output_schema=_output(operation),
    )


def _destroys(operation: Operation) -> bool:
    """Whether what was there before may be lost for good: a change in place that the audit log cannot take back."""
    return isinstance(operation, Write) and not operation.reversible and operation.status not in MADE


def _described(operation: Operation, offered: Tool) -> str:
    notes = [operation.description or f"{operation.summary}."]
    if operation.paging in ("both", "forward"):
        notes.append("A page at a time: for the next one give its next_cursor as starting_after.")
    if isinstance(operation.undo, Undoing):
        notes.append(f"Can be undone through the audit log: {operation.undo.how}")
    if offered.approval:
        notes.append("Have a person confirm each call.")
    if operation.scope:
        notes.append(f"Needs the scope {operation.scope}.")
    return "\n\n".join(notes)


def _input(operation: Operation) -> Json:
    """An object of path ids, query parameters, the body, and what headers say over HTTP."""
    parts: list[Mapping[str, Any]] = [
        {name: _id(operation, name) for name in operation.path_parameters},
        {name: _plain(given) for name, given in parameters_of(operation).items()},
        {BODY: _plain(operation.body.schema)} if operation.body is not None else {},
        _told_by_headers(operation),
    ]
    names = [name for part in parts for name in part]
    if len(names) != len(set(names)):
        raise ValueError(f"{operation.id}: two arguments of its tool share a name")
    required = [*operation.path_parameters]
    required += [name for name, given in operation.query.items() if given.get("x-required")]
    required += [BODY] if operation.body is not None and operation.body.required else []
    required += [IF_MATCH] if operation.if_match else []
    made = {name: given for part in parts for name, given in part.items()}
    return {"type": "object", "properties": made, "required": required, "additionalProperties": False}


def _id(operation: Operation, name: str) -> Json:
    prefix = operation.ids.get(name)
    return schema.id_of(prefix) if prefix else schema.text(name)


def _told_by_headers(operation: Operation) -> Json:
    told: Json = {KEY: KEY_SCHEMA} if operation.idempotent else {}
    if operation.writes:
        told[DRY_RUN] = DRY_RUN_SCHEMA
    if operation.if_match:
        told[IF_MATCH] = IF_MATCH_SCHEMA
    return told


def _output(operation: Operation) -> Json | None:
    """What is answered: the reply, of a write also what `explain` tells, or the problem. None where nothing is answered.

    The problem stands among them because some clients hold refusals to the schema as well.
    """
    if operation.reply is None:
        return None
    previews = [PREVIEW] if operation.writes else []
    answers = [_plain(answer, examples=False) for answer in (operation.reply, *previews, problems.PROBLEM)]
    return {"type": "object", "anyOf": answers}


def _plain(given: Any, *, examples: bool = True) -> Any:
    """A schema in the words of JSON Schema alone; our own words, foreign formats and the names of types are left out."""
    if isinstance(given, list | tuple):
        return [_plain(part, examples=examples) for part in given]
    if not isinstance(given, Mapping):
        return given
    made: Json = {}
    for key, value in given.items():
        if key.startswith("x-") or key in ("title", "discriminator") or (key == "examples" and not examples):
            continue
        if key == "format" and value not in _FORMATS:
            continue
        if key in _OF_PROPERTIES:
            made[key] = {name: _plain(part, examples=examples) for name, part in value.items()}
        else:
            made[key] = value if key in _DATA else _plain(value, examples=examples)
    return made
