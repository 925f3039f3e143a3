"""Merges and undos concurrent with writes of sources: documents follow from both."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.api_json.catalogue import JsonCatalogueRendering
from domain.catalogue.merged_statements import compute_view
from domain.catalogue.merged_view import MergedView
from domain.catalogue.model import ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.kernel.errors import Conflict
from domain.kernel.paging import PageRequest
from domain.matching.model import MergeFilter
from domain.matching.ports import MergeStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.merged_catalogues import MergedCatalogue, choose_pair
from tests.support.postgres import postgres_backend

pytestmark = pytest.mark.asyncio
ROUNDS = 25


@pytest_asyncio.fixture
async def backend() -> AsyncIterator[Backend]:
    async with postgres_backend("embedded") as made:
        yield made


async def _change_products(shop: MergedCatalogue, number: int) -> None:
    """Change products of one source repeatedly."""
    dice, source = random.Random(number), shop.sources[number]
    keys = [product.key for product in shop.products if product.source == source.id]
    for turn in range(ROUNDS):
        if dice.random() < 0.5:
            await shop.change_price(source, dice.choice(keys), 1000 + turn)
        else:
            await shop.change_product(source, dice.choice(keys), title=f"Title {number} {turn}")


async def _merge_and_undo(shop: MergedCatalogue, number: int) -> None:
    dice = random.Random(100 + number)
    for _ in range(ROUNDS):
        try:
            if dice.random() < 0.6 and (two := choose_pair(dice, shop.products)) is not None:
                await shop.merge_variants(*two)
            else:
                async with shop.uow.begin_reading(shop.tenant) as tx:
                    page = await tx[MergeStore].list_merges(MergeFilter(status="applied"), PageRequest(limit=100))
                if page.items:
                    await shop.undo_merge(dice.choice(page.items))
        except Conflict:
            continue


async def test_documents_follow_from_statements_and_merges(backend: Backend) -> None:
    shop = MergedCatalogue(backend.uow, await backend.tenant())
    for number in range(3):
        source = await shop.create_source()
        for item in range(4):
            await shop.load_product(source, f"{number}{item}", "red", "blue")
    await asyncio.gather(
        *(_change_products(shop, number) for number in range(3)),
        *(_merge_and_undo(shop, number) for number in range(2)),
    )
    ids = [product.id for product in shop.products]
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        tied = await tx[CatalogueStore].load_cluster(ids, ids)
        seen = compute_view(tied)
        merged = MergedView(tied.products, seen, tied.survivor_by_id, tied.map_merge_groups())
        page = await tx[CatalogueStore].list_products(ProductFilter(), PageRequest(limit=100))
    documents = {one.id: one.body for one in page.items}
    assert documents == {
        id: JsonCatalogueRendering().render_merged_product(product, merged) for id, product in seen.products.items()
    }
    listed = await shop.list_offers()
    assert listed == {
        offer.id: (variant.id, product.id)
        for product in seen.products.values()
        for variant in product.variants
        for offer in variant.offers
    }
