"""OAuth grants: responses and permissions of the tokens."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.oauth.model import App, AppKind, AppOrigin
from domain.probes.ports import WebClient
from tests.http.application import BASE, run_application
from tests.http.oauth import CALLBACK, OAuthHarness, parse_redirect
from tests.support.memory.hosts import MemoryWeb

pytestmark = pytest.mark.asyncio
LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
REMEMBERED = 0.55
"""Seconds: a revocation acts within one."""
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[OAuthHarness]:
    async with run_application(web=MemoryWeb()) as application:
        yield OAuthHarness(application)


async def test_the_server_publishes_its_metadata(harness: OAuthHarness) -> None:
    anonymous = harness.application.build_client()
    found = (await anonymous.get("/.well-known/oauth-authorization-server")).json()
    assert found["issuer"] == BASE and found["code_challenge_methods_supported"] == ["S256"]
    assert found["token_endpoint"] == f"{BASE}/oauth/token"
    assert found["authorization_response_iss_parameter_supported"] and found["client_id_metadata_document_supported"]
    for edge in ("", "/v1", "/mcp"):
        response = await anonymous.get(f"/.well-known/oauth-protected-resource{edge}")
        assert response.json()["resource"] == BASE + edge and response.json()["authorization_servers"] == [BASE]
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
async def test_an_app_is_signed_in_to(harness: OAuthHarness, kind: AppKind, uri: str) -> None:
    app, person = await harness.create_app(kind, uri), await harness.create_member()
    page = await harness.request_consent(person, app)
    assert page.status == 200 and page.header("cache-control") == "no-store"
    assert (
        "Price &lt;b&gt;sync&lt;/b&gt;" in page.text and "View products, variants" in page.text and "Fjord" in page.text
    )
    done = parse_redirect(await harness.submit_consent(person, page))
    assert done["to"] == uri and done["state"] == "s t&ä"
    response = await harness.redeem_code(app, done["code"])
    body = response.json()
    assert response.status == 200 and response.headers["cache-control"] == "no-store"
    assert response.headers["content-type"] == "application/json"
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 600, "products:read")
    assert body["access_token"].startswith("svc_access_") and body["refresh_token"].startswith("svc_refresh_")
    client = harness.build_client(body["access_token"])
    assert (await client.get("/v1/products")).status == 200
    assert (await client.get("/v1/products", service_mode="test")).status == 200
    assert (await client.get("/v1/sources")).status == 403, "a scope that was not asked for"
    harness.application.clock.advance(timedelta(seconds=601))
    assert (await client.get("/v1/products")).status == 401


async def test_a_native_app_listens_at_any_port(harness: OAuthHarness) -> None:
    app, person = (
        await harness.create_app(AppKind.NATIVE, "http://127.0.0.1/cb", "http://[::1]/cb"),
        await harness.create_member(),
    )
    page = await harness.request_consent(person, app, redirect_uri="http://127.0.0.1:51004/cb")
    policy = page.header("content-security-policy") or ""
    assert "form-action 'self' http://127.0.0.1:51004;" in policy and "frame-ancestors 'none'" in policy
    done = parse_redirect(await harness.submit_consent(person, page))
    assert done["to"] == "http://127.0.0.1:51004/cb"
    response = await harness.redeem_code(app, done["code"], redirect_uri="http://127.0.0.1:51004/cb")
    assert response.status == 200


async def test_a_token_never_exceeds_the_persons_permissions(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member(role="editor")
    token = (await harness.sign_in(app, person, scope="sources:write sources:read exports:write"))["access_token"]
    client = harness.build_client(token)
    made = await client.post("/v1/sources", {"name": "Pushed", "kind": "push"})
    assert made.status == 201
    refused = await client.post("/v1/exports", {"kind": "products"})
    assert refused.status == 403 and refused.code == "permission_denied", "an editor makes no exports"
    entry = (await (await harness.application.create_client()).get("/v1/audit-events?limit=1")).json()["data"][0]
    assert entry["actor"] == {"kind": "app", "id": app.id, "on_behalf_of": person.user.id}
    await harness.set_role(person.user, "Fjord", "viewer")
    await asyncio.sleep(REMEMBERED)
    assert (await client.post("/v1/sources", {"name": "Other", "kind": "push"})).status == 403
    await harness.remove_member(person.user, "Fjord")
    await asyncio.sleep(REMEMBERED)
    assert (await client.get("/v1/sources")).status == 401


async def test_a_machine_app_acts_as_its_organisation(harness: OAuthHarness) -> None:
    app = await harness.create_app(AppKind.MACHINE, scopes=frozenset({"products:read", "sources:read"}))
    body = (await harness.request_token(app, grant_type="client_credentials")).json()
    assert "refresh_token" not in body and body["scope"] == "products:read sources:read"
    assert (await harness.build_client(body["access_token"]).get("/v1/products")).status == 200
    for path in ("/v1/person", "/v1/owner", "/v1/session"):
        assert (await harness.build_client(body["access_token"]).post(path, {})).status == 403, "people only"
    post = await harness.post_form(
        "/oauth/token", grant_type="client_credentials", client_id=app.client_id, scope="products:read",
        client_secret=harness.secrets[app.client_id],
    )  # fmt: skip
    assert post.status == 200 and post.json()["scope"] == "products:read"
    more = await harness.request_token(app, grant_type="client_credentials", scope="products:read exports:write")
    assert more.status == 400 and more.json()["error"] == "invalid_scope"


async def test_a_persons_token_is_limited_as_a_person(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member("Fjord", "Oak")
    token = (await harness.sign_in(app, person, scope="org:read sources:write"))["access_token"]
    response = await harness.build_client(token).get("/v1/me/orgs")
    assert response.status == 200 and len(response.json()["data"]) == 2
    client = harness.build_client(token)
    assert (await client.post("/v1/person")).status == 200
    assert (await client.post("/v1/owner", {})).status == 403, "an editor"
    assert (await client.post("/v1/session", {})).status == 403, "an app is never signed in to the console"
    owner = await harness.create_member(role="owner")
    token = (await harness.sign_in(app, owner, scope="sources:write"))["access_token"]
    assert (await harness.build_client(token).post("/v1/owner")).status == 200


async def test_refresh_tokens_rotate(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(AppKind.SINGLE_PAGE), await harness.create_member()
    first = await harness.sign_in(app, person, scope="products:read sources:read")
    second = (await harness.refresh_tokens(app, first["refresh_token"], scope="products:read")).json()
    assert second["refresh_token"] != first["refresh_token"] and second["scope"] == "products:read"
    third = (await harness.refresh_tokens(app, second["refresh_token"])).json()
    assert third["scope"] == "products:read sources:read", "less was asked for once, and everything was agreed to"
    assert (await harness.build_client(third["access_token"]).get("/v1/sources")).status == 200
    harness.application.clock.advance(timedelta(days=31))
    over = await harness.refresh_tokens(app, third["refresh_token"])
    assert over.status == 400 and over.json()["error"] == "invalid_grant"


async def test_a_sign_in_ends_despite_refreshes(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member()
    body = await harness.sign_in(app, person)
    for _ in range(8):
        harness.application.clock.advance(timedelta(days=22))
        body = (await harness.refresh_tokens(app, body["refresh_token"])).json()
    harness.application.clock.advance(timedelta(days=5))
    assert (await harness.refresh_tokens(app, body["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_client_that_lost_the_response_repeats_the_request(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(), await harness.create_member()
    first = await harness.sign_in(app, person)
    lost = (await harness.refresh_tokens(app, first["refresh_token"])).json()
    harness.application.clock.advance(timedelta(seconds=9))
    again = await harness.refresh_tokens(app, first["refresh_token"])
    assert again.status == 200
    assert (await harness.refresh_tokens(app, again.json()["refresh_token"])).status == 200
    assert (await harness.refresh_tokens(app, lost["refresh_token"])).status == 400, "it was replaced"
    assert (await harness.refresh_tokens(app, again.json()["refresh_token"])).status == 400, "which ended the sign-in"


async def test_a_device_is_signed_in(harness: OAuthHarness) -> None:
    app, person = (
        await harness.create_app(AppKind.NATIVE, "com.example.app:/cb"),
        await harness.create_member("Fjord", "Oak"),
    )
    started = (await harness.post_form("/oauth/device", client_id=app.client_id, scope="products:read")).json()
    assert started["verification_uri"] == f"{BASE}/oauth/device" and started["interval"] == 5

    async def poll() -> dict[str, str]:
        form = {"grant_type": DEVICE_GRANT, "device_code": started["device_code"]}
        found: dict[str, str] = (await harness.request_token(app, **form)).json()
        return found

    assert (await poll())["error"] == "authorization_pending"
    harness.application.clock.advance(timedelta(seconds=1))
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
        org=harness.application.orgs["Oak"].id,
    )
    assert "Device signed in" in done.text
    harness.application.clock.advance(timedelta(seconds=10))
    body = await poll()
    assert (await harness.build_client(body["access_token"]).get("/v1/org")).status == 403
    assert (await harness.build_client(body["access_token"]).get("/v1/products")).status == 200
    assert (await harness.refresh_tokens(app, body["refresh_token"])).status == 200
    assert "error" in await poll(), "it is good for one use"


async def test_a_refused_device_gets_no_token(harness: OAuthHarness) -> None:
    app, person = await harness.create_app(AppKind.NATIVE, "com.example.app:/cb"), await harness.create_member()
    started = (await harness.post_form("/oauth/device", client_id=app.client_id)).json()
    other = (await harness.post_form("/oauth/device", client_id=app.client_id)).json()
    page = await person.browser.get(started["verification_uri_complete"].removeprefix(BASE))
    form = {"user_code": page.field("user_code"), "decision": "deny", "org": harness.application.orgs["Fjord"].id}
    assert "Sign-in cancelled" in (await person.browser.submit(page, "/oauth/device/decision", **form)).text
    response = await harness.request_token(app, grant_type=DEVICE_GRANT, device_code=started["device_code"])
    assert response.json()["error"] == "access_denied"
    harness.application.clock.advance(timedelta(seconds=601))
    response = await harness.request_token(app, grant_type=DEVICE_GRANT, device_code=other["device_code"])
    assert response.json()["error"] == "expired_token"
    web = await harness.create_app()
    basic = (web.client_id, harness.secrets[web.client_id])
    refused = await harness.post_form("/oauth/device", basic=basic)
    assert refused.json()["error"] == "unauthorized_client"


async def test_an_app_registers_itself(harness: OAuthHarness) -> None:
    response = await harness.register_app(client_name="Editor\u202e with MCP", scope="products:read org:read")
    registration = response.json()
    assert (
        response.status == 201
        and "client_secret" not in registration
        and registration["token_endpoint_auth_method"] == "none"
    )
    app = await harness.application.token_store.find_app(registration["client_id"])
    assert app is not None and app.origin is AppOrigin.REGISTERED and app.name == "Editor with MCP"
    person = await harness.create_member()
    page = await harness.request_consent(person, app, redirect_uri="http://127.0.0.1:7777/cb", resource=f"{BASE}/mcp")
    assert "verified: anyone can create an app" in page.text and "this device" in page.text
    code = parse_redirect(await harness.submit_consent(person, page))["code"]
    body = (
        await harness.redeem_code(app, code, redirect_uri="http://127.0.0.1:7777/cb", resource=f"{BASE}/mcp")
    ).json()
    assert (await harness.build_client(body["access_token"]).get("/v1/products")).status == 401, "it is for MCP alone"
    assert (
        await harness.build_client(body["access_token"]).post(
            "/mcp", LISTING, accept="application/json, text/event-stream"
        )
    ).status == 200
    other = await harness.sign_in(await harness.create_app(), person, resource=f"{BASE}/v1")
    assert (
        await harness.build_client(other["access_token"]).post(
            "/mcp", LISTING, accept="application/json, text/event-stream"
        )
    ).status == 401
    confidential = (
        await harness.register_app(token_endpoint_auth_method="client_secret_post", redirect_uris=[CALLBACK])
    ).json()
    assert confidential["client_secret"].startswith("svc_client_") and confidential["client_secret_expires_at"] == 0


async def test_an_app_is_described_by_a_document(harness: OAuthHarness) -> None:
    url, web = "https://editor.example/oauth/client.json", harness.application.dependencies[WebClient]
    document = b'{"client_id": "%s", "client_name": "Editor", "redirect_uris": ["http://localhost/cb"]}' % url.encode()
    web.serve(url, document, content_type="application/json", cache_control="max-age=600")
    person = await harness.create_member()
    described = App(
        "app",
        url,
        AppKind.NATIVE,
        AppOrigin.DOCUMENT,
        "",
        ("http://localhost:3000/cb",),
        frozenset(),
        *[harness.application.clock.now()] * 2,
    )
    page = await harness.request_consent(person, described)
    assert "Editor requests access" in page.text and url in page.text
    code = parse_redirect(await harness.submit_consent(person, page))["code"]
    assert (await harness.redeem_code(described, code)).status == 200
    assert len(web.requests) == 1, "it is fresh"
    harness.application.clock.advance(timedelta(seconds=601))
    web.serve(url, document.replace(b"localhost", b"127.0.0.1"), content_type="application/json")
    refused = await harness.request_consent(person, described)
    assert refused.status == 400 and len(web.requests) == 2, "it says other addresses by now"


async def test_an_earlier_consent_is_not_requested_again(harness: OAuthHarness) -> None:
    app, native, person = (
        await harness.create_app(),
        await harness.create_app(AppKind.NATIVE, "http://127.0.0.1/cb"),
        await harness.create_member(),
    )
    for one in (app, native):
        await harness.sign_in(one, person, scope="products:read sources:read")
    assert "code" in parse_redirect(await harness.request_consent(person, app, scope="sources:read"))
    assert (await harness.request_consent(person, app, scope="exports:read")).status == 200, "more than was agreed to"
    assert (await harness.request_consent(person, app, prompt="consent")).status == 200
    assert (await harness.request_consent(person, native)).status == 200, "any program may listen there"
    quiet = parse_redirect(await harness.request_consent(person, app, scope="exports:read", prompt="none"))
    assert quiet["error"] == "interaction_required"


async def test_consent_requires_a_sign_in(harness: OAuthHarness) -> None:
    from tests.http.browser import ConsoleBrowser

    app, signed_out = await harness.create_app(), ConsoleBrowser(harness.application.app)
    page = await signed_out.get(harness.build_authorization_path(app))
    assert page.status == 303 and (page.header("location") or "").startswith(
        "/console/sign-in?next=/oauth/authorize%3F"
    )
    assert (
        parse_redirect(await signed_out.get(harness.build_authorization_path(app, prompt="none")))["error"]
        == "login_required"
    )
    assert (await signed_out.get("/oauth/device")).status == 303


async def test_tokens_are_introspected_and_revoked(harness: OAuthHarness) -> None:
    app, other, person = await harness.create_app(), await harness.create_app(), await harness.create_member()
    body = await harness.sign_in(app, person, resource=f"{BASE}/v1")
    own = {"basic": (app.client_id, harness.secrets[app.client_id])}
    introspection = (await harness.post_form("/oauth/introspect", token=body["access_token"], **own)).json()
    assert introspection["active"] and introspection["sub"] == person.user.id and introspection["aud"] == [f"{BASE}/v1"]
    assert (
        introspection["client_id"] == app.client_id
        and introspection["scope"] == "products:read"
        and introspection["iss"] == BASE
    )
    strange = {"basic": (other.client_id, harness.secrets[other.client_id])}
    assert (await harness.post_form("/oauth/introspect", token=body["access_token"], **strange)).json() == {
        "active": False
    }
    assert (await harness.post_form("/oauth/introspect", token=body["access_token"])).status == 401
    assert (await harness.post_form("/oauth/revoke", token=body["access_token"], **strange)).status == 200
    client = harness.build_client(body["access_token"])
    assert (await client.get("/v1/products")).status == 200, "somebody else's word ends nothing"
    assert (await harness.post_form("/oauth/revoke", token=body["access_token"], **own)).status == 200
    await asyncio.sleep(REMEMBERED)
    assert (await client.get("/v1/products")).status == 401
    assert (await harness.post_form("/oauth/introspect", token=body["access_token"], **own)).json() == {"active": False}
    fresh = (await harness.refresh_tokens(app, body["refresh_token"])).json()
    assert (
        await harness.post_form("/oauth/revoke", token=fresh["refresh_token"], token_type_hint="refresh_token", **own)
    ).status == 200
    assert (await harness.refresh_tokens(app, fresh["refresh_token"])).status == 400
    assert (await harness.build_client(fresh["access_token"]).get("/v1/products")).status == 401
    assert (await harness.post_form("/oauth/revoke", token="no such token", **own)).status == 200
