"""What is tried against OAuth, and how it ends (docs/threat-model.md; RFC 9700)."""

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
from tests.http.client import Client
from tests.http.fakes import BASE, OPERATOR, running
from tests.http.oauth import CALLBACK, CHALLENGE, VERIFIER, Stage, led, owner_of
from tests.support.memory.hosts import MemoryWeb

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with running(web=MemoryWeb()) as world:
        yield Stage(world)


async def _error(stage: Stage, app: App, **changes: str | None) -> str:
    """What is refused in the browser, having led nowhere."""
    person = await stage.person()
    page = await stage.request_consent(person, app, **changes)
    assert page.status == 400 and page.header("location") is None, page.status
    return page.text


async def test_a_code_shown_twice_ends_what_it_gave(stage: Stage) -> None:
    app, person = await stage.app(), await stage.person()
    code = await stage.code(person, app)
    first = (await stage.redeem(app, code)).json()
    assert (await stage.redeem(app, code)).json()["error"] == "invalid_grant"
    assert (await stage.client(first["access_token"]).get("/v1/products")).status == 401
    assert (await stage.refresh(app, first["refresh_token"])).json()["error"] == "invalid_grant"


async def test_of_many_who_show_a_code_at_once_nobody_keeps_its_tokens(stage: Stage) -> None:
    app, person = await stage.app(), await stage.person()
    code = await stage.code(person, app)
    answers = await asyncio.gather(*(stage.redeem(app, code) for _ in range(5)))
    assert sum(answer.status == 200 for answer in answers) <= 1
    for answer in answers:
        if answer.status == 200:
            assert (await stage.client(answer.json()["access_token"]).get("/v1/products")).status == 401


async def test_a_code_is_bound_to_its_app_address_verifier_and_minute(stage: Stage) -> None:
    app, other, person = (
        await stage.app(AppKind.SINGLE_PAGE),
        await stage.app(AppKind.SINGLE_PAGE),
        await stage.person(),
    )
    code = await stage.code(person, app)
    for wrong in (
        {"redirect_uri": "https://app.example/other"},
        {"redirect_uri": ""},
        {"code_verifier": "w" * 50},
        {"code_verifier": ""},
        {"code_verifier": CHALLENGE},
        {"code": code[:-1] + ("1" if code[-1] == "0" else "0")},
    ):
        answer = (
            await stage.redeem(app, code, **wrong) if "code" not in wrong else await stage.redeem(app, wrong["code"])
        )
        assert answer.status == 400 and answer.json()["error"] in ("invalid_grant", "invalid_request"), wrong
    assert (await stage.redeem(other, code)).json()["error"] == "invalid_grant"
    stage.world.clock.advance(timedelta(seconds=59))
    assert (await stage.redeem(app, code)).status == 200, "wrong tries used nothing up"
    late = await stage.code(person, app)
    stage.world.clock.advance(timedelta(seconds=60))
    assert (await stage.redeem(app, late)).json()["error"] == "invalid_grant"


async def test_another_apps_try_with_a_used_code_ends_nothing(stage: Stage) -> None:
    app, other, person = await stage.app(), await stage.app(), await stage.person()
    code = await stage.code(person, app)
    body = (await stage.redeem(app, code)).json()
    assert (await stage.redeem(other, code)).status == 400
    assert (await stage.client(body["access_token"]).get("/v1/products")).status == 200


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
async def test_there_is_no_way_around_pkce(stage: Stage, kind: AppKind, changes: dict[str, str | None]) -> None:
    app, person = await stage.app(kind), await stage.person()
    parameters = led(await stage.request_consent(person, app, **changes))
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
async def test_a_browser_goes_to_registered_addresses_alone(stage: Stage, uri: str) -> None:
    text = await _error(stage, await stage.app(), redirect_uri=uri)
    assert not re.search(r'(href|action|content|src)="[^"]*evil', text) and "invalid_request" in text


async def test_the_client_must_be_registered(stage: Stage) -> None:
    app = await stage.app()
    for client_id in (None, "", "app_unknown", "x" * 2000, "é", '"', "<script>"):
        assert "<script>" not in (await _error(stage, app, client_id=client_id)).replace("<script src", "")
    assert "response_type" in await _error(stage, app, response_type='co"de')
    person = await stage.person()
    for response_type in ("token", "code token", None):
        page = await stage.request_consent(person, app, response_type=response_type)
        assert led(page)["error"] == "unsupported_response_type"
    twice = await person.browser.get(stage.place(app) + "&scope=exports:write")
    assert twice.status == 400 and "more than once" in twice.text
    machine = await stage.app(AppKind.MACHINE)
    await _error(stage, machine, redirect_uri=CALLBACK)


