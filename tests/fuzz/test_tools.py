"""Arbitrary calls of every MCP tool of a running API: a structured result or a protocol error, never an internal error."""

import asyncio
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from domain.agents.model import AgentTool
from entrypoints.operations.tools import KEY, build_manifest
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.fuzz.exploration import Effort, check_examples, parametrize_effort
from tests.fuzz.values import HOSTILE, JSON, build_values, mutate
from tests.postgres.databases import create_database
from tests.support.operation_table import load_operation_table
from tests.support.processes import memory

TOOLS = {tool.name: tool for tool in build_manifest(load_operation_table())}
MEMORY = 400
"""Memory limit of the API in MiB."""
SLOWEST = 30.0
OF_THE_PROTOCOL = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022})
"""Error codes of JSON-RPC and MCP, without -32603, an internal error."""
METHODS = (
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "completion/complete",
    "ping",
    "initialize",
    "nothing",
    "",
)
VERSIONS = ("2026-07-28", "2025-11-25", "2025-03-26", "1999-01-01", "")


@dataclass
class McpEndpoint:
    """Running /mcp endpoint, with one connection per message."""

    stage: ServiceProcesses
    pid: int
    tenancy: Tenancy

    def send_message(self, message: bytes, **headers: str) -> tuple[int, bytes]:
        """Send a message and return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.stage.port, timeout=SLOWEST + 10)
        own = {"Authorization": f"Bearer {self.tenancy.api.secret}", "Content-Type": "application/json"}
        own |= {"Accept": "application/json, text/event-stream"} | headers
        began = time.monotonic()
        connection.request("POST", "/mcp", message, own)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert time.monotonic() - began < SLOWEST
        return answer.status, body


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpEndpoint]:
    """Yield an API with one organisation in test mode, and check at the end that its log has no error."""
    stage = ServiceProcesses(asyncio.run(create_database("tools")), tmp_path_factory.mktemp("tools"))
    try:
        process = stage.start_api()
        made = McpEndpoint(stage, process.pid, stage.create_organisation(livemode=False))
        yield made
        assert process.poll() is None and made.tenancy.api.is_ready()
        log = stage.log_path("api").read_text()
        assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:4_000]
    finally:
        stage.stop()


def _build_arguments(tool: AgentTool) -> st.SearchStrategy[Any]:
    """Return arguments that are valid by the tool's schema, partly valid and arbitrary, without long polls."""
    known = {name: dict(given) for name, given in tool.input_schema["properties"].items()}
    known |= {"wait": {"const": 0}} if "wait" in known else {}
    good = build_values({**tool.input_schema, "properties": known}).map(
        lambda given: {**given, **_build_key(tool, given)}
    )
    return st.one_of(good, good.flatmap(mutate), good.flatmap(mutate), JSON, st.sampled_from(HOSTILE))


def _build_key(tool: AgentTool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an unused key for some calls with one, so that not all repeat the first call."""
    return {KEY: f"k{time.time_ns()}"} if KEY in given and len(given) % 2 else {}


@pytest.mark.parametrize("name", TOOLS)
@parametrize_effort(examples=12, parts=len(TOOLS))
def test_arbitrary_calls_are_answered(endpoint: McpEndpoint, name: str, effort: Effort) -> None:
    tool = TOOLS[name]
    described = Draft202012Validator(tool.output_schema or True)

    def check(arguments: Any, id_: Any) -> None:
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
        status, body = endpoint.send_message(json.dumps(message).encode())
        _check_response(status, body, id_, described)
        assert memory(endpoint.pid) < MEMORY

    check_examples(effort, check, _build_arguments(tool), st.sampled_from([1, 2, "a", 2**62, "é"]))


@parametrize_effort(examples=150, parts=4)
def test_arbitrary_messages_are_answered(endpoint: McpEndpoint, effort: Effort) -> None:
    """Messages are arbitrary JSON."""
    params = st.one_of(
        JSON,
        st.fixed_dictionaries(
            {"name": st.one_of(JSON, st.sampled_from(sorted(TOOLS)))}, optional={"arguments": JSON, "_meta": JSON, "cursor": JSON, "uri": JSON}
        ),
    )  # fmt: skip
    whole_ones = st.fixed_dictionaries(
        {},
        optional={"jsonrpc": st.one_of(st.just("2.0"), JSON), "id": JSON, "method": st.one_of(st.sampled_from(METHODS), JSON), "params": params, "result": JSON},
    )  # fmt: skip

    def check(message: Any, version: str, named: bool) -> None:
        headers = {"Mcp-Protocol-Version": version} | ({"Mcp-Method": "tools/call", "Mcp-Name": "x"} if named else {})
        status, body = endpoint.send_message(json.dumps(message).encode(), **headers)
        _check_response(status, body, None, Draft202012Validator(True))

    messages = st.one_of(whole_ones, whole_ones.flatmap(mutate), JSON)
    check_examples(effort, check, messages, st.sampled_from(VERSIONS), st.booleans())


def _check_response(status: int, body: bytes, id_: Any, described: Draft202012Validator) -> None:
    """Check for a structured result as the tool declares, or an error with a message."""
    assert status < 500, body
    assert b"Traceback" not in body and b'File \\"' not in body, body
    if status == 202 and not body:
        return
    value = json.loads(body)
    if "jsonrpc" not in value:
        assert status >= 400 and value["code"], body
        return
    if "error" in value:
        assert value["error"]["code"] in OF_THE_PROTOCOL, body
        return
    result = value["result"]
    if id_ is None:
        return
    assert value["id"] == id_
    content = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == content if result["content"][0]["text"] != "Done." else content
    assert result.get("isError", False) is (result["_meta"]["joinery/status"] >= 400)
    assert result["_meta"]["joinery/status"] < 500 or content["code"] in ("unavailable", "overloaded"), body
    faults = [fault.message for fault in described.iter_errors(content)]
    assert not faults, (faults[:3], body)
