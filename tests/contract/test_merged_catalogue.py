"""Merged products and variants (domain/catalogue/ports.py, domain/catalogue/merged_statements.py)."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from adapters.api_json.event_schemas import EVENT_SCHEMAS
from adapters.api_json.events import JsonEventRendering
from domain.catalogue.batch import SlotRange
from domain.catalogue.model import OfferFilter, Product, ProductStatus, Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.writer import write_reconciled
from domain.events.model import Event
from domain.jobs.model import build_lane_name
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.matching.model import Merge, MergeFilter, MergeStatus, PairStatus
from domain.matching.ports import MergeStore, PairStore
from domain.matching.usecases.merges import PrecedenceUpdateJob
from domain.media.ports import MediaStore
from domain.sources.ports import SourceStore
from domain.sources.precedence_update import UPDATE_SOURCE_PRECEDENCE, new_precedence_update_job
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import pictured
from tests.support.merged_catalogues import MERGING, Shop, any_two

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def shop(uow: UnitOfWork, tenant: Tenant) -> Shop:
    made = Shop(uow, tenant)
    await made.source(licence_basis="vendor_agreement")
    await made.source()
    await made.source(first_party=True)
    return made


async def test_two_products_become_one_and_two_again(shop: Shop) -> None:
    ours = await shop.load(shop.sources[0], "A", "red", brand="Ours")
    theirs = await shop.load(shop.sources[1], "B", "red", collection="Theirs")
    other = await shop.load(shop.sources[1], "C", "red")
    before, whole = await shop.documents(), await shop.documents(versions=True)
    merge = await shop.merge(ours.variants[0], theirs.variants[0])
    assert (merge.survivor, merge.merged) == (ours.variants[0].id, theirs.variants[0].id)

    seen = await shop.documents()
    assert seen.keys() == {ours.id, other.id} and seen[other.id] == before[other.id]
    one = seen[ours.id]
    assert one["data"] == {"title": "Title of A", "brand": "Ours", "collection": "Theirs"}
    assert one["merged_from"] == [theirs.id]
    assert {name: (origin["source"], origin["reason"]) for name, origin in one["provenance"].items()} == {
        "title": (shop.sources[0].id, "vendor_agreement"),
        "brand": (shop.sources[0].id, "only_source"),
        "collection": (shop.sources[1].id, "only_source"),
    }
    [variant] = one["variants"]
    assert {offer["source"] for offer in variant["offers"]} == {shop.sources[0].id, shop.sources[1].id}
    assert set((await shop.offers(product=ours.id)).values()) == {(ours.variants[0].id, ours.id)}
    async with shop.uow.begin_reading(shop.tenant) as tx:
        survivor = await tx[CatalogueStore].get_product(theirs.id)
        assert survivor is not None and survivor.id == ours.id

    undone = await shop.undo(merge)
    assert undone.status == MergeStatus.UNDONE and undone.undone_at is not None
    assert json.dumps(await shop.documents()) == json.dumps(before), "down to the order of fields"
    after = await shop.documents(versions=True)
    assert json.loads(after[theirs.id])["version"] > json.loads(whole[theirs.id])["version"]
    assert after[other.id] == whole[other.id]
    with pytest.raises(Conflict, match="already undone"):
        await shop.undo(merge)


async def test_it_is_found_by_what_each_source_calls_it(shop: Shop) -> None:
    ours = await shop.load(shop.sources[0], "A", "red")
    theirs = await shop.load(shop.sources[1], "B", "red")
    await shop.merge(ours.variants[0], theirs.variants[0])
    for filter in (
        {"sku": ["B-red"]}, {"sku": ["A-red"]}, {"external_id": ["B"]}, {"external_id": ["B/red"]}, {"external_id": ["A"]},
        {"variant": [theirs.variants[0].id]}, {"q": "Title"}, {"status": "active"}, {"availability": "in_stock"},
        {"offer": [theirs.variants[0].offers[0].id]}, {"source": shop.sources[0].id}, {"source": shop.sources[1].id},
        {"source": shop.sources[1].id, "q": "Title"}, {"id": [theirs.id]},
    ):  # fmt: skip
        assert await shop.found(**filter) == {ours.id}, filter
        assert await shop.found(**{"status": "active", "availability": "in_stock", **filter}) == {ours.id}, filter
    for filter in (
        {"variant": theirs.variants[0].id},
        {"product": theirs.id},
        {"product": theirs.id, "source": theirs.source},
    ):
        listed = await shop.offers(**filter)
        assert set(listed.values()) == {(ours.variants[0].id, ours.id)} and len(listed) == (
            1 if "source" in filter else 2
        )
    assert len(await shop.offers(sku=["B-red"])) == len(await shop.offers(external_id=["B"])) == 2
    async with shop.uow.begin_reading(shop.tenant) as tx:
        page = await tx[CatalogueStore].list_offers(OfferFilter(source=shop.sources[1].id), PageRequest(limit=9))
    [line] = page.items
    assert (line.product_key, line.variant_key, line.product_title) == ("B", "B/red", "Title of A")


async def test_later_statements_of_a_source_are_merged(shop: Shop) -> None:
    ours = await shop.load(shop.sources[1], "A", "red", brand="Ours")
    theirs = await shop.load(shop.sources[0], "B", "red")
    merge = await shop.merge(ours.variants[0], theirs.variants[0])
    [event] = await shop.state(shop.sources[1], "A", collection="Nordic", title="Another")
    assert (event.type, event.subject) == ("product.updated", theirs.id)
    assert [change[0] for change in event.fields] == ["data.collection"], "the title that is shown is the other's"
    assert event.origins["data.collection"].source == shop.sources[1].id
    [event] = await shop.price(shop.sources[1], "A", 77)
    assert event.type == "offer.changed"
    assert (event.data["variant"], event.data["product"]) == (theirs.variants[0].id, theirs.id)
    prices = {offer["price"] for offer in (await shop.documents())[theirs.id]["variants"][0]["offers"]}
    assert prices == {77, 101}
    await shop.undo(merge)
    seen = await shop.documents()
    assert seen[ours.id]["data"] == {"title": "Another", "brand": "Ours", "collection": "Nordic"}
    assert "collection" not in seen[theirs.id]["data"]
    assert seen[ours.id]["variants"][0]["offers"][0]["price"] == 77


async def test_a_version_an_event(shop: Shop) -> None:
    ours = await shop.load(shop.sources[0], "A", "red")
    theirs = await shop.load(shop.sources[1], "B", "red")
    merge = await shop.merge(ours.variants[0], theirs.variants[0])
    await shop.state(shop.sources[1], "B", title="Hidden")
    await shop.state(shop.sources[1], "B", collection="Shown")
    await shop.undo(merge)
    await shop.state(shop.sources[1], "B", title="On its own")
    whole = await shop.documents(versions=True)
    assert json.loads(whole[theirs.id])["version"] == 4  # created, merged, unmerged, updated
    assert json.loads(whole[ours.id])["version"] == 3  # created, a field more, a field less


async def test_pairs_follow(shop: Shop) -> None:
    a = (await shop.load(shop.sources[0], "A", "red")).variants[0]
    b = (await shop.load(shop.sources[1], "B", "red")).variants[0]
    c = (await shop.load(shop.sources[1], "C", "red")).variants[0]
    rival = await shop.pair(a, c)
    merge = await shop.merge(a, b)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        assert require_found(await tx[PairStore].get(rival.id)).status == PairStatus.SUPERSEDED, (
            "a has an item of that source"
        )
        with pytest.raises(Conflict, match="superseded"):
            await MERGING.dismiss_pair(tx, rival.id, merge.decided_by)
    await shop.undo(merge)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        assert require_found(await tx[PairStore].get(rival.id)).status == PairStatus.OPEN
        pair = require_found(await tx[PairStore].get(str(merge.pair)))
        assert (pair.status, pair.merge, pair.held) == (PairStatus.OPEN, None, True)
        assert (await MERGING.dismiss_pair(tx, pair.id, merge.decided_by)).status == PairStatus.DISMISSED
        assert (await MERGING.reopen_pair(tx, pair.id)).status == PairStatus.OPEN


async def test_a_later_merge_is_named(shop: Shop) -> None:
    a = (await shop.load(shop.sources[0], "A", "red")).variants[0]
    b = (await shop.load(shop.sources[1], "B", "red")).variants[0]
    c = (await shop.load(shop.sources[2], "C", "red")).variants[0]
    first = await shop.merge(a, b)
    second = await shop.merge(b, c)
    with pytest.raises(Conflict, match=second.id):
        await shop.undo(first)
    await shop.undo(second)
    await shop.undo(first)
    assert len(await shop.documents()) == 3


@pytest.mark.parametrize("seed", range(1))
async def test_chains_of_merges_and_their_undoing(shop: Shop, seed: int) -> None:
    await chain(shop, random.Random(seed), steps=30)


@pytest.mark.soak
async def test_a_thousand_merges_and_undos(shop: Shop) -> None:
    await chain(shop, random.Random(1000), steps=1000)


async def chain(shop: Shop, dice: random.Random, steps: int) -> None:
    """Merge and undo at random; once all is undone everything is as it was."""
    for _ in range(2):
        await shop.source()
    for number in range(4):
        for source in shop.sources:
            names = dice.sample(("red", "blue", "green"), dice.randint(1, 3))
            await shop.load(source, f"{source.id[-4:]}{number}", *names, brand=dice.choice(("X", "Y")))
    before = await shop.documents()
    applied: list[Merge] = []
    for step in range(steps):
        applied = await _applied(shop)
        if applied and dice.random() < 0.4:
            try:
                await shop.undo(dice.choice(applied))
            except Conflict as refused:
                assert "depends on" in str(refused)
        elif (two := any_two(dice, shop.products)) is not None:
            try:
                await shop.merge(*two)
            except Conflict as refused:
                known = ("already merged", "two items of the source", "match of these")
                assert any(text in str(refused) for text in known), refused
        if step % 10 == 9:
            await _consistent(shop, before)
    while applied := await _applied(shop):
        for merge in reversed(applied):
            try:
                await shop.undo(merge)
            except Conflict as refused:
                assert "depends on" in str(refused) or "already" in str(refused)
    assert await shop.documents() == before


async def _applied(shop: Shop) -> list[Merge]:
    async with shop.uow.begin_reading(shop.tenant) as tx:
        page = await tx[MergeStore].list_merges(MergeFilter(status="applied"), PageRequest(limit=1000))
    return list(page.items)[::-1]


async def _consistent(shop: Shop, before: dict[str, object]) -> None:
    """Whatever is merged: no offer is lost or doubled, none is without its variant, and lists agree with documents."""
    seen, offers = await shop.documents(), await shop.offers()
    documented = {
        offer["id"]: (variant["id"], product["id"])
        for product in seen.values()
        for variant in product["variants"]
        for offer in variant["offers"]
    }
    assert documented == offers
    assert len(documented) == sum(len(variant.offers) for product in shop.products for variant in product.variants)
    assert all(product["variants"] for product in seen.values())
    assert seen.keys() <= before.keys()


async def test_pictures_of_what_is_merged(shop: Shop) -> None:
    url = "https://a.example/1.jpg"
    ours = await shop.load(shop.sources[0], "A", "red")
    theirs = await shop.load(shop.sources[1], "B", "red", media=[{"url": url}])
    await shop.merge(ours.variants[0], theirs.variants[0])
    image = await pictured(shop.uow, shop.tenant, theirs.id, url)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await tx[MediaStore].rebuild_documents(100)
    assert [one["id"] for one in (await shop.documents())[ours.id]["data"]["media"]] == [image.id]
    await shop.state(shop.sources[0], "A", collection="Other")
    assert [one["id"] for one in (await shop.documents())[ours.id]["data"]["media"]] == [image.id]


class Heard:
    """Events in the order in which they are heard: each as it is described, no version of a subject left out."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant, self.versions, self.types = tenant, dict[str, int](), list[str]()

    def hear(self, events: Sequence[Event]) -> None:
        for event in events:
            envelope = json.loads(
                JsonEventRendering().encode_event(replace(event, id=new_id("evt")), self.tenant, builders.MOMENT)
            )
            schema = EVENT_SCHEMAS[event.type]
            assert not [error.message for error in Draft202012Validator(dict(schema)).iter_errors(envelope)], envelope
            before = self.versions.get(event.subject, 1)
            assert event.version == before + 1, (event.type, event.subject, before, event.version)
            self.versions[event.subject] = event.version
            self.types.append(event.type)


