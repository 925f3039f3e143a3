"""What changed between two statements of the same thing, field by field."""

from collections.abc import Mapping
from typing import Any, Final

from domain.catalogue.model import Availability
from domain.events.model import Changed, FieldChange

NESTED: Final = frozenset({"dimensions", "rug", "axes", "compliance"})
"""Fields whose parts change one by one."""

PRICE_FIELDS: Final = ("currency", "cost", "msrp", "map", "price", "compare_at")
STOCK_FIELDS: Final = ("quantity", "incoming", "lead_time_days")

CHECKED: Final = ("quantity", "incoming", "availability")
"""What a stock check asks for."""


def created(data: Mapping[str, Any], prefix: str = "data.") -> list[Changed]:
    """Every field, old None; plain tuples, for a first load makes millions of them."""
    changes: list[Changed] = []
    for name, value in data.items():
        if name in NESTED:
            changes += [(f"{prefix}{name}.{part}", None, new) for part, new in value.items()]
        else:
            changes.append((prefix + name, None, value))
    return changes


def changed(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "data.") -> list[Changed]:
    """The fields that differ, in name order."""
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
    """The facets of an offer's changes: price, stock, availability, in that order."""
    paths = {change[0] for change in changes}
    found = []
    if paths.intersection(PRICE_FIELDS):
        found.append("price")
    if paths.intersection(STOCK_FIELDS):
        found.append("stock")
    if "availability" in paths:
        found.append("availability")
    return found


def checked(old: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """An offer's facts after its source was asked for its stock alone: what can be had is as stated, all else stays."""
    data = {name: value for name, value in old.items() if name not in CHECKED}
    data |= {name: stated[name] for name in CHECKED if name in stated}
    data.setdefault("availability", Availability.UNKNOWN)
    return data


def withdrawn(old: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an offer that nobody states any more: the last prices, and nothing to be had."""
    data = {name: value for name, value in old.items() if name != "incoming"}
    return data | {"quantity": 0, "availability": Availability.OUT_OF_STOCK}


def without_stock(old: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an offer whose stock nobody states any more."""
    stock = (*STOCK_FIELDS, "availability")
    return {name: value for name, value in old.items() if name not in stock} | {"availability": Availability.UNKNOWN}


def merged(old: Mapping[str, Any], stated: Mapping[str, Any], *, shared: bool) -> dict[str, Any]:
    """An offer's facts after a stream states some of them.

    Prices and stock are two groups. A statement that names anything of a group replaces the group; a group it does not
    name stays when another stream states the offer too, and goes when none does.
    """
    data: dict[str, Any] = {}
    for group in (PRICE_FIELDS, (*STOCK_FIELDS, "availability")):
        names = stated if any(name in stated for name in group) or not shared else old
        data |= {name: names[name] for name in group if name in names}
    data.setdefault("availability", Availability.UNKNOWN)
    return data
