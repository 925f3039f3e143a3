"""Reads of products, variants and offers (domain/catalogue/ports.py, CatalogueReader)."""

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.catalogue import categories, search_terms
from domain.catalogue.batch import Batch
from domain.catalogue.filter_counts import TotalCount, list_most_frequent
from domain.catalogue.model import Document, OfferFilter, OfferLine, Product, ProductFilter, ProductSort
from domain.catalogue.ports import CatalogueStore
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from tests.support import builders, catalogues, filters
from tests.support.backend import Backend
from tests.support.pagination import Fetch, check_insertions, check_pagination, collect_items

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
SOURCES = ("src_0000000000000000000001", "src_0000000000000000000002")


def _get_id(document: Document) -> str:
    return document.id


def _sort_ids(products: list[Product]) -> list[str]:
    return sorted((product.id for product in products), reverse=True)


def build_product_fetch(
    backend: Backend, tenant: Tenant, filter: ProductFilter, sort: ProductSort = ProductSort.NEWEST
) -> Fetch[Document]:
    """Return a function that fetches pages of products with this filter."""

    async def fetch(page_request: PageRequest) -> Page[Document]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[CatalogueStore].list_products(filter, page_request, sort)

    return fetch


def build_offer_fetch(backend: Backend, tenant: Tenant, filter: OfferFilter) -> Fetch[OfferLine]:
    """Return a function that fetches pages of offers with this filter."""

    async def fetch(page_request: PageRequest) -> Page[OfferLine]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[CatalogueStore].list_offers(filter, page_request)

    return fetch


async def _find_product_ids(backend: Backend, tenant: Tenant, **filter: object) -> list[str]:
    fetch = build_product_fetch(backend, tenant, ProductFilter(**filter))  # type: ignore[arg-type]
    return [document.id for document in await collect_items(fetch, 100)]


async def test_a_document_is_the_whole_product(backend: Backend, tenant: Tenant) -> None:
    product = builders.product(SOURCES[0], "cat_1", "k", data={"title": "Söta bord", "brand": "Öst"})
    offer = builders.offer(builders.variant(product, "k/1", data={"sku": "A-1", "axes": {"finish": "oiled"}}))
    await catalogues.add_products(backend.uow, tenant, product)
    async with backend.uow.begin_reading(tenant) as tx:
        document = await tx[CatalogueStore].get_product(product.id)
        assert await tx[CatalogueStore].get_product("prod_0000000000000000000000") is None
    assert document is not None and document.id == product.id and document.etag
    wire = json.loads(document.body)
    assert wire["object"] == "product" and wire["id"] == product.id
    assert wire["data"] == {"title": "Söta bord", "brand": "Öst"}
    assert wire["variants"][0]["data"] == {"sku": "A-1", "axes": {"finish": "oiled"}}
    assert wire["variants"][0]["offers"][0]["id"] == offer.id
    assert wire["variants"][0]["offers"][0]["price"] == 49900


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    product = builders.product(SOURCES[0], "cat_1", "k")
    builders.offer(builders.variant(product, "k/1"))
    await catalogues.add_products(backend.uow, tenant, product)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            assert await tx[CatalogueStore].get_product(product.id) is None
            assert (await tx[CatalogueStore].list_products(ProductFilter(), PageRequest())).items == ()
            assert (await tx[CatalogueStore].list_offers(OfferFilter(), PageRequest())).items == ()
            assert await tx[CatalogueStore].load_products(SOURCES[0], ["k"]) == {}
            assert await tx[CatalogueStore].load_variants(SOURCES[0], ["k/1"]) == {}
            assert await tx[CatalogueStore].count_stated_offers(SOURCES[0], "catalogue") == 0


async def test_only_the_own_catalogue_is_listed(backend: Backend) -> None:
    org = await backend.organisation()
    tenant = Tenant(org.id, False)
    product = builders.product(SOURCES[0], org.catalogues[1], "k")
    await catalogues.add_products(backend.uow, tenant, product)
    assert await _find_product_ids(backend, tenant, catalogue=org.catalogues[1]) == [product.id]
    assert await _find_product_ids(backend, tenant, catalogue=org.catalogues[0]) == []
    assert await _find_product_ids(backend, tenant, catalogue="cat_0000000000000000000000") == []


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("oak", True),
        ("TABLE oak", True),
        ("soderhamn", True),
        ("SÖDERHAMN lindgren", True),
        ("tab", False),
        ("oak chair", False),
        ("ab12c", True),
        ("AB 12-C", True),
        ("ab12", False),
        ("77-x", True),
        ("--", False),
        ("oak table soderhamn lindgren mobler oak oak oak oak 3", True),
    ],
)
async def test_products_are_found_by_words(backend: Backend, tenant: Tenant, q: str, found: bool) -> None:
    data = {"title": "Söderhamn: oak-table (3)", "brand": "Lindgren Möbler"}
    product = builders.product(SOURCES[0], "cat_1", "k", data=data)
    builders.variant(product, "k/1", data={"sku": "AB-12/c"})
    builders.variant(product, "k/2", data={"mpn": "77.X"})
    await catalogues.add_products(
        backend.uow, tenant, product, builders.product(SOURCES[0], "cat_1", "l", data={"title": "Lamp"})
    )
    assert await _find_product_ids(backend, tenant, q=q) == ([product.id] if found else [])


