"""Parser of cells with prices, which are converted exactly to minor units of the currency.

    price    := [words] [minus] [currency] number [cents] [minus] [currency] [tax] [per]
    number   := digits | groups of three separated by one mark or blank, then a decimal mark | Indian groups
    cents    := ".-" | ",--" | "€50"                          12.-, 12,--, 12€50
    words    := "price" | "RRP" | "UVP" | "only" | label ":" …    "from" is read and reported
    tax      := "incl. VAT" | "zzgl. MwSt." | "TTC" | "HT" …      a price without tax is read and reported
    per      := ("/" | "per" | "je" | "la" …) [count] ("pack" | "piece" | "pair" | …)
              | … ("m²" | "metre" | "month" …)                      not a price of the item: reported

Anything else in the cell is reported: a second number, a range, unknown words. A minus before or after the number, or brackets
around it, mean a negative price, which is reported.
"""

import re
from decimal import Decimal
from typing import NamedTuple

from domain.ingestion.data import invert_table, load_patterns, load_toml, parse_entries
from domain.ingestion.values.text import (
    NO_VALUE,
    ParseResult,
    build_conflict_fault,
    build_fault_result,
    build_unreadable_result,
    cell_parser,
)
from domain.kernel.money import EXPONENTS, to_minor_units
from domain.kernel.problems import ProblemKind

_SIGNS = {sign: currencies.split() for sign, currencies in invert_table(load_toml("currencies")["signs"]).items()}
_IGNORED_WORDS = frozenset(parse_entries(load_toml("currencies")["words"]["ignored"]))
_DOT_MARKETS = frozenset(parse_entries(load_toml("currencies")["words"]["dot_markets"]))
_US_DOLLAR_SIGNS = ("$", "dollar", "dollars")
"""Signs of several dollar currencies, which mean the US dollar unless the cell or the source names another currency."""
(_PACK, _MEASURED, _TAX, _MINIMUM) = (load_patterns("currencies")[name] for name in "pack measured tax minimum".split())
_BOXES = ("ctn", "carton", "box", "pack", "packs", "pk")
_PAIRS = ("pair", "pairs", "paar", "paire", "par", "pares")
_LABEL = re.compile(r"(?i)^[+]?\s*[^\W\d_][^\W\d_ .()/-]{0,60}(?: [^\W\d_]{1,20}){0,5}\s?[:=]\s*+")
_NUMBER = re.compile(
    r"\d{1,3}(?:[ '\u00a0\u202f\u2009’.,]\d{3})+(?!\d)(?:[.,]\d{1,4}(?!\d))?|\d[\d.,]*\d|\d|(?<![\d.,])[.,]\d{1,4}"
)
_CENTS = re.compile(r"(?i)(\d)\s?(€|\$|£|eur|fr)\s?(\d{2})(?=\s*$)")
_ROUND = re.compile(r"^\s?(?:[.,]\s?[-–—=]{1,2}|[-–—]{2})(?!\d)")
_MINUS = "-−–"
_GROUPED = {",": re.compile(r"\d{1,3}(?:,\d{3})+"), ".": re.compile(r"\d{1,3}(?:\.\d{3})+")}
_INDIAN_GROUPS = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_ZERO = re.compile(r"0+(?:[.,]0+)?")
_MAX_DIGITS = 15
_COMPLEX_PRICE = re.compile(r"[^\W\d_]|[/+]|[.,]\s?-|[€$£]\s?\d\d\s*$")
"""Pattern of a price with letters, `/`, `+`, `.-` or two final digits after a sign (`12€50`)."""


class ParsedPrice(NamedTuple):
    """Price in a cell.

    Attributes:
        minor_units: The number of minor units of the currency, such as cents.
        currency: The currency in lower-case ISO 4217.
        pack_size: The number of pieces that the price covers (`10.00 / 4 pcs`), or None if the cell does not state it.
    """

    minor_units: int
    currency: str
    pack_size: int | None = None


def _has_groups(number: str, separator: str) -> bool:
    """Return whether the separator divides a number into groups of digits: of three digits (`1,234,567`), or as in India (`12,34,567`)."""
    return bool(_GROUPED[separator].fullmatch(number) or (separator == "," and _INDIAN_GROUPS.fullmatch(number)))


