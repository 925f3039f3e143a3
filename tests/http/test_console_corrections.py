"""Console pages of corrections: fields of a product, the list, bulk corrections, and their undo."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import pytest_asyncio

from domain.catalogue.model import Product
from domain.corrections.usecases.execution import BatchExecutor
from domain.jobs.ports import JobDispatcher
from domain.kernel.tenancy import Tenant
from tests.http.application import ApplicationHarness, create_plan, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.test_console_pages import check_markup
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
LIST, BULK = "/console/catalogue/corrections", "/console/catalogue/correct"
HOSTILE = '"><script>evil()</script>'


@dataclass
class Desk:
    """Retailer with products of two sources, and browsers of its people."""

    application: ApplicationHarness
    shop: MergedCatalogue
    owner: ConsoleBrowser
    chair: Product

    @property
    def place(self) -> str:
        return f"/console/catalogue/{self.chair.id}"

    async def edit(self, object: str, field: str, action: str = "override", **fields: str) -> BrowserPage:
        """Open the form of a field, and submit it."""
        form = await self.owner.get(f"{self.place}?edit={object}:{field}")
        assert 'id="edit"' in form.text, form.text
        return await self.owner.submit(
            form, self.place, None, key=f"{object}:{field}", action=action, variant="", **fields
        )

    async def read(self) -> Any:
        client = await self.application.create_client("Fjord")
        return (await client.get(f"/v1/products/{self.chair.id}")).json()

    async def work(self) -> None:
        """Execute the waiting bulk corrections."""
        lane = f"{self.shop.tenant.org}/corrections:live"
        while jobs := await self.application.dependencies[JobDispatcher].claim(lane, 10, timedelta(seconds=30)):
            for job in jobs:
                await BatchExecutor(self.application.uow)(job, asyncio.Event())


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with run_application() as application:
        org = application.orgs["Fjord"]
        shop = MergedCatalogue(application.uow, Tenant(org.id, True))
        source = await shop.create_source(name="Lindgren", catalogue=org.get_catalogue_id(True))
        chair = await shop.load_product(source, "A", "red", "blue", title="Chair", brand="Halden")
        await shop.load_product(source, "B", "green", title="Table", brand="Halden")
        yield Desk(application, shop, await application.open_browser("Fjord"), chair)


async def test_a_value_is_corrected_and_the_correction_removed(desk: Desk) -> None:
    page = await desk.owner.get(desk.place)
    check_markup(page.text)
    assert f"edit={desk.chair.id}%3Atitle" in page.text
    saved = await desk.owner.follow(await desk.edit(desk.chair.id, "title", value=f"Halden chair {HOSTILE}"))
    check_markup(saved.text)
    assert "Value corrected" in saved.text and "the feed states “Chair”" in saved.text
    assert "<script>evil" not in saved.text
    read = await desk.read()
    assert read["data"]["title"] == f"Halden chair {HOSTILE}" and read["provenance"]["title"]["reason"] == "person_edit"
    client = await desk.application.create_client("Fjord")
    source = await client.get(f"/v1/sources/{read['provenance']['title']['source']}")
    assert source.status == 200 and source.json()["name"] == "Corrections"
    refused = await client.post(
        f"/v1/sources/{source.json()['id']}/records",
        {"records": [{"product": {"external_id": "1"}}]},
    )
    assert refused.status == 409 and "corrections of people" in refused.json()["detail"]
    removed = await desk.owner.follow(await desk.edit(desk.chair.id, "title", "remove", value=""))
    assert "Correction removed" in removed.text and (await desk.read())["data"]["title"] == "Chair"


async def test_offers_and_variants_are_corrected(desk: Desk) -> None:
    variant = desk.chair.variants[0]
    [offer] = variant.offers
    for object, field, value, currency in (
        (variant.id, "dimensions.width", "80,5 cm", ""), (variant.id, "weight", "12.50 kg", ""),
        (variant.id, "materials", "oak\n\nsteel", ""), (offer.id, "price", "1 299,90", "usd"), (offer.id, "quantity", "0", ""),
        (variant.id, "assembly_required", "true", ""),
    ):  # fmt: skip
        saved = await desk.edit(object, field, value=value, currency=currency)
        assert saved.status == 303, unescape(saved.text)
    shown = next(one for one in (await desk.read())["variants"] if one["id"] == variant.id)
    assert shown["data"]["dimensions"] == {"width": {"hundredths_in": 3169, "given": {"value": 80.5, "unit": "cm"}}}
    assert shown["data"]["weight"]["given"] == {"value": 12.5, "unit": "kg"}
    assert shown["data"]["materials"] == ["oak", "steel"] and shown["data"]["assembly_required"] is True
    assert (shown["offers"][0]["price"], shown["offers"][0]["quantity"], shown["offers"][0]["availability"]) == (
        129990, 0, "out_of_stock",
    )  # fmt: skip
    assert (await desk.edit(variant.id, "colour", "clear", value="")).status == 303
    shown = next(one for one in (await desk.read())["variants"] if one["id"] == variant.id)
    assert "colour" not in shown["data"] and shown["provenance"]["colour"]["reason"] == "person_edit"
    page = await desk.owner.get(f"{desk.place}?variant={variant.id}")
    assert "Cleared by" in page.text and "the feed states “red”" in page.text


async def test_invalid_and_contradictory_values_are_refused_in_the_form(desk: Desk) -> None:
    variant = desk.chair.variants[0]
    [offer] = variant.offers
    for object, field, value, currency, text in (
        (desk.chair.id, "title", " ", "", "The value is empty"), (variant.id, "gtin", "4006381333930", "", "4006381333930"),
        (variant.id, "dimensions.width", "80", "", "is not a known unit"), (offer.id, "price", "12", "eur", "other prices of the offer are in USD"),
        (offer.id, "price", "1.299", "usd", "is ambiguous"), (offer.id, "quantity", "-1", "", "is not between"),
        (offer.id, "availability", "out_of_stock", "", "contradicts the quantity 4"), (desk.chair.id, "category", "ctg_0000000000000000000000", "", "is not a category"),
        (variant.id, "axes.Size", HOSTILE * 2000, "", "left out"),
    ):  # fmt: skip
        refused = await desk.edit(object, field, value=value, currency=currency)
        check_markup(refused.text)
        assert refused.status == 422 and text in unescape(refused.text) and 'id="edit"' in refused.text, (
            field,
            refused.status,
        )
        assert "<script>evil" not in refused.text
    for field in ("sku", "media", "discontinued", "__class__", "dimensions"):
        answer = await desk.owner.submit(
            await desk.owner.get(desk.place),
            desk.place,
            None,
            key=f"{variant.id}:{field}",
            action="override",
            value="1",
            variant="",
        )
        assert answer.status == 422 and "cannot be corrected" in answer.text
    assert (await desk.read()).get("provenance") is None


async def test_objects_of_other_organisations_are_unknown(desk: Desk) -> None:
    await desk.edit(desk.chair.id, "title", value="Mine")
    await desk.application.create_organisation("Oslo", create_plan("standard", "standard"))
    outsider = await desk.application.open_browser("Oslo")
    own = await outsider.get("/console/account")
    offer = desk.chair.variants[0].offers[0].id
    for object in (desk.chair.id, desk.chair.variants[0].id, offer, "prod_0000000000000000000000", "src_1", ""):
        answer = await outsider.submit(own, desk.place, None, key=f"{object}:title", action="clear", variant="")
        assert answer.status in (404, 422), object
    listed = await outsider.get(LIST)
    assert "Mine" not in listed.text and "No corrections" in listed.text
    [id] = re.findall(r'name="correction" value="(cor_\w+)"', (await desk.owner.get(LIST)).text)
    answer = await outsider.follow(await outsider.submit(own, LIST, None, correction=id, query=""))
    assert "0 corrections removed" in answer.text and (await desk.read())["data"]["title"] == "Mine"
    form = await outsider.submit(
        own, BULK, None, products=desk.chair.id, field="product:title", action="clear", step="apply"
    )
    assert form.status == 422 and "None of the products exists" in form.text


async def test_the_list_shows_what_feeds_state_and_home_counts_it(desk: Desk) -> None:
    await desk.edit(desk.chair.id, "title", value="Halden chair")
    await desk.edit(desk.chair.id, "brand", value="Halden & Co")
    await desk.shop.change_product(desk.shop.sources[0], "A", title="Halden chair", brand=HOSTILE)
    home = await desk.owner.get("/console")
    assert "The feed now agrees with 1 correction" in home.text and "The feed changed 1 corrected value" in home.text
    page = await desk.owner.get(f"{LIST}?state=agrees")
    check_markup(page.text)
    [id] = re.findall(r'name="correction" value="(cor_\w+)"', page.text)
    assert "Feed now agrees" in page.text and "checked" in page.text
    changed = await desk.owner.get(f"{LIST}?state=changed&field=brand")
    assert unescape(changed.text).count(HOSTILE) and "<script>evil" not in changed.text
    removed = await desk.owner.follow(await desk.owner.submit(page, LIST, None, correction=id, query="state=agrees"))
    assert "1 correction removed" in removed.text and "No corrections" in removed.text
    assert (await desk.read())["data"]["title"] == "Halden chair"
    viewer = await desk.application.open_browser("Fjord", role="viewer")
    seen = await viewer.get(LIST)
    assert seen.status == 200 and "Remove selected" not in seen.text
    assert "edit-link" not in (await viewer.get(desk.place)).text
    forbidden = await viewer.submit(
        await viewer.get("/console/account"),
        desk.place,
        None,
        key=f"{desk.chair.id}:title",
        action="clear",
    )
    assert forbidden.status == 403


async def test_many_prices_are_previewed_changed_and_undone(desk: Desk) -> None:
    before = await desk.read()
    first = await desk.owner.get(f"{BULK}?brand=Halden")
    check_markup(first.text)
    assert "2 products selected" in first.text
    products = first.field("products")
    form = await desk.owner.submit(first, BULK, None, products=products, field="offer:price")
    check_markup(form.text)
    fields = {
        "products": products,
        "field": "offer:price",
        "action": "percent",
        "change": "10",
        "rounding": "whole",
        "currency": "",
        "value": "",
    }
    preview = await desk.owner.submit(form, BULK, None, **fields, step="preview")
    check_markup(preview.text)
    assert "3 values change" in preview.text and "$1.00" in preview.text and await desk.read() == before
    started = await desk.owner.submit(preview, BULK, None, **fields, step="apply")
    batch_page = await desk.owner.follow(started)
    assert "Bulk correction started" in batch_page.text and "0 of 2 products" in batch_page.text
    await desk.work()
    done = await desk.owner.get(started.header("location") or "")
    check_markup(done.text)
    assert "2 of 2 products" in done.text and "Undo in the audit log" in done.text
    assert {offer["price"] for one in (await desk.read())["variants"] for offer in one["offers"]} == {100}
    [place] = re.findall(r'href="(/console/organisation/audit\?target=[^"]+)"', done.text)
    audit = await desk.owner.get(place)
    assert "Correct many products" in audit.text
    [undo] = re.findall(r'href="(/console/organisation/audit/[^"/]+/undo)"', audit.text)
    await desk.owner.submit(await desk.owner.get(undo), undo)
    await desk.work()
    assert [one["offers"][0]["price"] for one in (await desk.read())["variants"]] == [
        one["offers"][0]["price"] for one in before["variants"]
    ]
    listed = await desk.owner.get(LIST)
    assert "No corrections" in listed.text and "Undo: Price" in listed.text


async def test_a_bulk_correction_of_a_person_who_has_left_ends_with_the_reason(desk: Desk) -> None:
    before, editor = await desk.read(), await desk.application.open_browser("Fjord", role="editor")
    form = await editor.get(f"{BULK}?brand=Halden")
    started = await editor.submit(
        form, BULK, None, products=form.field("products"), field="product:title", action="lock", value="", step="apply"
    )
    assert started.status == 303, started.text
    await desk.application.remove_member(editor.user, "Fjord")
    await desk.work()
    ended = await desk.owner.get(started.header("location") or "")
    assert "0 of 2 products" in ended.text and "Failed" in ended.text and "has left the organisation" in ended.text
    assert await desk.read() == before


async def test_a_single_correction_is_undone_and_redone(desk: Desk) -> None:
    variant = desk.chair.variants[0]
    for value in ("12.50 kg", "13.25 kg"):
        assert (await desk.edit(variant.id, "weight", value=value)).status == 303
    audit = "/console/organisation/audit"
    for expected in (12.5, 13.25, 12.5):
        undo = re.findall(
            r'href="(/console/organisation/audit/[^"/]+/undo)"',
            (await desk.owner.get(f"{audit}?object=correction")).text,
        )[0]
        answer = await desk.owner.submit(await desk.owner.get(undo), undo)
        assert answer.status == 303, unescape(answer.text)
        shown = next(one for one in (await desk.read())["variants"] if one["id"] == variant.id)
        assert shown["data"]["weight"]["given"]["value"] == expected


async def test_the_page_after_a_removal_has_no_other_headers(desk: Desk) -> None:
    query = "field=title\r\nSet-Cookie: a=b"
    removed = await desk.owner.submit(await desk.owner.get(LIST), LIST, correction="cor_x", query=query)
    assert removed.status == 303 and removed.header("location") == f"{LIST}?field=title%0D%0ASet-Cookie%3A+a%3Db"
