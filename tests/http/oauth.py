"""Shared helpers of OAuth tests: apps, signed-in members and the sign-in of an app."""

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
from tests.http.application import BASE, OPERATOR, ApplicationHarness
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.client import Client, Response

CALLBACK = "https://app.example/cb"
VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


def create_principal(org: Organisation, role: str = "owner", **changes: Any) -> Principal:
    """Create the principal of a member who is signed in to the console."""
    fields: dict[str, Any] = {"is_personal_token": True, "is_console_session": True, "has_fixed_mode": False} | changes
    return Principal(Tenant(org.id, True), Actor("user", new_id("usr")), "console", role, ROLES[role], org, **fields)


@dataclass
class SignedInMember:
    """Member with a signed-in browser."""

    user: User
    browser: ConsoleBrowser


@dataclass
class OAuthHarness:
    """Running application with apps and members."""

    application: ApplicationHarness
    secrets: dict[str, str] = field(default_factory=dict)

    async def create_app(
        self, kind: AppKind = AppKind.WEB, *uris: str, org: str = "Fjord", scopes: frozenset[str] = SCOPES
    ) -> App:
        """Create an app of that organisation and store its secret."""
        own = self.application.orgs[org]
        uris = () if kind is AppKind.MACHINE else uris or (CALLBACK,)
        async with self.application.uow.begin(Tenant(own.id, True), OPERATOR) as tx:
            wanted = NewApp("Price <b>sync</b>", kind, uris, scopes)
            app, secret = await AppService(self.application.access.compute_digest).create_app(
                tx, create_principal(own), wanted
            )
        self.secrets[app.client_id] = secret or ""
        return app

    async def create_member(self, *orgs: str, role: str = "editor") -> SignedInMember:
        """Create a signed-in member of these organisations."""
        user = await self.application.people.add(
            User(new_id("usr"), f"{new_id('usr')}@fjord.test", "Ada", None, self.application.clock.now())
        )
        for org in orgs or ("Fjord",):
            await self.set_role(user, org, role)
        _, cookie = await self.application.dependencies[SessionService].start(
            user, [AuthMethod.PASSWORD], ClientInfo("203.0.113.7")
        )
        return SignedInMember(user, ConsoleBrowser(self.application.app, cookie))

    async def set_role(self, user: User, org: str, role: str) -> None:
        """Add the user as a member, or change the role."""
        id_ = self.application.orgs[org].id
        async with self.application.uow.begin(Tenant(id_, True), OPERATOR) as tx:
            if await tx[OrgStore].find_member(user.email) is None:
                await tx[OrgStore].add_member(Member(user.id, id_, user.email, role, self.application.clock.now()))
            else:
                await tx[OrgStore].change_role(user.id, role)

    async def remove_member(self, user: User, org: str) -> None:
        """Remove the user from the organisation."""
        async with self.application.uow.begin(Tenant(self.application.orgs[org].id, True), OPERATOR) as tx:
            await tx[OrgStore].remove_member(user.id)

    def build_authorization_path(self, app: App, **changes: str | None) -> str:
        """Build the path of an authorization request; None omits a parameter."""
        parameters = {
            "response_type": "code", "client_id": app.client_id, "redirect_uri": app.redirect_uris[0] if app.redirect_uris else None,
            "code_challenge": CHALLENGE, "code_challenge_method": "S256", "scope": "products:read", "state": "s t&ä",
        } | changes  # fmt: skip
        return "/oauth/authorize?" + urlencode({name: value for name, value in parameters.items() if value is not None})

    async def request_consent(self, person: SignedInMember, app: App, **changes: str | None) -> BrowserPage:
        """Request the consent page, or its redirect."""
        return await person.browser.get(self.build_authorization_path(app, **changes))

    async def submit_consent(
        self, person: SignedInMember, page: BrowserPage, org: str = "Fjord", decision: str = "allow", **fields: str
    ) -> BrowserPage:
        """Submit the form of the consent page."""
        sent = {"request": page.field("request"), "decision": decision, "org": self.application.orgs[org].id} | fields
        return await person.browser.submit(page, "/oauth/authorize", **sent)

    async def obtain_code(self, person: SignedInMember, app: App, org: str = "Fjord", **changes: str | None) -> str:
        """Obtain a code by the consent page."""
        page = await self.request_consent(person, app, **changes)
        done = await self.submit_consent(person, page, org) if page.status == 200 else page
        return parse_redirect(done)["code"]

    async def post_form(
        self, path: str, address: str = "203.0.113.7", basic: tuple[str, str] | None = None, **form: str
    ) -> Response:
        """Post a form as a program does."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if basic:
            headers["authorization"] = "Basic " + base64.b64encode(":".join(basic).encode()).decode()
        return await Client(self.application.app, None, address).send(
            "POST", path, body=urlencode(form).encode(), headers=headers
        )

    async def request_token(self, app: App, **form: str) -> Response:
        """Send a token request of that app, with its secret if it has one."""
        secret = self.secrets.get(app.client_id)
        basic = (app.client_id, secret) if secret else None
        own = {} if basic else {"client_id": app.client_id}
        return await self.post_form("/oauth/token", basic=basic, **(own | form))

    async def redeem_code(self, app: App, code: str, **changes: str) -> Response:
        """Exchange the code for tokens."""
        uri = app.redirect_uris[0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": uri, "code_verifier": VERIFIER}
        return await self.request_token(app, **(form | changes))

    async def refresh_tokens(self, app: App, refresh_token: str, **more: str) -> Response:
        """Exchange the refresh token for tokens."""
        return await self.request_token(app, grant_type="refresh_token", refresh_token=refresh_token, **more)

    async def sign_in(self, app: App, person: SignedInMember, **changes: str | None) -> dict[str, Any]:
        """Complete a sign-in; return the token response."""
        response = await self.redeem_code(app, await self.obtain_code(person, app, **changes))
        assert response.status == 200, response.body
        found: dict[str, Any] = response.json()
        return found

    async def register_app(self, **metadata: Any) -> Response:
        """Send a dynamic registration."""
        body = json.dumps(
            {"redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "none"} | metadata
        ).encode()
        return await Client(self.application.app, None).send(
            "POST", "/oauth/register", body=body, headers={"content-type": "application/json"}
        )

    def build_client(self, token: str) -> Client:
        """Build a client of the API with that token."""
        return Client(self.application.app, token)


def parse_redirect(page: BrowserPage) -> dict[str, str]:
    """Return the parameters of the redirect, and its address as `to`."""
    place = page.header("location") or ""
    parts = urlsplit(place)
    assert page.status == 303 and parts.scheme, (page.status, page.text[:3000])
    found = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert found["iss"] == BASE
    return found | {"to": place.partition("?")[0]}
