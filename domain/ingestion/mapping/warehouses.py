"""Stock sheets with one column for each warehouse: which columns those are, and which place each names."""

import re
from collections.abc import Sequence
from typing import Final

from domain.ingestion.model import FeedSettings
from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.concepts import words_of
from domain.ingestion.vocabulary.fields import MONEY
from domain.ingestion.vocabulary.headings import plain_words
from domain.ingestion.vocabulary.senses import PHRASES, Sense

_STATES: Final = (
    "al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh ok "
    "or pa ri sc sd tn tx "
    "ut vt va wa wv wi wy bc ab on qc"
)
_TOWNS: Final = (
    "atlanta dallas houston chicago seattle miami tampa denver phoenix memphis nashville charlotte boston "
    "baltimore savannah "
    "norfolk tacoma portland oakland reno vegas ontario fontana edison newark toronto vancouver montreal calgary "
    "london hamburg "
    "rotterdam felixstowe madrid bogota monterrey columbus indianapolis louisville orlando jacksonville "
    "california texas jersey "
    "georgia florida carolina washington tennessee virginia mississippi tupelo greensboro hickory"
)
_KNOWN: Final = frozenset(
    f"{_STATES} {_TOWNS} east west central south north midwest "
    "northeast southeast southwest northwest usa eu uk".split()
)
_COMPASS: Final = frozenset("east west central south north midwest northeast southeast southwest northwest".split())
_GENERIC: Final = frozenset("wh whse warehouse dc fc hub depot lager almacen bodega store plant w coast new".split())
_CODE: Final = re.compile(
    r"(?:wh|dc|fc|w|whse|warehouse|loc|hub)[ -]?\d{1,4}|(?:wh|dc|fc|whse|warehouse|loc|hub) [a-z0-9]{1,4}"
    r"|[a-z]{2,3}\d{1,3}",
    re.I,
)
_QUANTITY: Final = re.compile(
    r"\b(?:available inventory|available quantity|available qty|qty available|quantity available|on hand"
    r"|qty on hand|quantity|qty|stock|inventory|available|avail|oh|atp|lagerbestand|bestand|existencias?|stk|voorraad|lagersaldo"
    r"|giacenza|stan magazynowy|остат(?:ок|ки)|(?:количество|aantal|antal|menge|quantit[éeà]|cantidad|ilość)(?=\s(?:in|at|im|bei|en|à|i|på|w|na|на|в)\s))\b"
    r"(?:\s(?:in|at|im|bei|en|à|i|på|w|na|на|в)\b)?",
    re.I,
)
_ETA: Final = re.compile(r"\b(?:eta(?: date)?|next eta|arrival(?: date)?|restock(?: date)?|due(?: date)?)\b", re.I)
_INCOMING: Final = re.compile(r"\b(?:on order|incoming(?: qty)?|in transit|on po|inbound(?: qty)?|po qty)\b", re.I)
_COST: Final = re.compile(r"\b(?:cost|price|net)\b", re.I)
_STOCK: Final = re.compile(
    r"[<>]?=?-?\d{1,6}(?:\.0+)?\+?|call|in stock|out of stock|oos|yes|no|limited|low|n/a|-|discontinued|sold out"
    r"|available",
    re.I,
)
_PLAIN_STOCK: Final = re.compile(r"\d+\+|call|in stock|out of stock|oos", re.I)
_MONEY: Final = re.compile(r"[$€£]|\d[.,]\d{2}$")
_KEYS: Final = frozenset(("sku", "gtin", "mpn", "variant_key"))
_NEVER_PLACES: Final = _KEYS | {"product_key", "title", "gpc_brick"}
_NO_PLACES: Final = frozenset(("out of", "of", "min", "max", "in", "on", "no", "new", "old"))
_SAID_OF_PLACES: Final = frozenset(("warehouse", "lang", "stock"))
_PLAIN: Final = 100
_LONGEST: Final = 24


def place_named(text: str) -> str | None:
    """The place that a header is wholly about (`NJ`, `Warehouse 3`, `East Coast`), as written, or None."""
    words = plain_words(text).split()
    if not words or len(words) > 4:
        return None
    known = [word for word in words if word in _KNOWN]
    rest = [word for word in words if word not in _KNOWN and word not in _GENERIC and not word.isdigit()]
    if (
        (known or any(word in _GENERIC for word in words))
        and not rest
        and words not in (["new"], ["w"], ["store"], ["coast"])
    ):
        return clean(text).strip("* ")
    return (
        clean(text) if _CODE.fullmatch(" ".join(words)) and not rest[1:] and words[0] not in ("x", "h", "d") else None
    )


def is_compass(text: str) -> bool:
    """Whether a place is a direction, which price books use for price columns as well."""
    return any(word in _COMPASS for word in plain_words(text).split())


def looks_like_stock(samples: Sequence[str], surely: bool = False) -> bool:
    """Whether the values of a column are quantities or stock words; `surely`: some are nothing else (`20+`, `Call`)."""
    given = [sample.strip() for sample in samples if sample.strip()]
    if any(_MONEY.search(sample) for sample in given):
        return False
    if surely:
        return any(_PLAIN_STOCK.fullmatch(sample) for sample in given) and looks_like_stock(samples)
    return all(_STOCK.fullmatch(sample) for sample in given)


