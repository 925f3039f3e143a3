"""Differences between two statements of the same object, field by field."""

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from domain.catalogue.model import Availability
from domain.events.model import Changed, FieldChange

NESTED = frozenset({"dimensions", "rug", "axes", "compliance"})
"""Fields whose parts are compared and merged one by one."""

PRICES = ("cost", "msrp", "map", "price", "compare_at")
"""The prices that an offer keeps, all in its one currency."""

PRICE_FIELDS = ("currency", *PRICES)
STOCK_FIELDS = ("quantity", "incoming", "lead_time_days")
_FACETS = {"price": PRICE_FIELDS, "stock": STOCK_FIELDS, "availability": ("availability",)}

CHECKED = ("quantity", "incoming", "availability")
"""The facts that a stock check requests and that withdrawing an offer sets."""


def created(data: Mapping[str, Any], prefix: str = "data.") -> list[Changed]:
    """Return a change from None for every field. The changes are plain tuples because a first load creates millions."""
    changes: list[Changed] = []
    for name, value in data.items():
        if name in NESTED:
            changes += [(f"{prefix}{name}.{part}", None, new) for part, new in value.items()]
        else:
            changes.append((prefix + name, None, value))
    return changes


def changed(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "data.") -> list[Changed]:
    """Return the fields that differ, ordered by name."""
    if old == new:
        return []
    changes: list[Changed] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if name in NESTED:
            changes += changed(before or {}, after or {}, f"{prefix}{name}.")
        else:
            changes.append(FieldChange(prefix + name, before, after))
    return changes


def facets(changes: list[Changed]) -> list[str]:
    """Return the facets that the changes of an offer affect: price, stock, availability, in this order."""
    paths = {change[0] for change in changes}
    return [facet for facet, fields in _FACETS.items() if not paths.isdisjoint(fields)]


def merge_data(held: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Merge stated fields into those held. A field changes only when it is stated; None removes it.

    Nested objects merge by their parts; lists and measures are replaced.
    """
    data = dict(held)
    for name, value in stated.items():
        new = merge_data(data.get(name) or {}, value) if name in NESTED and value is not None else value
        if new is None or (name in NESTED and not new):
            data.pop(name, None)
        else:
            data[name] = new
    return data


def without_blank(held: Mapping[str, Any], level: str, blank: Collection[str]) -> dict[str, Any]:
    """Return the data held without the fields, and parts of nested fields, that are blank at this level.

    Args:
        held: Data of a product, a variant or an offer.
        level: `product`, `variant` or `offer`.
        blank: Fields as in ProductStatement.blank.

    """
    data = dict(held)
    for path in blank:
        at, name, *part = path.split(".", 2)
        if at != level or name not in data:
            continue
        if not part:
            del data[name]
        elif part[0] in data[name]:
            data[name] = {key: value for key, value in data[name].items() if key != part[0]}
    return data


def merge_offer(held: Mapping[str, Any], stated: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge the stated facts of an offer into those held.

    Returns:
        The facts, and the names of prices that were removed because the offer is stated in another currency now.

    """
    data, dropped = dict(held), list[str]()
    if stated.get("currency") not in (None, data.get("currency")):
        dropped = [name for name in PRICES if data.pop(name, None) is not None and name not in stated]
    data = merge_data(data, stated)
    if not {"price", "compare_at"} <= stated.keys() and data.get("compare_at", inf) <= data.get("price", -inf):
        del data["compare_at"]  # compare_at must exceed the price
    if not any(name in data for name in PRICES):
        data.pop("currency", None)
    return data, dropped


def currency_conflict(location: str, currency: str, dropped: Sequence[str]) -> str:
    """Describe the prices that `merge_offer` removed."""
    return f"The offer at {location} is now in {currency}; prices in the previous currency were removed: {', '.join(dropped)}."


def checked(old: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of an offer after a stock check: stock and availability as stated, everything else unchanged."""
    data = without_stock_figures(old) | {name: stated[name] for name in CHECKED if name in stated}
    data.setdefault("availability", Availability.UNKNOWN)
    return data


def without_stock_figures(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an offer without the stock figures that withdrawing it has set."""
    return {name: value for name, value in held.items() if name not in CHECKED}


def withdrawn(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a withdrawn offer: the last prices, quantity 0 and out of stock."""
    data = {name: value for name, value in old.items() if name != "incoming"}
    return data | {"quantity": 0, "availability": Availability.OUT_OF_STOCK}
