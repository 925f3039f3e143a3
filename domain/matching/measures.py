"""Parsing of lengths in titles and cells to centimetres, and comparison of lengths."""

import re
from collections.abc import Sequence

from domain.ingestion.values.quantities import parse_length

Size = tuple[float, ...]
"""The dimensions of one size in centimetres, such as width, depth and height, in the written order."""
MAX_MEASURE = 10**7
"""Exclusive upper limit for lengths (inches, or as stated), weights (pounds) and counts; greater values are ignored."""
CM_PER_HUNDREDTH_INCH = 0.0254
_CM = {
    **dict.fromkeys(("cm", "centimetre", "centimetres", "centimeter", "centimeters"), 1.0),
    **dict.fromkeys(("mm", "millimeter", "millimeters"), 0.1),
    **dict.fromkeys(("m", "meter", "meters", "metre"), 100.0),
    **dict.fromkeys(('"', "''", "in", "in.", "inch", "inches"), 2.54),
    **dict.fromkeys(("'", "ft", "ft.", "feet", "foot"), 30.48),
}
_NUMBER = r"\d++(?:[ -]\d++/\d++|/\d++|[.,]\d++)?"
_UNIT = r"(?:centimet(?:er|re)s?|cm|mm|meters?|metre|inch(?:es)?|in\b\.?|\"|''|'(?!')|ft\b\.?|feet|foot|m\b)"
_HINT = re.compile(rf"\d\s*+(?:-\s*+)?(?:[wdhl]\s*+)?{_UNIT}")
_START = re.compile(r"(?<![\w.,/])(?:[wdhl]\s?)?(?=\d)")
_HEAD = re.compile(r"(?:[wdhl]\s?)?(?=\d)")
_WHOLE = re.compile(r"\d++")
_WRITTEN = re.compile(_NUMBER)
_MEASURED = re.compile(rf"\s*+{_UNIT}")
_DIMENSION_LETTER = re.compile(r"\s*+[wdhl]\b")
_JOINT = re.compile(r"\s*+[x/]\s*+")
_CLOSE = re.compile(rf"\s*+(?P<unit>{_UNIT})(?![a-z0-9])")
_SPLIT = re.compile(r"(?<!\s)\s*x\s*|(?<=[\d\"'m])-(?=\d)(?!\d+/)|/(?=\d{2,})(?!\d+/)|(?<!\s)\s*/\s+")
_VALUE = re.compile(rf"({_NUMBER})\s*({_UNIT})?")
_BOUNDED = re.compile(r"\d{1,7}(?:[ -]\d{1,7}/\d{1,7}|/\d{1,7}|[.,]\d+)?")
_MIXED = re.compile(r"(\d+)[ -](\d+)/(\d+)|(\d+)/(\d+)")
_MAX_SIZES = 8
"""Maximum number of sizes of one text."""
_MAX_DIMENSIONS = 8
"""Maximum number of dimensions of one size."""
_TOLERANCE = 0.045
_TOLERANCE_CM = 1.6


def parse_decimal_or_fraction(text: str) -> float | None:
    """Parse a number with decimals or a fraction, such as `5.5`, `28 3/4` or `28-3/4`; return None for any other text.

    If the space before a fraction is missing, it is inferred: `153/4` is 15 3/4. A number with more than seven digits
    before the decimal mark, or in one part of a fraction, is not parsed.
    """
    text = text.strip()
    if not _BOUNDED.fullmatch(text):
        return None
    mixed = _MIXED.fullmatch(text)
    if mixed is None:
        return float(text.replace(",", "."))
    if mixed[1]:
        return int(mixed[1]) + int(mixed[2]) / (int(mixed[3]) or 1)
    above, below = mixed[4], int(mixed[5]) or 1
    if int(above) < below or len(above) < 2:
        return int(above) / below
    tail = 2 if len(above) > 2 and below > 9 else 1
    return int(above[:-tail] or 0) + int(above[-tail:]) / below


def discard_out_of_range(value: float | None, upper_limit: float = MAX_MEASURE) -> float | None:
    """Return the value if it is at least 0 and less than `upper_limit`, else None."""
    return value if value is not None and 0 <= value < upper_limit else None


