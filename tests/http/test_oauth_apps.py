"""OAuth apps: created by an organisation, registered dynamically, or described by a metadata document."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from domain.kernel.errors import InvalidRequest, NotFound, PermissionDenied
from domain.kernel.tenancy import Tenant
from domain.oauth.model import App, AppKind, AppOrigin
from domain.oauth.usecases.apps import AppChange, NewApp
from domain.probes.ports import WebClient
from entrypoints.oauth_endpoints import OAuthServices
from tests.http.application import OPERATOR, run_application
from tests.http.oauth import CALLBACK, OAuthHarness, create_principal
from tests.support.memory.hosts import MemoryWeb

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[OAuthHarness]:
    async with run_application(web=MemoryWeb()) as application:
        yield OAuthHarness(application)


async def test_apps_are_managed_by_owners_and_admins_in_the_console(harness: OAuthHarness) -> None:
    org, apps = harness.application.orgs["Fjord"], harness.application.dependencies[OAuthServices].apps
    wanted = NewApp("  Stock   board ", AppKind.WEB, (CALLBACK,), frozenset({"products:read"}))
    async with harness.application.uow.begin(Tenant(org.id, True), OPERATOR) as tx:
        for caller in (create_principal(org, "developer"), create_principal(org, is_console_session=False)):
            with pytest.raises(PermissionDenied):
                await apps.create_app(tx, caller, wanted)
        admin = create_principal(org, "admin")
        app, secret = await apps.create_app(tx, admin, wanted)
        assert (
            app.name == "Stock board"
            and secret is not None
            and app.last4 == secret[-4:]
            and app.created_by == admin.user
        )
        for wrong in (
            replace(wanted, name=""),
            replace(wanted, redirect_uris=()),
            replace(wanted, redirect_uris=("http://app.example/cb",)),
            replace(wanted, scopes=frozenset({"all"})),
            replace(wanted, kind=AppKind.MACHINE),
        ):
            with pytest.raises(InvalidRequest):
                await apps.create_app(tx, admin, wrong)
        changed = await apps.change_app(
            tx, admin, app.id, AppChange(name="Board", redirect_uris=("https://app.example/new",))
        )
        rotated, fresh = await apps.rotate_secret(tx, admin, app.id)
        assert rotated.last4 == fresh[-4:] != secret[-4:] and rotated.name == changed.name
        assert list(await apps.list_apps(tx)) == [rotated]
        public, nothing = await apps.create_app(tx, admin, replace(wanted, kind=AppKind.SINGLE_PAGE))
        assert nothing is None
        await apps.delete_app(tx, admin, public.id)
        with pytest.raises(NotFound):
            await apps.get_app(tx, public.id)
        changes = [change for change in tx.recorded.changes if change.object == "oauth_app"]
        assert [change.action for change in changes] == ["create", "update", "update", "create", "delete"]
        assert not any(secret in str(change) or fresh in str(change) for change in changes)


async def test_tokens_of_a_deleted_app_are_invalid(harness: OAuthHarness) -> None:
    app, person, apps = (
        await harness.create_app(),
        await harness.create_member(),
        harness.application.dependencies[OAuthServices].apps,
    )
    body = await harness.sign_in(app, person)
    org = harness.application.orgs["Fjord"]
    async with harness.application.uow.begin(Tenant(org.id, True), OPERATOR) as tx:
        await apps.delete_app(tx, create_principal(org), app.id)
    assert (await harness.build_client(body["access_token"]).get("/v1/products")).status == 401
    assert (await harness.refresh_tokens(app, body["refresh_token"])).json()["error"] == "invalid_client"


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["data:text/html,x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://evil.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/cb#frag"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://*.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://app.example/cb"}, "invalid_redirect_uri"),
        (
            {"redirect_uris": ["cursor://x/cb"], "token_endpoint_auth_method": "client_secret_basic"},
            "invalid_redirect_uri",
        ),
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"grant_types": ["password"]}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"scope": "everything"}, "invalid_client_metadata"),
        ({"client_name": 7}, "invalid_client_metadata"),
        ({"client_uri": "javascript:alert(1)"}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
    ],
)
async def test_registrations_are_validated(harness: OAuthHarness, metadata: dict[str, object], code: str) -> None:
    response = await harness.register_app(**metadata)
    assert response.status == 400 and response.json()["error"] == code


async def test_registrations_of_an_address_are_bounded(harness: OAuthHarness) -> None:
    responses = [await harness.register_app() for _ in range(12)]
    assert [response.status for response in responses] == [201] * 10 + [429] * 2
    assert int(responses[-1].headers["retry-after"]) > 60 and responses[-1].json()["error"] == "temporarily_unavailable"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (
            b'{"client_id": "https://other.example/app.json", "redirect_uris": ["http://localhost/cb"]}',
            "application/json",
            200,
        ),
        (
            b'{"client_id": "URL", "redirect_uris": ["http://localhost/cb"], "client_secret": "x"}',
            "application/json",
            200,
        ),
        (
            b'{"client_id": "URL", "redirect_uris": ["http://localhost/cb"], "token_endpoint_auth_method": "client_secret_post"}',
            "application/json",
            200,
        ),
        (b'{"client_id": "URL", "redirect_uris": []}', "application/json", 200),
        (b'{"client_id": "URL", "redirect_uris": ["http://localhost/cb"]}', "text/html", 200),
        (b'{"client_id": "URL", "redirect_uris": ["http://localhost/cb"]}', "application/json", 302),
        (b'["URL"]', "application/json", 200),
        (b"{" * 9_000, "application/json", 200),
        (b'{"client_id": "URL", "redirect_uris": ["http://localhost/cb"]}' + b" " * 11_000, "application/json", 200),
    ],
)
async def test_metadata_documents_are_validated(harness: OAuthHarness, body: bytes, kind: str, status: int) -> None:
    url = "https://editor.example/client.json"
    harness.application.dependencies[WebClient].serve(
        url, body.replace(b"URL", url.encode()), status, content_type=kind
    )
    moment = harness.application.clock.now()
    app = App("app", url, AppKind.NATIVE, AppOrigin.DOCUMENT, "", ("http://localhost/cb",), frozenset(), moment, moment)
    page = await harness.request_consent(await harness.create_member(), app)
    assert page.status == 400 and page.header("location") is None
