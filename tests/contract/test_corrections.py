"""Corrections of products, variants and offers in the catalogue (domain/corrections)."""

import json
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest
import pytest_asyncio

from adapters.postgres.catalogue_rows import OFFER_FIELDS
from domain.audit.model import AuditAct, AuditFilter
from domain.audit.ports import AuditLog
from domain.catalogue.batch import SlotRange
from domain.catalogue.corrections import CorrectionAction, FeedState
from domain.catalogue.model import Product, Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.writer import write_reconciled
from domain.checks.model import CheckStatus
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.errors import Conflict, NotFound, Unprocessable
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork
from tests.support.backend import Backend
from tests.support.check_harness import create_check_harness
from tests.support.corrected_catalogues import ANNA, CorrectedCatalogue
from tests.support.facets import check_facets
from tests.support.merged_catalogues import MergedCatalogue
from tests.support.push_harness import create_push_harness

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def shop(uow: UnitOfWork, tenant: Tenant) -> MergedCatalogue:
    made = MergedCatalogue(uow, tenant)
    await made.create_source(licence_basis="vendor_agreement")
    await made.create_source()
    return made


@pytest.fixture
def edits(shop: MergedCatalogue, backend: Backend) -> CorrectedCatalogue:
    return CorrectedCatalogue(shop, backend.dispatch)


async def test_a_value_is_overridden_and_restored(shop: MergedCatalogue, edits: CorrectedCatalogue) -> None:
    chair = await shop.load_product(shop.sources[0], "A", "red", brand="Ours")
    before = json.dumps(await shop.list_documents())
    [event] = await edits.correct(chair.id, "title", "Halden chair")
    assert (event.type, event.subject, event.version) == ("product.updated", chair.id, 2)
    assert [*event.fields] == [("data.title", "Title of A", "Halden chair")]
    correction = await edits.find(chair.id, "title")
    assert (
        event.origins["data.title"].source == correction.source and event.origins["data.title"].method == "person_edit"
    )
    seen = (await shop.list_documents())[chair.id]
    assert seen["data"] == {"title": "Halden chair", "brand": "Ours"} and "merged_from" not in seen
    assert {name: (origin["source"], origin["reason"]) for name, origin in seen["provenance"].items()} == {
        "title": (correction.source, "person_edit"),
        "brand": (shop.sources[0].id, "only_source"),
    }
    assert await shop.find_products(q="halden") == {chair.id} and await shop.find_products(q="title") == set()

    assert await shop.change_product(shop.sources[0], "A", title="Feed") == []
    correction = await edits.find(chair.id, "title")
    assert (correction.feed_state, correction.stated_value, correction.feed_value) == (
        FeedState.CHANGED,
        "Title of A",
        "Feed",
    )
    await shop.change_product(shop.sources[0], "A", title="Title of A")
    assert (await edits.find(chair.id, "title")).feed_state == FeedState.UNCHANGED
    [event] = await edits.remove(correction)
    assert [*event.fields] == [("data.title", "Halden chair", "Title of A")] and event.version == 3
    assert json.dumps(await shop.list_documents()) == before, "including the order of fields"
    assert await edits.list() == []


async def test_the_offers_of_a_corrected_product_keep_their_events(
    shop: MergedCatalogue, edits: CorrectedCatalogue
) -> None:
    chair = await shop.load_product(shop.sources[0], "A", "red")
    offer = chair.variants[0].offers[0]
    await edits.correct(chair.id, "title", "Halden chair")
    [event] = await shop.change_price(shop.sources[0], "A", 77)
    assert (event.type, event.subject, event.version) == ("offer.changed", offer.id, 2)
    [event] = await edits.correct(offer.id, "price", {"amount": "49.90", "currency": "usd"})
    assert (event.type, event.version, event.facets) == ("offer.changed", 3, ["price"])
    assert [*event.fields] == [("price", 77, 4990)]
    assert await shop.change_price(shop.sources[0], "A", 88) == []
    shown = (await shop.list_documents())[chair.id]["variants"][0]["offers"][0]
    assert (shown["price"], shown["msrp"], shown["currency"]) == (4990, 900, "usd")
    [event] = await edits.remove(await edits.find(offer.id, "price"))
    assert [*event.fields] == [("price", 4990, 88)] and event.version == 4
    [event] = await shop.change_price(shop.sources[0], "A", 99)
    assert event.version == 5


