"""Sizes: what one request or portion of a publication holds in memory and does on the event loop."""

import asyncio
import tracemalloc
from datetime import timedelta

import pytest

from domain.catalogue.model import Visibility
from domain.jobs.ports import JobStore
from domain.kernel.bounds import TENANT_BYTES
from domain.kernel.errors import Unprocessable
from domain.kernel.paging import PageRequest
from domain.publishing.model import VariantFilter, create_publication_job
from domain.publishing.ports import PublicationStore
from domain.publishing.usecases.execution import PublicationExecutor
from domain.publishing.usecases.service import PublishingService
from tests.contract.test_published_catalogues import Network, _create_network
from tests.support import builders, catalogues
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
PRODUCTS, VARIANTS = 24, 500


async def _load_large_products(network: Network, products: int, variants: int, text: int) -> list[str]:
    source, made = network.vendor.sources[0], []
    for number in range(products):
        product = builders.product(
            source.id, source.catalogue, f"L{number}", data={"title": "T", "description": "d" * text}
        )
        for place in range(variants):
            variant = builders.variant(product, f"L{number}/{place}", data={"sku": f"{place}", "colour": "c" * 1_900})
            builders.offer(variant, data={"availability": "in_stock", "currency": "usd", "price": 100})
        await catalogues.add_products(network.uow, network.owner, product)
        made.append(product.id)
    return made


async def test_a_portion_of_large_products_is_bounded(backend: Backend) -> None:
    network = await _create_network(backend)
    await network.publish()
    large = await _load_large_products(network, PRODUCTS, VARIANTS, 1_000)
    run = builders.publication_run(status="queued", completed_at=None, products=tuple(sorted(large)))
    async with network.uow.begin(network.owner, builders.CALL) as tx:
        await tx[PublicationStore].add(run)
        await tx[JobStore].add(create_publication_job(run, network.owner))
    [job] = await backend.dispatch.claim(f"{network.owner.org}/publishing:live", 1, timedelta(minutes=5))
    tracemalloc.start()
    await PublicationExecutor(network.uow)(job, asyncio.Event())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 4 * TENANT_BYTES
    assert len(await network.read_products(network.readers[0], catalogue=network.catalogue)) == PRODUCTS
    async with network.uow.begin(network.owner, builders.CALL) as tx:
        with pytest.raises(Unprocessable, match="Name fewer products"):
            await PublishingService().set_visibility(tx, {"products": large, "visibility": Visibility.HIDDEN})


async def test_a_page_of_variants_is_bounded(backend: Backend) -> None:
    network = await _create_network(backend)
    await _load_large_products(network, 1, VARIANTS, 400_000)
    tracemalloc.start()
    async with network.uow.begin_reading(network.owner) as tx:
        await tx[PublicationStore].list_variants(VariantFilter(missing="gtin"), PageRequest(20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 4 * TENANT_BYTES
