"""JSON of tools for AI agents."""

from collections.abc import Iterable
from typing import Any

from domain.agents.model import AgentTool
from domain.kernel.plain import plain
from domain.kernel.schema import array, boolean, enum, map_of, named, record, text

_SCHEMA = map_of({}, {"type": "object", "properties": {}}, "JSON Schema (2020-12).")
AGENT_TOOL = named(
    "agent_tool",
    record(
        None,
        {
            "name": text("sources_read", longest=64, description="The tool's name at /mcp."),
            "operation": text("sources.read", description="The operation that the tool calls."),
            "title": text("Read a source"),
            "description": text("One source with its health.", longest=10_000),
            "method": text("GET"),
            "path": text("/v1/sources/{id}"),
            "scope": text("sources:read"),
            "rate": enum("read", "write", "expensive", "export", "stream"),
            "permitted": boolean(description="Whether your credential can call the tool."),
            "approval": boolean(False, "A person should confirm each call."),
            "read_only": boolean(description="The tool changes nothing."),
            "destructive": boolean(False, "What the tool overwrites or deletes cannot be restored."),
            "idempotent": boolean(description="Repeated calls with the same input have no further effect."),
            "outside": boolean(False, "The tool makes the service contact other systems, such as those of vendors."),
            "input_schema": _SCHEMA,
            "output_schema": _SCHEMA,
        },
        optional=("scope", "output_schema"),
    ),
)
AGENT_TOOLS = record("agent_tools", {"tools": array(AGENT_TOOL)}, description="Every operation that agents can call.")


def render(tool: AgentTool, *, permitted: bool) -> dict[str, Any]:
    """Render one tool."""
    return {**plain(tool), "permitted": permitted}


def render_all(tools: Iterable[tuple[AgentTool, bool]]) -> dict[str, Any]:
    """Render the tools, each with whether the caller is permitted to call it."""
    return {"object": "agent_tools", "tools": [render(tool, permitted=permitted) for tool, permitted in tools]}
