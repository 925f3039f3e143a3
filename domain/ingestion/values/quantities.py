"""Numbers, lengths and weights: read exactly, kept as given, rounded once to hundredths.

    amount   := mixed | fraction | grouped | decimal
    mixed    := digits ("-" | blank | "/") fraction          17 1/2, 17-1/2, 17/1/2
    fraction := digits "/" (2|4|8|16|32|64), 1/5, 1/10 …     proper; `181/8` lacks its blank
    grouped  := 1,234.5 | 1.234,5 | 1.234.567
    decimal  := digits [("." | ",") digits]

    length   := amount [unit] [inches]                       5' 3", 5 ft 3 in, 62,1 cm
    measure  := length [("-" | "to" | "bis" | "à" …) length]   a range: its lower bound
              | length ("/" length)+          the same in another unit, closed and extended, or a choice (reported)
    cell     := [words] measure [words | "(" measure ")"]

    weight   := amount unit [amount unit]                    12 lb 4 oz, 4 kg 500 g
              | unit amount | amount                         kg 20; in the column's unit
    cell     := [label [":"]] weight [("-" | "to" …) weight] [confirm] [words]
    confirm  := ("(" | "/") weight [")"]      the same in another unit; another weight is reported and the first kept
    label    := "weight" | "Gewicht" | …      a load or capacity is not a weight of the piece: reported

A single mark before three digits (`1,250`, `1.250`) is ambiguous; the unit decides. Every figure of a cell is used, confirms
the one used, or is reported. In a text about several facts, the only figure labelled as a weight is read, or else the
only one with a unit of weight.
"""

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

from domain.catalogue.data import Length, Weight
from domain.ingestion.data import expressions, load, meanings
from domain.ingestion.values.labels import NEUTRAL, label_of, words_in
from domain.ingestion.values.text import NOTHING, Fault, Parsed, cell_parser, conflict, not_said, refused, unreadable
from domain.kernel.problems import ProblemKind

_FOLDS = str.maketrans("⁄″”“„‟〃’‘′´`ʹ×✕✖–—−‐\u2011\xa0\u2009\u202f", "/\"\"\"\"\"\"''''''xxx-----   ") | str.maketrans(
    {
        "½": " 1/2",
        "¼": " 1/4",
        "¾": " 3/4",
        "⅛": " 1/8",
        "⅜": " 3/8",
        "⅝": " 5/8",
        "⅞": " 7/8",
        "⌀": " dia ",
        "∅": " dia ",
    }
)
_BRACKETS = str.maketrans("[]{}`\xa0", "()()' ")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_DOUBLE = re.compile(r"(?:''|\")(?:\s?(?:''|\"))*+")
_ESCAPED = re.compile(r"_x00[0-9a-fA-F]{2}_")
"""Control characters as encoded in spreadsheet files."""
_ROUND = re.compile(r"(?<![^\W\d_])[Øø](?![^\W\d_xX])|(?<=[\d\"'mM])[Øø](?![^\W\d_xX])")
"""Diameter sign, in contrast to the letter in `Højde`."""
_CYRILLIC_JOIN = re.compile(
    r"(?:(?<=[\d\s\"'мМ)])|(?<=\b[ШГВДшгвд])|(?<=[хХ][ШГВДшгвд]))[хХ](?=\s|\d|[ШГВДшгвд](?:[хХ\s),;:./\d]|$))"
)
"""Cyrillic letter that is used as the sign between two sides."""
_AMOUNT = re.compile(
    r"""(?x)(?P<whole>\d{1,9})(?:\s*-\s*|\s+|/)(?P<num>\d{1,2})\s?/\s?(?P<den>2|4|5|8|10|16|20|32|64)(?![\d/])
      | (?P<over>\d{1,9})/(?P<under>2|4|8|16|32|64)(?![\d/])
      | (?P<grouped>\d{1,3}(?:,\d{3})+(?:\.\d{1,9})?)(?![\d,])
      | (?P<european>\d{1,3}(?:\.\d{3})+,\d{1,9})(?!\d)
      | (?P<dotted>\d{1,3}(?:\.\d{3}){2,})(?![\d.])
      | (?P<comma>(?<!\d,)\d{1,12},\d{1,2})(?!\d|,\d)
      | (?P<plain>\d{1,15}(?:\.\d{0,18})?|\.\d{1,18})(?!\d)"""
)
_SIMPLE = re.compile(r"\d{1,15}(?:\.\d{0,18})?(?!\d)")
_THREE = re.compile(r"\d{1,3}[.,]\d{3}")


