"""Merging of pushed records into the previous statement: absent members stay, null removes (docs/push.md)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.catalogue import differences
from domain.catalogue.model import Availability, Product, ProductStatus, Variant
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.catalogue.trimming import trim_product, trim_variant
from domain.ingestion.drafts import LeftOut
from domain.ingestion.values.stock import availability_of
from domain.kernel.problems import Problem, ProblemKind

_NOT_FROM_QUANTITY = frozenset((Availability.PREORDER, Availability.BACKORDER, Availability.DISCONTINUED))
"""Availabilities that a quantity alone does not change."""


@dataclass(slots=True)
class _Merged:
    """Variant while records are merged: `held` are its stored offers, `offers` those that a record states."""

    data: dict[str, Any]
    held: Mapping[str, Mapping[str, Any]]
    offers: dict[str, dict[str, Any]] = field(default_factory=dict)
    restated: bool = False

    def clear_offers(self) -> None:
        """Remove all offers stated so far."""
        self.held, self.offers, self.restated = {}, {}, True


@dataclass(slots=True)
class RecordMerger:
    """Merges the records of one product, in their order, into one statement.

    Attributes:
        product: The stored product, or None.
        variant_of: Returns the source's stored variant of a key, of this product or of the one it moves from.
        whole: Whether the records are complete, so that only facts of records with offers alone are kept.
        resumed: Whether complete runs missed the product, so that its stored status is not the source's own statement.

    """

    product: Product | None
    variant_of: Callable[[str], Variant | None]
    whole: bool = False
    resumed: bool = False
    problems: list[Problem] = field(default_factory=list)
    _variants: dict[str, _Merged] = field(default_factory=dict)
    _restated: bool = False

    def merged(self, records: Sequence[ProductStatement]) -> ProductStatement | None:
        """Return the merged statement; None if the records state only offers of an unknown product."""
        base = self.product if not self.whole or all(record.alone for record in records) else None
        stating = (
            {one.key for record in records if not record.alone for one in record.variants} if self.whole else set()
        )
        data, is_discontinued, exists = _previous_data(base) if base else {}, None, self.product is not None
        for record in records:
            if record.alone and not exists:
                self._report_unknown("product.external_id", f"The source has no product {record.key}", record.key)
                continue
            exists = True
            data = differences.merge_data(data, record.data)
            is_discontinued = is_discontinued if record.discontinued is None else record.discontinued
            if record.restated:
                self._clear_all_offers()
            for stated in record.variants:
                self._variant(record, stated, stating)
        return self._statement(records[0].key, data, self._discontinued(base, is_discontinued)) if exists else None

    def _variant(self, record: ProductStatement, stated: VariantStatement, stating: set[str]) -> None:
        known, key = self.variant_of(stated.key), stated.key
        if known is not None and (self.product is None or known.product != self.product.id) and record.alone:
            known = None
        if record.alone and known is None and key not in self._variants:
            self._report_unknown("variants.external_id", f"The product has no variant {key}", record.key)
            return
        if known is not None and not self.whole:
            key = known.key
        if (merged := self._variants.get(key)) is None:
            merged = self._variants[key] = self._start(None if key in stating else known)
        merged.data = differences.merge_data(merged.data, stated.data)
        if stated.restated:
            merged.clear_offers()
        for offer in stated.offers:
            self._offer(merged, offer, record.key)

    def _start(self, known: Variant | None) -> _Merged:
        """Return a variant before the first record; withdrawn offers lose their stock figures."""
        if known is None:
            return _Merged({}, {})
        held = {
            offer.location: dict(
                offer.data if offer.withdrawn_at is None else differences.without_stock_figures(offer.data)
            )
            for offer in known.offers
        }
        return _Merged(dict(known.data), {} if self._restated else held, restated=self._restated)

    def _clear_all_offers(self) -> None:
        """Remove the offers of all variants stated so far."""
        self._restated = True
        for merged in self._variants.values():
            merged.clear_offers()

    def _offer(self, merged: _Merged, stated: OfferStatement, key: str) -> None:
        place = stated.location
        held = merged.offers.get(place, merged.held.get(place))
        data, dropped = merge_pushed_offer(held or {}, stated.data)
        if dropped:
            detail = differences.currency_conflict(place, data["currency"], dropped)
            self.problems.append(Problem("variants.offers", ProblemKind.CONFLICT, detail, external_id=key))
        if data or held is not None:
            merged.offers[place] = data

    def _report_unknown(self, field: str, what: str, key: str) -> None:
        detail = f"{what}; a record with offers alone cannot create it, so it was left out."
        self.problems.append(Problem(field, ProblemKind.MISSING, detail, external_id=key))

    def _discontinued(self, base: Product | None, stated: bool | None) -> bool:
        """Return whether the product is discontinued: as stated now or before, or because all variants are."""
        if stated is True:
            return True
        held = {one.key: one for one in base.variants} if base else {}
        ends = {key: one.data.get("discontinued") is True for key, one in held.items()}
        before = base is not None and base.status == ProductStatus.DISCONTINUED and not self.resumed
        before = before and not _all_of(ends.values())
        now = ends | {key: one.data.get("discontinued") is True for key, one in self._variants.items()}
        return _all_of(now.values()) or (stated is None and before)

    def _statement(self, key: str, data: dict[str, Any], discontinued: bool) -> ProductStatement:
        left_out = LeftOut()
        left_out.add_all(trim_product(data), "product.", None)
        variants = []
        for name, merged in self._variants.items():
            left_out.add_all(trim_variant(merged.data), "variants.", None)
            offers = [OfferStatement(place, offer) for place, offer in merged.offers.items()]  # type: ignore[arg-type]
            variants.append(VariantStatement(name, merged.data, offers, merged.restated))  # type: ignore[arg-type]
        self.problems += left_out.problems()
        return ProductStatement(key, data, variants, discontinued, self._restated)  # type: ignore[arg-type]


def _previous_data(product: Product) -> dict[str, Any]:
    """Return what the source stated of a product, with its own category instead of that of a category rule."""
    data: dict[str, Any] = dict(product.data)
    data.pop("category", None)
    return data if product.stated_category is None else {**data, "category": product.stated_category}


def _all_of(ends: Iterable[bool]) -> bool:
    found = list(ends)
    return bool(found) and all(found)


def merge_pushed_offer(held: Mapping[str, Any], stated: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge a record into an offer's facts; return them and the names of prices dropped for another currency.

    A quantity without an availability determines the availability, unless that is preorder, backorder or discontinued.
    """
    data, dropped = differences.merge_offer(held, stated)
    if "quantity" in stated and "availability" not in stated and data.get("availability") not in _NOT_FROM_QUANTITY:
        data.pop("availability", None)
    if "quantity" in data and "availability" not in data:
        data["availability"] = availability_of(data["quantity"])
    return data, dropped
