"""One length: read exactly, kept as given, rounded once to hundredths of an inch."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Length
from domain.ingestion.values.amounts import amount_at, folded
from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, not_said, overlong, quoted, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

INCHES: Final[dict[str, Fraction]] = {
    "in": Fraction(1),
    "ft": Fraction(12),
    "mm": Fraction(5, 127),
    "cm": Fraction(50, 127),
    "m": Fraction(5000, 127),
}
_LONGEST: Final = 500
_SPELLED: Final[dict[str, str]] = {
    **dict.fromkeys(('"', "in", "inch", "inches", "zoll", "pulgada", "pulgadas", "pouce", "pouces", "inh"), "in"),
    **dict.fromkeys(("'", "ft", "feet", "foot", "fuss", "fuß", "pie", "pies", "fot"), "ft"),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres", "milimetro", "milímetro"), "mm"),
    **dict.fromkeys(("milimetros", "milímetros", "mmt"), "mm"),
    **dict.fromkeys(("cm", "cms", "centimeter", "centimeters", "centimetre", "centimetres", "zentimeter"), "cm"),
    **dict.fromkeys(("centimetro", "centímetro", "centimetros", "centímetros", "cmt"), "cm"),
    **dict.fromkeys(("m", "mt", "mts", "mtr", "meter", "meters", "metre", "metres", "metro", "metros"), "m"),
}
_UNIT: Final = re.compile(
    r"\s*-?(?:(?P<mark>[\"'])"
    r"|(?P<word>[a-zA-Zíß]+)\.?(?![a-zA-Z])"
    r")",
    re.I,
)
_GLUED: Final = re.compile(r"\s*-?(?P<unit>mm|cm|in|ft|m)(?=(?:x\s*\d|[wdhlbt](?![a-z])))", re.I)
_SECOND: Final = re.compile(r"\s*(?:-|to\b|bis\b|a\b|~)\s*(?=[\d.])", re.I)
_ALTERNATIVE: Final = re.compile(r"\s*/\s*(?=\d)")
_INCH_PART: Final = re.compile(r"\s*-?\s*(?=[\d.])")
MAX_HUNDREDTHS: Final = 10_000_000
_AXIS_WORDS: Final = frozenset(
    "w d h l b t dia diameter wide width deep depth high height tall long length approx approximately ca circa overall "
    "about ungefähr aprox".split()
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A length found in a folded text: `unit` None when none stands beside it; `end` is where it stops.

    `choices` says that two lengths stand side by side (`15"/19"`) and neither is the one meant.
    """

    value: Decimal
    unit: str | None
    end: int
    choices: bool = False


def unit_named(word: str) -> str | None:
    """The unit (`in`, `ft`, `mm`, `cm`, `m`) that a spelling means, or None."""
    return _SPELLED.get(word.strip().rstrip(".").lower())


def hundredths(value: Decimal, unit: str) -> int:
    """`value` in hundredths of an inch, rounded half up once from the exact fraction."""
    exact = Fraction(value) * INCHES[unit] * 100
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


@lru_cache(maxsize=65536)
def length(value: Decimal, unit: str) -> Length:
    """The length of `value` in `unit`, with what was given beside it."""
    return {"hundredths_in": hundredths(value, unit), "given": {"value": value, "unit": unit}}


def _unit_at(text: str, position: int) -> tuple[str | None, int]:
    match = _UNIT.match(text, position) or _GLUED.match(text, position)
    if match is None:
        return None, position
    if match.re is _GLUED:
        return _SPELLED[match["unit"].lower()], match.end()
    if match["mark"]:
        return _SPELLED[match["mark"]], match.end()
    if unit := _SPELLED.get(match["word"].lower()):
        return unit, match.end()
    # `1160mml` is a unit with its axis run together, `24inx36in` one with the sign between two sides.
    glued = _GLUED.match(text, position)
    return (_SPELLED[glued["unit"].lower()], glued.end()) if glued else (None, position)


def _inches_after(text: str, position: int) -> tuple[Decimal, int] | None:
    """The inches that follow feet (`5' 3"`, `5'-3"`, `9'8` with its mark lost), below twelve, or None."""
    gap = _INCH_PART.match(text, position)
    found = amount_at(text, gap.end()) if gap else None
    if found is None or found.value >= 12:
        return None
    unit, end = _unit_at(text, found.end)
    lost_mark = unit is None and not text[position : found.end].startswith(" ") and not text[found.end :].strip()
    return (found.value, end) if unit == "in" or lost_mark else None


def _one_at(text: str, position: int) -> Measure | None:
    found = amount_at(text, position)
    if found is None:
        return None
    unit, end = _unit_at(text, found.end)
    if unit == "ft" and (inches := _inches_after(text, end)):
        return Measure(found.value * 12 + inches[0], "in", inches[1])
    return Measure(found.value, unit, end)


def measure_at(text: str, position: int) -> Measure | None:
    """The length that starts at `position` of a folded text, or None.

    Of a range (`27-37"`) and of closed/extended figures (`155/215`) it is the first bound, in the unit either has.
    """
    first = _one_at(text, position)
    if first is None:
        return None
    gap = _SECOND.match(text, first.end) or _ALTERNATIVE.match(text, first.end)
    second = _one_at(text, gap.end()) if gap else None
    if second is None or gap is None:
        return first
    choices = "/" in gap.group() and first.unit is not None
    return Measure(first.value, first.unit or second.unit, second.end, choices)


def checked(measure: Measure, unit: str, text: str) -> Parsed[Length]:
    """The length of `measure` in `unit`: zero is not stated, sizes beyond any furniture are out of range."""
    if measure.choices:
        return refused(ProblemKind.CONFLICT, text, "names two sizes where one is asked for")
    if measure.value == 0:
        return NOTHING
    found = length(measure.value, unit)
    if not 0 < found["hundredths_in"] <= MAX_HUNDREDTHS:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is no size a piece of furniture can have")
    return Parsed(found)


def _leftover_fault(text: str, rest: str, adjacent: bool) -> Fault | None:
    words = re.findall(r"[^\W\d_]+", rest)
    strange = [word for word in words if word.lower() not in _AXIS_WORDS]
    if re.search(r"\d", rest):
        return Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is more than one length.")
    if strange and adjacent:
        return Fault(ProblemKind.UNKNOWN_UNIT, f"{quoted(text)} has a unit of length that is not known.")
    return None


@lru_cache(maxsize=65536)
def parse_length(text: str, unit: str | None = None) -> Parsed[Length]:
    """One length from a cell; `unit` is the column's unit, used when the cell names none.

    `23.5 in`, `53 1/2"`, `5'3"`, `300 cm`, `Width: 80 cm` are read; a range gives its first bound. Problems:
    unreadable, unknown_unit (none stated, or one that is not known), out_of_range (negative), conflict.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return not_said(text)
    flat = re.sub(r"\([^()]*\)", " ", folded(given)).strip()
    start = re.search(r"\d|\.\d", flat)
    if start is None:
        return unreadable(text, "is no length")
    lead = flat[: start.start()]
    if lead.rstrip().endswith("-") and not lead.rstrip(" -"):
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    measure = measure_at(flat, start.start())
    if measure is None:
        return unreadable(text, "is no length")
    fault = _leftover_fault(text, flat[measure.end :], measure.unit is None)
    if fault:
        return Parsed(None, (fault,))
    chosen = measure.unit or unit
    if chosen is None and measure.value:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and neither has its column")
    return checked(measure, chosen or "in", text)