async def test_every_event_is_as_described_and_none_is_missing(shop: Shop) -> None:
    ours = await shop.load(shop.sources[0], "A", "red", "blue", brand="Ours")
    theirs = await shop.load(shop.sources[1], "B", "red", "blue", collection="Theirs")
    heard = Heard(shop.tenant)
    first = await shop.merge(ours.variants[0], theirs.variants[0], heard.hear)
    assert heard.types == ["variant.merged"] or "product.merged" in heard.types
    await shop.merge(ours.variants[1], theirs.variants[1], heard.hear)
    heard.hear(await shop.state(shop.sources[1], "B", collection="Other"))
    heard.hear(await shop.price(shop.sources[1], "B", 7))
    heard.hear(await shop.state(shop.sources[0], "A", title="Said anew"))
    await shop.undo(first, heard.hear)
    heard.hear(await shop.state(shop.sources[1], "B", title="Hidden or not"))
    for merge in reversed(await _applied(shop)):
        await shop.undo(merge, heard.hear)
    heard.hear(await shop.state(shop.sources[1], "B", title="On its own again"))
    assert {"product.merged", "product.unmerged", "variant.merged", "variant.unmerged", "product.updated"} <= set(
        heard.types
    )
    for product in (await shop.documents(versions=True)).values():
        document = json.loads(product)
        assert document["version"] == heard.versions.get(document["id"], 1)
        for variant in document["variants"]:
            assert variant["version"] == heard.versions.get(variant["id"], 1)


