"""How much there is, and what that means for a buyer."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Parsed, overlong, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

LOW_STOCK_MOST: Final = 5
_LONGEST: Final = 200
_MAX: Final = 2_000_000_000
_WORDS: Final[dict[str, tuple[str, int | None]]] = {
    **dict.fromkeys(
        "in stock|instock|stocked|available|available now|yes|y|in stock now|ready to ship|onlineonly|online "
        "only|auf lager"
        "|lieferbar|sofort lieferbar|vorrätig|verfügbar|en stock|disponible|in store|instoreonly|stock|active"
        "|lager|ja|si|sí"
        "|true|deep stock|plenty|high|ample".split("|"),
        ("in_stock", None),
    ),
    **dict.fromkeys(
        "low stock|low|limited|limited availability|limitedavailability|limited stock|few left|geringer bestand"
        "|pocas unidades"
        "|almost gone|low inventory|last pieces".split("|"),
        ("low_stock", None),
    ),
    **dict.fromkeys(
        "out of stock|outofstock|oos|not available|unavailable|sold out|soldout|no stock|nicht vorrätig|nicht lieferbar"
        "|ausverkauft|agotado|sin stock|no disponible|not in stock|out|no|n|none in stock|nicht verfügbar|false"
        "|temporarily "
        "out of stock|temporarily unavailable|nein|not sellable".split("|"),
        ("out_of_stock", 0),
    ),
    **dict.fromkeys(
        "backorder|back order|backordered|back ordered|on back order|on backorder|bo|b/o|nachbestellt|available "
        "to order"
        "|on order|pedido pendiente|onbackorder".split("|"),
        ("backorder", None),
    ),
    **dict.fromkeys(
        "preorder|pre order|presale|pre sale|coming soon|made to order|madetoorder|mto|vorbestellung"
        "|vorbestellbar|preventa"
        "|new arrival soon|special order".split("|"),
        ("preorder", None),
    ),
    **dict.fromkeys(
        "discontinued|disc|disco|discontinue|d|dc|obsolete|phased out|eingestellt|auslaufartikel|descontinuado"
        "|no longer available|retired|ended|drop|dropped".split("|"),
        ("discontinued", None),
    ),
    **dict.fromkeys(
        "call|unknown|call for availability|ask|auf anfrage|consultar|inquire|please call|check|contact us".split("|"),
        ("unknown", None),
    ),
}
_NUMBER: Final = re.compile(r"([<>≥~]?=?)\s*(-?)\s*(\d{1,3}(?:,\d{3})+|\d+)(?:[.,]0+)?\s*(\+?)\s*([^\d]*)")
_INSIDE: Final = re.compile(
    r"\((\d{1,9})\)|\bonly (\d{1,9}) left\b|\b(\d{1,9}) (?:left|available|units?|in stock)\b", re.I
)
_NUMBERED: Final = frozenset(
    "|in stock|pcs|pc|pieces|piece|units|unit|ea|each|available|left|stück|stk|sets|set|ctn|ctns|pairs|uds|unidades|qty"
    "|on hand|or more|in stock now".split("|")
)
_BRACKET: Final = re.compile(r"[\[(] ?([A-Za-z][A-Za-z _-]{0,40}?) ?[\])]$")


@dataclass(frozen=True, slots=True)
class Stock:
    """A quantity, a word for it, or both; None what is not stated."""

    quantity: int | None = None
    availability: str | None = None


def availability_of(quantity: int) -> str:
    """What a quantity means: none out_of_stock, one to five low_stock, more in_stock."""
    if quantity <= 0:
        return "out_of_stock"
    return "low_stock" if quantity <= LOW_STOCK_MOST else "in_stock"


def word_meaning(text: str) -> Stock | None:
    """What a stock word says (`NOT AVAILABLE`, `https://schema.org/InStock`), or None."""
    low = text.strip().lower().rsplit("/", 1)[-1] if "schema.org" in text.lower() else text.strip().lower()
    found = _WORDS.get(re.sub(r"[_\s-]+", " ", low).strip(" .!*"))
    return Stock(found[1], found[0]) if found else None


def _numbered(text: str, match: re.Match[str]) -> Parsed[Stock]:
    if re.sub(r"[_\s-]+", " ", match[5].lower()).strip(" .") not in _NUMBERED:
        return unreadable(text, "is no quantity")
    if match[1].startswith("<"):
        return Parsed(Stock(None, "low_stock" if int(match[3].replace(",", "")) <= LOW_STOCK_MOST + 1 else None))
    quantity = 0 if match[2] else int(match[3].replace(",", "")[:12])
    return (
        Parsed(Stock(quantity))
        if quantity <= _MAX
        else refused(ProblemKind.OUT_OF_RANGE, text, "is more than any stock")
    )


@lru_cache(maxsize=16384)
def parse_stock(text: str) -> Parsed[Stock]:
    """A quantity, a stock word, or both, from one cell (`12`, `20+`, `0 in stock`, `In Stock`, `Only 3 left`).

    `20+` is 20; a negative quantity is oversold and means 0. Problems: unreadable, out_of_range.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return NOTHING
    if match := _NUMBER.fullmatch(given):
        return _numbered(text, match)
    if word := word_meaning(given):
        return Parsed(word)
    if inside := _INSIDE.search(given):
        return Parsed(Stock(min(int(next(filter(None, inside.groups()))), _MAX)))
    return unreadable(text, "is neither a quantity nor a word for stock")


@lru_cache(maxsize=16384)
def parse_availability(text: str) -> Parsed[Stock]:
    """What an availability column says; a number there is a quantity. Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    if word := word_meaning(given):
        return Parsed(word)
    return parse_stock(text)


@lru_cache(maxsize=16384)
def stock_in_value(text: str) -> tuple[str, Stock | None]:
    """A variant's value without the stock word in brackets at its end, and that word (`Blue [NOT AVAILABLE]`)."""
    match = _BRACKET.search(text) if text.endswith(("]", ")")) else None
    word = word_meaning(match[1]) if match and len(match[1]) > 2 else None
    return (text[: match.start()].strip(), word) if match and word else (text, None)