class Amount(NamedTuple):
    """An exact number and its end in the text; `other` is its value if its only mark has the other meaning."""

    value: Decimal
    end: int
    other: Decimal | None = None


@lru_cache(maxsize=16384)
def folded(text: str) -> str:
    """Return `text` with typographic marks, fractions and signs in plain ASCII, for one grammar."""
    flat = text
    if not text.isascii():
        flat = unicodedata.normalize("NFC", text).translate(_FOLDS)
        flat = _ROUND.sub(" dia ", flat) if "ø" in flat or "Ø" in flat else flat
        flat = _CYRILLIC_JOIN.sub("x", flat) if "х" in flat or "Х" in flat else flat
    if "_x" in flat:
        flat = _ESCAPED.sub("", flat)
    return _DOUBLE.sub('"', _CONTROL.sub("", flat.translate(_BRACKETS)))


def _lost_blank(over: str, under: int) -> Decimal | None:
    """Return the value of a fraction, or of `181/8`, which is 18 1/8 without its blank; None if neither applies."""
    value = Decimal(over)
    if value <= under or len(over) == 1:
        return value / under
    for digits in (2, 1):
        numerator = int(over[-digits:])
        if len(over) > digits and numerator % 2 and numerator < under and over[-digits] != "0":
            return Decimal(over[:-digits]) + Decimal(numerator) / under
    return None


def amount_at(text: str, position: int) -> Amount | None:
    """Return the exact number that starts at `position` of a folded text, or None."""
    found = _AMOUNT.match(text, position)
    if found is None:
        return None
    written, end = found[0], found.end()
    value: Decimal | None
    match found.lastgroup:
        case "den":
            num, den = Decimal(found["num"]), Decimal(found["den"])
            value = Decimal(found["whole"]) + num / den if 0 < num < den else None
        case "under":
            value = _lost_blank(found["over"], int(found["under"]))
        case "european" | "dotted":
            value = Decimal(written.replace(".", "").replace(",", "."))
        case "comma":
            value = Decimal(written.replace(",", "."))
        case _:
            value = Decimal(written.replace(",", "").rstrip("."))
    if value is None:
        # Not a proper fraction: only the number before the slash or blank is read.
        simple = _SIMPLE.match(text, position)
        return simple and Amount(Decimal(simple[0].rstrip(".")), simple.end())
    if end - position > 3 and _THREE.fullmatch(written):
        other = written.replace(",", ".") if "," in written else written.replace(".", "")
        return Amount(value, end, Decimal(other))
    return Amount(value, end)


INCHES: Final[dict[str, Fraction]] = {
    "in": Fraction(1),
    "ft": Fraction(12),
    "mm": Fraction(5, 127),
    "cm": Fraction(50, 127),
    "m": Fraction(5000, 127),
}
POUNDS: Final[dict[str, Fraction]] = {
    "lb": Fraction(1),
    "oz": Fraction(1, 16),
    "g": Fraction(100000, 45359237),
    "kg": Fraction(100000000, 45359237),
}
METRIC = ("mm", "cm", "m")
MAX_HUNDREDTHS = 10_000_000
MAX_WEIGHT = 1_000_000_000
_LENGTHS = meanings(load("units")["length"])
_WEIGHTS = meanings(load("units")["weight"])
_LIKELY_MOST = 100_000
"""Hundredths of inches or pounds above which a reading is the less likely of two (1,000 units)."""


def unit_named(word: str) -> str | None:
    """Return the unit of length (`in`, `ft`, `mm`, `cm`, `m`) of a spelling, or None."""
    return _LENGTHS.get(word.strip().rstrip(".").lower())


