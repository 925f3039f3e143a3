"""Parsers of cells with sizes of rugs (such as `5'3" x 7'6"`, or `5.3 x 7.6` in the notation of the rug trade), shapes and constructions.

size     := side ["w" | "l"] join side [confirm] [shape] | side shape | shape side | title     one side of round and square rugs
side     := feet ["-"] inches | feet "." inches | inches | metric | bare
feet     := digits ("'" | "ft" | "feet");  inches := digits [fraction] ('"' | "in")      5'3", 5'-3", 5.3', 5-3
bare     := digits                       the greater bare number determines the unit of both:
             up to 15: feet; 16 to 20: feet if the smaller one is at most 4 or 12 to 15, otherwise reported;
             above 20: inches; above 144: reported, because centimetres are possible
metric   := decimal ("cm" | "mm" | "m")  the unit can be stated once, after the last side
           | number join number | one number of a round or square rug, in a metric column; labelled sides (`dimensions`)
confirm  := the same size in another unit, in brackets, next to it or after a slash; another size is reported
title    := words bare join bare words   the only size among other words; in inches only if the words name a rug or a mat
shape    := a word of `shapes` in data/rugs.toml, in six languages; samples and made to measure are not a size of the rug: reported
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.data import load_patterns, load_regex_alternatives, load_toml
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import RUG
from domain.ingestion.values.quantities import (
    METRIC_LENGTH_UNITS,
    build_measure,
    normalise_typography,
    parse_length_unit,
)
from domain.ingestion.values.text import (
    ParseResult,
    build_conflict_fault,
    build_fault_result,
    build_unreadable_result,
    cell_parser,
)
from domain.kernel.problems import ProblemKind

Patterns = dict[str, re.Pattern[str]]
SHAPES, CONSTRUCTIONS = (
    {name: re.compile("(?i)" + "|".join(forms)) for name, forms in load_toml("rugs")[what].items()}
    for what in ("shapes", "constructions")
)
_NOMINALS = {(w, d): nominal for nominal, pairs in load_toml("rugs")["nominals"].items() for w, d in pairs}
_MAX_RUNNER_WIDTH = 4200
"""Maximum width of a runner in hundredths of an inch."""
_MIN_NOMINAL_DIFFERENCE = 400
_MAX_NOMINAL_DIFFERENCE = 1300
"""Maximum difference between a nominal and an actual side of a large rug (`4' x 6'`, actually 39 x 63 in), in hundredths of an inch.

