"""One weight: read exactly, kept as given, rounded once to hundredths of a pound.

    cell     := [label [":"]] weight [("-" | "to" …) weight] [confirm] [words]
    weight   := amount unit [amount unit]         12 lb 4 oz, 4 kg 500 g | unit amount: kg 20 | amount: in the column's unit
    confirm  := ("(" | "/") weight [")"]          the same in another unit; another weight is told and the first kept
    label    := "weight" | "Gewicht" | "net" …    of a load or a capacity it is no weight of the piece: told

Every figure of the cell is used, confirms the one used, or is told. Of a line about other things, too, the one figure that is
labelled as a weight is read, or the only one that has a unit of weight.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Weight
from domain.ingestion.values.amounts import amount_at, folded
from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, overlong, quoted, refused, unreadable
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
    **dict.fromkeys(
        ("kilogramo", "kilogramos", "kilogramos.", "chilogrammo", "chilogrammi", "kilogramme", "kilogrammes"), "kg"
    ),
    **dict.fromkeys(("кг", "килограмм"), "kg"),
    **dict.fromkeys(("grammi", "grammo", "gm", "gms", "г"), "g"),
    **dict.fromkeys(("livre", "livres", "libbre", "ib", "ibs", "pds"), "lb"),
}
_WORD: Final = re.compile(r"\s*+-?([^\W\d_]{1,12})\.?")
_START: Final = re.compile(r"(?<![^\W_])\.?\d|(?<=[^\W\d_])\d")
_SECOND: Final = re.compile(r"\s*+(?:-|to\b|bis\b|à|a\b|tot\b|~)\s*+(?=\.?\d)", re.I)
_FURTHER: Final = re.compile(r"[\s,]*+(?:and\s|&\s)?(?=\d)")
_UNIT_BEFORE: Final = re.compile(r"(?<![^\W_])(kgs?|lbs?|gr?|oz)\.?:?\s{0,2}$", re.I)
_LOAD: Final = re.compile(
    r"raumgewicht|densit|dichte|dichtheid|gęstość|плотност|load|capacit|\bcap\b|rating|\brated|support|holds?\b|limit|tested|geprüft|getestet|belast|trag"
    r"|charge|carga|portata|draag|capienza|nośnoś|nosnoś|udźwig|obciąż|нагруз|грузопод|\bmax|máx|massim|høyest|höchst|user|person|benutzer|utilisateur"
    r"|up to|bis\b|jusqu|hasta|fino a|upp till|opp til|op til|до\b",
    re.I,
)
"""Words of what a piece bears, or of what is measured otherwise, before a figure or behind it."""
_BY_MEASURE: Final = re.compile(
    r"\s{0,2}(?:/|\b(?:per|pro|je|par|por|a)\b)\s{0,2}(?:m|yd|ft|sq|qm|cm|seat|sitz|person|shelf|drawer|boden|étag|plank)",
    re.I,
)
_ABOUT_SIZES: Final = re.compile(r"\d\s?(?:\"|''|cm|mm|in\b)?\s?[wdhlbt]?\s{0,2}x\s{0,2}\d", re.I)
_OTHER_KINDS: Final = re.compile(r"\bx\s*+$|\d\s*+x\s*+$|per\b|each\b", re.I)
_COUNT_BEHIND: Final = re.compile(r"\s*+(?:pcs?|pieces?|packs?|boxes|ctns?|cartons?|/)", re.I)
_LABELLED: Final = re.compile(
    r"(?:weight|wt|gewicht|poids|peso|vikt|v[æa]e?gt|waga|вес)\.?\s?[:=]?\s?(\d[\d.,]{0,10}\s?(?:kgs?|lbs?|кг))\b", re.I
)
_COUNTED: Final = re.compile(r"\d\s*x\s*\d[\d.,]{0,10}\s?(?:kg|lb)|(?:kg|lb)s?\s*x\s*\d|(?:per|each|je|pro)\b", re.I)
_WITH_UNIT: Final = re.compile(r"(?<![\w.,])\d[\d.,]{0,10}\s?(?:kgs?|lbs?)\b(?!\s?/)", re.I)
_LIKELY_MOST: Final = 100_000
"""Hundredths of a pound: beyond 1,000 lb a reading is the less likely one of two."""
_SAME_WITHIN: Final = 120
MAX_HUNDREDTHS: Final = 1_000_000_000


def weight_unit_named(word: str) -> str | None:
    """The unit (`lb`, `oz`, `g`, `kg`) that a spelling means, or None."""
    return _SPELLED.get(word.strip().rstrip(".").lower())


def hundredths(value: Decimal, unit: str) -> int:
    """`value` in hundredths of a pound, rounded half up once from the exact fraction."""
    exact = Fraction(value) * POUNDS[unit] * 100
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def weight(value: Decimal, unit: str) -> Weight:
    """The weight of `value` in `unit`, with what was given beside it, to the last nought: 40.0 is not given as 40."""
    return _weight(str(value), unit)


@lru_cache(maxsize=65536)
def _weight(text: str, unit: str) -> Weight:
    # Kept by the text of a number: equal numbers (40, 40.0) would share what the first of them was given as.
    value = Decimal(text)
    return {"hundredths_lb": hundredths(value, unit), "given": {"value": value, "unit": unit}}


def checked(value: Decimal, unit: str, text: str) -> Parsed[Weight]:
    """The weight of `value` in `unit`: zero is not stated, what no freight carries is out of range."""
    if value == 0:
        return NOTHING
    found = weight(value, unit)
    if found["hundredths_lb"] > MAX_HUNDREDTHS:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is no weight a piece of furniture can have")
    return Parsed(found)


def settled(value: Decimal, other: Decimal | None, unit: str, decimal: str = "auto") -> Decimal | None:
    """Which of two readings of `1,250` or `1.250` a weight in `unit` is; None where both are likely."""
    if other is None:
        return value
    if decimal != "auto":
        return value if decimal == "dot" else other
    small, great = min(value, other), max(value, other)
    if unit == "kg" or hundredths(great, unit) > _LIKELY_MOST:
        # A dot in pounds is a decimal one; of a comma in pounds nobody knows.
        return small if unit in ("kg", "g") or value == small else None
    return value if (value == great) == (unit == "g") else None


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A weight found in a folded text: its value in `unit`, the first bound of a range, and where it ends."""

    value: Decimal
    unit: str | None
    end: int
    other: Decimal | None = None
    strange: str = ""


