"""From a row's offer facts to offers, and how a second row's are added."""

from typing import Any, Final

from domain.catalogue.data import OfferData
from domain.catalogue.differences import PRICES
from domain.catalogue.statements import OfferStatement
from domain.ingestion.drafts.draft import NO_PLACE, RowDraft
from domain.ingestion.values.parsed import quoted
from domain.ingestion.values.stock import availability_of
from domain.kernel.problems import Problem, ProblemKind

_KEPT: Final = (*PRICES, "quantity", "availability", "lead_time_days")


def settle(offer: OfferData) -> OfferData:
    """An offer's facts brought to their final form; see `offers_of` for prices that contradict each other.

    A lower sale price is what a buyer pays: it becomes the price and the price it replaces the one to compare with.
    Availability that no word states follows from the quantity.
    """
    facts: dict[str, Any] = offer  # type: ignore[assignment]
    sale = facts.pop("sale_price", None)
    if sale is not None:
        usual = facts.get("price")
        if usual is not None and usual > sale:
            facts.setdefault("compare_at", usual)
        facts["price"] = sale
    if "incoming" in facts:
        facts["incoming"] = [arrival for arrival in facts["incoming"] if arrival]
        if not facts["incoming"]:
            del facts["incoming"]
    if "quantity" in facts and "availability" not in facts:
        facts["availability"] = availability_of(facts["quantity"])
    return offer


def _with_stock_word(row: RowDraft, offers: dict[str, OfferData]) -> None:
    """A stock word found inside a variant's value speaks for all its offers."""
    if not offers:
        offers[NO_PLACE] = {}
    for offer in offers.values():
        if row.stock_word.quantity is not None:
            offer.setdefault("quantity", row.stock_word.quantity)
        offer.setdefault("availability", row.stock_word.availability)


def offers_of(row: RowDraft, location: str) -> list[OfferStatement]:
    """A row's offers, `location` being that of facts which name none.

    With columns for each warehouse the row's prices hold at every one of them.
    """
    offers = row.offers
    if row.stock_word is not None:
        _with_stock_word(row, offers)
    if not offers:
        return []
    common = offers.get(NO_PLACE)
    if common is not None and len(offers) > 1:
        del offers[NO_PLACE]
        for offer in offers.values():
            for name, value in common.items():
                offer.setdefault(name, value)  # type: ignore[misc]
    for offer in offers.values():
        _without_uncounted(row, offer)
    stated = [OfferStatement(place or row.location or location, settle(offer)) for place, offer in offers.items()]
    for one in stated:
        _without_idle_strike(row, one.data)
    if any(offer.data.get("availability") == "discontinued" for offer in stated):
        row.variant.setdefault("discontinued", True)
    return [offer for offer in stated if offer.data]


def _without_uncounted(row: RowDraft, offer: OfferData) -> None:
    """A quantity of 0 that nobody counts says nothing."""
    if row.untracked and offer.get("quantity") == 0 and "availability" not in offer:
        del offer["quantity"]


def _without_idle_strike(row: RowDraft, offer: OfferData) -> None:
    """A price to compare with that is not above the price is none, and told."""
    price, strike = offer.get("price"), offer.get("compare_at")
    if price is None or strike is None or strike > price:
        return
    del offer["compare_at"]
    detail = f"The price to compare with ({strike}) is not above the price ({price}), in minor units; it is left out."
    row.product.problems.append(Problem("compare_at", ProblemKind.CONFLICT, detail, row.line, None, row.product.sheet))


def merge_offers(known: list[OfferStatement], offers: list[OfferStatement], row: RowDraft) -> None:
    """Add a further row's offers to a variant's: other locations are other offers; figures that differ are a conflict."""
    for offer in offers:
        same = next((before for before in known if before.location == offer.location), None)
        if same is None:
            known.append(offer)
            continue
        _merge_one(same.data, offer.data, row)
        same.blank &= offer.blank


def _merge_one(kept: OfferData, other: OfferData, row: RowDraft) -> None:
    facts: dict[str, Any] = kept  # type: ignore[assignment]
    same_currency = kept.get("currency") == other.get("currency") or "currency" not in kept or "currency" not in other
    for name, value in other.items():
        if name == "compare_at" and "price" in facts and facts["price"] != other.get("price"):
            continue  # a strike price belongs to the price of its own row
        if name in _KEPT and name in facts and (facts[name] != value or not same_currency):
            if name != "availability":
                figures = f"{quoted(str(facts[name]))} and {quoted(str(value))}"
                detail = f"Rows of one item state {figures} as {name}; the first is kept."
                row.product.problems.append(
                    Problem(name, ProblemKind.CONFLICT, detail, row.line, None, row.product.sheet)
                )
        elif same_currency or name not in PRICES:
            facts.setdefault(name, value)
