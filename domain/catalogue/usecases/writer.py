"""Writing of a reconciled feed: rows, events, and the view of merged and corrected products."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from domain.catalogue.batch import Batch, SlotRange
from domain.catalogue.corrections import Correction
from domain.catalogue.merged_statements import ProductCluster, compute_view
from domain.catalogue.merged_view import MergedViewBuilder, ViewChangeCause, translate_run_events
from domain.catalogue.model import Product, Variant
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.usecases.publication import refresh_listed
from domain.events.model import Event
from ports.unit_of_work import Tx

R = TypeVar("R")
THREAD_THRESHOLD = 200
"""Minimum number of objects for which work runs in a thread, so that it does not block the event loop."""


async def run_in_thread_if_large(object_count: int, work: Callable[[], R]) -> R:
    """Call `work` and return its result; call it in a thread if `object_count`, its number of objects, is THREAD_THRESHOLD or more."""
    return await asyncio.to_thread(work) if object_count >= THREAD_THRESHOLD else work()


async def write_reconciled(
    tx: Tx, slots: SlotRange, reconciler: CatalogueReconciler, absent_keys: Sequence[str] = ()
) -> Sequence[Event]:
    """Write the reconciler's changes; return the events, which the caller must append at the end of the transaction.

    The caller must call `lock_for_writing` earlier in the transaction, so that no merge can happen meanwhile.

    Args:
        tx: The transaction.
        slots: The range of slots (hashes of keys) whose products are written.
        reconciler: The reconciler after all statements were applied.
        absent_keys: Keys of products that the run no longer lists.
    """
    batch = reconciler.finish(list(absent_keys))
    cluster = await _load_cluster(tx, reconciler, batch)
    if not cluster.products:
        await tx[CatalogueStore].save_batch(slots, batch, tx.now)
        return [*reconciler.events, *await refresh_listed(tx, batch.touched.values(), reconciler.events)]
    cause = ViewChangeCause(reconciler.run, tx.now, reconciler.source.id)
    events = await run_in_thread_if_large(cluster.size, lambda: _add_merged_view(cluster, batch, cause, reconciler))
    await tx[CatalogueStore].save_batch(slots, batch, tx.now)
    written = batch.touched | cluster.products
    return [*events, *await refresh_listed(tx, written.values(), events)]


def _add_merged_view(
    cluster: ProductCluster, batch: Batch, cause: ViewChangeCause, reconciler: CatalogueReconciler
) -> list[Event]:
    """Add the merged view to the batch; return the run's events, in which merged products have the IDs that readers see."""
    before = compute_view(cluster)
    new_ids = _update_cluster(cluster, batch, cause.now)
    erased = _find_corrections_of_erased_data(cluster, frozenset(reconciler.erased_variants))
    for one in erased:
        cluster.corrections = cluster.corrections.with_field(one.object, one.field, None)
    builder = MergedViewBuilder(before, cluster, cause)
    batch.merged_view = builder.build(new_ids)
    batch.merged_view.removed_corrections = [one.id for one in erased]
    return [*translate_run_events(reconciler.events, builder, frozenset(cluster.products)), *builder.events]


def _find_corrections_of_erased_data(cluster: ProductCluster, erased_variants: frozenset[str]) -> list[Correction]:
    """Return the corrections of variants whose data was erased, of their offers, and of products without data."""
    objects = list[str]()
    for product in cluster.products.values() if cluster.corrections and erased_variants else ():
        variants = [variant for variant in product.variants if variant.id in erased_variants]
        objects += [variant.id for variant in variants]
        objects += [offer.id for variant in variants for offer in variant.offers]
        objects += [product.id] if variants and not product.data else []
    return cluster.corrections.list_of_objects(objects)


async def _load_cluster(tx: Tx, reconciler: CatalogueReconciler, batch: Batch) -> ProductCluster:
    """Return the merge groups of the changed products, and the changed products from or to which variants moved.

    A corrected product is a merge group.
    """
    touched = sorted(batch.touched)
    cluster = await tx[CatalogueStore].load_cluster(touched) if touched else ProductCluster()
    if not cluster.products:
        return cluster
    variant_ids, new = cluster.map_products_by_variant().keys(), set(_list_ids(batch.new_products))
    moved = [
        product.id
        for product in batch.touched.values()
        if product.id not in cluster.products
        and product.id not in new
        and (
            product.key in reconciler.moved_from_product_keys or not variant_ids.isdisjoint(_list_ids(product.variants))
        )
    ]
    return await tx[CatalogueStore].load_cluster(touched, moved) if moved else cluster


def _update_cluster(cluster: ProductCluster, batch: Batch, now: datetime) -> set[str]:
    """Replace products of the cluster by the changed ones in the batch; return the IDs of new products and variants."""
    stored_variants = {variant.id: variant for product in cluster.products.values() for variant in product.variants}
    stated_at_by_variant = dict.fromkeys(_list_ids([*batch.new_variants, *batch.changed_variants]), now)
    new_ids = set[str]()
    for product in batch.touched.values():
        ids, stored = set(_list_ids(product.variants)), cluster.products.get(product.id)
        if stored is not None or not stored_variants.keys().isdisjoint(ids):
            new_ids |= ids.difference(stored_variants) | (set() if stored else {product.id})
            cluster.products[product.id] = _copy_product(product, stored, stored_variants, stated_at_by_variant)
    if cluster.corrections:
        _restore_versions(cluster, stored_variants.values())
    return new_ids


def _restore_versions(cluster: ProductCluster, stored_variants: Iterable[Variant]) -> None:
    """Give corrected offers the versions that readers know, because the builder of the view creates their events."""
    versions = {offer.id: offer.version for variant in stored_variants for offer in variant.offers}
    for product in cluster.products.values():
        for variant in product.variants:
            for offer in variant.offers:
                if offer.id in versions and cluster.corrections.get(offer.id):
                    offer.version = versions[offer.id]


def _list_ids(items: Sequence[Product] | Sequence[Variant]) -> list[str]:
    return [item.id for item in items]


def _copy_product(
    product: Product,
    stored: Product | None,
    stored_variants: Mapping[str, Variant],
    stated_at_by_variant: Mapping[str, datetime],
) -> Product:
    """Copy a reconciled product with its variants, for the merged view.

    The stored product and variants supply the versions, and also the data if the reconciled data is still encoded.

    Args:
        product: The reconciled product.
        stored: The stored product; None if the cluster does not contain it.
        stored_variants: The stored variants by ID.
        stated_at_by_variant: The time of the change, by the ID of each new or changed variant.
    """
    variants = [
        _copy_variant(variant, stored_variants.get(variant.id), stated_at_by_variant) for variant in product.variants
    ]
    if stored is None:
        return replace(product, variants=variants)
    data = product.data if isinstance(product.data, dict) else stored.data
    return replace(product, variants=variants, data=data, version=stored.version)


def _copy_variant(variant: Variant, stored: Variant | None, stated_at_by_variant: Mapping[str, datetime]) -> Variant:
    offers = [replace(offer) for offer in variant.offers]
    if stored is None:
        return replace(variant, offers=offers)
    data = variant.data if isinstance(variant.data, dict) else stored.data
    stated_at = stated_at_by_variant.get(variant.id, stored.stated_at)
    return replace(variant, offers=offers, data=data, version=stored.version, stated_at=stated_at)