async def test_every_source_keeps_its_own_codes(shop: Shop) -> None:
    ours = await shop.load(shop.sources[1], "A", "red")
    theirs = await shop.load(shop.sources[0], "B", "red")
    for product, gtin, mpn in ((ours, "4006381333931", "AAA-1"), (theirs, "96385074", "BBB-2")):
        source = next(one for one in shop.sources if one.id == product.source)
        await shop.state_variant(source, product.key, gtin=gtin, mpn=mpn)
    await shop.merge(ours.variants[0], theirs.variants[0])
    for filter in ({"mpn": ["AAA-1"]}, {"mpn": ["BBB-2"]}, {"gtin": ["4006381333931"]}, {"gtin": ["96385074"]}):
        assert await shop.found(**filter) == {theirs.id}, filter
        assert await shop.found(**filter, id=[theirs.id]) == {theirs.id}, filter
        assert len(await shop.offers(**filter)) == 2, filter


async def test_an_unchanged_statement_is_no_fresher(shop: Shop) -> None:
    ours = await shop.load(shop.sources[1], "A", "red")
    another = await shop.source()
    theirs = await shop.load(another, "B", "red")
    await shop.state(shop.sources[1], "A", title="Old")
    await shop.state(another, "B", title="New")
    merge = await shop.merge(ours.variants[0], theirs.variants[0])
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await tx[CatalogueStore].lock_for_writing()
        loaded = await tx[CatalogueStore].load_products(shop.sources[1].id, ["A"])
        reconciler = shop.reconciler(shop.sources[1], tx.now, loaded)
        reconciler.change_status(reconciler.products["A"], ProductStatus.PROBABLY_DISCONTINUED)
        await write_reconciled(tx, SlotRange(shop.sources[1].id, Stream.CATALOGUE, 0, 0), reconciler)
    assert (await shop.documents())[merge_survivor(merge, ours, theirs)]["data"]["title"] == "New"


