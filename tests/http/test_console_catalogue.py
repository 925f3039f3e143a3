"""Console's product list: state in the address, stock and prices of rows, saved views, and actions on selected products."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from domain.bulk_actions.model import EXECUTE_BULK_ACTION, BulkAction, BulkActionKind
from domain.bulk_actions.usecases.execution import start_bulk_action
from domain.jobs.ports import JobDispatcher
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.saved_views.model import MAX_VIEWS, ListPreferences, SavedView
from domain.saved_views.ports import SavedViewStore
from domain.sources.ports import SourceStore
from entrypoints.areas.catalogue import AREA
from tests.http.application import ApplicationHarness, list_audit_entries, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.test_console_pages import check_markup
from tests.http.test_console_publishing import Vendor, vendor  # noqa: F401  # a fixture
from tests.support import builders
from tests.support.catalogues import add_products
from tests.support.console_seed import HOSTILE, seed_console

pytestmark = pytest.mark.asyncio
LIST, VIEWS, SELECTION = "/console/catalogue", "/console/catalogue/views", "/console/catalogue/selection"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def add_offers(application: ApplicationHarness, **products: list[dict[str, Any]]) -> dict[str, str]:
    """Add products of one source; each has one variant with an offer for each of the given offer data. Return the IDs."""
    owner = application.orgs["Fjord"]
    tenant, catalogue = Tenant(owner.id, True), owner.get_catalogue_id(True)
    source = builders.source(catalogue=catalogue)
    async with application.uow.begin(tenant, builders.CALL) as tx:
        await tx[SourceStore].add(source)
    made = []
    for title, offers in products.items():
        product = builders.product(source.id, catalogue, title, data={"title": title, "brand": f"Brand {title}"})
        variant = builders.variant(product, title, data={"sku": title.upper()})
        for number, data in enumerate(offers):
            builders.offer(
                variant,
                source=source.id,
                location=f"place {number}",
                data={"currency": "usd", "availability": "in_stock", **data},
            )
        made.append(product)
    await add_products(application.uow, tenant, *made, now=application.clock.now())
    return {product.data["title"]: product.id for product in made}


def read_rows(page: BrowserPage) -> dict[str, str]:
    """Return the text of each row of the list by the product's title."""
    rows = re.findall(r"<tr><td class=\"row-check\">.*?</tr>", page.text, re.DOTALL)
    titles = [re.findall(r"data-list-item>([^<]*)</a>", row)[0] for row in rows]
    return {
        unescape(title): " ".join(re.sub(r"<[^>]+>", " ", row).split()) for title, row in zip(titles, rows, strict=True)
    }


async def test_rows_show_the_stock_that_matches_the_filter(application: ApplicationHarness) -> None:
    await add_offers(
        application,
        chair=[{"availability": "in_stock", "quantity": 40}, {"availability": "low_stock", "quantity": 3}],
        lamp=[{"availability": "in_stock", "quantity": 8}],
    )
    browser = await application.open_browser()
    assert "In stock 43" in read_rows(await browser.get(LIST))["chair"]
    filtered = read_rows(await browser.get(f"{LIST}?availability=low_stock"))
    assert list(filtered) == ["chair"] and "Low stock 3" in filtered["chair"]


async def test_prices_and_msrp_are_never_mixed(application: ApplicationHarness) -> None:
    await add_offers(
        application,
        sofa=[{"price": 48499, "msrp": 60000}, {"msrp": 53900}],
        bench=[{"msrp": 10000}],
        rug=[{"cost": 700}],
    )
    browser = await application.open_browser()
    rows = read_rows(await browser.get(f"{LIST}?columns=price,msrp"))
    assert "$484.99 $539.00 to $600.00" in rows["sofa"] and "MSRP $100.00 $100.00" in rows["bench"]
    assert "Cost price $7.00 –" in rows["rug"]