def _rest(text: str, pattern: re.Pattern[str]) -> str | None:
    flat = re.sub(r"[_\-:/()\[\].]+", " ", clean(text))
    if not pattern.search(flat):
        return None
    return " ".join(pattern.sub(" ", flat).split()).strip("* ")


def arrival_place(text: str) -> str | None:
    """The place of an arrival column (`ETA NJ`), or None."""
    return _rest(text, _ETA) or None


def incoming_place(text: str) -> str | None:
    """The place of an on-order column (`On Order NJ`), or None."""
    return _rest(text, _INCOMING) or None


def quantity_place(text: str) -> str | None:
    """The place of a quantity column (`Qty NJ`, `Dallas Available`), or None."""
    return None if _COST.search(text) else _rest(text, _QUANTITY) or None


def _at(field: str, place: str) -> tuple[Sense, ...]:
    return (Sense(field, _PLAIN, (("location", place),)),)


def _arrivals(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> dict[int, str]:
    """Columns that name an arrival at a place, and the place."""
    found: dict[int, str] = {}
    for position, header in enumerate(headers):
        place = arrival_place(header)
        if place and len(place) <= _LONGEST and not (known[position] and known[position][0].score >= _PLAIN):
            found[position] = place
    return found


def _stock_columns(
    headers: Sequence[str],
    columns: Sequence[Sequence[str]],
    known: Sequence[tuple[Sense, ...]],
    arrivals: set[str],
    settings: FeedSettings,
) -> dict[int, str]:
    """Columns that are headed by a place and hold quantities."""
    found: dict[int, str] = {}
    for position, header in enumerate(headers):
        name = clean(header)
        if known[position] and known[position][0].field in _NEVER_PLACES:
            continue
        place = name if name in arrivals else place_named(header)
        unknown = not known[position] and 0 < len(name) <= _LONGEST
        if place is None and not (unknown and settings.stream == "stock"):
            continue
        if place is None and not looks_like_stock(columns[position], surely=True):
            continue
        if not looks_like_stock(columns[position]):
            continue
        surely = name in arrivals or looks_like_stock(columns[position], surely=True) or settings.stream == "stock"
        surely = surely or _counts(columns[position])
        if (is_compass(header) or known[position]) and not surely:
            continue
        found[position] = place or name
    return found


def _may_be_place(text: str) -> bool:
    """Whether words beside a quantity's may name a place: words that headers use for other things do not."""
    return (
        len(text) <= _LONGEST
        and plain_words(text) not in _NO_PLACES
        and (
            place_named(text) is not None
            or not any(word.concepts - _SAID_OF_PLACES for word in words_of(plain_words(text)))
        )
    )


def _counts(samples: Sequence[str]) -> bool:
    """Whether values are whole numbers with zeros among them: items are out of stock, prices are not nothing."""
    given = [sample.strip() for sample in samples if sample.strip()]
    return len(given) > 1 and "0" in given and all(value.isdecimal() for value in given)


def _named_quantities(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> dict[int, str]:
    """Columns that say quantity and place (`Qty NJ`); a single one with an unknown word is no warehouse."""
    found: dict[int, str] = {}
    for position, header in enumerate(headers):
        place = quantity_place(header)
        if place is None or not _may_be_place(place) or plain_words(header) in PHRASES:
            continue
        if known[position] and known[position][0].score >= 80 and not place_named(place):
            continue
        found[position] = place
    sure = {position for position, place in found.items() if place_named(place)}
    return found if sure or len(found) > 1 else {}


def _without_totals(known: list[tuple[Sense, ...]], places: set[int]) -> list[tuple[Sense, ...]]:
    """Beside columns for each warehouse a plain quantity is their sum: no stock of its own."""
    return [
        options
        if position in places
        else tuple(Sense("ignore", sense.score) if sense.field == "quantity" else sense for sense in options)
        for position, options in enumerate(known)
    ]


def located(
    headers: Sequence[str],
    columns: Sequence[Sequence[str]],
    known: Sequence[tuple[Sense, ...]],
    settings: FeedSettings,
) -> list[tuple[Sense, ...]]:
    """`known` with quantities, arrivals and orders of one place each given that place.

    A column is a warehouse's when its header names a place (or an arrival column does) and its values are quantities;
    directions head prices as well, so they need values that no price has (`20+`), an arrival column, or a stock feed.
    """
    out = list(known)
    if not any(options and options[0].field in _KEYS for options in known):
        return out
    arrivals = _arrivals(headers, known)
    stock = _stock_columns(headers, columns, known, set(arrivals.values()), settings)
    named = _named_quantities(headers, known)
    if len(stock) + len(named) < 2 and not (stock and arrivals) and not (named and not stock):
        stock = {}
    for position, place in {**named, **stock}.items():
        if not (out[position] and out[position][0].field in MONEY and out[position][0].score >= _PLAIN):
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