def merge_survivor(merge: Merge, *products: Product) -> str:
    return next(product.id for product in products if product.variants[0].id == merge.survivor)


async def test_images_stay_after_the_view_is_rebuilt(shop: Shop) -> None:
    ours = await shop.load(shop.sources[0], "A", "red")
    theirs = await shop.load(shop.sources[1], "B", "red")
    await shop.state_variant(shop.sources[1], "B", media=[{"url": "https://a.example/1.jpg"}])
    await shop.merge(ours.variants[0], theirs.variants[0])
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        named = await tx[MediaStore].list_media(shop.sources[1].id, builders.MOMENT, None, 10)
    assert [item for one in named for item in one.items], "its own source still names it"


async def test_products_follow_variants_that_move(shop: Shop) -> None:
    ours = await shop.load(shop.sources[0], "A", "red")
    theirs = await shop.load(shop.sources[1], "B", "red")
    await shop.merge(ours.variants[0], theirs.variants[0])
    await shop.move(shop.sources[0], "A", "A/red", "A2")
    seen = await shop.documents()
    async with shop.uow.begin_reading(shop.tenant) as tx:
        survivor = await tx[CatalogueStore].get_product(theirs.id)
    assert survivor is not None and seen[survivor.id]["external_id"] == "A2"
    assert len(seen[survivor.id]["variants"][0]["offers"]) == 2


async def test_products_that_share_nothing_any_more_are_two_again(shop: Shop) -> None:
    ours = await shop.load(shop.sources[0], "A", "red", "blue")
    theirs = await shop.load(shop.sources[1], "B", "red", "green")
    await shop.merge(ours.variants[0], theirs.variants[0])
    await shop.move(shop.sources[1], "B", "B/red", "B2")
    seen = await shop.documents()
    assert {product["external_id"] for product in seen.values()} >= {"A", "B"}
    assert all(product["variants"] for product in seen.values())


async def test_source_priorities_may_change(shop: Shop, backend: Backend) -> None:
    ours = await shop.load(shop.sources[0], "A", "red")
    theirs = await shop.load(shop.sources[1], "B", "red")
    await shop.merge(ours.variants[0], theirs.variants[0])
    before = shop.sources[1]
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await tx[SourceStore].save(replace(before, first_party=True))
        await tx[JobStore].add(new_precedence_update_job(shop.tenant, before))
    drain = LaneProcessor(
        backend.dispatch, {UPDATE_SOURCE_PRECEDENCE: PrecedenceUpdateJob(shop.uow)}, lease=timedelta(seconds=30)
    )
    await drain.process_lane(build_lane_name(shop.tenant.org, "match"))
    document = (await shop.documents())[ours.id]
    assert document["data"]["title"] == "Title of B"
    assert document["provenance"]["title"]["reason"] == "first_party"
    assert json.loads((await shop.documents(versions=True))[ours.id])["version"] == 2
