"""GET /v1/agent/tools."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adapters.wire import agents as wire
from domain.agents.usecases import ToolManifest
from entrypoints.operations.operation import Area, DetachedContext, DetachedRead, Operation, Reply
from entrypoints.operations.tools import manifest_of

Detached: TypeAlias = DetachedContext[ToolManifest]


async def list_tools(call: Detached) -> Reply:
    """Every tool, and whether the caller may use it."""
    manifest, scopes = call.service, call.principal.scopes
    return Reply(wire.render_all((tool, manifest.permits(scopes, tool)) for tool in manifest))


def _across(_: Mapping[str, Any], operations: Sequence[Operation]) -> ToolManifest:
    return manifest_of(operations)


AREA = Area(
    "agents",
    "Agents",
    "What AI agents may do with the service.",
    service=lambda: ToolManifest(()),
    across=_across,
    operations=(
        DetachedRead(
            id="agents.list_tools",
            path="/v1/agent/tools",
            summary="List tools for agents",
            description="Every operation that AI agents may call, as a tool: what it takes and answers, what it may do, and whether your "
            "credential may call it. The same tools are offered over MCP at `/mcp`, by the same names.",
            handler=list_tools,
            scope="agents:read",
            reply=wire.AGENT_TOOLS,
            agent=None,
        ),
    ),
)
