"""Catalogues of several sources with merged items, and their merged view."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from domain.catalogue.batch import SlotRange
from domain.catalogue.model import OfferFilter, Product, ProductFilter, Stream, Variant
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement, VariantStatement
from domain.catalogue.usecases.writer import write_reconciled
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.matching.model import DecidedBy, MatchPair, Merge, PairStatus, build_pair_key
from domain.matching.ports import MergeStore, PairStore
from domain.matching.usecases.merges import MergeService
from domain.matching.usecases.pair_updates import PairUpdater
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders, catalogues

MERGING = MergeService()
Hear = Callable[[Sequence[Event]], None]


@dataclass
class MergedCatalogue:
    """Tenant with sources and their loaded products."""

    uow: UnitOfWork
    tenant: Tenant
    sources: list[Source] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)

    async def create_source(self, **changes: Any) -> Source:
        made = builders.source(**({"catalogue": self.sources[0].catalogue} if self.sources else {}) | changes)
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[SourceStore].add(made)
        self.sources.append(made)
        return made

    async def load_product(self, source: Source, key: str, *variants: str, **data: Any) -> Product:
        """Load a product of the source with the variants, each with an offer."""
        product = builders.product(source.id, source.catalogue, key, data={"title": f"Title of {key}", **data})
        for name in variants:
            variant = builders.variant(product, f"{key}/{name}", data={"sku": f"{key}-{name}", "colour": name})
            stock = {"availability": "in_stock", "quantity": 4, "lead_time_days": 5}
            builders.offer(variant, data={**stock, "currency": "usd", "msrp": 900, "price": 100 + len(self.products)})
        await catalogues.add_products(self.uow, self.tenant, product)
        self.products.append(product)
        return product

    async def create_pair(self, one: Variant, other: Variant, **changes: Any) -> MatchPair:
        """Return an open pair of two variants."""
        known = {variant.id: product.id for product in self.products for variant in product.variants}
        left, right = build_pair_key(one.id, other.id)
        fields: dict[str, Any] = {
            "id": new_id("mpr"), "status": PairStatus.OPEN, "left": left, "left_product": known[left], "right": right,
            "right_product": known[right], "probability": 0.9, "prior": -2.0, "evidence": (), "conflicts": (),
            "created_at": builders.MOMENT, "updated_at": builders.MOMENT,
        }  # fmt: skip
        pair = MatchPair(**fields | changes)
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[PairStore].add(pair)
        return pair

    async def merge_variants(self, one: Variant, other: Variant, heard: Hear = lambda _: None) -> Merge:
        """Merge the variants; return the merge."""
        pair = await self.create_pair(one, other)
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            merged = await MERGING.merge_pair(tx, pair.id, DecidedBy.PERSON)
            heard(tx.recorded.events)
            return require_found(await tx[MergeStore].get(str(merged.merge)))

    async def group_products(self, one: Product, other: Product) -> str:
        """Show two products as one; return the ID of the product that is shown."""
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            return await MERGING.group_products(tx, [one.id, other.id], DecidedBy.PERSON, "They are variants.")

    async def undo_merge(self, merge: Merge, heard: Hear = lambda _: None) -> Merge:
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            undone = await MERGING.undo_merge(tx, merge.id)
            heard(tx.recorded.events)
            return undone

    async def change_product(self, source: Source, key: str, **data: Any) -> list[Event]:
        """Change a product of the source; return the resulting events."""
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[CatalogueStore].lock_for_writing()
            loaded = await tx[CatalogueStore].load_products(source.id, [key])
            reconciler = CatalogueReconciler(
                source, "run_1", Stream.CATALOGUE, tx.now, False, dict(loaded), lambda _: True
            )
            product = reconciler.products[key]
            changed, product.stated_at = {**product.data, **data}, tx.now
            reconciler._record_product_change(
                product, [(f"data.{n}", product.data.get(n), v) for n, v in data.items()], "product.updated"
            )
            product.data = changed
            events = await write_reconciled(tx, SlotRange(source.id, Stream.CATALOGUE, 0, 0), reconciler)
            await tx[EventLog].append(events)
            return list(events)

    def create_reconciler(self, source: Source, now: Any, loaded: Any) -> CatalogueReconciler:
        """Return the reconciler that applies statements of the source to the loaded products."""
        return CatalogueReconciler(source, "run_1", Stream.CATALOGUE, now, False, dict(loaded), lambda _: True)

    async def change_variants(self, source: Source, key: str, **data: Any) -> list[Event]:
        """Change every variant of a product of the source."""
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[CatalogueStore].lock_for_writing()
            reconciler = self.create_reconciler(
                source, tx.now, await tx[CatalogueStore].load_products(source.id, [key])
            )
            product = reconciler.products[key]
            stated = [VariantStatement(one.key, cast("Any", {**one.data, **data})) for one in product.variants]
            reconciler.apply_product(ProductStatement(key, product.data, stated))
            events = await write_reconciled(tx, SlotRange(source.id, Stream.CATALOGUE, 0, 0), reconciler)
            await tx[EventLog].append(events)
            return list(events)

    async def move_variant(self, source: Source, key: str, variant: str, to: str) -> None:
        """Move a variant of the source to another product, and match it."""
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[CatalogueStore].lock_for_writing()
            loaded = await tx[CatalogueStore].load_products(source.id, [key, to], [variant])
            reconciler = self.create_reconciler(source, tx.now, loaded)
            reconciler.is_in_feed = lambda known: known != key
            own = next(one for one in loaded[key].variants if one.key == variant)
            known = [VariantStatement(one.key, one.data) for one in loaded[to].variants] if to in loaded else []
            moved = VariantStatement(own.key, own.data)
            reconciler.apply_product(ProductStatement(to, {"title": f"Title of {to}"}, [*known, moved]))
            await tx[EventLog].append(
                await write_reconciled(tx, SlotRange(source.id, Stream.CATALOGUE, 0, 0), reconciler)
            )
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await PairUpdater().store_scores(tx, [own.id], [])

    async def change_price(self, source: Source, key: str, price: int) -> list[Event]:
        """Change the price of every variant of a product."""
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[CatalogueStore].lock_for_writing()
            loaded = await tx[CatalogueStore].load_products(source.id, [key])
            reconciler = CatalogueReconciler(
                source, "run_1", Stream.CATALOGUE, tx.now, False, dict(loaded), lambda _: True
            )
            product = reconciler.products[key]
            for variant in product.variants:
                for offer in variant.offers:
                    old, offer.data = offer.data["price"], {**offer.data, "price": price}
                    reconciler._record_offer_change(product, offer, [("price", old, price)], ["price"])
            events = await write_reconciled(tx, SlotRange(source.id, Stream.CATALOGUE, 0, 0), reconciler)
            await tx[EventLog].append(events)
            return list(events)

    async def list_documents(self, *, versions: bool = False) -> dict[str, Any]:
        """Return every product of the list without versions and times of change."""
        async with self.uow.begin_reading(self.tenant) as tx:
            page = await tx[CatalogueStore].list_products(ProductFilter(), PageRequest(limit=1000))
        found = {one.id: one.body if versions else remove_versions(json.loads(one.body)) for one in page.items}
        assert not page.has_more
        return found

    async def find_products(self, **filter: Any) -> set[str]:
        """Return the IDs of the products that match a filter."""
        async with self.uow.begin_reading(self.tenant) as tx:
            page = await tx[CatalogueStore].list_products(ProductFilter(**filter), PageRequest(limit=1000))
        return {one.id for one in page.items}

    async def list_offers(self, **filter: Any) -> dict[str, tuple[str, str]]:
        """Return each offer with its variant and product in the list."""
        async with self.uow.begin_reading(self.tenant) as tx:
            page = await tx[CatalogueStore].list_offers(OfferFilter(**filter), PageRequest(limit=1000))
        return {line.offer.id: (line.offer.variant, line.offer.product) for line in page.items}


def remove_versions(value: Any) -> Any:
    """Return the JSON without versions and times of change."""
    if isinstance(value, dict):
        return {name: remove_versions(one) for name, one in value.items() if name not in ("version", "updated_at")}
    return [remove_versions(one) for one in value] if isinstance(value, list) else value


def choose_pair(dice: random.Random, products: list[Product]) -> tuple[Variant, Variant] | None:
    """Choose two variants of different sources."""
    variants = [variant for product in products for variant in product.variants]
    one = dice.choice(variants)
    others = [other for other in variants if other.source != one.source]
    return (one, dice.choice(others)) if others else None
