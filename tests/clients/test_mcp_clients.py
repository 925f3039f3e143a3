"""MCP by the official TypeScript clients of both protocol generations, and by the conformance suite."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from entrypoints.operations.tools import build_manifest
from tests.clients.programs import npm_install, run
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import ROOT, ServiceProcesses, free_port, wait_until
from tests.http.mcp import build_example_arguments
from tests.support.operation_table import load_operation_table

pytestmark = pytest.mark.clients
HERE = Path(__file__).parent
MANIFEST = build_manifest(load_operation_table())
PASSES = {
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "resources-list",
    "dns-rebinding-protection",
}
"""Scenarios of the suite that ask for no tool, resource or prompt of its own making (docs/mcp.md#conformance)."""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the clients, the suite and a Node.js version that supports it."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("agents")
    names = ("client", "sdk", "conformance")
    npm_install(folder, *(f"@modelcontextprotocol/{name}" for name in names), "node")
    for program in ("agent.mjs", "signing.mjs"):
        shutil.copy(HERE / program, folder)
    return folder


@pytest.mark.parametrize("which", ["handshake", "stateless"])
def test_every_tool_is_listed_and_called(services: ServiceProcesses, agents: Path, which: str) -> None:
    fjord = services.create_organisation()
    source = fjord.api.create_source("push")
    given = {tool.name: build_example_arguments(tool) for tool in MANIFEST}
    for tool in MANIFEST:
        if tool.path.startswith("/v1/sources/{id}"):
            given[tool.name] |= {"id": source} | ({"if_match": "*"} if "if_match" in given[tool.name] else {})
    environment = {"JOINERY_URL": f"http://127.0.0.1:{services.port}", "JOINERY_KEY": str(fjord.api.secret)}
    output = run(_find_node(agents), "agent.mjs", which, cwd=agents, JOINERY_ARGUMENTS=json.dumps(given), **environment)
    found = json.loads(output)
    assert list(found["called"]) == [tool.name for tool in MANIFEST]
    outcomes = set(found["called"].values())
    assert outcomes <= {"ok", "not_found", "rate_limited", "unprocessable", "conflict"}, found["called"]
    assert sum(outcome == "ok" for outcome in found["called"].values()) > 25
    assert found["read"] == {"joinery://categories": "application/json", "joinery://errors": "text/markdown"}


@pytest.fixture
def signing_proxy(services: ServiceProcesses, agents: Path) -> Iterator[str]:
    """Run a proxy that adds credentials to requests; return its address."""
    port, service = free_port(), free_port()
    address = f"http://127.0.0.1:{port}"
    api = ("-m", "entrypoints.cli.main", "api")
    started = services.start("api-behind", api, JOINERY_PORT=str(service), JOINERY_BASE_URL=address)
    wait_until(lambda: ApiClient(service, None).is_ready(), "the API is ready", within=40)
    secret = str(services.create_organisation().api.secret)
    words = [str(agents / "node_modules/node/bin/node"), "signing.mjs", str(port), str(service)]
    with subprocess.Popen(words, cwd=agents, env={"JOINERY_KEY": secret}, stdout=subprocess.PIPE) as proxy:
        try:
            assert proxy.stdout is not None
            proxy.stdout.readline()
            yield address
        finally:
            proxy.terminate()
            services.stop(started)


def test_the_server_passes_the_conformance_suite(agents: Path, signing_proxy: str) -> None:
    suite = agents / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    listed = run(_find_node(agents), suite, "list", "--server", cwd=agents)
    scenarios = re.findall(r"^ +- ([a-z0-9-]+)", listed, re.MULTILINE)
    explained = (ROOT / "docs/mcp.md").read_text("utf-8")
    outcomes = {name: _read_passes(agents, suite, name, signing_proxy) for name in scenarios}
    print(json.dumps(outcomes, indent=1))
    assert {name for name in scenarios if outcomes[name]} >= PASSES
    unexplained = [name for name in scenarios if not outcomes[name] and f"`{name}`" not in explained]
    assert not unexplained, "each scenario that does not apply is named with the reason"


def _read_passes(agents: Path, suite: Path, scenario: str, address: str) -> bool:
    words = [_find_node(agents), str(suite), "server", "--url", f"{address}/mcp", "--scenario", scenario]
    done = subprocess.run(words, cwd=agents, capture_output=True, text=True, timeout=120)
    return done.returncode == 0


def _find_node(agents: Path) -> str:
    return str(agents / "node_modules/node/bin/node")
