"""Pages of vendors, and of the catalogues that retailers read, in Chromium: all states, live progress and keyboard."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from domain.agreements.model import AgreementKind
from domain.agreements.usecases.publication import AgreementPublisher
from domain.catalogue.model import LicenceBasis
from domain.kernel.tenancy import Tenant
from domain.publishing.usecases.licences import LicenceService
from tests.browser.page_checks import check_page
from tests.browser.service import LiveService, run_service
from tests.http.application import OPERATOR, ApplicationHarness, create_plan
from tests.http.test_agreements import create_token_client, sign
from tests.http.test_brand import Brands
from tests.http.test_console_publishing import Vendor
from tests.http.test_demand import create_shops, release, send
from tests.support.memory.hosts import MemoryWeb
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.browser
CATALOGUE, BRAND, AGREEMENT = "/console/publishing", "/console/brand", "/console/organisation/agreement"
TEXT = "# Data agreement\n\nYou permit us to publish **your data**.\n\n## Term\n\n- until you withdraw the catalogue\n"
EVIDENCE = ("email_domain", "dns_txt", "site_tag", "document")
SIGNALS = ("view", "save", "quote", "cart")
PageState = tuple[str, str, str, str]
"""Name of the picture, cookie, path and text that proves the state."""


async def _create_vendor(application: ApplicationHarness, name: str) -> Vendor:
    """Create a vendor with two products that can be published and one that cannot."""
    made = await application.create_organisation(name, create_plan("standard", "standard"), "vendor")
    shop = MergedCatalogue(application.uow, Tenant(made.id, True))
    catalogue = made.get_catalogue_id(True)
    own = await shop.create_source(name=f"{name} feed", catalogue=catalogue, licence_basis=LicenceBasis.OWN_DATA)
    gathered = await shop.create_source(name="Gathered prices", catalogue=catalogue)
    await shop.load_product(
        own, "HAL-1", "oak", "walnut", title="Halden lounge chair with a woven paper cord seat", brand=name
    )
    await shop.load_product(own, "SVE-2", "oak", title="Svelvik sideboard", brand=name)
    await shop.load_product(gathered, "LUM-3", "brass", title="Lumen pendant lamp")
    return Vendor(application, shop, await application.open_browser(name))


def _get_cookie(browser: Any) -> str:
    return str(next(iter(browser.cookies.values())))


async def _publish_agreement(vendor: Vendor, text: str = TEXT, *, accepts: bool) -> None:
    publisher = vendor.application.dependencies[AgreementPublisher]
    agreement = await publisher.publish(AgreementKind.VENDOR_DATA, "Data agreement", text.encode(), 30)
    if accepts:
        client, _ = await create_token_client(vendor.application, "Lindgren", "owner")
        assert (await sign(client, agreement)).status == 201


async def _prepare_new_vendor(application: ApplicationHarness) -> list[PageState]:
    """Create a vendor without data, before the operator has published an agreement or a profile."""
    await application.create_organisation("Lindgren", create_plan("standard", "standard"), "vendor")
    owner, retailer = [_get_cookie(await application.open_browser(name)) for name in ("Lindgren", "Fjord")]
    return [
        ("new-home", owner, "/console", "Welcome to Joinery"),
        ("new-brand", owner, BRAND, "No claims yet"),
        ("new-claim", owner, f"{BRAND}/claims/new", "Select a profile"),
        ("new-agreement", owner, AGREEMENT, "Not available"),
        ("new-publishing", owner, CATALOGUE, "Before you publish"),
        ("new-publish", owner, f"{CATALOGUE}/publish", "not verified"),
        ("new-variants", owner, f"{CATALOGUE}/variants", "No variants yet"),
        ("new-licences", owner, f"{CATALOGUE}/licences", "No licences yet"),
        ("new-demand", owner, "/console/demand", "No numbers in this period"),
        ("new-directory", retailer, "/console/vendors", "No vendors found"),
    ]


async def _prepare_unverified_vendor(application: ApplicationHarness) -> list[PageState]:
    """Create a vendor with products and undecided claims, which has not accepted the agreement."""
    vendor = await _create_vendor(application, "Lindgren")
    client = await application.create_client("Lindgren")
    assert (await client.send_json("PATCH", "/v1/brand", {"brands": ["Lindgren", "Halden"]})).status == 200
    brands = Brands(application, MemoryWeb(), client, client)
    rejected = await brands.claim(await brands.create_profile(name="Oak Mill", brands=("Oak Mill",)), "dns_txt")
    await brands.decide("reject", rejected["id"], vendor.tenant)
    profile = await brands.create_profile(brands=tuple(f"Fjord {number}" for number in range(8)))
    withdrawn = await brands.claim(profile, "site_tag")
    await brands.post(client, f"claims/{withdrawn['id']}/withdraw")
    pending = await brands.check(await brands.claim(profile, *EVIDENCE, document="Trade mark 018273645"))
    await _publish_agreement(vendor, accepts=False)
    owner, viewer = _get_cookie(vendor.owner), _get_cookie(await application.open_browser("Lindgren", "viewer"))
    product = f"/console/catalogue/{vendor.shop.products[0].id}"
    return [
        ("unverified-home", owner, "/console", "Lindgren feed"),
        ("unverified-brand", owner, BRAND, "Pending"),
        ("unverified-brand-viewer", viewer, BRAND, "Halden"),
        ("unverified-directory", owner, "/console/vendors", "and 3 more"),
        ("unverified-directory-none", owner, "/console/vendors?q=nothing", "Change the filters"),
        ("unverified-new-claim", owner, f"{BRAND}/claims/new?profile={profile}", "Invitation code"),
        ("claim-pending", owner, f"{BRAND}/claims/{pending['id']}", "Check evidence"),
        ("claim-rejected", owner, f"{BRAND}/claims/{rejected['id']}", "Rejected"),
        ("claim-withdrawn", owner, f"{BRAND}/claims/{withdrawn['id']}", "Claim withdrawn"),
        ("agreement-required", owner, AGREEMENT, "Not accepted"),
        ("agreement-viewer", viewer, AGREEMENT, "Only owners and admins"),
        ("agreement-version", owner, f"{AGREEMENT}/versions/1", "until you withdraw"),
        ("unverified-publishing", owner, CATALOGUE, "Accept the agreement"),
        ("unverified-variants", owner, f"{CATALOGUE}/variants", "Svelvik"),
        ("unverified-product", owner, product, "As a retailer sees it"),
        ("unverified-retailer", owner, f"{product}/retailer", "This product isn't listed."),
    ]


async def _prepare_verified_vendor(application: ApplicationHarness) -> list[PageState]:
    """Create a verified vendor with a new version of the agreement, whose catalogue is not published."""
    vendor = await _create_vendor(application, "Lindgren")
    client = await application.create_client("Lindgren")
    brands = Brands(application, MemoryWeb(), client, client)
    claim = await brands.claim(await brands.create_profile(), "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    await _publish_agreement(vendor, accepts=True)
    await _publish_agreement(vendor, f"{TEXT}- or until you leave\n", accepts=False)
    owner = _get_cookie(vendor.owner)
    return [
        ("verified-brand", owner, BRAND, "Ask the operator"),
        ("claim-approved", owner, f"{BRAND}/claims/{claim['id']}", "Approved"),
        ("agreement-grace", owner, AGREEMENT, "Accept by"),
        ("verified-publishing", owner, CATALOGUE, "Not published."),
        ("verified-publish", owner, f"{CATALOGUE}/publish", "Gathered prices"),
    ]


async def _create_published_vendor(application: ApplicationHarness) -> Vendor:
    """Create a vendor with a published catalogue."""
    vendor = await _create_vendor(application, "Lindgren")
    await vendor.verify()
    await _publish_agreement(vendor, accepts=True)
    client = await application.create_client("Lindgren")
    assert (await client.post("/v1/catalogue/publish", {})).status == 202
    await vendor.work()
    return vendor


async def _prepare_published_vendor(application: ApplicationHarness) -> list[PageState]:
    """Create a vendor with a published catalogue, a hidden product, a licence and demand, and a retailer that reads it."""
    vendor = await _create_published_vendor(application)
    client, (chair, sideboard, lamp) = await application.create_client("Lindgren"), vendor.shop.products
    async with application.uow.begin(vendor.tenant, OPERATOR) as tx:
        await LicenceService().grant(tx, application.orgs["Fjord"].id, ["stock"])
    await _send_signals(application, [chair.id, sideboard.id])
    hidden = {"products": [sideboard.id], "visibility": "hidden"}
    assert (await client.post("/v1/catalogue/visibility", hidden)).json()["changed"] == 1
    owner, retailer = [_get_cookie(await application.open_browser(name)) for name in ("Lindgren", "Fjord")]
    return [
        ("published-home", owner, "/console", "Gathered prices"),
        ("published-brand", owner, BRAND, "Verified"),
        ("agreement-accepted", owner, AGREEMENT, "Ada Moreau"),
        ("published-publishing", owner, CATALOGUE, "Published since"),
        ("published-publish", owner, f"{CATALOGUE}/publish", "already published"),
        ("published-withdraw", owner, f"{CATALOGUE}/withdraw", "becomes unlisted"),
        ("published-variants", owner, f"{CATALOGUE}/variants", "Hidden"),
        ("published-variants-hidden", owner, f"{CATALOGUE}/variants?visibility=hidden", "Svelvik"),
        ("published-variants-none", owner, f"{CATALOGUE}/variants?q=nothing", "No variants found"),
        ("published-licences", owner, f"{CATALOGUE}/licences", "Fjord"),
        ("published-product", owner, f"/console/catalogue/{chair.id}", "Listed"),
        ("published-retailer", owner, f"/console/catalogue/{chair.id}/retailer", "Retailers without a licence"),
        ("hidden-product", owner, f"/console/catalogue/{sideboard.id}", "Hidden"),
        ("hidden-retailer", owner, f"/console/catalogue/{sideboard.id}/retailer", "This product isn't listed."),
        ("published-demand", owner, "/console/demand?period=7d", "oak sideboard"),
        ("published-demand-quarter", owner, "/console/demand?period=90d", "oak sideboard"),
        ("retailer-directory", retailer, "/console/vendors", "Lindgren"),
        ("retailer-products", retailer, "/console/catalogue", "Halden"),
        ("retailer-product", retailer, f"/console/catalogue/{chair.id}", "From another organisation's catalogue"),
        ("retailer-missing", retailer, f"/console/catalogue/{lamp.id}", "or it is not visible to you.\n"),
    ]


async def _send_signals(application: ApplicationHarness, products: list[str]) -> None:
    """Send signals of five organisations on three days, and release them."""
    shops = await create_shops(application, 5)
    for day in range(3):
        moment = {"occurred_at": application.clock.now().isoformat()}
        signals = [{"type": kind, "product": product} | moment for kind in SIGNALS for product in products[day // 2 :]]
        for shop in shops:
            answer = await send(shop, *signals, {"type": "search_miss", "query": "oak sideboard"} | moment)
            assert answer.json()["rejected"] == []
        application.clock.advance(timedelta(days=1))
    await release(application)


STATES = {
    "new": _prepare_new_vendor,
    "unverified": _prepare_unverified_vendor,
    "verified": _prepare_verified_vendor,
    "published": _prepare_published_vendor,
}


@pytest.fixture(scope="module", params=STATES)
def service(request: pytest.FixtureRequest) -> Iterator[LiveService]:
    """Run the console with the pages of a state."""
    prepare: Callable[[ApplicationHarness], Awaitable[list[PageState]]] = STATES[request.param]

    async def prepare_states(application: ApplicationHarness) -> dict[str, Any]:
        return {"states": await prepare(application)}

    with run_service(prepare_states, web=MemoryWeb()) as made:
        yield made


def _open_page(browser: Any, service: LiveService, cookie: str, **more: Any) -> Any:
    context = browser.new_context(reduced_motion="reduce", **more)
    context.add_cookies([{"name": "joinery", "value": cookie, "url": service.address}])
    return context.new_page()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_pages_are_accessible_and_not_cut_off(browser: Any, service: LiveService, width: int, scheme: str) -> None:
    faults: list[Any] = []
    pages: dict[str, Any] = {}
    for name, cookie, path, text in service.prepared["states"]:
        if cookie not in pages:
            size = {"width": width, "height": 850}
            page = pages[cookie] = _open_page(browser, service, cookie, viewport=size, color_scheme=scheme)
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on(
                "console",
                lambda message: (
                    faults.append(message.text)
                    if message.type in ("error", "warning") and "status of 4" not in message.text
                    else None
                ),
            )
        page = pages[cookie]
        page.goto(service.address + path)
        assert text in page.inner_text("main"), (name, page.inner_text("main"))
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
        try:
            check_page(page, f"vendor-{name}-{scheme}-{width}")
        except AssertionError as error:
            faults.append((name, str(error)[:400]))
    for page in pages.values():
        page.context.close()
    assert not faults


async def _prepare_claimable_profile(application: ApplicationHarness) -> dict[str, Any]:
    """Create a vendor, a profile that it can claim, and an agreement that it can accept."""
    vendor = await _create_vendor(application, "Lindgren")
    client = await application.create_client("Lindgren")
    await Brands(application, MemoryWeb(), client, client).create_profile()
    await _publish_agreement(vendor, accepts=False)
    return {"vendor": vendor}


async def _prepare_publication(application: ApplicationHarness) -> dict[str, Any]:
    return {"vendor": await _create_published_vendor(application)}


@pytest.fixture
def vendor_service(request: pytest.FixtureRequest) -> Iterator[LiveService]:
    """Run the console with the vendor that the parameter creates."""
    with run_service(request.param, web=MemoryWeb()) as made:
        yield made


@pytest.mark.parametrize("vendor_service", [_prepare_claimable_profile], indirect=True)
def test_a_vendor_publishes_with_the_keyboard(browser: Any, vendor_service: LiveService) -> None:
    vendor: Vendor = vendor_service.prepared["vendor"]
    page = _open_page(browser, vendor_service, _get_cookie(vendor.owner))

    def press(*keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)

    page.goto(f"{vendor_service.address}{BRAND}")
    page.get_by_label("Website domain").fill("not a domain")
    press("Enter")
    page.locator(".field.invalid").wait_for()
    check_page(page, "vendor-brand-invalid")

    page.goto(f"{vendor_service.address}/console/vendors?q=fjord")
    page.get_by_role("link", name="Claim Fjord Furniture").press("Enter")
    page.get_by_label("DNS record").press("Space")
    page.get_by_label("Document").fill("Trade mark 018273645")
    press("Tab", "Enter")
    page.get_by_text("Claim created").wait_for()
    name, value = page.locator(".copyable code").all_inner_texts()
    vendor.application.name_records.put(name, "TXT", value)
    page.get_by_role("button", name="Check evidence").press("Enter")
    page.get_by_text("Evidence checked").wait_for()
    assert page.locator(".page-head .badge").inner_text() == "Approved"

    page.goto(f"{vendor_service.address}{CATALOGUE}")
    page.get_by_role("link", name="Accept the agreement").press("Enter")
    page.get_by_label("Your name").press("Tab")
    page.keyboard.type("CEO")
    press("Shift+Tab")
    page.keyboard.type("Ada Moreau")
    press("Tab", "Tab", "Space", "Tab", "Enter")
    page.get_by_text("Agreement accepted").wait_for()

    page.goto(f"{vendor_service.address}{CATALOGUE}")
    page.get_by_role("link", name="Publish…").press("Enter")
    page.get_by_role("button", name="Publish").press("Enter")
    page.get_by_text("Queued").wait_for()
    assert not page.get_by_role("link", name="Refresh").is_visible()
    check_page(page, "vendor-publishing-queued")
    vendor_service.run(vendor.work())
    page.get_by_text("3 of 3 products").wait_for()
    page.get_by_text("Succeeded").wait_for()
    page.context.close()


@pytest.mark.parametrize("vendor_service", [_prepare_publication], indirect=True)
def test_a_vendor_hides_and_withdraws_without_scripts(browser: Any, vendor_service: LiveService) -> None:
    vendor: Vendor = vendor_service.prepared["vendor"]
    page = _open_page(browser, vendor_service, _get_cookie(vendor.owner), java_script_enabled=False)
    page.goto(f"{vendor_service.address}{CATALOGUE}/variants?q=svelvik")
    page.get_by_role("button", name="Hide the product Svelvik sideboard").click()
    page.get_by_text("Product hidden").wait_for()
    page.goto(f"{vendor_service.address}{CATALOGUE}/licences")
    page.get_by_label("Organisation", exact=True).fill("Fjord")
    page.get_by_label("Stock").check()
    page.get_by_role("button", name="Grant").click()
    page.get_by_text("Licence of Fjord granted").wait_for()
    page.get_by_role("link", name="Withdraw…").click()
    page.get_by_role("button", name="Withdraw").click()
    vendor_service.run(vendor.work())
    page.get_by_role("link", name="Refresh").click()
    page.get_by_text("Not published.").wait_for()
    page.context.close()