async def test_category_filter_includes_subcategories(backend: Backend, tenant: Tenant) -> None:
    deep = next(entry for entry in categories.category_by_id().values() if len(entry.ancestors) == 2)
    product = builders.product(SOURCES[0], "cat_1", "k", data={"title": "Sofa", "category": deep.id})
    top = builders.product(SOURCES[0], "cat_1", "l", data={"title": "Seat", "category": deep.ancestors[0]})
    await catalogues.add_products(backend.uow, tenant, product, top)
    assert await _find_product_ids(backend, tenant, category=[deep.id]) == [product.id]
    assert await _find_product_ids(backend, tenant, category=[deep.ancestors[1]]) == [product.id]
    assert await _find_product_ids(backend, tenant, category=[deep.ancestors[0]]) == _sort_ids([product, top])


@pytest.mark.parametrize("seed", range(8))
async def test_random_product_filters_agree_with_the_model(backend: Backend, seed: int) -> None:
    dice = random.Random(seed)
    org = await backend.organisation()
    tenant = Tenant(org.id, True)
    moments = [builders.MOMENT + timedelta(minutes=number) for number in range(4)]
    held: list[Product] = []
    for number, moment in enumerate(moments):
        source = SOURCES[number % 2]
        new = [catalogues.random_product(dice, source, org.catalogues[0], f"{number}/{n}") for n in range(12)]
        held += await catalogues.add_products(backend.uow, tenant, *new, now=moment)
    for _ in range(40):
        filter = catalogues.random_product_filter(dice, held, [*moments, moments[-1] + timedelta(seconds=1)])
        sort = dice.choice([ProductSort.NEWEST, *ProductSort])
        found = [product for product in held if filters.matches(product, filter)]
        if filter.catalogue not in (None, org.catalogues[0]):
            found = []
        expected = [product.id for product in filters.sort_products(found, sort)]
        fetch = build_product_fetch(backend, tenant, filter, sort)
        limit = dice.choice([1, 3, 10, 100])
        assert [document.id for document in await collect_items(fetch, limit)] == expected, (filter, sort)
        if expected and sort == ProductSort.NEWEST:
            start = dice.choice(expected)
            back = await collect_items(fetch, limit, start=start, backwards=True)
            assert [document.id for document in back] == expected[: expected.index(start)], filter
        async with backend.uow.begin_reading(tenant) as tx:
            assert await tx[CatalogueStore].count_products(filter) == TotalCount(len(expected))


@pytest.mark.parametrize("seed", range(4))
async def test_counts_of_a_filter_ignore_its_own_values(backend: Backend, seed: int) -> None:
    dice = random.Random(seed)
    org = await backend.organisation()
    tenant = Tenant(org.id, True)
    new = [catalogues.random_product(dice, SOURCES[0], org.catalogues[0], str(number)) for number in range(60)]
    held = await catalogues.add_products(backend.uow, tenant, *new)
    for _ in range(20):
        filter = catalogues.random_product_filter(dice, held, [builders.MOMENT])
        async with backend.uow.begin_reading(tenant) as tx:
            counts = await tx[CatalogueStore].count_filter_values(filter)
        expected = _count_expected_values(held, filter)
        assert counts.counted_products == counts.total.count == len(_match(held, filter)), filter
        assert counts.is_complete and counts.total.is_exact
        assert {search_terms.normalise_brand(brand): n for brand, n in counts.brands} == expected["brands"], filter
        assert dict(counts.statuses) == expected["status"], filter
        assert dict(counts.availabilities) == expected["availability"], filter
        assert dict(counts.sources) == expected["source"], filter
        assert dict(counts.colours) == expected["colour"], filter
        assert dict(counts.finishes) == expected["finish"], filter
        assert dict(counts.completeness) == expected["completeness"], filter
        assert counts.categories == list_most_frequent(expected["category"]), filter
        assert {price.currency: price.count for price in counts.prices} == expected["currency"], filter
        priced = _match(held, replace(filter, currency=None, min_price=None, max_price=None))
        prices = [price for product in priced if (price := filters.find_lowest_price(product))]
        for price in counts.prices:
            amounts = [amount for currency, amount in prices if currency == price.currency]
            assert (price.lowest, price.highest) == (min(amounts), max(amounts)), filter


def _match(products: list[Product], filter: ProductFilter) -> list[Product]:
    return [product for product in products if filters.matches(product, filter)]


