"""A tool: an operation of the API as AI agents are told of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One operation that agents may call (docs/mcp.md#tools).

    `input_schema` and `output_schema` are JSON Schemas (2020-12) of objects; there is no output schema where nothing is answered.
    `destructive`: what it overwrites or ends cannot be brought back. `idempotent`: calling it again changes nothing more.
    `outside`: it asks or tells others than this service. `approval`: a person should confirm each call.
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
