"""Facets of stored products: the job that computes them, and stock runs that change them (domain/search)."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from typing import Any

import pytest

from domain.catalogue.batch import Batch
from domain.catalogue.model import ProductFilter, ProductSort
from domain.catalogue.ports import CatalogueStore
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.search.ports import FacetStore
from domain.search.usecases import FILL_FACETS, FacetFiller
from tests.support import builders, catalogues
from tests.support.backend import Backend
from tests.support.facets import check_facets

pytestmark = pytest.mark.asyncio


async def _find_titles(backend: Backend, tenant: Tenant, **filter: object) -> list[str]:
    async with backend.uow.begin_reading(tenant) as tx:
        page = await tx[CatalogueStore].list_products(
            ProductFilter(**filter),  # type: ignore[arg-type]
            PageRequest(100),
            ProductSort.TITLE,
        )
    return [document.body.decode().split('"title":"')[1].split('"')[0] for document in page.items]


async def test_a_job_computes_the_facets_of_stored_products(backend: Backend, tenant: Tenant) -> None:
    source = new_id("src")
    products = [
        builders.product(source, "cat_1", f"k{number}", data={"title": f"Chair {number}"}) for number in range(5)
    ]
    for number, product in enumerate(products):
        builders.offer(builders.variant(product, f"v{number}", data={"colour": "dark grey"}))
    await catalogues.add_products(backend.uow, tenant, *products)
    other = await backend.tenant()
    await catalogues.add_products(backend.uow, other, builders.product(source, "cat_2", "k"))
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        session: Any = tx[FacetStore]._session  # type: ignore[attr-defined]
        await session.run("DELETE FROM product_facets WHERE org = %(org)s AND livemode = %(livemode)s")
        await session.run(
            "DELETE FROM product_terms WHERE org = %(org)s AND livemode = %(livemode)s AND term = 'w:grey'"
        )
    assert await _find_titles(backend, tenant, colour=["grey"]) == []
    async with backend.pool.connect_as_owner() as owner:
        await owner.driver_connection.execute(_read_job_statement())
    lane = f"{tenant.org}/facets:{tenant.mode}"
    jobs = await backend.dispatch.claim(lane, 10, timedelta(seconds=30))
    assert [job.kind for job in jobs] == [FILL_FACETS]  # the second one is due later
    await FacetFiller(backend.uow)(jobs[0], asyncio.Event())
    assert await _find_titles(backend, tenant, colour=["grey"]) == [f"Chair {number}" for number in range(5)]
    assert await _find_titles(backend, tenant, q="grey chair") == [f"Chair {number}" for number in range(5)]
    assert not await backend.dispatch.claim(lane, 10, timedelta(seconds=30))
    await check_facets(backend.uow, tenant)


def _read_job_statement() -> bytes:
    """Return the statement of the migration that adds the jobs."""
    migration = files("adapters.postgres").joinpath("migrations/0057_product_facets.sql").read_text("utf-8")
    return migration[migration.index("INSERT INTO jobs") :].encode()


async def test_a_stock_run_changes_the_facets_of_offers(backend: Backend, tenant: Tenant) -> None:
    source = new_id("src")
    product = builders.product(source, "cat_1", "k", data={"title": "Chair"})
    builders.offer(builders.variant(product, "v", data={"finish": "oak"}), data={"availability": "in_stock"})
    await catalogues.add_products(backend.uow, tenant, product)
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        [(encoded, variant)] = (await tx[CatalogueStore].load_variants(source, ["v"])).values()
        [offer] = variant.offers
        changed = replace(offer, data={"availability": "out_of_stock", "price": 900, "currency": "eur"})
        variant.offers[:] = [changed]
        batch = Batch(
            changed_offers=[changed],
            touched={encoded.id: encoded},
            availabilities_by_product={encoded.id: frozenset({"out_of_stock"})},
        )
        await tx[CatalogueStore].save_batch(catalogues.full_key_range(source), batch, tx.now)
    assert await _find_titles(backend, tenant, currency="eur", min_price=900, max_price=900) == ["Chair"]
    assert await _find_titles(backend, tenant, availability=["out_of_stock", "preorder"]) == ["Chair"]
    assert await _find_titles(backend, tenant, finish=["oak"], availability=["in_stock", "preorder"]) == []
    await check_facets(backend.uow, tenant)


async def test_facets_and_words_follow_a_changed_variant(backend: Backend, tenant: Tenant) -> None:
    source = new_id("src")
    product = builders.product(source, "cat_1", "k", data={"title": "Chair"})
    variant = builders.variant(product, "v", data={"finish": "oak"})
    await catalogues.add_products(backend.uow, tenant, product)
    product.variants = [replace(variant, data={"finish": "Walnut"})]
    batch = Batch(changed_variants=product.variants, touched={product.id: product})
    await catalogues.store_batch(backend.uow, tenant, batch, catalogues.full_key_range(source))
    assert await _find_titles(backend, tenant, finish=["walnut"]) == await _find_titles(backend, tenant, q="walnut")
    assert await _find_titles(backend, tenant, q="walnut") == ["Chair"]
    assert await _find_titles(backend, tenant, finish=["oak"]) == await _find_titles(backend, tenant, q="oak") == []
    await check_facets(backend.uow, tenant)
