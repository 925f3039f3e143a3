"""Console page of OAuth apps: creation, changes and deletion by managers; revocation of consents."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.access.model import SCOPES
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.oauth.ports import AppStore
from domain.oauth.usecases.oauth_consents import OAuthConsentService
from entrypoints.console.rendering import LABELS
from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser

pytestmark = pytest.mark.asyncio
APPS = "/console/developers/apps"
SPITE = "<img src=x onerror=alert(1)>"
WEB = {
    "name": f"Shop {SPITE}", "kind": "web", "redirect_uris": "https://shop.test/back\n", "scope_selection": "selected",
    "scopes": "products:read",
}  # fmt: skip


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def _create_app(browser: ConsoleBrowser, **fields: str) -> tuple[BrowserPage, str, str]:
    """Create an app; return the page, the app's ID and its secret."""
    page = await browser.submit(await browser.get(f"{APPS}/new"), f"{APPS}/new", **WEB | fields)
    id_ = re.search(rf"{APPS}/(app_\w+)", page.text)
    secret = re.search(r"svc_client_\w+", page.text)
    return page, id_[1] if id_ else "", secret[0] if secret else ""


async def test_an_app_is_created_changed_and_deleted(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="admin")
    assert "No apps yet" in (await browser.get(APPS)).text
    page, id_, secret = await _create_app(browser)
    place = f"{APPS}/{id_}"
    shown = await browser.get(place)
    assert page.status == 201 and secret and secret not in shown.text and secret[-4:] in shown.text
    assert "<img" not in page.text + shown.text + (await browser.get(APPS)).text
    sent = WEB | {
        "name": "Other",
        "redirect_uris": "https://shop.test/a\nhttps://shop.test/b",
        "scope_selection": "all",
    }
    saved = await browser.follow(await browser.submit(shown, place, **sent))
    assert "App saved" in saved.text and "https://shop.test/b" in saved.text
    wrong = await browser.submit(shown, place, **sent | {"redirect_uris": 'http://shop.test/ "><b>'})
    assert wrong.status == 400 and "<b>" not in wrong.text and "redirect_uris-error" in wrong.text
    rotated = await browser.submit(await browser.get(f"{place}/rotate"), f"{place}/rotate")
    assert "svc_client_" in rotated.text and secret not in rotated.text
    assert (await browser.post(f"{place}/delete")).status == 403, "without the form's token"
    outsider = await application.open_browser("Oak")
    for below in ("", "/rotate", "/delete"):
        assert (await outsider.get(place + below)).status == 404
        assert (await outsider.submit(await outsider.get("/console"), place + below, **sent)).status == 404
    gone = await browser.follow(await browser.submit(await browser.get(f"{place}/delete"), f"{place}/delete"))
    assert "App Other deleted" in gone.text and id_ not in gone.text


async def test_public_and_machine_apps(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    page, _, secret = await _create_app(browser, kind="native", redirect_uris="com.shop.app:/back")
    assert page.status == 201 and not secret and "public app" in page.text
    page, id_, secret = await _create_app(browser, kind="machine", redirect_uris="")
    assert secret and "Redirect URIs" not in (await browser.get(f"{APPS}/{id_}")).text
    page, none, _ = await _create_app(browser, redirect_uris="", scopes="")
    assert page.status == 400 and not none


async def test_only_managers_create_apps(application: ApplicationHarness) -> None:
    _, id_, _ = await _create_app(await application.open_browser())
    developer = await application.open_browser(role="developer")
    assert id_ in (await developer.get(APPS)).text and f"{APPS}/new" not in (await developer.get(APPS)).text
    page, none, _ = await _create_app(developer)
    assert page.status == 403 and not none
    form = await developer.get(f"{APPS}/{id_}")
    assert (await developer.submit(form, f"{APPS}/{id_}", **WEB)).status == 403
    for below in ("rotate", "delete"):
        assert (await developer.submit(form, f"{APPS}/{id_}/{below}")).status == 403
    assert (await (await application.open_browser(role="billing")).get(APPS)).status == 403


async def test_grants_are_listed_and_revoked(application: ApplicationHarness) -> None:
    owner, viewer, other = (
        await application.open_browser(),
        await application.open_browser(role="viewer"),
        await application.open_browser(role="viewer"),
    )
    _, id_, _ = await _create_app(owner)
    user, org = viewer.user.id, application.orgs["Fjord"].id
    async with application.uow.begin(Tenant(org, True), AuditContext(Actor("user", user), "tests")) as tx:
        app = await tx[AppStore].get(id_)
        grant = await OAuthConsentService.ensure_consent(tx, app, user, frozenset({"products:read"}))
    place = f"{APPS}/grants/{grant.id}/revoke"
    assert place in (await owner.get(APPS)).text and place not in (await other.get(APPS)).text
    assert (await other.submit(await other.get(APPS), place)).status == 404
    mine = await viewer.get(APPS)
    assert "View products" in mine.text and "<img" not in mine.text
    gone = await viewer.follow(await viewer.submit(mine, place))
    assert "Access revoked" in gone.text and place not in gone.text


async def test_every_scope_has_a_label() -> None:
    assert LABELS["permissions"].keys() == SCOPES
    assert LABELS["scope_resources"].keys() == {scope.partition(":")[0] for scope in SCOPES}