def parse_price_number(number: str, decimal: str, currency: str) -> Decimal | None:
    """Convert the digits of a price to an exact number; None if the decimal mark is ambiguous.

    Args:
        number: The digits with marks, such as `1.234,50`.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
        currency: The currency, which determines the usual number of decimals.
    """
    bare = re.sub(r"[\s'’\u00a0\u202f]", "", number)
    if (
        len(bare) > _MAX_DIGITS
        and len(re.sub(r"\D", "", bare.split(".")[0] if decimal != "comma" else bare)) > _MAX_DIGITS
    ):
        return None
    dot, comma = bare.rfind("."), bare.rfind(",")
    last, other = max(dot, comma), min(dot, comma)
    if last < 0:
        return Decimal(bare)
    mark, group = (".", ",") if dot > comma else (",", ".")
    whole, digits = bare[:last], bare[last + 1 :]
    if other >= 0:
        return Decimal(f"{whole.replace(group, '')}.{digits}") if _has_groups(whole, group) else None
    if bare.count(mark) > 1:
        return Decimal(bare.replace(mark, "")) if _has_groups(bare, mark) else None
    as_decimal, as_groups = Decimal(f"{whole}.{digits}"), Decimal(whole + digits)
    if not _GROUPED[mark].fullmatch(bare) or number.startswith("0"):
        return as_decimal
    if decimal == ("dot" if mark == "," else "comma"):
        return as_groups
    # Three digits after a decimal mark are not a price in most currencies, even if the setting declares this mark.
    if EXPONENTS[currency] == len(digits):
        return as_decimal
    if mark == ",":
        return as_groups
    return as_decimal if decimal == "dot" or currency in _DOT_MARKETS else None


def _list_currency_words(words: str) -> list[str]:
    """Return the words next to a number that may name a currency, in lower case."""
    if not words:
        return []
    parts = re.split(r"[\s()*~]+", words.strip().lower())
    return [part for part in parts if part.strip(".:,;-") and part.strip(".:,;") not in _IGNORED_WORDS]


def _find_currency(words: list[str], source_currency: str | None) -> tuple[str | None, bool]:
    """Find the currency that the words around a number name.

    An ambiguous sign such as `$` means the currency whose code is next to it, or else the currency of the source.

    Args:
        words: The words around the number, in lower case.
        source_currency: The currency of the source, or None.

    Returns:
        The currency or None, and whether all words are known and name the same currency.
    """
    if len(words) == 2 and "".join(words) in _SIGNS:
        words = ["".join(words)]
    hint = next((word.rstrip(".") for word in words if word.rstrip(".") in EXPONENTS), source_currency)
    chosen = None
    for word in words:
        choices = [word] if word in EXPONENTS else _SIGNS.get(word) or _SIGNS.get(word.rstrip("."))
        if choices is None:
            return None, False
        found = hint if hint in choices else choices[0] if len(choices) == 1 or word in _US_DOLLAR_SIGNS else None
        if chosen and found and found != chosen:
            return None, False
        chosen = chosen or found
    return chosen if words else source_currency, True


