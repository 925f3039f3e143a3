"""Merged products and variants (domain/catalogue/ports.py, domain/catalogue/merged_statements.py)."""

import asyncio
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
from domain.agents.usecases.variant_groups import list_separate_groups
from domain.catalogue.batch import SlotRange
from domain.catalogue.model import OfferFilter, Product, ProductStatus, Stream, Visibility
from domain.catalogue.ports import CatalogueStore, PublishedCopies
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
from domain.matching.variant_groups import GroupMember, VariantGroup
from domain.media.ports import MediaStore
from domain.sources.ports import SourceStore
from domain.sources.precedence_update import UPDATE_SOURCE_PRECEDENCE, new_precedence_update_job
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_image
from tests.support.facets import check_facets
from tests.support.merged_catalogues import MERGING, MergedCatalogue, choose_pair

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def shop(uow: UnitOfWork, tenant: Tenant) -> MergedCatalogue:
    made = MergedCatalogue(uow, tenant)
    await made.create_source(licence_basis="vendor_agreement")
    await made.create_source()
    await made.create_source(first_party=True)
    return made


async def test_two_products_are_merged_and_unmerged(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red", brand="Ours")
    theirs = await shop.load_product(shop.sources[1], "B", "red", collection="Theirs")
    other = await shop.load_product(shop.sources[1], "C", "red")
    before, whole = await shop.list_documents(), await shop.list_documents(versions=True)
    merge = await shop.merge_variants(ours.variants[0], theirs.variants[0])
    assert (merge.survivor, merge.merged) == (ours.variants[0].id, theirs.variants[0].id)

    seen = await shop.list_documents()
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
    assert set((await shop.list_offers(product=ours.id)).values()) == {(ours.variants[0].id, ours.id)}
    async with shop.uow.begin_reading(shop.tenant) as tx:
        survivor = await tx[CatalogueStore].get_product(theirs.id)
        assert survivor is not None and survivor.id == ours.id

    undone = await shop.undo_merge(merge)
    assert undone.status == MergeStatus.UNDONE and undone.undone_at is not None
    assert json.dumps(await shop.list_documents()) == json.dumps(before), "including the order of fields"
    after = await shop.list_documents(versions=True)
    assert json.loads(after[theirs.id])["version"] > json.loads(whole[theirs.id])["version"]
    assert after[other.id] == whole[other.id]
    with pytest.raises(Conflict, match="already undone"):
        await shop.undo_merge(merge)


async def test_a_merged_product_is_found_by_the_words_of_each_source(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red")
    theirs = await shop.load_product(shop.sources[1], "B", "red")
    await shop.merge_variants(ours.variants[0], theirs.variants[0])
    for filter in (
        {"sku": ["B-red"]}, {"sku": ["A-red"]}, {"external_id": ["B"]}, {"external_id": ["B/red"]}, {"external_id": ["A"]},
        {"variant": [theirs.variants[0].id]}, {"q": "Title"}, {"status": ["active"]}, {"availability": ["in_stock"]},
        {"offer": [theirs.variants[0].offers[0].id]}, {"source": [shop.sources[0].id]}, {"source": [shop.sources[1].id]},
        {"source": [shop.sources[1].id], "q": "Title"}, {"id": [theirs.id]},
    ):  # fmt: skip
        assert await shop.find_products(**filter) == {ours.id}, filter
        assert await shop.find_products(**{"status": ["active"], "availability": ["in_stock"], **filter}) == {
            ours.id
        }, filter
    for filter in (
        {"variant": theirs.variants[0].id},
        {"product": theirs.id},
        {"product": theirs.id, "source": theirs.source},
    ):
        listed = await shop.list_offers(**filter)
        assert set(listed.values()) == {(ours.variants[0].id, ours.id)} and len(listed) == (
            1 if "source" in filter else 2
        )
    assert len(await shop.list_offers(sku=["B-red"])) == len(await shop.list_offers(external_id=["B"])) == 2
    async with shop.uow.begin_reading(shop.tenant) as tx:
        page = await tx[CatalogueStore].list_offers(OfferFilter(source=shop.sources[1].id), PageRequest(limit=9))
    [line] = page.items
    assert (line.product_key, line.variant_key, line.product_title) == ("B", "B/red", "Title of A")


async def test_later_statements_of_a_source_are_merged(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[1], "A", "red", brand="Ours")
    theirs = await shop.load_product(shop.sources[0], "B", "red")
    merge = await shop.merge_variants(ours.variants[0], theirs.variants[0])
    [event] = await shop.change_product(shop.sources[1], "A", collection="Nordic", title="Another")
    assert (event.type, event.subject) == ("product.updated", theirs.id)
    assert [change[0] for change in event.fields] == ["data.collection"], "the shown title is the other product's"
    assert event.origins["data.collection"].source == shop.sources[1].id
    [event] = await shop.change_price(shop.sources[1], "A", 77)
    assert event.type == "offer.changed"
    assert (event.data["variant"], event.data["product"]) == (theirs.variants[0].id, theirs.id)
    prices = {offer["price"] for offer in (await shop.list_documents())[theirs.id]["variants"][0]["offers"]}
    assert prices == {77, 101}
    await shop.undo_merge(merge)
    seen = await shop.list_documents()
    assert seen[ours.id]["data"] == {"title": "Another", "brand": "Ours", "collection": "Nordic"}
    assert "collection" not in seen[theirs.id]["data"]
    assert seen[ours.id]["variants"][0]["offers"][0]["price"] == 77


async def test_each_version_has_one_event(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red")
    theirs = await shop.load_product(shop.sources[1], "B", "red")
    merge = await shop.merge_variants(ours.variants[0], theirs.variants[0])
    await shop.change_product(shop.sources[1], "B", title="Hidden")
    await shop.change_product(shop.sources[1], "B", collection="Shown")
    await shop.undo_merge(merge)
    await shop.change_product(shop.sources[1], "B", title="On its own")
    whole = await shop.list_documents(versions=True)
    assert json.loads(whole[theirs.id])["version"] == 4  # created, merged, unmerged, updated
    assert json.loads(whole[ours.id])["version"] == 3  # created, a field more, a field less


async def test_pairs_follow_merges(shop: MergedCatalogue) -> None:
    a = (await shop.load_product(shop.sources[0], "A", "red")).variants[0]
    b = (await shop.load_product(shop.sources[1], "B", "red")).variants[0]
    c = (await shop.load_product(shop.sources[1], "C", "red")).variants[0]
    rival = await shop.create_pair(a, c)
    merge = await shop.merge_variants(a, b)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        assert require_found(await tx[PairStore].get(rival.id)).status == PairStatus.SUPERSEDED, (
            "a has an item of that source"
        )
        with pytest.raises(Conflict, match="superseded"):
            await MERGING.dismiss_pair(tx, rival.id, merge.decided_by)
    await shop.undo_merge(merge)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        assert require_found(await tx[PairStore].get(rival.id)).status == PairStatus.OPEN
        pair = require_found(await tx[PairStore].get(str(merge.pair)))
        assert (pair.status, pair.merge, pair.held) == (PairStatus.OPEN, None, True)
        assert (await MERGING.dismiss_pair(tx, pair.id, merge.decided_by)).status == PairStatus.DISMISSED
        assert (await MERGING.reopen_pair(tx, pair.id)).status == PairStatus.OPEN


async def test_a_dependent_merge_is_named(shop: MergedCatalogue) -> None:
    a = (await shop.load_product(shop.sources[0], "A", "red")).variants[0]
    b = (await shop.load_product(shop.sources[1], "B", "red")).variants[0]
    c = (await shop.load_product(shop.sources[2], "C", "red")).variants[0]
    first = await shop.merge_variants(a, b)
    second = await shop.merge_variants(b, c)
    with pytest.raises(Conflict, match=second.id):
        await shop.undo_merge(first)
    await shop.undo_merge(second)
    await shop.undo_merge(first)
    assert len(await shop.list_documents()) == 3


async def test_a_group_stays_when_merged_variants_move(shop: MergedCatalogue) -> None:
    oak, black = [await shop.load_product(shop.sources[0], key, "red") for key in ("A1", "A2")]
    theirs = await shop.load_product(shop.sources[1], "B", "red", "blue")
    await shop.group_products(oak, black)
    assert [len(product["variants"]) for product in (await shop.list_documents()).values()] == [2, 2]
    await shop.merge_variants(oak.variants[0], theirs.variants[0])
    await shop.merge_variants(black.variants[0], theirs.variants[1])
    assert len(await shop.list_documents()) == 1
    await shop.move_variant(shop.sources[1], "B", "B/blue", "B2")
    seen = await shop.list_documents()
    assert {oak.id} <= seen.keys() and black.id not in seen, "the group stays"


async def test_listed_products_are_grouped_only_with_listed_products(shop: MergedCatalogue) -> None:
    oak, black = [await shop.load_product(shop.sources[0], key, "red") for key in ("A1", "A2")]
    for product in (oak, black):
        async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
            await tx[PublishedCopies].set_visibility([product.id], Visibility.LISTED)
        if product is oak:
            with pytest.raises(Conflict, match="listed"):
                await shop.group_products(oak, black)
    assert await shop.group_products(oak, black) == oak.id


@pytest.mark.parametrize("seed", range(2))
async def test_random_merges_can_be_undone(shop: MergedCatalogue, seed: int) -> None:
    await run_random_merges(shop, random.Random(seed), steps=30)
    await check_facets(shop.uow, shop.tenant)


@pytest.mark.soak
async def test_a_thousand_merges_can_be_undone(shop: MergedCatalogue) -> None:
    await run_random_merges(shop, random.Random(1000), steps=1000)


async def run_random_merges(shop: MergedCatalogue, dice: random.Random, steps: int) -> None:
    """Merge, group and undo at random; after all undos the documents equal the original ones."""
    for _ in range(2):
        await shop.create_source()
    for number in range(4):
        for source in shop.sources:
            names = dice.sample(("red", "blue", "green"), dice.randint(1, 3))
            await shop.load_product(source, f"{source.id[-4:]}{number}", *names, brand=dice.choice(("X", "Y")))
    before = await shop.list_documents()
    for step in range(steps):
        await _take_random_step(shop, dice)
        if step % 10 == 9:
            await _check_consistency(shop, before)
            await check_facets(shop.uow, shop.tenant)
    while applied := await _list_applied_merges(shop):
        for merge in reversed(applied):
            try:
                await shop.undo_merge(merge)
            except Conflict as refused:
                assert "depends on" in str(refused) or "already" in str(refused)
    assert await shop.list_documents() == before


async def _take_random_step(shop: MergedCatalogue, dice: random.Random) -> None:
    """Merge two variants, group two products, or undo a merge."""
    applied = await _list_applied_merges(shop)
    try:
        if applied and dice.random() < 0.4:
            await shop.undo_merge(dice.choice(applied))
        elif dice.random() < 0.2:
            await shop.group_products(*dice.sample(shop.products, 2))
        elif (two := choose_pair(dice, shop.products)) is not None:
            await shop.merge_variants(*two)
    except Conflict as refused:
        known = ("depends on", "already merged", "two items of the source", "match of these")
        assert any(text in str(refused) for text in known), refused


async def _list_applied_merges(shop: MergedCatalogue) -> list[Merge]:
    async with shop.uow.begin_reading(shop.tenant) as tx:
        page = await tx[MergeStore].list_merges(MergeFilter(status="applied"), PageRequest(limit=1000))
    return list(page.items)[::-1]


async def _check_consistency(shop: MergedCatalogue, before: dict[str, object]) -> None:
    """Check that no offer is lost, duplicated or without its variant, and that lists agree with documents."""
    seen, offers = await shop.list_documents(), await shop.list_offers()
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


async def test_merged_products_have_the_images_of_both(shop: MergedCatalogue) -> None:
    url = "https://a.example/1.jpg"
    ours = await shop.load_product(shop.sources[0], "A", "red")
    theirs = await shop.load_product(shop.sources[1], "B", "red", media=[{"url": url}])
    await shop.merge_variants(ours.variants[0], theirs.variants[0])
    image = await add_image(shop.uow, shop.tenant, theirs.id, url)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await tx[MediaStore].rebuild_documents(100)
    assert [one["id"] for one in (await shop.list_documents())[ours.id]["data"]["media"]] == [image.id]
    await shop.change_product(shop.sources[0], "A", collection="Other")
    assert [one["id"] for one in (await shop.list_documents())[ours.id]["data"]["media"]] == [image.id]


class EventValidator:
    """Validator of published events: each fits its schema and no version of a subject is missing."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant, self.versions, self.types = tenant, dict[str, int](), list[str]()

    def validate(self, events: Sequence[Event]) -> None:
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


async def test_events_fit_their_schemas_and_none_is_missing(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red", "blue", brand="Ours")
    theirs = await shop.load_product(shop.sources[1], "B", "red", "blue", collection="Theirs")
    heard = EventValidator(shop.tenant)
    first = await shop.merge_variants(ours.variants[0], theirs.variants[0], heard.validate)
    assert heard.types == ["variant.merged"] or "product.merged" in heard.types
    await shop.merge_variants(ours.variants[1], theirs.variants[1], heard.validate)
    heard.validate(await shop.change_product(shop.sources[1], "B", collection="Other"))
    heard.validate(await shop.change_price(shop.sources[1], "B", 7))
    heard.validate(await shop.change_product(shop.sources[0], "A", title="Said anew"))
    await shop.undo_merge(first, heard.validate)
    heard.validate(await shop.change_product(shop.sources[1], "B", title="Hidden or not"))
    for merge in reversed(await _list_applied_merges(shop)):
        await shop.undo_merge(merge, heard.validate)
    heard.validate(await shop.change_product(shop.sources[1], "B", title="On its own again"))
    assert {"product.merged", "product.unmerged", "variant.merged", "variant.unmerged", "product.updated"} <= set(
        heard.types
    )
    for product in (await shop.list_documents(versions=True)).values():
        document = json.loads(product)
        assert document["version"] == heard.versions.get(document["id"], 1)
        for variant in document["variants"]:
            assert variant["version"] == heard.versions.get(variant["id"], 1)


async def test_every_source_keeps_its_own_codes(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[1], "A", "red")
    theirs = await shop.load_product(shop.sources[0], "B", "red")
    for product, gtin, mpn in ((ours, "4006381333931", "AAA-1"), (theirs, "96385074", "BBB-2")):
        source = next(one for one in shop.sources if one.id == product.source)
        await shop.change_variants(source, product.key, gtin=gtin, mpn=mpn)
    await shop.merge_variants(ours.variants[0], theirs.variants[0])
    for filter in ({"mpn": ["AAA-1"]}, {"mpn": ["BBB-2"]}, {"gtin": ["4006381333931"]}, {"gtin": ["96385074"]}):
        assert await shop.find_products(**filter) == {theirs.id}, filter
        assert await shop.find_products(**filter, id=[theirs.id]) == {theirs.id}, filter
        assert len(await shop.list_offers(**filter)) == 2, filter


async def test_an_unchanged_statement_does_not_become_newer(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[1], "A", "red")
    another = await shop.create_source()
    theirs = await shop.load_product(another, "B", "red")
    await shop.change_product(shop.sources[1], "A", title="Old")
    await shop.change_product(another, "B", title="New")
    merge = await shop.merge_variants(ours.variants[0], theirs.variants[0])
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await tx[CatalogueStore].lock_for_writing()
        loaded = await tx[CatalogueStore].load_products(shop.sources[1].id, ["A"])
        reconciler = shop.create_reconciler(shop.sources[1], tx.now, loaded)
        reconciler.change_status(reconciler.products["A"], ProductStatus.PROBABLY_DISCONTINUED)
        await write_reconciled(tx, SlotRange(shop.sources[1].id, Stream.CATALOGUE, 0, 0), reconciler)
    assert (await shop.list_documents())[find_survivor(merge, ours, theirs)]["data"]["title"] == "New"


def find_survivor(merge: Merge, *products: Product) -> str:
    return next(product.id for product in products if product.variants[0].id == merge.survivor)


async def test_images_stay_after_the_view_is_rebuilt(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red")
    theirs = await shop.load_product(shop.sources[1], "B", "red")
    await shop.change_variants(shop.sources[1], "B", media=[{"url": "https://a.example/1.jpg"}])
    await shop.merge_variants(ours.variants[0], theirs.variants[0])
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        named = await tx[MediaStore].list_media(shop.sources[1].id, builders.MOMENT, None, 10)
    assert [item for one in named for item in one.items], "its own source still lists it"


async def test_products_follow_variants_that_move(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red")
    theirs = await shop.load_product(shop.sources[1], "B", "red")
    await shop.merge_variants(ours.variants[0], theirs.variants[0])
    await shop.move_variant(shop.sources[0], "A", "A/red", "A2")
    seen = await shop.list_documents()
    async with shop.uow.begin_reading(shop.tenant) as tx:
        survivor = await tx[CatalogueStore].get_product(theirs.id)
    assert survivor is not None and seen[survivor.id]["external_id"] == "A2"
    assert len(seen[survivor.id]["variants"][0]["offers"]) == 2


async def test_products_without_shared_variants_are_separated(shop: MergedCatalogue) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red", "blue")
    theirs = await shop.load_product(shop.sources[1], "B", "red", "green")
    await shop.merge_variants(ours.variants[0], theirs.variants[0])
    await shop.move_variant(shop.sources[1], "B", "B/red", "B2")
    seen = await shop.list_documents()
    assert {product["external_id"] for product in seen.values()} >= {"A", "B"}
    assert all(product["variants"] for product in seen.values())


async def test_changed_source_priorities_are_applied(shop: MergedCatalogue, backend: Backend) -> None:
    ours = await shop.load_product(shop.sources[0], "A", "red")
    theirs = await shop.load_product(shop.sources[1], "B", "red")
    await shop.merge_variants(ours.variants[0], theirs.variants[0])
    before = shop.sources[1]
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await tx[SourceStore].save(replace(before, first_party=True))
        await tx[JobStore].add(new_precedence_update_job(shop.tenant, before))
    drain = LaneProcessor(
        backend.dispatch, {UPDATE_SOURCE_PRECEDENCE: PrecedenceUpdateJob(shop.uow)}, lease=timedelta(seconds=30)
    )
    await drain.process_lane(build_lane_name(shop.tenant.org, "match"))
    document = (await shop.list_documents())[ours.id]
    assert document["data"]["title"] == "Title of B"
    assert document["provenance"]["title"]["reason"] == "first_party"
    assert json.loads((await shop.list_documents(versions=True))[ours.id])["version"] == 2


async def test_separate_groups_are_found_while_another_transaction_locks_their_products(shop: MergedCatalogue) -> None:
    oak, black, white = [await shop.load_product(shop.sources[0], key, "red") for key in ("A1", "A2", "A3")]
    await shop.group_products(oak, black)

    def build_group(*products: Product) -> VariantGroup:
        return VariantGroup("A", [GroupMember(one.id, one.variants[0].id, "A", {}) for one in products])

    groups = [build_group(oak, black), build_group(oak, black, white)]
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx, shop.uow.begin_reading(shop.tenant) as other:
        await tx[CatalogueStore].load_cluster([oak.id])
        async with asyncio.timeout(30):
            assert await list_separate_groups(other, groups) == groups[1:]
