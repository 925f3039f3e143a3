"""Gives the columns of a warehouse-wide sheet their place."""

from collections.abc import Sequence
from typing import Final

from domain.ingestion.mapping.warehouses import (
    arrival_place,
    incoming_place,
    is_compass,
    looks_like_stock,
    place_named,
    quantity_place,
)
from domain.ingestion.model import Context
from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.fields import MONEY
from domain.ingestion.vocabulary.senses import Sense

_KEYS: Final = frozenset(("sku", "gtin", "mpn", "variant_key"))
_NEVER_PLACES: Final = _KEYS | {"product_key", "title", "gpc_brick"}
_PLAIN: Final = 100
_LONGEST: Final = 24


def _at(field: str, place: str) -> tuple[Sense, ...]:
    return (Sense(field, _PLAIN, (("location", place),)),)


def _arrivals(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> dict[int, str]:
    """Columns that name an arrival at a place, and the place."""
    found: dict[int, str] = {}
    for position, header in enumerate(headers):
        place = arrival_place(header)
        if place and len(place) <= _LONGEST and not (known[position] and known[position][0].rank >= _PLAIN):
            found[position] = place
    return found


def _stock_columns(
    headers: Sequence[str],
    columns: Sequence[Sequence[str]],
    known: Sequence[tuple[Sense, ...]],
    arrivals: set[str],
    context: Context,
) -> dict[int, str]:
    """Columns that are headed by a place and hold quantities."""
    found: dict[int, str] = {}
    for position, header in enumerate(headers):
        name = clean(header)
        if known[position] and known[position][0].field in _NEVER_PLACES:
            continue
        place = name if name in arrivals else place_named(header)
        unknown = not known[position] and 0 < len(name) <= _LONGEST
        if place is None and not (unknown and context.stream == "stock"):
            continue
        if place is None and not looks_like_stock(columns[position], surely=True):
            continue
        if not looks_like_stock(columns[position]):
            continue
        surely = name in arrivals or looks_like_stock(columns[position], surely=True) or context.stream == "stock"
        if (is_compass(header) or known[position]) and not surely:
            continue
        found[position] = place or name
    return found


def _named_quantities(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> dict[int, str]:
    """Columns that say quantity and place (`Qty NJ`); a single one with an unknown word is no warehouse."""
    found: dict[int, str] = {}
    for position, header in enumerate(headers):
        place = quantity_place(header)
        if place is None or len(place) > _LONGEST or (known[position] and known[position][0].rank >= 80):
            continue
        found[position] = place
    sure = {position for position, place in found.items() if place_named(place)}
    return found if sure or len(found) > 1 else {}


def _without_totals(known: list[tuple[Sense, ...]], places: set[int]) -> list[tuple[Sense, ...]]:
    """Beside columns for each warehouse a plain quantity is their sum: no stock of its own."""
    return [
        options
        if position in places
        else tuple(Sense("ignore", sense.rank) if sense.field == "quantity" else sense for sense in options)
        for position, options in enumerate(known)
    ]


def located(
    headers: Sequence[str],
    columns: Sequence[Sequence[str]],
    known: Sequence[tuple[Sense, ...]],
    context: Context,
) -> list[tuple[Sense, ...]]:
    """`known` with quantities, arrivals and orders of one place each given that place.

    A column is a warehouse's when its header names a place (or an arrival column does) and its values are quantities;
    directions head prices as well, so they need values that no price has (`20+`), an arrival column, or a stock feed.
    """
    out = list(known)
    if not any(options and options[0].field in _KEYS for options in known):
        return out
    arrivals = _arrivals(headers, known)
    stock = _stock_columns(headers, columns, known, set(arrivals.values()), context)
    named = _named_quantities(headers, known)
    if len(stock) + len(named) < 2 and not (stock and arrivals) and not (named and not stock):
        stock = {}
    for position, place in {**named, **stock}.items():
        if not (out[position] and out[position][0].field in MONEY and out[position][0].rank >= _PLAIN):
            out[position] = _at("quantity", place)
    places = {*stock.values(), *named.values()}
    for position, place in arrivals.items():
        if place in places or place_named(place):
            out[position] = _at("incoming.0.eta", place)
    for position, header in enumerate(headers):
        on_order = incoming_place(header)
        if on_order in places and on_order is not None:
            out[position] = _at("incoming.0.quantity", on_order)
    return _without_totals(out, {*stock, *named}) if places else out
