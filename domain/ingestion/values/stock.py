"""How much there is, and what that means for a buyer.

    stock    := word | [about] number [unit] [word] | word [":"] number | "only" number "left" | word date (told)
    about    := "ca." | "~" | "approx." …                     the number is taken
    number   := ["-"] digits ["+"] | ">" digits               below zero is oversold: 0, and told; `20+` and `>20` are 20
    bound    := "<" digits | "less than" digits               no quantity: low stock up to ten, and told
    phrase   := none noun | few noun                          words of data/stock.toml alone
    shipped  := word ("-" | "," | ":" …) "ships" …            a word for stock before how long it takes to ship

One number at most: a second one, a date, a formula or a fraction is told.
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
    low = text.strip().lower()
    low = low.rsplit("/", 1)[-1] if "schema.org" in low else low
    if len(low) > _LONGEST:
        return None
    found = _WORDS.get(re.sub(r"[_\s-]+", " ", low).strip(" .!*?:"))
    return Stock(0 if found == "out_of_stock" else None, found) if found else None


def _count(number: str) -> int | None:
    """A number of pieces, or None for fractions and for marks that may part thousands or decimals (`1.000`)."""
    if _GROUPS.fullmatch(number):
        return int(re.sub(r"\D", "", number)[:15])
    whole = _WHOLE.fullmatch(number)
    return int(whole[1][:15]) if whole else None


def _numbered(text: str, given: str, found: re.Match[str]) -> Parsed[Stock]:
    """A cell with one number: all its words have to be known ones.

    Beside a word that is no mere unit both are taken where they agree, else the word, and it is told.
    """
    before, after = given[: found.start()], given[found.end() :]
    lead, tail, said = before.strip(), after.strip(), f"{before} {after}"
    names = {word.lower() for word in _LETTERS.findall(said)}
    count, less, more = _count(found[0]), _LESS.search(before), _MORE.match(before)
    meaning = word_meaning(re.sub(r"[\W_]+", " ", said))
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
    """What the words of a phrase come to (`nicht mehr auf Lager`, `brak w magazynie`); None where one is not known."""
    names = {word.lower() for word in _LETTERS.findall(given)}
    none, few = bool(names & _NONE), bool(names & _FEW)
    if not names & _NOUNS or not names <= _NOUNS | _NONE | _FEW | _IDLE or none == few:
        return None
    return Stock(0, "out_of_stock") if none else Stock(None, "low_stock")


def _led(text: str, given: str) -> Parsed[Stock] | None:
    """A word for stock with a date or more behind it (`Backorder until 12/05`): the word is taken, the rest told."""
    head = _LEAD.match(given)
    names = re.split(r"[ -]", head[0]) if head else []
    for count in range(len(names), 0, -1):
        meaning = word_meaning(" ".join(names[:count]))
        if meaning and meaning.availability not in ("in_stock", "low_stock", "unknown") and len(names[0]) > 2:
            return Parsed(meaning, unreadable(text, "contains more than an availability; the rest is ignored").faults)
    return None


@cell_parser(longest=_LONGEST)
def parse_stock(text: str, given: str) -> Parsed[Stock]:
    """A quantity, a stock word, or both, from one cell (`12`, `20+`, `0 in stock`, `In Stock`, `Only 3 left`).

    `20+` is 20; a negative quantity is oversold, means 0 and is told. Problems: unreadable, out_of_range, conflict.
    """
    if given.startswith("="):
        return unreadable(text, "is a formula without a result")
    if word := word_meaning(given):
        return Parsed(word)
    numbers = list(_NUMBER.finditer(given))
    if len(numbers) == 1 and not _CODE.search(given):
        read = _numbered(text, given, numbers[0])
        is_read = read.value is not None or read.faults[0].problem != ProblemKind.UNREADABLE
        return read if is_read else _led(text, given) or read
    said = None if numbers else _phrase(given) or word_meaning(_POSSIBLE.sub("", given))
    if said is None and (shipped := _SHIPPED.fullmatch(given)):
        said = word_meaning(shipped[1])
    if said:
        return Parsed(said)
    led = _led(text, given) if numbers else None
    return led or unreadable(text, "is neither a quantity nor an availability")


@cell_parser()
def parse_availability(text: str, given: str) -> Parsed[Stock]:
    """What an availability column says; a number there is a quantity. Problem: unreadable."""
    word = word_meaning(given)
    return Parsed(word) if word else parse_stock(text)


@lru_cache(maxsize=16384)
def stock_in_value(text: str) -> tuple[str, Stock | None]:
    """A variant's value without the stock word in brackets at its end, and that word (`Blue [NOT AVAILABLE]`)."""
    match = _BRACKET.search(text) if text.endswith(("]", ")")) else None
    word = word_meaning(match[1]) if match and len(match[1]) > 2 else None
    return (text[: match.start()].strip(), word) if match and word else (text, None)
