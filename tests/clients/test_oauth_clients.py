"""What others wrote for OAuth, openid-client and oauth4webapi, walks through every flow and refusal of a running service."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from entrypoints.container import Container
from tests.clients.programs import npm_install, run
from tests.flows.stage import Stage
from tests.support.oauth_apps import apps_of

pytestmark = pytest.mark.clients
HERE = Path(__file__).parent
NODE = os.environ.get("NODE") or shutil.which("node") or "node"


@pytest.fixture(scope="module")
def told(stage: Stage) -> dict[str, str]:
    """Where the service is, an app of each kind, and the cookie of somebody who is signed in."""
    organisation = stage.organisation().organisation

    async def make(parts: Container) -> tuple[dict[str, Any], str]:
        return await apps_of(parts, organisation)

    apps, cookie = stage.within(make)
    return {"JOINERY_URL": f"http://127.0.0.1:{stage.port}", "JOINERY_APPS": json.dumps(apps), "JOINERY_COOKIE": cookie}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both libraries and the programs."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("oauth")
    npm_install(folder, "openid-client", "oauth4webapi")
    for name in ("browsing.mjs", "openid_client.mjs", "oauth4webapi.mjs"):
        shutil.copy(HERE / name, folder)
    return folder


@pytest.mark.parametrize(("program", "least"), [("openid_client.mjs", 20), ("oauth4webapi.mjs", 30)])
def test_every_flow_and_refusal(home: Path, told: dict[str, str], program: str, least: int) -> None:
    done = json.loads(run(NODE, program, cwd=home, **told))
    assert len(done) >= least, done
