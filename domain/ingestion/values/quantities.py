"""Parsers of numbers, lengths and weights, which are read exactly and rounded once to hundredths of an inch or pound.

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
from typing import Any, NamedTuple

from domain.catalogue.data import Length, Weight
from domain.ingestion.data import invert_table, load_patterns, load_toml
from domain.ingestion.values.labels import NEUTRAL_WORDS, parse_label, split_into_plain_words
from domain.ingestion.values.text import (
    NO_VALUE,
    ParseFault,
    ParseResult,
    build_conflict_fault,
    build_fault_result,
    build_placeholder_result,
    build_unreadable_result,
    cell_parser,
)
from domain.kernel.problems import ProblemKind
from domain.kernel.units import INCHES_BY_UNIT, POUNDS_BY_UNIT

_ASCII_REPLACEMENTS = str.maketrans(
    "⁄″”“„‟〃’‘′´`ʹ×✕✖–—−‐\u2011\xa0\u2009\u202f", "/\"\"\"\"\"\"''''''xxx-----   "
) | str.maketrans(
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
_ESCAPED_CONTROL = re.compile(r"_x00[0-9a-fA-F]{2}_")
"""Pattern of control characters as spreadsheet files encode them, such as _x000D_."""
_DIAMETER_SIGN = re.compile(r"(?<![^\W\d_])[Øø](?![^\W\d_xX])|(?<=[\d\"'mM])[Øø](?![^\W\d_xX])")
"""Pattern of Ø as the diameter sign, not as a letter of a word such as `Højde`."""
_CYRILLIC_JOIN = re.compile(
    r"(?:(?<=[\d\s\"'мМ)])|(?<=\b[ШГВДшгвд])|(?<=[хХ][ШГВДшгвд]))[хХ](?=\s|\d|[ШГВДшгвд](?:[хХ\s),;:./\d]|$))"
)
"""Pattern of the Cyrillic letter х that is used as a multiplication sign between two dimensions."""
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


class ParsedAmount(NamedTuple):
    """Exact number at a position in a text.

    Attributes:
        value: The number.
        end: The position after the number.
        other_interpretation: The number if its comma or dot had the other meaning (1.25 for `1,250`), or None if the meaning is clear.
    """

    value: Decimal
    end: int
    other_interpretation: Decimal | None = None


@lru_cache(maxsize=16384)
def normalise_typography(text: str) -> str:
    """Normalise a text: replace typographic marks, fractions (`½`) and signs by ASCII characters, and remove control characters."""
    normalised = text
    if not text.isascii():
        normalised = unicodedata.normalize("NFC", text).translate(_ASCII_REPLACEMENTS)
        normalised = _DIAMETER_SIGN.sub(" dia ", normalised) if "ø" in normalised or "Ø" in normalised else normalised
        normalised = _CYRILLIC_JOIN.sub("x", normalised) if "х" in normalised or "Х" in normalised else normalised
    if "_x" in normalised:
        normalised = _ESCAPED_CONTROL.sub("", normalised)
    return _DOUBLE.sub('"', _CONTROL.sub("", normalised.translate(_BRACKETS)))


def _compute_fraction(digits_before_slash: str, denominator: int) -> Decimal | None:
    """Compute the value of a fraction; None if it is invalid.

    `181/8` is read as 18 1/8, because the space between 18 and 1 is often missing.

    Args:
        digits_before_slash: The digits before the slash.
        denominator: The number after the slash.
    """
    value = Decimal(digits_before_slash)
    if value <= denominator or len(digits_before_slash) == 1:
        return value / denominator
    for digits in (2, 1):
        numerator = int(digits_before_slash[-digits:])
        if (
            len(digits_before_slash) > digits
            and numerator % 2
            and numerator < denominator
            and digits_before_slash[-digits] != "0"
        ):
            return Decimal(digits_before_slash[:-digits]) + Decimal(numerator) / denominator
    return None


def parse_amount_at(text: str, position: int) -> ParsedAmount | None:
    """Parse the number that starts at a position of a normalised text (`normalise_typography`), or return None."""
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
            value = _compute_fraction(found["over"], int(found["under"]))
        case "european" | "dotted":
            value = Decimal(written.replace(".", "").replace(",", "."))
        case "comma":
            value = Decimal(written.replace(",", "."))
        case _:
            value = Decimal(written.replace(",", "").rstrip("."))
    if value is None:
        # Not a proper fraction: only the number before the slash or blank is read.
        simple = _SIMPLE.match(text, position)
        return simple and ParsedAmount(Decimal(simple[0].rstrip(".")), simple.end())
    if end - position > 3 and _THREE.fullmatch(written):
        other = written.replace(",", ".") if "," in written else written.replace(".", "")
        return ParsedAmount(value, end, Decimal(other))
    return ParsedAmount(value, end)


METRIC_LENGTH_UNITS = ("mm", "cm", "m")
MAX_HUNDREDTHS = 10_000_000
MAX_WEIGHT = 1_000_000_000
_LENGTHS = invert_table(load_toml("units")["length"])
_WEIGHTS = invert_table(load_toml("units")["weight"])
_MAX_PLAUSIBLE_HUNDREDTHS = 100_000
"""Maximum of a plausible interpretation of an ambiguous number, in hundredths of an inch or a pound."""


def parse_length_unit(word: str) -> str | None:
    """Return the unit of length (`in`, `ft`, `mm`, `cm` or `m`) that a word means, or None."""
    return _LENGTHS.get(word.strip().rstrip(".").lower())


def parse_weight_unit(word: str) -> str | None:
    """Return the unit of weight (`lb`, `oz`, `g` or `kg`) that a word means, or None."""
    return _WEIGHTS.get(word.strip().rstrip(".").lower())


def round_to_hundredths(value: Decimal, unit: str) -> int:
    """Convert a length or weight to hundredths of an inch or a pound, rounded half up from the exact value."""
    exact = Fraction(value) * (INCHES_BY_UNIT.get(unit) or POUNDS_BY_UNIT[unit]) * 100
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def build_measure(number: Decimal, unit: str) -> Any:
    """Build a Length or Weight of the catalogue: hundredths of an inch or pound, and the original number (with trailing zeros) and unit."""
    # Cached by text, since equal numbers (40, 40.0) would otherwise have the trailing zeros of the first.
    return _build_cached_measure(str(number), unit)


@lru_cache(maxsize=65536)
def _build_cached_measure(text: str, unit: str) -> Any:
    value = Decimal(text)
    key = "hundredths_in" if unit in INCHES_BY_UNIT else "hundredths_lb"
    return {key: round_to_hundredths(value, unit), "given": {"value": value, "unit": unit}}


def _choose_interpretation(value: Decimal, other: Decimal | None, unit: str, decimal: str = "auto") -> Decimal | None:
    """Choose between two interpretations of a number such as `1,250` by its unit; None if both are plausible.

    Args:
        value: The number if a comma separates thousands and a dot is the decimal mark.
        other: The number if the comma or dot has the opposite meaning, or None if the number is unambiguous.
        unit: The unit.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    if other is None:
        return value
    if decimal != "auto":
        return value if decimal == "dot" else other
    smaller, greater = min(value, other), max(value, other)
    if unit in ("m", "kg") or (
        unit not in ("lb", "oz") and round_to_hundredths(greater, unit) > _MAX_PLAUSIBLE_HUNDREDTHS
    ):
        return smaller
    if unit == "mm":
        # Thousandths of a millimetre are implausible.
        return greater
    # A dot in pounds is a decimal mark; a comma in pounds is ambiguous.
    return value if value == (greater if unit == "g" else smaller) else None


