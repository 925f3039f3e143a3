"""Parsing of lengths in titles and cells to centimetres, and comparison of lengths."""

import re
from collections.abc import Sequence

from domain.ingestion.values.quantities import ParsedMeasure, parse_length, parse_length_unit, parse_measure_at

Size = tuple[float, ...]
"""The dimensions of one size in centimetres, such as width, depth and height, in the written order."""
MAX_MEASURE = 10**7
"""Exclusive upper limit for lengths (inches, or as stated), weights (pounds) and counts; greater values are ignored."""
CM_PER_HUNDREDTH_INCH = 0.0254
_CM_BY_UNIT = {"mm": 0.1, "cm": 1.0, "m": 100.0, "in": 2.54, "ft": 30.48}
_HINT = re.compile(r"\d[\s-]*+(?:[wdhlbt]\s*+)?(?:[\"']|[cm]?m|in|ft|feet|foot|cent|meter|metre|zoll)")
_START = re.compile(r"(?<![\w.,/])(?:[wdhlbt]\s?)?(?=\d)(?!\d++(?:[\s-]*+in[\s-]*+\d|\s?mb\b))")
"""Start of a size; neither `2-in-1` nor `512MB`."""
_FRACTION_AND_SLASH = re.compile(r"(?<=\d/[248])/(?=\d)|(?<=\d/16)/(?=\d)")
_LETTER = re.compile(r"\s*+[wdhlbt](?![^\W\d_])")
_JOINT = re.compile(r"\s*+(?:[x/]\s*+(?:[wdhlbt]\s?)?|,?\s[wdhlbt]\s?)(?=\d)")
_MAX_CM = 1_500
"""Exclusive upper limit of a length in a title; greater numbers are not sizes of items, but for example of cables."""
_MAX_SIZES = 8
"""Maximum number of sizes of one text."""
_MAX_DIMENSIONS = 8
"""Maximum number of dimensions of one size."""
_TOLERANCE = 0.045
_TOLERANCE_CM = 1.6


def discard_out_of_range(value: float | None, upper_limit: float = MAX_MEASURE) -> float | None:
    """Return the value if it is at least 0 and less than `upper_limit`, else None."""
    return value if value is not None and 0 <= value < upper_limit else None


def extract_sizes(title: str) -> tuple[tuple[Size, ...], str]:
    """Return the sizes in a normalised title (`normalise_characters`), and the title without these sizes.

    A size is a sequence of lengths with at least one unit, separated by `x`, `/` or letters of dimensions:
    `W 80 x D 60 cm`. Both ends of a range belong to the size.
    """
    if not _HINT.search(title):
        return (), title
    title = _FRACTION_AND_SLASH.sub(" x ", title.replace("''", '"').replace(" - ", " ; "))
    found: list[Size] = []
    rest: list[str] = []
    at = last = 0
    while start := _START.search(title, at):
        size, at = _parse_size_at(title, start.end())
        if size:
            found.append(size)
            rest += (title[last : start.start()], " ")
            last = at
    return tuple(found[:_MAX_SIZES]), "".join((*rest, title[last:]))


def _parse_size_at(title: str, position: int) -> tuple[Size, int]:
    """Return the size whose first number begins at a position, empty without a unit, and the position after it."""
    measures: list[ParsedMeasure] = []
    end = position
    while measure := parse_measure_at(title, position):
        measures.append(measure)
        letter = _LETTER.match(title, measure.end)
        end = letter.end() if letter else measure.end
        joint = _JOINT.match(title, end)
        if joint is None:
            break
        position = joint.end()
    after = max(end, position + 1)
    if len(measures) > _MAX_DIMENSIONS:
        return (), after
    unit: str | None = None
    lengths: list[float] = []
    for measure in reversed(measures):
        unit = measure.unit or unit
        if unit is None:
            return (), after
        if len(measures) == 1 and title[measure.end - 1] == "'":
            unit = "in"  # a single figure with one prime usually means inches without their second prime
        values = (measure.upper_bound, measure.value)
        lengths += [round(float(value) * _CM_BY_UNIT[unit], 2) for value in values if value is not None]
    is_size = len(lengths) <= _MAX_DIMENSIONS and all(0 < length < _MAX_CM for length in lengths)
    return (tuple(reversed(lengths)) if is_size else ()), after


def parse_length_cell(cell: str, column_unit: str) -> tuple[float, float] | None:
    """Return the length in a cell, in centimetres and as the number written; None if the text is not a length.

    Args:
        cell: The text of the cell.
        column_unit: The unit of the column, or an empty string.
    """
    cell = cell.strip()
    if not cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        parsed = parse_length(cell, column_unit or None).value
        if parsed is None or parsed["hundredths_in"] >= MAX_MEASURE * 100:
            return None
        return round(parsed["hundredths_in"] * CM_PER_HUNDREDTH_INCH, 2), float(parsed["given"]["value"])
    factor = _CM_BY_UNIT[parse_length_unit(column_unit.strip()) or "cm"]
    return (round(value * factor, 2), value) if 0 < value < MAX_MEASURE else None


def are_lengths_nearly_equal(first_cm: float, second_cm: float) -> bool:
    """Return whether two lengths in centimetres agree, apart from rounding in the conversion of units.

    The permitted difference is 0.7 cm, or 1.2% of the greater length if this is more.
    """
    return abs(first_cm - second_cm) <= max(0.7, 0.012 * max(first_cm, second_cm))


def are_lengths_clearly_different(first_cm: float, second_cm: float) -> bool:
    """Return whether two lengths in centimetres differ by more than rounding explains: by over 4.5% and 1.6 cm."""
    return abs(first_cm - second_cm) > max(_TOLERANCE_CM, _TOLERANCE * max(first_cm, second_cm))


def have_same_size(left_sizes: Sequence[Size], right_sizes: Sequence[Size]) -> bool | None:
    """Return whether any size of one title agrees with any size of the other; None if no two sizes are comparable.

    The order of the dimensions does not matter.
    """
    best: bool | None = None
    for left in left_sizes:
        for right in right_sizes:
            if len(left) == len(right):
                fits = not any(
                    are_lengths_clearly_different(a, b) for a, b in zip(sorted(left), sorted(right), strict=True)
                )
            else:
                short, long = sorted((left, right), key=len)
                if len(short) == 1 and len(long) > 1:
                    continue
                fits = all(any(not are_lengths_clearly_different(a, b) for b in long) for a in short)
            if fits:
                return True
            best = False
    return best
