"""Organisation pages of the console in Chromium, with and without scripts: single sign-on, undo, exports."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import urlencode

import pytest

from domain.jobs.model import Backlog
from domain.kernel.ids import new_id
from domain.outbox.usecases import OutgoingMail
from domain.people.model import AuthMethod, User
from domain.people.usecases.sessions import ClientInfo
from entrypoints.operators_page import OperatorsPage
from entrypoints.settings import Settings
from tests.browser.page_checks import check_page
from tests.browser.service import LiveService, run_service
from tests.http.application import ApplicationHarness
from tests.support.identity_provider import CLIENT, ISSUER, SECRET

pytestmark = pytest.mark.browser
EMAIL = "ada@fjord.example"
SECTION = "/console/organisation"
PAGES = ("single-sign-on", "audit", "usage", "exports", "settings")


class StubDispatcher:
    """Job dispatcher with a fixed backlog."""

    async def count_backlog(self, max_jobs: int | None = None) -> list[Backlog]:
        return [Backlog("source", 3, 1, datetime.now(UTC)), Backlog("exports", 0, 1, None)]


async def _prepare(application: ApplicationHarness) -> dict[str, Any]:
    """Create an owner with an identity provider, outgoing mail and a change to undo."""
    now = datetime.now(UTC)
    application.clock.set(now)
    application.provider.now = int(now.timestamp())
    user = await application.people.add(User(new_id("usr"), EMAIL, "Ada Moreau", now, now))
    await application.add_member(user, "Fjord")
    link = f"{application.dependencies[Settings].base_url}/x"
    await application.dependencies[OutgoingMail].add_message(
        "mei@fjord.example", "An invitation", f"Open {link}", "invitation"
    )
    client = await application.create_client()
    await client.post("/v1/webhook-endpoints", {"url": "https://shop.example/hook", "event_types": ["*"]})
    return {"owner": user}


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with run_service(
        _prepare, lambda application, port: OperatorsPage(application.dependencies, port), dispatch=StubDispatcher()
    ) as made:
        yield made


def _open_page(browser: Any, service: LiveService, **more: Any) -> Any:
    """Open a page with a signed-in owner and a route to the provider."""
    _, cookie = service.run(
        service.application.sessions.start(service.prepared["owner"], [AuthMethod.PASSKEY], ClientInfo("127.0.0.1"))
    )
    context = browser.new_context(reduced_motion="reduce", **more)
    context.add_cookies([{"name": "joinery", "value": cookie, "url": service.address}])

    def provided(route: Any) -> None:
        """Fulfil the provider's page, which signs in."""
        response = service.application.provider.authorize(route.request.url)
        back = f"{service.address}/console/sso/callback/{service.application.orgs['Fjord'].id}"
        link = escape(f"{back}?{urlencode(response)}")
        route.fulfill(content_type="text/html", body=f'<title>Provider</title><a href="{link}">I am Ada</a>')

    context.route(f"{ISSUER}/**", provided)
    return context.new_page()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_single_sign_on_is_configured_and_used(browser: Any, service: LiveService, scripts: bool) -> None:
    page = _open_page(browser, service, java_script_enabled=scripts)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{service.address}{SECTION}/single-sign-on")
    page.get_by_label("Issuer").fill(ISSUER)
    page.get_by_label("Client ID").fill(CLIENT)
    page.get_by_label("Client secret").fill(SECRET)
    page.get_by_role("button", name="Set up").click()
    page.get_by_text("Identity provider saved").wait_for()
    page.get_by_label("Domain", exact=True).fill("fjord.example")
    page.get_by_role("button", name="Add domain").click()
    record = page.get_by_text("joinery-verification=").inner_text()
    page.get_by_role("button", name="Check now").click()
    page.get_by_text("wasn't found").wait_for()
    service.application.name_records.put("fjord.example", "TXT", record)
    page.get_by_role("button", name="Check now").click()
    page.get_by_text("Domain fjord.example verified").wait_for()
    page.get_by_role("link", name=f"Test sign-in as {EMAIL}").click()
    page.get_by_role("link", name="I am Ada").click()
    page.get_by_text("Test succeeded", exact=True).wait_for()
    page.get_by_role("button", name="Enforce single sign-on").click()
    page.get_by_text("Affected sessions that started without single sign-on have ended.").wait_for()
    if scripts:
        check_page(page, "single-sign-on")
    page.goto(
        f"{service.address}/console/sign-in?next=/console/organisation/audit"
    )  # a signed-in person is redirected immediately
    page.get_by_role("heading", name="Audit log").wait_for()
    page.goto(f"{service.address}{SECTION}/single-sign-on")
    page.get_by_role("button", name="Stop enforcing").click()
    page.get_by_role("button", name="Remove", exact=True).last.click()
    page.get_by_text("Identity provider removed").wait_for()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_text("Domain removed").wait_for()
    page.context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_change_is_undone_and_redone(browser: Any, service: LiveService, scripts: bool) -> None:
    page = _open_page(browser, service, java_script_enabled=scripts)
    for again in ("Undo…", "Undo…"):
        page.goto(f"{service.address}{SECTION}/audit?object=webhook_endpoint&undoable=true")
        page.locator("ol.entries summary").first.click()
        page.get_by_role("link", name=again).first.click()
        page.get_by_text("Nothing has changed yet.").wait_for()
        if scripts:
            check_page(page, "undo")
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Change undone").first.wait_for()
    page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")])
def test_pages_are_accessible_and_not_cut_off(browser: Any, service: LiveService, width: int, scheme: str) -> None:
    page = _open_page(browser, service, viewport={"width": width, "height": 850}, color_scheme=scheme)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    for name in PAGES:
        page.goto(f"{service.address}{SECTION}/{name}")
        page.get_by_role("navigation", name="Console").or_(page.locator(".menu-toggle")).first.wait_for(
            state="attached"
        )
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
        check_page(page, f"{name}-{scheme}-{width}")
    page.goto(service.second_address)
    page.locator(".messages summary", has_text="An invitation").click()
    page.get_by_text("Open http").wait_for()
    check_page(page, f"operators-{scheme}-{width}")
    page.goto(f"{service.address}/console/sso")
    check_page(page, f"sso-{scheme}-{width}")
    assert not faults
    page.context.close()
