"""Reads and writes of runs, chunk by chunk (domain/catalogue/ports.py, CatalogueStore)."""

import copy
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.catalogue.batch import Batch, FingerprintDiff, SlotRange
from domain.catalogue.missed_runs import PROBABLY_DISCONTINUED_AFTER, compute_next_status
from domain.catalogue.model import STOCK_STREAM, Product, ProductFilter, SourceItem
from domain.catalogue.ports import CatalogueStore
from domain.events.ports import EventLog
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products, full_key_range, row_fingerprint, store_batch

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
NOW = builders.MOMENT
SOURCE = "src_0000000000000000000001"
OTHER = "src_0000000000000000000002"


async def _compare_fingerprints(
    uow: UnitOfWork, tenant: Tenant, key_range: SlotRange, *fingerprints: tuple[str, bytes]
) -> FingerprintDiff:
    async with uow.begin(tenant, CALL) as tx:
        return await tx[CatalogueStore].compare_fingerprints(
            key_range, [row_fingerprint(key, fingerprint) for key, fingerprint in fingerprints]
        )


def _build_diff(**sets: set[str] | int) -> FingerprintDiff:
    return FingerprintDiff(
        **{  # type: ignore[arg-type]
            name: sets.get(name, 0) if name == "unchanged_count" else frozenset(sets.get(name, set()))  # type: ignore[arg-type]
            for name in ("changed", "returned", "absent", "still_absent", "unchanged_count")
        }
    )


def _build_product(key: str = "k", source: str = SOURCE) -> Product:
    """Return a product with two variants and three offers."""
    product = builders.product(source, "cat_1", key)
    first = builders.variant(product, f"{key}/1", data={"sku": "AB-1"})
    second = builders.variant(product, f"{key}/2", data={"sku": "AB-2"})
    builders.offer(first)
    builders.offer(first, location="east", stated_streams=STOCK_STREAM)
    builders.offer(second, stated_streams=3)
    return product


async def test_fingerprints_distinguish_changed_returned_absent_and_still_absent(
    uow: UnitOfWork, tenant: Tenant
) -> None:
    key_range = full_key_range(SOURCE)
    assert await _compare_fingerprints(uow, tenant, key_range, ("a", b"1"), ("b", b"1")) == _build_diff(
        changed={"a", "b"}
    )
    await store_batch(
        uow, tenant, Batch(fingerprints=[row_fingerprint("a"), row_fingerprint("b"), row_fingerprint("c")]), key_range
    )
    found = await _compare_fingerprints(uow, tenant, key_range, ("a", b"1"), ("b", b"2"), ("d", b"1"))
    assert found == _build_diff(changed={"b", "d"}, absent={"c"}, unchanged_count=1)
    await store_batch(uow, tenant, Batch(absent_keys=["c"]), key_range)
    assert await _compare_fingerprints(uow, tenant, key_range, ("a", b"1"), ("b", b"1")) == _build_diff(
        still_absent={"c"}, unchanged_count=2
    )
    assert (await _compare_fingerprints(uow, tenant, key_range, ("c", b"1"))).returned == {"c"}
    assert (await _compare_fingerprints(uow, tenant, key_range, ("c", b"2"))).changed == {"c"}
    await store_batch(uow, tenant, Batch(fingerprints=[row_fingerprint("c")]), key_range)
    assert (await _compare_fingerprints(uow, tenant, key_range, ("c", b"1"))).unchanged_count == 1


async def test_long_absent_items_are_not_reported_again(uow: UnitOfWork, tenant: Tenant) -> None:
    key_range = full_key_range(SOURCE)
    await store_batch(uow, tenant, Batch(fingerprints=[row_fingerprint("a")]), key_range)
    for _ in range(3):
        found = await _compare_fingerprints(uow, tenant, key_range)
        assert found.absent | found.still_absent == {"a"}
        await store_batch(uow, tenant, Batch(absent_keys=["a"]), key_range)
    assert await _compare_fingerprints(uow, tenant, key_range) == _build_diff()
    assert await _compare_fingerprints(uow, tenant, key_range, ("a", b"1")) == _build_diff(returned={"a"})


