"""Reconciliation of what a feed states about products with the stored products; every change becomes an event."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from domain.catalogue import differences
from domain.catalogue.batch import Batch
from domain.catalogue.category_rules import CategoryAssigner
from domain.catalogue.data_limits import trim_variant
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
from domain.catalogue.product_limits import ProductSizeLimit
from domain.catalogue.search_terms import list_availabilities
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement, expand_general_offers
from domain.events.model import ChangedField, Event, FieldChange, Provenance
from domain.kernel.ids import new_id
from domain.kernel.problems import Problem, ProblemKind

_COMPARE_AT = frozenset({"offer.compare_at"})


class StatementSource(Protocol):
    """Source whose feed is applied: its ID, and the ID of the catalogue of its products."""

    @property
    def id(self) -> str: ...  # noqa: D102

    @property
    def catalogue(self) -> str: ...  # noqa: D102


@dataclass(slots=True)
class CatalogueReconciler:
    """Applies what one chunk of a feed states to stored products; changes are collected in `batch` and `events`.

    Attributes:
        is_complete: Whether the run is complete, so that offers missing in a product's statement are withdrawn.
        products: The products loaded for the chunk, by key.
        is_in_feed: Returns whether the current feed contains a key.
        sheet_locations: Locations that have a column in a stock sheet; None if each row has one location.
        category_assigner: Assigns categories to products.
        line: First line of the current statement in the feed; None if unknown.
        replaces_data: Whether a statement replaces all stored data, as merged records do; otherwise omitted fields are kept.
        has_product_keys: Whether the feed's keys are keys of products, not of variants.
        erases_absent_items: Whether products, variants and offers that a complete run does not list lose all data, because the
            organisation may no longer use the data. Keys of variants are then unique in the feed.
        counts: Number of each kind of change, such as `offers_created`.
    """

    source: StatementSource
    run: str
    stream: Stream
    now: datetime
    is_complete: bool
    products: dict[str, Product]
    is_in_feed: Callable[[str], bool]
    sheet_locations: frozenset[str] | None = None
    category_assigner: CategoryAssigner = field(default_factory=CategoryAssigner)
    line: int | None = None
    replaces_data: bool = False
    has_product_keys: bool = True
    erases_absent_items: bool = False
    batch: Batch = field(default_factory=Batch)
    events: list[Event] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    moved_from_product_keys: set[str] = field(default_factory=set)
    """Keys of products from which variants moved to other products."""
    products_with_listed_variants: set[str] = field(default_factory=set)
    """Keys of products that the feed does not contain, but whose variants it contains."""
    erased_variants: list[str] = field(default_factory=list)
    """IDs of variants that have lost all data because the run does not list them."""
    _variant_by_key: dict[str, tuple[Product, Variant]] = field(default_factory=dict)
    """Each variant with its product, by variant key."""
    _loaded_availabilities: dict[str, frozenset[str]] = field(default_factory=dict)
    _provenance: Provenance | None = None
    _size_limit: ProductSizeLimit = field(default_factory=ProductSizeLimit)

    def __post_init__(self) -> None:
        """Index the variants by key, and store the availabilities of each product before any change."""
        self._provenance = Provenance(self.source.id, "mapped", 1.0, self.now)
        for product in self.products.values():
            self._loaded_availabilities[product.id] = list_availabilities(product)
            for variant in product.variants:
                self._variant_by_key[variant.key] = product, variant

    def finish(self, absent_keys: list[str]) -> Batch:
        """Complete and return the batch, after the whole chunk was applied.

        Args:
            absent_keys: Keys of products that the run no longer lists.
        """
        batch = self.batch
        batch.absent_keys = absent_keys
        written = {product.id for product in (*batch.new_products, *batch.changed_products)}
        for id, product in batch.touched.items():
            if id not in written and (now := list_availabilities(product)) != self._loaded_availabilities.get(id):
                batch.availabilities_by_product[id] = now
        return batch

    def apply_product(self, statement: ProductStatement) -> Product:
        """Create or update a product from what the catalogue stream states about it (`statement`).

        A statement without a product key is applied to the product that has its variants, unless the titles differ.
        """
        product = self.products.get(statement.key)
        if product is None and not statement.has_product_key:
            product = self._find_product_of_variants(statement)
        is_part = product is not None and self._covers_only_some_variants(product, statement)
        is_gone = product is not None and self._is_discontinued_by_source(product)
        if product is not None and not self.replaces_data:
            data: Mapping[str, Any] = statement.data
            if is_part:  # rows of other variants may state other data of the product
                data, statement.blank_fields = {n: v for n, v in data.items() if n not in product.data}, frozenset()
                statement.discontinued = None
            # A rule may have changed the category; the one that the source stated is kept.
            own = {"category": product.stated_category, **data}
            held = differences.remove_blank_fields(product.data, "product", statement.blank_fields)
            statement.data = differences.merge_data(held, own)  # type: ignore[assignment]
        filed = self.category_assigner.assign_category(statement.data)
        if product is None:
            product = self._create_product(statement, filed)
        else:
            self._update_product(product, statement, filed)
        unstated = {variant.key: variant for variant in product.variants}
        for stated in statement.variants:
            self._assign_separate_key(product, stated)
            unstated.pop(stated.key, None)
            self._apply_variant(product, stated)
        if self.is_complete or statement.is_complete:
            for variant in unstated.values():
                if not (is_part and self.is_in_feed(variant.key)):
                    self._withdraw_variant(product, variant)
        if statement.discontinued is None and not is_gone:
            self._derive_status(product)
        return product

    def _withdraw_variant(self, product: Product, variant: Variant) -> None:
        """Withdraw the offers of a variant that the feed no longer lists; with `erases_absent_items`, also erase its data."""
        if self.erases_absent_items:
            self.erased_variants.append(variant.id)
            self._apply_variant(product, _build_erasing_statement(variant))
        else:
            self.withdraw_offers(product, variant.offers)

    def _covers_only_some_variants(self, product: Product, statement: ProductStatement) -> bool:
        """Return whether the feed's entry (`statement`) has no product key, and lacks variants of the product."""
        keys = {stated.key for stated in statement.variants}
        return not statement.has_product_key and any(one.key not in keys for one in product.variants)

    def _is_discontinued_by_source(self, product: Product) -> bool:
        """Return whether a product is discontinued because its source marked the product itself, not its variants.

        Such a product still has current offers, and variants that are not discontinued.
        """
        if product.status != ProductStatus.DISCONTINUED:
            return False
        live = any(offer.withdrawn_at is None for one in product.variants for offer in one.offers)
        return live and any(one.status != ProductStatus.DISCONTINUED for one in product.variants)

    def _find_product_of_variants(self, statement: ProductStatement) -> Product | None:
        """Return the stored product that has a variant of `statement`, if the product or the variant has the same title."""
        keys, title = {one.key for one in statement.variants}, statement.data.get("title")
        for owner, _ in (self._variant_by_key[key] for key in keys if key in self._variant_by_key):
            known = [owner.data, *(one.data for one in owner.variants if one.key in keys)]
            if title is None or any(data.get("title") == title for data in known):
                return owner
        return None

    def _derive_status(self, product: Product) -> None:
        """Set the status of a product for which the feed states none: discontinued if all variants are discontinued."""
        gone = bool(product.variants) and all(one.status == ProductStatus.DISCONTINUED for one in product.variants)
        if product.status != (status := ProductStatus.from_discontinued(gone)):
            self.change_status(product, status)

    def find_variant(self, key: str, product_key: str) -> Variant | None:
        """Return the stored variant for an item that the feed lists under a product, or None.

        A variant of the product with the item's separate key (see `_assign_separate_key`) has precedence. Otherwise the
        variant with the item's key must belong to the product, or to a product that the feed no longer lists.

        Args:
            key: The key of the item.
            product_key: The key of the product.
        """
        for own in (f"{key} / {product_key}", key):
            owner, variant = self._variant_by_key.get(own, (None, None))
            if owner is not None and (owner.key == product_key or (own == key and not self.is_in_feed(owner.key))):
                return variant
        return None

    def _assign_separate_key(self, product: Product, stated: VariantStatement) -> None:
        """Assign a separate, longer key to a variant that the feed lists under several products."""
        owner, variant = self._variant_by_key.get(stated.key, (product, None))
        if owner is product or variant is None or self.erases_absent_items or not self.is_in_feed(owner.key):
            return
        if any(offer.withdrawn_at is None for offer in variant.offers) or not variant.offers:
            detail = (
                f"The item {stated.key} also belongs to the product {owner.key}. The item is stored for both products."
            )
            self.problems.append(Problem("sku", ProblemKind.DUPLICATE, detail, line=self.line))
            stated.key = f"{stated.key} / {product.key}"

    def apply_stock(self, product: Product, statement: VariantStatement) -> None:
        """Apply the offers in the stock stream to a stored variant.

        Offers at locations that a complete sheet no longer has are withdrawn. A blank or unreadable cell at a location that
        the sheet still has changes nothing.
        """
        variant = next(entry for entry in product.variants if entry.key == statement.key)
        self._apply_offers(product, variant, self._expand_locations(variant, statement.offers))
        places = self.sheet_locations
        if self.is_complete and places is not None and statement.covers_locations:
            self.withdraw_offers(product, [offer for offer in variant.offers if offer.location not in places])

    def apply_stock_check(self, product: Product, offer: Offer, stated: Mapping[str, Any]) -> None:
        """Apply the result of a stock check to an offer.

        The streams that list the offer do not change, so a complete run can still withdraw it.
        """
        data = differences.apply_stock_check(offer.data, stated)
        self._limit_incoming(product, offer, data)
        if changes := differences.compute_changes(offer.data, data, ""):
            offer.data = data
            self._record_offer_change(product, offer, changes, differences.find_affected_facets(changes))

    def withdraw_offers(self, product: Product, offers: Iterable[Offer]) -> None:
        """Record that the current stream no longer lists the offers, and withdraw the offers that no other stream lists.

        Offers of other sources are ignored.
        """
        bit = STREAM_BITS[self.stream]
        for offer in offers:
            if offer.source != self.source.id or not offer.stated_streams & bit:
                continue
            offer.stated_streams &= ~bit
            if offer.stated_streams:
                self._update_for_other_stream(product, offer)
                continue
            old = offer.data
            offer.data = differences.compute_withdrawn_data({} if self.erases_absent_items else old)
            offer.withdrawn_at = self.now
            changes = differences.compute_changes(old, offer.data, "")
            changes.append(FieldChange("withdrawn_at", None, self.now))
            self._record_offer_change(product, offer, changes, ["stock", "availability"])
            self.counts["withdrawn"] = self.counts.get("withdrawn", 0) + 1

    def _update_for_other_stream(self, product: Product, offer: Offer) -> None:
        """Update an offer that the current stream no longer lists, but the other stream does.

        If the current stream is the stock stream, the offer's stock becomes unknown.
        """
        old = offer.data
        if self.stream == Stream.STOCK:
            offer.data = differences.remove_stock_figures(old) | {"availability": Availability.UNKNOWN}
        if changes := differences.compute_changes(old, offer.data, ""):
            self._record_offer_change(product, offer, changes, differences.find_affected_facets(changes))
        else:
            self._mark_offer_changed(product, offer)

    def withdraw_absent_product(self, product: Product) -> None:
        """Withdraw the offers of a product that a complete run does not list.

        If the feed has no product keys, offers of variants that the feed lists are not withdrawn. With `erases_absent_items`,
        the product is also discontinued, and it and its variants lose all data.
        """
        if self.erases_absent_items:
            self.erased_variants.extend(variant.id for variant in product.variants)
            variants = [_build_erasing_statement(variant) for variant in product.variants]
            self.apply_product(ProductStatement(product.key, {}, variants, discontinued=True))
            return
        for variant in product.variants:
            if not self.has_product_keys and variant.key != product.key and self.is_in_feed(variant.key):
                self.products_with_listed_variants.add(product.key)
            else:
                self.withdraw_offers(product, variant.offers)

    def change_status(self, product: Product, status: ProductStatus) -> None:
        """Change the lifecycle status of a product, and record an event."""
        change = FieldChange("status", product.status, status)
        product.status = status
        event_type = "product.discontinued" if status == ProductStatus.DISCONTINUED else "product.updated"
        self._record_product_change(product, [change], event_type)

    def reassign_category(self, product: Product) -> None:
        """Recompute the category of a stored product, whose data must be decoded, by the current rules."""
        data = self.category_assigner.with_reassigned_category(product.data, product.stated_category)
        if changes := differences.compute_changes(product.data, data):
            product.data = data
            self._record_product_change(product, changes, "product.updated")

    def _create_product(self, statement: ProductStatement, stated_category: str | None) -> Product:
        product = Product(
            id=new_id("prod"),
            catalogue=self.source.catalogue,
            source=self.source.id,
            key=statement.key,
            status=ProductStatus.from_discontinued(statement.discontinued),
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
        self._record_change(
            "products_created", "product.created", product, product, differences.list_created_fields(product.data)
        )
        return product

    def _update_product(self, product: Product, statement: ProductStatement, stated_category: str | None) -> None:
        changes = differences.compute_changes(product.data, statement.data)
        product.stated_at = self.now if changes else product.stated_at
        if product.stated_category != stated_category:  # kept even if a rule overrides it
            product.stated_category = stated_category
            self.batch.changed_products.append(product)
            self._mark_touched(product)
        product.data = statement.data
        status = ProductStatus.from_discontinued(statement.discontinued)
        if statement.discontinued is not None and product.status != status:
            self.change_status(product, status)
        if changes:
            self._record_product_change(product, changes, "product.updated")

    def _record_product_change(self, product: Product, changes: list[ChangedField], event_type: str) -> None:
        product.version += 1
        self.batch.changed_products.append(product)
        self._record_change("products_changed", event_type, product, product, changes)

    def _apply_variant(self, product: Product, stated: VariantStatement) -> None:
        variant = self._upsert_variant(product, stated)
        if variant is None:
            self._size_limit.add_problem(product, "variants", self.line, self.problems)
            return
        offers = self._expand_locations(variant, stated.offers)
        self._apply_offers(product, variant, offers)
        if (self.is_complete and stated.covers_locations) or stated.is_complete:
            places = {offer.location for offer in offers}
            self.withdraw_offers(product, [offer for offer in variant.offers if offer.location not in places])

    def _expand_locations(self, variant: Variant, offers: list[OfferStatement]) -> list[OfferStatement]:
        """Copy a general offer to each location of the variant's current offers; return all offers.

        If statements replace all stored data, the offers are returned unchanged.
        """
        live = [one.location for one in variant.offers if one.source == self.source.id and one.withdrawn_at is None]
        return offers if self.replaces_data else expand_general_offers(offers, live)

    def _upsert_variant(self, product: Product, stated: VariantStatement) -> Variant | None:
        """Create or update the variant from the feed; return it, or None if the product has reached its limit."""
        if stated.key not in self._variant_by_key:
            return (
                self._create_variant(product, stated)
                if self._size_limit.try_add_variant(product, stated.data)
                else None
            )
        owner, variant = self._variant_by_key[stated.key]
        if owner is not product and not self._size_limit.try_add_moved_variant(product, variant):
            return None
        if not self.replaces_data:
            blank = (
                stated.blank_fields | {"variant.discontinued"}
                if self._should_clear_discontinued(variant, stated)
                else stated.blank_fields
            )
            held = differences.remove_blank_fields(variant.data, "variant", blank)
            if stated.carton_cells is not None and ("cartons" in stated.data or "variant.cartons" in blank):
                cartons = stated.carton_cells.merge_cartons(
                    variant.data.get("cartons", []), stated.data.get("cartons", [])
                )
                stated.data["cartons"] = cartons or None  # type: ignore[typeddict-item]  # None removes
            stated.data = differences.merge_data(held, stated.data)  # type: ignore[assignment]
            trim_variant(stated.data)  # type: ignore[arg-type]
        self._update_variant(product, owner, variant, stated)
        return variant

    def _should_clear_discontinued(self, variant: Variant, stated: VariantStatement) -> bool:
        """Return whether to remove the stored field `discontinued` before the variant's new data is merged.

        Without the field, the variant becomes active, unless the new data marks it as discontinued. The field is
        removed in two cases: the rows have a cell for the status or availability; or an offer states an availability,
        and the stored offers are all withdrawn or one of them is discontinued.
        """
        if stated.states_status:
            return True
        by_availability = any(one.data.get("availability") == Availability.DISCONTINUED for one in variant.offers)
        absent = bool(variant.offers) and all(one.withdrawn_at is not None for one in variant.offers)
        return (by_availability or absent) and any("availability" in one.data for one in stated.offers)

    def _create_variant(self, product: Product, stated: VariantStatement) -> Variant:
        variant = Variant(
            id=new_id("var"),
            product=product.id,
            source=self.source.id,
            key=stated.key,
            status=ProductStatus.from_discontinued(stated.data.get("discontinued")),
            version=1,
            data=stated.data,
            updated_at=self.now,
        )
        product.variants.append(variant)
        self._variant_by_key[stated.key] = product, variant
        self.batch.new_variants.append(variant)
        self._record_change(
            "variants_created", "variant.created", product, variant, differences.list_created_fields(stated.data)
        )
        return variant

    def _update_variant(self, product: Product, owner: Product, variant: Variant, stated: VariantStatement) -> None:
        changes = differences.compute_changes(variant.data, stated.data)
        if changes and not self._size_limit.try_add_variant(product, stated.data, variant):
            self._size_limit.add_problem(product, "variants", self.line, self.problems)
            stated.data, changes = variant.data, []
        status = ProductStatus.from_discontinued(stated.is_discontinued or stated.data.get("discontinued"))
        if status != variant.status:
            changes.append(FieldChange("status", variant.status, status))
        if owner is not product:
            changes.append(FieldChange("product", owner.id, product.id))
            self._move_variant(variant, owner, product)
        if not changes:
            return
        variant.data, variant.status = stated.data, status
        variant.version += 1
        variant.updated_at = self.now
        self.batch.changed_variants.append(variant)
        self._record_change("variants_changed", "variant.updated", product, variant, changes)

    def _move_variant(self, variant: Variant, old_product: Product, new_product: Product) -> None:
        """Move a variant with its offers to the product under which the source lists it now."""
        self.moved_from_product_keys.add(old_product.key)
        old_product.variants.remove(variant)
        new_product.variants.append(variant)
        variant.product = new_product.id
        self._variant_by_key[variant.key] = new_product, variant
        self._mark_touched(old_product)
        for offer in variant.offers:
            offer.product = new_product.id
            self._mark_offer_changed(new_product, offer)

    def _apply_offers(self, product: Product, variant: Variant, stated: list[OfferStatement]) -> None:
        known = {offer.location: offer for offer in variant.offers if offer.source == self.source.id}
        for statement in stated:
            offer = known.get(statement.location)
            if offer is None and statement.blank_fields and not statement.data:
                continue
            if offer is None:
                if not self._size_limit.try_add_offer(product, variant, statement.location, statement.data):
                    self._size_limit.add_problem(product, "offers", self.line, self.problems)
                    continue
                known[statement.location] = self._create_offer(product, variant, statement)
            else:
                self._update_offer(product, offer, statement)

    def _create_offer(self, product: Product, variant: Variant, statement: OfferStatement) -> Offer:
        offer = Offer(
            id=new_id("ofr"),
            variant=variant.id,
            product=product.id,
            source=self.source.id,
            location=statement.location,
            data={"availability": Availability.UNKNOWN, **statement.data},
            version=1,
            stated_streams=STREAM_BITS[self.stream],
            observed_at=self.now,
            updated_at=self.now,
        )
        variant.offers.append(offer)
        self.batch.new_offers.append(offer)
        self._record_change(
            "offers_created", "offer.created", product, offer, differences.list_created_fields(offer.data, "")
        )
        return offer

    def _update_offer(self, product: Product, offer: Offer, statement: OfferStatement) -> None:
        bit = STREAM_BITS[self.stream]
        blank = statement.blank_fields if self.stream == Stream.CATALOGUE else frozenset()
        if offer.stated_streams & ~bit:
            # The other stream may state fields that are blank here; compare_at belongs to the stream with the price.
            blank &= _COMPARE_AT if "price" in statement.data else frozenset()
        data = self._merge_offer_data(offer, statement.data, blank)
        self._limit_incoming(product, offer, data)
        changes = differences.compute_changes(offer.data, data, "")
        if offer.withdrawn_at is not None:
            changes.append(FieldChange("withdrawn_at", offer.withdrawn_at, None))
            offer.withdrawn_at = None
        if changes:
            offer.data = data
            offer.stated_streams |= bit
            self._record_offer_change(
                product, offer, changes, differences.find_affected_facets(changes) or ["availability"]
            )
        elif not offer.stated_streams & bit:
            offer.stated_streams |= bit
            self._mark_offer_changed(product, offer)

    def _limit_incoming(self, product: Product, offer: Offer, data: dict[str, Any]) -> None:
        """Remove incoming stock from an offer's new data if it exceeds the product's size limit."""
        if "incoming" in data and not self._size_limit.try_replace_incoming_stock(product, offer.data, data):
            self._size_limit.add_problem(product, "incoming", self.line, self.problems)
            del data["incoming"]

    def _merge_offer_data(
        self, offer: Offer, stated: Mapping[str, Any], blank_fields: frozenset[str]
    ) -> dict[str, Any]:
        """Return an offer's data after applying `stated`; stored fields in `blank_fields` are removed first.

        If prices are removed because their currency differs, a problem is added. If statements replace all stored data,
        the stored data is ignored.
        """
        if self.replaces_data:
            return {"availability": Availability.UNKNOWN, **stated}
        held = offer.data if offer.withdrawn_at is None else differences.remove_stock_figures(offer.data)
        data, dropped = differences.merge_offer_data(
            differences.remove_blank_fields(held, "offer", blank_fields), stated
        )
        if dropped:
            detail = differences.describe_currency_conflict(offer.location, data["currency"], dropped)
            self.problems.append(Problem("currency", ProblemKind.CONFLICT, detail, line=self.line))
        data.setdefault("availability", Availability.UNKNOWN)
        return data

    def _record_offer_change(
        self, product: Product, offer: Offer, changes: list[ChangedField], facets: list[str]
    ) -> None:
        offer.version += 1
        offer.observed_at = self.now
        self._mark_offer_changed(product, offer)
        self._record_change("offers_changed", "offer.changed", product, offer, changes, facets)

    def _mark_offer_changed(self, product: Product, offer: Offer) -> None:
        offer.updated_at = self.now
        self.batch.changed_offers.append(offer)
        self._mark_touched(product)

    def _mark_touched(self, product: Product) -> None:
        product.updated_at = self.now
        self.batch.touched[product.id] = product

    def _record_change(
        self,
        counter: str,
        event_type: str,
        product: Product,
        item: Product | Variant | Offer,
        changes: list[ChangedField],
        facets: list[str] | None = None,
    ) -> None:
        """Count a change of a product, a variant or an offer under `counter`, and append its event."""
        self._mark_touched(product)
        self.counts[counter] = self.counts.get(counter, 0) + 1
        ids: dict[str, Any] = {"id": item.id}
        if isinstance(item, Variant):
            ids["product"] = product.id
        elif isinstance(item, Offer):
            ids |= {name: getattr(item, name) for name in ("variant", "product", "source", "location")}
            ids["availability"] = item.data["availability"]
        self.events.append(
            Event(
                event_type, item.id, item.version, ids,
                fields=changes, provenance=self._provenance, facets=facets,
                source=self.source.id, catalogue=self.source.catalogue, correlation_id=self.run,
            )
        )  # fmt: skip


def _build_erasing_statement(variant: Variant) -> VariantStatement:
    """Return the statement that a variant is discontinued, without data and offers."""
    return VariantStatement(variant.key, {}, is_complete=True, is_discontinued=True)
