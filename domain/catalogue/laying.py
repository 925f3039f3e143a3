"""The merged view of products: the view to store, and the events for its differences from the previous view."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.catalogue import differences
from domain.catalogue.model import Product, ProductStatus, Variant
from domain.catalogue.overlay import Origin, Shown, TiedProducts, root_of, said_at, shown
from domain.events.model import Changed, Event, FieldChange, Provenance

MAPPED = "mapped"
_SURE = 1.0


@dataclass(slots=True)
class Laid:
    """The merged view to store for the products in `home`, as readers see it from now on (`shown`).

    `families` maps each product that is merged with another to its family. Merged objects are not shown themselves;
    `shown.places` maps each variant to the variant and product that show it.
    """

    home: Mapping[str, Product]
    shown: Shown
    merged: Mapping[str, str]
    families: Mapping[str, str]
    parts: dict[str, list[str]] = field(init=False)
    """IDs of the objects shown as each visible product and variant, its own ID first."""

    def __post_init__(self) -> None:
        """Group the IDs of merged objects by the object that shows them."""
        self.parts = {id: [id] for id in (*self.shown.products, *self.shown.variants())}
        for id in self.home:
            if (root := self.survivor(id)) is not None:
                self.parts[root].append(id)
        for id, (root, _) in sorted(self.shown.places.items()):
            if id != root:
                self.parts[root].append(id)

    def survivor(self, product: str) -> str | None:
        """Return the product that this product is merged into, or None if it is shown itself."""
        root = root_of(self.merged, product)
        return root if root != product else None

    def origins(self, id: str) -> Mapping[str, Origin]:
        """Return the origin of each field of a visible object; empty unless it represents several."""
        return self.shown.origins.get(id, {})


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a change: the run that events name, and its source; both None for merges, whose events name the merge."""

    correlation_id: str | None
    now: datetime
    source: str | None = None
    merging: bool = False
    """Whether offers move between products, so that every product counts as changed."""


@dataclass(slots=True)
class Laying:
    """Comparison of the previous view with the current one. Versions continue from those of `before`, one per event."""

    before: Shown
    after: TiedProducts
    cause: Cause
    merges: Mapping[str, str] = field(default_factory=dict)
    """ID of the merge by the ID of each object that it merged or that its undoing restored."""
    was: Mapping[str, str] = field(default_factory=dict)
    """ID of the product that previously showed each product, if it was another."""
    now_shown: Shown = field(init=False)
    events: list[Event] = field(default_factory=list)
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compute the current view and the initial versions."""
        self.now_shown = shown(self.after)
        for product in self.after.products.values():
            self._versions[product.id] = product.version
            self._versions |= {variant.id: variant.version for variant in product.variants}

    def laid(self, fresh: Iterable[str] = ()) -> Laid:
        """Return the merged view to store, and collect its events in `events`.

        Args:
            fresh: IDs of products and variants that were created in this transaction.

        """
        new = frozenset(fresh)
        self._compare_products(new)
        self._compare_variants(new)
        self._settle_versions()
        if self.cause.merging:
            for product in self.now_shown.products.values():
                product.updated_at = self.cause.now
        return Laid(self.after.products, self.now_shown, self.after.merged, self.after.families())

    def _compare_products(self, new: frozenset[str]) -> None:
        before, after = self.before.products, self.now_shown.products
        for id in sorted(after.keys() - new):
            if id in before:
                self._record_changes(after[id], before[id], "product", {"id": id})
            else:
                ids = {"id": id, "unmerged_from": self.was.get(id, id)}
                self._record("product.unmerged", after[id], ids, differences.created(after[id].data))
        for id in sorted(before.keys() - after.keys()):
            self._event("product.merged", id, {"id": id, "merged_into": self.after.root(id)}, [], {})

    def _compare_variants(self, new: frozenset[str]) -> None:
        before, after = self.before.variants(), self.now_shown.variants()
        for id in sorted(after.keys() - new):
            ids = {"id": id, "product": after[id].product}
            if id in before:
                self._record_changes(after[id], before[id], "variant", ids)
            else:
                variant, product = self.before.places.get(id, (id, after[id].product))
                ids |= {"unmerged_from": variant, "previous_product": product}
                self._record("variant.unmerged", after[id], ids, differences.created(after[id].data))
        for id in sorted(before.keys() - after.keys()):
            into, product = self.now_shown.places[id]
            ids = {"id": id, "product": product, "merged_into": into, "previous_product": before[id].product}
            self._event("variant.merged", id, ids, [], {})

    def _record_changes(
        self, now: Product | Variant, old: Product | Variant, kind: str, ids: Mapping[str, Any]
    ) -> None:
        changes = differences.changed(old.data, now.data)
        if now.status != old.status:
            changes.append(FieldChange("status", old.status, now.status))
        if isinstance(now, Variant) and isinstance(old, Variant) and now.product != old.product:
            changes.append(FieldChange("product", old.product, now.product))
        if changes:
            discontinued = kind == "product" and now.status != old.status and now.status == ProductStatus.DISCONTINUED
            self._record(f"{kind}.{'discontinued' if discontinued else 'updated'}", now, ids, changes)

    def _record(self, type: str, thing: Product | Variant, ids: Mapping[str, Any], changes: list[Changed]) -> None:
        thing.updated_at = self.cause.now
        field_origins = self.now_shown.origins.get(thing.id, {})
        own = Origin(thing.source, said_at(thing), "own")
        stated = {
            path: field_origins.get(path.split(".", 2)[1], own) for path, _, _ in changes if path.startswith("data.")
        }
        origins = {path: Provenance(origin.source, MAPPED, _SURE, origin.stated_at) for path, origin in stated.items()}
        self._event(type, thing.id, ids, changes, origins)

    def _event(
        self,
        type: str,
        subject: str,
        ids: Mapping[str, Any],
        changes: Sequence[Changed],
        origins: Mapping[str, Provenance],
    ) -> None:
        if type.endswith("merged") and subject in self.merges:
            ids = {**ids, "merge": self.merges[subject]}
        self._versions[subject] += 1
        catalogue = next(iter(self.after.products.values())).catalogue
        self.events.append(
            Event(
                type, subject, self._versions[subject], ids,
                fields=changes, origins=origins, source=self.cause.source,
                catalogue=catalogue, correlation_id=self.cause.correlation_id,
            )
        )  # fmt: skip

    def _settle_versions(self) -> None:
        """Set the versions of stored and visible objects to those after all events."""
        for product in (*self.after.products.values(), *self.now_shown.products.values()):
            product.version = self._versions[product.id]
            for variant in product.variants:
                variant.version = self._versions[variant.id]


def told_of_run(events: Sequence[Event], laying: Laying, tied: frozenset[str]) -> Iterator[Event]:
    """Yield the events of a run as readers see them where products are merged.

    Changes of merged products are reported by `laying` instead. New objects and offers are reported where they are shown.

    Args:
        events: The run's own events.
        laying: The merged view after the run.
        tied: The IDs of the merged products and of their variants.

    """
    for event in events:
        if event.product not in tied or event.type == "product.created":
            yield event
        elif event.type.startswith("offer."):
            variant, product = laying.now_shown.places[str(event.data["variant"])]
            yield replace(event, data={**event.data, "variant": variant, "product": product})
        elif event.type == "variant.created":
            _, product = laying.now_shown.places[str(event.data["id"])]
            yield replace(event, data={**event.data, "product": product})
