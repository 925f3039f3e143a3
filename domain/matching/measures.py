"""Sizes in titles and columns in centimetres, and their comparison."""

import re
from collections.abc import Sequence

from domain.ingestion.values.quantities import parse_length

Size = tuple[float, ...]
"""The sides of one size in centimetres, in the written order."""
MOST = 10**7
"""Upper bound of measures, weights and counts of items; larger numbers are ignored."""
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
_SIDEWAYS = re.compile(r"\s*+[wdhl]\b")
_JOINT = re.compile(r"\s*+[x/]\s*+")
_CLOSE = re.compile(rf"\s*+(?P<unit>{_UNIT})(?![a-z0-9])")
_SPLIT = re.compile(r"(?<!\s)\s*x\s*|(?<=[\d\"'m])-(?=\d)(?!\d+/)|/(?=\d{2,})(?!\d+/)|(?<!\s)\s*/\s+")
_VALUE = re.compile(rf"({_NUMBER})\s*({_UNIT})?")
_BOUNDED = re.compile(r"\d{1,7}(?:[ -]\d{1,7}/\d{1,7}|/\d{1,7}|[.,]\d+)?")
_MIXED = re.compile(r"(\d+)[ -](\d+)/(\d+)|(\d+)/(\d+)")
_SIZES = 8
"""Maximum number of sizes of one text."""
_PIECES = 8
"""Maximum number of sides of one size."""
_TOLERANCE = 0.045
_SLACK = 1.6


def figure(text: str) -> float | None:
    """Return a written number: `28 3/4`, `28-3/4`, `5.5`; `153/4`, where a blank was lost, is 15 3/4.

    Return None for other texts, and for numbers with more integer digits than MOST.
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


def bounded(value: float | None, most: float = MOST) -> float | None:
    """Return the value if it is below `most`, otherwise None."""
    return value if value is not None and 0 <= value < most else None


def sizes(text: str) -> tuple[tuple[Size, ...], str]:
    """Return the sizes that a folded title states, and the title without them."""
    if not _HINT.search(text):
        return (), text
    found: list[Size] = []
    kept: list[str] = []
    at = last = 0
    seen: set[int] = set()
    while start := _START.search(text, at):
        closed = _closed(text, start.start(), seen)
        if closed is None:
            at = start.start() + 1
            continue
        at = closed.end()
        made = _sides(text[start.start() : closed.start()], closed["unit"])
        if made is not None:
            found.append(made)
            kept += (text[last : start.start()], " ")
            last = at
    return tuple(found[:_SIZES]), "".join((*kept, text[last:]))


def _closed(text: str, start: int, seen: set[int]) -> re.Match[str] | None:
    """Return the unit that ends the sides from `start` on, separated by `x` or `/`, from the first reading that has one.

    `seen` has the ends of sides that were tried; the rest does not depend on how an end was reached, so the time is linear.
    """
    open_ = _ends(text, start)[::-1]
    while open_:
        end = open_.pop()
        if end in seen:
            continue
        seen.add(end)
        if closed := _CLOSE.match(text, end):
            return closed
        if joint := _JOINT.match(text, end):
            open_ += _ends(text, joint.end())[::-1]
    return None


def _ends(text: str, at: int) -> list[int]:
    """Return where a side that begins at `at` may end, the longest reading first: `w 5-6 1/2 in. d`."""
    head = _HEAD.match(text, at)
    if head is None:
        return []
    made: list[int] = []
    for first in _numbers(text, head.end()):
        if text[first : first + 1] == "-":
            made += [end for second in _numbers(text, first + 1) for end in _tails(text, second)]
        made += _tails(text, first)
    return made


def _numbers(text: str, at: int) -> list[int]:
    """Return where a number that begins at `at` may end: with its fraction or decimals, and without."""
    written, whole = _WRITTEN.match(text, at), _WHOLE.match(text, at)
    if written is None or whole is None:
        return []
    return [written.end()] if written.end() == whole.end() else [written.end(), whole.end()]


def _tails(text: str, at: int) -> list[int]:
    """Return where what follows a side's number may end: a unit, and a letter for its direction; either may be missing."""
    made: list[int] = []
    for begun in (measured.end(), at) if (measured := _MEASURED.match(text, at)) else (at,):
        if sideways := _SIDEWAYS.match(text, begun):
            made.append(sideways.end())
        made.append(begun)
    return made


def _sides(text: str, unit: str) -> Size | None:
    pieces = [piece for piece in _SPLIT.split(text) if piece]
    if len(pieces) > _PIECES:
        return None
    if unit == "'" and len(pieces) == 1:
        unit = '"'  # a single figure with one prime mostly means inches whose second prime was lost
    made: list[float] = []
    for piece in pieces:
        match = _VALUE.match(piece.strip(" wdhl"))
        value = figure(match[1]) if match else None
        if match is None or value is None:
            return None
        made.append(round(value * _CM[(match[2] or unit).strip()], 2))
    return tuple(made) if made and all(side > 0 for side in made) else None


def length(text: str, unit: str) -> tuple[float, float] | None:
    """Return a column's length in centimetres and its bare figure; None if it has none."""
    text = text.strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        read = parse_length(text, unit or None).value
        if read is None or read["hundredths_in"] >= MOST * 100:
            return None
        return round(read["hundredths_in"] * 0.0254, 2), float(read["given"]["value"])
    factor = _CM.get(unit.strip().lower() or "cm", 1.0)
    return (round(value * factor, 2), value) if 0 < value < MOST else None


def close(one: float, other: float) -> bool:
    """Return whether two lengths agree as well as rounding between units allows."""
    return abs(one - other) <= max(0.7, 0.012 * max(one, other))


def beyond(one: float, other: float) -> bool:
    """Return whether two lengths differ by more than any rounding: over 4.5% and over 1.6 cm."""
    return abs(one - other) > max(_SLACK, _TOLERANCE * max(one, other))


def same_size(one: Sequence[Size], other: Sequence[Size]) -> bool | None:
    """Return whether two titles' sizes agree in any order of the sides; None if they have no like ones to compare."""
    best: bool | None = None
    for left in one:
        for right in other:
            if len(left) == len(right):
                fits = not any(beyond(a, b) for a, b in zip(sorted(left), sorted(right), strict=True))
            else:
                short, long = sorted((left, right), key=len)
                if len(short) == 1 and len(long) > 1:
                    continue
                fits = all(any(not beyond(a, b) for b in long) for a in short)
            if fits:
                return True
            best = False
    return best
