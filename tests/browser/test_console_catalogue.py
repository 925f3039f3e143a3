"""Product list and product page in Chromium: filters, keys, selection, saved views, pictures and phones."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.files.workspaces import FileWorkspaces
from domain.catalogue import categories
from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from tests.browser.console import LiveConsole
from tests.browser.page_checks import PICTURES, find_violations
from tests.browser.service import run_service
from tests.http.application import ApplicationHarness
from tests.support import builders
from tests.support.catalogues import add_products
from tests.support.console_seed import SeededOrganisation
from tests.support.memory.limits import UnlimitedRates
from tests.support.readers import create_in_process_readers
from tests.support.services import ExternalFakes

pytestmark = pytest.mark.browser
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
_DEMO_PICTURES = sorted((Path(__file__).parents[2] / "entrypoints/demo/data/pictures").glob("*.jpg"))
_KINDS = (
    ("Oak dining table", "Ferm Living", "dining_tables"),
    ("Walnut lounge chair with a name that has to break somewhere", "Lindgren Möbler", "chairs"),
    ("Linen sofa, three seats", "Halden", "sofas"),
    ("Brass floor lamp", "Ferm Living", "floor_lamps"),
    ("Ash sideboard", "Lindgren & Falk", "sideboards"),
)
_STOCKS = ("in_stock", "low_stock", "out_of_stock")
COUNT = 45


@pytest.fixture(scope="module")
def console() -> Iterator[LiveConsole]:
    outside = ExternalFakes()
    given: dict[str, Any] = {
        "connectors": outside.connectors,
        "objects": outside.objects,
        "limits": UnlimitedRates(),
        "feed_readers": create_in_process_readers(outside.connectors),
    }
    with run_service(_prepare, workspaces=FileWorkspaces(), **given) as made:
        yield LiveConsole(made.address, **made.prepared)


async def _prepare(application: ApplicationHarness) -> Mapping[str, Any]:
    """Create 45 products of two sources, each with three variants; each variant has a picture of its own."""
    now, owner = application.clock.now(), application.orgs["Fjord"]
    tenant, catalogue = Tenant(owner.id, True), owner.get_catalogue_id(True)
    sources = [builders.source(name=name, catalogue=catalogue) for name in ("Nordic Trade", "Halden feed")]
    async with application.uow.begin(tenant, builders.CALL) as tx:
        for source in sources:
            await tx[SourceStore].add(source)
    products = []
    for number in range(COUNT):
        title, brand, slug = _KINDS[number % len(_KINDS)]
        data = {
            "title": f"{title} {number}",
            "brand": brand,
            "description": "Made to order.",
            "media": [_picture(number)],
        }
        if category := categories.find_id_by_slug(slug):
            data["category"] = category
        product = builders.product(sources[0].id, catalogue, f"p-{number}", data=data)
        for index, colour in enumerate(
            ("Brown", "Black", "White") if number else [f"Colour {one}" for one in range(15)]
        ):
            facts = {
                "sku": f"SKU-{number}-{index}", "title": colour, "colour": colour, "media": [_picture(number + index + 100)],
                "weight": {"hundredths_lb": 14200, "given": {"value": 64410, "unit": "g"}},
                "dimensions": {side: {"hundredths_in": 3150, "given": {"value": 80.0, "unit": "cm"}} for side in ("width", "depth")},
            }  # fmt: skip
            variant = builders.variant(product, f"p-{number}-{index}", data=facts)
            stock = {"availability": _STOCKS[index % 3], "quantity": (25, 3, 0)[index % 3]}
            prices = {"price": 19900 + 100 * number} if number % 4 else {"msrp": 59900}
            builders.offer(
                variant,
                source=sources[0].id,
                location="main",
                observed_at=now,
                data={"currency": "usd", **prices, **stock},
            )
            builders.offer(
                variant,
                source=sources[1].id,
                location="east",
                observed_at=now,
                data={"currency": "usd", "msrp": 48900, **stock},
            )
        products.append(product)
    await add_products(application.uow, tenant, *products, now=now)
    browsers = [await application.open_browser(), await application.open_browser("Oak")]
    cookies = [next(iter(one.cookies.values())) for one in browsers]
    data = SeededOrganisation(tenant, products, [source.id for source in sources])
    return {"cookie": cookies[0], "empty_cookie": cookies[1], "data": data}


def _picture(number: int) -> dict[str, Any]:
    return {"id": f"img_{number:022}", "url": f"https://cdn.example/{number}.jpg", "role": "hero", "alt": ""}


def open_page(console: LiveConsole, browser: Any, path: str = "/console/catalogue", **more: Any) -> Any:
    """Open a page, in which every picture of the service is one of the demo; requests to other hosts are recorded."""
    page = console.open_context(browser, **{"viewport": WIDE, **more}).new_page()
    page.foreign, page.faults = [], []
    page.on(
        "request", lambda request: None if request.url.startswith(console.address) else page.foreign.append(request.url)
    )
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)

    def fulfil(route: Any) -> None:
        digits = "".join(filter(str.isdigit, route.request.url.partition("img_")[2].partition("?")[0]))
        route.fulfill(path=str(_DEMO_PICTURES[int(digits or 0) % len(_DEMO_PICTURES)]), content_type="image/jpeg")

    page.route("**/console/pictures/**", fulfil)
    page.goto(console.address + path)
    return page


def take_picture(page: Any, name: str, *, full_page: bool = False) -> None:
    if PICTURES:
        page.wait_for_timeout(300)
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=full_page)


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light")])
@pytest.mark.parametrize(
    "query", ["", "layout=grid", "availability=low_stock&q=table&columns=price,msrp,sku,stock,completeness"]
)
def test_the_list_is_accessible_and_fits(
    browser: Any, console: LiveConsole, size: Any, scheme: str, query: str
) -> None:
    page = open_page(
        console, browser, f"/console/catalogue?view=all&{query}", viewport=size, color_scheme=scheme, bypass_csp=True
    )
    take_picture(page, f"list-{size['width']}-{scheme}-{query.partition('=')[0] or 'plain'}")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert find_violations(page) == []
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.foreign == [] and page.faults == []
    page.context.close()


def test_a_phone_shows_at_least_five_products(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser, "/console/catalogue?columns=price,msrp,stock", viewport=PHONE)
    boxes = [cell.bounding_box() for cell in page.locator(".products tbody tr:first-child .main-cell").all()]
    assert len(boxes) == 2 and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"], boxes
    bottoms = page.evaluate(
        "[...document.querySelectorAll('.products tbody tr')].map(row => row.getBoundingClientRect().bottom)"
    )
    assert len([bottom for bottom in bottoms if bottom <= PHONE["height"]]) >= 5, bottoms[:6]
    page.context.close()


def test_facets_apply_at_once_and_are_in_the_address(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser)
    assert page.locator("#total").inner_text() == f"{COUNT} products"
    page.locator("#filters label", has_text="Ferm Living").click()
    page.wait_for_url("**brand=Ferm+Living**")
    page.wait_for_selector("#total:text-is('18 products')")
    page.locator("#filters label", has_text="Halden").first.click()
    page.wait_for_selector("#total:text-is('27 products')")
    assert page.locator(".active-filters li").count() == 3
    assert page.evaluate("document.activeElement.name") == "brand"
    page.reload()
    assert page.locator("#total").inner_text() == "27 products"
    page.locator(".active-filters a", has_text="Ferm Living").click()
    assert page.locator("#total").inner_text() == "9 products"
    page.locator(".active-filters a", has_text="Clear all").click()
    assert page.locator("#total").inner_text() == f"{COUNT} products"
    assert page.faults == []
    page.context.close()


def test_few_keys_lead_to_the_products(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to products"
    page.keyboard.press("Enter")
    presses = 0
    while not page.evaluate("!!document.activeElement.closest('[data-list-item]')"):
        page.keyboard.press("Tab")
        presses += 1
        assert presses < 8
    page.keyboard.press("j")
    title = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("x")
    assert page.locator("[data-selected-text]").inner_text() == "1 selected"
    page.keyboard.press("x")
    assert page.locator("[data-selection]").is_hidden()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.locator(f"a:text-is('{title}')").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h1:has-text('{title}')")
    page.context.close()


def test_a_view_is_saved_and_shared_and_becomes_the_default(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser)
    page.locator("#filters label", has_text="Low stock").click()
    page.wait_for_url("**availability=low_stock**")
    page.select_option("#sort", "title")
    page.wait_for_url("**sort=title**")
    page.locator("summary", has_text="Save view…").click()
    page.fill("#f-view-name", "Low stock")
    page.check("#f-view-shared")
    page.check("#f-view-default")
    take_picture(page, "save-view")
    page.locator("button", has_text="Save view").click()
    assert page.locator(".views [aria-current]").inner_text() == "Low stock"
    page.goto(console.address + "/console/catalogue")
    assert "availability=low_stock" in page.url and "sort=title" in page.url
    page.locator("#filters label", has_text="Ferm Living").click()
    page.wait_for_url("**brand=Ferm+Living**")
    page.locator(".views a", has_text="All products").click()
    assert page.locator("#total").inner_text() == f"{COUNT} products"
    page.locator(".views a", has_text="Low stock").click()
    page.locator("summary", has_text="Edit view").click()
    take_picture(page, "edit-view")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("button", has_text="Delete").click()
    page.wait_for_selector(".notice:has-text('View deleted')")
    assert page.locator(".views a", has_text="Low stock").count() == 0
    page.context.close()


def test_selected_products_are_matched_again(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser)
    page.check("[data-select-page]")
    take_picture(page, "selection")
    assert page.locator("[data-selected-text]").inner_text() == "30 selected"
    page.check("[name=all]")
    page.locator("[data-selection] button", has_text="Match again").click()
    page.wait_for_selector(f"main:has-text('{COUNT} products')")
    take_picture(page, "selection-preview")
    page.locator("main form button", has_text="Match again").click()
    page.wait_for_selector("#progress")
    take_picture(page, "selection-progress")
    page.context.close()


def test_everything_works_without_scripts(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser, java_script_enabled=False)
    page.locator("#filters label", has_text="Ferm Living").locator("input").check()
    page.locator("#filters button", has_text="Apply").click()
    assert page.locator("#total").inner_text() == "18 products"
    page.locator("tbody input[name=products]").first.check()
    page.locator("button", has_text="Match again").click()
    assert "1 product" in page.locator("main").inner_text()
    page.context.close()


def test_failures_to_load_are_shown(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser)
    page.route("**/console/catalogue?*", lambda route: route.abort())
    page.locator("#filters label", has_text="Ferm Living").click()
    page.wait_for_selector("[data-load-failed]:not([hidden])")
    page.context.close()


def test_the_product_shows_the_chosen_variant(browser: Any, console: LiveConsole) -> None:
    product = console.data.products[0]
    page = open_page(console, browser, f"/console/catalogue/{product.id}", viewport=WIDE)
    first = page.locator(".main-image img").get_attribute("src")
    rows = page.locator("#variants ~ .table tbody tr")
    assert rows.count() == 15
    region = page.locator("#variants ~ .table").evaluate("each => each.scrollHeight <= each.clientHeight + 1")
    assert region, "the variants are cut off"
    rows.nth(4).locator("a").click()
    page.wait_for_url("**variant=**")
    assert page.locator(".main-image img").get_attribute("src") != first
    assert "img_0000000000000000000104" in page.locator(".main-image img").get_attribute("src")
    page.wait_for_selector("#history svg")
    labels = page.locator("#history section:has(h3:text-is('Stock')) .tick-label.end").all_text_contents()
    assert "0" in labels, labels
    assert "142 lb (64,410 g)" in page.locator("main").inner_text()
    take_picture(page, "product", full_page=True)
    assert page.foreign == []
    page.goto(f"{console.address}/console/catalogue/{console.data.products[1].id}")
    assert page.locator(".badge", has_text="Lowest price").count() == 0, "an MSRP is not compared with a price"
    page.context.close()


def test_rows_show_the_stock_by_which_the_list_is_filtered(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser, "/console/catalogue?availability=low_stock")
    badges = set(page.locator(".products tbody .badge").all_inner_texts())
    assert badges == {"Low stock"}
    page.context.close()