async def test_agreement_of_the_feed_is_reported(shop: MergedCatalogue, edits: CorrectedCatalogue) -> None:
    chair = await shop.load_product(shop.sources[0], "A", "red")
    await edits.correct(chair.id, "brand", "Halden")
    await edits.correct(chair.id, "title", action="lock")
    assert (await edits.find(chair.id, "title")).action == CorrectionAction.LOCK
    await shop.change_product(shop.sources[0], "A", brand="Halden")
    agreed = await edits.find(chair.id, "brand")
    assert agreed.feed_state == FeedState.AGREES and agreed.feed_changed_at is not None
    assert (await edits.find(chair.id, "title")).feed_state != FeedState.AGREES, (
        "a locked value was the feed's from the start"
    )
    assert await edits.remove(agreed) == [], "the value does not change"
    await shop.change_product(shop.sources[0], "A", title="Changed")
    assert (await shop.list_documents())[chair.id]["data"] == {"title": "Title of A", "brand": "Halden"}


async def test_corrected_codes_are_found(shop: MergedCatalogue, edits: CorrectedCatalogue) -> None:
    chair = await shop.load_product(shop.sources[0], "A", "red")
    await shop.change_variants(shop.sources[0], "A", mpn="OLD-1", gtin="4006381333931")
    variant = chair.variants[0].id
    await edits.correct(variant, "mpn", "NEW-1")
    await edits.correct(variant, "gtin", "7350053850019")
    for filter in (
        {"mpn": ["NEW-1"]},
        {"gtin": ["7350053850019"]},
        {"mpn": ["NEW-1"], "sku": ["A-red"]},
        {"q": "new-1"},
    ):
        for more in ({}, {"availability": ["in_stock"]}):
            assert await shop.find_products(**filter, **more) == {chair.id}, filter
    assert len(await shop.list_offers(mpn=["NEW-1"])) == len(await shop.list_offers(gtin=["7350053850019"])) == 1
    assert await shop.find_products(gtin=["4006381333931"]) == set()
    await shop.change_variants(shop.sources[0], "A", colour="blue")
    assert await shop.find_products(mpn=["NEW-1"]) == {chair.id}, "a run keeps the corrected code"
    await edits.remove(await edits.find(variant, "mpn"))
    assert await shop.find_products(mpn=["OLD-1"]) == {chair.id} and await shop.find_products(mpn=["NEW-1"]) == set()


async def test_a_correction_stays_with_its_object_through_merges(
    shop: MergedCatalogue, edits: CorrectedCatalogue
) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red", brand="Ours")
    theirs = await shop.load_product(shop.sources[1], "B", "red", collection="Theirs")
    await edits.correct(theirs.id, "brand", "Corrected")
    await edits.correct(theirs.variants[0].id, "colour", "crimson")
    await edits.correct(theirs.variants[0].offers[0].id, "quantity", 9)
    before = json.dumps(await shop.list_documents())
    merge = await shop.merge_variants(ours.variants[0], theirs.variants[0])
    [seen] = (await shop.list_documents()).values()
    assert seen["data"] == {"title": "Title of A", "brand": "Corrected", "collection": "Theirs"}
    assert seen["provenance"]["brand"]["reason"] == "person_edit"
    assert seen["variants"][0]["data"]["colour"] == "crimson"
    assert {offer["source"]: offer["quantity"] for offer in seen["variants"][0]["offers"]} == {
        shop.sources[0].id: 4, shop.sources[1].id: 9,
    }  # fmt: skip
    assert (await edits.find(theirs.id, "brand")).feed_value == "Ours", "what readers would see without the correction"
    await edits.correct(ours.id, "brand", "Of both")
    assert (await shop.list_documents())[ours.id]["data"]["brand"] == "Of both", "the visible product's own correction"
    await shop.undo_merge(merge)
    await edits.remove(await edits.find(ours.id, "brand"))
    assert json.dumps(await shop.list_documents()) == before
    assert (await edits.find(theirs.id, "brand")).feed_value is None


