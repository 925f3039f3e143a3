"""Developer pages of the console in Chromium: accessibility in all layouts, and use without scripts."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.oauth.model import AppKind
from domain.oauth.usecases.apps import NewApp
from domain.oauth.usecases.oauth_consents import OAuthConsentService
from domain.people.model import AuthMethod
from domain.people.usecases.invitations import InvitationService
from domain.people.usecases.sessions import ClientInfo
from domain.webhooks.ports import WebhookStore
from entrypoints.oauth_endpoints import OAuthServices
from tests.browser.page_checks import check_page
from tests.browser.service import LiveService, run_service
from tests.http.application import ApplicationHarness
from tests.http.client import Client
from tests.support import builders

pytestmark = pytest.mark.browser
HERE, MEMBERS = "/console/developers", "/console/organisation/members"


async def _prepare(application: ApplicationHarness) -> dict[str, str]:
    """Create an organisation with developer data in live mode and test mode."""
    browser = await application.open_browser()
    tenant = Tenant(application.orgs["Fjord"].id, True)
    _, cookie = await application.sessions.start(
        browser.user, [AuthMethod.PASSWORD], ClientInfo("127.0.0.1"), tenant.org
    )
    live, sandbox = await application.create_client(), await application.create_client(livemode=False)
    made = await live.post("/v1/webhook-endpoints", {"url": "https://receiver.example/hooks", "event_types": ["*"]})
    endpoint = made.json()["id"]
    attempt = builders.attempt()
    deliveries = [
        builders.delivery(endpoint, status=status, body=b'{"id": "evt_1"}', attempts=(attempt,), next_attempt_at=None)
        for status in ("succeeded", "failed", "succeeded")
    ]
    async with application.uow.begin(tenant, builders.CALL) as tx:
        for one in deliveries:
            await tx[WebhookStore].add_delivery(one)
    log = builders.request_log(tenant, path="/v1/products/" + "a" * 200, status=404, error_code="not_found")
    await application.sink.write([log, builders.request_log(tenant)])
    await sandbox.post("/v1/test/events", {"type": "offer.changed"})
    async with application.uow.begin(tenant, builders.CALL) as tx:
        wanted = NewApp("Shop", AppKind.WEB, ("https://shop.example/back",), frozenset({"products:read"}))
        principal = (await application.sessions.find(cookie)).principal
        app, _ = await application.dependencies[OAuthServices].apps.create_app(tx, principal, wanted)
        await OAuthConsentService.ensure_consent(
            tx, app, browser.user.id, frozenset({"products:read", "sources:write"})
        )
    return {
        "app": app.id, "cookie": cookie, "endpoint": endpoint, "delivery": deliveries[1].id, "log": log.id,
        "invitation": await _create_invitation(application, tenant, browser.user.id),
    }  # fmt: skip


async def _create_invitation(application: ApplicationHarness, tenant: Tenant, user: str) -> str:
    parts = application.dependencies
    service = parts[InvitationService]
    async with application.uow.begin(tenant, AuditContext(Actor("user", user), "tests")) as tx:
        return (await service.invite(tx, "bo@oak.example", "editor"))[1]


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with run_service(_prepare) as made:
        yield made


@contextmanager
def _open_page(browser: Any, service: LiveService, *, signed_in: bool = True, **options: Any) -> Iterator[Any]:
    context = browser.new_context(**options)
    if signed_in:
        context.add_cookies([{"name": "joinery", "value": service.prepared["cookie"], "url": service.address}])
    page = context.new_page()
    page.faults = []
    page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)
    yield page
    context.close()


def _list_paths(prepared: Mapping[str, Any]) -> dict[str, str]:
    hook = f"{HERE}/webhooks/{prepared['endpoint']}"
    return {
        "keys": f"{HERE}/keys",
        "new-key": f"{HERE}/keys/new",
        "apps": f"{HERE}/apps",
        "new-app": f"{HERE}/apps/new",
        "app": f"{HERE}/apps/{prepared['app']}",
        "webhooks": f"{HERE}/webhooks",
        "new-endpoint": f"{HERE}/webhooks/new",
        "endpoint": hook,
        "edit": f"{hook}/edit",
        "rotate": f"{hook}/rotate",
        "recover": f"{hook}/recover",
        "delete": f"{hook}/delete",
        "delivery": f"{hook}/deliveries/{prepared['delivery']}",
        "requests": f"{HERE}/requests",
        "request": f"{HERE}/requests/{prepared['log']}",
        "events": f"{HERE}/events",
        "reference": f"{HERE}/reference",
        "operation": f"{HERE}/reference/webhooks.create",
        "stream": f"{HERE}/reference/changes.stream",
        "members": MEMBERS,
    }


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_pages_are_accessible(browser: Any, service: LiveService, look: str) -> None:
    options: dict[str, Any] = {"viewport": {"width": 390 if look == "phone" else 1280, "height": 900}}
    with _open_page(browser, service, color_scheme="dark" if look == "dark" else "light", **options) as page:
        for name, place in _list_paths(service.prepared).items():
            page.goto(service.address + place, wait_until="load")
            check_page(page, f"developers-{name}-{look}")
            assert not page.faults, (name, page.faults)
    with _open_page(browser, service, signed_in=False, **options) as page:
        page.goto(f"{service.address}/console/invitations/{service.prepared['invitation']}")
        check_page(page, f"developers-invitation-{look}")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_key_is_created_and_revoked_and_an_operation_sent(browser: Any, service: LiveService, scripts: bool) -> None:
    with _open_page(browser, service, java_script_enabled=scripts) as page:
        page.goto(f"{service.address}{HERE}/keys/new")
        paddings = "[...document.querySelectorAll('.disclosure > summary')].map(each => parseFloat(getComputedStyle(each).paddingLeft))"
        assert not scripts or min(page.evaluate(paddings)) > 8, "the text does not touch the border"
        page.get_by_label("Name", exact=True).fill(f"Sync {scripts}")
        page.get_by_role("button", name="Create key").click()
        secret = page.locator(".secret code").inner_text()
        assert re.fullmatch(r"svc_live_\w{38}", secret)
        assert page.locator(".secret [data-copy]").is_visible() is scripts
        if scripts:
            check_page(page, "made-key")
        page.get_by_role("link", name="I copied the key").click()
        page.get_by_role("row").filter(has_text=f"Sync {scripts}").get_by_role("link", name="Revoke").click()
        page.get_by_role("button", name="Revoke key").click()
        assert f"Key Sync {scripts} revoked" in page.inner_text("main")
        assert service.run(Client(service.application.app, secret).get("/v1/org")).status == 401
        page.goto(f"{service.address}{HERE}/reference/orgs.read")
        page.get_by_role("button", name="Send request").click()
        assert "Response 200" in page.inner_text("#response")
        if scripts:
            check_page(page, "tried")


def test_an_endpoint_is_added_and_tested(browser: Any, service: LiveService) -> None:
    with _open_page(browser, service) as page:
        page.goto(f"{service.address}{HERE}/webhooks/new")
        page.get_by_label("URL").fill("https://other.example/hooks")
        page.get_by_label("All event types").check()
        page.get_by_role("button", name="Add endpoint").click()
        assert page.locator(".secret code").inner_text().startswith("whsec_")
        page.get_by_role("link", name="I copied the secret").click()
        page.get_by_role("button", name="Send test event").click()
        assert page.inner_text("h1") == "webhook.test"
        check_page(page, "tested")


def test_events_appear_live(browser: Any, service: LiveService) -> None:
    with _open_page(browser, service) as page:
        page.goto(f"{service.address}{HERE}/keys")
        page.get_by_role("button", name="Test", exact=True).click()
        page.goto(f"{service.address}{HERE}/events")
        before = page.locator(".feed > li").count()
        sandbox = service.run(service.application.create_client(livemode=False))
        service.run(sandbox.post("/v1/test/events", {"type": "product.updated"}))
        page.locator(".feed > li").nth(before).wait_for(timeout=15_000)
        assert page.locator(".feed > li").first.inner_text().startswith("product.updated")
        check_page(page, "live")
        page.get_by_role("button", name="Live", exact=True).click()


def test_an_invitation_is_accepted_without_scripts(browser: Any, service: LiveService) -> None:
    with _open_page(browser, service, signed_in=False, java_script_enabled=False) as page:
        page.goto(f"{service.address}/console/invitations/{service.prepared['invitation']}")
        page.get_by_label("Your name").fill("Bo")
        page.get_by_label("Password").fill("four walnut drawers and a lamp")
        page.get_by_role("button", name="Create account and join").click()
        assert "Welcome to Fjord. Your role: Editor." in page.inner_text("main")
