"""GET /v1/agent/tools."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adapters.wire import agents as wire
from domain.agents.usecases import ToolManifest
from entrypoints.operations.operation import Area, DetachedContext, DetachedRead, Operation, Reply
from entrypoints.operations.tools import manifest_of

Detached: TypeAlias = DetachedContext[ToolManifest]


async def list_tools(call: Detached) -> Reply:
    """Return every tool, and whether the caller may use it."""
    manifest, scopes = call.service, call.principal.scopes
    return Reply(wire.render_all((tool, manifest.permits(scopes, tool)) for tool in manifest))


def _manifest_of_all(_: Mapping[str, Any], operations: Sequence[Operation]) -> ToolManifest:
    return manifest_of(operations)


AREA = Area(
    "agents",
    "Agents",
    "Operations that AI agents can call.",
    service=lambda: ToolManifest(()),
    across=_manifest_of_all,
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
