"""Comparison of two sources: averages over their products."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from domain.catalogue.data import list_current_offers
from domain.catalogue.model import Availability
from domain.publishing.completeness import compute_score, list_missing_of_product

MAX_SUMMARISED_PRODUCTS = 500
"""Number of a source's newest products over which averages are computed."""
_AVAILABLE = frozenset({Availability.IN_STOCK, Availability.LOW_STOCK})
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AverageAmount:
    """Average of amounts in one currency, in minor units, and the number of variants over which it was computed."""

    amount: int
    currency: str
    count: int


@dataclass(frozen=True, slots=True)
class VendorSummary:
    """Averages over the products of one source.

    Attributes:
        products: Number of products over which the averages were computed.
        price: Average of the variants' lowest selling prices; None without prices.
        msrp: Average of the variants' manufacturer's suggested retail prices; None without any.
        completeness: Average completeness of the products, 0 to 100; None without products.
        lead_time_days: Average of the variants' shortest lead times in days, rounded half up to a tenth.
        available_percent: Percentage of the variants with offers that are in stock.
    """

    products: int
    price: AverageAmount | None
    msrp: AverageAmount | None
    completeness: int | None
    lead_time_days: Decimal | None
    available_percent: int | None


def summarise_vendor(products: Sequence[Json], source: str) -> VendorSummary:
    """Summarise the products of a source, as the API returns them; offers of other sources do not count."""
    offers_by_variant = [
        offers
        for product in products
        for variant in product["variants"]
        if (offers := [offer for offer in list_current_offers(variant["offers"]) if offer["source"] == source])
    ]
    lead_times = [min(days) for offers in offers_by_variant if (days := _list_values("lead_time_days", offers))]
    available = sum(any(offer["availability"] in _AVAILABLE for offer in offers) for offers in offers_by_variant)
    scores = [compute_score(list_missing_of_product(product)) for product in products]
    return VendorSummary(
        len(products),
        _average_amount("price", offers_by_variant),
        _average_amount("msrp", offers_by_variant),
        int(_divide(sum(scores), len(scores), Decimal(1))) if scores else None,
        _divide(sum(lead_times), len(lead_times), Decimal("0.1")) if lead_times else None,
        int(_divide(100 * available, len(offers_by_variant), Decimal(1))) if offers_by_variant else None,
    )


def _average_amount(name: str, offers_by_variant: Iterable[Sequence[Json]]) -> AverageAmount | None:
    """Return the average of the variants' lowest amounts of one field, in the most frequent currency."""
    amounts: dict[str, list[int]] = {}
    for offers in offers_by_variant:
        for currency in dict.fromkeys(offer["currency"] for offer in offers if offer.get("currency")):
            if values := _list_values(name, [offer for offer in offers if offer.get("currency") == currency]):
                amounts.setdefault(currency, []).append(min(values))
    if not amounts:
        return None
    [(currency, count)] = Counter({code: len(values) for code, values in amounts.items()}).most_common(1)
    return AverageAmount(int(_divide(sum(amounts[currency]), count, Decimal(1))), currency, count)


def _list_values(name: str, offers: Sequence[Json]) -> list[int]:
    return [offer[name] for offer in offers if offer.get(name) is not None]


def _divide(total: int, count: int, step: Decimal) -> Decimal:
    return (Decimal(total) / count).quantize(step, ROUND_HALF_UP)