class ParsedMeasure(NamedTuple):
    """Length or weight at a position in a normalised text.

    Attributes:
        value: The number.
        unit: The unit, or None if the text does not state one.
        end: The position after the measure.
        has_alternatives: Whether the text states two alternative lengths (`15"/19"`).
        other_interpretation: The number if its comma or dot had the other meaning (1.25 for `1,250`), or None if the meaning is clear.
        upper_bound: The upper bound of a range, whose lower bound is `value`, or None.
        unknown_word: The word after a weight if it is not a unit, or an empty string.
    """

    value: Decimal
    unit: str | None
    end: int
    has_alternatives: bool = False
    other_interpretation: Decimal | None = None
    upper_bound: Decimal | None = None
    unknown_word: str = ""


def convert_measure(measure: ParsedMeasure, unit: str, text: str, decimal: str = "auto") -> ParseResult[Any]:
    """Convert a measure to a Length or Weight of the catalogue.

    The result has a problem if the measure is ambiguous or implausible, and no value for zero.

    Args:
        measure: The measure.
        unit: The unit to use.
        text: The cell, for problems.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    if measure.has_alternatives:
        return build_fault_result(ProblemKind.CONFLICT, text, "states two sizes where one is expected")
    value = measure.value and _choose_interpretation(measure.value, measure.other_interpretation, unit, decimal)
    if value is None:
        return build_fault_result(ProblemKind.CONFLICT, text, "has a mark that could separate thousands or decimals")
    if value == 0:
        return NO_VALUE
    found = build_measure(value, unit)
    if unit in POUNDS_BY_UNIT:
        if found["hundredths_lb"] <= MAX_WEIGHT:
            return ParseResult(found)
        return build_fault_result(ProblemKind.OUT_OF_RANGE, text, "is not a plausible weight of furniture")
    if 0 < found["hundredths_in"] <= MAX_HUNDREDTHS:
        return ParseResult(found)
    return build_fault_result(ProblemKind.OUT_OF_RANGE, text, "is not a plausible size of furniture")


def _are_equal_measures(
    first: ParsedMeasure, second: ParsedMeasure, unit: str | None, tolerance: int, divisor: int
) -> bool:
    """Return whether two measures are equal apart from rounding.

    Args:
        first: The first measure.
        second: The second measure.
        unit: The unit of measures without one, or None.
        tolerance: The minimum tolerance, in hundredths of an inch or pound.
        divisor: The relative tolerance as the divisor of the greater value: 50 means 1/50. The greater of both tolerances applies.
    """
    figures = []
    for measure in (first, second):
        named = measure.unit or unit
        value = named and _choose_interpretation(measure.value, measure.other_interpretation, named)
        if not named or value is None:
            return False
        figures.append(round_to_hundredths(Decimal(value), named))
    return abs(figures[0] - figures[1]) <= max(tolerance, max(figures) // divisor)


# Lengths.

_UNIT = re.compile(r"\s*+-?(?:(?P<mark>[\"'])|(?P<word>[^\W\d_]{1,12})\.?(?![^\W\d_²³]))")
_UNIT_JOINED_WITH_LETTER = re.compile(
    r"(?i)\s*+-?(?P<unit>mm|cm|in|ft|m)\.?(?=(?:x\s*+[\d.]|x(?:[wdhlbt]|dia)(?![a-z])|(?:[wdhlbt]|dia)(?:x\s*+[\d.]|x(?:[wdhlbt]|dia)(?![a-z])|(?![a-z]))|x(?![a-z])))"
)
_RANGE = re.compile(r"(?i)\s*+(?:-|to\b|bis\b|à|(?-i:a)\b|tot\b|til\b|till\b|do\b|up to\b|~|\.\.+|…)\s*+(?=\.?\d)")
_ALTERNATIVE = re.compile(r"\s*+/\s*+(?=\.?\d)")
_INCH_PART = re.compile(r"(?i)\s*+(?:-|,|and\b|&)?\s*+(?=\.?\d)")
_MISSING_INCH_MARK = re.compile(r"(?i)\s*+(?:$|x\s*+\d|[wdhlbt](?![^\W\d_])|[,;)])")


def is_same_length(first: ParsedMeasure, second: ParsedMeasure, default_unit: str | None) -> bool:
    """Return whether two measures are the same length in different units, apart from rounding; `default_unit` is the unit of measures without a unit."""
    return (first.unit or default_unit) != (second.unit or default_unit) and _are_equal_measures(
        first, second, default_unit, 60, 66
    )


def _parse_length_unit_at(text: str, position: int) -> tuple[str | None, int]:
    """Parse a unit of length at a position; return the unit (None if there is none) and the position after it."""
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
    # In `1160mml` the unit is joined with the letter of the dimension, in `24inx36in` with the sign between dimensions.
    joined = _UNIT_JOINED_WITH_LETTER.match(text, position)
    return (_LENGTHS[joined["unit"].lower()], joined.end()) if joined else (None, position)


def _parse_single_length_at(text: str, position: int) -> ParsedMeasure | None:
    """Parse the length at a position, or return None; feet and inches (`5' 3"`, `5'-3"`, `9'8`) are one length."""
    found = parse_amount_at(text, position)
    if found is None:
        return None
    unit, end = _parse_length_unit_at(text, found.end)
    if unit == "ft" and (gap := _INCH_PART.match(text, end)):
        part = parse_amount_at(text, gap.end())
        if part is not None and part.value < 12:
            smaller, last = _parse_length_unit_at(text, part.end)
            lost = smaller is None and text[end] != " " and _MISSING_INCH_MARK.match(text, part.end)
            if smaller == "in" or lost:
                return ParsedMeasure(found.value * 12 + part.value, "in", last)
    return ParsedMeasure(found.value, unit, end, other_interpretation=found.other_interpretation)


def parse_measure_at(
    text: str, position: int, unit: str | None = None, slash_separates_alternatives: bool = True
) -> ParsedMeasure | None:
    """Parse the length or range of lengths that starts at a position of a normalised text, or return None.

    If the text is a range (`27-37"`) or states two lengths, closed and extended (`155/215`), the value is the first
    length. If the second length of a range is not greater than the first, both are alternatives (`has_alternatives`).

    Args:
        text: The normalised text.
        position: The position.
        unit: The unit of the column, or None.
        slash_separates_alternatives: Whether a slash can separate lengths of the same dimension; if not, it separates different dimensions.
    """
    first = _parse_single_length_at(text, position)
    if first is None:
        return None
    if gap := _RANGE.match(text, first.end):
        second = _parse_single_length_at(text, gap.end())
        if second is None:
            return first
        named = first.unit or second.unit
        is_falling = round_to_hundredths(second.value, second.unit or named or "in") <= round_to_hundredths(
            first.value, named or "in"
        )
        return ParsedMeasure(first.value, named, second.end, is_falling, first.other_interpretation, second.value)
    while slash_separates_alternatives and (gap := _ALTERNATIVE.match(text, first.end)):
        second = _parse_single_length_at(text, gap.end())
        if second is None:
            break
        if is_same_length(first, second, unit):
            first = first._replace(end=second.end)
            continue
        # An invalid fraction (`60/32`, `1/3`) is not two figures.
        is_invalid_fraction = (
            second.value in (2, 4, 8, 16, 32, 64) if second.value < first.value else second.value <= 16
        )
        choices = first.has_alternatives or first.unit is not None or is_invalid_fraction
        first = ParsedMeasure(
            first.value, first.unit or second.unit, second.end, choices, first.other_interpretation, second.value
        )
    return first


_LENGTH_START = re.compile(r"(?i)(?<![^\W_])\.?\d|(?<=x)\d")
_TRAILING = re.compile(r"[\s.,;:()=_-]*+")
_TOLERANCE = re.compile(r"\s*+(?:\+\s?/\s?-|\+-|±)\s*+$")
(_COUNTED, _LOAD, _BY_MEASURE, _COUNT_BEHIND, _LABELLED) = (
    load_patterns("units")[name] for name in "counted load by_measure count_behind labelled".split()
)
_CUT_OFF = re.compile(r"(?i)x\W*+$")


def _check_after_length(
    text: str, normalised: str, measure: ParsedMeasure, unit: str | None
) -> ParseResult[Any] | None:
    """Check the text after a length, and return a result with a fault, or None if the text is permitted.

    A further number must repeat the length in another unit, count things or be a tolerance.
    """
    position = measure.end
    while start := _LENGTH_START.search(normalised, position):
        second = parse_measure_at(normalised, start.start(), unit)
        if second is None or not (
            is_same_length(measure, second, unit)
            or _TOLERANCE.search(normalised, position, start.start())
            or (second.unit is None and _COUNTED.match(normalised, second.end))
        ):
            return build_unreadable_result(text, "contains more than one length")
        position = second.end
    tail = normalised[measure.end :]
    if _CUT_OFF.search(tail) and parse_label(tail).role == "":
        return build_unreadable_result(text, "states only the first of several dimensions")
    gap, words = _TRAILING.match(tail), split_into_plain_words(tail)
    bracketed = gap is not None and "(" in gap[0]
    if (
        measure.unit is None
        and words
        and not bracketed
        and not parse_label(words[0]).role
        and words[0] not in NEUTRAL_WORDS
    ):
        return build_fault_result(ProblemKind.UNKNOWN_UNIT, text, "has an unknown unit of length")
    return None


@cell_parser(max_chars=500, cache_size=65536, parse_blank=build_placeholder_result)
def parse_length(text: str, cleaned: str, unit: str | None = None, decimal: str = "auto") -> ParseResult[Length]:
    """Parse one length, such as `23.5 in`, `5'3"`, `Width: 80 cm` or `30 in (76 cm)`. Of a range, the first length is used.

    The result can have the faults unreadable, unknown_unit, out_of_range and conflict.

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        unit: The unit of numbers without one, or None.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    normalised = normalise_typography(cleaned).strip()
    start = _LENGTH_START.search(normalised)
    if start is None or (measure := parse_measure_at(normalised, start.start(), unit)) is None:
        return build_unreadable_result(text, "is not a length")
    lead = normalised[: start.start()]
    if lead.endswith("-") and not lead[-2:-1].isalnum():
        return build_fault_result(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    if lead and parse_label(lead).role == "other":
        return build_unreadable_result(text, "is the length of another part or object, not of the item")
    if measure.end < len(normalised) and (fault := _check_after_length(text, normalised, measure, unit)):
        return fault
    chosen = measure.unit or unit
    if chosen is None and measure.value:
        return build_fault_result(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and the column has none either")
    return convert_measure(measure, chosen or "in", text, decimal)


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
_SMALLER_UNITS = {"lb": ("oz", 16), "kg": ("g", 1000)}


def _parse_single_weight_at(normalised: str, position: int) -> ParsedMeasure | None:
    """Parse a number with an optional unit of weight at a position, or return None."""
    found = parse_amount_at(normalised, position)
    if found is None:
        return None
    word = _WORD.match(normalised, found.end)
    if word and (unit := parse_weight_unit(word[1])):
        return ParsedMeasure(found.value, unit, word.end(), other_interpretation=found.other_interpretation)
    return ParsedMeasure(
        found.value,
        None,
        found.end,
        other_interpretation=found.other_interpretation,
        unknown_word=word[1] if word else "",
    )


def _parse_weight_at(normalised: str, position: int) -> ParsedMeasure | None:
    """Parse the weight at a position, or return None.

    Pounds and ounces are one weight, and so are kilograms and grams. Of a range, the first weight is used.
    """
    first = _parse_single_weight_at(normalised, position)
    if first is None:
        return None
    if gap := _RANGE.match(normalised, first.end):
        second = _parse_single_weight_at(normalised, gap.end())
        if second is not None and (first.unit is None or second.unit in (None, first.unit)):
            unknown = first.unknown_word and second.unknown_word
            return first._replace(unit=first.unit or second.unit, end=second.end, unknown_word=unknown)
    if first.unit in _SMALLER_UNITS and (gap := _FURTHER.match(normalised, first.end)):
        unit, parts = _SMALLER_UNITS[first.unit]
        second = _parse_single_weight_at(normalised, gap.end())
        if second is not None and second.unit == unit and second.value < parts:
            return ParsedMeasure(first.value + second.value / parts, first.unit, second.end)
    return first


def _check_after_weight(text: str, normalised: str, first: ParsedMeasure, unit: str | None) -> tuple[ParseFault, ...]:
    """Check the numbers after a weight, and return a fault unless they repeat the weight in another unit or count things."""
    position = first.end
    while start := _WEIGHT_START.search(normalised, position):
        second = _parse_weight_at(normalised, start.start())
        if second is None or not (
            _COUNT_BEHIND.match(normalised, second.end)
            if second.unit is None
            else _are_equal_measures(first, second, unit, 120, 50)
        ):
            return (build_conflict_fault(text, "states more than one weight; the first is kept"),)
        position = second.end
    return ()


def _parse_first_weight(text: str, normalised: str, unit: str | None, decimal: str) -> ParseResult[Weight]:
    """Parse the first weight in a text, and check the words around it."""
    start = _WEIGHT_START.search(normalised)
    if start is None or (first := _parse_weight_at(normalised, start.start())) is None:
        return build_unreadable_result(text, "is not a weight")
    label = normalised[: start.start()]
    if label.endswith("-") and not label[-2:-1].isalnum():
        return build_fault_result(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    before = _UNIT_BEFORE.search(label) if label else None
    named = first.unit or (parse_weight_unit(before[1]) if before else None)
    label = label[: before.start()] if before else label
    if _LOAD.search(label) or _LOAD.search(normalised, first.end):
        return build_unreadable_result(text, "is a load capacity, not the weight of the item")
    if _BY_MEASURE.match(normalised, first.end):
        return build_unreadable_result(
            text, "is a weight per unit (such as metre or shelf), not the weight of the item"
        )
    if _OTHER_KINDS.search(label) or normalised[first.end :].lstrip().lower().startswith("x "):
        return build_unreadable_result(text, "states the weight of several pieces")
    if named is None and first.unknown_word and first.unknown_word.lower() not in _IDLE:
        return build_fault_result(ProblemKind.UNKNOWN_UNIT, text, "has an unknown unit of weight")
    chosen = named or unit
    if chosen is None and first.value:
        return build_fault_result(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and the column has none either")
    parsed = convert_measure(first, chosen or "lb", text, decimal)
    return parsed if parsed.faults else ParseResult(parsed.value, _check_after_weight(text, normalised, first, unit))


@cell_parser(max_chars=500, cache_size=65536)
def parse_weight(text: str, cleaned: str, unit: str | None = None, decimal: str = "auto") -> ParseResult[Weight]:
    """Parse one weight, such as `4.93kg`, `12 lb 4 oz` or `50 lb (22.7 kg)`. Of a range, the first weight is used.

    Zero gives no value. The result can have the faults unreadable, unknown_unit, out_of_range and conflict.

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        unit: The unit of numbers without one, or None.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    normalised = normalise_typography(cleaned.replace("#", " lb ")).strip()
    found = _parse_first_weight(text, normalised, unit, decimal)
    if found.value is not None or _LOAD.search(normalised) or _SEVERAL.search(normalised):
        return found
    # In a packing line (`1 pc/ctn, gross weight 7.5 kg, carton 58 x 32 x 42 cm`) a label identifies the weight.
    lone = _LABELLED.findall(normalised) or (_WITH_UNIT.findall(normalised) if _ABOUT_SIZES.search(normalised) else [])
    return _parse_first_weight(text, lone[0], unit, decimal) if len(lone) == 1 else found
