"""Stock: quantities and availabilities.

    stock    := word | [about] number [unit] [word] | word [":"] number | "only" number "left" | word date (reported)
    about    := "ca." | "~" | "approx." …                     the number is used
    number   := ["-"] digits ["+"] | ">" digits               below zero is oversold: 0, reported; `20+` and `>20` are 20
    bound    := "<" digits | "less than" digits               no quantity: low stock up to ten, reported
    phrase   := none noun | few noun                          words of data/stock.toml alone
    shipped  := word ("-" | "," | ":" …) "ships" …            a word for stock before how long it takes to ship

At most one number is read: a second one, a date, a formula or a fraction is reported.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from domain.ingestion.data import expressions, load, meanings, words
from domain.ingestion.values.text import Parsed, cell_parser, conflict, refused, unreadable
from domain.kernel.problems import ProblemKind

LOW_STOCK_MOST = 5
_LONGEST = 200
_MAX = 2_000_000_000
_WORDS = meanings(load("stock")["availability"])
_UNITS, _NOUNS, _NONE, _FEW, _IDLE = (words("stock", name) for name in ("units", "nouns", "none", "few", "idle"))
_NUMBER = re.compile(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?![\d.,])|\d[\d.,]*\d|\d")
_GROUPS = re.compile(r"\d{1,3}(?:[ ,'\u00a0\u202f]\d{3})+|\d{1,3}(?:\.\d{3}){2,}")
_WHOLE = re.compile(r"(\d+)(?:[.,](?:0|00|0{4,}))?")
_LETTERS = re.compile(r"[^\W\d_]+")
(_MORE, _LESS, _POSSIBLE, _SHIPPED) = (expressions("stock")[name] for name in "more less possible shipped".split())
_LOW_BOUND = 10
_MINUS_BEFORE = re.compile(r"(?:^|[\s:(])[-−–]\s?$")
_STRANGE = re.compile(r"[/=*%$€£]")
_CODE = re.compile(r"\d[^\W\d_]{1,2}\d|[^\W\d_]\d|\d[kKeE](?![^\W\d_])")
_BRACKET = re.compile(r"[\[(] ?([A-Za-z][A-Za-z _-]{0,40}?) ?[\])]$")
_LEAD = re.compile(r"[^\W\d_]{2,30}(?:[ -][^\W\d_]{1,30}){0,3}")


@dataclass(frozen=True, slots=True)
class Stock:
    """A quantity, an availability, or both; None if not stated."""

    quantity: int | None = None
    availability: str | None = None


def availability_of(quantity: int) -> str:
    """Return the availability of a quantity: up to 0 out_of_stock, up to 5 low_stock, above in_stock."""
    if quantity <= 0:
        return "out_of_stock"
    return "low_stock" if quantity <= LOW_STOCK_MOST else "in_stock"


def word_meaning(text: str) -> Stock | None:
    """Return the meaning of a stock word (`NOT AVAILABLE`, `https://schema.org/InStock`), or None."""
    low = text.strip().lower()
    low = low.rsplit("/", 1)[-1] if "schema.org" in low else low
    if len(low) > _LONGEST:
        return None
    found = _WORDS.get(re.sub(r"[_\s-]+", " ", low).strip(" .!*?:"))
    return Stock(0 if found == "out_of_stock" else None, found) if found else None


def _count(number: str) -> int | None:
    """Return a whole number; None for fractions and for ambiguous marks (`1.000`)."""
    if _GROUPS.fullmatch(number):
        return int(re.sub(r"\D", "", number)[:15])
    whole = _WHOLE.fullmatch(number)
    return int(whole[1][:15]) if whole else None


def _numbered(text: str, given: str, found: re.Match[str]) -> Parsed[Stock]:
    """Parse a cell with one number, of which all words must be known.

    If an availability and the number contradict each other, the availability is used and the conflict reported.
    """
    before, after = given[: found.start()], given[found.end() :]
    lead, tail, around = before.strip(), after.strip(), f"{before} {after}"
    names = {word.lower() for word in _LETTERS.findall(around)}
    count, less, more = _count(found[0]), _LESS.search(before), _MORE.match(before)
    meaning = word_meaning(re.sub(r"[\W_]+", " ", around))
    if count is None or not (names <= _UNITS or less or more or meaning) or _STRANGE.search(before + after):
        return unreadable(text, "is not a quantity")
    if less:
        bound = Stock(None, "low_stock") if count <= _LOW_BOUND else None
        return Parsed(bound, (conflict(text, "states only an upper bound of the quantity"),))
    if count == 0 and (more or lead.endswith((">", "≥")) or tail.startswith("+")):
        return Parsed(Stock(None, "in_stock"))  # more than none
    if count > _MAX:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is implausibly large")
    if _MINUS_BEFORE.search(before) or (lead == "(" and tail == ")") or tail in ("-", "−"):
        oversold: Parsed[Stock] = refused(ProblemKind.OUT_OF_RANGE, text, "is below zero (oversold); it is read as 0")
        return replace(oversold, value=Stock(0), faults=oversold.faults if count else ())
    if meaning is None or names <= _UNITS:
        return Parsed(Stock(count))
    if meaning.availability in ("in_stock", "low_stock") or (meaning.quantity == 0 and count == 0):
        return Parsed(Stock(count, meaning.availability if count else None))
    return Parsed(meaning, (conflict(text, "states an availability and a quantity that contradict each other"),))


def _phrase(given: str) -> Stock | None:
    """Return the meaning of a phrase of known words (`nicht mehr auf Lager`, `brak w magazynie`), or None."""
    names = {word.lower() for word in _LETTERS.findall(given)}
    none, few = bool(names & _NONE), bool(names & _FEW)
    if not names & _NOUNS or not names <= _NOUNS | _NONE | _FEW | _IDLE or none == few:
        return None
    return Stock(0, "out_of_stock") if none else Stock(None, "low_stock")


def _led(text: str, given: str) -> Parsed[Stock] | None:
    """Return the leading availability of a text that goes on (`Backorder until 12/05`); the rest is reported."""
    head = _LEAD.match(given)
    names = re.split(r"[ -]", head[0]) if head else []
    for count in range(len(names), 0, -1):
        meaning = word_meaning(" ".join(names[:count]))
        if meaning and meaning.availability not in ("in_stock", "low_stock", "unknown") and len(names[0]) > 2:
            return Parsed(meaning, unreadable(text, "contains more than an availability; the rest is ignored").faults)
    return None


@cell_parser(longest=_LONGEST)
def parse_stock(text: str, given: str) -> Parsed[Stock]:
    """Parse a quantity, an availability, or both (`12`, `20+`, `0 in stock`, `In Stock`, `Only 3 left`).

    `20+` is 20; a negative quantity means 0 and is reported. Problems: unreadable, out_of_range, conflict.
    """
    if given.startswith("="):
        return unreadable(text, "is a formula without a result")
    if word := word_meaning(given):
        return Parsed(word)
    numbers = list(_NUMBER.finditer(given))
    if len(numbers) == 1 and not _CODE.search(given):
        parsed = _numbered(text, given, numbers[0])
        is_usable = parsed.value is not None or parsed.faults[0].problem != ProblemKind.UNREADABLE
        return parsed if is_usable else _led(text, given) or parsed
    stock = None if numbers else _phrase(given) or word_meaning(_POSSIBLE.sub("", given))
    if stock is None and (shipped := _SHIPPED.fullmatch(given)):
        stock = word_meaning(shipped[1])
    if stock:
        return Parsed(stock)
    led = _led(text, given) if numbers else None
    return led or unreadable(text, "is neither a quantity nor an availability")


@cell_parser()
def parse_availability(text: str, given: str) -> Parsed[Stock]:
    """Parse a cell of an availability column; a number is a quantity. Problem: unreadable."""
    word = word_meaning(given)
    return Parsed(word) if word else parse_stock(text)


@lru_cache(maxsize=16384)
def stock_in_value(text: str) -> tuple[str, Stock | None]:
    """Return a variant's value without a bracketed stock word at its end, and the word (`Blue [NOT AVAILABLE]`)."""
    match = _BRACKET.search(text) if text.endswith(("]", ")")) else None
    word = word_meaning(match[1]) if match and len(match[1]) > 2 else None
    return (text[: match.start()].strip(), word) if match and word else (text, None)