async def test_fingerprints_record_problems_and_can_be_cleared(uow: UnitOfWork, tenant: Tenant) -> None:
    key_range, good, bad = (
        full_key_range(SOURCE),
        row_fingerprint("good"),
        replace(row_fingerprint("bad"), problem_count=3),
    )
    await store_batch(uow, tenant, Batch(fingerprints=[good, bad]), key_range)
    assert (
        await _compare_fingerprints(uow, tenant, key_range, ("good", b"1"), ("bad", b"1"))
    ).problem_count_by_key == {"bad": 3}
    changed = await _compare_fingerprints(uow, tenant, key_range, ("good", b"1"), ("bad", b"2"))
    assert (changed.problem_count_by_key, changed.changed, changed.reappeared) == ({}, {"bad"}, set())
    await store_batch(uow, tenant, Batch(absent_keys=["good"]), key_range)
    assert (await _compare_fingerprints(uow, tenant, key_range, ("good", b"2"), ("bad", b"1"))).reappeared == {"good"}
    await store_batch(
        uow, tenant, Batch(invalidated_fingerprints=[bad, row_fingerprint("unknown")]), full_key_range(OTHER)
    )
    assert (await _compare_fingerprints(uow, tenant, key_range, ("bad", b"1"))).problem_count_by_key == {"bad": 3}
    await store_batch(uow, tenant, Batch(invalidated_fingerprints=[bad, row_fingerprint("unknown")]), key_range)
    found = await _compare_fingerprints(uow, tenant, key_range, ("bad", b"1"))
    assert (found.changed, found.problem_count_by_key) == ({"bad"}, {})


async def test_fingerprints_belong_to_one_source_stream_and_key_range(uow: UnitOfWork, tenant: Tenant) -> None:
    low, high = row_fingerprint("low", slot=10), row_fingerprint("high", slot=1000)
    await store_batch(uow, tenant, Batch(fingerprints=[low, high]), full_key_range(SOURCE))
    async with uow.begin(tenant, CALL) as tx:
        assert (await tx[CatalogueStore].compare_fingerprints(SlotRange(SOURCE, "catalogue", 0, 1000), [])).absent == {
            "low"
        }
        assert (
            await tx[CatalogueStore].compare_fingerprints(SlotRange(SOURCE, "catalogue", 1000, 1001), [])
        ).absent == {"high"}
        assert (await tx[CatalogueStore].compare_fingerprints(full_key_range(SOURCE, "stock"), [low])).changed == {
            "low"
        }
        assert (await tx[CatalogueStore].compare_fingerprints(full_key_range(OTHER), [low])).changed == {"low"}
        assert (await tx[CatalogueStore].compare_fingerprints(full_key_range(SOURCE), [low, high])).unchanged_count == 2


async def test_loads_whole_products(uow: UnitOfWork, tenant: Tenant) -> None:
    [kept, other, _] = await add_products(uow, tenant, _build_product("k"), _build_product("l"), _build_product("m"))
    await add_products(uow, tenant, _build_product("k", OTHER))
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[CatalogueStore].load_products(SOURCE, ["k", "unknown"]) == {"k": kept}
        assert await tx[CatalogueStore].load_products(SOURCE, [], ["l/2"]) == {"l": other}
        assert await tx[CatalogueStore].load_products(SOURCE, ["k"], ["k/1", "l/1"]) == {"k": kept, "l": other}
        assert await tx[CatalogueStore].load_products(SOURCE, [], []) == {}


async def test_loaded_products_change_only_by_saving(uow: UnitOfWork, tenant: Tenant) -> None:
    [kept] = await add_products(uow, tenant, _build_product())
    async with uow.begin(tenant, CALL) as tx:
        loaded = (await tx[CatalogueStore].load_products(SOURCE, ["k"]))["k"]
        loaded.status = "discontinued"
        loaded.variants[0].offers[0].version = 9
        loaded.variants.pop()
    async with uow.begin(tenant, CALL) as tx:
        assert (await tx[CatalogueStore].load_products(SOURCE, ["k"]))["k"] == kept


async def test_finds_variants_by_key_or_unique_sku(uow: UnitOfWork, tenant: Tenant) -> None:
    one, two = builders.product(SOURCE, "cat_1", "one"), builders.product(SOURCE, "cat_1", "two")
    builders.variant(one, "v1", data={"sku": "AB-1"})
    builders.variant(one, "v2", data={"sku": "Shared"})
    builders.variant(two, "v3", data={"sku": "shared"})
    builders.variant(two, "AB1", data={})
    builders.offer(two.variants[1])
    await add_products(uow, tenant, one, two)
    await add_products(uow, tenant, _build_product("k", OTHER))
    async with uow.begin(tenant, CALL) as tx:
        found = await tx[CatalogueStore].load_variants(SOURCE, ["v1", "ab 1", "AB1", "SHARED", "AB-2", "--"])
    assert {key: (product.key, variant.key) for key, (product, variant) in found.items()} == {
        "v1": ("one", "v1"),
        "ab 1": ("one", "v1"),
        "AB1": ("two", "AB1"),
    }
    product, variant = found["AB1"]
    assert variant in product.variants and [offer.location for offer in variant.offers] == ["main"]