def _count_expected_values(products: list[Product], filter: ProductFilter) -> dict[str, dict[str, int]]:
    """Return the number of products by filter and value; the values of a filter in the products that match all others."""
    values = {
        "brands": lambda one: {search_terms.normalise_brand(one.data["brand"])} if one.data.get("brand") else set(),
        "status": lambda one: {str(one.status)},
        "availability": search_terms.list_availabilities,
        "source": lambda one: {one.source},
        "colour": lambda one: filters.list_families(one, 0),
        "finish": lambda one: filters.list_families(one, 1),
        "completeness": lambda one: {filters.find_completeness_band(one)},
        "category": lambda one: categories.path_ids(one.data.get("category")),
        "currency": lambda one: {price[0]} if (price := filters.find_lowest_price(one)) else set(),
    }
    own = {"brands": ("brand", "brands"), "currency": ("currency", "min_price", "max_price")}
    found = {}
    for name, list_values in values.items():
        others = _match(products, replace(filter, **dict.fromkeys(own.get(name, (name,)))))
        found[name] = dict(Counter(value for product in others for value in list_values(product)))
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_random_offer_filters_agree_with_the_model(backend: Backend, seed: int) -> None:
    dice = random.Random(100 + seed)
    org = await backend.organisation()
    tenant = Tenant(org.id, True)
    moments = [builders.MOMENT + timedelta(minutes=number) for number in range(3)]
    held: list[Product] = []
    for number, moment in enumerate(moments):
        new = [
            catalogues.random_product(dice, SOURCES[number % 2], org.catalogues[0], f"{number}/{n}") for n in range(12)
        ]
        held += await catalogues.add_products(backend.uow, tenant, *new, now=moment)
    offers = {o.id: (o, variant, product) for product in held for variant in product.variants for o in variant.offers}
    for _ in range(25):
        filter = catalogues.random_offer_filter(dice, held, moments)
        expected = [id for id in sorted(offers, reverse=True) if filters.offer_matches(*offers[id], filter)]
        lines = await collect_items(build_offer_fetch(backend, tenant, filter), dice.choice([1, 3, 10, 100]))
        assert [line.offer.id for line in lines] == expected, filter


async def test_an_offer_line_names_its_variant_and_product(backend: Backend, tenant: Tenant) -> None:
    bare = builders.product(SOURCES[0], "cat_1", "bare", data={})
    full = builders.product(SOURCES[0], "cat_1", "full", data={"title": "Table"})
    offer = builders.offer(
        builders.variant(full, "full/1", data={"sku": "A-1"}),
        data={
            "currency": "usd",
            "cost": 1,
            "incoming": [{"quantity": 3, "eta": "2026-12-04"}],
            "availability": "unknown",
        },
        stated_streams=3,
        withdrawn_at=builders.MOMENT,
    )
    other = builders.offer(builders.variant(bare, "bare/1", data={}))
    await catalogues.add_products(backend.uow, tenant, bare, full)
    lines = {
        line.offer.id: line for line in await collect_items(build_offer_fetch(backend, tenant, OfferFilter()), 100)
    }
    assert lines[offer.id] == OfferLine(offer, "cat_1", "Table", "A-1", "full", "full/1")
    assert lines[other.id] == OfferLine(other, "cat_1", None, None, "bare", "bare/1")


async def test_pages_are_stable_while_products_are_added(backend: Backend, tenant: Tenant) -> None:
    products = [builders.product(SOURCES[0], "cat_1", str(number)) for number in range(11)]
    await catalogues.add_products(backend.uow, tenant, *products)

    async def insert() -> None:
        await catalogues.add_products(backend.uow, tenant, builders.product(SOURCES[0], "cat_1", new_id("prod")))

    fetch = build_product_fetch(backend, tenant, ProductFilter(brand="lindgren"))
    expected = await collect_items(fetch, 100)
    assert [document.id for document in expected] == _sort_ids(products)
    await check_pagination(fetch, expected, _get_id)
    await check_insertions(fetch, insert, expected, _get_id)


async def test_codes_follow_changes_of_a_variant(backend: Backend, tenant: Tenant) -> None:
    product = builders.product(SOURCES[0], "cat_1", "k")
    variant = builders.variant(product, "k/1", data={"sku": "A-1", "gtin": "4006381333931", "mpn": "M"})
    builders.offer(variant)
    await catalogues.add_products(backend.uow, tenant, product)
    assert await _find_product_ids(backend, tenant, gtin=["04006381333931"], sku=["A-1"], mpn=["M"]) == [product.id]
    changed = replace(variant, data={"sku": "a1", "gtin": "96385074"})
    product.variants = [changed]
    batch = Batch(changed_variants=[changed], touched={product.id: product})
    await catalogues.store_batch(backend.uow, tenant, batch, catalogues.full_key_range(SOURCES[0]))
    for gone in ({"gtin": ["4006381333931"]}, {"sku": ["A-1"]}, {"mpn": ["M"]}):
        assert await _find_product_ids(backend, tenant, **gone) == []
    assert await _find_product_ids(backend, tenant, gtin=["96385074"], sku=["a1"], external_id=["k/1"]) == [product.id]
