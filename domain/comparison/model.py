"""Compared items: sizes in one unit system, prices with margins, the best values, and links to comparisons."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from domain.audit.model import AuditedFields
from domain.kernel.units import INCHES_BY_UNIT, UNIT_SYSTEMS, convert_unit

MAX_ITEMS = 8
"""Maximum number of items that are compared."""
MAX_OPEN_LINKS = 50
"""Maximum number of open links of an organisation and mode; a further one raises Conflict."""
LINK_LIFETIME = timedelta(days=30)
_IMPERIAL_UNITS = frozenset({"in", "ft", "oz", "lb"})
_STEP_BY_UNIT = {"cm": Decimal("0.1"), "in": Decimal("0.01"), "kg": Decimal("0.01"), "lb": Decimal("0.01")}
"""Steps to which values of the other unit system are rounded."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measure:
    """Length or weight as the vendor stated it; `value` is a decimal number as text, so that it stays exact in JSON."""

    value: str
    unit: str

    def convert(self, units: str) -> tuple[Decimal, str]:
        """Return the value in the unit of a unit system, and the unit.

        The conversion starts from the stated value and is exact. Values of the other unit system are then rounded half up
        to a millimetre, a hundredth of an inch, a hundredth of a pound or ten grams.
        """
        unit = UNIT_SYSTEMS[units][0 if self.unit in INCHES_BY_UNIT else 1]
        value = convert_unit(Decimal(self.value), self.unit, unit)
        if (self.unit in _IMPERIAL_UNITS) != (unit in _IMPERIAL_UNITS):
            value = value.quantize(_STEP_BY_UNIT[unit], ROUND_HALF_UP)
        return value.normalize(), unit


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of an item in one currency, in minor units.

    Attributes:
        price: The lowest selling price; None without one.
        cost: The cost price in the offer with the lowest selling price; without a selling price, the lowest cost price.
        msrp: The lowest manufacturer's suggested retail price, which is never compared with selling prices.
    """

    currency: str
    price: int | None = None
    cost: int | None = None
    msrp: int | None = None

    @property
    def margin(self) -> int | None:
        """The selling price less the cost price of the same offer; None without one of them."""
        return None if self.price is None or self.cost is None else self.price - self.cost

    @property
    def margin_percent(self) -> Decimal | None:
        """The margin as a percentage of the selling price, rounded half up to a tenth; None without a margin."""
        if self.margin is None or not self.price:
            return None
        return (Decimal(self.margin) * 100 / self.price).quantize(Decimal("0.1"), ROUND_HALF_UP)


def select_prices(offers: Sequence[Json]) -> Prices | None:
    """Return the prices of the API's offers; None if no offer has one.

    Only offers in one currency count: the most frequent one among selling prices, or else among the other prices.
    """
    names = next(
        (names for names in (("price",), ("msrp", "cost")) if any(map(_has_price(names), offers))), ("msrp", "cost")
    )
    currencies = Counter(offer["currency"] for offer in offers if _has_price(names)(offer))
    if not currencies:
        return None
    currency = min(currencies, key=lambda code: (-currencies[code], code))
    offers = [offer for offer in offers if offer.get("currency") == currency]
    priced = [offer for offer in offers if offer.get("price") is not None]
    # Of several offers with the lowest price, the one with the lowest cost price represents the item.
    best = min(
        priced, key=lambda offer: (offer["price"], offer.get("cost") is None, offer.get("cost") or 0), default=None
    )
    cost = best.get("cost") if best else _find_lowest("cost", offers)
    return Prices(currency, best["price"] if best else None, cost, _find_lowest("msrp", offers))


def _has_price(names: Collection[str]) -> Any:
    return lambda offer: bool(offer.get("currency")) and any(offer.get(name) is not None for name in names)


def _find_lowest(name: str, offers: Iterable[Json]) -> int | None:
    return min((offer[name] for offer in offers if offer.get(name) is not None), default=None)


def find_lowest_prices(prices: Sequence[Prices | None]) -> frozenset[int]:
    """Return the indexes of the lowest selling prices.

    The result is empty if fewer than two items have a selling price, if all are equal, or if their currencies differ.
    """
    priced = {index: one for index, one in enumerate(prices) if one is not None and one.price is not None}
    if len({one.currency for one in priced.values()}) != 1:
        return frozenset()
    return find_lowest_values([one.price if one is not None else None for one in prices])


def find_lowest_values(values: Sequence[int | None]) -> frozenset[int]:
    """Return the indexes of the lowest values; empty unless there are at least two different values."""
    known = [value for value in values if value is not None]
    if len(set(known)) < 2:
        return frozenset()
    return frozenset(index for index, value in enumerate(values) if value == min(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedItem:
    """One column of a comparison: a variant of a product, or the offers of one source.

    Attributes:
        title: The heading.
        subtitle: The name of the variant; empty if the product has only one.
        image: The ID of a stored image; empty without one.
        facts: Texts by field, such as `brand`.
        measures: Sizes and the weight by field, such as `width`.
        prices: The prices; None without any.
        availability: The best availability of the offers; empty without offers.
        quantity: The number of available units.
        lead_time_days: The shortest lead time of the offers.
        is_found: False if the organisation has no such product.
    """

    title: str
    subtitle: str = ""
    image: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    prices: Prices | None = None
    availability: str = ""
    quantity: int | None = None
    lead_time_days: int | None = None
    is_found: bool = True

    def without_cost(self) -> "ComparedItem":
        """Return the item without its cost price, and therefore without a margin."""
        return self if self.prices is None else replace(self, prices=replace(self.prices, cost=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonLink:
    """Link by which anybody can see a comparison as it was when the link was created.

    Attributes:
        author: The ID of the member who created the link; it works as long as the member may read products.
        includes_cost: Whether the items contain cost prices.
        units: The unit system of sizes and weights.
        only_differences: Whether equal rows are omitted.
        items: The items as they were shown.
    """

    id: str
    title: str
    author: str
    includes_cost: bool
    units: str
    only_differences: bool
    items: tuple[ComparedItem, ...]
    expires_at: datetime
    version: int = 1
    created_at: datetime
    updated_at: datetime


AUDITED = AuditedFields("comparison_link", ("title", "includes_cost", "expires_at"))
