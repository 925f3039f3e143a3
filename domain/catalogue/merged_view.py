"""The view of merged and corrected products: the view to store, and events for the differences from the previous view."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.catalogue import differences
from domain.catalogue.corrections import PERSON_EDIT, Correction, Corrections, find_level, get_field
from domain.catalogue.merged_statements import (
    CatalogueView,
    FieldOrigin,
    ProductCluster,
    compute_view,
    find_representative,
    get_statement_time,
)
from domain.catalogue.model import Offer, Product, ProductStatus, Variant
from domain.events.model import ChangedField, Event, FieldChange, Provenance

MAPPED = "mapped"
_FULL_CONFIDENCE = 1.0


@dataclass(slots=True)
class MergedView:
    """Merged view of some products, to be stored.

    Attributes:
        product_by_id: The products with the data of their sources, before merging.
        view: The products as readers will see them.
        survivor_by_id: Maps the ID of each merged product and variant to the survivor of its merge.
        merge_group_by_product: The ID of the merge group (all products that merges connect) of each merged or corrected product.
        corrected_offers: Offers as readers will see them, each with the data of its source, that are or were corrected.
        changed_corrections: Corrections about which the sources state something else than before.
        removed_corrections: IDs of corrections to delete, because the organisation may no longer use the data of their objects.
        ids_by_representative: IDs of all objects that each visible product or variant represents, its own ID first.
    """

    product_by_id: Mapping[str, Product]
    view: CatalogueView
    survivor_by_id: Mapping[str, str]
    merge_group_by_product: Mapping[str, str]
    corrected_offers: Sequence[tuple[Offer, Mapping[str, Any]]] = ()
    changed_corrections: Sequence[Correction] = ()
    removed_corrections: Sequence[str] = ()
    ids_by_representative: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        """Group the IDs of merged objects by the object that represents them."""
        self.ids_by_representative = {id: [id] for id in (*self.view.products, *self.view.map_variants())}
        for id in self.product_by_id:
            if (root := self.find_representative(id)) is not None:
                self.ids_by_representative[root].append(id)
        for id, (root, _) in sorted(self.view.representatives_by_variant.items()):
            if id != root:
                self.ids_by_representative[root].append(id)

    def find_representative(self, product: str) -> str | None:
        """Return the ID of the product that represents a merged product; None if the product is not merged into another."""
        root = find_representative(self.survivor_by_id, product)
        return root if root != product else None

    def get_origins(self, id: str) -> Mapping[str, FieldOrigin]:
        """Return the origin of each field of a visible product or variant; empty if it represents no others and is not corrected."""
        return self.view.origins.get(id, {})


@dataclass(frozen=True, slots=True)
class ViewChangeCause:
    """Cause of changes of the merged view: a run, a merge or its undoing, or a correction.

    Attributes:
        correlation_id: The ID of the run; None for merges, whose events contain the merge's ID instead, and for corrections.
        now: The time of the changes.
        source: The source of the run; None for merges and corrections.
        is_merge: Whether the cause is a merge, which moves offers, so that every product counts as changed.
    """

    correlation_id: str | None
    now: datetime
    source: str | None = None
    is_merge: bool = False


@dataclass(slots=True)
class MergedViewBuilder:
    """Compares the previous view with the current one, and creates an event for each change.

    The versions of objects continue from the versions in the cluster; each event increments one version.

    Attributes:
        previous_view: The view before the change.
        cluster: The products with the current data of their sources, and their merges.
        cause: The cause of the change.
        merge_id_by_object: For each merged or restored object, the ID of the merge that was made or undone.
        previous_representatives: Maps a product's ID to the ID of the product that represented it before the change.
        current_view: The view after the change.
    """

    previous_view: CatalogueView
    cluster: ProductCluster
    cause: ViewChangeCause
    merge_id_by_object: Mapping[str, str] = field(default_factory=dict)

    previous_representatives: Mapping[str, str] = field(default_factory=dict)

    current_view: CatalogueView = field(init=False)
    corrected_offers: frozenset[str] = field(init=False)
    events: list[Event] = field(default_factory=list)
    _changed_corrections: list[Correction] = field(default_factory=list)
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compare the corrections with what the sources state now, and compute the current view and the initial versions."""
        if self.cluster.corrections:
            self._update_corrections()
        self.current_view = compute_view(self.cluster)
        self.corrected_offers = frozenset(
            id for id in (*self.previous_view.origins, *self.current_view.origins) if find_level(id) == "offer"
        )
        for product in self.cluster.products.values():
            self._versions[product.id] = product.version
            self._versions |= {variant.id: variant.version for variant in product.variants}
            self._versions |= {offer.id: offer.version for variant in product.variants for offer in variant.offers}

    def _update_corrections(self) -> None:
        """Record in each correction which value its field would have without corrections."""
        cluster = self.cluster
        view = compute_view(replace(cluster, corrections=Corrections()))
        data = {
            id: item.data
            for items in (view.products, view.map_variants(), view.map_offers())
            for id, item in items.items()
        }
        owners = {id: id for id in cluster.products} | cluster.map_products_by_variant()
        for product in cluster.products.values():
            owners |= {offer.id: product.id for variant in product.variants for offer in variant.offers}
        by_object = {id: dict(fields) for id, fields in cluster.corrections.by_object.items()}
        for one in cluster.corrections.list_all():
            if (owner := owners.get(one.object)) is None:
                continue
            stated = get_field(data[cluster.find_representative(one.object)], one.field)
            if (updated := one.with_feed_value(stated, owner, self.cause.now)) is not one:
                self._changed_corrections.append(updated)
                by_object[one.object][one.field] = updated
        if self._changed_corrections:
            self.cluster = replace(cluster, corrections=Corrections(by_object))

    def build(self, new_ids: Iterable[str] = ()) -> MergedView:
        """Return the merged view to store, and collect its events in `events`.

        Args:
            new_ids: IDs of products and variants that were created in this transaction.

        """
        new = frozenset(new_ids)
        self._compare_products(new)
        self._compare_variants(new)
        self._compare_offers()
        self._set_versions()
        if self.cause.is_merge:
            for product in self.current_view.products.values():
                product.updated_at = self.cause.now
        visible = self.current_view.map_offers()
        stated = {
            offer.id: offer.data
            for product in self.cluster.products.values()
            for variant in product.variants
            for offer in variant.offers
        }
        return MergedView(
            self.cluster.products,
            self.current_view,
            self.cluster.survivor_by_id,
            self.cluster.map_merge_groups(),
            [(visible[id], stated[id]) for id in sorted(self.corrected_offers & visible.keys())],
            self._changed_corrections,
        )

    def _compare_products(self, new: frozenset[str]) -> None:
        before, after = self.previous_view.products, self.current_view.products
        for id in sorted(after.keys() - new):
            if id in before:
                self._record_changes(after[id], before[id], "product", {"id": id})
            else:
                ids = {"id": id, "unmerged_from": self.previous_representatives.get(id, id)}
                self._record("product.unmerged", after[id], ids, differences.list_created_fields(after[id].data))
        for id in sorted(before.keys() - after.keys()):
            self._append_event(
                "product.merged", id, {"id": id, "merged_into": self.cluster.find_representative(id)}, [], {}
            )

    def _compare_variants(self, new: frozenset[str]) -> None:
        before, after = self.previous_view.map_variants(), self.current_view.map_variants()
        for id in sorted(after.keys() - new):
            ids = {"id": id, "product": after[id].product}
            if id in before:
                self._record_changes(after[id], before[id], "variant", ids)
            else:
                variant, product = self.previous_view.representatives_by_variant.get(id, (id, after[id].product))
                ids |= {"unmerged_from": variant, "previous_product": product}
                self._record("variant.unmerged", after[id], ids, differences.list_created_fields(after[id].data))
        for id in sorted(before.keys() - after.keys()):
            into, product = self.current_view.representatives_by_variant[id]
            ids = {"id": id, "product": product, "merged_into": into, "previous_product": before[id].product}
            self._append_event("variant.merged", id, ids, [], {})

    def _compare_offers(self) -> None:
        """Create the events of corrected offers; the run creates those of all others."""
        before, after = self.previous_view.map_offers(), self.current_view.map_offers()
        for id in sorted(self.corrected_offers & before.keys() & after.keys()):
            old, now = before[id], after[id]
            changes = differences.compute_changes(old.data, now.data, "")
            facets = differences.find_affected_facets(changes)
            if now.withdrawn_at != old.withdrawn_at:
                changes.append(FieldChange("withdrawn_at", old.withdrawn_at, now.withdrawn_at))
                facets = facets or ["availability"]
            if changes:
                ids = {name: getattr(now, name) for name in ("id", "variant", "product", "source", "location")}
                own = FieldOrigin(now.source, now.observed_at, "own")
                self._append_event(
                    "offer.changed", id, ids | {"availability": now.data["availability"]}, changes,
                    self._find_origins(id, [path for path, _, _ in changes], own), facets,
                )  # fmt: skip
                now.updated_at = self.current_view.products[now.product].updated_at = self.cause.now

    def _find_origins(self, id: str, paths: Iterable[str], own: FieldOrigin) -> dict[str, Provenance]:
        """Return the origin of the new values of these paths (without `data.`); `own` for those without another origin."""
        known = self.current_view.origins.get(id, {})
        origins = {path: known.get(path) or known.get(path.partition(".")[0], own) for path in paths}
        return {
            path: Provenance(
                origin.source,
                PERSON_EDIT if origin.reason == PERSON_EDIT else MAPPED,
                _FULL_CONFIDENCE,
                origin.stated_at,
            )
            for path, origin in origins.items()
        }

    def _record_changes(
        self, now: Product | Variant, old: Product | Variant, kind: str, ids: Mapping[str, Any]
    ) -> None:
        changes = differences.compute_changes(old.data, now.data)
        if now.status != old.status:
            changes.append(FieldChange("status", old.status, now.status))
        if isinstance(now, Variant) and isinstance(old, Variant) and now.product != old.product:
            changes.append(FieldChange("product", old.product, now.product))
        if changes:
            discontinued = kind == "product" and now.status != old.status and now.status == ProductStatus.DISCONTINUED
            self._record(f"{kind}.{'discontinued' if discontinued else 'updated'}", now, ids, changes)

    def _record(self, type: str, item: Product | Variant, ids: Mapping[str, Any], changes: list[ChangedField]) -> None:
        item.updated_at = self.cause.now
        if isinstance(item, Variant):
            self.current_view.products[item.product].updated_at = self.cause.now
        own = FieldOrigin(item.source, get_statement_time(item), "own")
        paths = [path.removeprefix("data.") for path, _, _ in changes if path.startswith("data.")]
        origins = {f"data.{path}": origin for path, origin in self._find_origins(item.id, paths, own).items()}
        self._append_event(type, item.id, ids, changes, origins)

    def _append_event(
        self,
        type: str,
        subject: str,
        ids: Mapping[str, Any],
        changes: Sequence[ChangedField],
        origins: Mapping[str, Provenance],
        facets: Sequence[str] | None = None,
    ) -> None:
        if type.endswith("merged") and subject in self.merge_id_by_object:
            ids = {**ids, "merge": self.merge_id_by_object[subject]}
        self._versions[subject] += 1
        catalogue = next(iter(self.cluster.products.values())).catalogue
        self.events.append(
            Event(
                type, subject, self._versions[subject], ids,
                fields=changes, origins=origins, facets=facets, source=self.cause.source,
                catalogue=catalogue, correlation_id=self.cause.correlation_id,
            )
        )  # fmt: skip

    def _set_versions(self) -> None:
        """Set the versions of stored and visible objects to the versions after all events."""
        for product in (*self.cluster.products.values(), *self.current_view.products.values()):
            product.version = self._versions[product.id]
            for variant in product.variants:
                variant.version = self._versions[variant.id]
                for offer in variant.offers:
                    if offer.id in self.corrected_offers:
                        offer.version = self._versions[offer.id]


def translate_run_events(
    events: Sequence[Event], builder: MergedViewBuilder, merged_ids: frozenset[str]
) -> Iterator[Event]:
    """Yield the events of a run, in which merged products and variants have the IDs that readers see.

    Changes of merged or corrected products and variants, and of corrected offers, are omitted, because the builder creates
    events for them. Events of new variants and of offers have the IDs of the visible product and variant.

    Args:
        events: The run's events, as if no products were merged.
        builder: The builder of the merged view after the run.
        merged_ids: The IDs of the merged products and of their variants.
    """
    for event in events:
        if event.product not in merged_ids or event.type == "product.created":
            yield event
        elif event.subject in builder.corrected_offers:
            continue
        elif event.type.startswith("offer."):
            variant, product = builder.current_view.representatives_by_variant[str(event.data["variant"])]
            yield replace(event, data={**event.data, "variant": variant, "product": product})
        elif event.type == "variant.created":
            _, product = builder.current_view.representatives_by_variant[str(event.data["id"])]
            yield replace(event, data={**event.data, "product": product})