async def test_every_refusal_names_the_issuer(stage: Stage) -> None:
    """`iss` (RFC 9207), which `led` looks at, keeps a client from taking an answer for another server's."""
    app, person = await stage.app(), await stage.person()
    assert led(await stage.request_consent(person, app, scope="everything"))["error"] == "invalid_scope"
    assert (
        led(await stage.request_consent(person, app, resource="https://other.example/v1"))["error"] == "invalid_target"
    )
    page = await stage.request_consent(person, app)
    denied = led(await stage.allow(person, page, decision="deny"))
    assert denied["error"] == "access_denied" and denied["state"] == "s t&ä"


async def test_no_token_holds_more_than_was_agreed_to(stage: Stage) -> None:
    app, person = await stage.app(scopes=frozenset({"products:read", "sources:read"})), await stage.person()
    assert led(await stage.request_consent(person, app, scope="products:write"))["error"] == "invalid_scope"
    body = await stage.signed_in(app, person, scope="products:read", resource=f"{BASE}/v1")
    for more in ({"scope": "products:read sources:read"}, {"resource": f"{BASE}/mcp"}, {"resource": BASE}):
        answer = await stage.refresh(app, body["refresh_token"], **more)
        assert answer.json()["error"] in ("invalid_scope", "invalid_target"), more
    code = await stage.code(person, app, resource=f"{BASE}/mcp")
    assert (await stage.redeem(app, code, resource=f"{BASE}/v1")).json()["error"] == "invalid_target"
    bound = (await stage.redeem(app, code)).json()["access_token"]
    assert (await stage.client(bound).get("/v1/products")).status == 401


