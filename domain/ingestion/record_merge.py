"""Merging of pushed records with stored data: omitted fields stay unchanged, and null removes a field (docs/push.md)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.catalogue import differences
from domain.catalogue.data_limits import trim_product, trim_variant
from domain.catalogue.model import KEPT_AVAILABILITIES, Availability, Product, ProductStatus, Variant
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.drafts import Truncation
from domain.kernel.problems import Problem, ProblemKind


@dataclass(slots=True)
class _VariantState:
    """Data of one variant while records are merged.

    Attributes:
        data: The merged data of the variant.
        stored_offers: The data of the stored offers, by location.
        record_offers: The merged data of offers that occur in records, by location.
        are_offers_replaced: Whether a record has replaced all offers.
    """

    data: dict[str, Any]
    stored_offers: Mapping[str, Mapping[str, Any]]
    record_offers: dict[str, dict[str, Any]] = field(default_factory=dict)
    are_offers_replaced: bool = False

    def remove_offers(self) -> None:
        """Remove all offers, stored or from previous records."""
        self.stored_offers, self.record_offers, self.are_offers_replaced = {}, {}, True


@dataclass(slots=True)
class RecordMerger:
    """Merger of the pushed records of one product into one ProductStatement, in the order of the records.

    Attributes:
        product: The stored product, or None.
        find_stored_variant: Returns the stored variant with a key, or None. The variant can belong to another product of the source,
            from which the records move it.
        is_complete: Whether the records are the complete catalogue. Then stored data is kept only for records that contain only offers.
        was_missed: Whether the product is listed again after complete runs that did not list it. A stored status of
            discontinued is then ignored.
        problems: The problems found so far.
    """

    product: Product | None
    find_stored_variant: Callable[[str], Variant | None]
    is_complete: bool = False
    was_missed: bool = False
    problems: list[Problem] = field(default_factory=list)
    _variants: dict[str, _VariantState] = field(default_factory=dict)
    _has_replaced_all_offers: bool = False

    def merge(self, records: Sequence[ProductStatement]) -> ProductStatement | None:
        """Return the merged ProductStatement, or None if the records contain only offers of an unknown product."""
        kept_product = (
            self.product if not self.is_complete or all(record.has_offers_only for record in records) else None
        )
        fully_stated = (
            {one.key for record in records if not record.has_offers_only for one in record.variants}
            if self.is_complete
            else set()
        )
        data, is_discontinued, exists = (
            _extract_source_data(kept_product) if kept_product else {},
            None,
            self.product is not None,
        )
        for record in records:
            if record.has_offers_only and not exists:
                self._report_unknown("product.external_id", f"The source has no product {record.key}", record.key)
                continue
            exists = True
            data = differences.merge_data(data, record.data)
            is_discontinued = is_discontinued if record.discontinued is None else record.discontinued
            if record.is_complete:
                self._remove_all_offers()
            for stated in record.variants:
                self._merge_variant(record, stated, fully_stated)
        return (
            self._build_statement(records[0].key, data, self._is_discontinued(kept_product, is_discontinued))
            if exists
            else None
        )

    def _merge_variant(self, record: ProductStatement, variant: VariantStatement, replaced_keys: set[str]) -> None:
        """Merge one variant of a record into the state of the variant.

        Args:
            record: The record.
            variant: The variant in the record.
            replaced_keys: The keys of variants that records replace completely, so that their stored data is not used.
        """
        stored, key = self.find_stored_variant(variant.key), variant.key
        if (
            stored is not None
            and (self.product is None or stored.product != self.product.id)
            and record.has_offers_only
        ):
            stored = None
        if record.has_offers_only and stored is None and key not in self._variants:
            self._report_unknown("variants.external_id", f"The product has no variant {key}", record.key)
            return
        if stored is not None and not self.is_complete:
            key = stored.key
        if (merged := self._variants.get(key)) is None:
            merged = self._variants[key] = self._create_variant_state(None if key in replaced_keys else stored)
        merged.data = differences.merge_data(merged.data, variant.data)
        if variant.is_complete:
            merged.remove_offers()
        for offer in variant.offers:
            self._merge_offer(merged, offer, record.key)

    def _create_variant_state(self, stored: Variant | None) -> _VariantState:
        """Return the initial state of a variant from the stored variant; withdrawn offers are included without stock quantities."""
        if stored is None:
            return _VariantState({}, {})
        stored_offers = {
            offer.location: dict(
                offer.data if offer.withdrawn_at is None else differences.remove_stock_figures(offer.data)
            )
            for offer in stored.offers
        }
        return _VariantState(
            dict(stored.data),
            {} if self._has_replaced_all_offers else stored_offers,
            are_offers_replaced=self._has_replaced_all_offers,
        )

    def _remove_all_offers(self) -> None:
        """Remove the offers of all variants, stored or from previous records."""
        self._has_replaced_all_offers = True
        for merged in self._variants.values():
            merged.remove_offers()

    def _merge_offer(self, merged: _VariantState, offer: OfferStatement, key: str) -> None:
        """Merge an offer of a record into the state of the variant."""
        location = offer.location
        previous = merged.record_offers.get(location, merged.stored_offers.get(location))
        data, dropped = merge_pushed_offer(previous or {}, offer.data)
        if dropped:
            detail = differences.describe_currency_conflict(location, data["currency"], dropped)
            self.problems.append(Problem("variants.offers", ProblemKind.CONFLICT, detail, external_id=key))
        if data or previous is not None:
            merged.record_offers[location] = data

    def _report_unknown(self, field: str, reason: str, key: str) -> None:
        """Report that a record was ignored, because the record has only offers of an unknown product or variant.

        Args:
            field: The field of the problem.
            reason: A clause about what is unknown, such as `The source has no product A-1`.
            key: The key of the record.
        """
        detail = (
            f"{reason}. The offers were ignored, because a record with only offers creates no products or variants. "
            f"Add another field, such as a title."
        )
        self.problems.append(Problem(field, ProblemKind.MISSING, detail, external_id=key))

    def _is_discontinued(self, stored: Product | None, is_discontinued_by_records: bool | None) -> bool:
        """Return whether the product is discontinued, by its own status or because all variants are discontinued.

        Args:
            stored: The stored product whose data is kept, or None.
            is_discontinued_by_records: The status in the records, or None if they contain none and the stored status remains.
        """
        if is_discontinued_by_records is True:
            return True
        stored_variants = {one.key: one for one in stored.variants} if stored else {}
        was_discontinued = {key: one.data.get("discontinued") is True for key, one in stored_variants.items()}
        before = stored is not None and stored.status == ProductStatus.DISCONTINUED and not self.was_missed
        before = before and not _is_nonempty_and_all_true(was_discontinued.values())
        is_discontinued = was_discontinued | {
            key: one.data.get("discontinued") is True for key, one in self._variants.items()
        }
        return _is_nonempty_and_all_true(is_discontinued.values()) or (is_discontinued_by_records is None and before)

    def _build_statement(self, key: str, data: dict[str, Any], is_discontinued: bool) -> ProductStatement:
        """Return the merged ProductStatement without entries that exceed the limits of a product, and report these entries."""
        truncation = Truncation()
        truncation.add_trimmed(trim_product(data), "product.", None)
        variants = []
        for name, merged in self._variants.items():
            truncation.add_trimmed(trim_variant(merged.data), "variants.", None)
            offers = [OfferStatement(place, offer) for place, offer in merged.record_offers.items()]  # type: ignore[arg-type]
            variants.append(VariantStatement(name, merged.data, offers, merged.are_offers_replaced))  # type: ignore[arg-type]
        self.problems += truncation.build_problems()
        return ProductStatement(key, data, variants, is_discontinued, self._has_replaced_all_offers)  # type: ignore[arg-type]


def _extract_source_data(product: Product) -> dict[str, Any]:
    """Return the data of a stored product with the category that the source stated, without categories from rules."""
    data: dict[str, Any] = dict(product.data)
    data.pop("category", None)
    return data if product.stated_category is None else {**data, "category": product.stated_category}


def _is_nonempty_and_all_true(values: Iterable[bool]) -> bool:
    """Return whether there is at least one value and all values are true."""
    items = list(values)
    return bool(items) and all(items)


def merge_pushed_offer(
    stored_data: Mapping[str, Any], record_data: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Merge an offer of a record into a stored offer.

    If the record states a quantity without an availability, the quantity determines the availability, unless the stored
    availability is preorder, backorder or discontinued.

    Args:
        stored_data: The data of the stored offer.
        record_data: The data of the offer in the record.

    Returns:
        The merged data, and the names of stored prices that were removed because the record changes the currency.
    """
    data, dropped = differences.merge_offer_data(stored_data, record_data)
    if (
        "quantity" in record_data
        and "availability" not in record_data
        and data.get("availability") not in KEPT_AVAILABILITIES
    ):
        data.pop("availability", None)
    if "quantity" in data and "availability" not in data:
        data["availability"] = Availability.from_quantity(data["quantity"])
    return data, dropped
