"""Reconciliation of a source's statements with stored products, variants and offers; every change becomes an event."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from domain.catalogue import differences
from domain.catalogue.batch import Batch
from domain.catalogue.category_rules import Filing
from domain.catalogue.model import (
    STREAM_BITS,
    Availability,
    Offer,
    Product,
    ProductStatus,
    Stream,
    Variant,
    Visibility,
)
from domain.catalogue.room import Room
from domain.catalogue.search import availabilities
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement, at_locations
from domain.catalogue.trimming import trim_variant
from domain.events.model import Changed, Event, FieldChange, Provenance
from domain.kernel.ids import new_id
from domain.kernel.problems import Problem, ProblemKind

_COMPARE_AT = frozenset({"offer.compare_at"})


class StatingSource(Protocol):
    """The source whose statements are applied, and the catalogue that it fills."""

    @property
    def id(self) -> str: ...  # noqa: D102

    @property
    def catalogue(self) -> str: ...  # noqa: D102


@dataclass(slots=True)
class CatalogueReconciler:
    """Application of the statements of one chunk; changes are collected in `batch` and `events`.

    `complete` allows withdrawing offers that a restated product no longer has. `products` are those loaded for the chunk,
    by key. `present` returns whether the current feed contains a key; `line` is the first line of the current statement.
    `places` are the locations that a stock sheet has columns for, None if its rows name them. `filing` files products.
    `names_products` is false if the feed's keys are those of variants.
    With `replaces_data` a statement replaces all data (merged records); otherwise fields that it does not state are kept.
    """

    source: StatingSource
    run: str
    stream: Stream
    now: datetime
    complete: bool
    products: dict[str, Product]
    present: Callable[[str], bool]
    places: frozenset[str] | None = None
    filing: Filing = field(default_factory=Filing)
    line: int | None = None
    replaces_data: bool = False
    names_products: bool = True
    batch: Batch = field(default_factory=Batch)
    events: list[Event] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    moved_from: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    """Keys of products that the feed does not contain, but whose variants it contains."""
    _owned: dict[str, tuple[Product, Variant]] = field(default_factory=dict)
    """Each variant with the product that owns it, by variant key."""
    _loaded: dict[str, frozenset[str]] = field(default_factory=dict)
    _provenance: Provenance | None = None
    _room: Room = field(default_factory=Room)

    def __post_init__(self) -> None:
        """Index the variants by key, and record the availabilities of each product before any change."""
        self._provenance = Provenance(self.source.id, "mapped", 1.0, self.now)
        for product in self.products.values():
            self._loaded[product.id] = availabilities(product)
            for variant in product.variants:
                self._owned[variant.key] = product, variant

    def finished(self, absent: list[str]) -> Batch:
        """Return the batch after all statements; `absent` are the product keys that the run no longer states."""
        batch = self.batch
        batch.absent = absent
        written = {product.id for product in (*batch.new_products, *batch.changed_products)}
        for id, product in batch.touched.items():
            if id not in written and (now := availabilities(product)) != self._loaded.get(id):
                batch.availabilities[id] = now
        return batch

    def product(self, statement: ProductStatement) -> Product:
        """Create or update a product from a statement of the catalogue stream.

        A statement that does not name its product belongs to the one that has its variant, unless their titles differ.
        """
        product = self.products.get(statement.key)
        if product is None and not statement.names_product:
            product = self._owner(statement)
        is_part = product is not None and self._is_part(product, statement)
        is_gone = product is not None and self._is_discontinued_itself(product)
        if product is not None and not self.replaces_data:
            data: Mapping[str, Any] = statement.data
            if is_part:  # rows of other variants may state something else of the product
                data, statement.blank = {n: v for n, v in data.items() if n not in product.data}, frozenset()
                statement.discontinued = None
            # A rule may have changed the category; the one that the source stated is kept.
            own = {"category": product.stated_category, **data}
            held = differences.without_blank(product.data, "product", statement.blank)
            statement.data = differences.merge_data(held, own)  # type: ignore[assignment]
        filed = self.filing.file(statement.data)
        if product is None:
            product = self._new_product(statement, filed)
        else:
            self._update_product(product, statement, filed)
        unstated = {variant.key: variant for variant in product.variants}
        for stated in statement.variants:
            self._separate_key(product, stated)
            unstated.pop(stated.key, None)
            self._variant(product, stated)
        if self.complete or statement.restated:
            for variant in unstated.values():
                if not (is_part and self.present(variant.key)):
                    self.withdraw(product, variant.offers)
        if statement.discontinued is None and not is_gone:
            self._settle_status(product)
        return product

    def _is_part(self, product: Product, statement: ProductStatement) -> bool:
        """Return whether the statement covers only some variants of a product, in a feed without product keys."""
        keys = {stated.key for stated in statement.variants}
        return not statement.names_product and any(one.key not in keys for one in product.variants)

    def _is_discontinued_itself(self, product: Product) -> bool:
        """Return whether the source discontinued the product itself, not merely all of its variants, and did not drop it."""
        if product.status != ProductStatus.DISCONTINUED:
            return False
        live = any(offer.withdrawn_at is None for one in product.variants for offer in one.offers)
        return live and any(one.status != ProductStatus.DISCONTINUED for one in product.variants)

    def _owner(self, statement: ProductStatement) -> Product | None:
        """Return the product that has the statement's variants, if it or they have the stated title."""
        keys, title = {one.key for one in statement.variants}, statement.data.get("title")
        for owner, _ in (self._owned[key] for key in keys if key in self._owned):
            known = [owner.data, *(one.data for one in owner.variants if one.key in keys)]
            if title is None or any(data.get("title") == title for data in known):
                return owner
        return None

    def _settle_status(self, product: Product) -> None:
        """Set the status of a product whose record states none: it is discontinued if all its variants are."""
        gone = bool(product.variants) and all(one.status == ProductStatus.DISCONTINUED for one in product.variants)
        if product.status != (status := ProductStatus.stated(gone)):
            self.status(product, status)

    def held(self, key: str, product: str) -> Variant | None:
        """Return the stored variant that the key refers to for the product: kept apart, its own, or to be moved to it; else None."""
        for own in (f"{key} / {product}", key):
            owner, variant = self._owned.get(own, (None, None))
            if owner is not None and (owner.key == product or (own == key and not self.present(owner.key))):
                return variant
        return None

    def _separate_key(self, product: Product, stated: VariantStatement) -> None:
        """Give a variant that several products of the feed state a separate, longer key."""
        owner, variant = self._owned.get(stated.key, (product, None))
        if owner is product or variant is None or not self.present(owner.key):
            return
        if any(offer.withdrawn_at is None for offer in variant.offers) or not variant.offers:
            detail = f"The item {stated.key} is stated under {owner.key} as well; both are kept."
            self.problems.append(Problem("sku", ProblemKind.DUPLICATE, detail, line=self.line))
            stated.key = f"{stated.key} / {product.key}"

    def stock(self, product: Product, statement: VariantStatement) -> None:
        """Apply the offers that the stock stream states for a stored variant.

        Offers at a location that a complete sheet no longer has are withdrawn. A blank or unreadable cell at a location
        that it still has changes nothing.
        """
        variant = next(entry for entry in product.variants if entry.key == statement.key)
        self._offers(product, variant, self._expand_locations(variant, statement.offers))
        places = self.places
        if self.complete and places is not None and statement.covers_locations:
            self.withdraw(product, [offer for offer in variant.offers if offer.location not in places])

    def check(self, product: Product, offer: Offer, stated: Mapping[str, Any]) -> None:
        """Apply the stock of one offer from a stock check. Streams do not count as stating it: complete runs withdraw as before."""
        data = differences.checked(offer.data, stated)
        self._bound_arrivals(product, offer, data)
        if changes := differences.changed(offer.data, data, ""):
            offer.data = data
            self._offer_changed(product, offer, changes, differences.facets(changes))

    def withdraw(self, product: Product, offers: Iterable[Offer]) -> None:
        """Clear the stream's statement of offers, and withdraw offers that no stream states."""
        bit = STREAM_BITS[self.stream]
        for offer in offers:
            if offer.source != self.source.id or not offer.stated & bit:
                continue
            offer.stated &= ~bit
            if offer.stated:
                self._stated_by_another(product, offer)
                continue
            old = offer.data
            offer.data = differences.withdrawn(old)
            offer.withdrawn_at = self.now
            changes = differences.changed(old, offer.data, "")
            changes.append(FieldChange("withdrawn_at", None, self.now))
            self._offer_changed(product, offer, changes, ["stock", "availability"])
            self.counts["withdrawn"] = self.counts.get("withdrawn", 0) + 1

    def _stated_by_another(self, product: Product, offer: Offer) -> None:
        """Keep an offer that the other stream states: prices stay as last stated, stock becomes unknown."""
        old = offer.data
        if self.stream == Stream.STOCK:
            offer.data = differences.without_stock_figures(old) | {"availability": Availability.UNKNOWN}
        if changes := differences.changed(old, offer.data, ""):
            self._offer_changed(product, offer, changes, differences.facets(changes))
        else:
            self._keep_offer(product, offer)

    def absent(self, product: Product) -> None:
        """Handle a product that a complete run does not list; its variants may be listed if the feed has no product keys."""
        for variant in product.variants:
            if not self.names_products and variant.key != product.key and self.present(variant.key):
                self.listed.add(product.key)
            else:
                self.withdraw(product, variant.offers)

    def status(self, product: Product, status: ProductStatus) -> None:
        """Change the lifecycle status of a product after an absence or a statement of the source."""
        change = FieldChange("status", product.status, status)
        product.status = status
        kind = "product.discontinued" if status == ProductStatus.DISCONTINUED else "product.updated"
        self._product_changed(product, [change], kind)

    def refile(self, product: Product) -> None:
        """Recompute the category of a stored product, whose data is plain, by the current rules."""
        data = self.filing.refiled(product.data, product.stated_category)
        if changes := differences.changed(product.data, data):
            product.data = data
            self._product_changed(product, changes, "product.updated")

    def _new_product(self, statement: ProductStatement, stated_category: str | None) -> Product:
        product = Product(
            id=new_id("prod"),
            catalogue=self.source.catalogue,
            source=self.source.id,
            key=statement.key,
            status=ProductStatus.stated(statement.discontinued),
            version=1,
            visibility=Visibility.UNLISTED,
            data=statement.data,
            created_at=self.now,
            updated_at=self.now,
            stated_category=stated_category,
            stated_at=self.now,
        )
        self.products[statement.key] = product
        self.batch.new_products.append(product)
        self._record("products_created", "product.created", product, product, differences.created(product.data))
        return product

    def _update_product(self, product: Product, statement: ProductStatement, stated_category: str | None) -> None:
        changes = differences.changed(product.data, statement.data)
        product.stated_at = self.now if changes else product.stated_at
        if product.stated_category != stated_category:  # kept even where a rule hides it
            product.stated_category = stated_category
            self.batch.changed_products.append(product)
            self._touch(product)
        product.data = statement.data
        status = ProductStatus.stated(statement.discontinued)
        if statement.discontinued is not None and product.status != status:
            self.status(product, status)
        if changes:
            self._product_changed(product, changes, "product.updated")

    def _product_changed(self, product: Product, changes: list[Changed], kind: str) -> None:
        product.version += 1
        self.batch.changed_products.append(product)
        self._record("products_changed", kind, product, product, changes)

    def _variant(self, product: Product, stated: VariantStatement) -> None:
        variant = self._stated_variant(product, stated)
        if variant is None:
            self._room.refuse(product, "variants", self.line, self.problems)
            return
        offers = self._expand_locations(variant, stated.offers)
        self._offers(product, variant, offers)
        if (self.complete and stated.covers_locations) or stated.restated:
            places = {offer.location for offer in offers}
            self.withdraw(product, [offer for offer in variant.offers if offer.location not in places])

    def _expand_locations(self, variant: Variant, offers: list[OfferStatement]) -> list[OfferStatement]:
        """Return the stated offers, those without a location at each location where the source offers the variant."""
        live = [one.location for one in variant.offers if one.source == self.source.id and one.withdrawn_at is None]
        return offers if self.replaces_data else at_locations(offers, live)

    def _stated_variant(self, product: Product, stated: VariantStatement) -> Variant | None:
        """Return the created or updated variant, or None if the product has reached its limit."""
        if stated.key not in self._owned:
            return self._new_variant(product, stated) if self._room.variant(product, stated.data) else None
        owner, variant = self._owned[stated.key]
        if owner is not product and not self._room.moved(product, variant):
            return None
        if not self.replaces_data:
            blank = stated.blank | {"variant.discontinued"} if self._states_status(variant, stated) else stated.blank
            held = differences.without_blank(variant.data, "variant", blank)
            if stated.cartons is not None and ("cartons" in stated.data or "variant.cartons" in blank):
                cartons = stated.cartons.merged(variant.data.get("cartons", []), stated.data.get("cartons", []))
                stated.data["cartons"] = cartons or None  # type: ignore[typeddict-item]  # None removes
            stated.data = differences.merge_data(held, stated.data)  # type: ignore[assignment]
            trim_variant(stated.data)  # type: ignore[arg-type]
        self._update_variant(product, owner, variant, stated)
        return variant

    def _states_status(self, variant: Variant, stated: VariantStatement) -> bool:
        """Return whether a variant is no longer discontinued unless its rows say so.

        Without a status column this holds if a row states an availability again after an availability marked the variant
        as discontinued, or after the variant was absent.
        """
        if stated.states_status:
            return True
        by_availability = any(one.data.get("availability") == Availability.DISCONTINUED for one in variant.offers)
        absent = bool(variant.offers) and all(one.withdrawn_at is not None for one in variant.offers)
        return (by_availability or absent) and any("availability" in one.data for one in stated.offers)

    def _new_variant(self, product: Product, stated: VariantStatement) -> Variant:
        variant = Variant(
            id=new_id("var"),
            product=product.id,
            source=self.source.id,
            key=stated.key,
            status=ProductStatus.stated(stated.data.get("discontinued")),
            version=1,
            data=stated.data,
            updated_at=self.now,
        )
        product.variants.append(variant)
        self._owned[stated.key] = product, variant
        self.batch.new_variants.append(variant)
        self._record("variants_created", "variant.created", product, variant, differences.created(stated.data))
        return variant

    def _update_variant(self, product: Product, owner: Product, variant: Variant, stated: VariantStatement) -> None:
        changes = differences.changed(variant.data, stated.data)
        if changes and not self._room.variant(product, stated.data, variant):
            self._room.refuse(product, "variants", self.line, self.problems)
            stated.data, changes = variant.data, []
        status = ProductStatus.stated(stated.data.get("discontinued"))
        if status != variant.status:
            changes.append(FieldChange("status", variant.status, status))
        if owner is not product:
            changes.append(FieldChange("product", owner.id, product.id))
            self._move(variant, owner, product)
        if not changes:
            return
        variant.data, variant.status = stated.data, status
        variant.version += 1
        variant.updated_at = self.now
        self.batch.changed_variants.append(variant)
        self._record("variants_changed", "variant.updated", product, variant, changes)

    def _move(self, variant: Variant, owner: Product, product: Product) -> None:
        """Move a variant with its offers to the product under which the source lists it now."""
        self.moved_from.add(owner.key)
        owner.variants.remove(variant)
        product.variants.append(variant)
        variant.product = product.id
        self._owned[variant.key] = product, variant
        self._touch(owner)
        for offer in variant.offers:
            offer.product = product.id
            self._keep_offer(product, offer)

    def _offers(self, product: Product, variant: Variant, stated: list[OfferStatement]) -> None:
        known = {offer.location: offer for offer in variant.offers if offer.source == self.source.id}
        for statement in stated:
            offer = known.get(statement.location)
            if offer is None and statement.blank and not statement.data:
                continue
            if offer is None:
                if not self._room.offer(product, variant, statement.location, statement.data):
                    self._room.refuse(product, "offers", self.line, self.problems)
                    continue
                known[statement.location] = self._new_offer(product, variant, statement)
            else:
                self._update_offer(product, offer, statement)

    def _new_offer(self, product: Product, variant: Variant, statement: OfferStatement) -> Offer:
        offer = Offer(
            id=new_id("ofr"),
            variant=variant.id,
            product=product.id,
            source=self.source.id,
            location=statement.location,
            data={"availability": Availability.UNKNOWN, **statement.data},
            version=1,
            stated=STREAM_BITS[self.stream],
            observed_at=self.now,
            updated_at=self.now,
        )
        variant.offers.append(offer)
        self.batch.new_offers.append(offer)
        self._record("offers_created", "offer.created", product, offer, differences.created(offer.data, ""))
        return offer

    def _update_offer(self, product: Product, offer: Offer, statement: OfferStatement) -> None:
        bit = STREAM_BITS[self.stream]
        blank = statement.blank if self.stream == Stream.CATALOGUE else frozenset()
        if offer.stated & ~bit:
            # The other stream may state fields that are blank here; compare_at belongs to the stream with the price.
            blank &= _COMPARE_AT if "price" in statement.data else frozenset()
        data = self._offer_data(offer, statement.data, blank)
        self._bound_arrivals(product, offer, data)
        changes = differences.changed(offer.data, data, "")
        if offer.withdrawn_at is not None:
            changes.append(FieldChange("withdrawn_at", offer.withdrawn_at, None))
            offer.withdrawn_at = None
        if changes:
            offer.data = data
            offer.stated |= bit
            self._offer_changed(product, offer, changes, differences.facets(changes) or ["availability"])
        elif not offer.stated & bit:
            offer.stated |= bit
            self._keep_offer(product, offer)

    def _bound_arrivals(self, product: Product, offer: Offer, data: dict[str, Any]) -> None:
        """Remove incoming stock from an offer's new data if it exceeds the product's size limit."""
        if "incoming" in data and not self._room.arrivals(product, offer.data, data):
            self._room.refuse(product, "incoming", self.line, self.problems)
            del data["incoming"]

    def _offer_data(self, offer: Offer, stated: Mapping[str, Any], blank: frozenset[str]) -> dict[str, Any]:
        """Return the facts of an offer after a statement, and report prices that another currency replaces."""
        if self.replaces_data:
            return {"availability": Availability.UNKNOWN, **stated}
        held = offer.data if offer.withdrawn_at is None else differences.without_stock_figures(offer.data)
        data, dropped = differences.merge_offer(differences.without_blank(held, "offer", blank), stated)
        if dropped:
            detail = differences.currency_conflict(offer.location, data["currency"], dropped)
            self.problems.append(Problem("currency", ProblemKind.CONFLICT, detail, line=self.line))
        data.setdefault("availability", Availability.UNKNOWN)
        return data

    def _offer_changed(self, product: Product, offer: Offer, changes: list[Changed], facets: list[str]) -> None:
        offer.version += 1
        offer.observed_at = self.now
        self._keep_offer(product, offer)
        self._record("offers_changed", "offer.changed", product, offer, changes, facets)

    def _keep_offer(self, product: Product, offer: Offer) -> None:
        offer.updated_at = self.now
        self.batch.changed_offers.append(offer)
        self._touch(product)

    def _touch(self, product: Product) -> None:
        product.updated_at = self.now
        self.batch.touched[product.id] = product

    def _record(
        self,
        count: str,
        kind: str,
        product: Product,
        thing: Product | Variant | Offer,
        changes: list[Changed],
        facets: list[str] | None = None,
    ) -> None:
        """Count a change of the product, a variant or an offer, and append its event."""
        self._touch(product)
        self.counts[count] = self.counts.get(count, 0) + 1
        ids: dict[str, Any] = {"id": thing.id}
        if isinstance(thing, Variant):
            ids["product"] = product.id
        elif isinstance(thing, Offer):
            ids |= {name: getattr(thing, name) for name in ("variant", "product", "source", "location")}
            ids["availability"] = thing.data["availability"]
        self.events.append(
            Event(
                kind, thing.id, thing.version, ids,
                fields=changes, provenance=self._provenance, facets=facets,
                source=self.source.id, catalogue=self.source.catalogue, correlation_id=self.run,
            )
        )  # fmt: skip