async def test_a_correction_moves_with_its_variant(shop: MergedCatalogue, edits: CorrectedCatalogue) -> None:
    chair = await shop.load_product(shop.sources[0], "A", "red", "blue")
    table = await shop.load_product(shop.sources[0], "B", "green")
    variant = next(one for one in chair.variants if one.key == "A/red")
    await edits.correct(variant.id, "colour", "crimson")
    await shop.move_variant(shop.sources[0], "A", "A/red", "B")
    assert (await edits.find(variant.id, "colour")).product == table.id
    shown = {one["id"]: one["data"]["colour"] for one in (await shop.list_documents())[table.id]["variants"]}
    assert shown[variant.id] == "crimson"
    assert await shop.change_variants(shop.sources[0], "B", colour="black") != []
    shown = {one["id"]: one["data"]["colour"] for one in (await shop.list_documents())[table.id]["variants"]}
    assert shown[variant.id] == "crimson" and sorted(shown.values()) == ["black", "crimson"]


async def test_many_products_are_corrected_and_the_undo_restores_them(
    shop: MergedCatalogue, edits: CorrectedCatalogue
) -> None:
    products = [await shop.load_product(shop.sources[0], str(number), "red", "blue") for number in range(60)]
    kept = products[0].variants[0].offers[0]
    await edits.correct(kept.id, "price", {"amount": 10, "currency": "usd"})
    before = json.dumps(await shop.list_documents())
    change = {"percent": "-12.5", "rounding": "minor"}
    batch = await edits.apply([one.id for one in products], "price", "adjust", change, "offer")
    assert (batch.status, batch.done, batch.changed, batch.unchanged) == ("succeeded", 60, 120, 0)
    seen = await shop.list_documents()
    offers = {
        offer["id"]: offer["price"]
        for one in seen.values()
        for variant in one["variants"]
        for offer in variant["offers"]
    }
    for product in products:
        for variant in product.variants:
            for offer in variant.offers:
                price = 1000 if offer.id == kept.id else offer.data["price"]
                assert offers[offer.id] == (price * 875 * 2 + 1000) // 2000, "rounded half up"
    assert (await edits.apply([one.id for one in products], "price", "lock", None, "offer")).unchanged == 120
    reverse = await edits.undo_batch(batch.id)
    assert (reverse.status, reverse.changed, reverse.undoes) == ("succeeded", 120, batch.id)
    assert json.dumps(await shop.list_documents()) == before
    [left] = await edits.list()
    assert (left.object, left.value) == (kept.id, {"amount": 1000, "currency": "usd"})
    again = await edits.undo_batch(reverse.id)
    assert again.changed == 120 and await shop.list_documents() == seen


async def test_a_category_is_corrected_for_many_products(shop: MergedCatalogue, edits: CorrectedCatalogue) -> None:
    category = "ctg_7ZTEQ9MwZWIriumoBTE5a5"
    products = [await shop.load_product(shop.sources[0], key, "red") for key in "ABC"]
    batch = await edits.apply([one.id for one in products], "category", "override", category)
    assert batch.changed == 3 and len(await shop.find_products(category=[category])) == 3
    assert (await edits.apply([products[0].id], "category", "remove")).changed == 1
    assert len(await shop.find_products(category=[category])) == 2


