"""The JSON of tools for AI agents."""

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
            "operation": text("sources.read", description="The operation that it calls."),
            "title": text("Read a source"),
            "description": text("One source with its health.", longest=10_000),
            "method": text("GET"),
            "path": text("/v1/sources/{id}"),
            "scope": text("sources:read"),
            "rate": enum("read", "write", "expensive", "export", "stream"),
            "permitted": boolean(description="Whether your credential may call it."),
            "approval": boolean(False, "A person should confirm each call."),
            "read_only": boolean(description="It changes nothing."),
            "destructive": boolean(False, "What it overwrites or ends cannot be brought back."),
            "idempotent": boolean(description="Calling it again changes nothing more."),
            "outside": boolean(False, "It has the service ask or tell others, such as vendors' systems."),
            "input_schema": _SCHEMA,
            "output_schema": _SCHEMA,
        },
        optional=("scope", "output_schema"),
    ),
)
AGENT_TOOLS = record("agent_tools", {"tools": array(AGENT_TOOL)}, description="Every operation that agents may call.")


def render(tool: AgentTool, *, permitted: bool) -> dict[str, Any]:
    """One tool."""
    return {**plain(tool), "permitted": permitted}


def render_all(tools: Iterable[tuple[AgentTool, bool]]) -> dict[str, Any]:
    """All of them, each with whether the caller may use it."""
    return {"object": "agent_tools", "tools": [render(tool, permitted=permitted) for tool, permitted in tools]}
