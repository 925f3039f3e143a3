"""Every way to a token through the real application: what is answered, and what the token is good for."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.oauth.model import App, AppKind, AppOrigin
from domain.probes.ports import WebClient
from tests.http.fakes import BASE, running
from tests.http.oauth import CALLBACK, Stage, led
from tests.support.memory.hosts import MemoryWeb

pytestmark = pytest.mark.asyncio
LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
REMEMBERED = 0.55
"""Seconds: a revocation acts within one."""
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with running(web=MemoryWeb()) as world:
        yield Stage(world)


async def test_the_server_publishes_its_metadata(stage: Stage) -> None:
    anonymous = stage.world.bare_client()
    found = (await anonymous.get("/.well-known/oauth-authorization-server")).json()
    assert found["issuer"] == BASE and found["code_challenge_methods_supported"] == ["S256"]
    assert found["token_endpoint"] == f"{BASE}/oauth/token"
    assert found["authorization_response_iss_parameter_supported"] and found["client_id_metadata_document_supported"]
    for edge in ("", "/v1", "/mcp"):
        answer = await anonymous.get(f"/.well-known/oauth-protected-resource{edge}")
        assert answer.json()["resource"] == BASE + edge and answer.json()["authorization_servers"] == [BASE]
    assert (await anonymous.get("/.well-known/oauth-protected-resource/v2")).status == 404
    for path in (
        "/oauth/token",
        "/oauth/device",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource/mcp",
    ):
        preflight = await anonymous.send("OPTIONS", path)
        assert preflight.status == 204 and preflight.headers["access-control-allow-origin"] == "*", path


@pytest.mark.parametrize(
    ("kind", "uri"),
    [(AppKind.WEB, CALLBACK), (AppKind.SINGLE_PAGE, CALLBACK), (AppKind.NATIVE, "http://127.0.0.1/cb"), (AppKind.NATIVE, "com.example.app:/cb")],
)  # fmt: skip
async def test_an_app_is_signed_in_to(stage: Stage, kind: AppKind, uri: str) -> None:
    app, person = await stage.app(kind, uri), await stage.person()
    page = await stage.request_consent(person, app)
    assert page.status == 200 and page.header("cache-control") == "no-store"
    assert (
        "Price &lt;b&gt;sync&lt;/b&gt;" in page.text and "View products, variants" in page.text and "Fjord" in page.text
    )
    done = led(await stage.allow(person, page))
    assert done["to"] == uri and done["state"] == "s t&ä"
    answer = await stage.redeem(app, done["code"])
    body = answer.json()
    assert answer.status == 200 and answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 600, "products:read")
    assert body["access_token"].startswith("svc_access_") and body["refresh_token"].startswith("svc_refresh_")
    client = stage.client(body["access_token"])
    assert (await client.get("/v1/products")).status == 200
    assert (await client.get("/v1/products", service_mode="test")).status == 200
    assert (await client.get("/v1/sources")).status == 403, "a scope that was not asked for"
    stage.world.clock.advance(timedelta(seconds=601))
    assert (await client.get("/v1/products")).status == 401


async def test_a_native_app_listens_at_any_port(stage: Stage) -> None:
    app, person = await stage.app(AppKind.NATIVE, "http://127.0.0.1/cb", "http://[::1]/cb"), await stage.person()
    page = await stage.request_consent(person, app, redirect_uri="http://127.0.0.1:51004/cb")
    policy = page.header("content-security-policy") or ""
    assert "form-action 'self' http://127.0.0.1:51004;" in policy and "frame-ancestors 'none'" in policy
    done = led(await stage.allow(person, page))
    assert done["to"] == "http://127.0.0.1:51004/cb"
    answer = await stage.redeem(app, done["code"], redirect_uri="http://127.0.0.1:51004/cb")
    assert answer.status == 200


async def test_what_a_person_may_do_is_the_most_that_a_token_may(stage: Stage) -> None:
    app, person = await stage.app(), await stage.person(role="editor")
    token = (await stage.signed_in(app, person, scope="sources:write sources:read exports:write"))["access_token"]
    client = stage.client(token)
    made = await client.post("/v1/sources", {"name": "Pushed", "kind": "push"})
    assert made.status == 201
    refused = await client.post("/v1/exports", {"kind": "products"})
    assert refused.status == 403 and refused.code == "permission_denied", "an editor makes no exports"
    entry = (await (await stage.world.client()).get("/v1/audit-events?limit=1")).json()["data"][0]
    assert entry["actor"] == {"kind": "app", "id": app.id, "on_behalf_of": person.user.id}
    await stage.role(person.user, "Fjord", "viewer")
    await asyncio.sleep(REMEMBERED)
    assert (await client.post("/v1/sources", {"name": "Other", "kind": "push"})).status == 403
    await stage.leaves(person.user, "Fjord")
    await asyncio.sleep(REMEMBERED)
    assert (await client.get("/v1/sources")).status == 401


async def test_a_machine_app_acts_as_its_organisation(stage: Stage) -> None:
    app = await stage.app(AppKind.MACHINE, scopes=frozenset({"products:read", "sources:read"}))
    body = (await stage.token(app, grant_type="client_credentials")).json()
    assert "refresh_token" not in body and body["scope"] == "products:read sources:read"
    assert (await stage.client(body["access_token"]).get("/v1/products")).status == 200
    for path in ("/v1/person", "/v1/owner", "/v1/session"):
        assert (await stage.client(body["access_token"]).post(path, {})).status == 403, "people only"
    post = await stage.post(
        "/oauth/token", grant_type="client_credentials", client_id=app.client_id, scope="products:read",
        client_secret=stage.secrets[app.client_id],
    )  # fmt: skip
    assert post.status == 200 and post.json()["scope"] == "products:read"
    more = await stage.token(app, grant_type="client_credentials", scope="products:read exports:write")
    assert more.status == 400 and more.json()["error"] == "invalid_scope"


async def test_a_persons_token_counts_as_a_person(stage: Stage) -> None:
    app, person = await stage.app(), await stage.person("Fjord", "Oak")
    token = (await stage.signed_in(app, person, scope="org:read sources:write"))["access_token"]
    answer = await stage.client(token).get("/v1/me/orgs")
    assert answer.status == 200 and len(answer.json()["data"]) == 2
    client = stage.client(token)
    assert (await client.post("/v1/person")).status == 200
    assert (await client.post("/v1/owner", {})).status == 403, "an editor"
    assert (await client.post("/v1/session", {})).status == 403, "an app is never signed in to the console"
    owner = await stage.person(role="owner")
    token = (await stage.signed_in(app, owner, scope="sources:write"))["access_token"]
    assert (await stage.client(token).post("/v1/owner")).status == 200


async def test_a_refresh_token_is_another_one_after_each_use(stage: Stage) -> None:
    app, person = await stage.app(AppKind.SINGLE_PAGE), await stage.person()
    first = await stage.signed_in(app, person, scope="products:read sources:read")
    second = (await stage.refresh(app, first["refresh_token"], scope="products:read")).json()
    assert second["refresh_token"] != first["refresh_token"] and second["scope"] == "products:read"
    third = (await stage.refresh(app, second["refresh_token"])).json()
    assert third["scope"] == "products:read sources:read", "less was asked for once, and everything was agreed to"
    assert (await stage.client(third["access_token"]).get("/v1/sources")).status == 200
    stage.world.clock.advance(timedelta(days=31))
    over = await stage.refresh(app, third["refresh_token"])
    assert over.status == 400 and over.json()["error"] == "invalid_grant"


async def test_a_sign_in_ends_however_often_it_is_refreshed(stage: Stage) -> None:
    app, person = await stage.app(), await stage.person()
    body = await stage.signed_in(app, person)
    for _ in range(8):
        stage.world.clock.advance(timedelta(days=22))
        body = (await stage.refresh(app, body["refresh_token"])).json()
    stage.world.clock.advance(timedelta(days=5))
    assert (await stage.refresh(app, body["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_client_that_lost_the_response_repeats_the_request(stage: Stage) -> None:
    app, person = await stage.app(), await stage.person()
    first = await stage.signed_in(app, person)
    lost = (await stage.refresh(app, first["refresh_token"])).json()
    stage.world.clock.advance(timedelta(seconds=9))
    again = await stage.refresh(app, first["refresh_token"])
    assert again.status == 200
    assert (await stage.refresh(app, again.json()["refresh_token"])).status == 200
    assert (await stage.refresh(app, lost["refresh_token"])).status == 400, "it was replaced"
    assert (await stage.refresh(app, again.json()["refresh_token"])).status == 400, "which ended the sign-in"


async def test_a_device_is_signed_in(stage: Stage) -> None:
    app, person = await stage.app(AppKind.NATIVE, "com.example.app:/cb"), await stage.person("Fjord", "Oak")
    started = (await stage.post("/oauth/device", client_id=app.client_id, scope="products:read")).json()
    assert started["verification_uri"] == f"{BASE}/oauth/device" and started["interval"] == 5

    async def poll() -> dict[str, str]:
        form = {"grant_type": DEVICE_GRANT, "device_code": started["device_code"]}
        found: dict[str, str] = (await stage.token(app, **form)).json()
        return found

    assert (await poll())["error"] == "authorization_pending"
    stage.world.clock.advance(timedelta(seconds=1))
    assert (await poll())["error"] == "slow_down"
    empty = await person.browser.get("/oauth/device")
    assert empty.status == 200 and "Enter the code" in empty.text
    wrong = await person.browser.get("/oauth/device?user_code=BBBB-BBBB")
    assert "This code is wrong or has expired" in wrong.text
    typed = started["user_code"].lower().replace("-", " ")
    page = await person.browser.get(f"/oauth/device?user_code={typed.replace(' ', '%20')}")
    assert "requests access" in page.text and "Oak" in page.text
    done = await person.browser.submit(
        page,
        "/oauth/device/decision",
        user_code=page.field("user_code"),
        decision="allow",
        org=stage.world.orgs["Oak"].id,
    )
    assert "Device signed in" in done.text
    stage.world.clock.advance(timedelta(seconds=10))
    body = await poll()
    assert (await stage.client(body["access_token"]).get("/v1/org")).status == 403
    assert (await stage.client(body["access_token"]).get("/v1/products")).status == 200
    assert (await stage.refresh(app, body["refresh_token"])).status == 200
    assert "error" in await poll(), "it is good for one use"


async def test_a_device_is_refused_and_forgotten(stage: Stage) -> None:
    app, person = await stage.app(AppKind.NATIVE, "com.example.app:/cb"), await stage.person()
    started = (await stage.post("/oauth/device", client_id=app.client_id)).json()
    other = (await stage.post("/oauth/device", client_id=app.client_id)).json()
    page = await person.browser.get(started["verification_uri_complete"].removeprefix(BASE))
    form = {"user_code": page.field("user_code"), "decision": "deny", "org": stage.world.orgs["Fjord"].id}
    assert "Sign-in cancelled" in (await person.browser.submit(page, "/oauth/device/decision", **form)).text
    answer = await stage.token(app, grant_type=DEVICE_GRANT, device_code=started["device_code"])
    assert answer.json()["error"] == "access_denied"
    stage.world.clock.advance(timedelta(seconds=601))
    answer = await stage.token(app, grant_type=DEVICE_GRANT, device_code=other["device_code"])
    assert answer.json()["error"] == "expired_token"
    web = await stage.app()
    basic = (web.client_id, stage.secrets[web.client_id])
    refused = await stage.post("/oauth/device", basic=basic)
    assert refused.json()["error"] == "unauthorized_client"


async def test_an_app_registers_itself(stage: Stage) -> None:
    answer = await stage.register(client_name="Editor\u202e with MCP", scope="products:read org:read")
    registration = answer.json()
    assert (
        answer.status == 201
        and "client_secret" not in registration
        and registration["token_endpoint_auth_method"] == "none"
    )
    app = await stage.world.token_store.find_app(registration["client_id"])
    assert app is not None and app.origin is AppOrigin.REGISTERED and app.name == "Editor with MCP"
    person = await stage.person()
    page = await stage.request_consent(person, app, redirect_uri="http://127.0.0.1:7777/cb", resource=f"{BASE}/mcp")
    assert "verified: anyone can create an app" in page.text and "this device" in page.text
    code = led(await stage.allow(person, page))["code"]
    body = (await stage.redeem(app, code, redirect_uri="http://127.0.0.1:7777/cb", resource=f"{BASE}/mcp")).json()
    assert (await stage.client(body["access_token"]).get("/v1/products")).status == 401, "it is for MCP alone"
    assert (
        await stage.client(body["access_token"]).post("/mcp", LISTING, accept="application/json, text/event-stream")
    ).status == 200
    other = await stage.signed_in(await stage.app(), person, resource=f"{BASE}/v1")
    assert (
        await stage.client(other["access_token"]).post("/mcp", LISTING, accept="application/json, text/event-stream")
    ).status == 401
    confidential = (
        await stage.register(token_endpoint_auth_method="client_secret_post", redirect_uris=[CALLBACK])
    ).json()
    assert confidential["client_secret"].startswith("svc_client_") and confidential["client_secret_expires_at"] == 0


async def test_an_app_is_described_by_a_document(stage: Stage) -> None:
    url, web = "https://editor.example/oauth/client.json", stage.world.dependencies[WebClient]
    document = b'{"client_id": "%s", "client_name": "Editor", "redirect_uris": ["http://localhost/cb"]}' % url.encode()
    web.serve(url, document, content_type="application/json", cache_control="max-age=600")
    person = await stage.person()
    described = App(
        "app",
        url,
        AppKind.NATIVE,
        AppOrigin.DOCUMENT,
        "",
        ("http://localhost:3000/cb",),
        frozenset(),
        *[stage.world.clock.now()] * 2,
    )
    page = await stage.request_consent(person, described)
    assert "Editor requests access" in page.text and url in page.text
    code = led(await stage.allow(person, page))["code"]
    assert (await stage.redeem(described, code)).status == 200
    assert len(web.requests) == 1, "it is fresh"
    stage.world.clock.advance(timedelta(seconds=601))
    web.serve(url, document.replace(b"localhost", b"127.0.0.1"), content_type="application/json")
    refused = await stage.request_consent(person, described)
    assert refused.status == 400 and len(web.requests) == 2, "it says other addresses by now"


async def test_an_earlier_consent_is_not_requested_again(stage: Stage) -> None:
    app, native, person = (
        await stage.app(),
        await stage.app(AppKind.NATIVE, "http://127.0.0.1/cb"),
        await stage.person(),
    )
    for one in (app, native):
        await stage.signed_in(one, person, scope="products:read sources:read")
    assert "code" in led(await stage.request_consent(person, app, scope="sources:read"))
    assert (await stage.request_consent(person, app, scope="exports:read")).status == 200, "more than was agreed to"
    assert (await stage.request_consent(person, app, prompt="consent")).status == 200
    assert (await stage.request_consent(person, native)).status == 200, "any program may listen there"
    quiet = led(await stage.request_consent(person, app, scope="exports:read", prompt="none"))
    assert quiet["error"] == "interaction_required"


async def test_the_sign_in_comes_first(stage: Stage) -> None:
    from tests.http.browser import Browser

    app, signed_out = await stage.app(), Browser(stage.world.app)
    page = await signed_out.get(stage.place(app))
    assert page.status == 303 and (page.header("location") or "").startswith(
        "/console/sign-in?next=/oauth/authorize%3F"
    )
    assert led(await signed_out.get(stage.place(app, prompt="none")))["error"] == "login_required"
    assert (await signed_out.get("/oauth/device")).status == 303


async def test_tokens_are_introspected_and_revoked(stage: Stage) -> None:
    app, other, person = await stage.app(), await stage.app(), await stage.person()
    body = await stage.signed_in(app, person, resource=f"{BASE}/v1")
    own = {"basic": (app.client_id, stage.secrets[app.client_id])}
    introspection = (await stage.post("/oauth/introspect", token=body["access_token"], **own)).json()
    assert introspection["active"] and introspection["sub"] == person.user.id and introspection["aud"] == [f"{BASE}/v1"]
    assert (
        introspection["client_id"] == app.client_id
        and introspection["scope"] == "products:read"
        and introspection["iss"] == BASE
    )
    strange = {"basic": (other.client_id, stage.secrets[other.client_id])}
    assert (await stage.post("/oauth/introspect", token=body["access_token"], **strange)).json() == {"active": False}
    assert (await stage.post("/oauth/introspect", token=body["access_token"])).status == 401
    assert (await stage.post("/oauth/revoke", token=body["access_token"], **strange)).status == 200
    client = stage.client(body["access_token"])
    assert (await client.get("/v1/products")).status == 200, "somebody else's word ends nothing"
    assert (await stage.post("/oauth/revoke", token=body["access_token"], **own)).status == 200
    await asyncio.sleep(REMEMBERED)
    assert (await client.get("/v1/products")).status == 401
    assert (await stage.post("/oauth/introspect", token=body["access_token"], **own)).json() == {"active": False}
    fresh = (await stage.refresh(app, body["refresh_token"])).json()
    assert (
        await stage.post("/oauth/revoke", token=fresh["refresh_token"], token_type_hint="refresh_token", **own)
    ).status == 200
    assert (await stage.refresh(app, fresh["refresh_token"])).status == 400
    assert (await stage.client(fresh["access_token"]).get("/v1/products")).status == 401
    assert (await stage.post("/oauth/revoke", token="no such token", **own)).status == 200
