"""List of the operations that AI agents can call: GET /v1/agent/tools."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adapters.api_json import agents as wire
from domain.agents.usecases import ToolManifest
from entrypoints.operations.operation import Area, DetachedContext, DetachedRead, Operation, Reply
from entrypoints.operations.tools import build_manifest

ToolDetachedContext: TypeAlias = DetachedContext[ToolManifest]


async def list_tools(context: ToolDetachedContext) -> Reply:
    """Return all tools for AI agents, and for each tool whether the caller may use it."""
    manifest, scopes = context.service, context.principal.scopes
    return Reply(wire.render_tools((tool, manifest.permits(scopes, tool)) for tool in manifest))


def _create_manifest(_: Mapping[str, Any], operations: Sequence[Operation]) -> ToolManifest:
    return build_manifest(operations)


AREA = Area(
    "agents",
    "Agents",
    "Operations that AI agents can call.",
    create_service=lambda: ToolManifest(()),
    create_service_across_areas=_create_manifest,
    operations=(
        DetachedRead(
            id="agents.list_tools",
            path="/v1/agent/tools",
            summary="List tools for agents",
            description="Returns every operation that AI agents can call as a tool: input, output, effects, and whether your "
            "credential permits it. The MCP endpoint `/mcp` offers the same tools under the same names.",
            handler=list_tools,
            scope="agents:read",
            reply=wire.AGENT_TOOLS,
            agent=None,
        ),
    ),
)
