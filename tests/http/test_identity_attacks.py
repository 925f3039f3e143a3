"""Attacks by people who are signed in, partly signed in, or signed in to another organisation."""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from urllib.parse import urlencode

import pyotp
import pytest
import pytest_asyncio

from adapters.argon2 import Argon2Passwords, HashCost
from domain.access.model import Principal
from domain.kernel.errors import DomainError, InvalidRequest, Overloaded, RateLimited
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.oauth.model import AppKind
from domain.oauth.ports import AppStore
from domain.oauth.usecases.apps import AppChange, AppService
from domain.people.model import AuthMethod, LinkPurpose, User
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.sessions import ClientInfo, LinkService, SessionService
from domain.sso.ports import SsoStore
from domain.sso.usecases.settings import SsoSettings
from entrypoints.console import streams
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.http.browser import COOKIE, ConsoleBrowser
from tests.http.client import Client
from tests.http.oauth import OAuthHarness, create_principal
from tests.http.test_sso import SETTINGS_PATH, begin_sign_in, connect_provider, return_from_provider

pytestmark = pytest.mark.asyncio
HERE = ClientInfo("203.0.113.7")
PASSWORD = "correct horse battery staple"
APPS, MEMBERS = "/console/developers/apps", "/console/organisation/members"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        application.provider.now = int(application.clock.now().timestamp())
        yield application


async def _create_ada(application: ApplicationHarness) -> User:
    """Create a member of Fjord and Oak with an address in Fjord's domain."""
    now = application.clock.now()
    user = await application.people.add(User(new_id("usr"), "ada@fjord.example", "Ada", now, now))
    for name in ("Fjord", "Oak"):
        await application.add_member(user, name, "editor")
    return user


async def _sign_in_by_provider(application: ApplicationHarness, org: str) -> ConsoleBrowser:
    """Sign in as Ada by the organisation's identity provider."""
    browser = ConsoleBrowser(application.app)
    assert (
        await return_from_provider(browser, org, application.provider.authorize(await begin_sign_in(browser)))
    ).status == 303
    return browser


async def _enforce(application: ApplicationHarness, org: str) -> None:
    async with application.uow.begin(Tenant(org, True), OPERATOR) as tx:
        await tx[SsoStore].save_connection(
            replace(await tx[SsoStore].find_connection(), tried_at=application.clock.now())
        )
        await application.dependencies[SsoSettings].set_enforced(tx, True)


async def test_a_providers_session_grants_no_app_access_to_another_organisation(
    application: ApplicationHarness,
) -> None:
    await _create_ada(application)
    harness, browser = (
        OAuthHarness(application),
        await _sign_in_by_provider(application, await connect_provider(application)),
    )
    app = await harness.create_app()
    page = await browser.get(harness.build_authorization_path(app))
    assert (
        page.status == 200 and application.orgs["Fjord"].id in page.text and application.orgs["Oak"].id not in page.text
    )
    sent = {"request": page.field("request"), "decision": "allow", "org": application.orgs["Oak"].id}
    assert (await browser.submit(page, "/oauth/authorize", **sent)).status == 400
    device = (
        await harness.post_form(
            "/oauth/device", client_id=(await harness.create_app(AppKind.NATIVE, "http://127.0.0.1/cb")).client_id
        )
    ).json()
    typed = await browser.get(f"/oauth/device?user_code={device['user_code']}")
    assert application.orgs["Oak"].id not in typed.text
    sent = {"user_code": device["user_code"], "decision": "allow", "org": application.orgs["Oak"].id}
    assert (await browser.submit(typed, "/oauth/device/decision", **sent)).status == 400


async def test_an_app_cannot_bypass_enforcement(application: ApplicationHarness) -> None:
    ada, org, harness = await _create_ada(application), await connect_provider(application), OAuthHarness(application)
    await _enforce(application, org)
    _, cookie = await application.sessions.start(ada, [AuthMethod.PASSWORD], HERE)
    browser, app = ConsoleBrowser(application.app, cookie), await harness.create_app()
    page = await browser.get(harness.build_authorization_path(app))
    assert page.status == 200 and org not in page.text
    sent = {"request": page.field("request"), "decision": "allow", "org": org}
    assert (await browser.submit(page, "/oauth/authorize", **sent)).status == 400


async def test_a_providers_session_cannot_change_sign_in_factors(application: ApplicationHarness) -> None:
    ada, org = await _create_ada(application), await connect_provider(application)
    await application.dependencies[AuthServices].passwords.change(ada, PASSWORD, None, HERE)
    browser = await _sign_in_by_provider(application, org)
    for below in ("password", "codes", "passkeys"):
        led = await browser.get(f"/console/account/{below}")
        assert (led.status, (led.header("location") or "")[:16]) == (303, "/console/confirm"), below
    confirm = await browser.get("/console/confirm?next=/console/account/password")
    proved = await browser.submit(confirm, "/console/confirm", password=PASSWORD, next="/console/account/password")
    assert proved.header("location") == "/console/account/password"
    assert (await browser.get("/console/account/password")).status == 200


