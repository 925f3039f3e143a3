"""Writing what a reconciler made of a source's statements: rows, events, and what readers see where products are merged."""

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
"""Things to work on from which on a thread costs less than the wait of everybody else."""


async def aside(size: int, work: Callable[[], R]) -> R:
    """Return the result of the work, executed in a thread if it covers many objects."""
    return await asyncio.to_thread(work) if size >= LARGE else work()


async def write(
    tx: Tx, key_range: KeyRange, reconciler: CatalogueReconciler, absent: Sequence[str] = ()
) -> Sequence[Event]:
    """Write all that the reconciler gathered; answers the events of it, which the caller appends last.

    The transaction must have `tx.catalogue.take_turn()` behind it, so that no merge comes in between.
    """
    batch = reconciler.finished(list(absent))
    tied = await _tied(tx, reconciler, batch)
    if not tied.products:
        await tx[CatalogueStore].save(key_range, batch, tx.now)
        return reconciler.events
    cause = Cause(reconciler.run, tx.now, reconciler.source.id)
    told = await aside(tied.size, lambda: _laid(tied, batch, cause, reconciler.events))
    await tx[CatalogueStore].save(key_range, batch, tx.now)
    return told


def _laid(tied: TiedProducts, batch: Batch, cause: Cause, events: Sequence[Event]) -> list[Event]:
    """Have the batch say what readers see of tied products from now on; answers all events, as readers see them."""
    before = shown(tied)
    fresh = _brought_all(tied, batch, cause.now)
    laying = Laying(before, tied, cause)
    batch.laid = laying.laid(fresh)
    return [*told_of_run(events, laying, frozenset(tied.products)), *laying.events]


async def _tied(tx: Tx, reconciler: CatalogueReconciler, batch: Batch) -> TiedProducts:
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


def _brought_all(tied: TiedProducts, batch: Batch, now: datetime) -> set[str]:
    """Bring tied products to what the batch states; answers the products and variants that are new."""
    known = {variant.id: variant for product in tied.products.values() for variant in product.variants}
    stated = dict.fromkeys(_ids([*batch.new_variants, *batch.changed_variants]), now)
    fresh = set[str]()
    for product in batch.touched.values():
        held, mine = set(_ids(product.variants)), tied.products.get(product.id)
        if mine is not None or not known.keys().isdisjoint(held):
            fresh |= held.difference(known) | (set() if mine else {product.id})
            tied.products[product.id] = _brought(product, mine, known, stated)
    return fresh


def _ids(things: Sequence[Product] | Sequence[Variant]) -> list[str]:
    return [thing.id for thing in things]


def _brought(
    product: Product, mine: Product | None, known: Mapping[str, Variant], stated: Mapping[str, datetime]
) -> Product:
    """Return the product as its source states it now, with the versions that readers see and readable data."""
    variants = [_kept(variant, known.get(variant.id), stated) for variant in product.variants]
    if mine is None:
        return replace(product, variants=variants)
    data = product.data if isinstance(product.data, dict) else mine.data
    return replace(product, variants=variants, data=data, version=mine.version)


def _kept(variant: Variant, mine: Variant | None, stated: Mapping[str, datetime]) -> Variant:
    offers = [replace(offer) for offer in variant.offers]
    if mine is None:
        return replace(variant, offers=offers)
    data = variant.data if isinstance(variant.data, dict) else mine.data
    stated_at = stated.get(variant.id, mine.stated_at)
    return replace(variant, offers=offers, data=data, version=mine.version, stated_at=stated_at)
