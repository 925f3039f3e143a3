"""The merged view of products: the view to store, and events for the differences from the previous view."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.catalogue import differences
from domain.catalogue.merged_statements import (
    CatalogueView,
    FieldOrigin,
    ProductCluster,
    compute_view,
    find_representative,
    get_statement_time,
)
from domain.catalogue.model import Product, ProductStatus, Variant
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
        merge_group_by_product: The ID of the merge group (all products that merges connect) of each merged product.
        ids_by_representative: IDs of all objects that each visible product or variant represents, its own ID first.
    """

    product_by_id: Mapping[str, Product]
    view: CatalogueView
    survivor_by_id: Mapping[str, str]
    merge_group_by_product: Mapping[str, str]
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
        """Return the origin of each field of a visible product or variant; empty if it represents no others."""
        return self.view.origins.get(id, {})


@dataclass(frozen=True, slots=True)
class ViewChangeCause:
    """Cause of changes of the merged view: a run, or a merge or its undoing.

    Attributes:
        correlation_id: The ID of the run; None for merges, whose events contain the merge's ID instead.
        now: The time of the changes.
        source: The source of the run; None for merges.
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
    events: list[Event] = field(default_factory=list)
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compute the current view and the initial versions."""
        self.current_view = compute_view(self.cluster)
        for product in self.cluster.products.values():
            self._versions[product.id] = product.version
            self._versions |= {variant.id: variant.version for variant in product.variants}

    def build(self, new_ids: Iterable[str] = ()) -> MergedView:
        """Return the merged view to store, and collect its events in `events`.

        Args:
            new_ids: IDs of products and variants that were created in this transaction.

        """
        new = frozenset(new_ids)
        self._compare_products(new)
        self._compare_variants(new)
        self._set_versions()
        if self.cause.is_merge:
            for product in self.current_view.products.values():
                product.updated_at = self.cause.now
        return MergedView(
            self.cluster.products, self.current_view, self.cluster.survivor_by_id, self.cluster.map_merge_groups()
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
        field_origins = self.current_view.origins.get(item.id, {})
        own = FieldOrigin(item.source, get_statement_time(item), "own")
        stated = {
            path: field_origins.get(path.split(".", 2)[1], own) for path, _, _ in changes if path.startswith("data.")
        }
        origins = {
            path: Provenance(origin.source, MAPPED, _FULL_CONFIDENCE, origin.stated_at)
            for path, origin in stated.items()
        }
        self._append_event(type, item.id, ids, changes, origins)

    def _append_event(
        self,
        type: str,
        subject: str,
        ids: Mapping[str, Any],
        changes: Sequence[ChangedField],
        origins: Mapping[str, Provenance],
    ) -> None:
        if type.endswith("merged") and subject in self.merge_id_by_object:
            ids = {**ids, "merge": self.merge_id_by_object[subject]}
        self._versions[subject] += 1
        catalogue = next(iter(self.cluster.products.values())).catalogue
        self.events.append(
            Event(
                type, subject, self._versions[subject], ids,
                fields=changes, origins=origins, source=self.cause.source,
                catalogue=catalogue, correlation_id=self.cause.correlation_id,
            )
        )  # fmt: skip

    def _set_versions(self) -> None:
        """Set the versions of stored and visible objects to the versions after all events."""
        for product in (*self.cluster.products.values(), *self.current_view.products.values()):
            product.version = self._versions[product.id]
            for variant in product.variants:
                variant.version = self._versions[variant.id]


def translate_run_events(
    events: Sequence[Event], builder: MergedViewBuilder, merged_ids: frozenset[str]
) -> Iterator[Event]:
    """Yield the events of a run, in which merged products and variants have the IDs that readers see.

    Changes of merged products and variants are omitted, because the builder creates events for them. Events of new variants
    and of offers have the IDs of the visible product and variant.

    Args:
        events: The run's events, as if no products were merged.
        builder: The builder of the merged view after the run.
        merged_ids: The IDs of the merged products and of their variants.
    """
    for event in events:
        if event.product not in merged_ids or event.type == "product.created":
            yield event
        elif event.type.startswith("offer."):
            variant, product = builder.current_view.representatives_by_variant[str(event.data["variant"])]
            yield replace(event, data={**event.data, "variant": variant, "product": product})
        elif event.type == "variant.created":
            _, product = builder.current_view.representatives_by_variant[str(event.data["id"])]
            yield replace(event, data={**event.data, "product": product})