async def test_a_person_without_other_factors_sets_a_first_password(application: ApplicationHarness) -> None:
    await _create_ada(application)
    browser = await _sign_in_by_provider(application, await connect_provider(application))
    assert (await browser.get("/console/account/password")).status == 200


async def test_a_domain_verified_later_is_enforced(application: ApplicationHarness) -> None:
    org, now = await connect_provider(application), application.clock.now()
    await _enforce(application, org)
    user = await application.people.add(User(new_id("usr"), "bo@living.example", "Bo", now, now))
    await application.add_member(user, "Fjord", "editor")
    _, cookie = await application.sessions.start(user, [AuthMethod.PASSWORD], HERE)
    owner = await application.open_browser()
    page = await owner.get(SETTINGS_PATH)
    await owner.submit(page, f"{SETTINGS_PATH}/domains", domain="living.example")
    async with application.uow.begin_reading(Tenant(org, True)) as tx:
        record = next(one.record for one in await tx[SsoStore].list_domains() if one.domain == "living.example")
    application.name_records.put("living.example", "TXT", record)
    assert (await owner.submit(page, f"{SETTINGS_PATH}/domains/check", domain="living.example")).status == 303
    assert await application.sessions.find(cookie) is None


async def test_a_link_of_another_site_does_not_sign_in(application: ApplicationHarness) -> None:
    await connect_provider(application)
    for site in ("cross-site", "same-site", "none"):
        page = await ConsoleBrowser(application.app).get(
            f"/console/sso?{urlencode({'email': 'x@fjord.example'})}", sec_fetch_site=site
        )
        assert page.status == 200 and page.header("refresh") is None and "Continue to" in page.text


async def test_redirect_uris_are_changed_only_with_recent_authentication(application: ApplicationHarness) -> None:
    app, browser = await OAuthHarness(application).create_app(), await application.open_browser()
    application.clock.advance(timedelta(minutes=20))
    page = await browser.get(f"{APPS}/{app.id}")
    sent = {"name": "Sync", "redirect_uris": "https://evil.example/cb", "scope_selection": "all"}
    led = await browser.submit(page, f"{APPS}/{app.id}", **sent)
    assert (led.header("location") or "").startswith("/console/confirm")
    async with application.uow.begin_reading(Tenant(application.orgs["Fjord"].id, True)) as tx:
        assert (await tx[AppStore].get(app.id)).redirect_uris == app.redirect_uris


