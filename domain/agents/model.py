"""Tools: operations of the API, as they are described to AI agents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentTool:
    """Operation of the API that AI agents can call (docs/mcp.md#tools).

    Attributes:
        operation: The ID of the operation.
        scope: The scope that a call requires; None for no scope.
        rate: The rate class of the operation.
        is_destructive: Whether overwritten or deleted data cannot be recovered.
        is_idempotent: Whether a repeated call has no further effect.
        contacts_external_systems: Whether the operation contacts other systems, such as those of vendors (`openWorldHint` in MCP).
        requires_approval: Whether a person should confirm each call.
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
    is_read_only: bool
    is_destructive: bool
    is_idempotent: bool
    contacts_external_systems: bool
    requires_approval: bool
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
