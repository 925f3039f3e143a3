"""Pushed records laid over what their source last stated: what they leave out stays, null removes (docs/push.md)."""

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

_WORDS = frozenset((Availability.PREORDER, Availability.BACKORDER, Availability.DISCONTINUED))
"""Availabilities that no quantity decides, so that a quantity alone leaves them as they are."""


@dataclass(slots=True)
class _Merged:
    """A variant as it comes to be: `held` are its offers as stored, `offers` those that a record named."""

    data: dict[str, Any]
    held: Mapping[str, Mapping[str, Any]]
    offers: dict[str, dict[str, Any]] = field(default_factory=dict)
    restated: bool = False

    def emptied(self) -> None:
        """Null for the offers: there are none but those that are named from now on."""
        self.held, self.offers, self.restated = {}, {}, True


@dataclass(slots=True)
class RecordMerger:
    """Merges the records of one product, in their order, into what the source states of it from then on.

    `product` is the product as stored, `variant_of` finds what the source has stored under a variant's key, of this product
    or of one that the variant is moved from. `whole`: the records state everything (a complete batch), so nothing stays but
    what offers that are named alone leave out. `resumed`: complete runs had missed the product, so that its being
    discontinued is no word of the source.
    """

    product: Product | None
    variant_of: Callable[[str], Variant | None]
    whole: bool = False
    resumed: bool = False
    problems: list[Problem] = field(default_factory=list)
    _variants: dict[str, _Merged] = field(default_factory=dict)
    _restated: bool = False

    def merged(self, records: Sequence[ProductStatement]) -> ProductStatement | None:
        """The statement to bring the catalogue to; None when the records name offers of a product that nobody knows."""
        base = self.product if not self.whole or all(record.alone for record in records) else None
        stating = (
            {one.key for record in records if not record.alone for one in record.variants} if self.whole else set()
        )
        data, said, made = _stated_before(base) if base else {}, None, self.product is not None
        for record in records:
            if record.alone and not made:
                self._unknown("product.external_id", f"The source has no product {record.key}", record.key)
                continue
            made = True
            data = differences.merge_data(data, record.data)
            said = said if record.discontinued is None else record.discontinued
            if record.restated:
                self._empty()
            for stated in record.variants:
                self._variant(record, stated, stating)
        return self._statement(records[0].key, data, self._discontinued(base, said)) if made else None

    def _variant(self, record: ProductStatement, stated: VariantStatement, stating: set[str]) -> None:
        known, key = self.variant_of(stated.key), stated.key
        if known is not None and (self.product is None or known.product != self.product.id) and record.alone:
            known = None
        if record.alone and known is None and key not in self._variants:
            self._unknown("variants.external_id", f"The product has no variant {key}", record.key)
            return
        if known is not None and not self.whole:
            key = known.key
        if (merged := self._variants.get(key)) is None:
            merged = self._variants[key] = self._begun(None if key in stating else known)
        merged.data = differences.merge_data(merged.data, stated.data)
        if stated.restated:
            merged.emptied()
        for offer in stated.offers:
            self._offer(merged, offer, record.key)

    def _begun(self, known: Variant | None) -> _Merged:
        """A variant before the first record; of an offer that was withdrawn no stock is stated any more."""
        if known is None:
            return _Merged({}, {})
        held = {
            offer.location: dict(
                offer.data if offer.withdrawn_at is None else differences.without_stock_figures(offer.data)
            )
            for offer in known.offers
        }
        return _Merged(dict(known.data), {} if self._restated else held, restated=self._restated)

    def _empty(self) -> None:
        """Null for the variants: no offer is stated but those that are named from now on."""
        self._restated = True
        for merged in self._variants.values():
            merged.emptied()

    def _offer(self, merged: _Merged, stated: OfferStatement, key: str) -> None:
        place = stated.location
        held = merged.offers.get(place, merged.held.get(place))
        data, dropped = merge_pushed_offer(held or {}, stated.data)
        if dropped:
            detail = differences.currency_conflict(place, data["currency"], dropped)
            self.problems.append(Problem("variants.offers", ProblemKind.CONFLICT, detail, external_id=key))
        if data or held is not None:
            merged.offers[place] = data

    def _unknown(self, field: str, what: str, key: str) -> None:
        detail = f"{what}; what names nothing but offers makes none, so it was left out."
        self.problems.append(Problem(field, ProblemKind.MISSING, detail, external_id=key))

    def _discontinued(self, base: Product | None, said: bool | None) -> bool:
        """By the source's own word, said now or before, or because every variant is."""
        if said is True:
            return True
        held = {one.key: one for one in base.variants} if base else {}
        ends = {key: one.data.get("discontinued") is True for key, one in held.items()}
        before = base is not None and base.status == ProductStatus.DISCONTINUED and not self.resumed
        before = before and not _every(ends.values())
        now = ends | {key: one.data.get("discontinued") is True for key, one in self._variants.items()}
        return _every(now.values()) or (said is None and before)

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


def _stated_before(product: Product) -> dict[str, Any]:
    """What the source stated of a product: its own category, not the one that a rule files it under."""
    data: dict[str, Any] = dict(product.data)
    data.pop("category", None)
    return data if product.stated_category is None else {**data, "category": product.stated_category}


def _every(ends: Iterable[bool]) -> bool:
    found = list(ends)
    return bool(found) and all(found)


def merge_pushed_offer(held: Mapping[str, Any], stated: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge a record into an offer's facts, and name the prices that left because they were in another currency.

    A quantity without a word for it decides what can be had, unless the offer is on order, to come or discontinued.
    """
    data, dropped = differences.merge_offer(held, stated)
    if "quantity" in stated and "availability" not in stated and data.get("availability") not in _WORDS:
        data.pop("availability", None)
    if "quantity" in data and "availability" not in data:
        data["availability"] = availability_of(data["quantity"])
    return data, dropped