async def test_a_signing_secret_is_rotated_only_with_recent_authentication(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    application.clock.advance(timedelta(minutes=20))
    led = await browser.get("/console/developers/webhooks/whe_1/rotate")
    assert (led.header("location") or "").startswith("/console/confirm")


async def test_a_password_change_invalidates_links(application: ApplicationHarness) -> None:
    ada, accounts = await _create_ada(application), application.dependencies[AuthServices]
    _, reset = await application.dependencies[LinkService].create(ada, LinkPurpose.SET_PASSWORD)
    _, link = await application.dependencies[LinkService].create(ada, LinkPurpose.SIGN_IN)
    await accounts.passwords.change(ada, PASSWORD, None, HERE)
    assert await accounts.passwords.set_by_link(reset, "somebody else's own", HERE) is None
    assert await accounts.sign_in.sign_in_with_link(link, HERE, "") is None


class BusyHasher:
    """Password hasher that is overloaded."""

    def __init__(self) -> None:
        self.busy = True
        self._hashing = Argon2Passwords(HashCost(1, 8))

    async def hash(self, password: str) -> str:
        if self.busy:
            raise Overloaded(retry_after=3)
        return await self._hashing.hash(password)


async def test_a_failed_password_change_does_not_consume_the_link() -> None:
    async with run_application(passwords=(busy := BusyHasher())) as application:
        ada, passwords = await _create_ada(application), application.dependencies[AuthServices].passwords
        _, link = await application.dependencies[LinkService].create(ada, LinkPurpose.SET_PASSWORD)
        with pytest.raises(Overloaded):
            await passwords.set_by_link(link, PASSWORD, HERE)
        busy.busy = False
        assert await passwords.set_by_link(link, PASSWORD, HERE) is not None


async def test_password_checks_are_limited(application: ApplicationHarness) -> None:
    ada, passwords = await _create_ada(application), application.dependencies[AuthServices].passwords
    refusals = [await _is_refused(passwords.change(ada, "password123", None, HERE)) for _ in range(25)]
    assert refusals == [InvalidRequest] * 20 + [RateLimited] * 5
    new = User(new_id("usr"), "new@fjord.example", "New", None, application.clock.now())
    refusals = [await _is_refused(passwords.create_account(new, "password123")) for _ in range(25)]
    assert refusals == [InvalidRequest] * 20 + [RateLimited] * 5


async def _is_refused(action: Awaitable[object]) -> type[Exception]:
    with pytest.raises(DomainError) as refusal:
        await action
    return refusal.type


async def test_guesses_do_not_suppress_notices_of_new_browsers(application: ApplicationHarness) -> None:
    ada, accounts = await _create_ada(application), application.dependencies[AuthServices]
    await accounts.sign_in.start_session(ada, (AuthMethod.PASSWORD,), HERE, "")
    for _ in range(60):
        await accounts.notices.notify(ada, "sign_in_failed", HERE)
    await accounts.sign_in.start_session(ada, (AuthMethod.PASSWORD,), HERE, "")
    assert "new_device" in [one.kind for one in await application.people.list_events(ada.id, 5)]


async def test_an_ipv6_prefix_is_one_address(application: ApplicationHarness) -> None:
    form = {"content-type": "application/json"}
    body = b'{"redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "none"}'
    responses = [
        await Client(application.app, None, f"2001:db8:0:1::{one:x}").send(
            "POST", "/oauth/register", body=body, headers=form
        )
        for one in range(1, 13)
    ]
    assert [response.status for response in responses] == [201] * 10 + [429] * 2


async def test_use_of_a_recovery_code_is_reported_by_mail(application: ApplicationHarness) -> None:
    ada, accounts = await _create_ada(application), application.dependencies[AuthServices]
    enrolment = await accounts.factors.enrol(ada)
    codes = await accounts.factors.confirm(ada, _show(application, enrolment.secret), HERE)
    session, _ = await application.sessions.start(ada, [AuthMethod.PASSWORD], HERE)
    await accounts.passwords.reauthenticate(ada, session, "", codes[0], HERE)
    assert "recovery_code_used" in [one.kind for one in await application.people.list_events(ada.id, 5)]


def _show(application: ApplicationHarness, secret: str) -> str:
    return pyotp.TOTP(secret).at(application.clock.now())


async def test_a_former_owner_must_sign_in_by_the_provider(application: ApplicationHarness) -> None:
    org, now = await connect_provider(application), application.clock.now()
    await _enforce(application, org)
    user = await application.people.add(User(new_id("usr"), "bo@fjord.example", "Bo", now, now))
    await application.add_member(user, "Fjord", "owner")
    _, cookie = await application.sessions.start(user, [AuthMethod.PASSKEY], HERE)
    manager = await application.open_browser()
    page = await manager.get(MEMBERS)
    assert (await manager.submit(page, f"{MEMBERS}/{user.id}/role", role="editor")).status == 303
    assert await application.sessions.find(cookie) is None


async def test_a_script_does_not_regain_access_with_its_person(application: ApplicationHarness) -> None:
    ada, manager = await _create_ada(application), await application.open_browser()
    _, token = await application.sessions.create_token(ada, application.orgs["Fjord"].id)
    _, other = await application.sessions.create_token(ada, application.orgs["Oak"].id)
    page = await manager.get(f"{MEMBERS}/{ada.id}/remove")
    assert (await manager.submit(page, f"{MEMBERS}/{ada.id}/remove")).status == 303
    await application.add_member(ada, "Fjord", "editor")
    assert (await Client(application.app, token).get("/v1/org")).status == 401
    assert (await Client(application.app, other).get("/v1/org")).status == 200


async def test_removed_scopes_of_an_app_do_not_end_the_sign_in(application: ApplicationHarness) -> None:
    harness, org = OAuthHarness(application), application.orgs["Fjord"]
    app, person = await harness.create_app(), await harness.create_member()
    first = await harness.sign_in(app, person, scope="products:read sources:read")

    async def narrowed(*scopes: str) -> None:
        async with application.uow.begin(Tenant(org.id, True), OPERATOR) as tx:
            change = AppChange(scopes=frozenset(scopes))
            await AppService(application.access.compute_digest).change_app(tx, create_principal(org), app.id, change)

    await narrowed("products:read", "org:read")
    second = await harness.refresh_tokens(app, first["refresh_token"])
    assert second.status == 200 and second.json()["scope"] == "products:read"
    assert (await harness.build_client(second.json()["access_token"]).get("/v1/sources")).status == 403
    await narrowed("org:read")
    third = await harness.refresh_tokens(app, second.json()["refresh_token"])
    assert third.status == 400, "none of what was agreed to is left, and nothing else takes its place"


async def test_a_progress_page_ends_with_the_session(
    application: ApplicationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "render_template", lambda template, block, values: values["text"])
    browser = await application.open_browser()
    signed_in = await application.sessions.find(browser.cookies[COOKIE])

    async def find_current_principal() -> Principal | None:
        found = await application.dependencies[SessionService].find(browser.cookies[COOKIE])
        return found.principal if found is not None else None

    page = SimpleNamespace(
        person=signed_in, principal=signed_in.principal, find_current_principal=find_current_principal
    )
    shown = iter(range(9))

    async def state() -> dict[str, object]:
        return {"text": str(next(shown)), "is_open": True}

    pieces = streams._stream_changes(page, "", state)  # type: ignore[arg-type]
    assert b"show" in await anext(pieces)
    await application.sessions.revoke(signed_in.user.id, signed_in.session.id)
    assert b"end" in await anext(pieces)