def _one_at(flat: str, position: int) -> _Weighed | None:
    found = amount_at(flat, position)
    if found is None:
        return None
    word = _WORD.match(flat, found.end)
    unit = weight_unit_named(word[1]) if word else None
    if word is None or unit is None:
        return _Weighed(found.value, None, found.end, found.other, word[1] if word else "")
    return _Weighed(found.value, unit, word.end(), found.other)


_SMALLER: Final = {"lb": ("oz", Decimal(16)), "kg": ("g", Decimal(1000))}


def _weight_at(flat: str, position: int) -> _Weighed | None:
    """The weight that starts at `position`: pounds with ounces, kilograms with grams, of a range the first bound."""
    first = _one_at(flat, position)
    if first is None:
        return None
    if gap := _SECOND.match(flat, first.end):
        second = _one_at(flat, gap.end())
        if second is not None and (first.unit is None or second.unit in (None, first.unit)):
            return _Weighed(
                first.value, first.unit or second.unit, second.end, first.other, first.strange and second.strange
            )
    if first.unit in _SMALLER and (gap := _FURTHER.match(flat, first.end)):
        unit, parts = _SMALLER[first.unit]
        second = _one_at(flat, gap.end())
        if second is not None and second.unit == unit and second.value < parts:
            return _Weighed(first.value + second.value / parts, first.unit, second.end)
    return first


def _agree(first: _Weighed, second: _Weighed, unit: str | None) -> bool:
    one, two = first.unit or unit, second.unit
    if one is None or two is None:
        return False
    a, b = hundredths(first.value, one), hundredths(second.value, two)
    return abs(a - b) <= max(_SAME_WITHIN, max(a, b) // 50)


def _rest(text: str, flat: str, first: _Weighed, unit: str | None) -> tuple[Fault, ...]:
    """What the figures behind a weight say that it does not."""
    position = first.end
    while start := _START.search(flat, position):
        second = _weight_at(flat, start.start())
        if second is None or not (
            _agree(first, second, unit) or (second.unit is None and _COUNT_BEHIND.match(flat, second.end))
        ):
            return (Fault(ProblemKind.CONFLICT, f"{quoted(text)} states more than one weight; the first is kept."),)
        position = second.end
    return ()


def _read(text: str, flat: str, start: int, unit: str | None, decimal: str) -> Parsed[Weight]:
    first = _weight_at(flat, start)
    if first is None:
        return unreadable(text, "is no weight")
    before = _UNIT_BEFORE.search(flat, 0, start)
    named = first.unit or (weight_unit_named(before[1]) if before else None)
    label = flat[: min(start, before.start() if before else start)]
    if _LOAD.search(label) or _LOAD.search(flat, first.end):
        return unreadable(text, "is a load, not the weight of the piece")
    if _BY_MEASURE.match(flat, first.end):
        return unreadable(text, "is a weight by measure")
    if _OTHER_KINDS.search(label) or flat[first.end :].lstrip().lower().startswith("x "):
        return unreadable(text, "counts weights")
    if named is None and first.strange and first.strange.lower() not in _IDLE:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has a unit of weight that is not known")
    chosen = named or unit
    if chosen is None and first.value:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and neither has its column")
    value = settled(first.value, first.other, chosen or "lb", decimal)
    if value is None:
        return refused(ProblemKind.CONFLICT, text, "has a mark that may part thousands or decimals")
    parsed = checked(value, chosen or "lb", text)
    return Parsed(parsed.value, parsed.faults or _rest(text, flat, first, unit))


_IDLE: Final = frozenset("approx ca circa about each per net gross weight environ env und and".split())


@lru_cache(maxsize=65536)
def parse_weight(text: str, unit: str | None = None, decimal: str = "auto") -> Parsed[Weight]:
    """One weight from a cell; `unit` is the column's unit, used when the cell names none.

    `4.93kg`, `Weight: 217.8 lbs`, `12 lb 4 oz`, `50 lb (22.7 kg)` are read; a range gives its first bound; zero means not
    stated; `decimal` is the source's mark. Problems: unreadable, unknown_unit, out_of_range (negative), conflict.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return NOTHING
    flat = folded(given.replace("#", " lb ")).strip()
    start = _START.search(flat)
    if start is None:
        return unreadable(text, "is no weight")
    lead = flat[: start.start()]
    if lead.endswith("-") and not lead[-2:-1].isalnum():
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    found = _read(text, flat, start.start(), unit, decimal)
    idle = found.value is not None or _LOAD.search(flat) or _COUNTED.search(flat)
    lone = [] if idle else _LABELLED.findall(flat)
    if not idle and not lone and _ABOUT_SIZES.search(flat):
        lone = _WITH_UNIT.findall(flat)
    if len(lone) == 1:
        # A packing line (`1 pc/ctn, gross weight 7.5 kg, carton 58 x 32 x 42 cm`) says which of its figures is the weight.
        return _read(text, lone[0], _START.search(lone[0]).start(), unit, decimal)  # type: ignore[union-attr]  # it has a digit
    return found