async def test_saves_changes(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(uow, tenant, _build_product())
    later = NOW + timedelta(hours=1)
    async with uow.begin(tenant, CALL) as tx:
        product = (await tx[CatalogueStore].load_products(SOURCE, ["k"]))["k"]
        first = next(variant for variant in product.variants if variant.key == "k/1")
        product.data, product.version, product.status = {"title": "Round table"}, 2, "discontinued"
        first.data, first.version = {"sku": "XY-9"}, 2
        offer = next(offer for offer in first.offers if offer.location == "main")
        offer.data, offer.version, offer.withdrawn_at, offer.stated_streams = (
            {"availability": "out_of_stock"},
            2,
            later,
            0,
        )
        extra = builders.offer(first, location="north")
        batch = Batch(
            changed_products=[product],
            changed_variants=[first],
            changed_offers=[offer],
            new_offers=[extra],
            touched={product.id: product},
        )
        await tx[CatalogueStore].save_batch(full_key_range(SOURCE), batch, later)
        await tx[EventLog].append([builders.event(product.id, type="product.updated")])
        assert [event.type for event in tx.recorded.events] == ["product.updated"]
    async with uow.begin(tenant, CALL) as tx:
        product = (await tx[CatalogueStore].load_products(SOURCE, ["k"]))["k"]
        assert (product.data, product.version, product.status) == ({"title": "Round table"}, 2, "discontinued")
        assert product.updated_at == later
        first = next(variant for variant in product.variants if variant.key == "k/1")
        assert (first.data, first.version) == ({"sku": "XY-9"}, 2)
        offers = {offer.location: offer for offer in first.offers}
        assert set(offers) == {"main", "east", "north"}
        assert (offers["main"].withdrawn_at, offers["main"].stated_streams, offers["main"].version) == (later, 0, 2)
    async with uow.begin_reading(tenant) as tx:
        found = await tx[CatalogueStore].list_products(ProductFilter(q="xy9"), PageRequest())
        assert [document.id for document in found.items] == [product.id]
        assert b"Round table" in found.items[0].body
        assert (await tx[CatalogueStore].list_products(ProductFilter(q="oak"), PageRequest())).items == ()
        assert (await tx[CatalogueStore].list_products(ProductFilter(q="ab1"), PageRequest())).items == ()
        assert (await tx[CatalogueStore].list_products(ProductFilter(brand="lindgren"), PageRequest())).items == ()
        assert (
            len(
                (
                    await tx[CatalogueStore].list_products(ProductFilter(availability=["out_of_stock"]), PageRequest())
                ).items
            )
            == 1
        )


async def test_saving_needs_no_loading_and_does_not_change_its_arguments(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(uow, tenant, _build_product())
    async with uow.begin(tenant, CALL) as tx:
        product = (await tx[CatalogueStore].load_products(SOURCE, ["k"]))["k"]
    [offer, *others] = [offer for variant in product.variants for offer in variant.offers]
    offer.data, offer.version = {"availability": "low_stock"}, 2
    for other in others:
        other.data, other.version = {"availability": "backorder"}, 2
    product.data, product.version = {"title": "Oak bench"}, 2
    given = copy.deepcopy(product)
    async with uow.begin(tenant, CALL) as tx:
        batch = Batch(
            changed_offers=[offer, *others],
            touched={product.id: product},
            availabilities_by_product={product.id: frozenset({"low_stock", "backorder"})},
        )
        await tx[CatalogueStore].save_batch(full_key_range(SOURCE), batch, NOW)
        assert tx.recorded.events == []
    async with uow.begin(tenant, CALL) as tx:
        await tx[CatalogueStore].save_batch(
            full_key_range(SOURCE), Batch(changed_products=[product], touched={product.id: product}), NOW
        )
    assert product == given
    async with uow.begin_reading(tenant) as tx:
        for availability, count in (("low_stock", 1), ("backorder", 1), ("in_stock", 0)):
            found = await tx[CatalogueStore].list_products(ProductFilter(availability=[availability]), PageRequest())
            assert len(found.items) == count


async def test_a_variant_moves_to_another_product(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(uow, tenant, _build_product("k"), builders.product(SOURCE, "cat_1", "l"))
    async with uow.begin(tenant, CALL) as tx:
        products = await tx[CatalogueStore].load_products(SOURCE, ["k", "l"])
        old, new = products["k"], products["l"]
        variant = next(entry for entry in old.variants if entry.key == "k/1")
        old.variants.remove(variant)
        new.variants.append(variant)
        variant.product = new.id
        for offer in variant.offers:
            offer.product = new.id
        batch = Batch(
            changed_variants=[variant], changed_offers=list(variant.offers), touched={old.id: old, new.id: new}
        )
        await tx[CatalogueStore].save_batch(full_key_range(SOURCE), batch, NOW)
    async with uow.begin(tenant, CALL) as tx:
        products = await tx[CatalogueStore].load_products(SOURCE, ["k", "l"])
        assert [entry.key for entry in products["l"].variants] == ["k/1"]
        assert len(products["l"].variants[0].offers) == 2
        assert [entry.key for entry in products["k"].variants] == ["k/2"]


async def test_a_rolled_back_chunk_has_no_effect(uow: UnitOfWork, tenant: Tenant) -> None:
    product = _build_product()
    with pytest.raises(NotFound):
        async with uow.begin(tenant, CALL) as tx:
            batch = Batch(new_products=[product], touched={product.id: product}, fingerprints=[row_fingerprint("k")])
            await tx[CatalogueStore].save_batch(full_key_range(SOURCE), batch, NOW)
            raise NotFound
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[CatalogueStore].get_product(product.id) is None
        assert (
            await tx[CatalogueStore].compare_fingerprints(full_key_range(SOURCE), [row_fingerprint("k")])
        ).changed == {"k"}


async def test_stated_offers_of_a_stream_are_counted(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(uow, tenant, _build_product("k"), _build_product("l"))
    await add_products(uow, tenant, _build_product("k", OTHER))
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[CatalogueStore].count_stated_offers(SOURCE, "catalogue") == 4
        assert await tx[CatalogueStore].count_stated_offers(SOURCE, "stock") == 4
        assert await tx[CatalogueStore].count_stated_offers("src_0000000000000000000003", "stock") == 0
        stated = await tx[CatalogueStore].find_stated_offers(SOURCE, "catalogue", ["k", "unknown"])
        assert stated == {("k/1", "main"), ("k/2", "main")}


async def test_stock_is_stated_under_the_key_of_its_fingerprint(uow: UnitOfWork, tenant: Tenant) -> None:
    product = builders.product(SOURCE, "cat_1", "k")
    builders.offer(builders.variant(product, "v1", data={"sku": "AB-1"}), location="east", stated_streams=STOCK_STREAM)
    builders.offer(builders.variant(product, "v2", data={"sku": "AB-2"}))
    await add_products(uow, tenant, product)
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[CatalogueStore].find_stated_offers(SOURCE, "stock", ["v1"]) == {("v1", "east")}
        assert await tx[CatalogueStore].find_stated_offers(SOURCE, "stock", ["ab1"]) == {("ab1", "east")}
        assert await tx[CatalogueStore].find_stated_offers(SOURCE, "stock", ["v2", "AB-2"]) == frozenset()


async def test_the_absence_ladder(backend: Backend, tenant: Tenant) -> None:
    uow, key_range = backend.uow, full_key_range(SOURCE)
    rows = {status: builders.product(SOURCE, "cat_1", status, status=status) for status in
            ("active", "probably_discontinued", "discontinued")}  # fmt: skip
    await add_products(uow, tenant, *rows.values())
    fingerprints = [row_fingerprint(status, product=product.id) for status, product in rows.items()]
    await store_batch(
        uow, tenant, Batch(fingerprints=[*fingerprints, row_fingerprint("gone", product=new_id("prod"))]), key_range
    )

    async def due(after: timedelta) -> set[str]:
        async with uow.begin(tenant, CALL) as tx:
            absences = await tx[CatalogueStore].find_absent_products(SOURCE, NOW + after - PROBABLY_DISCONTINUED_AFTER)
            return {one.key for one in absences if compute_next_status(one, NOW + after)}

    for _ in range(2):
        await store_batch(uow, tenant, Batch(absent_keys=list(rows)), key_range)
    assert await due(timedelta(days=40)) == set()
    await store_batch(uow, tenant, Batch(absent_keys=list(rows)), key_range, NOW + timedelta(hours=1))
    assert await due(timedelta(hours=71)) == set()
    assert await due(timedelta(hours=72)) == {"active"}
    assert await due(timedelta(days=30)) == {"active", "probably_discontinued"}
    await store_batch(uow, tenant, Batch(fingerprints=fingerprints), key_range)
    assert await due(timedelta(days=40)) == set()


async def test_source_items_are_read_by_variant_id(uow: UnitOfWork, tenant: Tenant) -> None:
    [kept] = await add_products(uow, tenant, _build_product("k"))
    first, second = kept.variants
    async with uow.begin_reading(tenant) as tx:
        item = await tx[CatalogueStore].get_source_item(first.id)
        assert item == SourceItem(first.id, SOURCE, "k", first.key, first.data["sku"], first.offers)
        other = await tx[CatalogueStore].get_source_item(second.id)
        assert other is not None and list(other.offers) == second.offers
        assert await tx[CatalogueStore].get_source_item(new_id("var")) is None
    async with uow.begin_reading(Tenant(tenant.org, not tenant.livemode)) as tx:
        assert await tx[CatalogueStore].get_source_item(first.id) is None
