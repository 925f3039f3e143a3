"""Writing of reconciled statements: rows, events, and the view of merged products."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from domain.catalogue.batch import Batch, KeyRange
from domain.catalogue.laying import Cause, Laying, told_of_run
from domain.catalogue.model import Product, Variant
from domain.catalogue.overlay import TiedProducts, shown
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.events.model import Event
from ports.unit_of_work import Tx

R = TypeVar("R")
LARGE = 200
"""The number of objects from which on work runs in a thread, so that it does not block the event loop."""


async def aside(size: int, work: Callable[[], R]) -> R:
    """Return the result of the work, executed in a thread if it covers many objects."""
    return await asyncio.to_thread(work) if size >= LARGE else work()


async def write(
    tx: Tx, key_range: KeyRange, reconciler: CatalogueReconciler, absent: Sequence[str] = ()
) -> Sequence[Event]:
    """Write all changes of the reconciler and return their events, which the caller must append last.

    The caller must have called `take_turn()` in the transaction, so that no merge can intervene.
    """
    batch = reconciler.finished(list(absent))
    tied = await _load_cluster(tx, reconciler, batch)
    if not tied.products:
        await tx[CatalogueStore].save(key_range, batch, tx.now)
        return reconciler.events
    cause = Cause(reconciler.run, tx.now, reconciler.source.id)
    events = await aside(tied.size, lambda: _build_view(tied, batch, cause, reconciler.events))
    await tx[CatalogueStore].save(key_range, batch, tx.now)
    return events


def _build_view(tied: TiedProducts, batch: Batch, cause: Cause, events: Sequence[Event]) -> list[Event]:
    """Set the batch's merged view and return all events as readers see them."""
    before = shown(tied)
    fresh = _update_cluster(tied, batch, cause.now)
    laying = Laying(before, tied, cause)
    batch.laid = laying.laid(fresh)
    return [*told_of_run(events, laying, frozenset(tied.products)), *laying.events]


async def _load_cluster(tx: Tx, reconciler: CatalogueReconciler, batch: Batch) -> TiedProducts:
    """Return the cluster of touched products, including those that a variant was moved from or to."""
    touched = sorted(batch.touched)
    tied = await tx[CatalogueStore].tied(touched) if touched else TiedProducts()
    if not tied.products:
        return tied
    known, new = tied.owners().keys(), set(_ids(batch.new_products))
    also = [
        product.id
        for product in batch.touched.values()
        if product.id not in tied.products
        and product.id not in new
        and (product.key in reconciler.moved_from or not known.isdisjoint(_ids(product.variants)))
    ]
    return await tx[CatalogueStore].tied(touched, also) if also else tied


def _update_cluster(tied: TiedProducts, batch: Batch, now: datetime) -> set[str]:
    """Update merged products with the batch's statements; return the IDs of new products and variants."""
    known = {variant.id: variant for product in tied.products.values() for variant in product.variants}
    stated = dict.fromkeys(_ids([*batch.new_variants, *batch.changed_variants]), now)
    fresh = set[str]()
    for product in batch.touched.values():
        held, stored = set(_ids(product.variants)), tied.products.get(product.id)
        if stored is not None or not known.keys().isdisjoint(held):
            fresh |= held.difference(known) | (set() if stored else {product.id})
            tied.products[product.id] = _merge_product(product, stored, known, stated)
    return fresh


def _ids(things: Sequence[Product] | Sequence[Variant]) -> list[str]:
    return [thing.id for thing in things]


def _merge_product(
    product: Product, stored: Product | None, known: Mapping[str, Variant], stated: Mapping[str, datetime]
) -> Product:
    """Return the product as its source states it now, with the versions that readers see and plain data."""
    variants = [_merge_variant(variant, known.get(variant.id), stated) for variant in product.variants]
    if stored is None:
        return replace(product, variants=variants)
    data = product.data if isinstance(product.data, dict) else stored.data
    return replace(product, variants=variants, data=data, version=stored.version)


def _merge_variant(variant: Variant, stored: Variant | None, stated: Mapping[str, datetime]) -> Variant:
    offers = [replace(offer) for offer in variant.offers]
    if stored is None:
        return replace(variant, offers=offers)
    data = variant.data if isinstance(variant.data, dict) else stored.data
    stated_at = stated.get(variant.id, stored.stated_at)
    return replace(variant, offers=offers, data=data, version=stored.version, stated_at=stated_at)
