"""Tools: operations of the API as they are described to AI agents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentTool:
    """An operation that agents may call (docs/mcp.md#tools).

    Schemas are JSON Schemas (2020-12) of objects; `output_schema` is None for an operation without a response body.
    `destructive`: what is overwritten or ended cannot be recovered. `idempotent`: another call has no further effect.
    `outside`: the operation contacts systems other than this service. `approval`: a person should confirm each call.
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
