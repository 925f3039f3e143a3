"""Prices, read exactly to minor units of their currency.

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

from domain.ingestion.data import entries, expressions, load, meanings
from domain.ingestion.values.text import NOTHING, Parsed, cell_parser, conflict, refused, unreadable
from domain.kernel.money import EXPONENTS, minor_units
from domain.kernel.problems import ProblemKind

_SIGNS = {sign: currencies.split() for sign, currencies in meanings(load("currencies")["signs"]).items()}
_WORDS = frozenset(entries(load("currencies")["words"]["idle"]))
_DOT_MARKETS = frozenset(entries(load("currencies")["words"]["dot"]))
_CERTAIN = ("$", "dollar", "dollars")
"""Signs of several currencies that mean the first of them unless the source states another."""
(_PACK, _MEASURED, _TAX, _LEAST) = (expressions("currencies")[name] for name in "pack measured tax least".split())
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
_LAKH = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_ZERO = re.compile(r"0+(?:[.,]0+)?")
_MAX_DIGITS = 15
_WORDY = re.compile(r"[^\W\d_]|[/+]|[.,]\s?-|[€$£]\s?\d\d\s*$")
"""Pattern of cells with more than a number and a sign, whose words have to be read."""


class Price(NamedTuple):
    """An amount in minor units of `currency`; `pack` is the number of pieces that it covers, if stated."""

    minor: int
    currency: str
    pack: int | None = None


def _grouped(number: str, mark: str) -> bool:
    """Return whether a mark separates groups of three digits, or of two as in India."""
    return bool(_GROUPED[mark].fullmatch(number) or (mark == "," and _LAKH.fullmatch(number)))


def plain_number(number: str, decimal: str, currency: str) -> Decimal | None:
    """Return the digits of a price as an exact number; None if its marks are ambiguous."""
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
        return Decimal(f"{whole.replace(group, '')}.{digits}") if _grouped(whole, group) else None
    if bare.count(mark) > 1:
        return Decimal(bare.replace(mark, "")) if _grouped(bare, mark) else None
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


def _signs(words: str) -> list[str]:
    """Return the words beside a number, without known words that do not name a currency."""
    if not words:
        return []
    parts = re.split(r"[\s()*~]+", words.strip().lower())
    return [part for part in parts if part.strip(".:,;-") and part.strip(".:,;") not in _WORDS]


def _currency_of(words: list[str], currency: str | None) -> tuple[str | None, bool]:
    """Return the currency that the words around a number name, and whether all are known and agree.

    An ambiguous sign means the currency that another word names by its code, or else the source's.
    """
    if len(words) == 2 and "".join(words) in _SIGNS:
        words = ["".join(words)]
    hint = next((word.rstrip(".") for word in words if word.rstrip(".") in EXPONENTS), currency)
    chosen = None
    for word in words:
        choices = [word] if word in EXPONENTS else _SIGNS.get(word) or _SIGNS.get(word.rstrip("."))
        if choices is None:
            return None, False
        found = hint if hint in choices else choices[0] if len(choices) == 1 or word in _CERTAIN else None
        if chosen and found and found != chosen:
            return None, False
        chosen = chosen or found
    return chosen if words else currency, True


def _priced(text: str, bare: str, currency: str | None, decimal: str) -> Parsed[Price]:
    numbers = list(_NUMBER.finditer(bare))
    if len(numbers) != 1:
        return unreadable(text, "contains more than one amount" if numbers else "is not a price")
    before, after = bare[: numbers[0].start()].strip(), bare[numbers[0].end() :]
    rounded = _ROUND.match(after)
    after = after[rounded.end() if rounded else 0 :].strip()
    currency_words = [*_signs(before.strip(f"{_MINUS}+ (")), *_signs(after.strip(f"{_MINUS} )"))]
    chosen, is_known = _currency_of(currency_words, currency)
    if not is_known:
        problem = (
            ProblemKind.UNREADABLE
            if max(map(len, (*_signs(before), *_signs(after)))) > 4
            else ProblemKind.UNKNOWN_CURRENCY
        )
        return refused(problem, text, "has no known currency")
    if chosen is None or chosen not in EXPONENTS:
        return refused(ProblemKind.UNKNOWN_CURRENCY, text, "has no currency, and the source has no default currency")
    if rounded and decimal == "auto" and (mark := rounded[0].strip()[0]) in ",.":
        decimal = "comma" if mark == "," else "dot"
    number = plain_number(numbers[0][0], decimal, chosen)
    if number is None:
        return unreadable(text, "can be read as two amounts; set the source's decimal mark")
    minus = tuple(_MINUS)
    bracketed = before.startswith("(") and after.endswith(")")
    if bracketed or before.endswith(minus) or before.startswith(minus) or after.startswith(minus):
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero") if number else NOTHING
    minor = minor_units(number, chosen)
    return Parsed(Price(minor, chosen)) if minor else NOTHING


def _pack(bare: str, notes: list[str]) -> tuple[str, int | None]:
    """Return a price without the unit it is for, and the number of pieces, if stated; note a box of unknown content."""
    match = _PACK.search(bare)
    if match is None:
        return bare, None
    kind = (match["kind"] or "").lower()
    if kind in _BOXES and not match["count"]:
        notes.append("is the price of a whole box")
    return bare[: match.start()], int(match["count"] or (2 if kind in _PAIRS else 0)) or None


@cell_parser(longest=200, kept=65536)
def parse_money(text: str, given: str, currency: str | None = None, decimal: str = "auto") -> Parsed[Price]:
    """Parse a price; zero, blanks and placeholders state no price.

    `currency` is the source's default currency, lower-case ISO 4217; `decimal` is its mark: `dot`, `comma` or `auto`. Problems:
    unreadable (words, ranges, prices by measure, ambiguous marks), unknown_currency, out_of_range (negative); conflict for a
    minimum price and a price without tax, which are read nevertheless.
    """
    if _ZERO.fullmatch(given):
        return NOTHING
    if not _WORDY.search(given):
        return _priced(text, given, currency, decimal)
    if _MEASURED.search(given):
        return unreadable(text, "is a price for a measure or a period, not for the item")
    notes: list[str] = []
    bare, pack = _pack(given, notes)
    if tax := _TAX.search(bare):
        after = (tax["after"] or "").strip().lower()
        if tax["without"] or after.startswith(("ex", "es", "ap")) or re.search(r"(?i)\bht", tax[0]):
            notes.append("is a price without tax")
        bare = f"{bare[: tax.start()]} {bare[tax.end() :]}"
    if pack is None:
        bare, pack = _pack(bare, notes)
    bare = _LABEL.sub("", bare)
    if least := _LEAST.match(bare):
        notes.append("states only a minimum price")
        bare = bare[least.end() :]
    parsed = _priced(text, _CENTS.sub(r"\1.\3 \2", bare), currency, decimal)
    if parsed.value is None:
        return parsed
    return Parsed(parsed.value._replace(pack=pack), tuple(conflict(text, note) for note in notes))


def decimal_shown(samples: list[str]) -> str | None:
    """Return the decimal mark that sample prices of one column prove, `dot` or `comma`, or None."""
    shown = set()
    for sample in samples:
        number = re.search(r"\d[\d.,]*\d", sample)
        if number is None:
            continue
        if re.search(r",\d{1,2}$", number[0]):
            shown.add("comma")
        elif re.search(r"\.\d{1,2}$", number[0]) or re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number[0]):
            shown.add("dot")
    return shown.pop() if len(shown) == 1 else None