async def test_the_state_is_in_the_address(application: ApplicationHarness) -> None:
    await add_offers(application, chair=[{"price": 100}], lamp=[{"price": 200}])
    browser = await application.open_browser()
    page = await browser.get(f"{LIST}?brand=Brand+chair&columns=sku,created,nonsense&sort=title&layout=nonsense")
    assert '<th scope="col">SKU</th>' in page.text and "Created</th>" in page.text and "Stock</th>" not in page.text
    assert list(read_rows(page)) == ["chair"] and '<option value="title" selected>' in page.text
    part = await browser.get(
        f"{LIST}?q=&brand=Brand+chair&min_price=&columns=sku&columns=created&sort=title&layout=grid",
        hx_request="true",
        hx_target="results",
    )
    expected = f"{LIST}?brand=Brand+chair&sort=title&columns=sku%2Ccreated&layout=grid"
    assert part.header("hx-replace-url") == expected
    assert 'id="total" class="numbers" hx-swap-oob="true">1 product<' in part.text and "product-grid" in part.text
    assert "2 products" in (await browser.get(LIST)).text


async def test_selected_values_are_removed_one_by_one_or_together(application: ApplicationHarness) -> None:
    await add_offers(application, chair=[{"price": 100}], lamp=[{"price": 200}])
    browser = await application.open_browser()
    page = await browser.get(f"{LIST}?brand=Brand+chair&brand=Gone%2C+Ltd&availability=in_stock")
    chips = page.text.partition('aria-label="Active filters"')[2].partition("</ul>")[0]
    links = [unescape(one) for one in re.findall(r'href="([^"]+)"', chips)]
    assert f"{LIST}?brand=Brand+chair&brand=Gone%2C+Ltd" in links
    assert f"{LIST}?brand=Gone%2C+Ltd&availability=in_stock" in {
        "?".join((LIST, "&".join(sorted(one.partition("?")[2].split("&"), reverse=True)))) for one in links
    }
    assert links[-1] == LIST
    assert 'value="Gone, Ltd" form="list-form" checked' in page.text


async def test_amounts_take_the_currency_of_the_products(application: ApplicationHarness) -> None:
    await add_offers(application, chair=[{"price": 10000}], lamp=[{"price": 30000}])
    browser = await application.open_browser()
    page = await browser.get(f"{LIST}?min_price=150.50")
    assert list(read_rows(page)) == ["lamp"] and "from $150.50" in page.text
    refused = await browser.get(f"{LIST}?min_price=cheap&currency=usd")
    assert refused.status == 200 and 'role="alert"' in refused.text
    check_markup(refused.text)
    for text in ("²", "9" * 5000):
        refused = await browser.get(f"{LIST}?{urlencode({'min_price': text, 'currency': 'usd'})}")
        assert refused.status == 200 and 'role="alert"' in refused.text


