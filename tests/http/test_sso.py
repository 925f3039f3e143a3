"""Single sign-on by an organisation's identity provider, and attacks on it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import pytest_asyncio

from domain.kernel.tenancy import Tenant
from domain.people.model import AuthMethod, User
from domain.people.usecases.sessions import ClientInfo, SignInMethodRefused
from domain.sso.model import MailDomain
from domain.sso.ports import IdentityProviders, SsoStore
from domain.sso.usecases.domain_verifier import DomainVerifier
from domain.sso.usecases.settings import SsoConnectionInput, SsoSettings
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.http.browser import COOKIE, BrowserPage, ConsoleBrowser
from tests.support.identity_provider import CLIENT, ISSUER, SECRET

pytestmark = pytest.mark.asyncio
SETTINGS_PATH = "/console/organisation/single-sign-on"
ATTEMPT = f"{COOKIE}-sso"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        application.provider.now = int(application.clock.now().timestamp())
        yield application


async def connect_provider(
    application: ApplicationHarness, name: str = "Fjord", domain: str = "fjord.example", joins_as: str | None = "viewer"
) -> str:
    """Configure connection and domain of an organisation; return its ID."""
    org: str = application.orgs[name].id
    async with application.uow.begin(Tenant(org, True), OPERATOR) as tx:
        await application.dependencies[SsoSettings].save_connection(
            tx, SsoConnectionInput(ISSUER, CLIENT, SECRET, joins_as)
        )
        now = application.clock.now()
        await tx[SsoStore].save_domain(MailDomain(org, domain, "token", now, None, now, now))
    return org


async def begin_sign_in(
    browser: ConsoleBrowser, email: str = "ada@fjord.example", place: str = "/console/catalogue"
) -> str:
    """Start a sign-in; return the address at the provider."""
    page = await browser.get(f"/console/sso?{urlencode({'email': email, 'next': place})}", sec_fetch_site="same-origin")
    assert page.status == 200, page.text
    refresh = page.header("refresh") or ""
    assert refresh.startswith("0;url=") and ATTEMPT in browser.cookies
    return refresh.removeprefix("0;url=")


async def return_from_provider(browser: ConsoleBrowser, org: str, response: dict[str, str]) -> BrowserPage:
    """Return from the provider to the callback."""
    return await browser.get(f"/console/sso/callback/{org}?{urlencode(response)}", sec_fetch_site="cross-site")


async def sign_in_by_provider(application: ApplicationHarness, org: str, **response: str) -> BrowserPage:
    browser = ConsoleBrowser(application.app)
    url = await begin_sign_in(browser)
    return await return_from_provider(browser, org, application.provider.authorize(url) | response)


async def test_a_new_person_joins_with_the_configured_role(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    browser = ConsoleBrowser(application.app)
    url = await begin_sign_in(browser)
    parameters = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert parameters["redirect_uri"] == f"https://api.joinery.test/console/sso/callback/{org}"
    assert (
        parameters["code_challenge_method"] == "S256" and parameters["response_type"] == "code" and parameters["nonce"]
    )
    assert parameters["login_hint"] == "ada@fjord.example" and "openid" in parameters["scope"]
    page = await return_from_provider(browser, org, application.provider.authorize(url))
    assert page.status == 303 and page.header("location") == "/console/catalogue", page.text
    assert ATTEMPT not in browser.cookies
    assert (await browser.follow(page)).status == 200
    found = await application.sessions.find(browser.cookies[COOKIE])
    assert found.session.methods == (AuthMethod.SSO,) and found.session.org == org
    assert found.principal.role == "viewer" and found.user.verified_at is not None and found.user.name == "Ada Moreau"
    assert SECRET not in url and SECRET not in str(application.provider.seen)


async def test_a_provider_identity_remains_the_same_person(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    await connect_provider(application, "Fjord", "fjord-living.example")
    first = await sign_in_by_provider(application, org)
    assert first.status == 303
    user = await application.people.find_by_email("ada@fjord.example")
    application.provider.person |= {"email": "ada@fjord-living.example"}
    browser = ConsoleBrowser(application.app)
    assert (
        await return_from_provider(browser, org, application.provider.authorize(await begin_sign_in(browser)))
    ).status == 303
    found = await application.sessions.find(browser.cookies[COOKIE])
    assert found.user.id == user.id
    assert await application.people.find_by_email("ada@fjord-living.example") is None
    application.provider.person |= {"sub": "somebody else", "email": "ada@fjord.example"}
    again = await sign_in_by_provider(application, org)
    assert again.status == 403 and "another account at your provider" in again.text


async def test_only_members_sign_in_without_automatic_joining(application: ApplicationHarness) -> None:
    org = await connect_provider(application, joins_as=None)
    refused = await sign_in_by_provider(application, org)
    assert refused.status == 403 and "not a member" in refused.text
    user = await application.people.find_by_email("ada@fjord.example")
    await application.add_member(user, "Fjord", "editor")
    assert (await sign_in_by_provider(application, org)).status == 303


CHEATS: list[tuple[dict[str, Any], str]] = [
    ({"claims": {"nonce": "another"}}, "id_token is invalid"),
    ({"claims": {"nonce": None}}, "id_token is invalid"),
    ({"claims": {"aud": "another client"}}, "id_token is invalid"),
    ({"claims": {"aud": ["another", "others"]}}, "id_token is invalid"),
    ({"claims": {"aud": [CLIENT, "other"], "azp": "other"}}, "id_token is invalid"),
    ({"claims": {"iss": "https://id.other.example"}}, "id_token is invalid"),
    ({"claims": {"exp": 1}}, "id_token is invalid"),
    ({"claims": {"exp": None}}, "id_token is invalid"),
    ({"claims": {"sub": 7}}, "id_token is invalid"),
    ({"claims": {"sub": None}}, "id_token is invalid"),
    ({"sign_with": "none"}, "id_token is invalid"),
    ({"sign_with": "HS256"}, "id_token is invalid"),
    ({"sign_with": "ES256"}, "id_token is invalid"),
    ({"claims": {"email_verified": False}}, "not verified your address"),
    ({"claims": {"email_verified": None}}, "not verified your address"),
    ({"claims": {"email_verified": "yes"}}, "not verified your address"),
    ({"claims": {"email": "ada@oak.example"}}, "not in a verified domain"),
    ({"claims": {"email": "ada@fjord.example@oak.example"}}, "not in a verified domain"),
    ({"claims": {"email": 7}}, "returned no email address"),
    ({"by_userinfo": True, "userinfo": {"sub": "another"}}, "describes another user"),
    ({"down": True}, "did not respond"),
]
ANSWERS = [
    ({"state": "another"}, "does not belong"),
    ({"state": ""}, "does not belong"),
    ({"iss": "https://id.attacker.example"}, "another provider"),
    ({"iss": ""}, "another provider"),
    ({"error": "access_denied", "code": ""}, "denied access"),
    ({"error": "<script>alert(1)</script>", "code": ""}, "refused the sign-in"),
    ({"code": ""}, "sent no code"),
    ({"code": "unknown"}, "expired or was already used"),
]


async def test_invalid_responses_sign_nobody_in(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    await application.dependencies[IdentityProviders].check_issuer(ISSUER)
    honest = vars(application.provider).copy()
    for cheat, sentence in CHEATS:
        browser = ConsoleBrowser(application.app)
        response = application.provider.authorize(await begin_sign_in(browser))
        vars(application.provider).update(cheat)
        page = await return_from_provider(browser, org, response)
        assert page.status == 403 and sentence in page.text, (cheat, page.text)
        assert COOKIE not in browser.cookies
        vars(application.provider).update({name: honest[name] for name in cheat})
        application.clock.advance(timedelta(seconds=7))
    async with application.uow.begin_reading(Tenant(org, True)) as tx:
        assert not await tx[SsoStore].list_members_in_domains(["fjord.example"])
    assert (await sign_in_by_provider(application, org)).status == 303, "the honest provider"


async def test_responses_without_an_attempt_are_refused(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    for response, sentence in ANSWERS:
        page = await sign_in_by_provider(application, org, **response)
        assert page.status == 403 and sentence in page.text and "<script>alert" not in page.text, response


async def test_an_attempt_is_bound_to_a_browser_for_ten_minutes(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    mine, other = ConsoleBrowser(application.app), ConsoleBrowser(application.app)
    response = application.provider.authorize(await begin_sign_in(mine))
    assert (await return_from_provider(other, org, response)).status == 403
    await begin_sign_in(other)
    assert (await return_from_provider(other, org, response)).status == 403, "its own attempt has another state"
    application.clock.advance(timedelta(minutes=11))
    assert "took too long" in (await return_from_provider(mine, org, response)).text
    fresh = ConsoleBrowser(application.app)
    again = application.provider.authorize(await begin_sign_in(fresh))
    application.provider.now = int(application.clock.now().timestamp())
    kept = dict(fresh.cookies)
    assert (await return_from_provider(fresh, org, again)).status == 303
    fresh.cookies = kept
    assert (await return_from_provider(fresh, org, again)).status == 403, "a code is good once"


async def test_an_attempt_is_bound_to_its_organisation(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    other = await connect_provider(application, "Oak", "oak.example")
    browser = ConsoleBrowser(application.app)
    response = application.provider.authorize(await begin_sign_in(browser))
    assert (await return_from_provider(browser, other, response)).status == 403
    assert (await return_from_provider(browser, org, response)).status == 303


async def test_a_provider_of_another_organisation_signs_nobody_in(application: ApplicationHarness) -> None:
    """Oak's provider asserts an address of Fjord's domain: no sign-in, no session at Fjord."""
    await connect_provider(application)
    oak = await connect_provider(application, "Oak", "oak.example")
    browser = ConsoleBrowser(application.app)
    response = application.provider.authorize(await begin_sign_in(browser, "mallory@oak.example"))
    page = await return_from_provider(browser, oak, response)
    assert page.status == 403 and "not in a verified domain" in page.text
    application.provider.person = {"sub": "m", "email": "mallory@oak.example", "email_verified": True}
    response = application.provider.authorize(await begin_sign_in(browser, "mallory@oak.example"))
    assert (await return_from_provider(browser, oak, response)).status == 303
    mallory = await application.people.find_by_email("mallory@oak.example")
    await application.add_member(mallory, "Fjord", "owner")
    found = await application.sessions.find(browser.cookies[COOKIE])
    with pytest.raises(SignInMethodRefused):
        await application.sessions.switch_view(found.session, application.orgs["Fjord"].id, True)
    confirmed = await application.sessions.record_authentication(found.session, AuthMethod.PASSKEY)
    assert (
        await application.sessions.switch_view(confirmed, application.orgs["Fjord"].id, True)
    ).org == application.orgs["Fjord"].id


async def test_rotated_keys_are_fetched_again_but_not_for_every_unknown_key(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    assert (await sign_in_by_provider(application, org)).status == 303
    documents = application.dependencies[IdentityProviders]._documents
    application.provider.rotate_key()
    assert (await sign_in_by_provider(application, org)).status == 403, "asked for a moment ago"
    documents._cache[ISSUER].keys_at = float("-inf")
    assert (await sign_in_by_provider(application, org)).status == 303
    application.provider.publish_keys = False
    application.provider.rotate_key()
    before = len([one for one in application.provider.requests if one.endswith("/jwks")])
    for _ in range(3):
        assert (await sign_in_by_provider(application, org)).status == 403
    assert len([one for one in application.provider.requests if one.endswith("/jwks")]) == before


async def test_the_address_may_be_in_userinfo_only(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    application.provider.by_userinfo = True
    assert (await sign_in_by_provider(application, org)).status == 303


UNFIT: list[dict[str, Any]] = [
    {"issuer": "https://other.example"},
    {"jwks_uri": "http://id.fjord.example/jwks"},
    {"jwks_uri": None},
    {"id_token_signing_alg_values_supported": ["HS256", "none"]},
]


async def test_providers_that_cannot_be_used(application: ApplicationHarness) -> None:
    owner = await application.open_browser()
    shown = await owner.get(SETTINGS_PATH)
    for metadata in UNFIT:
        application.provider.metadata = metadata
        page = await owner.submit(
            shown, f"{SETTINGS_PATH}/save", issuer=ISSUER, client_id=CLIENT, secret=SECRET, default_role=""
        )
        assert page.status == 400 and "f-issuer-error" in page.text and SECRET not in page.text, metadata


async def test_responses_do_not_reveal_who_has_an_account(application: ApplicationHarness) -> None:
    await connect_provider(application)
    await application.people.add(User("usr_1", "known@fjord.example", "", None, application.clock.now()))
    signed_out = ConsoleBrowser(application.app)
    known, unknown = [await signed_out.get(f"/console/sso?email={who}@fjord.example") for who in ("known", "nobody")]
    assert known.status == unknown.status == 200
    other = await signed_out.get("/console/sso?email=a@nowhere.example")
    assert other.status == 404 and "password or passkey" in other.text
    leading = await signed_out.get(
        "/console/sso?email=ada%40fjord.example&next=https://evil.example", sec_fetch_site="same-origin"
    )
    response = application.provider.authorize((leading.header("refresh") or "").removeprefix("0;url="))
    assert (await return_from_provider(signed_out, application.orgs["Fjord"].id, response)).header(
        "location"
    ) == "/console"


async def test_attempts_are_limited(application: ApplicationHarness) -> None:
    await connect_provider(application)
    signed_out = ConsoleBrowser(application.app)
    responses = [(await signed_out.get("/console/sso?email=a@fjord.example")).status for _ in range(21)]
    assert responses == [200] * 20 + [429]


async def test_an_owner_configures_single_sign_on(application: ApplicationHarness) -> None:
    owner, admin = await application.open_browser(), await application.open_browser(role="admin")
    assert (await admin.get(SETTINGS_PATH)).status == 403
    org = application.orgs["Fjord"].id
    page = await owner.get(SETTINGS_PATH)
    assert f"/console/sso/callback/{org}" in page.text
    made = await owner.submit(
        page, f"{SETTINGS_PATH}/save", issuer=f"{ISSUER}/", client_id=CLIENT, secret=SECRET, default_role="editor"
    )
    assert made.status == 303, made.text
    page = await owner.get(SETTINGS_PATH)
    assert f'value="{ISSUER}"' in page.text and SECRET not in page.text
    assert (await owner.submit(page, f"{SETTINGS_PATH}/switch", action="enforce")).status == 422
    await owner.submit(page, f"{SETTINGS_PATH}/domains", domain="@Fjord.Example.")
    assert (await owner.submit(page, f"{SETTINGS_PATH}/domains", domain="localhost")).status == 400
    async with application.uow.begin_reading(Tenant(org, True)) as tx:
        (domain,) = await tx[SsoStore].list_domains()
    assert domain.domain == "fjord.example" and domain.record in (await owner.get(SETTINGS_PATH)).text
    application.name_records.put("fjord.example", "TXT", "v=spf1 -all", "joinery-verification=another")
    missing = await owner.follow(await owner.submit(page, f"{SETTINGS_PATH}/domains/check", domain="fjord.example"))
    assert "The record of fjord.example" in missing.text
    application.name_records.put("fjord.example", "TXT", "v=spf1 -all", domain.record)
    proven = await owner.follow(await owner.submit(page, f"{SETTINGS_PATH}/domains/check", domain="fjord.example"))
    assert "Domain fjord.example verified" in proven.text
    assert (await owner.submit(proven, f"{SETTINGS_PATH}/switch", action="enforce")).status == 422, (
        "nobody has come in yet"
    )
    assert (await sign_in_by_provider(application, org)).status == 303
    assert (await owner.submit(proven, f"{SETTINGS_PATH}/switch", action="enforce")).status == 303
    async with application.uow.begin_reading(Tenant(org, True)) as tx:
        connection = await tx[SsoStore].find_connection()
    assert connection.enforced and connection.joins_as == "editor"
    kept = await owner.submit(
        proven, f"{SETTINGS_PATH}/save", issuer=ISSUER, client_id=CLIENT, secret="", default_role=""
    )
    assert kept.status == 303
    other = await owner.submit(
        proven, f"{SETTINGS_PATH}/save", issuer=ISSUER, client_id="another", secret="", default_role=""
    )
    assert other.status == 400 and "has another client secret" in other.text
    assert (await owner.submit(proven, f"{SETTINGS_PATH}/domains/remove", domain="fjord.example")).status == 409
    application.clock.advance(timedelta(minutes=20))
    late = await owner.submit(proven, f"{SETTINGS_PATH}/switch", action="remove")
    assert late.status == 303 and late.header("location") == f"/console/confirm?next={SETTINGS_PATH}"


async def test_provider_sessions_reauthenticate_at_the_provider(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    browser = ConsoleBrowser(application.app)
    first = await begin_sign_in(browser)
    assert "prompt" not in first
    await return_from_provider(browser, org, application.provider.authorize(first))
    old = browser.cookies[COOKIE]
    application.clock.advance(timedelta(minutes=20))
    application.provider.now = int(application.clock.now().timestamp())
    assert "Continue with single sign-on" in (await browser.get(f"/console/confirm?next={SETTINGS_PATH}")).text
    again = await begin_sign_in(browser, place=SETTINGS_PATH)
    assert "prompt=login" in again and "max_age=0" in again
    application.provider.claims = {"auth_time": application.provider.now - 1200}
    refused = await return_from_provider(
        browser, org, application.provider.authorize(await begin_sign_in(browser, place=SETTINGS_PATH))
    )
    assert refused.status == 403 and "did not authenticate you again" in refused.text
    application.provider.claims = {}
    again = await begin_sign_in(browser, place=SETTINGS_PATH)
    assert (await return_from_provider(browser, org, application.provider.authorize(again))).header(
        "location"
    ) == SETTINGS_PATH
    now = application.clock.now()
    assert (await application.sessions.find(browser.cookies[COOKIE])).session.is_sudo(
        now
    ) and await application.sessions.find(old) is None


async def test_enforcement_ends_other_sessions_but_not_owner_access(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    origin, now = ClientInfo("203.0.113.7"), application.clock.now()
    people: dict[str, User] = {}
    for name, role in (("owner", "owner"), ("editor", "editor"), ("guest", "editor")):
        domain = "elsewhere.example" if name == "guest" else "fjord.example"
        people[name] = await application.people.add(User(f"usr_{name}", f"{name}@{domain}", name, now, now))
        await application.add_member(people[name], "Fjord", role)
    cookies = {
        name: (await application.sessions.start(user, [AuthMethod.PASSWORD], origin, org))[1]
        for name, user in people.items()
    }
    async with application.uow.begin(Tenant(org, True), OPERATOR) as tx:
        settings = application.dependencies[SsoSettings]
        await tx[SsoStore].save_connection(replace(await tx[SsoStore].find_connection(), tried_at=now))
        await settings.set_enforced(tx, True)
        affected = await settings.list_members_in_verified_domains(tx)
    assert await application.sso_rules.revoke_barred(org, affected) == 2
    left = {name for name, cookie in cookies.items() if await application.sessions.find(cookie)}
    assert left == {"guest"}
    for methods in (
        [AuthMethod.PASSWORD],
        [AuthMethod.PASSWORD, AuthMethod.TOTP],
        [AuthMethod.LINK],
        [AuthMethod.PASSKEY],
    ):
        with pytest.raises(SignInMethodRefused):
            await application.sessions.start(people["editor"], methods, origin)
    with pytest.raises(SignInMethodRefused):
        await application.sessions.start(people["owner"], [AuthMethod.PASSWORD], origin)
    await application.sessions.start(people["owner"], [AuthMethod.PASSWORD, AuthMethod.TOTP], origin)
    audit = await (await application.create_client(scopes=frozenset({"audit:read"}))).get(
        "/v1/audit-events?action=sso.passed_by"
    )
    (entry,) = audit.json()["data"]
    assert entry["after"] == {"methods": ["password", "totp"], "signed_in_beside": people["owner"].id}
    assert (await sign_in_by_provider(application, org)).status == 303


async def test_a_missing_record_is_reported_and_stays_valid_for_two_weeks(application: ApplicationHarness) -> None:
    org = await connect_provider(application)
    proofs, tenant = application.dependencies[DomainVerifier], Tenant(org, True)

    async def looked() -> list[str]:
        for one in await proofs.list_due():
            there = await proofs.has_record(one)
            async with application.uow.begin(tenant, OPERATOR) as tx:
                await proofs.store_result(tx, one.domain, there)
        async with application.uow.begin_reading(tenant) as tx:
            return [one.state for one in await tx[SsoStore].list_domains()]

    assert await looked() == ["proven"] and not application.name_records.queries, "looked at a moment ago"
    application.clock.advance(timedelta(hours=25))
    application.name_records.down.add("*")
    assert await looked() == ["proven"]
    application.name_records.down.clear()
    application.clock.advance(timedelta(hours=25))
    assert await looked() == ["lost"]
    assert (await ConsoleBrowser(application.app).get("/console/sso?email=a@fjord.example")).status == 200
    assert "DNS record missing" in (await (await application.open_browser()).get(SETTINGS_PATH)).text
    application.name_records.put("fjord.example", "TXT", "joinery-verification=token")
    application.clock.advance(timedelta(hours=25))
    assert await looked() == ["proven"]
    application.name_records.put("fjord.example", "TXT")
    for days in (2, 15):
        application.clock.advance(timedelta(days=days))
        found = await looked()
    assert found == ["waiting"]
    assert (await ConsoleBrowser(application.app).get("/console/sso?email=a@fjord.example")).status == 404