def weight_unit_named(word: str) -> str | None:
    """Return the unit of weight (`lb`, `oz`, `g`, `kg`) of a spelling, or None."""
    return _WEIGHTS.get(word.strip().rstrip(".").lower())


def hundredths(value: Decimal, unit: str) -> int:
    """Return `value` in hundredths of an inch or a pound, rounded half up once from the exact fraction."""
    exact = Fraction(value) * (INCHES.get(unit) or POUNDS[unit]) * 100
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def measured(value: Decimal, unit: str) -> Any:
    """Return the length or weight of `value` in `unit`, with the given value to its last zero (40.0 is not 40)."""
    # Cached by text, since equal numbers (40, 40.0) would share the form of the first.
    return _measured(str(value), unit)


@lru_cache(maxsize=65536)
def _measured(text: str, unit: str) -> Any:
    value = Decimal(text)
    key = "hundredths_in" if unit in INCHES else "hundredths_lb"
    return {key: hundredths(value, unit), "given": {"value": value, "unit": unit}}


def _settled(value: Decimal, other: Decimal | None, unit: str, decimal: str = "auto") -> Decimal | None:
    """Return which of two readings of `1,250` or `1.250` a measure in `unit` has; None if both are likely."""
    if other is None:
        return value
    if decimal != "auto":
        return value if decimal == "dot" else other
    small, great = min(value, other), max(value, other)
    if unit in ("m", "kg") or (unit not in ("lb", "oz") and hundredths(great, unit) > _LIKELY_MOST):
        return small
    if unit == "mm":
        # Thousandths of a millimetre are implausible.
        return great
    # A dot in pounds is a decimal mark; a comma in pounds is ambiguous.
    return value if value == (great if unit == "g" else small) else None


class Measure(NamedTuple):
    """A length or weight in a folded text; `unit` is None if none is stated, `end` is its end in the text.

    Attributes:
        choices: Whether two alternative lengths are stated (`15"/19"`).
        other: The value if its only mark has the other meaning.
        upper: The upper bound of a range.
        strange: A word after a weight that is not a unit.

    """

    value: Decimal
    unit: str | None
    end: int
    choices: bool = False
    other: Decimal | None = None
    upper: Decimal | None = None
    strange: str = ""


def checked(measure: Measure, unit: str, text: str, decimal: str = "auto") -> Parsed[Any]:
    """Return the length or weight of `measure` in `unit`; zero is nothing, an implausible value out_of_range."""
    if measure.choices:
        return refused(ProblemKind.CONFLICT, text, "states two sizes where one is expected")
    value = measure.value and _settled(measure.value, measure.other, unit, decimal)
    if value is None:
        return refused(ProblemKind.CONFLICT, text, "has a mark that could separate thousands or decimals")
    if value == 0:
        return NOTHING
    found = measured(value, unit)
    if unit in POUNDS:
        if found["hundredths_lb"] <= MAX_WEIGHT:
            return Parsed(found)
        return refused(ProblemKind.OUT_OF_RANGE, text, "is not a plausible weight of furniture")
    if 0 < found["hundredths_in"] <= MAX_HUNDREDTHS:
        return Parsed(found)
    return refused(ProblemKind.OUT_OF_RANGE, text, "is not a plausible size of furniture")


