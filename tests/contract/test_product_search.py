"""Search of products with other forms and spellings of words (domain/catalogue/usecases/service.py)."""

import pytest

from domain.catalogue.filter_counts import TotalCount
from domain.catalogue.model import Product, ProductFilter, ProductSort
from domain.catalogue.usecases.service import CatalogueService
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products

pytestmark = pytest.mark.asyncio
CATALOGUE = CatalogueService()


async def _add_titled(backend: Backend, tenant: Tenant, *titles: str, finish: str | None = None) -> list[Product]:
    source, made = new_id("src"), []
    for number, title in enumerate(titles):
        product = builders.product(source, "cat_1", f"k{number}", data={"title": title})
        data = {"sku": f"SKU-{number}", "gtin": "4006381333931" if number == 0 else "96385074"}
        builders.variant(product, f"v{number}", data=data | ({"finish": finish} if finish else {}))
        made.append(product)
    return await add_products(backend.uow, tenant, *made)


async def _search(backend: Backend, tenant: Tenant, q: str, limit: int = 100, **filter: object) -> list[str]:
    """Return the titles of all pages."""
    found, key = list[str](), None
    while True:
        async with backend.uow.begin_reading(tenant) as tx:
            page = await CATALOGUE.list_products(tx, ProductFilter(q=q, **filter), PageRequest(limit, key))  # type: ignore[arg-type]
        assert len(page.items) == limit or not page.has_more
        found += [document.body.decode().split('"title":"')[1].split('"')[0] for document in page.items]
        key = page.next_key
        if key is None:
            return found


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("bed", ["Oak bed", "Beds of pine"]),  # exact matches come first
        ("beds", ["Beds of pine", "Oak bed"]),
        ("stühle", ["Stuhl Eiche"]),
        ("walnt", ["Walnut table"]),
        ("wallnut table", ["Walnut table"]),
        ("waltun", []),  # two letters differ
        ("taple", ["Walnut table"]),
        ("oka", []),  # short words must be exact
        ("walnut bed", []),
        ("4006381333931", ["Oak bed"]),
        ("4006-3813-33931", ["Oak bed"]),
        ("sku 2", ["Stuhl Eiche"]),
        ("tisch3", []),
    ],
)
async def test_words_are_found_in_other_forms_and_spellings(
    backend: Backend, tenant: Tenant, q: str, expected: list[str]
) -> None:
    await _add_titled(backend, tenant, "Oak bed", "Beds of pine", "Stuhl Eiche", "Walnut table")
    for limit in (1, 2, 3, 100):
        assert await _search(backend, tenant, q, limit) == expected, limit
    async with backend.uow.begin_reading(tenant) as tx:
        filter = ProductFilter(q=q)
        assert await CATALOGUE.count_products(tx, filter) == TotalCount(len(expected))
        assert (await CATALOGUE.count_filter_values(tx, filter)).counted_products == len(expected)
        page = await CATALOGUE.list_products(tx, filter, PageRequest(), ProductSort.TITLE)
        assert len(page.items) == len(expected)
    assert not await _search(backend, Tenant(tenant.org, not tenant.livemode), q)


async def test_a_word_that_a_product_has_is_not_replaced_by_a_similar_one(backend: Backend, tenant: Tenant) -> None:
    await _add_titled(backend, tenant, "Table lamp", "Cable box")
    assert await _search(backend, tenant, "table") == ["Table lamp"]
    assert sorted(await _search(backend, tenant, "dable")) == ["Cable box", "Table lamp"]


async def test_products_are_found_by_the_finish_of_a_variant(backend: Backend, tenant: Tenant) -> None:
    [product] = await _add_titled(backend, tenant, "Bed", finish="Walnut, oiled")
    assert await _search(backend, tenant, "walnut bed") == ["Bed"]
    assert await _search(backend, tenant, "walnut", finish=["walnut"], status=["active", "discontinued"]) == ["Bed"]
    assert await _search(backend, tenant, "walnuts", finish=["oak"]) == []
    assert product.id


async def test_completions_find_a_product(backend: Backend, tenant: Tenant) -> None:
    await _add_titled(backend, tenant, "Walnut table", "Oak bed", "Bench oak")
    async with backend.uow.begin_reading(tenant) as tx:
        assert await CATALOGUE.complete_query(tx, "walnut b", ProductFilter()) == []
        assert await CATALOGUE.complete_query(tx, "oak b", ProductFilter()) == ["oak bed", "oak bench"]
        assert await CATALOGUE.complete_query(tx, "oak b", ProductFilter(status=["discontinued"])) == []
