"""Parsers of cells with stock: quantities, and words for availability.

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

from domain.ingestion.data import invert_table, load_patterns, load_toml, load_word_set
from domain.ingestion.values.text import (
    ParseResult,
    build_conflict_fault,
    build_fault_result,
    build_unreadable_result,
    cell_parser,
)
from domain.kernel.problems import ProblemKind

_MAX_CHARS = 200
_MAX_QUANTITY = 2_000_000_000
_WORDS = invert_table(load_toml("stock")["availability"])
_UNITS, _DOZENS, _NOUNS, _NEGATIONS, _FEW, _IGNORED = (
    load_word_set("stock", name) for name in ("units", "dozens", "nouns", "negations", "few", "ignored")
)
_DOZEN = 12
_NUMBER = re.compile(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?![\d.,])|\d[\d.,]*\d|\d")
_GROUPS = re.compile(r"\d{1,3}(?:[ ,'\u00a0\u202f]\d{3})+|\d{1,3}(?:\.\d{3}){2,}")
_WHOLE = re.compile(r"(\d+)(?:[.,](?:0|00|0{4,}))?")
_DECIMAL_MARKS = {"comma": ",", "dot": "."}
_LETTERS = re.compile(r"[^\W\d_]+")
(_MORE, _LESS, _POSSIBLE, _SHIPPED) = (load_patterns("stock")[name] for name in "more less possible shipped".split())
_MAX_LOW_STOCK_BOUND = 10
_MINUS_BEFORE = re.compile(r"(?:^|[\s:(])[-−–]\s?$")
_UNEXPECTED_SIGNS = re.compile(r"[/=*%$€£]")
_CODE = re.compile(r"\d[^\W\d_]{1,2}\d|[^\W\d_]\d|\d[kKeE](?![^\W\d_])")
_BRACKET = re.compile(r"[\[(] ?([A-Za-z][A-Za-z _-]{0,40}?) ?[\])]$")
_LEADING_WORDS = re.compile(r"[^\W\d_]{2,30}(?:[ -][^\W\d_]{1,30}){0,3}")


@dataclass(frozen=True, slots=True)
class Stock:
    """Stock in a cell: a quantity, an availability, or both; None means that the cell does not contain it."""

    quantity: int | None = None
    availability: str | None = None


def parse_stock_word(text: str) -> Stock | None:
    """Return the stock that a word or phrase means (`NOT AVAILABLE`, `https://schema.org/InStock`), or None if unknown."""
    low = text.strip().lower()
    low = low.rsplit("/", 1)[-1] if "schema.org" in low else low
    if len(low) > _MAX_CHARS:
        return None
    found = _WORDS.get(re.sub(r"[_\s-]+", " ", low).strip(" .!*?:"))
    return Stock(0 if found == "out_of_stock" else None, found) if found else None


def _parse_whole_number(number: str, decimal: str) -> int | None:
    """Parse a whole number; None for fractions and, if the decimal mark is `auto`, for numbers with an ambiguous mark (`1.000`)."""
    if mark := _DECIMAL_MARKS.get(decimal):
        integer, _, fraction = number.partition(mark)
        return int(re.sub(r"\D", "", integer)[:15]) if not fraction.strip("0") else None
    if _GROUPS.fullmatch(number):
        return int(re.sub(r"\D", "", number)[:15])
    whole = _WHOLE.fullmatch(number)
    return int(whole[1][:15]) if whole else None


def _parse_cell_with_number(text: str, cleaned: str, found: re.Match[str], decimal: str) -> ParseResult[Stock]:
    """Parse a cell with one number, in which all words must be known.

    If the number contradicts an availability in the cell, the availability is used and a conflict is reported.

    Args:
        text: The cell.
        cleaned: The cleaned text of the cell.
        found: The match of the number in the cleaned text.
        decimal: The decimal mark: `dot`, `comma` or `auto`.
    """
    before, after = cleaned[: found.start()], cleaned[found.end() :]
    text_before, text_after, around = before.strip(), after.strip(), f"{before} {after}"
    names = {word.lower() for word in _LETTERS.findall(around)}
    count, is_less, more = _parse_whole_number(found[0], decimal), _LESS.search(before), _MORE.match(before)
    meaning = parse_stock_word(re.sub(r"[\W_]+", " ", around))
    if count is not None and names & _DOZENS:
        count, names = count * _DOZEN, names - _DOZENS
    if count is None or not (names <= _UNITS or is_less or more or meaning) or _UNEXPECTED_SIGNS.search(before + after):
        return build_unreadable_result(text, "is not a quantity")
    if is_less:
        bound = Stock(None, "low_stock") if count <= _MAX_LOW_STOCK_BOUND else None
        return ParseResult(bound, (build_conflict_fault(text, "states only an upper bound of the quantity"),))
    if count == 0 and (more or text_before.endswith((">", "≥")) or text_after.startswith("+")):
        return ParseResult(Stock(None, "in_stock"))  # more than none
    if count > _MAX_QUANTITY:
        return build_fault_result(ProblemKind.OUT_OF_RANGE, text, "is implausibly large")
    if _MINUS_BEFORE.search(before) or (text_before == "(" and text_after == ")") or text_after in ("-", "−"):
        oversold: ParseResult[Stock] = build_fault_result(
            ProblemKind.OUT_OF_RANGE, text, "is below zero (oversold); it is read as 0"
        )
        return replace(oversold, value=Stock(0), faults=oversold.faults if count else ())
    if meaning is None or names <= _UNITS:
        return ParseResult(Stock(count))
    if meaning.availability in ("in_stock", "low_stock") or (meaning.quantity == 0 and count == 0):
        return ParseResult(Stock(count, meaning.availability if count else None))
    return ParseResult(
        meaning, (build_conflict_fault(text, "states an availability and a quantity that contradict each other"),)
    )


def _parse_phrase(cleaned: str) -> Stock | None:
    """Return the stock that a phrase of known words means (`nicht mehr auf Lager`, `brak w magazynie`), or None."""
    names = {word.lower() for word in _LETTERS.findall(cleaned)}
    states_none, states_few = bool(names & _NEGATIONS), bool(names & _FEW)
    if not names & _NOUNS or not names <= _NOUNS | _NEGATIONS | _FEW | _IGNORED or states_none == states_few:
        return None
    return Stock(0, "out_of_stock") if states_none else Stock(None, "low_stock")


def _parse_leading_availability(text: str, cleaned: str) -> ParseResult[Stock] | None:
    """Parse a cell that begins with an availability (`Backorder until 12/05`), and report the rest; None for other cells."""
    head = _LEADING_WORDS.match(cleaned)
    names = re.split(r"[ -]", head[0]) if head else []
    for count in range(len(names), 0, -1):
        meaning = parse_stock_word(" ".join(names[:count]))
        if meaning and meaning.availability not in ("in_stock", "low_stock", "unknown") and len(names[0]) > 2:
            return ParseResult(
                meaning, build_unreadable_result(text, "contains more than an availability; the rest is ignored").faults
            )
    return None


@cell_parser(max_chars=_MAX_CHARS)
def parse_stock(text: str, cleaned: str, decimal: str = "auto") -> ParseResult[Stock]:
    """Parse a cell with a quantity, an availability, or both (`12`, `20+`, `0 in stock`, `In Stock`, `Only 3 left`).

    `20+` means 20. A negative quantity is read as 0 and reported. The result can have the faults unreadable, out_of_range and conflict.

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        decimal: The decimal mark: `dot`, `comma` or `auto`.
    """
    if cleaned.startswith("="):
        return build_unreadable_result(text, "is a formula without a result")
    if word := parse_stock_word(cleaned):
        return ParseResult(word)
    numbers = list(_NUMBER.finditer(cleaned))
    if len(numbers) == 1 and not _CODE.search(cleaned):
        parsed = _parse_cell_with_number(text, cleaned, numbers[0], decimal)
        is_usable = parsed.value is not None or parsed.faults[0].problem != ProblemKind.UNREADABLE
        return parsed if is_usable else _parse_leading_availability(text, cleaned) or parsed
    stock = None if numbers else _parse_phrase(cleaned) or parse_stock_word(_POSSIBLE.sub("", cleaned))
    if stock is None and (shipped := _SHIPPED.fullmatch(cleaned)):
        stock = parse_stock_word(shipped[1])
    if stock:
        return ParseResult(stock)
    led = _parse_leading_availability(text, cleaned) if numbers else None
    return led or build_unreadable_result(text, "is neither a quantity nor an availability")


@cell_parser()
def parse_availability(text: str, cleaned: str) -> ParseResult[Stock]:
    """Parse a cell in a column of availabilities, in which a number is a quantity. The result can have the faults of `parse_stock`."""
    word = parse_stock_word(cleaned)
    return ParseResult(word) if word else parse_stock(text)


@lru_cache(maxsize=16384)
def split_stock_word(text: str) -> tuple[str, Stock | None]:
    """Split a value with a stock word in brackets at its end (`Blue [NOT AVAILABLE]`) into the rest and the stock.

    Without such a word, return the unchanged value and None.
    """
    match = _BRACKET.search(text) if text.endswith(("]", ")")) else None
    word = parse_stock_word(match[1]) if match and len(match[1]) > 2 else None
    return (text[: match.start()].strip(), word) if match and word else (text, None)
