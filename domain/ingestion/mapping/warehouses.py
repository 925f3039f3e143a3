"""Stock sheets with one column for each warehouse: which columns those are, and which place each names."""

import re
from collections.abc import Sequence
from typing import Final

from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.headings import plain_words

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
    r"|qty on hand|quantity|qty|stock|inventory|available|avail|oh|atp|bestand|existencia|stk)\b",
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