async def change_at_random(
    shop: MergedCatalogue, edits: CorrectedCatalogue, dice: random.Random, product: Product
) -> list[Event]:
    """Change the product by a run or a correction; return the events."""
    variant, text, source = dice.choice(product.variants), dice.choice("xyz"), shop.sources[0]
    [offer] = variant.offers
    price = {"amount": f"0.0{dice.randint(1, 5)}", "currency": "usd"}
    if (corrections := await edits.list()) and dice.random() < 0.25:
        return await edits.remove(dice.choice(corrections))
    changes: list[Callable[[], Coroutine[Any, Any, list[Event]]]] = [
        lambda: shop.change_product(source, product.key, title=text, brand=dice.choice("xyz")),
        lambda: shop.change_variants(source, product.key, colour=text),
        lambda: shop.change_price(source, product.key, dice.randint(1, 5)),
        lambda: edits.correct(product.id, dice.choice(("title", "brand")), text),
        lambda: edits.correct(variant.id, "colour", action=dice.choice(("lock", "clear"))),
        lambda: edits.correct(offer.id, "price", price),
        lambda: edits.correct(offer.id, "quantity", dice.randint(0, 9)),
    ]
    return await dice.choice(changes)()


@pytest.mark.parametrize("seed", range(3))
async def test_events_replayed_by_a_copy_give_the_documents(
    shop: MergedCatalogue, edits: CorrectedCatalogue, seed: int
) -> None:
    """Runs, corrections and removals in random order; at the end, without corrections, readers see the sources' data."""
    dice = random.Random(seed)
    products = [await shop.load_product(shop.sources[0], key, "red", "blue", brand="Ours") for key in "ABC"]
    copies = list_objects(await read_documents(shop))
    for _ in range(40):
        events = await change_at_random(shop, edits, dice, dice.choice(products))
        for event in events:
            old_version, data = copies[event.subject]
            assert event.version == old_version + 1
            for path, old, new in event.fields:
                name = path.removeprefix("data.")
                assert data.get(name) == old
                data = {key: value for key, value in {**data, name: new}.items() if value is not None}
            copies[event.subject] = event.version, data
        assert copies == list_objects(await read_documents(shop))
    await check_facets(shop.uow, shop.tenant)
    for correction in await edits.list():
        await edits.remove(correction)
    await check_facets(shop.uow, shop.tenant)
    seen = list_objects(await read_documents(shop))
    async with shop.uow.begin(shop.tenant, ANNA) as tx:
        stated = await tx[CatalogueStore].load_products(shop.sources[0].id, ["A", "B", "C"])
    for product in stated.values():
        assert seen[product.id][1] == product.data and "provenance" not in (await shop.list_documents())[product.id]
        for variant in product.variants:
            assert seen[variant.id][1] == variant.data
            assert all(seen[offer.id][1] == offer.data for offer in variant.offers)


def list_objects(documents: Mapping[str, Any]) -> dict[str, tuple[int, dict[str, Any]]]:
    """Return the versions and the data of all products, variants and offers by ID."""
    found = {}
    for product in documents.values():
        found[product["id"]] = product["version"], product["data"]
        for variant in product["variants"]:
            found[variant["id"]] = variant["version"], variant["data"]
            for offer in variant["offers"]:
                data = {name: offer[name] for name in OFFER_FIELDS if name in offer}
                found[offer["id"]] = offer["version"], data
    return found