def _parse_amount(text: str, price_text: str, currency: str | None, decimal: str) -> ParseResult[ParsedPrice]:
    """Parse a price without words about tax and packs.

    Args:
        text: The cell, for faults.
        price_text: The cleaned cell without these words.
        currency: The default currency of the source, or None.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    numbers = list(_NUMBER.finditer(price_text))
    if len(numbers) != 1:
        return build_unreadable_result(text, "contains more than one amount" if numbers else "is not a price")
    before, after = price_text[: numbers[0].start()].strip(), price_text[numbers[0].end() :]
    rounded = _ROUND.match(after)
    after = after[rounded.end() if rounded else 0 :].strip()
    currency_words = [
        *_list_currency_words(before.strip(f"{_MINUS}+ (")),
        *_list_currency_words(after.strip(f"{_MINUS} )")),
    ]
    chosen, is_known = _find_currency(currency_words, currency)
    if not is_known:
        problem = (
            ProblemKind.UNREADABLE
            if max(map(len, (*_list_currency_words(before), *_list_currency_words(after)))) > 4
            else ProblemKind.UNKNOWN_CURRENCY
        )
        return build_fault_result(problem, text, "has no known currency")
    if chosen is None or chosen not in EXPONENTS:
        return build_fault_result(
            ProblemKind.UNKNOWN_CURRENCY, text, "has no currency, and the source has no default currency"
        )
    if rounded and decimal == "auto" and (mark := rounded[0].strip()[0]) in ",.":
        decimal = "comma" if mark == "," else "dot"
    number = parse_price_number(numbers[0][0], decimal, chosen)
    if number is None:
        return build_unreadable_result(text, "can be read as two amounts; set the source's decimal mark")
    minus = tuple(_MINUS)
    bracketed = before.startswith("(") and after.endswith(")")
    if bracketed or before.endswith(minus) or before.startswith(minus) or after.startswith(minus):
        return build_fault_result(ProblemKind.OUT_OF_RANGE, text, "is below zero") if number else NO_VALUE
    minor = to_minor_units(number, chosen)
    return ParseResult(ParsedPrice(minor, chosen)) if minor else NO_VALUE


def _split_pack_size(price_text: str, notes: list[str]) -> tuple[str, int | None]:
    """Split a price into the text before words such as `/ pack of 4`, and the number of pieces or None.

    Args:
        price_text: The cleaned cell.
        notes: Receives a note if the price is for a box with an unknown number of pieces.
    """
    match = _PACK.search(price_text)
    if match is None:
        return price_text, None
    kind = (match["kind"] or "").lower()
    if kind in _BOXES and not match["count"]:
        notes.append("is the price of a whole box")
    return price_text[: match.start()], int(match["count"] or (2 if kind in _PAIRS else 0)) or None


@cell_parser(max_chars=200, cache_size=65536)
def parse_money(
    text: str, cleaned: str, currency: str | None = None, decimal: str = "auto"
) -> ParseResult[ParsedPrice]:
    """Parse a price; zero gives no value.

    A minimum price and a price without tax are returned with the fault conflict. The result can also have the faults unreadable (words,
    ranges, prices by measure, ambiguous marks), unknown_currency and out_of_range (negative).

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        currency: The default currency of the source in lower-case ISO 4217, or None.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    if _ZERO.fullmatch(cleaned):
        return NO_VALUE
    if not _COMPLEX_PRICE.search(cleaned):
        return _parse_amount(text, cleaned, currency, decimal)
    if _MEASURED.search(cleaned):
        return build_unreadable_result(text, "is a price per unit of measure or per period, not for the item")
    notes: list[str] = []
    price_text, pack = _split_pack_size(cleaned, notes)
    if tax := _TAX.search(price_text):
        after = (tax["after"] or "").strip().lower()
        if tax["without"] or after.startswith(("ex", "es", "ap")) or re.search(r"(?i)\bht", tax[0]):
            notes.append("is a price without tax")
        price_text = f"{price_text[: tax.start()]} {price_text[tax.end() :]}"
    if pack is None:
        price_text, pack = _split_pack_size(price_text, notes)
    price_text = _LABEL.sub("", price_text)
    if minimum := _MINIMUM.match(price_text):
        notes.append("states only a minimum price")
        price_text = price_text[minimum.end() :]
    parsed = _parse_amount(text, _CENTS.sub(r"\1.\3 \2", price_text), currency, decimal)
    if parsed.value is None:
        return parsed
    return ParseResult(parsed.value._replace(pack_size=pack), tuple(build_conflict_fault(text, note) for note in notes))


def detect_decimal_mark(samples: list[str]) -> str | None:
    """Detect the decimal mark, `dot` or `comma`, in sample prices of one column; None if the samples contain none or both."""
    marks = set()
    for sample in samples:
        number = re.search(r"\d[\d.,]*\d", sample)
        if number is None:
            continue
        if re.search(r",\d{1,2}$", number[0]):
            marks.add("comma")
        elif re.search(r"\.\d{1,2}$", number[0]) or re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number[0]):
            marks.add("dot")
    return marks.pop() if len(marks) == 1 else None