async def test_a_stolen_refresh_token_ends_the_sign_in(stage: Stage) -> None:
    app, person = await stage.app(AppKind.NATIVE, "http://127.0.0.1/cb"), await stage.person()
    stolen = await stage.signed_in(app, person)
    own = (await stage.refresh(app, stolen["refresh_token"])).json()
    stage.world.clock.advance(timedelta(seconds=11))
    assert (await stage.refresh(app, stolen["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await stage.refresh(app, own["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await stage.client(own["access_token"]).get("/v1/products")).status == 401


async def test_a_quick_token_theft_is_detected_too(stage: Stage) -> None:
    app, person = await stage.app(AppKind.NATIVE, "http://127.0.0.1/cb"), await stage.person()
    first = await stage.signed_in(app, person)
    own = (await stage.refresh(app, first["refresh_token"])).json()
    thief = (await stage.refresh(app, first["refresh_token"])).json()
    assert (await stage.refresh(app, own["refresh_token"])).status == 400
    assert (await stage.refresh(app, thief["refresh_token"])).status == 400
    other = await stage.app(AppKind.NATIVE, "http://127.0.0.1/cb")
    again = await stage.signed_in(app, person)
    assert (await stage.refresh(other, again["refresh_token"])).status == 400
    assert (await stage.refresh(app, again["refresh_token"])).status == 200, "another app's try ends nothing"


async def test_an_app_proves_who_it_is(stage: Stage) -> None:
    app, public, person = await stage.app(), await stage.app(AppKind.SINGLE_PAGE), await stage.person()
    code = await stage.code(person, app)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    secret = stage.secrets[app.client_id]
    for basic, more in (
        (None, {"client_id": app.client_id}),
        (None, {"client_id": app.client_id, "client_secret": "wrong"}),
        ((app.client_id, "wrong"), {}),
        ((public.client_id, secret), {}),
        (("app_unknown", secret), {}),
        (None, {}),
    ):
        answer = await stage.post("/oauth/token", basic=basic, **form, **more)
        assert answer.status == 401 and answer.json()["error"] == "invalid_client"
        assert answer.headers["www-authenticate"].startswith("Basic ") and "type" not in answer.json()
    mixed = await stage.post("/oauth/token", basic=(app.client_id, secret), client_id=public.client_id, **form)
    assert mixed.json()["error"] == "invalid_request"
    assert (await stage.redeem(app, code)).status == 200
    assert (await stage.token(public, grant_type="client_credentials")).status == 401
    assert (await stage.token(app, grant_type="client_credentials")).json()["error"] == "unauthorized_client"
    for grant in ("password", "implicit", "", 'x"y', "urn:ietf:params:oauth:grant-type:jwt-bearer"):
        answer = await stage.token(app, grant_type=grant)
        assert answer.status == 400 and answer.json()["error"] in ("unsupported_grant_type", "invalid_request")


async def test_forms_alone_are_taken(stage: Stage) -> None:
    app = await stage.app(AppKind.MACHINE)
    client = Client(stage.world.app, None)
    form = urlencode(
        {"grant_type": "client_credentials", "client_id": app.client_id, "client_secret": stage.secrets[app.client_id]}
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
        answer = await client.send("POST", target, body=body, headers=headers)
        assert answer.status in (400, 413) and answer.json()["error"].startswith("invalid_"), target
        assert answer.headers["cache-control"] == "no-store"
    answer = await client.get("/oauth/token")
    assert (answer.status, answer.headers["allow"], answer.json()["error"]) == (405, "POST", "invalid_request")


async def test_nothing_secret_is_logged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        app, person = await stage.app(), await stage.person()
        body = await stage.signed_in(app, person)
        fresh = (await stage.refresh(app, body["refresh_token"])).json()
    secrets = (stage.secrets[app.client_id], body["access_token"], body["refresh_token"], fresh["access_token"])
    assert not [secret for secret in secrets if secret in caplog.text]


async def test_no_one_consents_in_the_name_of_another(stage: Stage) -> None:
    app, person, other = await stage.app(), await stage.person(), await stage.person("Oak")
    page, foreign = await stage.request_consent(person, app), await stage.request_consent(other, app)
    fields = {"request": page.field("request"), "decision": "allow", "org": stage.world.orgs["Fjord"].id}
    for answer in (
        await person.browser.post("/oauth/authorize", **fields),
        await person.browser.submit(foreign, "/oauth/authorize", **fields),
        await person.browser.submit(
            page, "/oauth/authorize", {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, **fields
        ),
        await person.browser.submit(page, "/oauth/authorize", **(fields | {"org": stage.world.orgs["Oak"].id})),
        await other.browser.submit(foreign, "/oauth/authorize", **fields),
    ):
        assert answer.status in (400, 403) and answer.header("location") is None
    changed = fields["request"].replace(quote(CALLBACK, safe=""), quote("https://evil.example/cb", safe=""))
    assert changed != fields["request"]
    forged = await person.browser.submit(page, "/oauth/authorize", **(fields | {"request": changed}))
    assert forged.status == 400 and forged.header("location") is None
    for path in ("/oauth/device/decision",):
        assert (await person.browser.post(path, user_code="BBBB-BBBB", decision="allow")).status == 403
    policy = page.header("content-security-policy") or ""
    assert "frame-ancestors 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
    assert "form-action 'self' https://app.example;" in policy


async def test_consent_is_revoked(stage: Stage) -> None:
    app, person, services = await stage.app(), await stage.person(), stage.world.dependencies[OAuthServices]
    body = await stage.signed_in(app, person)
    org = stage.world.orgs["Fjord"]
    own = replace(owner_of(org, "editor"), actor=replace(owner_of(org).actor, id=person.user.id))
    outsider = owner_of(org, "viewer")
    async with stage.world.uow.begin(Tenant(org.id, True), OPERATOR) as tx:
        [grant] = await services.consents.list_consents(tx, own)
        assert (grant.app_name, grant.scopes) == (app.name, {"products:read"})
        assert list(await services.consents.list_consents(tx, outsider)) == []
        assert list(await services.consents.list_consents(tx, owner_of(org), includes_all_members=True)) == [grant]
        with pytest.raises(PermissionDenied):
            await services.consents.list_consents(tx, own, includes_all_members=True)
        with pytest.raises(NotFound):
            await services.consents.revoke_consent(tx, outsider, grant.id)
        with pytest.raises(PermissionDenied):
            await services.consents.list_consents(tx, replace(own, is_console_session=False))
        await services.consents.revoke_consent(tx, own, grant.id)
    assert (await stage.client(body["access_token"]).get("/v1/products")).status == 401
    assert (await stage.refresh(app, body["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await stage.request_consent(person, app)).status == 200, "one is asked again"


async def test_user_codes_cannot_be_guessed(stage: Stage) -> None:
    person = await stage.person()
    pages = [await person.browser.get(f"/oauth/device?user_code=BBBB-BBB{letter}") for letter in "BCDFGHJKLMNP"]
    assert [page.status for page in pages] == [200] * 10 + [429] * 2
