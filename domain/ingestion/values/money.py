"""Prices as vendors write them, read exactly to minor units of the right currency."""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Parsed, overlong, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.money import EXPONENTS, minor_units
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 200
_SIGNS: Final[dict[str, tuple[str, ...]]] = {
    "us$": ("usd",),
    "ca$": ("cad",),
    "c$": ("cad",),
    "cad$": ("cad",),
    "a$": ("aud",),
    "au$": ("aud",),
    "nz$": ("nzd",),
    "hk$": ("hkd",),
    "s$": ("sgd",),
    "mx$": ("mxn",),
    "r$": ("brl",),
    "$": ("usd", "cad", "aud", "nzd", "hkd", "sgd", "mxn", "cop", "ars", "clp", "twd", "uyu"),
    "€": ("eur",),
    "euro": ("eur",),
    "euros": ("eur",),
    "£": ("gbp",),
    "¥": ("jpy", "cny"),
    "₹": ("inr",),
    "₺": ("try",),
    "tl": ("try",),
    "₫": ("vnd",),
    "₩": ("krw",),
    "₪": ("ils",),
    "zł": ("pln",),
    "zl": ("pln",),
    "kč": ("czk",),
    "ft": ("huf",),
    "fr.": ("chf",),
    "sfr": ("chf",),
    "dhs": ("aed",),
    "dhs.": ("aed",),
    "dh": ("aed", "mad"),
    "sr": ("sar",),
    "qr": ("qar",),
    "kd": ("kwd",),
    "bd": ("bhd",),
    "r": ("zar",),
    "rm": ("myr",),
    "rs": ("inr", "pkr", "lkr"),
    "rs.": ("inr", "pkr", "lkr"),
    "kr": ("sek", "nok", "dkk"),
    "kr.": ("dkk", "sek", "nok"),
    "dollar": ("usd",),
    "dollars": ("usd",),
}
_CERTAIN: Final = frozenset(("$",))
"""Signs that many currencies share but that mean the first of them where the source says nothing else."""
_PACK: Final = re.compile(r"\s*(?:/|per\b)\s*(\d+)?[\s-]*(?:pack|pk|pcs?|pieces?|set|each|ea|unit)\.?\s*$", re.I)
_LEAD: Final = re.compile(r"^[+]?\s*(?:[a-z][a-z ]*:|from\b|ab\b|desde\b|only\b|nur\b)\s*", re.I)
_SHAPE: Final = re.compile(
    r"^(?P<minus>[-−(])?\s*(?P<before>[^\d\s.,()'’+−-]*\.?)\s*(?P<minus2>[-−])?\s*"
    r"(?P<number>\d[\d.,'’ \u00a0\u202f]*\d|\d|\.\d+)\s*(?:[.,]?\s?[-–—](?!\d))?\s*(?P<after>[^\d.,()+]*\.?)\)?$"
)
_GROUPED: Final = {"comma": re.compile(r"\d{1,3}(?:\.\d{3})+"), "dot": re.compile(r"\d{1,3}(?:,\d{3})+")}
_LAKH: Final = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_DOT_MARKETS: Final = frozenset(
    "usd gbp cad aud nzd hkd sgd sar aed mxn zar inr cny jpy thb php myr ils kwd bhd omr jod qar".split()
)
_ZERO: Final = re.compile(r"0+(?:[.,]0+)?")
_MAX_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class Price:
    """An amount in minor units of `currency`; `pack` is the number of pieces it is for, when the text says so."""

    minor: int
    currency: str
    pack: int | None = None


def _by_sign(word: str, currency: str | None) -> tuple[str | None, bool]:
    """The currency that a sign or code means, and whether it was understood; the source's own settles shared signs."""
    low = word.strip().lower()
    if not low:
        return currency, True
    if low in EXPONENTS:
        return low, True
    choices = _SIGNS.get(low) or _SIGNS.get(low.rstrip("."))
    if choices is None:
        return None, False
    if currency in choices:
        return currency, True
    return (choices[0], True) if len(choices) == 1 or low in _CERTAIN else (None, True)


