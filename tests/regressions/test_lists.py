"""Lists that omitted rows: each test states what is expected."""

from typing import Any

import pytest

from adapters.postgres import catalogue_query
from domain.catalogue.model import ProductFilter
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from tests.contract.test_catalogue import SOURCES, build_product_fetch
from tests.support import builders, catalogues
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    """Lower the limits: 10 rows scanned per page instead of thousands, 3 before counting, and counts up to 3 instead of 500."""
    monkeypatch.setattr(catalogue_query, "_MAX_SORTED_PRODUCTS", 2)
    monkeypatch.setattr(catalogue_query, "_COUNT_LIMIT", 3)
    monkeypatch.setattr(catalogue_query, "SQL", catalogue_query._load_statements(10, 10))
    first = {is_own: catalogue_query._load_statements(3, 3, is_own=is_own) for is_own in (False, True)}
    monkeypatch.setattr(catalogue_query, "_FIRST_SCAN_STATEMENTS", first)


async def read_all(fetch: Any, limit: int) -> list[Any]:
    """Read all pages, which may be short."""
    found, key = [], None
    while True:
        page = await fetch(PageRequest(limit, key))
        found += page.items
        if not page.has_more:
            return found
        key = page.next_key


def build_products(count: int, first: int, title: str, brand: str, sku: str | None = None) -> list[Any]:
    """Return products created one after the other."""
    products = []
    for number in range(first, first + count):
        product = builders.product(SOURCES[0], "cat_1", f"k{number}", data={"title": title, "brand": brand})
        builders.offer(builders.variant(product, f"k{number}/1", data={"sku": sku or f"S-{number}"}))
        products.append(product)
    return products


async def test_products_are_found_by_codes_and_words_together(backend: Backend, tenant: Tenant) -> None:
    """Expected: all ten. The scan of words ended early, at the tenth newest product; more old products than fit on a page have the
    code. The page counted as full and the next one continued after an old product: products with the words in between were
    on no page.
    """
    by_code = build_products(5, 0, "Lamp", "X", sku="chair")
    by_word = build_products(5, 10, "Chair", "X")
    others = build_products(30, 20, "Table", "X")
    for product in (*by_code, *by_word, *others):
        await catalogues.add_products(backend.uow, tenant, product)
    fetch = build_product_fetch(backend, tenant, ProductFilter(q="chair", brand="X"))
    found = [document.id for document in await read_all(fetch, 3)]
    assert sorted(found) == sorted(product.id for product in (*by_code, *by_word))


async def test_a_list_includes_unchanged_rows_during_writes(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expected: unchanged rows are on some page. A second statement determined the end of the page: rows that left the index
    in between moved the end beyond the rows that were read.
    """
    wanted = build_products(12, 0, "Chair", "X")
    others = build_products(30, 20, "Table", "X")
    for product in (*wanted, *others):
        await catalogues.add_products(backend.uow, tenant, product)
    fetch = build_product_fetch(backend, tenant, ProductFilter(q="chair", brand="X"))
    from adapters.postgres.catalogue import PostgresCatalogueStore

    found_of, moved = PostgresCatalogueStore._run_query, 0

    async def found(self: Any, query: Any) -> Any:
        nonlocal moved
        fetch_row = self._session.fetch_row

        async def later(sql: Any, **values: Any) -> Any:
            nonlocal moved
            if not moved:  # 25 of the newest change their brand while the page is read
                moved = 1
                pool: Any = backend.events._pool  # type: ignore[attr-defined]
                async with pool.connect_as_owner() as link:
                    ids = [product.id for product in others[5:]]
                    await link.cursor.execute("UPDATE products SET brand_key = 'y' WHERE id = ANY(%s)", (ids,))
            return await fetch_row(sql, **values)

        self._session = _SessionWithFetch(self._session, later)
        return await found_of(self, query)

    monkeypatch.setattr(PostgresCatalogueStore, "_run_query", found)
    seen = [document.id for document in await read_all(fetch, 20)]
    assert sorted(seen) == sorted(product.id for product in wanted)


class _SessionWithFetch:
    def __init__(self, session: Any, fetch_row: Any) -> None:
        self._given, self.fetch_row = session, fetch_row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)
