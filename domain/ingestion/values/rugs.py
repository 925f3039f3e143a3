"""Rugs: sizes in feet and inches, in the form of the trade, or in metric units; shapes and constructions.

size     := side ["w" | "l"] join side [confirm] [shape] | side shape | shape side        one side of round and square rugs
side     := feet ["-"] inches | feet "." inches | inches | metric | bare
feet     := digits ("'" | "ft" | "feet");  inches := digits [fraction] ('"' | "in")      5'3", 5'-3", 5.3', 5-3
bare     := digits                       to 15 feet (to 20 beside 4 or less, 12 or more), above 20 inches, above 144 perhaps centimetres: reported
metric   := decimal ("cm" | "mm" | "m")  the unit can be stated once, after the last side
           | number join number | one number of a round or square rug, in a metric column; labelled sides (`dimensions`)
confirm  := the same size in another unit, in brackets, beside it or after a slash; another size is reported
amid     := digits join digits            the only one among other words: feet, or inches if the words name a rug or a mat
shape    := a word of `shapes` in data/rugs.toml, in six languages; samples and made to measure are not a size of the rug: reported
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.data import expressions, load, pattern
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import RUG
from domain.ingestion.values.quantities import METRIC, folded, measured, unit_named
from domain.ingestion.values.text import Parsed, cell_parser, conflict, refused, unreadable
from domain.kernel.problems import ProblemKind

Patterns = dict[str, re.Pattern[str]]
SHAPES, CONSTRUCTIONS = (
    {name: re.compile("(?i)" + "|".join(forms)) for name, forms in load("rugs")[what].items()}
    for what in ("shapes", "constructions")
)
_NOMINALS = {(w, d): nominal for nominal, pairs in load("rugs")["nominals"].items() for w, d in pairs}
_RUNNER_WIDTH = 4200
_SMALLEST = 1500
_LARGEST = 47_300
"""Bounds of the longest side of a rug, in hundredths of an inch: 15 inches to 12 metres."""


def _named(patterns: Patterns, text: str) -> str | None:
    return next((name for name, found in patterns.items() if found.search(text)), None)


def _one_of(patterns: Patterns, what: str) -> Callable[[str], Parsed[str]]:
    """Return a parser of the words that the patterns match. Problem: unreadable."""

    @cell_parser()
    def parse(text: str, given: str) -> Parsed[str]:
        found = _named(patterns, given.replace("_", " "))
        return Parsed(found) if found else unreadable(text, f"is not a known {what} of rugs")

    return parse


parse_construction = _one_of(CONSTRUCTIONS, "construction")
parse_shape = _one_of(SHAPES, "shape")


@cell_parser()
def parse_indoor_outdoor(text: str, given: str) -> Parsed[str]:
    """Parse `indoor`, `outdoor` or `indoor_outdoor`. Problem: unreadable."""
    low = given.lower()
    inside = "indoor" in low or "innen" in low
    outside = "outdoor" in low or "außen" in low or "aussen" in low
    value = "_".join(["indoor"] * inside + ["outdoor"] * outside)
    return Parsed(value) if value else unreadable(text, "does not state indoor or outdoor")


@dataclass(frozen=True, slots=True)
class RugSize:
    """A rug's shape and sides (`width` and `depth`, or `diameter`), with its nominal size where the trade has one."""

    shape: str
    dimensions: Dimensions
    nominal: str | None = None