def extract_sizes(title: str) -> tuple[tuple[Size, ...], str]:
    """Return the sizes in a normalised title (`normalise_characters`), and the title without these sizes."""
    if not _HINT.search(title):
        return (), title
    found: list[Size] = []
    rest: list[str] = []
    at = last = 0
    seen: set[int] = set()
    while start := _START.search(title, at):
        unit = _find_closing_unit(title, start.start(), seen)
        if unit is None:
            at = start.start() + 1
            continue
        at = unit.end()
        dimensions = _parse_dimensions(title[start.start() : unit.start()], unit["unit"])
        if dimensions is not None:
            found.append(dimensions)
            rest += (title[last : start.start()], " ")
            last = at
    return tuple(found[:_MAX_SIZES]), "".join((*rest, title[last:]))


def _find_closing_unit(text: str, start: int, tried_ends: set[int]) -> re.Match[str] | None:
    """Return the match of the unit that ends a size, or None if no size begins at `start`.

    The dimensions of a size are separated by `x` or `/`. The first interpretation that ends with a unit is used.

    Args:
        text: The normalised title.
        start: The position where the first dimension begins.
        tried_ends: Possible ends of dimensions that were already examined; new ones are added, so that each is examined
            once.
    """
    pending = _find_dimension_ends(text, start)[::-1]
    while pending:
        end = pending.pop()
        if end in tried_ends:
            continue
        tried_ends.add(end)
        if closed := _CLOSE.match(text, end):
            return closed
        if joint := _JOINT.match(text, end):
            pending += _find_dimension_ends(text, joint.end())[::-1]
    return None


def _find_dimension_ends(text: str, start: int) -> list[int]:
    """Return the positions where a dimension that begins at `start` can end, the longest number first.

    A dimension can be a range of two numbers: `w 5-6 1/2 in. d`.
    """
    head = _HEAD.match(text, start)
    if head is None:
        return []
    ends: list[int] = []
    for first_end in _find_number_ends(text, head.end()):
        if text[first_end : first_end + 1] == "-":
            ends += [
                end
                for second_end in _find_number_ends(text, first_end + 1)
                for end in _find_suffix_ends(text, second_end)
            ]
        ends += _find_suffix_ends(text, first_end)
    return ends


def _find_number_ends(text: str, start: int) -> list[int]:
    """Return the positions where a number that begins at `start` can end, the longest number first.

    A number with decimals or a fraction can end after them, or already after its whole part.
    """
    written, whole = _WRITTEN.match(text, start), _WHOLE.match(text, start)
    if written is None or whole is None:
        return []
    return [written.end()] if written.end() == whole.end() else [written.end(), whole.end()]


def _find_suffix_ends(text: str, position: int) -> list[int]:
    """Return the positions where the suffix of a number can end: an optional unit and an optional letter (`W`)."""
    ends: list[int] = []
    for start in (unit.end(), position) if (unit := _MEASURED.match(text, position)) else (position,):
        if letter := _DIMENSION_LETTER.match(text, start):
            ends.append(letter.end())
        ends.append(start)
    return ends


def _parse_dimensions(text: str, unit: str) -> Size | None:
    """Return the dimensions of a size in centimetres, or None if the text is not a size.

    A size has up to `_MAX_DIMENSIONS` dimensions, which are positive numbers.
    """
    pieces = [piece for piece in _SPLIT.split(text) if piece]
    if len(pieces) > _MAX_DIMENSIONS:
        return None
    if unit == "'" and len(pieces) == 1:
        unit = '"'  # a single figure with one prime usually means inches without their second prime
    lengths: list[float] = []
    for piece in pieces:
        match = _VALUE.match(piece.strip(" wdhl"))
        value = parse_decimal_or_fraction(match[1]) if match else None
        if match is None or value is None:
            return None
        lengths.append(round(value * _CM[(match[2] or unit).strip()], 2))
    return tuple(lengths) if lengths and all(length > 0 for length in lengths) else None


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
    factor = _CM.get(column_unit.strip().lower() or "cm", 1.0)
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
