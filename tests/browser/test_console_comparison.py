"""Comparison of products in Chromium: accessible, without cut off content, usable by keyboard and on a phone, printable."""

from collections.abc import Iterator
from typing import Any

import pytest

from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from tests.browser.page_checks import PICTURES, check_page
from tests.browser.service import LiveService, run_service
from tests.browser.test_site import NARROW, WIDE
from tests.http.application import OPERATOR, ApplicationHarness
from tests.support import builders
from tests.support.catalogues import add_products
from tests.support.memory.limits import UnlimitedRates
from tests.support.memory.objects import MemoryObjects

pytestmark = pytest.mark.browser
PATH = "/console/catalogue/compare"
STICKY = "document.querySelector('.compared tbody th').getBoundingClientRect().left - document.querySelector('.compare').getBoundingClientRect().left"


async def _prepare(application: ApplicationHarness) -> dict[str, Any]:
    owner = application.orgs["Fjord"]
    source = builders.source(
        name="Lindgren price list", catalogue=owner.get_catalogue_id(True), licence_basis="vendor_agreement", created_at=application.clock.now()
    )  # fmt: skip
    async with application.uow.begin(Tenant(owner.id, True), OPERATOR) as tx:
        await tx[SourceStore].add(source)
    products = []
    for number, title in enumerate(("Oak dining table", "Walnut dining table with a rather long name", "Ash table")):
        product = builders.product(source.id, source.catalogue, title, data={"title": title, "brand": "Lindgren"})
        for colour in ("Natural", "Black"):
            facts = {
                "sku": f"T-{number}-{colour}", "title": colour, "colour": colour, "materials": [title.split()[0]],
                "dimensions": {"width": {"hundredths_in": 6300 + number, "given": {"value": 160.0 + number, "unit": "cm"}}},
            }  # fmt: skip
            offer = {"currency": "usd", "price": 50000 + 1000 * number, "msrp": 90000, "quantity": number, "availability": "in_stock", "lead_time_days": 7 * (3 - number)}  # fmt: skip
            variant = builders.variant(product, f"{title} {colour}", data=facts)
            builders.offer(variant, data=offer | ({"cost": 30000} if number < 2 else {}))
        products.append(product)
    await add_products(application.uow, Tenant(owner.id, True), *products)
    browser = await application.open_browser()
    return {"cookie": next(iter(browser.cookies.values())), "products": [product.id for product in products]}


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with run_service(_prepare, limits=UnlimitedRates(), objects=MemoryObjects()) as made:
        yield made


def open_page(service: LiveService, browser: Any, *, signed_in: bool = True, **options: Any) -> Any:
    context = browser.new_context(reduced_motion="reduce", **options)
    if signed_in:
        context.add_cookies([{"name": "joinery", "value": service.prepared["cookie"], "url": service.address}])
    return context.new_page()


def press_enter(page: Any, control: Any) -> None:
    """Press Enter on a control, and wait for the page to which it leads."""
    with page.expect_navigation():
        control.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_comparisons_are_accessible_and_not_cut_off(
    browser: Any, service: LiveService, size: dict[str, int], scheme: str
) -> None:
    page = open_page(service, browser, viewport=size, color_scheme=scheme, bypass_csp=True)
    ids, name = service.prepared["products"], f"{size['width']}-{scheme}"
    for place, title in (
        (f"{PATH}?products={','.join(ids)}&q=oak", "products"),
        (f"{PATH}?products={ids[0]}&by=source", "sources"),
        (PATH, "empty"),
        (f"{PATH}/vendors", "vendors"),
    ):
        page.goto(service.address + place)
        check_page(page, f"comparison-{title}-{name}")
    page.context.close()


def test_row_headings_stay_while_columns_are_scrolled(browser: Any, service: LiveService) -> None:
    page = open_page(service, browser, viewport=NARROW)
    page.goto(f"{service.address}{PATH}?products={','.join(service.prepared['products'])}")
    page.locator(".compare").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.compare').scrollLeft > 100")
    assert abs(page.evaluate(STICKY)) < 3
    page.context.close()


def test_a_comparison_is_made_and_shared_by_keyboard_without_scripts(browser: Any, service: LiveService) -> None:
    page = open_page(service, browser, viewport=WIDE, java_script_enabled=False)
    page.goto(service.address + PATH)
    for word in ("oak", "ash"):
        page.get_by_label("Search products to add").fill(word)
        press_enter(page, page.get_by_label("Search products to add"))
        press_enter(page, page.get_by_role("link", name="Add").first)
    headings = page.locator(".compared thead .compared-title")
    assert headings.all_text_contents() == ["Oak dining table", "Ash table"]
    press_enter(page, page.get_by_role("link", name="Move Ash table to the left"))
    assert headings.all_text_contents() == ["Ash table", "Oak dining table"]
    page.get_by_label("Variant of Ash table").select_option(label="Black")
    press_enter(page, page.get_by_role("button", name="Show selected variants"))
    assert page.locator("tr", has_text="Colour").locator("td").first.text_content().strip() == "Black"
    press_enter(page, page.get_by_role("link", name="Only differences"))
    assert page.locator("tr", has_text="Brand").count() == 0
    press_enter(page, page.get_by_role("button", name="Create link"))
    url = (
        page.locator("section:has(#links), section:has-text('Open links')")
        .get_by_role("link", name="Open")
        .first.get_attribute("href")
    )
    anybody = open_page(service, browser, signed_in=False, viewport=NARROW, bypass_csp=True)
    anybody.goto(url)
    assert "Ash table" in anybody.content() and "Cost price" not in anybody.content()
    check_page(anybody, "comparison-shared")
    page.get_by_role("button", name="Revoke").first.press("Enter")
    assert anybody.goto(url).status == 404
    page.context.close()
    anybody.context.close()


def test_the_printed_page_has_only_the_table(browser: Any, service: LiveService) -> None:
    page = open_page(service, browser, viewport={"width": 1050, "height": 740}, color_scheme="dark")
    page.goto(f"{service.address}{PATH}?products={','.join(service.prepared['products'])}")
    page.emulate_media(media="print", color_scheme="dark")
    for selector in (
        ".sidebar",
        ".compare-search",
        ".compare-bar",
        ".compared-controls",
        ".compared select",
        ".not-printed",
        ".tabs",
    ):
        assert not page.locator(selector).first.is_visible(), selector
    assert page.locator(".compared").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/comparison-printed.png", full_page=True)
    page.context.close()
