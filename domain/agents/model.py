"""Tools: operations of the API, as they are described to AI agents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentTool:
    """An operation of the API that AI agents can call (docs/mcp.md#tools).

    Attributes:
        operation: The ID of the operation.
        scope: The scope that a call requires; None for no scope.
        rate: The rate class of the operation.
        destructive: Whether overwritten or deleted data cannot be recovered.
        idempotent: Whether a repeated call has no further effect.
        outside: Whether the operation contacts other systems, such as those of vendors (`openWorldHint` in MCP).
        approval: Whether a person should confirm each call.
        input_schema: JSON Schema (2020-12) of the arguments, an object.
        output_schema: JSON Schema of the response, an object; None if it has no body.
    """

    name: str
    operation: str
    title: str
    description: str
    method: str
    path: str
    scope: str | None
    rate: str
    read_only: bool
    destructive: bool
    idempotent: bool
    outside: bool
    approval: bool
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
