"""Official MCP client, connected to the application in this process."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import types
from mcp.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from domain.agents.model import AgentTool
from tests.http.application import BASE
from tests.http.client import Client, Response

GENERATIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""How the client connects, and the protocol that both sides then speak."""


@asynccontextmanager
async def open_client(
    app: Any, secret: str, generation: str = "auto", base: str = BASE, **headers: str
) -> AsyncIterator[McpClient]:
    """Open a client with that credential, by the handshake or by the stateless protocol."""
    sent = {"authorization": f"Bearer {secret}"} | {name.replace("_", "-"): text for name, text in headers.items()}
    transport = httpx2.ASGITransport(app=app, client=("203.0.113.7", 40000))
    async with (
        httpx2.AsyncClient(transport=transport, base_url=base, headers=sent) as http,
        McpClient(streamable_http_client(f"{base}/mcp", http_client=http), mode=generation) as client,
    ):
        yield client


async def list_all_tools(client: McpClient) -> list[types.Tool]:
    """List the tools of all pages."""
    tools: list[types.Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def post_message(client: Client, message: Any, **headers: str) -> Response:
    """Post one message: a JSON value or raw bytes."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    sent = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return await client.send("POST", "/mcp", body=body, headers=sent | _build_headers(headers))


def _build_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def build_request(method: str, **params: Any) -> dict[str, Any]:
    """Build a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


_BODIES = {"sources_create": {"name": "Lindgren", "kind": "push"}}


def build_example_arguments(tool: AgentTool) -> dict[str, Any]:
    """Build examples of the required arguments; writes are dry runs."""
    properties = tool.input_schema["properties"]
    given = {name: _build_example(properties[name]) for name in tool.input_schema["required"]}
    given |= {"body": _BODIES[tool.name]} if tool.name in _BODIES else {}
    return given | ({"dry_run": "true"} if "dry_run" in properties else {})


def _build_example(schema: Any) -> Any:
    if schema.get("examples"):
        return schema["examples"][0]
    if schema.get("type") == "array":
        return [_build_example(schema["items"])]
    required = schema.get("required") or list(schema.get("properties", {}))[:1]
    return {name: _build_example(schema["properties"][name]) for name in required}