For smaller rugs, the maximum is 1/5 of the side, but at least `_MIN_NOMINAL_DIFFERENCE`.
"""
_MIN_LONGEST_SIDE = 1500
"""Minimum of the longest side of a rug in hundredths of an inch: 15 inches."""
_MAX_LONGEST_SIDE = 47_300
"""Maximum of the longest side of a rug in hundredths of an inch: 12 metres."""


def _find_matching_name(patterns: Patterns, text: str) -> str | None:
    return next((name for name, found in patterns.items() if found.search(text)), None)


def _create_words_parser(patterns: Patterns, noun: str) -> Callable[[str], ParseResult[str]]:
    """Return a parser that returns the name of the pattern found in a cell. Its result can have the fault unreadable.

    Args:
        patterns: The patterns by name.
        noun: The word for the values in the message of the fault, such as `shape`.
    """

    @cell_parser()
    def parse(text: str, cleaned: str) -> ParseResult[str]:
        found = _find_matching_name(patterns, cleaned.replace("_", " "))
        return ParseResult(found) if found else build_unreadable_result(text, f"is not a known {noun} of rugs")

    return parse


parse_construction = _create_words_parser(CONSTRUCTIONS, "construction")
parse_shape = _create_words_parser(SHAPES, "shape")


@cell_parser()
def parse_indoor_outdoor(text: str, cleaned: str) -> ParseResult[str]:
    """Parse where a rug can be used: `indoor`, `outdoor` or `indoor_outdoor`. The result can have the fault unreadable."""
    low = cleaned.lower()
    inside = "indoor" in low or "innen" in low
    outside = "outdoor" in low or "außen" in low or "aussen" in low
    value = "_".join(["indoor"] * inside + ["outdoor"] * outside)
    return ParseResult(value) if value else build_unreadable_result(text, "does not state indoor or outdoor")


@dataclass(frozen=True, slots=True)
class RugSize:
    """Size of a rug.

    Attributes:
        shape: The shape.
        dimensions: The sides: `width` and `depth`, or `diameter`.
        nominal: The nominal size of the trade, such as "5x8", or None.
    """

    shape: str
    dimensions: Dimensions
    nominal: str | None = None


def _collect_sides(dimensions: Mapping[str, Any]) -> list[int]:
    """Return the two sides of a rug in ascending order, in hundredths of an inch; a diameter counts twice. Empty if not stated."""
    sides = [dimensions[name]["hundredths_in"] for name in ("width", "depth") if name in dimensions]
    diameter = dimensions.get("diameter")
    return sorted(sides) if len(sides) == 2 else [diameter["hundredths_in"]] * 2 if diameter else []


def is_same_rug(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two sizes can be those of one rug: they differ at most like a nominal and an actual size, or one is incomplete."""
    return all(
        abs(one - other) <= min(_MAX_NOMINAL_DIFFERENCE, max(_MIN_NOMINAL_DIFFERENCE, max(one, other) // 5))
        for one, other in zip(_collect_sides(first), _collect_sides(second), strict=False)
    )


def _build_size(first: Length, second: Length, shape: str | None) -> ParseResult[RugSize]:
    """Build the size of a rug from two sides.

    Args:
        first: The width.
        second: The depth.
        shape: The shape, or None if the sides determine the shape.
    """
    shorter, longer = sorted((first["hundredths_in"], second["hundredths_in"]))
    if shape == "round" and shorter == longer:
        return ParseResult(RugSize("round", {"diameter": first}))
    is_runner = shorter <= _MAX_RUNNER_WIDTH and 2 * longer >= 5 * shorter
    found = shape or ("square" if shorter == longer else "runner" if is_runner else "rectangle")
    has_nominal = shorter % 100 == 0 == longer % 100 and found in ("rectangle", "runner")
    nominal = _NOMINALS.get((shorter // 100, longer // 100)) if has_nominal else None
    return ParseResult(RugSize(found, {"width": first, "depth": second}, nominal))


_SIDE = re.compile(
    r"""(?xi)(?P<feet>\d{1,2})\s*(?:'|ft\.?|feet)\s*-?\s*(?P<inches>\d{1,2}(?:\.\d{1,3})?(?:\s+\d{1,2}/\d{1,2})?)
        \s*(?:"|in(?:ch(?:es)?)?\b\.?|(?=\s*x)|(?=\s*$)|(?=\s+[^\W\d_]{2}))
      | (?P<dotted>\d{1,2}\.\d{1,2})\s*(?:'|ft\b\.?|feet\b)
      | (?P<whole>\d{1,2})\s*(?:'|ft\b\.?|feet\b|foot\b)
      | (?P<inch>\d{1,3}(?:\.\d{1,3})?(?:\s+\d/\d{1,2})?)\s*(?:"|in\b\.?|inch(?:es)?\b)
      | (?P<metric>\d{1,4}(?:[.,]\d{1,2})?)\s*(?P<unit>cm|mm|m)\b
      | (?P<dashed>\d{1,2}-\d{1,2})(?![\d'])
      | (?P<bare>\d{1,3}(?:\.\d{0,2})?)"""
)
_BETWEEN_SIDES = re.compile(r"(?i)\s*-?\s*[wl]?\s*x\s*")
_START = re.compile(r"(?<![\d.])\d")
_ONE_START = re.compile(r"(?i)(?<![\d.x])\d")
_WORD = re.compile(r"\w")
_LENGTH_FIRST = re.compile(r"(?i)[^x]*\d\s?['\"]?\s?-?\s?l\b[^x]*x[^x]*\d\s?['\"]?\s?-?\s?w\b")
_LETTER_ROOM = 4
_TRUNCATED = re.compile(r"(?i)\d['\"]?\s*\d*['\"]?\s*x\s*$")
_MAX_UNITLESS_FEET = 15
_MIN_UNITLESS_INCHES = 20
_MAX_RUNNER_FEET = 4
_MIN_LARGE_RUG_FEET = 12
"""Minimum feet of the shorter side of a rug that is longer than `_MAX_UNITLESS_FEET`, such as 12 × 18, if it is no runner.
"""
_METRIC_LIKELY = 144
_ROUND_LIKELY = 100
_ROUNDING_TOLERANCE = 150
_NUMBER = r"(\d{1,4}(?:[.,]\d{1,2})?)"
_METRIC_PAIR = re.compile(rf"(?i)(?<![\d.,/-]){_NUMBER}\s*+(cm|mm|m)?\s*+x\s*+{_NUMBER}\s*+(cm|mm|m)\b")
_METRIC_ONE = re.compile(rf"(?i)(?<![\d.,/x-]){_NUMBER}\s*+(cm|mm|m)\b")
_CENTIMETRES = re.compile(r"(?i)(?<![\d.,/-])(\d{2,3})\s?x\s?(\d{2,3})(?![\d.,'\"])")
_SAMPLE_OR_CUSTOM = re.compile(rf"(?i)\b(?:{load_regex_alternatives('rugs', 'samples_and_custom_sizes')})s?\b")
_JOINED_PAIR = re.compile(r"(?i)\d\s{0,2}(?:['\"]|ft\.?|in\.?|cm|mm|m)?\s{0,2}[wl]?\s{0,2}x\s{0,2}\d")
_FURTHER_NUMBER = re.compile(r"(?<![^\W_])\d[\d.,]*(?!\d|\s?(?:pcs?|pile|ply|mm\b|%))")
(_METRIC_MARKET_WORDS, _METRES, _NOT_IN_TITLE, _RUG_WORDS, _WORDS_BEFORE_SIZE) = (
    load_patterns("rugs")[name] for name in "metric_market_words metres not_in_title rug_words size_prefix".split()
)
_BARE_PAIR = re.compile(rf"(?i){_NUMBER}\s*x\s*{_NUMBER}(?:\s*([^\W\d_]+)\.?)?")
_BARE_ONE = re.compile(rf"(?i)\D*?{_NUMBER}\s*([^\W\d_]+)?\W*")
_METRIC_UNIT = re.compile(r"(?i)\d\s?(?:cm|mm|m|см|мм|м)\b")
_SLUG = re.compile(r"(?i)(?<=\d)-(x)-(?=\d)|(?<=\d)-(?=cm\b|ft\b|in\b)")
_SLASHED = re.compile(r"(?<![\d.,/])(\d{2,3})\s?/\s?(\d{2,3})(?![\d/])")
_TWICE_JOINED = re.compile(r"(?i)\bby\b|(?<=[\d'\"])\s?\*\s?(?=\d)")
_MAX_PILE = 400
_DEPTH_LETTER = re.compile(r"(?i)\W{0,4}d\W{0,4}\d")
_PILE = re.compile(
    r"(?i)(?<=[\d'\"m])[\s,;(]{1,3}(?:h(?:öhe)?\.?\s?)?\d{1,2}(?:[.,]\d)?\s?mm\b(?:\s?[^\W\d_]{2,12}){0,2}\)?$"
)
_SIZE_IN_TITLE = re.compile(
    r"(?i)(?<![\w.,/'\"-])\d{1,2}(?:\.\d{1,2})?\s?x\s?\d{1,2}(?:\.\d{1,2})?(?![\w.,/'\"-]|\s?x)(?:\s?(?:feet|foot|ft)\b)?"
)
_METRIC_SIZE_IN_TITLE = re.compile(r"(?i)(?<![\w.,/'\"-])\d{2,3}\s?x\s?\d{2,3}(?![\w.,/'\"-]|\s?x)")
_ONE_SIDED = ("round", "square", "octagon")

SideMatch = re.Match[str]
_FoundSides = tuple[Length, Length, int, int]
"""Two sides, and the positions in the text where the first starts and the second ends."""


def _parse_metric_length(number: str, unit: str | None) -> Any:
    return build_measure(Decimal(number.replace(",", ".")), parse_length_unit(unit or "cm") or "cm")


def _parse_side(side: SideMatch, are_unitless_numbers_feet: bool) -> Any:
    """Convert the match of one side to a length, or None if the side is invalid.

    Args:
        side: The match.
        are_unitless_numbers_feet: Whether numbers without a unit are feet; otherwise they are inches.
    """
    written = side[side.lastgroup or 0]
    match side.lastgroup:
        case "inches":
            feet, inches = side["feet"], written
        case "whole":
            return build_measure(Decimal(written), "ft")
        case "inch":
            feet, inches = "0", written
        case "unit":
            return _parse_metric_length(side["metric"], written)
        case "dashed":
            feet, _, inches = written.partition("-")
        case "bare" if not are_unitless_numbers_feet:
            return build_measure(Decimal(written.rstrip(".")), "in")
        case _:
            # Feet and inches separated by a dot: `5.3` is 5'3", `1.10` is 1'10"; more than eleven inches are invalid.
            feet, _, inches = written.partition(".")
    part, _, fraction = inches.partition(" ")
    inch = Decimal(part or 0)
    if fraction:
        numerator, denominator = map(int, fraction.split("/"))
        if not 0 < numerator < denominator or (side.lastgroup == "inch" and denominator not in (2, 4, 8, 16, 32)):
            return None
        inch += Decimal(numerator) / denominator
    return build_measure(Decimal(feet) * 12 + inch, "in") if inch < 12 or side.lastgroup == "inch" else None


def _find_sides_at(normalised: str, position: int, *, needs_unit: bool = False) -> tuple[SideMatch, SideMatch] | None:
    """Find two sides with a multiplication sign between them at a position, or return None.

    Args:
        normalised: The normalised text.
        position: The position.
        needs_unit: Whether the first side must have a unit.
    """
    first = _SIDE.match(normalised, position)
    if first is None or (needs_unit and first.lastgroup in ("dashed", "bare")):
        return None
    mid = _BETWEEN_SIDES.match(normalised, first.end())
    second = _SIDE.match(normalised, mid.end()) if mid else None
    return (first, second) if second else None


def _find_sides_with_unit(normalised: str) -> tuple[SideMatch, SideMatch] | None:
    """Find the first two sides with a multiplication sign between them and a unit at the first side, or return None."""
    places = (_find_sides_at(normalised, start.start(), needs_unit=True) for start in _START.finditer(normalised))
    return next(filter(None, places), None)


def _list_unitless_numbers(sides: tuple[SideMatch, ...]) -> list[Decimal]:
    return [Decimal(side["bare"].rstrip(".")) for side in sides if side["bare"]]


def _are_unitless_numbers_feet(*sides: SideMatch) -> bool | None:
    """Return True if the numbers without a unit are in feet, False if they are in inches, and None if both are possible.

    Small numbers, and numbers next to feet, are in feet; large numbers are in inches.
    """
    numbers, kinds = _list_unitless_numbers(sides), {side.lastgroup for side in sides}
    if not numbers or kinds & {"inches", "whole", "dotted", "dashed"}:
        return True
    if "inch" in kinds or max(numbers) > _MIN_UNITLESS_INCHES:
        return False
    if max(numbers) <= _MAX_UNITLESS_FEET or not _MAX_RUNNER_FEET < min(numbers) < _MIN_LARGE_RUG_FEET:
        return min(numbers) <= _MAX_UNITLESS_FEET or None
    return None


def _build_size_from_sides(text: str, first: SideMatch, second: SideMatch, shape: str | None) -> ParseResult[RugSize]:
    """Build the size of a rug from the matches of two sides in feet and inches; ambiguous units give a fault."""
    are_feet, numbers = _are_unitless_numbers_feet(first, second), _list_unitless_numbers((first, second))
    if are_feet is None:
        return build_fault_result(ProblemKind.CONFLICT, text, "could be in feet or in inches")
    if len(numbers) == 2 and max(numbers) > _METRIC_LIKELY:
        return build_fault_result(ProblemKind.CONFLICT, text, "could be in inches or in centimetres")
    one, two = _parse_side(first, are_feet), _parse_side(second, are_feet)
    if not (one and two and one["hundredths_in"] and two["hundredths_in"]):
        return build_unreadable_result(text, "is not a size of a rug")
    if _LENGTH_FIRST.match(first.string[first.start() : second.end() + _LETTER_ROOM]):
        one, two = two, one
    return _build_size(one, two, shape)


def _find_metric_pair(normalised: str) -> _FoundSides | None:
    found = _METRIC_PAIR.search(normalised)
    if found is None:
        return None
    first, second = _parse_metric_length(found[1], found[2] or found[4]), _parse_metric_length(found[3], found[4])
    return (first, second, *found.span()) if first["hundredths_in"] and second["hundredths_in"] else None


def _remove_repeated_size(rest: str, sides: list[int]) -> str:
    """Remove a repetition of a size in another unit from the text around the size.

    Args:
        rest: The text around the size, in which numbers without a unit are in centimetres.
        sides: The sides of the size in hundredths of an inch.
    """
    pairs = [_find_metric_pair(rest)]
    if marked := _find_sides_with_unit(rest):
        first, second = (_parse_side(side, are_unitless_numbers_feet=True) for side in marked)
        pairs.append((first, second, marked[0].start(), marked[1].end()) if first and second else None)
    if bare := _CENTIMETRES.search(rest):
        pairs.append((_parse_metric_length(bare[1], "cm"), _parse_metric_length(bare[2], "cm"), *bare.span()))
    for first, second, start, end in filter(None, pairs):
        figures = (first["hundredths_in"], second["hundredths_in"])
        if all(abs(one - two) <= _ROUNDING_TOLERANCE for one, two in zip(sides, figures, strict=True)):
            return rest[:start] + rest[end:]
    return rest


def _check_surrounding_text(
    text: str, normalised: str, parsed: ParseResult[RugSize], start: int, end: int
) -> ParseResult[RugSize]:
    """Add a conflict to a parsed size if the text around the size contains another size.

    Args:
        text: The cell.
        normalised: The normalised text.
        parsed: The result with the parsed size.
        start: The position where the size starts.
        end: The position where the size ends.
    """
    if parsed.value is None or parsed.faults:
        return parsed
    rest, sides = f"{normalised[:start]} | {normalised[end:]}", parsed.value.dimensions
    if "width" in sides and "depth" in sides:
        rest = _remove_repeated_size(rest, [sides["width"]["hundredths_in"], sides["depth"]["hundredths_in"]])
    if _JOINED_PAIR.search(rest) or (not _WORD.search(normalised[:start]) and _FURTHER_NUMBER.search(rest)):
        return replace(parsed, faults=(build_conflict_fault(text, "states more than one size; the first is kept"),))
    return parsed


def is_sample_or_custom(text: str) -> bool:
    """Return whether a text says that a rug is a sample or made to measure."""
    return bool(_SAMPLE_OR_CUSTOM.search(text[:500]))


@cell_parser(max_chars=500)
def parse_rug_size(text: str, cleaned: str, unit: str | None = None) -> ParseResult[RugSize]:
    """Parse the size and shape of a rug from a cell with a size or title.

    A dot separates feet and inches, as in the rug trade (`5.3` is 5'3", `1.10` is 1'10"). Numbers without a unit are in feet up to 15 and in
    inches above 20; between these, a conflict is reported. A runner is at most 3'6" wide and at least 2.5 times as long. The result can have
    the faults unreadable (also for truncated sizes, samples and rugs made to measure) and conflict.

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        unit: The unit of the column, or None.
    """
    normalised = re.sub(
        r"(?i)^rug ?size\s*:\s*", "", re.sub(r"(\d) (?=['\"])", r"\1", normalise_typography(cleaned))
    ).strip()
    normalised = _METRES.sub(" m", _SLUG.sub(lambda match: match[1] or " ", _TWICE_JOINED.sub("x", normalised)))
    if _SAMPLE_OR_CUSTOM.search(normalised):
        return build_unreadable_result(text, "is a sample or made to measure, not the size of a rug")
    shape = _find_matching_name(SHAPES, normalised)
    if (pile := _PILE.search(normalised)) and _JOINED_PAIR.search(normalised, 0, pile.start()):
        # The unit of the thickness is not that of the sides, but it indicates a metric market.
        normalised = normalised[: pile.start()]
        bare = _BARE_PAIR.fullmatch(normalised.strip())
        if unit is None and bare and not bare[3] and Decimal(bare[1].replace(",", ".")) > _MIN_UNITLESS_INCHES:
            unit = "cm"
    if unit in METRIC_LENGTH_UNITS or _METRIC_UNIT.search(normalised):
        found = _parse_metric_size(text, normalised, unit, shape)
    else:
        found = (_parse_pair_in_unit(text, normalised, unit, shape) if unit == "in" else None) or _parse_first_size(
            text, normalised, shape
        )
    sides: Any = found.value.dimensions if found.value else {}
    figures = [side["hundredths_in"] for side in sides.values()]
    if figures and not (_MIN_LONGEST_SIDE <= max(figures) <= _MAX_LONGEST_SIDE):
        reason = "is not a plausible size of a rug in the unit of the cell or column"
        return build_fault_result(ProblemKind.CONFLICT, text, reason)
    return found


def _parse_pair_in_unit(text: str, normalised: str, unit: str, shape: str | None) -> ParseResult[RugSize] | None:
    """Parse two numbers without a unit as a size in the unit of the column; None for any other text."""
    bare = _BARE_PAIR.fullmatch(normalised)
    if bare is None or parse_length_unit(bare[3] or ""):
        return None
    first, second = _parse_metric_length(bare[1], unit), _parse_metric_length(bare[2], unit)
    sound = first["hundredths_in"] and second["hundredths_in"]
    return _build_size(first, second, shape) if sound else build_unreadable_result(text, "is not a size of a rug")


def _parse_metric_size(text: str, normalised: str, unit: str | None, shape: str | None) -> ParseResult[RugSize]:
    """Parse a size in metric units: numbers in the unit of the column, a size with units, or labelled sides."""
    if unit is not None and unit in METRIC_LENGTH_UNITS:
        normalised = _SLASHED.sub(r"\1x\2", normalised)
        if pair := _parse_pair_in_unit(text, normalised, unit, shape):
            return pair
        in_title = None if _METRIC_UNIT.search(normalised) else _METRIC_SIZE_IN_TITLE.search(normalised)
        if in_title and (pair := _parse_pair_in_unit(text, in_title[0], unit, shape)):
            return _check_surrounding_text(text, normalised, pair, *in_title.span())
        one = _BARE_ONE.fullmatch(normalised)
        if shape in _ONE_SIDED and one and not parse_length_unit(one[2] or ""):
            return _build_size_from_one_side(_parse_metric_length(one[1], unit), str(shape))
    found = _parse_first_size(text, normalised, shape)
    size: Any = found.value and found.value.dimensions
    # The second figure of a round rug can be its thickness (`Ø 200 cm x 12 mm`).
    is_thick = (
        shape == "round"
        and size
        and "depth" in size
        and 4 * size["depth"]["hundredths_in"] < size["width"]["hundredths_in"]
    )
    if size and not is_thick:
        return found
    parsed = parse_dimensions(normalised, unit, RUG)
    sides = parsed.value.dimensions if parsed.value else {}
    is_thickness = "height" in sides and sides["height"]["hundredths_in"] <= _MAX_PILE
    faults = () if is_thickness else parsed.faults
    diameter = sides.get("diameter") or (
        sides.get("depth") if _DEPTH_LETTER.match(normalised) and len(sides) == 1 else None
    )
    if diameter and set(sides) <= {"diameter", "depth", "height"}:
        return ParseResult(RugSize("round", {"diameter": diameter}), faults)
    if {"width", "depth"} <= set(sides) <= {"width", "depth", "height"}:
        return replace(_build_size(sides["width"], sides["depth"], shape), faults=faults)
    return found


def _parse_first_size(text: str, normalised: str, shape: str | None) -> ParseResult[RugSize]:
    """Parse the first size in a text; in a title it can be in feet without a unit (`Woven Rug 5 x 8 - Acme`)."""
    start = _WORD.search(normalised)
    sides = _find_sides_with_unit(normalised) or (_find_sides_at(normalised, start.start()) if start else None)
    if (
        sides is None
        and len(in_title := list(_SIZE_IN_TITLE.finditer(normalised))) == 1
        and not _NOT_IN_TITLE.search(normalised)
    ):
        sides = _find_sides_at(normalised, in_title[0].start())
        feet = _are_unitless_numbers_feet(*sides) if sides else None
        sides = sides if feet or (feet is False and _RUG_WORDS.search(normalised)) else None
    metric = _find_metric_pair(normalised)
    if metric and (sides is None or metric[2] <= sides[0].start() or sides[1].lastgroup == "unit"):
        return _check_surrounding_text(text, normalised, _build_size(metric[0], metric[1], shape), metric[2], metric[3])
    if sides:
        return _check_surrounding_text(
            text, normalised, _build_size_from_sides(text, *sides, shape), sides[0].start(), sides[1].end()
        )
    if _TRUNCATED.search(normalised):
        return build_unreadable_result(text, "states only the first of several dimensions")
    return (
        _parse_only_side(text, normalised, shape)
        if shape in _ONE_SIDED
        else build_unreadable_result(text, "is not a size of a rug")
    )


def _build_size_from_one_side(side: Length, shape: str) -> ParseResult[RugSize]:
    """Build the size of a round, square or octagonal rug from its only side or diameter."""
    return ParseResult(RugSize(shape, {"diameter": side} if shape == "round" else {"width": side, "depth": side}))


def _parse_only_side(text: str, normalised: str, shape: str | None) -> ParseResult[RugSize]:
    """Parse the only side or diameter in a text as the size of a round, square or octagonal rug."""
    side: Length | None = None
    end = 0
    if metric := _METRIC_ONE.search(normalised):
        side, end = _parse_metric_length(metric[1], metric[2]), metric.end()
    else:
        normalised = _WORDS_BEFORE_SIZE.sub("", normalised)
        marked: list[SideMatch] = []
        for start_match in _ONE_START.finditer(normalised):
            found = (
                _SIDE.match(normalised, start_match.start())
                if not marked or start_match.start() >= marked[-1].end()
                else None
            )
            if found and found.lastgroup not in ("dashed", "bare"):
                marked.append(found)
        start = _WORD.search(normalised)
        single = marked[0] if len(marked) == 1 else _SIDE.match(normalised, start.start()) if start else None
        if single:
            bare = _list_unitless_numbers((single,))
            if bare and bare[0] > (_MIN_UNITLESS_INCHES if _METRIC_MARKET_WORDS.search(text) else _ROUND_LIKELY):
                return build_fault_result(ProblemKind.CONFLICT, text, "could be in inches or in centimetres")
            feet = _are_unitless_numbers_feet(single)
            side, end = _parse_side(single, bool(feet)) if feet is not None else None, single.end()
    if not side or not side["hundredths_in"]:
        return build_unreadable_result(text, "is not a size of a rug")
    return _check_surrounding_text(text, normalised, _build_size_from_one_side(side, str(shape)), 0, end)
