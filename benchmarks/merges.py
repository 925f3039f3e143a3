"""Cost of merging, of pages with merged products, and of undoing a merge (`make bench-merges`)."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.pool import Pool
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.catalogue.batch import SLOT_COUNT, Batch, SlotRange
from domain.catalogue.model import (
    CATALOGUE_STREAM,
    Offer,
    Product,
    ProductFilter,
    ProductStatus,
    Stream,
    Variant,
    Visibility,
)
from domain.catalogue.ports import CatalogueStore
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.matching.model import MergeFilter, PairEvidence, ScoredPair, build_pair_key
from domain.matching.ports import MergeStore
from domain.matching.usecases.merges import MergeService
from domain.matching.usecases.pair_updates import PairUpdater
from domain.sources.model import Source
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

MERGED_SHARE = 0.3
BATCH_SIZE = 1_000


async def create_catalogue(
    stack: Stack, name: str, products: int, second_source_products: int
) -> tuple[Tenant, list[Product], list[Product]]:
    """Create an organisation with two sources that list the same items.

    Args:
        stack: Settings and dependencies.
        name: Name of the organisation.
        products: Number of products of the first source.
        second_source_products: Number of products of the second source.

    Returns:
        The tenant, the products of the first source, and the products of the second source.
    """
    organisation = await stack.create_organisation(name)
    tenant = Tenant(organisation.id, True)
    first_source, second_source = [await stack.create_source(organisation) for _ in range(2)]
    now = stack.dependencies[Clock].now()
    first_products = [_build_product(first_source, number, now) for number in range(products)]
    second_products = [_build_product(second_source, number, now) for number in range(second_source_products)]
    for source, source_products in ((first_source, first_products), (second_source, second_products)):
        for start in range(0, len(source_products), BATCH_SIZE):
            async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
                batch_products = source_products[start : start + BATCH_SIZE]
                batch = Batch(new_products=batch_products, touched={item.id: item for item in batch_products})
                batch.new_variants = [item for product in batch_products for item in product.variants]
                batch.new_offers = [item for variant in batch.new_variants for item in variant.offers]
                await tx[CatalogueStore].save_batch(SlotRange(source.id, Stream.CATALOGUE, 0, SLOT_COUNT), batch, now)
    return tenant, first_products, second_products


def _build_product(source: Source, number: int, now: datetime) -> Product:
    data: dict[str, Any] = {"title": f"Halden oak bench {number}", "brand": "Halden", "description": "x" * 400}
    product = Product(
        new_id("prod"),
        source.catalogue,
        source.id,
        f"k{number}",
        ProductStatus.ACTIVE,
        1,
        Visibility.UNLISTED,
        data,
        now,
        now,
    )
    variant = Variant(
        new_id("var"),
        product.id,
        source.id,
        f"k{number}",
        ProductStatus.ACTIVE,
        1,
        {"sku": f"S{number}", "colour": "oak"},
        now,
    )
    for location in ("main", "east"):
        offer = {"currency": "usd", "price": 100 + number, "availability": "in_stock", "quantity": 7}
        variant.offers.append(
            Offer(new_id("ofr"), variant.id, product.id, source.id, location, offer, 1, CATALOGUE_STREAM, now, now)
        )
    product.variants.append(variant)
    return product


def _build_certain_match(first: Product, second: Product) -> ScoredPair:
    product_ids = {product.variants[0].id: product.id for product in (first, second)}
    left, right = build_pair_key(*product_ids)
    evidence = [PairEvidence(name, 2, 1.5, "the same", "oak", "oak") for name in ("title", "brand", "colour", "price")]
    return ScoredPair(left, product_ids[left], right, product_ids[right], 0.999, -2.0, tuple(evidence), ())


async def merge_pairs(stack: Stack, tenant: Tenant, pairs: Sequence[ScoredPair]) -> float:
    """Store matches with a high score, so that they are merged automatically; return the elapsed seconds."""
    started = time.perf_counter()
    for start in range(0, len(pairs), BATCH_SIZE):
        batch = pairs[start : start + BATCH_SIZE]
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            await PairUpdater().store_scores(tx, [pair.left for pair in batch], batch)
    return time.perf_counter() - started


async def measure_pages(stack: Stack, tenant: Tenant, keys: list[str | None]) -> list[float]:
    """Return the microseconds of the page of 20 products after each key."""
    durations = []
    for key in keys:
        started = time.perf_counter()
        async with stack.dependencies[UnitOfWork].begin_reading(tenant) as tx:
            products_page = await tx[CatalogueStore].list_products(ProductFilter(), PageRequest(20, key))
        durations.append((time.perf_counter() - started) * 1e6)
        assert len(products_page.items) == 20
    return durations


async def measure(products: int) -> None:
    """Run all measurements."""
    async with running_stack() as stack:
        plain_tenant, plain_products, _ = await create_catalogue(stack, "Plain", products, 0)
        merged_tenant, first_products, second_products = await create_catalogue(
            stack, "Merged", products, int(products * MERGED_SHARE)
        )
        pairs = [
            _build_certain_match(first_products[len(first_products) // len(second_products) * number], second_product)
            for number, second_product in enumerate(second_products)
        ]
        seconds = await merge_pairs(stack, merged_tenant, pairs)
        print_figure("automatic merges a second", f"{len(pairs) / seconds:,.0f} ({len(pairs):,} in {seconds:.1f} s)")
        async with stack.dependencies[Pool].connect_as_owner() as pooled:
            await pooled.driver_connection.execute("VACUUM ANALYZE")
        keys = {
            measured_tenant.org: [item.id for item in tenant_products[40 :: len(tenant_products) // 200]]
            for measured_tenant, tenant_products in ((plain_tenant, plain_products), (merged_tenant, first_products))
        }
        medians: dict[str, list[float]] = {plain_tenant.org: [], merged_tenant.org: []}
        for _ in range(11):
            for measured_tenant in (plain_tenant, merged_tenant):
                medians[measured_tenant.org].append(
                    statistics.median(await measure_pages(stack, measured_tenant, [*keys[measured_tenant.org]]))
                )
        plain_median, merged_median = (
            statistics.median(medians[measured_tenant.org]) for measured_tenant in (plain_tenant, merged_tenant)
        )
        ratios = [
            merged_time / plain_time
            for plain_time, merged_time in zip(medians[plain_tenant.org], medians[merged_tenant.org], strict=True)
        ]
        print_figure("page of 20, without merges", f"{plain_median:.0f} µs")
        print_figure(
            f"page of 20, {MERGED_SHARE:.0%} merged",
            f"{merged_median:.0f} µs, x {statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})",
        )
        async with stack.dependencies[UnitOfWork].begin_reading(merged_tenant) as tx:
            merges = (await tx[MergeStore].list_merges(MergeFilter(kind="variant"), PageRequest(50))).items
        started = time.perf_counter()
        for merge in merges:
            async with stack.dependencies[UnitOfWork].begin(merged_tenant, AUDIT_CONTEXT) as tx:
                await MergeService().undo_merge(tx, merge.id)
        print_figure("undo of a merge", f"{(time.perf_counter() - started) / len(merges) * 1e3:.1f} ms")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", type=int, default=10_000)
    asyncio.run(measure(parser.parse_args().products))


if __name__ == "__main__":
    main()
