"""Stock sheets with one column for each warehouse: which columns those are, and which place each names."""

import re
from collections.abc import Sequence
from typing import Final

from domain.ingestion.data import load, phrases
from domain.ingestion.mapping.neighbours import Sheet
from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.concepts import concepts_in, words_of
from domain.ingestion.vocabulary.fields import IGNORE, MONEY
from domain.ingestion.vocabulary.headings import plain_words
from domain.ingestion.vocabulary.senses import PHRASES, Sense

_DATA: Final = load("places")
_PATTERNS: Final = {name: re.compile(text.strip("\n"), re.I) for name, text in _DATA["patterns"].items()}
_LISTS: Final = {name: frozenset(phrases(text)) for name, text in _DATA["words"].items()}
_SEPARATORS: Final = re.compile(r"[_\-:/()\[\].]+")
_KEYS: Final = ("sku", "gtin", "mpn", "variant_key")
_NEVER_PLACES: Final = frozenset((*_KEYS, "product_key", "title", "gpc_brick"))
_SAID_OF_PLACES: Final = frozenset(("warehouse", "lang", "stock"))
_PLAIN: Final = 100
_QUITE_PLAIN: Final = 80
_BEFORE_OTHERS: Final = 40
_LONGEST: Final = 24
_MOST_WORDS: Final = 4


def place_named(text: str) -> str | None:
    """Return the place that a header is wholly about (`NJ`, `Warehouse 3`, `East Coast`), as written, or None."""
    plain = plain_words(text)
    given = plain.split()
    places = _LISTS["places"] | _LISTS["directions"]
    rest = [one for one in given if one not in places and one not in _LISTS["generic"] and not one.isdigit()]
    if len(given) > _MOST_WORDS:
        return None
    named = any(one in places or one in _LISTS["generic"] for one in given)
    if named and not rest and (plain in places or plain not in _LISTS["no_places"]):
        return clean(text).strip("* ")
    coded = _PATTERNS["code"].fullmatch(plain) and not rest[1:] and given[0] not in ("x", "h", "d")
    return clean(text) if coded else None


def _place_beside(kind: str, text: str) -> str:
    """Return what stands beside the words for a quantity, an arrival or an order (`ETA NJ`); nothing where there are none."""
    flat = _SEPARATORS.sub(" ", clean(text))
    pattern = _PATTERNS[kind]
    return " ".join(pattern.sub(" ", flat).split()).strip("* ") if pattern.search(flat) else ""


def _given(samples: Sequence[str]) -> list[str]:
    return [stripped for sample in samples if (stripped := sample.strip())]


def _are_stock(samples: Sequence[str]) -> bool:
    """Return whether the values of a column are quantities or stock words."""
    given = _given(samples)
    return not any(map(_PATTERNS["money"].search, given)) and all(map(_PATTERNS["stock"].fullmatch, given))


def _are_surely_stock(samples: Sequence[str]) -> bool:
    """Return whether some of the values are nothing else (`20+`, `Call`)."""
    return any(map(_PATTERNS["surely_stock"].fullmatch, _given(samples))) and _are_stock(samples)


def _are_counts(samples: Sequence[str]) -> bool:
    """Return whether values are whole numbers with zeros among them: items are out of stock, prices are not nothing."""
    given = _given(samples)
    return len(given) > 1 and "0" in given and all(value.isdecimal() for value in given)


def _arrivals(sheet: Sheet) -> dict[int, str]:
    """Return the columns that name an arrival at a place, and the place."""
    found = {place: _place_beside("arrival", header) for place, header in enumerate(sheet.headers)}
    return {
        place: name
        for place, name in found.items()
        if 0 < len(name) <= _LONGEST and sheet.strongest(place).score < _PLAIN
    }


def _stock_columns(sheet: Sheet, arrivals: set[str]) -> dict[int, str]:
    """Return the columns that are headed by a place and hold quantities."""
    found: dict[int, str] = {}
    of_stock = sheet.settings.stream == "stock"
    for place, header in enumerate(sheet.headers):
        values, is_known, name = sheet.samples[place], bool(sheet.options[place]), clean(header)
        named = name if name in arrivals else place_named(header)
        if named is None and of_stock and not is_known and len(name) <= _LONGEST and _are_surely_stock(values):
            named = name
        if not named or sheet.strongest(place).field in _NEVER_PLACES or not _are_stock(values):
            continue
        # Directions head prices as well, and a header that is known is no place unless its values say so.
        doubtful = is_known or not _LISTS["directions"].isdisjoint(sheet.words[place].split())
        if not doubtful or name in arrivals or of_stock or _are_surely_stock(values) or _are_counts(values):
            found[place] = named
    return found


def _may_be_place(text: str) -> bool:
    """Return whether words beside a quantity's may name a place: words that headers use for other things do not."""
    plain = plain_words(text)
    if len(text) > _LONGEST or plain in _LISTS["no_places"]:
        return False
    return place_named(text) is not None or concepts_in(words_of(plain)) <= _SAID_OF_PLACES


def _named_quantities(sheet: Sheet) -> dict[int, str]:
    """Return the columns that say quantity and place (`Qty NJ`); a single one with an unknown word is no warehouse."""
    found: dict[int, str] = {}
    for place, header in enumerate(sheet.headers):
        name = "" if _PATTERNS["cost"].search(header) else _place_beside("quantity", header)
        plainly = sheet.strongest(place).score >= _QUITE_PLAIN and not place_named(name)
        if name and not plainly and _may_be_place(name) and sheet.words[place] not in PHRASES:
            found[place] = name
    return found if len(found) > 1 or any(map(place_named, found.values())) else {}


def read_warehouses(sheet: Sheet) -> None:
    """Give the quantities, arrivals and orders of one place each that place.

    A column is a warehouse's when its header names a place (or an arrival column does) and its values are quantities.
    Beside such columns a plain quantity is their sum: no stock of its own.
    """
    for place in sheet.places_of("quantity"):
        if sheet.names(place, _LISTS["sellable"]):
            sheet.change(place, score=sheet.strongest(place).score + _BEFORE_OTHERS)
    if not sheet.places_of(*_KEYS):
        return
    arrivals, named = _arrivals(sheet), _named_quantities(sheet)
    stock = _stock_columns(sheet, set(arrivals.values()))
    if len(stock) + len(named) < 2 and not (stock and arrivals) and not (named and not stock):
        stock = {}
    quantities = named | stock
    names = set(quantities.values())
    located = {
        place: ("quantity", name)
        for place, name in quantities.items()
        if sheet.strongest(place).field not in MONEY or sheet.strongest(place).score < _PLAIN
    }
    located |= {p: ("incoming.0.eta", name) for p, name in arrivals.items() if name in names or place_named(name)}
    orders = ((place, _place_beside("incoming", header)) for place, header in enumerate(sheet.headers))
    located |= {place: ("incoming.0.quantity", name) for place, name in orders if name in names}
    for place, options in enumerate(sheet.options):
        if place in located:
            field, name = located[place]
            sheet.options[place] = (Sense(field, _PLAIN, (("location", name),)),)
        elif names and place not in quantities:
            sheet.options[place] = tuple(
                Sense(IGNORE, sense.score) if sense.field == "quantity" else sense for sense in options
            )
