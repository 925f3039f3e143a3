"""JSON of agents, and of tools for AI agents."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from adapters.api_json.resource import JsonResource
from domain.agents.model import AGENT_NAMES, Agent, AgentTool
from domain.agents.usecases.settings import AgentState
from domain.kernel.json_values import to_json_value
from domain.kernel.resource import Field, computed, fields_of
from domain.kernel.schema import array, boolean, enum, integer, map_schema, response_object, text, with_title
from domain.proposals.model import ProposalStatus


def _create_agent_field(name: str) -> Field:
    return replace(fields_of(Agent)[name], compute=lambda state, _: getattr(state.agent, name))


_COUNTS = with_title(
    "proposal_counts",
    response_object(
        None,
        {status.value: integer(3, minimum=0) for status in ProposalStatus},
        description="Numbers of the agent's proposals by status.",
    ),
)
AGENT = JsonResource[AgentState](
    "agent",
    {
        "id": _create_agent_field("id"),
        "kind": _create_agent_field("kind"),
        "name": computed(text("Mapping agent"), lambda state, _: AGENT_NAMES[state.agent.kind]),
        "autonomy": _create_agent_field("autonomy"),
        "model": _create_agent_field("model"),
        "daily_budget_micros": _create_agent_field("daily_budget_micros"),
        "last_run_at": _create_agent_field("last_run_at"),
        "proposals": computed(
            _COUNTS, lambda state, _: {status.value: state.counts.get(status, 0) for status in ProposalStatus}
        ),
    },
    path="/v1/agents/{agent}",
    description="An agent of the service, which examines imported data and proposes changes.",
)

_SCHEMA = map_schema({}, {"type": "object", "properties": {}}, "JSON Schema (2020-12).")
AGENT_TOOL = with_title(
    "agent_tool",
    response_object(
        None,
        {
            "name": text("sources_read", max_length=64, description="The tool's name at /mcp."),
            "operation": text("sources.read", description="The operation that the tool calls."),
            "title": text("Read a source"),
            "description": text("One source with its health.", max_length=10_000),
            "method": text("GET"),
            "path": text("/v1/sources/{id}"),
            "scope": text("sources:read"),
            "rate": enum("read", "write", "expensive", "export", "stream"),
            "permitted": boolean(description="Whether your credential can call the tool."),
            "approval": boolean(False, "Whether a person should confirm each call."),
            "read_only": boolean(description="Whether the tool changes nothing."),
            "destructive": boolean(False, "Whether the tool overwrites or deletes data that cannot be restored."),
            "idempotent": boolean(description="Whether repeated calls with the same input have no further effect."),
            "outside": boolean(
                False, "Whether the tool makes the service contact other systems, such as those of vendors."
            ),
            "input_schema": _SCHEMA,
            "output_schema": _SCHEMA,
        },
        optional=("scope", "output_schema"),
    ),
)
AGENT_TOOLS = response_object(
    "agent_tools", {"tools": array(AGENT_TOOL)}, description="Every operation that agents can call."
)
_API_NAMES = {
    "is_read_only": "read_only",
    "is_destructive": "destructive",
    "is_idempotent": "idempotent",
    "contacts_external_systems": "outside",
    "requires_approval": "approval",
}
"""Fields of the API whose names differ from those of the tool's attributes, by attribute."""


def render_tool(tool: AgentTool, *, is_permitted: bool) -> dict[str, Any]:
    """Render a tool; `is_permitted` states whether the caller is permitted to call it."""
    return {
        **{_API_NAMES.get(name, name): value for name, value in to_json_value(tool).items()},
        "permitted": is_permitted,
    }


def render_tools(tools: Iterable[tuple[AgentTool, bool]]) -> dict[str, Any]:
    """Render a list of tools, each paired with whether the caller is permitted to call the tool."""
    return {
        "object": "agent_tools",
        "tools": [render_tool(tool, is_permitted=is_permitted) for tool, is_permitted in tools],
    }
