"""What merging costs, and what merged products cost those who read them (`make bench-merges`)."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.pool import Pool
from benchmarks.ingest import line
from benchmarks.stack import CALL, Stack, stack
from domain.catalogue.batch import SLOTS, Batch, KeyRange
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
from domain.matching.model import MergeFilter, PairEvidence, ScoredPair, key_of
from domain.matching.ports import MergeStore
from domain.matching.usecases.merging import Merging
from domain.matching.usecases.pair_updates import PairUpdater
from domain.sources.model import Source
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

SHARE = 0.3
BATCH = 1_000


async def shop(parts: Stack, name: str, products: int, further: int) -> tuple[Tenant, list[Product], list[Product]]:
    """An organisation with so many products of one source, and some of another that are the same items."""
    organisation = await parts.organisation(name)
    tenant = Tenant(organisation.id, True)
    first, second = [await parts.source(organisation) for _ in range(2)]
    now = parts.container[Clock].now()
    mine = [_product(first, number, now) for number in range(products)]
    theirs = [_product(second, number, now) for number in range(further)]
    for source, made in ((first, mine), (second, theirs)):
        for begin in range(0, len(made), BATCH):
            async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
                part = made[begin : begin + BATCH]
                batch = Batch(new_products=part, touched={one.id: one for one in part})
                batch.new_variants = [one for product in part for one in product.variants]
                batch.new_offers = [one for variant in batch.new_variants for one in variant.offers]
                await tx[CatalogueStore].save(KeyRange(source.id, Stream.CATALOGUE, 0, SLOTS), batch, now)
    return tenant, mine, theirs


def _product(source: Source, number: int, now: datetime) -> Product:
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


def _certain(mine: Product, theirs: Product) -> ScoredPair:
    of = {one.variants[0].id: one.id for one in (mine, theirs)}
    left, right = key_of(*of)
    evidence = [PairEvidence(name, 2, 1.5, "the same", "oak", "oak") for name in ("title", "brand", "colour", "price")]
    return ScoredPair(left, of[left], right, of[right], 0.999, -2.0, tuple(evidence), ())


async def merged(parts: Stack, tenant: Tenant, pairs: Sequence[ScoredPair]) -> float:
    """Offer certain pairs, so that rules merge them; answers the seconds."""
    began = time.perf_counter()
    for begin in range(0, len(pairs), BATCH):
        part = pairs[begin : begin + BATCH]
        async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            await PairUpdater().offer(tx, [pair.left for pair in part], part)
    return time.perf_counter() - began


async def page(parts: Stack, tenant: Tenant, keys: list[str | None]) -> list[float]:
    """Microseconds of pages of 20 that begin behind each key."""
    taken = []
    for key in keys:
        began = time.perf_counter()
        async with parts.container[UnitOfWork].read(tenant) as tx:
            found = await tx[CatalogueStore].products(ProductFilter(), PageRequest(20, key))
        taken.append((time.perf_counter() - began) * 1e6)
        assert len(found.items) == 20
    return taken


async def measure(products: int) -> None:
    """Every figure, a line each."""
    async with stack() as parts:
        plain, own, _ = await shop(parts, "Plain", products, 0)
        tenant, mine, theirs = await shop(parts, "Merged", products, int(products * SHARE))
        pairs = [_certain(mine[len(mine) // len(theirs) * number], other) for number, other in enumerate(theirs)]
        seconds = await merged(parts, tenant, pairs)
        line("pairs merged by rules a second", f"{len(pairs) / seconds:,.0f} ({len(pairs):,} in {seconds:.1f} s)")
        async with parts.container[Pool].owner() as link:
            await link.connection.execute("VACUUM ANALYZE")
        keys = {of.org: [one.id for one in made[40 :: len(made) // 200]] for of, made in ((plain, own), (tenant, mine))}
        found: dict[str, list[float]] = {plain.org: [], tenant.org: []}
        for _ in range(11):
            for of in (plain, tenant):
                found[of.org].append(statistics.median(await page(parts, of, [*keys[of.org]])))
        without, with_ = (statistics.median(found[of.org]) for of in (plain, tenant))
        ratios = [b / a for a, b in zip(found[plain.org], found[tenant.org], strict=True)]
        line("a page of 20, nothing merged", f"{without:.0f} us")
        line(
            f"a page of 20, {SHARE:.0%} merged",
            f"{with_:.0f} us, x {statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})",
        )
        async with parts.container[UnitOfWork].read(tenant) as tx:
            some = (await tx[MergeStore].matching(MergeFilter(kind="variant"), PageRequest(50))).items
        began = time.perf_counter()
        for merge in some:
            async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
                await Merging().undo(tx, merge.id)
        line("an undo", f"{(time.perf_counter() - began) / len(some) * 1e3:.1f} ms")


def main() -> None:
    """Read the arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", type=int, default=10_000)
    asyncio.run(measure(parser.parse_args().products))


if __name__ == "__main__":
    main()
