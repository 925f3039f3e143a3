"""Access tokens at /mcp: audience, visible tools and step-up authorization."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.access.model import ROLES
from entrypoints.operations.tools import build_manifest
from tests.http.application import BASE, run_application
from tests.http.mcp import build_request, list_all_tools, open_client, post_message
from tests.http.oauth import OAuthHarness
from tests.support.memory.hosts import MemoryWeb
from tests.support.operation_table import load_operation_table

pytestmark = pytest.mark.asyncio
MANIFEST = build_manifest(load_operation_table())


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[OAuthHarness]:
    async with run_application(web=MemoryWeb()) as application:
        yield OAuthHarness(application)


async def test_an_app_works_within_its_scopes_and_requests_more(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member(role="editor")
    tokens = await harness.sign_in(app, person, resource=f"{BASE}/mcp", scope="products:read sources:read")
    async with open_client(harness.application.app, tokens["access_token"]) as agent:
        names = [tool.name for tool in await list_all_tools(agent) if MANIFEST.find(tool.name)]
        assert names == [tool.name for tool in MANIFEST.list_permitted(ROLES["editor"])], (
            "what the person could let it do"
        )
        assert (await agent.call_tool("sources_list", {})).structured_content["data"] == []
    refused = await post_message(
        harness.build_client(tokens["access_token"]), build_request("tools/call", name="sources_create", arguments={})
    )
    assert (refused.status, refused.code) == (403, "permission_denied")
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge and 'scope="products:read sources:read sources:write"' in challenge


async def test_a_token_is_valid_for_its_audience_only(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member()
    for edge, statuses in (("/mcp", (200, 401)), ("/v1", (401, 200))):
        tokens = await harness.sign_in(app, person, resource=BASE + edge, scope="sources:read")
        client = harness.build_client(tokens["access_token"])
        called = await post_message(client, build_request("tools/call", name="sources_list", arguments={}))
        assert (called.status, (await client.get("/v1/sources")).status) == statuses


async def test_the_sandbox_is_selected_on_the_connection(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member(role="owner")
    scope = "sources:read sources:write"
    tokens = await harness.sign_in(app, person, resource=f"{BASE}/mcp", scope=scope)
    made = {"body": {"name": "Lindgren", "kind": "push"}}
    async with open_client(harness.application.app, tokens["access_token"], service_mode="test") as agent:
        assert not (await agent.call_tool("sources_create", made)).is_error
    for mode, count in (("test", 1), ("live", 0)):
        async with open_client(harness.application.app, tokens["access_token"], service_mode=mode) as agent:
            assert len((await agent.call_tool("sources_list", {})).structured_content["data"]) == count
