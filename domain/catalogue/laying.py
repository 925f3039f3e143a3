"""From what readers saw of merged products to what they see now: the events of it, and what is to be stored."""

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
    """What is stored of products that merges tie together: all of `home`, as it is `shown` from now on.

    `families` names the family of each that is still tied to another. What is merged is not shown; `places` of `shown` says
    where each variant is.
    """

    home: Mapping[str, Product]
    shown: Shown
    merged: Mapping[str, str]
    families: Mapping[str, str]
    parts: dict[str, list[str]] = field(init=False)
    """What is shown as each product and variant that is shown: itself first."""

    def __post_init__(self) -> None:
        """Group what is shown as one."""
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
        """Where the fields of something shown come from, if it stands for several."""
        return self.shown.origins.get(id, {})


@dataclass(frozen=True, slots=True)
class Cause:
    """What a change came from: the run that events name, and its source; both None for merges, which events name themselves."""

    correlation_id: str | None
    now: datetime
    source: str | None = None
    merging: bool = False
    """Whether offers change hands, so that every product here counts as changed."""


@dataclass(slots=True)
class Laying:
    """Holds what readers see now against what they saw before. Versions go on from those of `before`, by one an event."""

    before: Shown
    after: TiedProducts
    cause: Cause
    merges: Mapping[str, str] = field(default_factory=dict)
    """By what was merged or came back with it: the id of the merge."""
    was: Mapping[str, str] = field(default_factory=dict)
    """What products were shown as before, where that was something else."""
    now_shown: Shown = field(init=False)
    events: list[Event] = field(default_factory=list)
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Work out what readers see now."""
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
        self._tell_products(new)
        self._tell_variants(new)
        self._settle_versions()
        if self.cause.merging:
            for product in self.now_shown.products.values():
                product.updated_at = self.cause.now
        return Laid(self.after.products, self.now_shown, self.after.merged, self.after.families())

    def _tell_products(self, new: frozenset[str]) -> None:
        before, after = self.before.products, self.now_shown.products
        for id in sorted(after.keys() - new):
            if id in before:
                self._changed(after[id], before[id], "product", {"id": id})
            else:
                ids = {"id": id, "unmerged_from": self.was.get(id, id)}
                self._told("product.unmerged", after[id], ids, differences.created(after[id].data))
        for id in sorted(before.keys() - after.keys()):
            self._event("product.merged", id, {"id": id, "merged_into": self.after.root(id)}, [], {})

    def _tell_variants(self, new: frozenset[str]) -> None:
        before, after = self.before.variants(), self.now_shown.variants()
        for id in sorted(after.keys() - new):
            ids = {"id": id, "product": after[id].product}
            if id in before:
                self._changed(after[id], before[id], "variant", ids)
            else:
                variant, product = self.before.places.get(id, (id, after[id].product))
                ids |= {"unmerged_from": variant, "previous_product": product}
                self._told("variant.unmerged", after[id], ids, differences.created(after[id].data))
        for id in sorted(before.keys() - after.keys()):
            into, product = self.now_shown.places[id]
            ids = {"id": id, "product": product, "merged_into": into, "previous_product": before[id].product}
            self._event("variant.merged", id, ids, [], {})

    def _changed(self, now: Product | Variant, old: Product | Variant, kind: str, ids: Mapping[str, Any]) -> None:
        changes = differences.changed(old.data, now.data)
        if now.status != old.status:
            changes.append(FieldChange("status", old.status, now.status))
        if isinstance(now, Variant) and isinstance(old, Variant) and now.product != old.product:
            changes.append(FieldChange("product", old.product, now.product))
        if changes:
            discontinued = kind == "product" and now.status != old.status and now.status == ProductStatus.DISCONTINUED
            self._told(f"{kind}.{'discontinued' if discontinued else 'updated'}", now, ids, changes)

    def _told(self, type: str, thing: Product | Variant, ids: Mapping[str, Any], changes: list[Changed]) -> None:
        thing.updated_at = self.cause.now
        known = self.now_shown.origins.get(thing.id, {})
        own = Origin(thing.source, said_at(thing), "own")
        stated = {path: known.get(path.split(".", 2)[1], own) for path, _, _ in changes if path.startswith("data.")}
        origins = {path: Provenance(one.source, MAPPED, _SURE, one.stated_at) for path, one in stated.items()}
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
        """Give what is stored and what is shown the versions that it has by now."""
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