def _sized(first: Length, second: Length, shape: str | None) -> Parsed[RugSize]:
    """Return the size of two sides in the given order; a missing shape follows from their lengths."""
    short, tall = sorted((first["hundredths_in"], second["hundredths_in"]))
    if shape == "round" and short == tall:
        return Parsed(RugSize("round", {"diameter": first}))
    is_runner = short <= _RUNNER_WIDTH and 2 * tall >= 5 * short
    found = shape or ("square" if short == tall else "runner" if is_runner else "rectangle")
    has_nominal = short % 100 == 0 == tall % 100 and found in ("rectangle", "runner")
    nominal = _NOMINALS.get((short // 100, tall // 100)) if has_nominal else None
    return Parsed(RugSize(found, {"width": first, "depth": second}, nominal))


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
_MID = re.compile(r"(?i)\s*-?\s*[wl]?\s*x\s*")
_START = re.compile(r"(?<![\d.])\d")
_ONE_START = re.compile(r"(?i)(?<![\d.x])\d")
_WORD = re.compile(r"\w")
_LENGTH_FIRST = re.compile(r"(?i)[^x]*\d\s?['\"]?\s?-?\s?l\b[^x]*x[^x]*\d\s?['\"]?\s?-?\s?w\b")
_LETTER_ROOM = 4
_CUT = re.compile(r"(?i)\d['\"]?\s*\d*['\"]?\s*x\s*$")
_FEET_MOST = 15
_FEET_NEVER = 20
_NARROW = 4
_WIDE = 12
"""Bounds of the shorter side beside one of 15 to 20: feet up to 4 (runners) and from 12 (large rugs), ambiguous between."""
_METRIC_LIKELY = 144
_ROUND_LIKELY = 100
_SAME_WITHIN = 150
_NUMBER = r"(\d{1,4}(?:[.,]\d{1,2})?)"
_METRIC_PAIR = re.compile(rf"(?i)(?<![\d.,/-]){_NUMBER}\s*+(cm|mm|m)?\s*+x\s*+{_NUMBER}\s*+(cm|mm|m)\b")
_METRIC_ONE = re.compile(rf"(?i)(?<![\d.,/x-]){_NUMBER}\s*+(cm|mm|m)\b")
_CENTIMETRES = re.compile(r"(?i)(?<![\d.,/-])(\d{2,3})\s?x\s?(\d{2,3})(?![\d.,'\"])")
_NO_RUG = re.compile(rf"(?i)\b(?:{pattern('rugs', 'no_rug')})s?\b")
_JOINED_PAIR = re.compile(r"(?i)\d\s{0,2}(?:['\"]|ft\.?|in\.?|cm|mm|m)?\s{0,2}[wl]?\s{0,2}x\s{0,2}\d")
_STRAY = re.compile(r"(?<![^\W_])\d[\d.,]*(?!\d|\s?(?:pcs?|pile|ply|mm\b|%))")
(_ABROAD, _METRES, _NO_TITLE, _OF_RUGS, _AHEAD) = (
    expressions("rugs")[name] for name in "abroad metres no_title of_rugs ahead".split()
)
_BARE_PAIR = re.compile(rf"(?i){_NUMBER}\s*x\s*{_NUMBER}(?:\s*([^\W\d_]+)\.?)?")
_BARE_ONE = re.compile(rf"(?i)\D*?{_NUMBER}\s*([^\W\d_]+)?\W*")
_METRIC_UNIT = re.compile(r"(?i)\d\s?(?:cm|mm|m|см|мм|м)\b")
_SLUG = re.compile(r"(?i)(?<=\d)-(x)-(?=\d)|(?<=\d)-(?=cm\b|ft\b|in\b)")
_SLASHED = re.compile(r"(?<![\d.,/])(\d{2,3})\s?/\s?(\d{2,3})(?![\d/])")
_TWICE_JOINED = re.compile(r"(?i)\bby\b|(?<=[\d'\"])\s?\*\s?(?=\d)")
_THICKEST = 400
_LETTER_D = re.compile(r"(?i)\W{0,4}d\W{0,4}\d")
_PILE = re.compile(
    r"(?i)(?<=[\d'\"m])[\s,;(]{1,3}(?:h(?:öhe)?\.?\s?)?\d{1,2}(?:[.,]\d)?\s?mm\b(?:\s?[^\W\d_]{2,12}){0,2}\)?$"
)
_AMID = re.compile(
    r"(?i)(?<![\w.,/'\"-])\d{1,2}(?:\.\d{1,2})?\s?x\s?\d{1,2}(?:\.\d{1,2})?(?![\w.,/'\"-]|\s?x)(?:\s?(?:feet|foot|ft)\b)?"
)
_AMID_METRIC = re.compile(r"(?i)(?<![\w.,/'\"-])\d{2,3}\s?x\s?\d{2,3}(?![\w.,/'\"-]|\s?x)")
_ONE_SIDED = ("round", "square", "octagon")

Side = re.Match[str]
_Found = tuple[Length, Length, int, int]
"""Two sides, and start and end of their text."""


def _metric(number: str, unit: str | None) -> Any:
    return measured(Decimal(number.replace(",", ".")), unit_named(unit or "cm") or "cm")


def _length_of(side: Side, bare_feet: bool) -> Any:
    """Return one side, or None if it is invalid; bare numbers are feet or inches by `bare_feet`."""
    written = side[side.lastgroup or 0]
    match side.lastgroup:
        case "inches":
            feet, inches = side["feet"], written
        case "whole":
            return measured(Decimal(written), "ft")
        case "inch":
            feet, inches = "0", written
        case "unit":
            return _metric(side["metric"], written)
        case "dashed":
            feet, _, inches = written.partition("-")
        case "bare" if not bare_feet:
            return measured(Decimal(written.rstrip(".")), "in")
        case _:
            # Feet and inches separated by a dot: `5.3` is 5'3", `1.10` is 1'10"; more than eleven inches are invalid.
            feet, _, inches = written.partition(".")
    part, _, fraction = inches.partition(" ")
    inch = Decimal(part or 0)
    if fraction:
        over, under = map(int, fraction.split("/"))
        if not 0 < over < under or (side.lastgroup == "inch" and under not in (2, 4, 8, 16, 32)):
            return None
        inch += Decimal(over) / under
    return measured(Decimal(feet) * 12 + inch, "in") if inch < 12 or side.lastgroup == "inch" else None


def _sides_at(flat: str, at: int, *, marked: bool = False) -> tuple[Side, Side] | None:
    """Return two sides with a sign between them at a position, or None; with `marked`, the first must have a unit."""
    first = _SIDE.match(flat, at)
    if first is None or (marked and first.lastgroup in ("dashed", "bare")):
        return None
    mid = _MID.match(flat, first.end())
    second = _SIDE.match(flat, mid.end()) if mid else None
    return (first, second) if second else None


def _marked_sides(flat: str) -> tuple[Side, Side] | None:
    places = (_sides_at(flat, start.start(), marked=True) for start in _START.finditer(flat))
    return next(filter(None, places), None)


def _bare_figures(sides: tuple[Side, ...]) -> list[Decimal]:
    return [Decimal(side["bare"].rstrip(".")) for side in sides if side["bare"]]


def _bare_are_feet(*sides: Side) -> bool | None:
    """Return whether bare numbers are feet (beside feet, or small), inches (large), or None if ambiguous."""
    bare, kinds = _bare_figures(sides), {side.lastgroup for side in sides}
    if not bare or kinds & {"inches", "whole", "dotted", "dashed"}:
        return True
    if "inch" in kinds or max(bare) > _FEET_NEVER:
        return False
    if max(bare) <= _FEET_MOST or not _NARROW < min(bare) < _WIDE:
        return min(bare) <= _FEET_MOST or None
    return None


def _two_sides(text: str, first: Side, second: Side, shape: str | None) -> Parsed[RugSize]:
    feet, bare = _bare_are_feet(first, second), _bare_figures((first, second))
    if feet is None:
        return refused(ProblemKind.CONFLICT, text, "could be in feet or in inches")
    if len(bare) == 2 and max(bare) > _METRIC_LIKELY:
        return refused(ProblemKind.CONFLICT, text, "could be in inches or in centimetres")
    one, two = _length_of(first, feet), _length_of(second, feet)
    if not (one and two and one["hundredths_in"] and two["hundredths_in"]):
        return unreadable(text, "is not a size of a rug")
    if _LENGTH_FIRST.match(first.string[first.start() : second.end() + _LETTER_ROOM]):
        one, two = two, one
    return _sized(one, two, shape)


def _metric_pair(flat: str) -> _Found | None:
    found = _METRIC_PAIR.search(flat)
    if found is None:
        return None
    first, second = _metric(found[1], found[2] or found[4]), _metric(found[3], found[4])
    return (first, second, *found.span()) if first["hundredths_in"] and second["hundredths_in"] else None


def _without_repeat(rest: str, sides: list[int]) -> str:
    """Return the text without the same size in another unit; figures without a unit are centimetres."""
    pairs = [_metric_pair(rest)]
    if marked := _marked_sides(rest):
        first, second = (_length_of(side, bare_feet=True) for side in marked)
        pairs.append((first, second, marked[0].start(), marked[1].end()) if first and second else None)
    if bare := _CENTIMETRES.search(rest):
        pairs.append((_metric(bare[1], "cm"), _metric(bare[2], "cm"), *bare.span()))
    for first, second, start, end in filter(None, pairs):
        figures = (first["hundredths_in"], second["hundredths_in"])
        if all(abs(one - two) <= _SAME_WITHIN for one, two in zip(sides, figures, strict=True)):
            return rest[:start] + rest[end:]
    return rest


def _alone(text: str, flat: str, read: Parsed[RugSize], start: int, end: int) -> Parsed[RugSize]:
    """Return the size, with a conflict if the text around it states another one."""
    if read.value is None or read.faults:
        return read
    rest, sides = f"{flat[:start]} | {flat[end:]}", read.value.dimensions
    if "width" in sides and "depth" in sides:
        rest = _without_repeat(rest, [sides["width"]["hundredths_in"], sides["depth"]["hundredths_in"]])
    if _JOINED_PAIR.search(rest) or (not _WORD.search(flat[:start]) and _STRAY.search(rest)):
        return replace(read, faults=(conflict(text, "states more than one size; the first is kept"),))
    return read


def is_no_rug(text: str) -> bool:
    """Return whether a text describes a sample or a made-to-measure rug."""
    return bool(_NO_RUG.search(text[:500]))


@cell_parser(longest=500)
def parse_rug_size(text: str, given: str, unit: str | None = None) -> Parsed[RugSize]:
    """Parse a rug's size and shape from a size cell or a title; `unit` is the column's, for numbers without one.

    A dot between feet and inches has the meaning of the trade (`5.3'` is 5'3", `1.10` is 1'10"). Bare numbers up to 15 are
    feet, above 20 inches, and otherwise a conflict. A runner is at most 3'6" wide and at least 2.5 times as long. Problems:
    unreadable (also for truncated sizes, samples and made-to-measure rugs), conflict.
    """
    flat = re.sub(r"(?i)^rug ?size\s*:\s*", "", re.sub(r"(\d) (?=['\"])", r"\1", folded(given))).strip()
    flat = _METRES.sub(" m", _SLUG.sub(lambda match: match[1] or " ", _TWICE_JOINED.sub("x", flat)))
    if _NO_RUG.search(flat):
        return unreadable(text, "is a sample or made to measure, not the size of a rug")
    shape = _named(SHAPES, flat)
    if (pile := _PILE.search(flat)) and _JOINED_PAIR.search(flat, 0, pile.start()):
        # The unit of the thickness is not that of the sides, but it indicates a metric market.
        flat = flat[: pile.start()]
        bare = _BARE_PAIR.fullmatch(flat.strip())
        if unit is None and bare and not bare[3] and Decimal(bare[1].replace(",", ".")) > _FEET_NEVER:
            unit = "cm"
    if unit in METRIC or _METRIC_UNIT.search(flat):
        found = _of_metric(text, flat, unit, shape)
    else:
        found = (_pair_in(text, flat, unit, shape) if unit == "in" else None) or _found_size(text, flat, shape)
    sides: Any = found.value.dimensions if found.value else {}
    figures = [side["hundredths_in"] for side in sides.values()]
    if figures and not (_SMALLEST <= max(figures) <= _LARGEST):
        reason = "is not a plausible size of a rug in its unit or that of its column"
        return refused(ProblemKind.CONFLICT, text, reason)
    return found


def _pair_in(text: str, flat: str, unit: str, shape: str | None) -> Parsed[RugSize] | None:
    """Return the size of two numbers in their column's unit; None if the text names a unit or is not such a pair."""
    bare = _BARE_PAIR.fullmatch(flat)
    if bare is None or unit_named(bare[3] or ""):
        return None
    first, second = _metric(bare[1], unit), _metric(bare[2], unit)
    sound = first["hundredths_in"] and second["hundredths_in"]
    return _sized(first, second, shape) if sound else unreadable(text, "is not a size of a rug")


def _of_metric(text: str, flat: str, unit: str | None, shape: str | None) -> Parsed[RugSize]:
    """Return a size in metric units: in the column's unit, in the form of rug sizes, or else by labelled sides."""
    if unit is not None and unit in METRIC:
        flat = _SLASHED.sub(r"\1x\2", flat)
        if pair := _pair_in(text, flat, unit, shape):
            return pair
        amid = None if _METRIC_UNIT.search(flat) else _AMID_METRIC.search(flat)
        if amid and (pair := _pair_in(text, amid[0], unit, shape)):
            return _alone(text, flat, pair, *amid.span())
        one = _BARE_ONE.fullmatch(flat)
        if shape in _ONE_SIDED and one and not unit_named(one[2] or ""):
            return _one_sided(_metric(one[1], unit), str(shape))
    found = _found_size(text, flat, shape)
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
    parsed = parse_dimensions(flat, unit, RUG)
    sides = parsed.value.dimensions if parsed.value else {}
    thick = "height" in sides and sides["height"]["hundredths_in"] <= _THICKEST
    faults = () if thick else parsed.faults
    across = sides.get("diameter") or (sides.get("depth") if _LETTER_D.match(flat) and len(sides) == 1 else None)
    if across and set(sides) <= {"diameter", "depth", "height"}:
        return Parsed(RugSize("round", {"diameter": across}), faults)
    if {"width", "depth"} <= set(sides) <= {"width", "depth", "height"}:
        return replace(_sized(sides["width"], sides["depth"], shape), faults=faults)
    return found


def _found_size(text: str, flat: str, shape: str | None) -> Parsed[RugSize]:
    """Return the first size in a text, also a size in feet without marks in a title (`Woven Rug 5 x 8 - Acme`)."""
    start = _WORD.search(flat)
    sides = _marked_sides(flat) or (_sides_at(flat, start.start()) if start else None)
    if sides is None and len(amid := list(_AMID.finditer(flat))) == 1 and not _NO_TITLE.search(flat):
        sides = _sides_at(flat, amid[0].start())
        feet = _bare_are_feet(*sides) if sides else None
        sides = sides if feet or (feet is False and _OF_RUGS.search(flat)) else None
    metric = _metric_pair(flat)
    if metric and (sides is None or metric[2] <= sides[0].start() or sides[1].lastgroup == "unit"):
        return _alone(text, flat, _sized(metric[0], metric[1], shape), metric[2], metric[3])
    if sides:
        return _alone(text, flat, _two_sides(text, *sides, shape), sides[0].start(), sides[1].end())
    if _CUT.search(flat):
        return unreadable(text, "is cut off after its first side")
    return _from_one_side(text, flat, shape) if shape in _ONE_SIDED else unreadable(text, "is not a size of a rug")


def _one_sided(side: Length, shape: str) -> Parsed[RugSize]:
    """Return the size of a rug with equal sides."""
    return Parsed(RugSize(shape, {"diameter": side} if shape == "round" else {"width": side, "depth": side}))


def _from_one_side(text: str, flat: str, shape: str | None) -> Parsed[RugSize]:
    """Return the size of a round, square or octagonal rug from one side."""
    side: Length | None = None
    end = 0
    if metric := _METRIC_ONE.search(flat):
        side, end = _metric(metric[1], metric[2]), metric.end()
    else:
        flat = _AHEAD.sub("", flat)
        marked: list[Side] = []
        for place in _ONE_START.finditer(flat):
            found = _SIDE.match(flat, place.start()) if not marked or place.start() >= marked[-1].end() else None
            if found and found.lastgroup not in ("dashed", "bare"):
                marked.append(found)
        start = _WORD.search(flat)
        single = marked[0] if len(marked) == 1 else _SIDE.match(flat, start.start()) if start else None
        if single:
            bare = _bare_figures((single,))
            if bare and bare[0] > (_FEET_NEVER if _ABROAD.search(text) else _ROUND_LIKELY):
                return refused(ProblemKind.CONFLICT, text, "could be in inches or in centimetres")
            feet = _bare_are_feet(single)
            side, end = _length_of(single, bool(feet)) if feet is not None else None, single.end()
    if not side or not side["hundredths_in"]:
        return unreadable(text, "is not a size of a rug")
    return _alone(text, flat, _one_sided(side, str(shape)), 0, end)
