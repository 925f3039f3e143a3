"""Attacks against OAuth (docs/threat-model.md; RFC 9700)."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio

from domain.kernel.errors import NotFound, PermissionDenied
from domain.kernel.tenancy import Tenant
from domain.oauth.model import App, AppKind
from entrypoints.oauth_endpoints import OAuthServices
from tests.http.application import BASE, OPERATOR, run_application
from tests.http.client import Client
from tests.http.oauth import CALLBACK, CHALLENGE, VERIFIER, OAuthHarness, create_principal, parse_redirect
from tests.support.memory.hosts import MemoryWeb

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[OAuthHarness]:
    async with run_application(web=MemoryWeb()) as application:
        yield OAuthHarness(application)


async def _read_error(harness: OAuthHarness, app: App, **changes: str | None) -> str:
    """Return the error page of a request that must not redirect."""
    person = await harness.create_member()
    page = await harness.request_consent(person, app, **changes)
    assert page.status == 400 and page.header("location") is None, page.status
    return page.text


async def test_a_reused_code_revokes_its_tokens(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member()
    code = await harness.obtain_code(person, app)
    first = (await harness.redeem_code(app, code)).json()
    assert (await harness.redeem_code(app, code)).json()["error"] == "invalid_grant"
    assert (await harness.build_client(first["access_token"]).get("/v1/products")).status == 401
    assert (await harness.refresh_tokens(app, first["refresh_token"])).json()["error"] == "invalid_grant"


async def test_concurrent_use_of_a_code_revokes_all_tokens(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member()
    code = await harness.obtain_code(person, app)
    responses = await asyncio.gather(*(harness.redeem_code(app, code) for _ in range(5)))
    assert sum(response.status == 200 for response in responses) <= 1
    for response in responses:
        if response.status == 200:
            assert (await harness.build_client(response.json()["access_token"]).get("/v1/products")).status == 401


async def test_a_code_is_bound_to_its_app_address_verifier_and_minute(harness: OAuthHarness) -> None:
    app, other, person = (
        await harness.create_app(AppKind.SINGLE_PAGE),
        await harness.create_app(AppKind.SINGLE_PAGE),
        await harness.create_member(),
    )
    code = await harness.obtain_code(person, app)
    for wrong in (
        {"redirect_uri": "https://app.example/other"},
        {"redirect_uri": ""},
        {"code_verifier": "w" * 50},
        {"code_verifier": ""},
        {"code_verifier": CHALLENGE},
        {"code": code[:-1] + ("1" if code[-1] == "0" else "0")},
    ):
        response = (
            await harness.redeem_code(app, code, **wrong)
            if "code" not in wrong
            else await harness.redeem_code(app, wrong["code"])
        )
        assert response.status == 400 and response.json()["error"] in ("invalid_grant", "invalid_request"), wrong
    assert (await harness.redeem_code(other, code)).json()["error"] == "invalid_grant"
    harness.application.clock.advance(timedelta(seconds=59))
    assert (await harness.redeem_code(app, code)).status == 200, "wrong tries used nothing up"
    late = await harness.obtain_code(person, app)
    harness.application.clock.advance(timedelta(seconds=60))
    assert (await harness.redeem_code(app, late)).json()["error"] == "invalid_grant"


async def test_another_app_cannot_revoke_tokens_by_a_used_code(harness: OAuthHarness) -> None:
    app, other, person = await harness.create_app(), await harness.create_app(), await harness.create_member()
    code = await harness.obtain_code(person, app)
    body = (await harness.redeem_code(app, code)).json()
    assert (await harness.redeem_code(other, code)).status == 400
    assert (await harness.build_client(body["access_token"]).get("/v1/products")).status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge": "short"},
    ],
)
@pytest.mark.parametrize("kind", [AppKind.WEB, AppKind.SINGLE_PAGE])
async def test_pkce_is_required(harness: OAuthHarness, kind: AppKind, changes: dict[str, str | None]) -> None:
    app, person = await harness.create_app(kind), await harness.create_member()
    parameters = parse_redirect(await harness.request_consent(person, app, **changes))
    assert parameters["error"] == "invalid_request" and parameters["state"] == "s t&ä" and parameters["to"] == CALLBACK


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/cb/", "https://app.example/cb?x=1", "https://app.example/CB", "http://app.example/cb",
        "https://app.example.evil.example/cb", "https://app.example@evil.example/cb", "https://evil.example/https://app.example/cb",
        "https://app.example/cb#x", "https://app.example/../cb", "https://app.example:8443/cb", "//app.example/cb", "/console",
        "javascript:alert(1)", 'https://app.example/cb"', "https://app.example/cb\n", "https://app.example\\@evil.example/cb", "é",
    ],
)  # fmt: skip
async def test_redirects_lead_to_registered_addresses_only(harness: OAuthHarness, uri: str) -> None:
    text = await _read_error(harness, await harness.create_app(), redirect_uri=uri)
    assert not re.search(r'(href|action|content|src)="[^"]*evil', text) and "invalid_request" in text


async def test_the_client_must_be_registered(harness: OAuthHarness) -> None:
    app = await harness.create_app()
    for client_id in (None, "", "app_unknown", "x" * 2000, "é", '"', "<script>"):
        assert "<script>" not in (await _read_error(harness, app, client_id=client_id)).replace("<script src", "")
    assert "response_type" in await _read_error(harness, app, response_type='co"de')
    person = await harness.create_member()
    for response_type in ("token", "code token", None):
        page = await harness.request_consent(person, app, response_type=response_type)
        assert parse_redirect(page)["error"] == "unsupported_response_type"
    twice = await person.browser.get(harness.build_authorization_path(app) + "&scope=exports:write")
    assert twice.status == 400 and "more than once" in twice.text
    machine = await harness.create_app(AppKind.MACHINE)
    await _read_error(harness, machine, redirect_uri=CALLBACK)


async def test_every_refusal_names_the_issuer(harness: OAuthHarness) -> None:
    """`parse_redirect` checks `iss` (RFC 9207), which prevents mix-up attacks."""
    app, person = await harness.create_app(), await harness.create_member()
    assert parse_redirect(await harness.request_consent(person, app, scope="everything"))["error"] == "invalid_scope"
    assert (
        parse_redirect(await harness.request_consent(person, app, resource="https://other.example/v1"))["error"]
        == "invalid_target"
    )
    page = await harness.request_consent(person, app)
    denied = parse_redirect(await harness.submit_consent(person, page, decision="deny"))
    assert denied["error"] == "access_denied" and denied["state"] == "s t&ä"


async def test_no_token_exceeds_the_consent(harness: OAuthHarness) -> None:
    app, person = (
        await harness.create_app(scopes=frozenset({"products:read", "sources:read"})),
        await harness.create_member(),
    )
    assert (
        parse_redirect(await harness.request_consent(person, app, scope="products:write"))["error"] == "invalid_scope"
    )
    body = await harness.sign_in(app, person, scope="products:read", resource=f"{BASE}/v1")
    for more in ({"scope": "products:read sources:read"}, {"resource": f"{BASE}/mcp"}, {"resource": BASE}):
        response = await harness.refresh_tokens(app, body["refresh_token"], **more)
        assert response.json()["error"] in ("invalid_scope", "invalid_target"), more
    code = await harness.obtain_code(person, app, resource=f"{BASE}/mcp")
    assert (await harness.redeem_code(app, code, resource=f"{BASE}/v1")).json()["error"] == "invalid_target"
    bound = (await harness.redeem_code(app, code)).json()["access_token"]
    assert (await harness.build_client(bound).get("/v1/products")).status == 401


async def test_a_stolen_refresh_token_ends_the_sign_in(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(AppKind.NATIVE, "http://127.0.0.1/cb"), await harness.create_member()
    stolen = await harness.sign_in(app, person)
    own = (await harness.refresh_tokens(app, stolen["refresh_token"])).json()
    harness.application.clock.advance(timedelta(seconds=11))
    assert (await harness.refresh_tokens(app, stolen["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await harness.refresh_tokens(app, own["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await harness.build_client(own["access_token"]).get("/v1/products")).status == 401


async def test_a_quick_token_theft_is_detected_too(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(AppKind.NATIVE, "http://127.0.0.1/cb"), await harness.create_member()
    first = await harness.sign_in(app, person)
    own = (await harness.refresh_tokens(app, first["refresh_token"])).json()
    thief = (await harness.refresh_tokens(app, first["refresh_token"])).json()
    assert (await harness.refresh_tokens(app, own["refresh_token"])).status == 400
    assert (await harness.refresh_tokens(app, thief["refresh_token"])).status == 400
    other = await harness.create_app(AppKind.NATIVE, "http://127.0.0.1/cb")
    again = await harness.sign_in(app, person)
    assert (await harness.refresh_tokens(other, again["refresh_token"])).status == 400
    assert (await harness.refresh_tokens(app, again["refresh_token"])).status == 200, "another app's try ends nothing"


async def test_apps_are_authenticated(harness: OAuthHarness) -> None:
    app, public, person = (
        await harness.create_app(),
        await harness.create_app(AppKind.SINGLE_PAGE),
        await harness.create_member(),
    )
    code = await harness.obtain_code(person, app)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    secret = harness.secrets[app.client_id]
    for basic, more in (
        (None, {"client_id": app.client_id}),
        (None, {"client_id": app.client_id, "client_secret": "wrong"}),
        ((app.client_id, "wrong"), {}),
        ((public.client_id, secret), {}),
        (("app_unknown", secret), {}),
        (None, {}),
    ):
        response = await harness.post_form("/oauth/token", basic=basic, **form, **more)
        assert response.status == 401 and response.json()["error"] == "invalid_client"
        assert response.headers["www-authenticate"].startswith("Basic ") and "type" not in response.json()
    mixed = await harness.post_form("/oauth/token", basic=(app.client_id, secret), client_id=public.client_id, **form)
    assert mixed.json()["error"] == "invalid_request"
    assert (await harness.redeem_code(app, code)).status == 200
    assert (await harness.request_token(public, grant_type="client_credentials")).status == 401
    assert (await harness.request_token(app, grant_type="client_credentials")).json()["error"] == "unauthorized_client"
    for grant in ("password", "implicit", "", 'x"y', "urn:ietf:params:oauth:grant-type:jwt-bearer"):
        response = await harness.request_token(app, grant_type=grant)
        assert response.status == 400 and response.json()["error"] in ("unsupported_grant_type", "invalid_request")


async def test_only_forms_are_accepted(harness: OAuthHarness) -> None:
    app = await harness.create_app(AppKind.MACHINE)
    client = Client(harness.application.app, None)
    form = urlencode(
        {
            "grant_type": "client_credentials",
            "client_id": app.client_id,
            "client_secret": harness.secrets[app.client_id],
        }
    )
    typed = {"content-type": "application/x-www-form-urlencoded"}
    for target, body, headers in (
        (f"/oauth/token?{form}", b"", typed),
        ("/oauth/token", b"{}", {"content-type": "application/json"}),
        ("/oauth/token", form.encode() + b"&scope=a&scope=b", typed),
        ("/oauth/token", b"a=1&" * 200, typed),
        ("/oauth/token", b"x" * 70_000, typed),
        ("/oauth/register", form.encode(), typed),
    ):
        response = await client.send("POST", target, body=body, headers=headers)
        assert response.status in (400, 413) and response.json()["error"].startswith("invalid_"), target
        assert response.headers["cache-control"] == "no-store"
    response = await client.get("/oauth/token")
    assert (response.status, response.headers["allow"], response.json()["error"]) == (405, "POST", "invalid_request")


async def test_nothing_secret_is_logged(harness: OAuthHarness, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        app, person = await harness.create_app(), await harness.create_member()
        body = await harness.sign_in(app, person)
        fresh = (await harness.refresh_tokens(app, body["refresh_token"])).json()
    secrets = (harness.secrets[app.client_id], body["access_token"], body["refresh_token"], fresh["access_token"])
    assert not [secret for secret in secrets if secret in caplog.text]


async def test_consent_cannot_be_forged(harness: OAuthHarness) -> None:
    app, person, other = await harness.create_app(), await harness.create_member(), await harness.create_member("Oak")
    page, foreign = await harness.request_consent(person, app), await harness.request_consent(other, app)
    fields = {"request": page.field("request"), "decision": "allow", "org": harness.application.orgs["Fjord"].id}
    for response in (
        await person.browser.post("/oauth/authorize", **fields),
        await person.browser.submit(foreign, "/oauth/authorize", **fields),
        await person.browser.submit(
            page, "/oauth/authorize", {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, **fields
        ),
        await person.browser.submit(page, "/oauth/authorize", **(fields | {"org": harness.application.orgs["Oak"].id})),
        await other.browser.submit(foreign, "/oauth/authorize", **fields),
    ):
        assert response.status in (400, 403) and response.header("location") is None
    changed = fields["request"].replace(quote(CALLBACK, safe=""), quote("https://evil.example/cb", safe=""))
    assert changed != fields["request"]
    forged = await person.browser.submit(page, "/oauth/authorize", **(fields | {"request": changed}))
    assert forged.status == 400 and forged.header("location") is None
    for path in ("/oauth/device/decision",):
        assert (await person.browser.post(path, user_code="BBBB-BBBB", decision="allow")).status == 403
    policy = page.header("content-security-policy") or ""
    assert "frame-ancestors 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
    assert "form-action 'self' https://app.example;" in policy


async def test_consent_is_revoked(harness: OAuthHarness) -> None:
    app, person, services = (
        await harness.create_app(),
        await harness.create_member(),
        harness.application.dependencies[OAuthServices],
    )
    body = await harness.sign_in(app, person)
    org = harness.application.orgs["Fjord"]
    own = replace(create_principal(org, "editor"), actor=replace(create_principal(org).actor, id=person.user.id))
    outsider = create_principal(org, "viewer")
    async with harness.application.uow.begin(Tenant(org.id, True), OPERATOR) as tx:
        [grant] = await services.consents.list_consents(tx, own)
        assert (grant.app_name, grant.scopes) == (app.name, {"products:read"})
        assert list(await services.consents.list_consents(tx, outsider)) == []
        assert list(await services.consents.list_consents(tx, create_principal(org), includes_all_members=True)) == [
            grant
        ]
        with pytest.raises(PermissionDenied):
            await services.consents.list_consents(tx, own, includes_all_members=True)
        with pytest.raises(NotFound):
            await services.consents.revoke_consent(tx, outsider, grant.id)
        with pytest.raises(PermissionDenied):
            await services.consents.list_consents(tx, replace(own, is_console_session=False))
        await services.consents.revoke_consent(tx, own, grant.id)
    assert (await harness.build_client(body["access_token"]).get("/v1/products")).status == 401
    assert (await harness.refresh_tokens(app, body["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await harness.request_consent(person, app)).status == 200, "one is asked again"


async def test_user_codes_cannot_be_guessed(harness: OAuthHarness) -> None:
    person = await harness.create_member()
    pages = [await person.browser.get(f"/oauth/device?user_code=BBBB-BBB{letter}") for letter in "BCDFGHJKLMNP"]
    assert [page.status for page in pages] == [200] * 10 + [429] * 2