async def test_the_size_of_the_page_is_not_the_square_of_the_number_of_filters(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    query = urlencode([("brand", f"Brand {number}") for number in range(480)])
    page = await browser.get(f"{LIST}?{query}")
    assert page.status == 200 and len(page.body) < 600_000 and page.text.count('class="soft">Brand:') == 30


async def test_no_text_breaks_out_of_the_list(application: ApplicationHarness) -> None:
    await seed_console(application, HOSTILE)
    browser = await application.open_browser()
    every = "brand,sku,gtin,category,price,msrp,cost,stock,variants,completeness,sources,colour,size,lead_time,status,changed,created"
    for query in (f"columns={every}", "layout=grid"):
        page = await browser.get(f"{LIST}?{query}")
        check_markup(page.text)
        assert page.status == 200 and len(page.body) < 120_000
        assert page.header(
            "content-security-policy",
        ) and "cdn.example" not in (page.header("content-security-policy") or "")


async def save(browser: ConsoleBrowser, name: str, query: str = "brand=Oak", **fields: str) -> str:
    """Save a view; return its ID."""
    saved = await browser.submit(await browser.get(f"{LIST}?view=all"), VIEWS, name=name, query=query, **fields)
    assert saved.status == 303, saved.text
    [id] = re.findall(r"view=(svw_\w+)", saved.header("location") or "")
    return str(id)


async def test_a_view_is_of_its_person_until_it_is_shared(application: ApplicationHarness) -> None:
    ada, bo = await application.open_browser(), await application.open_browser(role="editor", person="Bo")
    id = await save(ada, HOSTILE[0].replace("/", ""), "brand=Oak&brand=A%26B&sort=title&evil=1")
    shown = await ada.get(f"{LIST}?view={id}&brand=Oak&brand=A%26B&sort=title")
    check_markup(shown.text)
    assert "Save changes" not in shown.text and "brand=Oak&amp;brand=A%26B&amp;sort=title" in shown.text
    assert "evil=1" not in shown.text
    assert "Save changes" in (await ada.get(f"{LIST}?view={id}&brand=Oak")).text
    assert id not in (await bo.get(LIST)).text
    place = f"{VIEWS}/{id}"
    assert (await bo.submit(await bo.get(LIST), place, action="delete")).status == 404
    tenant = Tenant(application.orgs["Fjord"].id, True)
    assert not await list_audit_entries(application, tenant, id)
    assert (await ada.submit(shown, place, action="share")).status == 303
    seen = await bo.get(f"{LIST}?view={id}")
    assert id in seen.text
    assert (await bo.submit(seen, place, action="rename", name="Taken over")).status == 403
    assert (await bo.submit(seen, place, action="default")).status == 303
    assert (await bo.get(LIST)).header("location") == f"{LIST}?view={id}&brand=Oak&brand=A%26B&sort=title"
    assert (await ada.submit(shown, place, action="rename", name="Renamed")).status == 303
    assert (await ada.submit(shown, place, action="save", query="brand=Elm")).status == 303
    assert (await ada.submit(shown, place, action="nonsense")).status == 404
    assert (await ada.submit(shown, place, action="delete")).status == 303
    assert (await bo.get(LIST)).status == 200, "the default view no longer exists"
    changes = [one.change for one in await list_audit_entries(application, tenant, id)]
    assert sorted(change.action for change in changes) == ["create", "delete", "update", "update"]


async def test_views_are_of_one_organisation_and_mode(application: ApplicationHarness) -> None:
    ada = await application.open_browser()
    id = await save(ada, "Low", shared="true")
    outsider = await application.open_browser("Oak")
    assert id not in (await outsider.get(LIST)).text
    assert (await outsider.submit(await outsider.get(LIST), f"{VIEWS}/{id}", action="delete")).status == 404
    await ada.submit(await ada.get(LIST), "/console/switch", mode="test", next=LIST)
    assert id not in (await ada.get(LIST)).text


async def test_viewers_keep_views_of_their_own_and_cannot_share(application: ApplicationHarness) -> None:
    viewer = await application.open_browser(role="viewer")
    await save(viewer, "Mine")
    page = await viewer.get(LIST)
    assert "Share with the organisation" not in page.text
    assert (await viewer.submit(page, VIEWS, name="Ours", query="", shared="true")).status == 403


async def test_invalid_views_are_refused(application: ApplicationHarness) -> None:
    ada = await application.open_browser()
    page = await ada.get(LIST)
    for name in ("", "x" * 200, "https://evil.example"):
        refused = await ada.submit(page, VIEWS, name=name, query="brand=Oak")
        assert refused.status in (200, 400) and 'role="alert"' in refused.text
        assert (await ada.get(LIST)).text.count("svw_") == 0
    long = "&".join(f"brand={'x' * 190}{number}" for number in range(60))
    assert 'role="alert"' in (await ada.submit(page, VIEWS, name="Long", query=long)).text
    tenant = Tenant(application.orgs["Fjord"].id, True)
    async with application.uow.begin(tenant, builders.CALL) as tx:
        for number in range(MAX_VIEWS):
            await tx[SavedViewStore].add(
                SavedView(
                    id=f"svw_{number:022}", person=ada.user.id, name=f"View {number}", query="q=oak",
                    created_at=tx.now, updated_at=tx.now,
                )
            )  # fmt: skip
    assert "Delete one first" in (await ada.submit(page, VIEWS, name="Too many", query="q=oak")).text


async def test_the_views_of_a_person_leave_with_the_person(application: ApplicationHarness) -> None:
    owner, editor = await application.open_browser(), await application.open_browser(role="editor", person="Bo")
    shared, own = await save(editor, "Shared", shared="true"), await save(editor, "Own", default="true")
    await editor.submit(await editor.get(f"{LIST}?view=all"), "/console/switch", mode="test", next=LIST)
    in_test = await save(editor, "In test", default="true")
    place = f"/console/organisation/members/{editor.user.id}/remove"
    assert (await owner.submit(await owner.get(place), place)).status == 303
    for livemode, kept in ((True, {shared}), (False, set[str]())):
        async with application.uow.begin_reading(Tenant(application.orgs["Fjord"].id, livemode)) as tx:
            found = {view.id for view in await tx[SavedViewStore].list_visible(editor.user.id)}
            assert found == kept and not found & {own, in_test}
            assert await tx.store(ListPreferences).get(editor.user.id) is None


async def run_actions(application: ApplicationHarness, tenant: Tenant) -> None:
    """Execute the queued actions."""
    lane = f"{tenant.org}/bulk_actions:{tenant.mode}"
    while jobs := await application.dependencies[JobDispatcher].claim(lane, 10, timedelta(seconds=30)):
        for job in jobs:
            assert job.kind == EXECUTE_BULK_ACTION
            await AREA.handler_factories[job.kind](application.uow)(job, asyncio.Event())


async def test_products_are_hidden_after_a_preview_and_listed_by_undo(vendor: Vendor) -> None:
    await vendor.publish()
    sofa, chair, _ = (product.id for product in vendor.shop.products)
    page = await vendor.owner.get(LIST)
    assert 'value="hide"' in page.text and 'value="list"' in page.text
    preview = await vendor.owner.submit(page, SELECTION, action="hide", products=sofa)
    check_markup(preview.text)
    assert preview.status == 200 and "Retailers can no longer read these products." in preview.text
    assert re.search(r"Will change</dt><dd>1<", preview.text)
    assert "Listed" in (await vendor.owner.get(f"{LIST}/{sofa}")).text, "a preview has no effect"
    started = await vendor.owner.submit(preview, SELECTION, action="hide", products=f"{sofa} {chair}", confirmed="true")
    progress = await vendor.owner.follow(started)
    assert "0 of 2 products" in progress.text and 'hx-trigger="every 1s"' in progress.text
    await run_actions(vendor.application, vendor.tenant)
    done = await vendor.owner.get(started.header("location") or "")
    assert "2 of 2 products" in done.text and "Succeeded" in done.text and "every 1s" not in done.text
    assert "Hidden" in (await vendor.owner.get(f"{LIST}/{sofa}")).text
    catalogue = vendor.application.orgs["Lindgren"].get_catalogue_id(True)
    entry = (await list_audit_entries(vendor.application, vendor.tenant, catalogue))[-1]
    assert entry.context.actor.id == vendor.owner.user.id
    place = f"/console/organisation/audit/{entry.id}/undo"
    undone = await vendor.owner.submit(await vendor.owner.get(place), place)
    assert undone.status == 303, undone.text
    assert "Listed" in (await vendor.owner.get(f"{LIST}/{sofa}")).text


async def test_an_action_that_is_refused_states_the_reason(vendor: Vendor) -> None:
    ids = [product.id for product in vendor.shop.products]
    context = AuditContext(Actor("user", vendor.owner.user.id), "bulk_actions.start")
    async with vendor.application.uow.begin(vendor.tenant, context) as tx:
        action = await start_bulk_action(tx, BulkActionKind.LIST, ids)
    await run_actions(vendor.application, vendor.tenant)
    page = await vendor.owner.get(f"{LIST}/actions/{action.id}")
    assert "Failed" in page.text and "not verified" in page.text
    outsider = await vendor.application.open_browser("Fjord")
    assert (await outsider.get(f"{LIST}/actions/{action.id}")).status == 404


async def test_an_action_of_a_person_who_may_no_longer_perform_it_ends_with_the_reason(vendor: Vendor) -> None:
    await vendor.publish()
    editor = await vendor.application.open_browser("Lindgren", role="editor")
    context = AuditContext(Actor("user", editor.user.id), "bulk_actions.start")
    for kind, role, reason in (
        (BulkActionKind.HIDE, "viewer", "no longer permits"),
        (BulkActionKind.REMATCH, None, "has left the organisation"),
    ):
        async with vendor.application.uow.begin(vendor.tenant, context) as tx:
            action = await start_bulk_action(tx, kind, [vendor.shop.products[0].id])
        await vendor.application.remove_member(editor.user, "Lindgren")
        if role:
            await vendor.application.add_member(editor.user, "Lindgren", role)
        await run_actions(vendor.application, vendor.tenant)
        page = await vendor.owner.get(f"{LIST}/actions/{action.id}")
        assert "Failed" in page.text and reason in page.text and "0 of 1 products" in page.text


async def test_all_products_that_match_are_matched_again(application: ApplicationHarness) -> None:
    ids = await add_offers(application, chair=[{"price": 1}], lamp=[{"price": 1}], shelf=[{"price": 1}])
    browser, tenant = await application.open_browser(), Tenant(application.orgs["Fjord"].id, True)
    page = await browser.get(LIST)
    assert 'value="hide"' not in page.text, "retailers have no own catalogue to hide"
    preview = await browser.submit(
        page, SELECTION, action="rematch", all="true", query="brand=Brand+chair&brand=Brand+lamp"
    )
    assert preview.status == 200, preview.text[-1500:]
    assert preview.field("products").split() == [ids["lamp"], ids["chair"]]
    started = await browser.submit(
        preview, SELECTION, action="rematch", confirmed="true", products=preview.field("products")
    )
    await run_actions(application, tenant)
    assert "2 of 2 products" in (await browser.follow(started)).text
    viewer = await application.open_browser(role="viewer")
    seen = await viewer.get(LIST)
    assert 'value="rematch"' not in seen.text
    assert (await viewer.submit(seen, SELECTION, action="rematch", products=ids["lamp"])).status == 404


async def test_a_selection_without_products_is_refused(application: ApplicationHarness) -> None:
    await add_offers(application, chair=[{"price": 1}])
    browser = await application.open_browser()
    page = await browser.get(LIST)
    for fields in ({}, {"products": "prod_' OR 1=1"}, {"products": "<script>"}):
        refused = await browser.submit(page, SELECTION, action="rematch", **fields)
        assert "Select 1 to 5,000 products." in refused.text
        check_markup(refused.text)
    assert (await browser.submit(page, SELECTION, action="nonsense", products="x")).status == 404


async def test_only_the_newest_actions_are_stored(application: ApplicationHarness) -> None:
    tenant = Tenant(application.orgs["Fjord"].id, True)
    context = AuditContext(Actor("user", "usr_1"), "bulk_actions.start")
    for _ in range(53):
        async with application.uow.begin(tenant, context) as tx:
            await start_bulk_action(tx, BulkActionKind.REMATCH, ["prod_1"])
        await run_actions(application, tenant)
    async with application.uow.begin_reading(tenant) as tx:
        stored = await tx.store(BulkAction).page(PageRequest(100))
    assert len(stored.items) == 50 and not any(action.products for action in stored.items)