def _agree(first: Measure, second: Measure, unit: str | None, within: int, part: int) -> bool:
    """Return whether two measures are equal within `within` hundredths or one `part`-th of their value."""
    figures = []
    for measure in (first, second):
        named = measure.unit or unit
        value = named and _settled(measure.value, measure.other, named)
        if not named or value is None:
            return False
        figures.append(hundredths(Decimal(value), named))
    return abs(figures[0] - figures[1]) <= max(within, max(figures) // part)


# Lengths.

_UNIT = re.compile(r"\s*+-?(?:(?P<mark>[\"'])|(?P<word>[^\W\d_]{1,12})\.?(?![^\W\d_²³]))")
_GLUED = re.compile(
    r"(?i)\s*+-?(?P<unit>mm|cm|in|ft|m)\.?(?=(?:x\s*+[\d.]|x(?:[wdhlbt]|dia)(?![a-z])|(?:[wdhlbt]|dia)(?:x\s*+[\d.]|x(?:[wdhlbt]|dia)(?![a-z])|(?![a-z]))|x(?![a-z])))"
)
_RANGE = re.compile(r"(?i)\s*+(?:-|to\b|bis\b|à|(?-i:a)\b|tot\b|til\b|till\b|do\b|up to\b|~|\.\.+|…)\s*+(?=\.?\d)")
_ALTERNATIVE = re.compile(r"\s*+/\s*+(?=\.?\d)")
_INCH_PART = re.compile(r"(?i)\s*+(?:-|,|and\b|&)?\s*+(?=\.?\d)")
_LOST_MARK = re.compile(r"(?i)\s*+(?:$|x\s*+\d|[wdhlbt](?![^\W\d_])|[,;)])")


def same_length(first: Measure, second: Measure, unit: str | None) -> bool:
    """Return whether two measures state one length in two units, apart from rounding."""
    return (first.unit or unit) != (second.unit or unit) and _agree(first, second, unit, 60, 66)


def _unit_at(text: str, position: int) -> tuple[str | None, int]:
    found = _UNIT.match(text, position)
    if found and found["mark"]:
        return _LENGTHS[found["mark"]], found.end()
    # `20 inH` is a height of 20 inches, `20 inh` a typing error.
    if (
        found
        and (unit := _LENGTHS.get(found["word"].lower()))
        and found["word"] != "inH"
        and not text.startswith(("²", "³"), found.end())
    ):
        return unit, found.end()
    # `1160mml` is a unit joined with its axis, `24inx36in` one joined with the sign between sides.
    glued = _GLUED.match(text, position)
    return (_LENGTHS[glued["unit"].lower()], glued.end()) if glued else (None, position)


def _length_at(text: str, position: int) -> Measure | None:
    """Return one length; feet and following inches (`5' 3"`, `5'-3"`, `9'8`) are one."""
    found = amount_at(text, position)
    if found is None:
        return None
    unit, end = _unit_at(text, found.end)
    if unit == "ft" and (gap := _INCH_PART.match(text, end)):
        part = amount_at(text, gap.end())
        if part is not None and part.value < 12:
            smaller, last = _unit_at(text, part.end)
            lost = smaller is None and text[end] != " " and _LOST_MARK.match(text, part.end)
            if smaller == "in" or lost:
                return Measure(found.value * 12 + part.value, "in", last)
    return Measure(found.value, unit, end, other=found.other)


def measure_at(text: str, position: int, unit: str | None = None, slashes: bool = True) -> Measure | None:
    """Return the length that starts at `position` of a folded text, or None; `unit` is the column's.

    A range (`27-37"`) and closed and extended figures (`155/215`) give the first bound, in the unit of either. With
    `slashes`, slashes separate such figures, not sides. A second bound below the first makes a choice, not a range.
    """
    first = _length_at(text, position)
    if first is None:
        return None
    if gap := _RANGE.match(text, first.end):
        second = _length_at(text, gap.end())
        if second is None:
            return first
        named = first.unit or second.unit
        falls = hundredths(second.value, second.unit or named or "in") <= hundredths(first.value, named or "in")
        return Measure(first.value, named, second.end, falls, first.other, second.value)
    while slashes and (gap := _ALTERNATIVE.match(text, first.end)):
        second = _length_at(text, gap.end())
        if second is None:
            break
        if same_length(first, second, unit):
            first = first._replace(end=second.end)
            continue
        # An invalid fraction (`60/32`, `1/3`) is not two figures.
        botched = second.value in (2, 4, 8, 16, 32, 64) if second.value < first.value else second.value <= 16
        choices = first.choices or first.unit is not None or botched
        first = Measure(first.value, first.unit or second.unit, second.end, choices, first.other, second.value)
    return first


_LENGTH_START = re.compile(r"(?i)(?<![^\W_])\.?\d|(?<=x)\d")
_TRAILING = re.compile(r"[\s.,;:()=_-]*+")
_AWAY = re.compile(r"\s*+(?:\+\s?/\s?-|\+-|±)\s*+$")
(_COUNTED, _LOAD, _BY_MEASURE, _COUNT_BEHIND, _LABELLED) = (
    expressions("units")[name] for name in "counted load by_measure count_behind labelled".split()
)
_CUT_OFF = re.compile(r"(?i)x\W*+$")


def _beside_length(text: str, flat: str, measure: Measure, unit: str | None) -> Parsed[Any] | None:
    """Return the fault of figures and words after a length, or None.

    A further figure must confirm it, count pieces or be its tolerance.
    """
    position = measure.end
    while start := _LENGTH_START.search(flat, position):
        second = measure_at(flat, start.start(), unit)
        if second is None or not (
            same_length(measure, second, unit)
            or _AWAY.search(flat, position, start.start())
            or (second.unit is None and _COUNTED.match(flat, second.end))
        ):
            return unreadable(text, "is more than one length")
        position = second.end
    tail = flat[measure.end :]
    if _CUT_OFF.search(tail) and label_of(tail).role == "":
        return unreadable(text, "is cut off after its first side")
    gap, words = _TRAILING.match(tail), words_in(tail)
    bracketed = gap is not None and "(" in gap[0]
    if measure.unit is None and words and not bracketed and not label_of(words[0]).role and words[0] not in NEUTRAL:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has an unknown unit of length")
    return None


@cell_parser(longest=500, kept=65536, blank=not_said)
def parse_length(text: str, given: str, unit: str | None = None, decimal: str = "auto") -> Parsed[Length]:
    """Parse one length; `unit` is the column's unit, for cells without one.

    Examples: `23.5 in`, `53 1/2"`, `5'3"`, `300 cm`, `Width: 80 cm`, `30 in (76 cm)`. A range gives its first bound. `decimal` is
    the source's mark: `dot`, `comma` or `auto`. Problems: unreadable, unknown_unit, out_of_range (negative), conflict.
    """
    flat = folded(given).strip()
    start = _LENGTH_START.search(flat)
    if start is None or (measure := measure_at(flat, start.start(), unit)) is None:
        return unreadable(text, "is not a length")
    lead = flat[: start.start()]
    if lead.endswith("-") and not lead[-2:-1].isalnum():
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    if lead and label_of(lead).role == "other":
        return unreadable(text, "is not a length of the piece")
    if measure.end < len(flat) and (fault := _beside_length(text, flat, measure, unit)):
        return fault
    chosen = measure.unit or unit
    if chosen is None and measure.value:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and its column has none either")
    return checked(measure, chosen or "in", text, decimal)


# Weights.

_WORD = re.compile(r"\s*+-?([^\W\d_]{1,12})\.?")
_WEIGHT_START = re.compile(r"(?<![^\W_])\.?\d|(?<=[^\W\d_])\d")
_FURTHER = re.compile(r"[\s,]*+(?:and\s|&\s)?(?=\d)")
_UNIT_BEFORE = re.compile(r"(?i)(?<![^\W_])(kgs?|lbs?|gr?|oz)\.?:?\s{0,2}$")
_ABOUT_SIZES = re.compile(r"(?i)\d\s?(?:\"|''|cm|mm|in\b)?\s?[wdhlbt]?\s{0,2}x\s{0,2}\d")
_OTHER_KINDS = re.compile(r"(?i)\bx\s*+$|\d\s*+x\s*+$|per\b|each\b")
_SEVERAL = re.compile(r"(?i)\d\s*x\s*\d[\d.,]{0,10}\s?(?:kg|lb)|(?:kg|lb)s?\s*x\s*\d|(?:per|each|je|pro)\b")
_WITH_UNIT = re.compile(r"(?i)(?<![\w.,])\d[\d.,]{0,10}\s?(?:kgs?|lbs?)\b(?!\s?/)")
_IDLE = frozenset("approx ca circa about each per net gross weight environ env und and".split())
_SMALLER = {"lb": ("oz", 16), "kg": ("g", 1000)}


def _one_weight_at(flat: str, position: int) -> Measure | None:
    found = amount_at(flat, position)
    if found is None:
        return None
    word = _WORD.match(flat, found.end)
    if word and (unit := weight_unit_named(word[1])):
        return Measure(found.value, unit, word.end(), other=found.other)
    return Measure(found.value, None, found.end, other=found.other, strange=word[1] if word else "")


def _weight_at(flat: str, position: int) -> Measure | None:
    """Return the weight at `position`: pounds with ounces, kilograms with grams, or the first bound of a range."""
    first = _one_weight_at(flat, position)
    if first is None:
        return None
    if gap := _RANGE.match(flat, first.end):
        second = _one_weight_at(flat, gap.end())
        if second is not None and (first.unit is None or second.unit in (None, first.unit)):
            strange = first.strange and second.strange
            return first._replace(unit=first.unit or second.unit, end=second.end, strange=strange)
    if first.unit in _SMALLER and (gap := _FURTHER.match(flat, first.end)):
        unit, parts = _SMALLER[first.unit]
        second = _one_weight_at(flat, gap.end())
        if second is not None and second.unit == unit and second.value < parts:
            return Measure(first.value + second.value / parts, first.unit, second.end)
    return first


def _rest(text: str, flat: str, first: Measure, unit: str | None) -> tuple[Fault, ...]:
    """Return the fault of figures after a weight that neither confirm it nor count pieces."""
    position = first.end
    while start := _WEIGHT_START.search(flat, position):
        second = _weight_at(flat, start.start())
        if second is None or not (
            _COUNT_BEHIND.match(flat, second.end) if second.unit is None else _agree(first, second, unit, 120, 50)
        ):
            return (conflict(text, "states more than one weight; the first is kept"),)
        position = second.end
    return ()


def _weighed(text: str, flat: str, unit: str | None, decimal: str) -> Parsed[Weight]:
    """Return the first weight of a text and the faults of the words around it."""
    start = _WEIGHT_START.search(flat)
    if start is None or (first := _weight_at(flat, start.start())) is None:
        return unreadable(text, "is not a weight")
    label = flat[: start.start()]
    if label.endswith("-") and not label[-2:-1].isalnum():
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    before = _UNIT_BEFORE.search(label) if label else None
    named = first.unit or (weight_unit_named(before[1]) if before else None)
    label = label[: before.start()] if before else label
    if _LOAD.search(label) or _LOAD.search(flat, first.end):
        return unreadable(text, "is a load, not the weight of the piece")
    if _BY_MEASURE.match(flat, first.end):
        return unreadable(text, "is a weight per measure, not the weight of the piece")
    if _OTHER_KINDS.search(label) or flat[first.end :].lstrip().lower().startswith("x "):
        return unreadable(text, "states the weight of several pieces")
    if named is None and first.strange and first.strange.lower() not in _IDLE:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has an unknown unit of weight")
    chosen = named or unit
    if chosen is None and first.value:
        return refused(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and its column has none either")
    parsed = checked(first, chosen or "lb", text, decimal)
    return parsed if parsed.faults else Parsed(parsed.value, _rest(text, flat, first, unit))


@cell_parser(longest=500, kept=65536)
def parse_weight(text: str, given: str, unit: str | None = None, decimal: str = "auto") -> Parsed[Weight]:
    """Parse one weight; `unit` is the column's unit, for cells without one.

    Examples: `4.93kg`, `Weight: 217.8 lbs`, `12 lb 4 oz`, `50 lb (22.7 kg)`. A range gives its first bound; zero is nothing;
    `decimal` is the source's mark. Problems: unreadable, unknown_unit, out_of_range (negative), conflict.
    """
    flat = folded(given.replace("#", " lb ")).strip()
    found = _weighed(text, flat, unit, decimal)
    if found.value is not None or _LOAD.search(flat) or _SEVERAL.search(flat):
        return found
    # In a packing line (`1 pc/ctn, gross weight 7.5 kg, carton 58 x 32 x 42 cm`) a label identifies the weight.
    lone = _LABELLED.findall(flat) or (_WITH_UNIT.findall(flat) if _ABOUT_SIZES.search(flat) else [])
    return _weighed(text, lone[0], unit, decimal) if len(lone) == 1 else found
