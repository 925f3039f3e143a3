"""What others wrote for OAuth, openid-client and oauth4webapi, walks through every flow and refusal of a running service."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from domain.access.model import ROLES, Principal
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import AppKind
from domain.oauth.usecases.apps import AppService, NewApp
from domain.orgs.model import Member
from domain.people.model import Method, User
from domain.people.usecases.sessions import Visitor
from entrypoints.container import Container
from tests.clients.programs import npm_install, run
from tests.flows.stage import Stage
from tests.support import builders

pytestmark = pytest.mark.clients
HERE = Path(__file__).parent
NODE = os.environ.get("NODE") or shutil.which("node") or "node"
CALLBACK = "https://app.example/cb"
KINDS = {
    AppKind.WEB: (CALLBACK,),
    AppKind.SINGLE_PAGE: (CALLBACK,),
    AppKind.NATIVE: ("http://127.0.0.1/cb",),
    AppKind.MACHINE: (),
}


@pytest.fixture(scope="module")
def told(stage: Stage) -> dict[str, str]:
    """Where the service is, an app of each kind, and the cookie of somebody who is signed in."""
    organisation = stage.organisation().organisation

    async def make(parts: Container) -> dict[str, str]:
        tenant, user = Tenant(organisation.id, True), User(new_id("usr"), f"{new_id('usr')}@fjord.test", "Ada", None, builders.MOMENT)
        actor = Actor("user", user.id)
        owner = Principal(tenant, actor, "console", "owner", ROLES["owner"], organisation, person=True, session=True)
        await parts.people().add(user)
        apps: dict[str, Any] = {}
        async with parts.uow().begin(tenant, builders.CALL) as tx:
            await tx.orgs.add_member(Member(user.id, organisation.id, user.email, "owner", builders.MOMENT))
            for kind, uris in KINDS.items():
                scopes = frozenset({"products:read"}) if kind is AppKind.MACHINE else owner.scopes
                wanted = NewApp(f"A {kind} app", kind, uris, scopes)
                app, secret = await AppService(parts.access().digest).create_app(tx, owner, wanted)
                apps[kind] = {"client_id": app.client_id} | ({"client_secret": secret} if secret else {})
        _, cookie = await parts.sessions().begin(user, [Method.PASSWORD], Visitor("127.0.0.1"))
        return {"JOINERY_APPS": json.dumps(apps), "JOINERY_COOKIE": cookie}

    return {"JOINERY_URL": f"http://127.0.0.1:{stage.port}", **stage.within(make)}


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
