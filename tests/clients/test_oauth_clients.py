"""OAuth flows and refusals with the libraries openid-client and oauth4webapi."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from entrypoints.dependencies import Dependencies
from tests.clients.programs import npm_install, run
from tests.flows.service_processes import ServiceProcesses
from tests.support.oauth_apps import create_apps

pytestmark = pytest.mark.clients
HERE = Path(__file__).parent
NODE = os.environ.get("NODE") or shutil.which("node") or "node"


@pytest.fixture(scope="module")
def service_environment(services: ServiceProcesses) -> dict[str, str]:
    """Return environment variables: address of the service, an app of each kind, and the cookie of a signed-in person."""
    organisation = services.create_organisation().organisation

    async def make(parts: Dependencies) -> tuple[dict[str, Any], str]:
        return await create_apps(parts, organisation)

    apps, cookie = services.run_with_dependencies(make)
    return {
        "JOINERY_URL": f"http://127.0.0.1:{services.port}",
        "JOINERY_APPS": json.dumps(apps),
        "JOINERY_COOKIE": cookie,
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install both libraries and the programs."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("oauth")
    npm_install(folder, "openid-client", "oauth4webapi")
    for name in ("browsing.mjs", "openid_client.mjs", "oauth4webapi.mjs"):
        shutil.copy(HERE / name, folder)
    return folder


@pytest.mark.parametrize(("program", "least"), [("openid_client.mjs", 20), ("oauth4webapi.mjs", 30)])
def test_every_flow_and_refusal(home: Path, service_environment: dict[str, str], program: str, least: int) -> None:
    done = json.loads(run(NODE, program, cwd=home, **service_environment))
    assert len(done) >= least, done


def test_mcp_remote_signs_in(service_environment: dict[str, str], tmp_path: Path) -> None:
    """It discovers the authorization server by the 401 of /mcp, registers, and obtains a token for /mcp."""
    npm_install(tmp_path, "mcp-remote", "@modelcontextprotocol/sdk", "node")
    for name in ("browsing.mjs", "mcp_remote.mjs"):
        shutil.copy(HERE / name, tmp_path)
    config = tmp_path / "home"
    config.mkdir()
    node = tmp_path / "node_modules/node/bin/node"
    done = json.loads(run(node, "mcp_remote.mjs", cwd=tmp_path, MCP_HOME=str(config), **service_environment))
    assert "sources_list" in done["tools"] and "sources_update" in done["tools"], "what an owner could let it do"
    assert (done["isError"], done["object"]) == (False, "list")
    assert done["resources"] == [f"{service_environment['JOINERY_URL']}/mcp"]
    assert "products:read" in done["scopes"][0] and ":write" not in done["scopes"][0]
