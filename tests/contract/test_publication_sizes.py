"""Sizes: what one request or portion of a publication holds in memory and does on the event loop."""

import asyncio
import time
import tracemalloc

import pytest

from domain.catalogue.model import Visibility
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.publication import change_visibility
from domain.events.ports import EventLog
from domain.kernel.bounds import TENANT_BYTES
from domain.kernel.paging import PageRequest
from domain.publishing.model import VariantFilter
from domain.publishing.ports import PublicationStore
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


class _Pauses:
    """Longest time in which the event loop executed nothing else."""

    longest = 0.0

    async def watch(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            self.longest, last = max(self.longest, now - last), now


async def test_a_request_for_large_products_is_bounded(backend: Backend) -> None:
    network = await _create_network(backend)
    await network.publish()
    large = await _load_large_products(network, PRODUCTS, VARIANTS, 1_000)
    pauses, began = _Pauses(), time.perf_counter()
    watching = asyncio.ensure_future(pauses.watch())
    tracemalloc.start()
    async with network.uow.begin(network.owner, builders.CALL) as tx:
        await tx[CatalogueStore].lock_for_writing()
        outcome = await change_visibility(tx, large, Visibility.LISTED)
        await tx[EventLog].append(outcome.events)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    watching.cancel()
    print(
        f"{PRODUCTS} products of ~1 MiB: peak {peak >> 20} MiB, longest pause {pauses.longest:.2f} s, "
        f"{time.perf_counter() - began:.1f} s, {len(outcome.events)} events"
    )
    assert peak <= 4 * TENANT_BYTES


async def test_a_page_of_variants_is_bounded(backend: Backend) -> None:
    network = await _create_network(backend)
    await _load_large_products(network, 1, VARIANTS, 400_000)
    pauses, began = _Pauses(), time.perf_counter()
    watching = asyncio.ensure_future(pauses.watch())
    await asyncio.sleep(0.01)
    tracemalloc.start()
    async with network.uow.begin_reading(network.owner) as tx:
        page = await tx[PublicationStore].list_variants(VariantFilter(missing="gtin"), PageRequest(20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    watching.cancel()
    print(
        f"{len(page.items)} variants: peak {peak >> 20} MiB, pause {pauses.longest:.2f} s, {time.perf_counter() - began:.1f} s"
    )
    assert peak <= 4 * TENANT_BYTES
