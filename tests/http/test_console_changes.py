"""Changes of the catalogue since a person last viewed them."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.events.model import Event, FieldChange
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.support import builders
from tests.support.catalogues import add_products

pytestmark = pytest.mark.asyncio
SPITE = "<img src=x onerror=alert(1)>\"'{{7*7}}"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def add_changes(application: ApplicationHarness, title: str, *changes: FieldChange, org: str = "Fjord") -> None:
    """Add a product with an offer, and an event of the offer for each change."""
    tenant = Tenant(application.orgs[org].id, True)
    product = builders.product(new_id("src"), new_id("cat"), new_id("prod"), data={"title": title})
    offer = builders.offer(builders.variant(product, new_id("var")))
    await add_products(application.uow, tenant, product)
    ids = {"id": offer.id, "product": product.id, "variant": offer.variant}
    events = [
        Event("offer.changed", offer.id, number, ids, fields=[change]) for number, change in enumerate(changes, 2)
    ]
    async with application.uow.begin(tenant, OPERATOR) as tx:
        await tx[EventLog].append(events)


async def test_net_changes_are_shown_by_group_with_old_and_new_values(application: ApplicationHarness) -> None:
    await add_changes(
        application, f"Dearer {SPITE}", FieldChange("price", 10000, 12000), FieldChange("price", 12000, 15000)
    )
    await add_changes(application, "Cheaper", FieldChange("price", 20000, 15000))
    await add_changes(application, "As before", FieldChange("price", 100, 200), FieldChange("price", 200, 100))
    await add_changes(application, "Sold out", FieldChange("availability", "in_stock", "out_of_stock"))
    await add_changes(application, "Of another organisation", FieldChange("price", 1, 2), org="Oak")
    browser = await application.open_browser()
    up = (await browser.get("/console/changes")).text
    assert "Dearer &lt;img" in up and "$100.00 → $150.00 (+50%)" in up and "Cheaper" not in up
    assert "As before" not in up and "another organisation" not in up
    assert "$200.00 → $150.00 (-25%)" in (await browser.get("/console/changes?group=price_down")).text
    assert "In stock → Out of stock" in (await browser.get("/console/changes?group=out_of_stock")).text
    assert "No changes of this kind" in (await browser.get("/console/changes?group=back_in_stock&days=30")).text
    assert (await browser.get("/console/changes?group=none")).status == 404
    summary = await browser.get("/console/changes/summary", hx_request="true", hx_target="summary")
    assert summary.text.startswith('<div id="summary"') and '/console/changes?group=price_up">1</a>' in summary.text


async def test_the_first_group_with_changes_is_selected(application: ApplicationHarness) -> None:
    await add_changes(application, "Sold out", FieldChange("availability", "in_stock", "out_of_stock"))
    page = await (await application.open_browser()).get("/console/changes")
    assert "Sold out" in page.text and "Net changes since Nov 13, 2026" in page.text


async def test_new_products_that_are_merged_are_omitted(application: ApplicationHarness) -> None:
    tenant, source, catalogue = Tenant(application.orgs["Fjord"].id, True), new_id("src"), new_id("cat")
    products = [builders.product(source, catalogue, new_id("prod"), data={"title": f"Chair {n}"}) for n in range(3)]
    await add_products(application.uow, tenant, *products)
    types = [
        ("product.created",),
        ("product.created", "product.merged"),
        ("product.created", "product.merged", "product.unmerged"),
    ]
    async with application.uow.begin(tenant, OPERATOR) as tx:
        await tx[EventLog].append(
            [
                Event(type, product.id, version, {"id": product.id})
                for product, own in zip(products, types, strict=True)
                for version, type in enumerate(own, 1)
            ]
        )
    text = (await (await application.open_browser()).get("/console/changes?group=new_products")).text
    assert [number for number in range(3) if f"Chair {number}" in text] == [0, 2]


async def test_events_name_their_products(application: ApplicationHarness) -> None:
    await add_changes(application, f"Dearer {SPITE}", FieldChange("price", 100, 150))
    page = await (await application.open_browser()).get("/console/developers/events")
    assert "<span>Dearer &lt;img" in page.text and "<img src=x" not in page.text


async def test_a_period_starts_when_the_previous_one_was_viewed(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    await add_changes(application, "Dearer", FieldChange("price", 100, 150))
    assert "Dearer" in (await browser.get("/console/changes")).text
    application.clock.set(application.clock.now() + timedelta(minutes=10))
    assert "Dearer" in (await browser.get("/console/changes")).text, "the same period"
    application.clock.set(application.clock.now() + timedelta(hours=2))
    await add_changes(application, "Later", FieldChange("price", 100, 150))
    text = (await browser.get("/console/changes")).text
    assert "Later" in text and "Dearer" not in text
    assert "Dearer" in (await browser.get("/console/changes?days=7")).text
    other = await application.open_browser(role="viewer")
    assert "Dearer" in (await other.get("/console/changes")).text, "each person has a period"
