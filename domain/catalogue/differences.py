"""Differences between old and new data of the same object, by field, and merging of data."""

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from domain.catalogue.model import Availability
from domain.events.model import ChangedField, FieldChange

NESTED_FIELDS = frozenset({"dimensions", "rug", "axes", "compliance"})
"""Fields whose parts are compared and merged one by one."""

PRICES = ("cost", "msrp", "map", "price", "compare_at")
"""The prices of an offer, all in the same currency."""

PRICE_FIELDS = ("currency", *PRICES)
STOCK_FIELDS = ("quantity", "incoming", "lead_time_days")
_FACETS = {"price": PRICE_FIELDS, "stock": STOCK_FIELDS, "availability": ("availability",)}

STOCK_CHECK_FIELDS = ("quantity", "incoming", "availability")
"""The fields that a stock check returns, and that withdrawing an offer sets."""


def list_created_fields(data: Mapping[str, Any], prefix: str = "data.") -> list[ChangedField]:
    """Return a change from None to the value for every field of a new object."""
    changes: list[ChangedField] = []  # plain tuples, because a first import creates millions
    for name, value in data.items():
        if name in NESTED_FIELDS:
            changes += [(f"{prefix}{name}.{part}", None, new) for part, new in value.items()]
        else:
            changes.append((prefix + name, None, value))
    return changes


def compute_changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "data.") -> list[ChangedField]:
    """Return the changes of the fields that differ, ordered by name; each path begins with `prefix`."""
    if old == new:
        return []
    changes: list[ChangedField] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if name in NESTED_FIELDS:
            changes += compute_changes(before or {}, after or {}, f"{prefix}{name}.")
        else:
            changes.append(FieldChange(prefix + name, before, after))
    return changes


def find_affected_facets(changes: list[ChangedField]) -> list[str]:
    """Return the facets of an offer that the changes affect, in the order price, stock, availability."""
    paths = {change[0] for change in changes}
    return [facet for facet, fields in _FACETS.items() if not paths.isdisjoint(fields)]


def merge_data(stored: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored data (`stored`) with the fields in `stated` changed; None removes a field.

    Nested objects are merged field by field; lists and measures are replaced.
    """
    data = dict(stored)
    for name, value in stated.items():
        new = merge_data(data.get(name) or {}, value) if name in NESTED_FIELDS and value is not None else value
        if new is None or (name in NESTED_FIELDS and not new):
            data.pop(name, None)
        else:
            data[name] = new
    return data


def remove_blank_fields(stored: Mapping[str, Any], level: str, blank_fields: Collection[str]) -> dict[str, Any]:
    """Return the stored data without the fields, and the fields of nested objects, whose cells are blank in the feed.

    Args:
        stored: Stored data of a product, a variant or an offer.
        level: `product`, `variant` or `offer`.
        blank_fields: Names of fields, as in ProductStatement.blank_fields.
    """
    data = dict(stored)
    for path in blank_fields:
        at, name, *part = path.split(".", 2)
        if at != level or name not in data:
            continue
        if not part:
            del data[name]
        elif part[0] in data[name]:
            data[name] = {key: value for key, value in data[name].items() if key != part[0]}
    return data


def merge_offer_data(stored: Mapping[str, Any], stated: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the stored data of an offer (`stored`) with the fields in `stated` changed.

    Returns:
        The data, and the names of prices that were removed because the offer now has another currency.
    """
    data, dropped = dict(stored), list[str]()
    if stated.get("currency") not in (None, data.get("currency")):
        dropped = [name for name in PRICES if data.pop(name, None) is not None and name not in stated]
    data = merge_data(data, stated)
    if not {"price", "compare_at"} <= stated.keys() and data.get("compare_at", inf) <= data.get("price", -inf):
        del data["compare_at"]  # compare_at must exceed the price
    if not any(name in data for name in PRICES):
        data.pop("currency", None)
    return data, dropped


def describe_currency_conflict(location: str, currency: str, removed_prices: Sequence[str]) -> str:
    """Return the detail of the problem about prices that `merge_offer_data` removed."""
    return f"The offer at {location} is now in {currency}; prices in the previous currency were removed: {', '.join(removed_prices)}."


def apply_stock_check(old: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return an offer's data after a stock check: stock and availability are new, all else is unchanged."""
    data = remove_stock_figures(old) | {name: stated[name] for name in STOCK_CHECK_FIELDS if name in stated}
    data.setdefault("availability", Availability.UNKNOWN)
    return data


def remove_stock_figures(offer_data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an offer's data without quantity, incoming stock and availability."""
    return {name: value for name, value in offer_data.items() if name not in STOCK_CHECK_FIELDS}


def compute_withdrawn_data(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of an offer after its withdrawal: the last prices, quantity 0 and out of stock."""
    data = {name: value for name, value in old.items() if name != "incoming"}
    return data | {"quantity": 0, "availability": Availability.OUT_OF_STOCK}
