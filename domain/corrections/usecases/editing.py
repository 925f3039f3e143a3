"""Changes of corrections of some products: computation, storage, and the events of the changed values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from domain.catalogue.corrections import (
    Correction,
    CorrectionAction,
    Corrections,
    FeedState,
    correct_offer,
    find_level,
    get_field,
)
from domain.catalogue.differences import PRICES
from domain.catalogue.merged_statements import CatalogueView, ProductCluster, compute_view
from domain.catalogue.merged_view import MergedViewBuilder, ViewChangeCause
from domain.catalogue.model import Availability, LicenceBasis, Offer
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.publication import refresh_listed
from domain.catalogue.usecases.writer import run_in_thread_if_large
from domain.corrections.model import CorrectionChange
from domain.corrections.ports import CorrectionStore
from domain.events.ports import EventLog
from domain.kernel.errors import NotFound, Unprocessable
from domain.kernel.ids import new_id
from domain.sources.model import CORRECTIONS_CONNECTOR, Source, SourceKind
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx

SOURCE_NAME = "Corrections"
_UNAVAILABLE = (Availability.OUT_OF_STOCK, Availability.DISCONTINUED)
_IN_STOCK = (Availability.IN_STOCK, Availability.LOW_STOCK)


@dataclass(slots=True)
class CorrectionEditor:
    """Products with their corrections, which the methods change; `save` stores the result.

    Attributes:
        tx: The transaction, with `lock_for_writing(merging=True)`.
        cluster: The products, with the corrections before the changes.
        source: The ID of the source `Corrections`.
        made_by: The ID of the person.
        batch: The ID of the bulk correction, or None.
        corrections: The corrections after the changes.
        changes: The changes so far.
    """

    tx: Tx
    cluster: ProductCluster
    source: str
    made_by: str
    batch: str | None = None
    corrections: Corrections = field(init=False)
    changes: list[CorrectionChange] = field(default_factory=list)
    before: CatalogueView = field(init=False)
    _shown: dict[str, Mapping[str, Any]] = field(init=False)
    _stated: dict[str, Mapping[str, Any]] = field(init=False)
    _owners: dict[str, str] = field(init=False)
    _offers: dict[str, Offer] = field(default_factory=dict)
    _by_object: dict[str, Mapping[str, Correction]] = field(init=False)

    def __post_init__(self) -> None:
        """Compute the views with and without corrections."""
        self._by_object = dict(self.cluster.corrections.by_object)
        self.corrections = Corrections(self._by_object)  # copied once, not for each of many changes
        self.before = compute_view(self.cluster)
        self._shown = _map_data(self.before)
        self._stated = _map_data(compute_view(replace(self.cluster, corrections=Corrections())))
        self._owners = {id: id for id in self.cluster.products} | self.cluster.map_products_by_variant()
        for product in self.cluster.products.values():
            offers = {offer.id: offer for variant in product.variants for offer in variant.offers}
            self._offers |= offers
            self._owners |= dict.fromkeys(offers, product.id)

    @classmethod
    async def load(cls, tx: Tx, products: Sequence[str], made_by: str, batch: str | None = None) -> "CorrectionEditor":
        """Lock and load the products, with all products merged with them."""
        await tx[CatalogueStore].lock_for_writing(merging=True)
        cluster = await tx[CatalogueStore].load_cluster(products, products)
        source = await _get_source(tx, cluster) if cluster.products else ""
        return await run_in_thread_if_large(cluster.size, lambda: cls(tx, cluster, source, made_by, batch))

    def list_objects(self, product: str, level: str) -> list[str]:
        """Return the IDs of the objects of a level that readers see in the product, or in the one into which it is merged."""
        shown = self.before.products.get(self.cluster.find_representative(product))
        if shown is None:
            return []
        if level == "product":
            return [shown.id]
        if level == "variant":
            return [variant.id for variant in shown.variants]
        return [offer.id for variant in shown.variants for offer in variant.offers if offer.withdrawn_at is None]

    def get_shown_value(self, object: str, field: str) -> Any:
        """Return the value that readers saw before the changes, or None."""
        return get_field(self._get_data(self._shown, object), field)

    def apply(self, object: str, field: str, action: str, value: Any = None, product: str = "") -> bool:
        """Make or remove the correction of a field; return whether this changes anything.

        Args:
            object: The ID of a product, variant or offer.
            field: A field of the object that can be corrected.
            action: A CorrectionAction, or `remove`.
            value: The value of an override, as `check_value` returns it.
            product: The product of a bulk correction, for undoing.

        Raises:
            NotFound: The object does not exist.
            Unprocessable: The value contradicts other values of the object, or there is none to lock.
        """
        current = self.corrections.get(object).get(field)
        shown = self.get_shown_value(object, field)
        if action == "remove":
            return self._replace(object, field, None, product)
        if action == CorrectionAction.LOCK:
            if current is not None:
                return False
            if shown is None:
                raise Unprocessable("The field has no value that can be locked. Enter a value instead.")
            value = shown
        elif action == CorrectionAction.CLEAR:
            if shown is None:
                return False
            value = None
        elif value == shown:
            if current is not None:
                return False
            action = CorrectionAction.LOCK
        return self._replace(object, field, self._create(object, field, CorrectionAction(action), value), product)

    def restore(self, object: str, field: str, earlier: Correction | None, product: str = "") -> bool:
        """Restore an earlier correction of a field (None: no correction); return whether this changes anything.

        Raises NotFound, and Unprocessable if its value contradicts others now.
        """
        if earlier is None:
            return self._replace(object, field, None, product)
        return self.restore_values(object, field, earlier.id, earlier.action, earlier.value, earlier.made_by, product)

    def restore_values(
        self, object: str, field: str, id: str, action: CorrectionAction, value: Any, made_by: str, product: str = ""
    ) -> bool:
        """Restore a correction with these values; return whether this changes anything. Raises as `restore` does."""
        restored = replace(self._create(object, field, action, value), id=id, made_by=made_by)
        return self._replace(object, field, restored, product)

    def _create(self, object: str, field: str, action: CorrectionAction, value: Any) -> Correction:
        stated = get_field(self._get_data(self._stated, object), field)
        now = self.tx.now
        return Correction(
            id=new_id("cor"), source=self.source, product=self._owners[object], object=object, field=field,
            action=action, value=value, stated_value=stated, feed_value=stated, feed_state=FeedState.UNCHANGED,
            made_by=self.made_by, made_at=now, batch=self.batch, created_at=now, updated_at=now,
        )  # fmt: skip

    def _replace(self, object: str, field: str, after: Correction | None, product: str) -> bool:
        before = self.corrections.get(object).get(field)
        if after is None and before is None:
            return False
        if before is not None and after is not None:
            after = replace(after, id=before.id, version=before.version + 1, created_at=before.created_at)
        own = {name: one for name, one in self.corrections.get(object).items() if name != field}
        if after is not None:
            own[field] = after
        if find_level(object) == "offer":
            self._refuse_contradictions(object, field, own)
        if own:
            self._by_object[object] = own
        else:
            self._by_object.pop(object, None)
        self.changes.append(CorrectionChange(product or self._owners[object], object, field, before, after))
        return True

    def _refuse_contradictions(self, object: str, field: str, own: Mapping[str, Correction]) -> None:
        """Raise Unprocessable if corrected prices have several currencies, or quantity and availability contradict each other."""
        changed = own.get(field)
        if changed is not None and changed.value is not None and field in PRICES:
            others = {name: get_field(self._get_data(self._shown, object), name) for name in PRICES if name != field}
            others |= {name: one.value for name, one in own.items() if name in PRICES and name != field}
            currencies = {price["currency"] for price in others.values() if price is not None}
            if currencies and currencies != {changed.value["currency"]}:
                detail = (
                    f"The price is in {changed.value['currency'].upper()}, and other prices of the offer are in "
                    f"{min(currencies).upper()}. Enter the price in {min(currencies).upper()}."
                )
                raise Unprocessable.for_field("currency", "invalid_value", detail)
        if field in ("quantity", "availability") and own.keys() & {"quantity", "availability"}:
            data = correct_offer(self._offers[object], own.values())
            quantity, availability = data.get("quantity"), data["availability"]
            if quantity is not None and (
                (quantity > 0 and availability in _UNAVAILABLE) or (quantity == 0 and availability in _IN_STOCK)
            ):
                detail = f"The availability {availability} contradicts the quantity {quantity}. Correct the other value first, or clear it."
                raise Unprocessable.for_field("value", "invalid_value", detail)

    def _get_data(self, data_by_id: Mapping[str, Mapping[str, Any]], object: str) -> Mapping[str, Any]:
        """Return the data of an object, which another one may represent. Raises NotFound."""
        if (data := data_by_id.get(self.cluster.find_representative(object))) is None:
            raise NotFound
        return data

    async def save(self) -> None:
        """Store the changed corrections, the view and its events."""
        if not self.changes:
            return
        tx, store = self.tx, self.tx[CorrectionStore]
        cluster = replace(self.cluster, corrections=self.corrections)
        builder = await run_in_thread_if_large(
            cluster.size, lambda: MergedViewBuilder(self.before, cluster, ViewChangeCause(None, tx.now))
        )
        merged_view = await run_in_thread_if_large(cluster.size, builder.build)
        earlier, current = (
            {one.id: one for one in all_.list_all()} for all_ in (self.cluster.corrections, self.corrections)
        )
        if removed := sorted(earlier.keys() - current.keys()):
            await store.remove_all(removed)
        for id in sorted(earlier.keys() & current.keys()):
            if earlier[id] != current[id]:
                await store.save(current[id])
        await store.add_all([current[id] for id in sorted(current.keys() - earlier.keys())])
        await tx[CatalogueStore].save_merged_view(merged_view, tx.now)
        published = await refresh_listed(tx, merged_view.product_by_id.values(), builder.events)
        await tx[EventLog].append([*builder.events, *published])


def _map_data(view: CatalogueView) -> dict[str, Mapping[str, Any]]:
    """Return the data of all visible products, variants and offers by ID."""
    items: Iterable[tuple[str, Any]] = (
        *view.products.items(),
        *view.map_variants().items(),
        *view.map_offers().items(),
    )
    return {id: item.data for id, item in items}


async def _get_source(tx: Tx, cluster: ProductCluster) -> str:
    """Return the ID of the organisation's source `Corrections`, which the first correction creates."""
    if (id := await tx[CorrectionStore].find_source(CORRECTIONS_CONNECTOR)) is not None:
        return id
    catalogue = next(iter(cluster.products.values())).catalogue
    source = Source(
        id=new_id("src"), catalogue=catalogue, name=SOURCE_NAME, kind=SourceKind.PUSH, connector=CORRECTIONS_CONNECTOR,
        config={}, licence_basis=LicenceBasis.OWN_DATA, first_party=False, created_at=tx.now, updated_at=tx.now,
    )  # fmt: skip
    await tx[SourceStore].add(source)
    return source.id