async def test_pushed_records_are_compared_with_the_source_and_not_with_the_correction(
    backend: Backend, tenant: Tenant
) -> None:
    desk = await create_push_harness(backend, tenant)
    edits = CorrectedCatalogue(MergedCatalogue(backend.uow, tenant, [desk.source]), backend.dispatch)
    record = {
        "product": {"external_id": "A", "title": "Chair", "brand": "Ours"},
        "variants": [{"external_id": "A-1", "offers": [{"price": {"amount": 10, "currency": "usd"}, "quantity": 4}]}],
    }
    await desk.push([record])
    [product] = (await edits.shop.list_documents()).values()
    offer = product["variants"][0]["offers"][0]["id"]
    await edits.correct(product["id"], "title", "Halden chair")
    await edits.correct(offer, "price", {"amount": 12, "currency": "usd"})
    run = await desk.push([record])
    assert run.stats.get("products_changed", 0) == run.stats.get("offers_changed", 0) == 0, (
        "the feed states nothing new"
    )
    record["product"]["title"] = "Halden chair"  # type: ignore[index]
    await desk.push(
        [
            record,
            {
                "product": {"external_id": "A"},
                "variants": [{"external_id": "A-1", "offers": [{"price": {"amount": 12, "currency": "usd"}}]}],
            },
        ]
    )
    assert {one.feed_state for one in await edits.list()} == {FeedState.AGREES}
    await desk.push([{"product": {"external_id": "B", "title": "Table"}}], is_complete=True, accept_shrink=True)
    [shown] = [one for one in (await edits.shop.list_documents()).values() if one["id"] == product["id"]]
    withdrawn = shown["variants"][0]["offers"][0]
    assert (withdrawn["price"], withdrawn["quantity"], shown["data"]["title"]) == (1200, 0, "Halden chair")
    await desk.push([record])
    for correction in await edits.list():
        await edits.remove(correction)
    stated = (await desk.get_products("A"))["A"]
    [shown] = [one for one in (await edits.shop.list_documents()).values() if one["id"] == product["id"]]
    assert shown["data"] == stated["data"]
    assert shown["variants"][0]["offers"][0]["price"] == stated["variants"]["A-1"]["offers"]["default"]["price"] == 1000


