"""What tests of OAuth share: apps, a person with a browser, and an app that walks through its sign-in."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from domain.access.model import ROLES, SCOPES, Principal
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import App, AppKind
from domain.oauth.usecases.apps import AppService, NewApp
from domain.orgs.model import Member, Organisation
from domain.orgs.ports import OrgStore
from domain.people.model import AuthMethod, User
from domain.people.usecases.sessions import ClientInfo, SessionService
from tests.http.browser import Browser, Page
from tests.http.client import Answer, Client
from tests.http.fakes import BASE, OPERATOR, World

CALLBACK = "https://app.example/cb"
VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


def owner_of(org: Organisation, role: str = "owner", **changes: Any) -> Principal:
    """A member who is signed in to the console."""
    fields: dict[str, Any] = {"is_personal_token": True, "is_console_session": True, "has_fixed_mode": False} | changes
    return Principal(Tenant(org.id, True), Actor("user", new_id("usr")), "console", role, ROLES[role], org, **fields)


@dataclass
class Person:
    """A member with a browser that is signed in."""

    user: User
    browser: Browser


@dataclass
class Stage:
    """A world with what OAuth needs around it."""

    world: World
    secrets: dict[str, str] = field(default_factory=dict)

    async def app(
        self, kind: AppKind = AppKind.WEB, *uris: str, org: str = "Fjord", scopes: frozenset[str] = SCOPES
    ) -> App:
        """An app of that organisation; its secret is remembered."""
        own = self.world.orgs[org]
        uris = () if kind is AppKind.MACHINE else uris or (CALLBACK,)
        async with self.world.uow.begin(Tenant(own.id, True), OPERATOR) as tx:
            wanted = NewApp("Price <b>sync</b>", kind, uris, scopes)
            app, secret = await AppService(self.world.access.compute_digest).create_app(tx, owner_of(own), wanted)
        self.secrets[app.client_id] = secret or ""
        return app

    async def person(self, *orgs: str, role: str = "editor") -> Person:
        """Somebody who belongs to these organisations, and is signed in."""
        user = await self.world.people.add(
            User(new_id("usr"), f"{new_id('usr')}@fjord.test", "Ada", None, self.world.clock.now())
        )
        for org in orgs or ("Fjord",):
            await self.role(user, org, role)
        _, cookie = await self.world.dependencies[SessionService].start(
            user, [AuthMethod.PASSWORD], ClientInfo("203.0.113.7")
        )
        return Person(user, Browser(self.world.app, cookie))

    async def role(self, user: User, org: str, role: str) -> None:
        """Make the user a member, or give another role."""
        id_ = self.world.orgs[org].id
        async with self.world.uow.begin(Tenant(id_, True), OPERATOR) as tx:
            if await tx[OrgStore].find_member(user.email) is None:
                await tx[OrgStore].add_member(Member(user.id, id_, user.email, role, self.world.clock.now()))
            else:
                await tx[OrgStore].change_role(user.id, role)

    async def leaves(self, user: User, org: str) -> None:
        """The user is no member any more."""
        async with self.world.uow.begin(Tenant(self.world.orgs[org].id, True), OPERATOR) as tx:
            await tx[OrgStore].remove_member(user.id)

    def place(self, app: App, **changes: str | None) -> str:
        """The address of an authorization request; None leaves a parameter out."""
        parameters = {
            "response_type": "code", "client_id": app.client_id, "redirect_uri": app.redirect_uris[0] if app.redirect_uris else None,
            "code_challenge": CHALLENGE, "code_challenge_method": "S256", "scope": "products:read", "state": "s t&ä",
        } | changes  # fmt: skip
        return "/oauth/authorize?" + urlencode({name: value for name, value in parameters.items() if value is not None})

    async def request_consent(self, person: Person, app: App, **changes: str | None) -> Page:
        """Request the consent page, or its redirect."""
        return await person.browser.get(self.place(app, **changes))

    async def allow(
        self, person: Person, page: Page, org: str = "Fjord", decision: str = "allow", **fields: str
    ) -> Page:
        """Send the form of that page."""
        sent = {"request": page.field("request"), "decision": decision, "org": self.world.orgs[org].id} | fields
        return await person.browser.submit(page, "/oauth/authorize", **sent)

    async def code(self, person: Person, app: App, org: str = "Fjord", **changes: str | None) -> str:
        """A code, by way of the consent page."""
        page = await self.request_consent(person, app, **changes)
        done = await self.allow(person, page, org) if page.status == 200 else page
        return led(done)["code"]

    async def post(
        self, path: str, address: str = "203.0.113.7", basic: tuple[str, str] | None = None, **form: str
    ) -> Answer:
        """A program's form."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if basic:
            headers["authorization"] = "Basic " + base64.b64encode(":".join(basic).encode()).decode()
        return await Client(self.world.app, None, address).send(
            "POST", path, body=urlencode(form).encode(), headers=headers
        )

    async def token(self, app: App, **form: str) -> Answer:
        """A token request of that app, with its secret if it has one."""
        secret = self.secrets.get(app.client_id)
        basic = (app.client_id, secret) if secret else None
        own = {} if basic else {"client_id": app.client_id}
        return await self.post("/oauth/token", basic=basic, **(own | form))

    async def redeem(self, app: App, code: str, **changes: str) -> Answer:
        """The code's tokens."""
        uri = app.redirect_uris[0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": uri, "code_verifier": VERIFIER}
        return await self.token(app, **(form | changes))

    async def refresh(self, app: App, refresh_token: str, **more: str) -> Answer:
        """Tokens for a refresh token."""
        return await self.token(app, grant_type="refresh_token", refresh_token=refresh_token, **more)

    async def signed_in(self, app: App, person: Person, **changes: str | None) -> dict[str, Any]:
        """The answer to the whole of a sign-in."""
        answer = await self.redeem(app, await self.code(person, app, **changes))
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    async def register(self, **metadata: Any) -> Answer:
        """Dynamic registration."""
        body = json.dumps(
            {"redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "none"} | metadata
        ).encode()
        return await Client(self.world.app, None).send(
            "POST", "/oauth/register", body=body, headers={"content-type": "application/json"}
        )

    def client(self, token: str) -> Client:
        """A client of the API with that token."""
        return Client(self.world.app, token)


def led(page: Page) -> dict[str, str]:
    """The parameters of the address that the browser is sent to, with that address as `to`."""
    place = page.header("location") or ""
    parts = urlsplit(place)
    assert page.status == 303 and parts.scheme, (page.status, page.text[:3000])
    found = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert found["iss"] == BASE
    return found | {"to": place.partition("?")[0]}
