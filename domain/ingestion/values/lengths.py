"""One length: read exactly, kept as given, rounded once to hundredths of an inch.

length  := amount [unit] [inches]             5' 3", 5 ft 3 in, 62,1 cm
measure := length [("-" | "to" | "bis" | "à" …) length]   a range: its first bound
         | length ("/" length)+               the same in another unit, or closed and extended, or a choice (told)
cell    := [words] measure [words | "(" measure ")"]      every figure in the cell is used, confirmed or told
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from domain.catalogue.data import Length
from domain.ingestion.values.amounts import amount_at, folded
from domain.ingestion.values.labels import NEUTRAL, label_of, words_in
from domain.ingestion.values.parsed import NOTHING, Parsed, not_said, overlong, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

INCHES: Final[dict[str, Fraction]] = {
    "in": Fraction(1),
    "ft": Fraction(12),
    "mm": Fraction(5, 127),
    "cm": Fraction(50, 127),
    "m": Fraction(5000, 127),
}
_SPELLED: Final[dict[str, str]] = {
    **dict.fromkeys(
        ('"', "in", "inch", "inches", "zoll", "pulgada", "pulgadas", "pouce", "pouces", "inh", "duim"), "in"
    ),
    **dict.fromkeys(
        ("ins", "inchs", "inche", "pollice", "pollici", "plg", "pulg", "tum", "tommer", "cal", "cali", "дюйм"), "in"
    ),
    **dict.fromkeys(("дюйма", "дюймов", "polegada", "polegadas", "inc"), "in"),
    **dict.fromkeys(
        ("'", "ft", "feet", "foot", "fuss", "fuß", "pie", "pies", "fot", "pied", "pieds", "piede", "piedi", "voet"),
        "ft",
    ),
    **dict.fromkeys(("мм", "millimetri", "millimetro", "millimètre", "millimètres", "mms"), "mm"),
    **dict.fromkeys(("см", "centimetri", "centimètre", "centimètres", "sentimeter", "centymetrów"), "cm"),
    **dict.fromkeys(("м", "metri", "mètre", "mètres"), "m"),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres", "milimetro", "milímetro"), "mm"),
    **dict.fromkeys(("milimetros", "milímetros", "mmt"), "mm"),
    **dict.fromkeys(("cm", "cms", "centimeter", "centimeters", "centimetre", "centimetres", "zentimeter"), "cm"),
    **dict.fromkeys(("centimetro", "centímetro", "centimetros", "centímetros", "cmt"), "cm"),
    **dict.fromkeys(("m", "mt", "mts", "mtr", "meter", "meters", "metre", "metres", "metro", "metros"), "m"),
}
_UNIT: Final = re.compile(
    r"\s*+-?(?:(?P<mark>[\"'])"
    r"|(?P<word>[^\W\d_]{1,12})\.?(?![^\W\d_²³])"
    r")",
    re.I,
)
_GLUED: Final = re.compile(
    r"\s*+-?(?P<unit>mm|cm|in|ft|m)\.?(?=(?:x\s*+[\d.]|x(?:[wdhlbt]|dia)(?![a-z])|(?:[wdhlbt]|dia)(?:x\s*+[\d.]|x(?:[wdhlbt]|dia)(?![a-z])|(?![a-z]))|x(?![a-z])))",
    re.I,
)
_SECOND: Final = re.compile(
    r"\s*+(?:-|to\b|bis\b|à|(?-i:a)\b|tot\b|til\b|till\b|do\b|up to\b|~|\.\.+|…)\s*+(?=\.?\d)", re.I
)
_ALTERNATIVE: Final = re.compile(r"\s*+/\s*+(?=\.?\d)")
_INCH_PART: Final = re.compile(r"\s*+(?:-|,|and\b|&)?\s*+(?=\.?\d)")
_LIKELY_MOST: Final = 100_000
"""Hundredths of an inch: beyond 1,000 inches a reading is the less likely one of two."""
_SAME_WITHIN: Final = 60
"""Hundredths of an inch by which two statements of one length may differ: one of them was rounded."""
METRIC: Final = ("mm", "cm", "m")
MAX_HUNDREDTHS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Measure:
    """A length found in a folded text: `unit` None when none stands beside it; `end` is where it stops.

    `choices` says that two lengths stand side by side (`15"/19"`) and neither is the one meant; `other` is the value
    if its one mark means the other thing; `upper` the further figure of a range, of which the first was taken.
    """

    value: Decimal
    unit: str | None
    end: int
    choices: bool = False
    other: Decimal | None = None
    upper: Decimal | None = None


def unit_named(word: str) -> str | None:
    """The unit (`in`, `ft`, `mm`, `cm`, `m`) that a spelling means, or None."""
    return _SPELLED.get(word.strip().rstrip(".").lower())


def hundredths(value: Decimal, unit: str) -> int:
    """`value` in hundredths of an inch, rounded half up once from the exact fraction."""
    exact = Fraction(value) * INCHES[unit] * 100
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def length(value: Decimal, unit: str) -> Length:
    """The length of `value` in `unit`, with what was given beside it, to the last nought: 40.0 is not given as 40."""
    return _length(str(value), unit)


@lru_cache(maxsize=65536)
def _length(text: str, unit: str) -> Length:
    # Kept by the text of a number: equal numbers (40, 40.0) would share what the first of them was given as.
    value = Decimal(text)
    return {"hundredths_in": hundredths(value, unit), "given": {"value": value, "unit": unit}}


def settled(value: Decimal, other: Decimal | None, unit: str, decimal: str = "auto") -> Decimal | None:
    """Which of two readings of `1,250` or `1.250` a length in `unit` is; None where both are likely."""
    if other is None:
        return value
    small, great = min(value, other), max(value, other)
    if decimal != "auto":
        return value if (decimal == "dot") else other
    if unit == "m" or hundredths(great, unit) > _LIKELY_MOST:
        return small
    if unit == "mm":
        # Nobody writes a thousandth of a millimetre.
        return great
    return value if value == small else None


def same_length(first: Measure, second: Measure, unit: str | None) -> bool:
    """Whether two measures state one length in two units, roundings allowed."""
    one, two = first.unit or unit, second.unit or unit
    if one is None or two is None or one == two:
        return False
    values = settled(first.value, first.other, one), settled(second.value, second.other, two)
    if values[0] is None or values[1] is None:
        return False
    a, b = hundredths(values[0], one), hundredths(values[1], two)
    return abs(a - b) <= max(_SAME_WITHIN, max(a, b) // 66)


def _unit_at(text: str, position: int) -> tuple[str | None, int]:
    match = _UNIT.match(text, position) or _GLUED.match(text, position)
    if match is None:
        return None, position
    if match.re is _GLUED:
        return _SPELLED[match["unit"].lower()], match.end()
    if match["mark"]:
        return _SPELLED[match["mark"]], match.end()
    # `20 inH` is twenty inches high, `20 inh` a slip of the pen.
    if (
        (unit := _SPELLED.get(match["word"].lower()))
        and match["word"] != "inH"
        and not text.startswith(("²", "³"), match.end())
    ):
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
    lost_mark = unit is None and not text[position : found.end].startswith(" ") and _LOST_MARK.match(text, found.end)
    return (found.value, end) if unit == "in" or lost_mark else None


_LOST_MARK: Final = re.compile(r"\s*+(?:$|x\s*+\d|[wdhlbt](?![^\W\d_])|[,;)])", re.I)


def _one_at(text: str, position: int) -> Measure | None:
    found = amount_at(text, position)
    if found is None:
        return None
    unit, end = _unit_at(text, found.end)
    if unit == "ft" and (inches := _inches_after(text, end)):
        return Measure(found.value * 12 + inches[0], "in", inches[1])
    return Measure(found.value, unit, end, other=found.other)


def _ranged(first: Measure, second: Measure) -> Measure:
    """Two bounds as one measure, in the unit either has; a second one below the first is no range but a choice."""
    unit = first.unit or second.unit
    falls = hundredths(second.value, second.unit or unit or "in") <= hundredths(first.value, unit or "in")
    return Measure(first.value, unit, second.end, falls, first.other, second.value)


def _botched(first: Decimal, second: Decimal) -> bool:
    """Whether two figures with a slash may be a fraction gone wrong (`60/32`, `1/3`) rather than two figures."""
    return second in (2, 4, 8, 16, 32, 64) if second < first else second <= 16


def measure_at(text: str, position: int, unit: str | None = None, slashes: bool = True) -> Measure | None:
    """The length that starts at `position` of a folded text, or None; `unit` is the column's.

    Of a range (`27-37"`) and of closed/extended figures (`155/215`) it is the first bound, in the unit either has; where
    `slashes` part sides they part no figures of one.
    """
    first = _one_at(text, position)
    if first is None:
        return None
    if gap := _SECOND.match(text, first.end):
        second = _one_at(text, gap.end())
        return first if second is None else _ranged(first, second)
    while slashes and (gap := _ALTERNATIVE.match(text, first.end)):
        second = _one_at(text, gap.end())
        if second is None:
            break
        if same_length(first, second, unit):
            first = Measure(first.value, first.unit, second.end, first.choices, first.other)
        else:
            choices = first.choices or first.unit is not None or _botched(first.value, second.value)
            first = Measure(first.value, first.unit or second.unit, second.end, choices, first.other, second.value)
    return first


def checked(measure: Measure, unit: str, text: str, decimal: str = "auto") -> Parsed[Length]:
    """The length of `measure` in `unit`: zero is not stated, sizes beyond any furniture are out of range."""
    if measure.choices:
        return refused(ProblemKind.CONFLICT, text, "names two sizes where one is asked for")
    if measure.value == 0:
        return NOTHING
    value = settled(measure.value, measure.other, unit, decimal)
    if value is None:
        return refused(ProblemKind.CONFLICT, text, "has a mark that may part thousands or decimals")
    found = length(value, unit)
    if not 0 < found["hundredths_in"] <= MAX_HUNDREDTHS:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is no size a piece of furniture can have")
    return Parsed(found)


_LONGEST: Final = 500
_NUMBER: Final = re.compile(r"(?<![^\W_])\.?\d|(?<=x)\d", re.I)
_TRAILING: Final = re.compile(r"[\s.,;:()=_-]*+")
_AWAY: Final = re.compile(r"\s*+(?:\+\s?/\s?-|\+-|±)\s*+$")
_COUNTED: Final = re.compile(r"\s*+(?:pcs?|pieces?|packs?|pk|ctn|sets?|/)\b", re.I)
_CUT_OFF: Final = re.compile(r"x\W*+$", re.I)


def _others_in(flat: str, measure: Measure, unit: str | None) -> bool:
    """Whether a text holds, after a measure, a figure that neither confirms it nor counts pieces nor is its tolerance."""
    position = measure.end
    while start := _NUMBER.search(flat, position):
        second = measure_at(flat, start.start(), unit)
        if second is None:
            return True
        known = (
            same_length(measure, second, unit)
            or _AWAY.search(flat, position, start.start())
            or (second.unit is None and _COUNTED.match(flat, second.end))
        )
        if not known:
            return True
        position = second.end
    return False


def _leftover(text: str, flat: str, measure: Measure, unit: str | None) -> Parsed[Any] | None:
    """What is wrong with the words around a measure, if anything."""
    if _others_in(flat, measure, unit):
        return unreadable(text, "is more than one length")
    tail = flat[measure.end :]
    if _CUT_OFF.search(tail) and label_of(tail).role == "":
        return unreadable(text, "is cut off after its first side")
    gap = _TRAILING.match(tail)
    words = words_in(tail)
    bracketed = gap is not None and "(" in gap[0]
    if measure.unit is None and words and not bracketed and not label_of(words[0]).role and words[0] not in NEUTRAL:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has a unit of length that is not known")
    return None


@lru_cache(maxsize=65536)
def parse_length(text: str, unit: str | None = None, decimal: str = "auto") -> Parsed[Length]:
    """One length from a cell; `unit` is the column's unit, used when the cell names none.

    `23.5 in`, `53 1/2"`, `5'3"`, `300 cm`, `Width: 80 cm`, `30 in (76 cm)` are read; a range gives its first bound;
    `decimal` is the source's mark, `dot`, `comma` or `auto`. Problems: unreadable, unknown_unit (none stated, or one that
    is not known), out_of_range (negative), conflict.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return not_said(text)
    flat = folded(given).strip()
    start = _NUMBER.search(flat)
    measure = measure_at(flat, start.start(), unit) if start else None
    if start is None or measure is None:
        return unreadable(text, "is no length")
    lead = flat[: start.start()]
    if lead.endswith("-") and not lead[-2:-1].isalnum():
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    if lead and label_of(lead).role == "other":
        return unreadable(text, "is no length of the piece")
    if measure.end < len(flat) and (fault := _leftover(text, flat, measure, unit)):
        return fault
    chosen = measure.unit or unit
    if chosen is None and measure.value:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and neither has its column")
    return checked(measure, chosen or "in", text, decimal)