async def test_a_stock_check_and_a_stock_run_keep_corrected_stock(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    await desk.pull(b"SKU,Title,Price,Qty\nA-1,Oak chair,100.50,7\n")
    edits = CorrectedCatalogue(MergedCatalogue(backend.uow, tenant, [desk.source]), backend.dispatch)
    [product] = (await edits.shop.list_documents()).values()
    variant, offer = product["variants"][0]["id"], product["variants"][0]["offers"][0]["id"]
    await edits.correct(offer, "quantity", 40)
    assert (await desk.run_check(variant, b"SKU,Qty\nA-1,2\n")).status == CheckStatus.SUCCEEDED
    await desk.pull(b"SKU,Qty\nA-1,3\n", Stream.STOCK)
    [product] = (await edits.shop.list_documents()).values()
    shown = product["variants"][0]["offers"][0]
    assert (shown["quantity"], shown["availability"], shown["price"]) == (40, "in_stock", 10050)
    [correction] = await edits.list()
    assert (correction.feed_value, correction.feed_state) == (3, FeedState.CHANGED)
    assert (await desk.get_offers(variant))["default"]["quantity"] == 3, "a check is compared with the source's stock"
    await edits.remove(correction)
    [product] = (await edits.shop.list_documents()).values()
    assert product["variants"][0]["offers"][0]["quantity"] == 3


async def test_corrections_of_other_tenants_are_neither_seen_nor_changed(
    backend: Backend, shop: MergedCatalogue, edits: CorrectedCatalogue
) -> None:
    chair = await shop.load_product(shop.sources[0], "A", "red")
    await edits.correct(chair.id, "title", "Mine")
    correction = await edits.find(chair.id, "title")
    for tenant in (await backend.tenant(), Tenant(shop.tenant.org, livemode=False)):
        other = CorrectedCatalogue(MergedCatalogue(backend.uow, tenant), backend.dispatch)
        assert await other.list() == []
        with pytest.raises(NotFound):
            await other.correct(chair.id, "title", action="clear")
        with pytest.raises(NotFound):
            await other.remove(correction)
        with pytest.raises(Unprocessable):
            await other.apply([chair.id], "title", "clear")
    assert (await shop.list_documents())[chair.id]["data"]["title"] == "Mine"


async def read_documents(shop: MergedCatalogue) -> dict[str, Any]:
    """Return every product of the list with its version."""
    return {id: json.loads(body) for id, body in (await shop.list_documents(versions=True)).items()}


async def test_corrections_of_data_that_may_no_longer_be_used_are_deleted(
    shop: MergedCatalogue, edits: CorrectedCatalogue
) -> None:
    source = shop.sources[0]
    chair = await shop.load_product(source, "A", "red")
    kept = await shop.load_product(source, "B", "red")
    for object, field in ((chair.id, "title"), (chair.variants[0].id, "colour"), (kept.id, "title")):
        await edits.correct(object, field, action="lock")
    await edits.correct(chair.variants[0].offers[0].id, "price", action="lock")
    async with shop.uow.begin(shop.tenant, ANNA) as tx:
        await tx[CatalogueStore].lock_for_writing()
        reconciler = shop.create_reconciler(source, tx.now, await tx[CatalogueStore].load_products(source.id, ["A"]))
        reconciler.replaces_data = reconciler.erases_absent_items = True
        reconciler.withdraw_absent_product(reconciler.products["A"])
        await tx[EventLog].append(
            await write_reconciled(tx, SlotRange(source.id, Stream.CATALOGUE, 0, 0), reconciler, ["A"])
        )
    [left] = await edits.list()
    assert left.object == kept.id
    shown = (await shop.list_documents())[chair.id]
    assert shown["data"] == {} and "provenance" not in shown
    assert shown["variants"][0]["data"] == {} and "price" not in shown["variants"][0]["offers"][0]


async def _undo_last_act(shop: MergedCatalogue, edits: CorrectedCatalogue) -> list[Event]:
    """Undo the person's last act that changed a merge; return the events."""
    async with shop.uow.begin(shop.tenant, ANNA) as tx:
        entries = (await tx[AuditLog].page(PageRequest(100), AuditFilter())).items
        act = next(entry.act for entry in entries if entry.change.object == "merge")
        own = tuple(entry for entry in reversed(entries) if entry.act == act)
        await edits.grouper.undo(tx, AuditAct(own, own[0]))
        return list(tx.recorded.events)


async def test_a_group_is_separated_with_one_event_for_each_object(
    shop: MergedCatalogue, edits: CorrectedCatalogue
) -> None:
    products = [await shop.load_product(shop.sources[0], key, "red") for key in "ABC"]
    await edits.correct(products[0].id, "title", "Stool")
    before = [one["data"] for one in (await shop.list_documents()).values()]
    await edits.group("Chair", {one.variants[0].id: {"Colour": one.key, "Size": one.key} for one in products})
    [document] = (await shop.list_documents()).values()
    assert document["data"]["title"] == "Chair"
    assert [one["data"]["axes"] for one in document["variants"]] == [{"Colour": key, "Size": key} for key in "ABC"]
    events = await _undo_last_act(shop, edits)
    assert [one["data"] for one in (await shop.list_documents()).values()] == before
    types = [event.type for event in events]
    assert types[: types.index("product.unmerged")].count("variant.updated") == 3
    assert {one.field: one.value for one in await edits.list()} == {"title": "Stool"}


async def test_a_group_whose_correction_was_removed_is_not_separated(
    shop: MergedCatalogue, edits: CorrectedCatalogue
) -> None:
    products = [await shop.load_product(shop.sources[0], key, "red") for key in "AB"]
    await edits.correct(products[0].id, "title", "Stool")
    await edits.group("Chair", {one.variants[0].id: {"Colour": one.key} for one in products})
    await edits.remove(await edits.find(products[0].id, "title"))
    with pytest.raises(Conflict):
        await _undo_last_act(shop, edits)
    assert len(await shop.list_documents()) == 1
