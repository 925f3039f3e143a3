"""One weight: read exactly, kept as given, rounded once to hundredths of a pound."""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Weight
from domain.ingestion.values.amounts import amount_at, folded
from domain.ingestion.values.parsed import NOTHING, Parsed, overlong, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

POUNDS: Final[dict[str, Fraction]] = {
    "lb": Fraction(1),
    "oz": Fraction(1, 16),
    "g": Fraction(100000, 45359237),
    "kg": Fraction(100000000, 45359237),
}
_LONGEST: Final = 500
_SPELLED: Final[dict[str, str]] = {
    **dict.fromkeys(("lb", "lbs", "pound", "pounds", "pfund", "libra", "libras", "lbr"), "lb"),
    **dict.fromkeys(("oz", "ozs", "ounce", "ounces", "onz"), "oz"),
    **dict.fromkeys(("g", "gr", "grs", "gram", "grams", "gramm", "gramme", "grammes", "gramo", "gramos", "grm"), "g"),
    **dict.fromkeys(("kg", "kgs", "kilo", "kilos", "kilogram", "kilograms", "kilogramm", "kilogramme", "kgm"), "kg"),
    **dict.fromkeys(("kilogramo", "kilogramos"), "kg"),
}
_WORD: Final = re.compile(r"\s*([^\W\d_]+)\.?")
_LEAD: Final = re.compile(r"[^\d.]*")
_RANGE: Final = re.compile(r"\s*(?:-|to)\s*[\d.]")
MAX_HUNDREDTHS: Final = 1_000_000_000


def weight_unit_named(word: str) -> str | None:
    """The unit (`lb`, `oz`, `g`, `kg`) that a spelling means, or None."""
    return _SPELLED.get(word.strip().rstrip(".").lower())


def hundredths(value: Decimal, unit: str) -> int:
    """`value` in hundredths of a pound, rounded half up once from the exact fraction."""
    exact = Fraction(value) * POUNDS[unit] * 100
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


@lru_cache(maxsize=65536)
def weight(value: Decimal, unit: str) -> Weight:
    """The weight of `value` in `unit`, with what was given beside it."""
    return {"hundredths_lb": hundredths(value, unit), "given": {"value": value, "unit": unit}}


def checked(value: Decimal, unit: str, text: str) -> Parsed[Weight]:
    """The weight of `value` in `unit`: zero is not stated, what no freight carries is out of range."""
    if value == 0:
        return NOTHING
    found = weight(value, unit)
    if found["hundredths_lb"] > MAX_HUNDREDTHS:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is no weight a piece of furniture can have")
    return Parsed(found)


def _ounces_after(flat: str, position: int) -> tuple[Decimal, int] | None:
    gap = re.compile(r"[\s,]*").match(flat, position)
    found = amount_at(flat, gap.end()) if gap else None
    word = _WORD.match(flat, found.end) if found else None
    if found is None or word is None or weight_unit_named(word[1]) != "oz":
        return None
    return found.value / 16, word.end()


def _found(text: str, flat: str, position: int, unit: str | None) -> Parsed[Weight]:
    found = amount_at(flat, position)
    if found is None:
        return unreadable(text, "is no weight")
    word = _WORD.match(flat, found.end)
    named = weight_unit_named(word[1]) if word else None
    if word and named is None and not _RANGE.match(flat, found.end):
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has a unit of weight that is not known")
    value, end = found.value, word.end() if word else found.end
    if named == "lb" and (ounces := _ounces_after(flat, end)):
        value, end = value + ounces[0], ounces[1]
    if re.search(r"\d", flat[end:]) and not _RANGE.match(flat, end):
        return unreadable(text, "is more than one weight")
    if named is None and (gap := _RANGE.match(flat, end)):
        # Of `20-25 lb` the unit stands behind the second bound.
        second = amount_at(flat, gap.end() - 1)
        behind = _WORD.match(flat, second.end) if second else None
        named = weight_unit_named(behind[1]) if behind else None
    chosen = named or unit
    if chosen is None and value:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and neither has its column")
    return checked(value, chosen or "lb", text)


@lru_cache(maxsize=65536)
def parse_weight(text: str, unit: str | None = None) -> Parsed[Weight]:
    """One weight from a cell; `unit` is the column's unit, used when the cell names none.

    `4.93kg`, `Weight: 217.8 lbs`, `12 lb 4 oz` are read; a range gives its first bound; zero means not stated.
    Problems: unreadable, unknown_unit, out_of_range (negative).
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return NOTHING
    flat = re.sub(r"\([^()]*\)", " ", folded(given.replace("#", " lb "))).strip()
    lead = _LEAD.match(flat)
    start = lead.end() if lead else 0
    if start == len(flat):
        return unreadable(text, "is no weight")
    if flat[:start].strip() == "-":
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    return _found(text, flat, start, unit)
