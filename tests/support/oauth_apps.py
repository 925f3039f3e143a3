"""One app of each kind in an organisation, and a signed-in owner, created by the use cases."""

from typing import Any

from domain.access.model import ROLES, Principal
from domain.access.usecases import AccessService
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import AppKind
from domain.oauth.usecases.apps import AppService, NewApp
from domain.orgs.model import Member, Organisation
from domain.orgs.ports import OrgStore
from domain.people.model import AuthMethod, User
from domain.people.ports import People
from domain.people.usecases.sessions import ClientInfo, SessionService
from entrypoints.dependencies import Dependencies
from ports.unit_of_work import UnitOfWork
from tests.support import builders

CALLBACK = "https://app.example/cb"
KINDS = {
    AppKind.WEB: (CALLBACK,),
    AppKind.SINGLE_PAGE: (CALLBACK,),
    AppKind.NATIVE: ("http://127.0.0.1/cb",),
    AppKind.MACHINE: (),
}


async def create_apps(parts: Dependencies, organisation: Organisation) -> tuple[dict[str, Any], str]:
    """Return `client_id` and `client_secret` by the kind of app, and the cookie of the owner."""
    now = builders.MOMENT
    tenant, user = Tenant(organisation.id, True), User(new_id("usr"), f"{new_id('usr')}@fjord.test", "Ada", None, now)
    owner = Principal(
        tenant,
        Actor("user", user.id),
        "console",
        "owner",
        ROLES["owner"],
        organisation,
        is_personal_token=True,
        is_console_session=True,
    )
    await parts[People].add(user)
    apps: dict[str, Any] = {}
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        await tx[OrgStore].add_member(Member(user.id, organisation.id, user.email, "owner", now))
        for kind, uris in KINDS.items():
            scopes = frozenset({"products:read"}) if kind is AppKind.MACHINE else owner.scopes
            app, secret = await AppService(parts[AccessService].compute_digest).create_app(
                tx, owner, NewApp(f"A {kind} app", kind, uris, scopes)
            )
            apps[kind] = {"client_id": app.client_id} | ({"client_secret": secret} if secret else {})
    _, cookie = await parts[SessionService].start(user, [AuthMethod.PASSWORD], ClientInfo("127.0.0.1"))
    return apps, cookie
