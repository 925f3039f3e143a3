"""MCP by the official client (tools, errors, resources) and authentication by plain requests."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from entrypoints.mcp import calls, edge
from entrypoints.mcp.edge import OriginCheck
from entrypoints.operations.tools import build_manifest
from tests.http.application import BASE, DOCS, ApplicationHarness
from tests.http.client import Client
from tests.http.mcp import (
    GENERATIONS,
    build_example_arguments,
    build_request,
    list_all_tools,
    open_client,
    post_message,
)
from tests.support.operation_table import load_operation_table

pytestmark = pytest.mark.asyncio
MANIFEST = build_manifest(load_operation_table())
METADATA = f"{BASE}/.well-known/oauth-protected-resource/mcp"


async def _create_secret(application: ApplicationHarness, **fields: Any) -> str:
    return (await application.create_key(application.orgs["Fjord"], **fields))[1]


def _build_source(**more: Any) -> dict[str, Any]:
    return {"body": {"name": "Lindgren", "kind": "push"}} | more


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_both_generations_list_the_tools_of_the_manifest(
    application: ApplicationHarness, client: Client, generation: str
) -> None:
    manifest = {tool["name"]: tool for tool in (await client.get("/v1/agent/tools")).json()["tools"]}
    async with open_client(application.app, await _create_secret(application), generation) as agent:
        assert (agent.server_info.name, agent.protocol_version) == ("joinery", GENERATIONS[generation])
        tools = await list_all_tools(agent)
    assert [tool.name for tool in tools] == list(manifest)
    for tool in tools:
        listed = manifest[tool.name]
        assert (tool.input_schema, tool.output_schema) == (listed["input_schema"], listed["output_schema"])
        assert tool.meta is not None and tool.annotations is not None
        assert tool.meta["joinery/approval"] == listed["approval"]
        hints = tool.annotations
        assert (hints.read_only_hint, hints.destructive_hint) == (listed["read_only"], listed["destructive"])
        assert (hints.idempotent_hint, hints.open_world_hint) == (listed["idempotent"], listed["outside"])


async def test_tools_are_described_by_their_operations() -> None:
    for row in load_operation_table():
        tool = MANIFEST.find(row.id.replace(".", "_"))
        assert (tool is None) == (row.agent is None), row.id
        if tool is not None:
            assert tool.is_read_only == (not row.is_write)
            assert len(tool.name) <= 64
            assert tool.requires_approval or tool.is_read_only, "no tool changes anything without a person's word"
            assert row.caller_kind in ("any", "person"), "a tool that neither a key nor an app of a person may call"
    assert MANIFEST.find("sources_update") is not None


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_every_tool_answers_and_none_breaks_the_protocol(
    application: ApplicationHarness, generation: str
) -> None:
    async with open_client(application.app, await _create_secret(application), generation) as agent:
        await list_all_tools(agent)  # the client validates responses by the listed tools
        for tool in MANIFEST:
            result = await agent.call_tool(tool.name, build_example_arguments(tool))
            assert result.structured_content is not None
            if result.is_error:
                assert result.structured_content["code"] in _EXPECTED, (tool.name, result.structured_content)


_EXPECTED = {"not_found", "rate_limited", "unprocessable", "internal_error", "conflict", "permission_denied"}
"""Errors of calls with example IDs, of operations whose dependencies the test application lacks, and of those for vendors."""


async def test_tools_call_the_operations_of_the_api(application: ApplicationHarness, client: Client) -> None:
    async with open_client(application.app, await _create_secret(application)) as agent:
        made = await agent.call_tool("sources_create", _build_source())
        source = made.structured_content["id"]
        assert json.loads(made.content[0].text) == made.structured_content
        assert made.meta["joinery/status"] == 201
        changed = await agent.call_tool("sources_update", {"id": source, "if_match": "1", "body": {"name": "Renamed"}})
        stale = await agent.call_tool("sources_update", {"id": source, "if_match": "1", "body": {"name": "Again"}})
        tried = await agent.call_tool(
            "sources_update", {"id": source, "if_match": "*", "body": {"name": "Tried"}, "dry_run": "explain"}
        )
    assert (changed.structured_content["name"], stale.structured_content["code"]) == ("Renamed", "precondition_failed")
    assert tried.structured_content["object"] == "preview"
    read = (await client.get(f"/v1/sources/{source}")).json()
    assert (read["name"], read["version"]) == ("Renamed", 2)
    acts = (await client.get("/v1/audit-events")).json()["data"]
    assert [act["action"] for act in acts] == ["sources.update", "sources.create"]


async def test_lists_are_paged(application: ApplicationHarness, client: Client) -> None:
    for number in range(3):
        await client.post("/v1/sources", {"name": f"S{number}", "kind": "push"})
    names, cursor = [], None
    async with open_client(application.app, await _create_secret(application)) as agent:
        while True:
            page = (
                await agent.call_tool("sources_list", {"limit": 2} | ({"starting_after": cursor} if cursor else {}))
            ).structured_content
            names += [source["name"] for source in page["data"]]
            cursor = page["next_cursor"]
            if not page["has_more"]:
                break
        foreign = await agent.call_tool("sources_list", {"starting_after": "nonsense"})
    assert sorted(names) == ["S0", "S1", "S2"]
    assert foreign.is_error and foreign.structured_content["errors"][0]["code"] == "invalid_cursor"


async def test_idempotency_keys_prevent_repeated_execution(application: ApplicationHarness, client: Client) -> None:
    async with open_client(application.app, await _create_secret(application)) as agent:
        once = await agent.call_tool("sources_create", _build_source(idempotency_key="k1"))
        again = await agent.call_tool("sources_create", _build_source(idempotency_key="k1"))
        other = await agent.call_tool("sources_create", _build_source())
    assert once.structured_content == again.structured_content
    assert (once.meta.get("joinery/idempotent_replayed"), again.meta["joinery/idempotent_replayed"]) == (None, "true")
    assert other.structured_content["id"] != once.structured_content["id"]
    message = build_request("tools/call", name="sources_create", arguments=_build_source())
    ids = [(await post_message(client, message)).json()["result"]["structuredContent"]["id"] for _ in range(2)]
    assert ids[0] == ids[1], "one message, sent twice by the transport"
    later = (await post_message(client, message | {"id": 2})).json()["result"]["structuredContent"]["id"]
    assert later != ids[0]


async def test_arguments_are_refused_as_the_api_refuses(application: ApplicationHarness) -> None:
    cases: list[tuple[str, dict[str, Any], set[tuple[str, str]]]] = [
        ("sources_read", {}, {("id", "required")}),
        ("sources_read", {"id": "src_1", "more": 1}, {("id", "invalid_format"), ("more", "unknown_field")}),
        ("sources_list", {"limit": 1000}, {("limit", "too_large")}),
        ("sources_list", {"limit": "many"}, {("limit", "invalid_type")}),
        ("sources_create", {"body": {"kind": "push"}}, {("body.name", "required")}),
        ("sources_create", {}, {("body", "required")}),
    ]
    async with open_client(application.app, await _create_secret(application)) as agent:
        for name, arguments, faults in cases:
            result = await agent.call_tool(name, arguments)
            problem = result.structured_content
            assert result.is_error and problem["code"] == "invalid_request", problem
            assert {(fault["field"], fault["code"]) for fault in problem["errors"]} == faults
            assert problem["type"] == f"{DOCS}/errors/invalid_request"
        with pytest.raises(MCPError, match="Unknown tool"):
            await agent.call_tool("no_such_tool", {})


async def test_a_key_sees_and_calls_what_its_scopes_permit(application: ApplicationHarness) -> None:
    secret = await _create_secret(application, scopes=frozenset({"products:read"}), restricted=True)
    assert secret.startswith("svc_rk_live_")
    async with open_client(application.app, secret) as agent:
        names = {tool.name for tool in await list_all_tools(agent)}
    assert names == {tool.name for tool in MANIFEST if tool.scope in (None, "products:read")}
    narrow = Client(application.app, secret)
    refused = await post_message(narrow, build_request("tools/call", name="sources_update", arguments={}))
    assert (refused.status, refused.code) == (403, "permission_denied")
    assert refused.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", resource_metadata="{METADATA}", scope="products:read sources:write"'
    )


async def test_an_app_sees_the_tools_that_its_person_could_permit(application: ApplicationHarness) -> None:
    key, secret = await application.create_key(application.orgs["Fjord"], scopes=frozenset({"products:read"}))
    application.credentials.changed[key.id] = {"has_fixed_mode": False, "role": "viewer"}
    async with open_client(application.app, secret) as agent:
        names = {tool.name for tool in await list_all_tools(agent)}
    assert "sources_list" in names and "sources_create" not in names


async def test_unauthenticated_clients_learn_where_to_sign_in(application: ApplicationHarness) -> None:
    for secret in (None, "svc_live_nonsense", "svc_session_" + "a" * 38):
        response = await post_message(application.build_client(secret), build_request("tools/list"))
        assert (response.status, response.code) == (401, "authentication_required")
        challenge = response.headers["www-authenticate"]
        assert challenge.startswith(f'Bearer resource_metadata="{METADATA}", scope="')
        assert "products:read" in challenge and ":write" not in challenge
    document = (await application.build_client().get("/.well-known/oauth-protected-resource/mcp")).json()
    assert document["resource"] == f"{BASE}/mcp"
    assert "products:read" in document["scopes_supported"]
    cookie = await post_message(
        application.build_client(), build_request("tools/list"), cookie="__Host-joinery=svc_session_1"
    )
    assert cookie.status == 401, "a browser's session is no way in"


async def test_requests_of_other_origins_are_refused(application: ApplicationHarness, client: Client) -> None:
    for origin, status in ((BASE, 200), ("https://evil.example", 403), ("null", 403), ("https://[", 403)):
        assert (await post_message(client, build_request("tools/list"), origin=origin)).status == status, origin
    local = OriginCheck("http://127.0.0.1:8080")
    local.check([(b"origin", b"http://localhost:8080"), (b"host", b"localhost:8080")])
    for name, text in (
        (b"origin", b"http://evil.example:8080"),
        (b"origin", b"http://localhost:9"),
        (b"host", b"evil.example"),
    ):
        with pytest.raises(Exception, match=r"other origins|local requests only"):
            local.check([(name, text)])


HOSTILE = (
    (b"{", -32700),
    (b"", -32700),
    (b"[" * 100_000, -32700),
    (b'{"a":' * 5000, -32700),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32700),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 300 + b'","method":"ping"}', -32600),
    (b'"ping"', -32600),
)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_hostile_messages_are_answered_as_errors(client: Client, version: str) -> None:
    for body, code in HOSTILE:
        response = await post_message(client, body, mcp_protocol_version=version)
        assert (response.status, response.json()["error"]["code"]) == (400, code), body[:80]
    for odd in (
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
    ):
        response = await post_message(client, odd, mcp_protocol_version=version)
        assert response.status == 400 and "error" in response.json()
    await post_message(client, build_request("tools/call", name={"a": 1}, arguments=[]), mcp_protocol_version=version)
    assert (await post_message(client, build_request("ping"), mcp_protocol_version="2025-11-25")).status == 200


async def test_only_small_json_by_post_is_accepted(client: Client) -> None:
    assert (await client.send("GET", "/mcp")).headers["allow"] == "POST, OPTIONS"
    assert (await client.send("OPTIONS", "/mcp")).status == 204
    assert (await client.send("DELETE", "/mcp")).status == 405
    assert (await client.send("POST", "/mcp", body=b"{}", headers={"content-type": "text/plain"})).status == 415
    large = build_request("tools/call", name="sources_create", arguments={"text": "x" * (1 << 20)})
    assert (await post_message(client, large)).status == 413


async def test_messages_are_charged_and_counted(
    application: ApplicationHarness, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        (await post_message(client, build_request("tools/list")))
        .headers["ratelimit"]
        .startswith('"standard.read";r=199')
    )
    called = await post_message(client, build_request("tools/call", name="sources_create", arguments=_build_source()))
    assert called.headers["ratelimit"].startswith('"standard.write"')
    monkeypatch.setattr(edge, "MAX_MESSAGE_SECONDS", 0.01)
    waited = await post_message(
        client, build_request("tools/call", name="changes_page", arguments={"cursor": "now", "wait": 20})
    )
    assert (waited.status, waited.code) == (503, "unavailable")
    await asyncio.sleep(0.01)
    assert application.app.asgi_app._pipeline.pressure.in_flight == 0, "what was given up is over"
    await application.app.shutdown()
    assert [(log.path, log.status) for log in application.sink.written][-1] == ("/mcp", 503)


async def test_large_answers_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_RESPONSE_BYTES", 100)
    result = (await post_message(client, build_request("tools/call", name="sources_list", arguments={}))).json()[
        "result"
    ]
    assert result["isError"] is False, "an empty list is small"
    await client.post("/v1/sources", {"name": "Lindgren", "kind": "push"})
    result = (await post_message(client, build_request("tools/call", name="sources_list", arguments={}))).json()[
        "result"
    ]
    assert result["isError"] and "maximum of 100" in result["structuredContent"]["detail"]


async def test_lists_of_tools_are_cached_per_credential(application: ApplicationHarness, client: Client) -> None:
    narrow = Client(application.app, await _create_secret(application, scopes=frozenset({"usage:read"})))
    for _ in range(2):
        for caller, count in ((client, 20), (narrow, len(MANIFEST.list_permitted(frozenset({"usage:read"}))))):
            for number in (7, "seven"):
                response = (await post_message(caller, build_request("tools/list") | {"id": number})).json()
                assert response["id"] == number and len(response["result"]["tools"]) == count
    ahead = await post_message(client, build_request("tools/list", cursor="bm9uZQ"))
    assert ahead.json()["error"]["code"] == -32602
    faulty = await post_message(client, build_request("tools/list"), mcp_protocol_version="2026-07-28")
    assert "error" in faulty.json(), "what another asks for is not this one's answer"


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_resources(application: ApplicationHarness, client: Client, generation: str) -> None:
    source = (await client.post("/v1/sources", {"name": "Lindgren", "kind": "push"})).json()["id"]
    async with open_client(application.app, await _create_secret(application), generation) as agent:
        listed = {str(found.uri) for found in (await agent.list_resources()).resources}
        templates = {found.uri_template for found in (await agent.list_resource_templates()).resource_templates}
        categories = json.loads((await agent.read_resource("joinery://categories")).contents[0].text)
        health = json.loads((await agent.read_resource(f"joinery://sources/{source}/health")).contents[0].text)
        error = (await agent.read_resource("joinery://errors/precondition_failed")).contents[0].text
        index = (await agent.read_resource("joinery://errors")).contents[0].text
        for lost in ("joinery://errors/none", "joinery://sources/src_1/health", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await agent.read_resource(lost)
    assert listed == {"joinery://categories", "joinery://errors"}
    assert templates == {"joinery://sources/{id}/health", "joinery://errors/{code}"}
    assert categories["object"] and health["object"] == "source_health" and health["status"] == "active"
    assert "If-Match" in error and "`precondition_failed`" in index


async def test_the_mode_follows_from_the_credential(application: ApplicationHarness) -> None:
    sandbox = await _create_secret(application, livemode=False)
    async with open_client(application.app, sandbox) as agent:
        await agent.call_tool("sources_create", _build_source())
        assert len((await agent.call_tool("sources_list", {})).structured_content["data"]) == 1
    async with open_client(application.app, await _create_secret(application)) as agent:
        assert (await agent.call_tool("sources_list", {})).structured_content["data"] == []
    refused = await post_message(Client(application.app, sandbox), build_request("tools/list"), service_mode="live")
    assert (refused.status, refused.code) == (400, "invalid_request")


async def test_requests_are_logged_once_each_as_mcp(application: ApplicationHarness, client: Client) -> None:
    await post_message(client, build_request("tools/list"))
    await post_message(client, build_request("tools/call", name="sources_create", arguments=_build_source()))
    await post_message(client, build_request("tools/call", name="sources_read", arguments={}))
    await application.app.shutdown()
    logged = [(log.method, log.path, log.status, log.via, log.error_code) for log in application.sink.written]
    assert logged == [
        ("POST", "/mcp", 200, "mcp", None),
        ("POST", "/v1/sources", 201, "mcp", None),
        ("POST", "/mcp", 200, "mcp", "invalid_request"),
    ]


async def test_tools_without_a_scope_are_public(application: ApplicationHarness) -> None:
    """Tools without a scope are public; conflicting tool names are refused at start-up."""
    tool = MANIFEST.find("orgs_list_plans")
    assert tool is not None and MANIFEST.permits(frozenset(), tool)
    with pytest.raises(ValueError, match="have the same name"):
        type(MANIFEST)([tool, replace(tool)])


async def test_only_arguments_of_calls_may_be_long(application: ApplicationHarness) -> None:
    client = application.build_client(await _create_secret(application))
    many = [{"a": 1}] * 20_000
    for method, params in (
        ("tools/list", {"_meta": {"x": many}}),
        ("initialize", {"x": many}),
        ("nothing", {"x": many}),
    ):
        refused = await post_message(client, build_request(method, **params))
        assert refused.status == 400 and "not counting a tool's arguments" in refused.json()["error"]["message"], method
    refused = await post_message(client, {"jsonrpc": "2.0", "id": 1, "result": {"x": many}})
    assert refused.status == 400
    listed = build_request("tools/call", name="catalogue_list_products", arguments={"q": many})
    result = (await post_message(client, listed)).json()["result"]
    assert result["isError"] and result["structuredContent"]["errors"][0]["field"] == "q"
    source = _build_source(idempotency_key="x" * 10) | {"padding": "x" * 70_000}
    result = (await post_message(client, build_request("tools/call", name="sources_create", arguments=source))).json()[
        "result"
    ]
    assert result["structuredContent"]["errors"][0]["field"] == "padding"