def _one_mark(number: str, mark: str, decimal: str, currency: str) -> str | None:
    """A number with a single kind of mark as plain digits with a dot; None where both readings are open."""
    other = "dot" if mark == "," else "comma"
    groups = _GROUPED[other].fullmatch(number)
    digits = len(number) - number.rindex(mark) - 1
    if number.count(mark) > 1:
        indian = mark == "," and _LAKH.fullmatch(number)
        return number.replace(mark, "") if groups or indian else None
    as_decimal, as_groups = number.replace(mark, "."), number.replace(mark, "")
    if not groups or number.startswith("0"):
        return as_decimal
    if decimal == other:
        return as_groups
    # A setting says that this mark is the decimal one, yet three digits after it are no price in most currencies.
    if EXPONENTS[currency] == digits:
        return as_decimal
    if mark == ",":
        return as_groups
    return as_decimal if decimal == "dot" or currency in _DOT_MARKETS else None


def plain_number(number: str, decimal: str, currency: str) -> Decimal | None:
    """The digits of a price as an exact number; None when its marks can be read in two ways."""
    bare = re.sub(r"[\s'’\u00a0\u202f]", "", number)
    if len(re.sub(r"\D", "", bare.split(".")[0] if decimal != "comma" else bare)) > _MAX_DIGITS:
        return None
    dot, comma = bare.rfind("."), bare.rfind(",")
    if dot >= 0 and comma >= 0:
        mark, group = (".", ",") if dot > comma else (",", ".")
        whole = bare[: max(dot, comma)]
        sound = _GROUPED["dot" if mark == "." else "comma"].fullmatch(whole) or (
            group == "," and _LAKH.fullmatch(whole)
        )
        return Decimal(whole.replace(group, "") + "." + bare[max(dot, comma) + 1 :]) if sound else None
    if dot < 0 and comma < 0:
        return Decimal(bare)
    found = _one_mark(bare, "." if dot >= 0 else ",", decimal, currency)
    return None if found is None else Decimal(found)


def _currency_of(match: re.Match[str], currency: str | None) -> tuple[str | None, bool]:
    before, after = match["before"].strip(), match["after"].strip()
    named, known = _by_sign(before, currency)
    if after and not before:
        return _by_sign(after, currency)
    if after and before:
        exact, known_after = _by_sign(after, currency)
        return (exact, known) if known_after and exact else (named, known)
    return named, known


def _priced(text: str, match: re.Match[str], pack: int | None, currency: str | None, decimal: str) -> Parsed[Price]:
    chosen, known = _currency_of(match, currency)
    if not known:
        return refused(
            ProblemKind.UNREADABLE if len(match["after"]) > 4 else ProblemKind.UNKNOWN_CURRENCY,
            text,
            "has no known currency",
        )
    if chosen is None or chosen not in EXPONENTS:
        return refused(ProblemKind.UNKNOWN_CURRENCY, text, "names no currency, and neither does the source")
    number = plain_number(match["number"], decimal, chosen)
    if number is None:
        return unreadable(text, "can be read as two amounts; set the source's decimal mark")
    if match["minus"] or match["minus2"]:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero") if number else NOTHING
    minor = minor_units(number, chosen)
    return Parsed(Price(minor, chosen, pack)) if minor else NOTHING


@lru_cache(maxsize=65536)
def parse_money(text: str, currency: str | None = None, decimal: str = "auto") -> Parsed[Price]:
    """A price from a cell.

    `currency` is the source's, lower-case ISO 4217, used when the cell names none; `decimal` is `dot`, `comma` or
    `auto`. Zero, blanks and placeholders state no price. Problems: unreadable (words, ranges, marks that can be read in
    two ways), unknown_currency, out_of_range (negative).
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None or _ZERO.fullmatch(given):
        return NOTHING
    bare = _LEAD.sub("", given)
    packed = _PACK.search(bare)
    pack = int(packed[1]) if packed and packed[1] and len(packed[1]) < 6 else None
    match = _SHAPE.match(bare[: packed.start()] if packed else bare)
    if match is None:
        return unreadable(text, "is no price")
    return _priced(text, match, pack or None, currency, decimal)


def decimal_shown(samples: list[str]) -> str | None:
    """The decimal mark that sample prices of one column prove, `dot` or `comma`, or None."""
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
