"""Every MCP tool on PostgreSQL; the client validates each response against the tool's schema."""

from typing import Any

import pytest

from domain.agents.model import AgentTool
from entrypoints.operations.tools import build_manifest
from tests.http.mcp import list_all_tools, open_client
from tests.tenancy.application import OPERATIONS, SHARED, ServedApplication, Tenancy, build_body, list_path_values

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROWS = {row.id: row for row in OPERATIONS}
OWN = "http://127.0.0.1"
MANIFEST = build_manifest(OPERATIONS)


def _build_arguments(tool: AgentTool, mine: Tenancy) -> dict[str, Any]:
    row = ROWS[tool.operation]
    given: dict[str, Any] = {**list_path_values(row, mine.ids)}
    if (body := build_body(row)) is not None:
        given["body"] = body
    return given | ({"if_match": "*"} if row.requires_if_match else {})


async def test_every_tool_returns_what_it_declares(application: ServedApplication) -> None:
    mine = await application.create_tenancy(await application.create_organisation(), livemode=False)
    async with open_client(application.app, mine.client._secret or "", base=OWN) as agent:
        listed = await list_all_tools(agent)
        assert [tool.name for tool in listed] == [tool.name for tool in MANIFEST]
        for tool in MANIFEST:
            for tried in ({"dry_run": "explain"}, {}) if not tool.is_read_only else ({},):
                result = await agent.call_tool(tool.name, _build_arguments(tool, mine) | tried)
                if result.is_error:
                    row = ROWS[tool.operation]
                    refusals = ("rate_limited",) if row.caller_kind == "any" else ("rate_limited", "permission_denied")
                    assert result.structured_content["code"] in (*row.errors, *refusals)


async def test_resources_of_another_tenant_are_not_found(application: ServedApplication) -> None:
    mine = await application.create_tenancy(await application.create_organisation(), livemode=False)
    theirs = await application.create_tenancy(await application.create_organisation(), livemode=False)
    async with open_client(application.app, mine.client._secret or "", base=OWN) as agent:
        for tool in MANIFEST:
            if not ROWS[tool.operation].ids or tool.operation in SHARED:
                continue
            refused = await agent.call_tool(tool.name, _build_arguments(tool, theirs))
            assert refused.is_error, tool.name
            assert refused.structured_content["code"] in ("not_found", "rate_limited"), tool.name
