"""Statements on tables without statistics, as after a first load."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.catalogue.ports import CatalogueStore
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import create_temporary_database
from tests.support import builders, catalogues
from tests.support.memory.clock import SystemClock

pytestmark = pytest.mark.asyncio
SOURCES, PRODUCTS, VARIANTS = 3, 250, 2


@asynccontextmanager
async def load_database() -> AsyncIterator[tuple[PostgresUnitOfWork, Tenant, str]]:
    """Yield a newly filled database and one of its sources."""
    async with create_temporary_database("plans") as address:
        pool = Pool(address, size=2)
        try:
            uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
            registry = PostgresOrgRegistry(pool)
            organisation = builders.organisation(plan=await registry.find_plan("standard"))
            await registry.create(organisation)
            tenant, sources = Tenant(organisation.id, True), [builders.source() for _ in range(SOURCES)]
            for source in sources:
                products = [builders.product(source.id, source.catalogue, f"P{n}") for n in range(PRODUCTS)]
                for product in products:
                    for number in range(VARIANTS):
                        builders.offer(builders.variant(product, f"{product.key}-{number}"))
                await catalogues.add_products(uow, tenant, *products)
            yield uow, tenant, sources[0].id
        finally:
            await pool.close()


@pytest.mark.parametrize("stream", ["catalogue", "stock"])
async def test_stated_offers_are_counted_without_a_full_scan(stream: str) -> None:
    """The removal limit checks this for each chunk: a wrong join order costs the third power of the rows."""
    async with load_database() as (uow, tenant, source), uow.begin_reading(tenant) as tx:
        keys = [f"P{n}" + ("" if stream == "catalogue" else "-0") for n in range(0, PRODUCTS, 2)]
        async with asyncio.timeout(5):
            for _ in range(6):
                found = await tx[CatalogueStore].find_stated_offers(source, stream, keys)
        assert len(found) == (len(keys) * VARIANTS if stream == "catalogue" else 0)
