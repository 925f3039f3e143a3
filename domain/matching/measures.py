"""Sizes in titles and columns as centimetres, and whether two of them can be one."""

import re
from collections.abc import Sequence
from typing import Final

from domain.ingestion.values.lengths import parse_length

Size = tuple[float, ...]
"""The sides of one size in centimetres, as they are written."""

_CM: Final = {
    **dict.fromkeys(("cm", "centimetre", "centimeter", "centimeters"), 1.0),
    **dict.fromkeys(("mm", "millimeter", "millimeters"), 0.1),
    **dict.fromkeys(("m", "meter", "meters", "metre"), 100.0),
    **dict.fromkeys(('"', "''", "in", "in.", "inch", "inches"), 2.54),
    **dict.fromkeys(("'", "ft", "ft.", "feet", "foot"), 30.48),
}
_NUMBER: Final = r"\d+(?:[ -]\d+/\d+|/\d+|[.,]\d+)?"
_UNIT: Final = r"(?:centimet(?:er|re)s?|cm|mm|meters?|metre|inch(?:es)?|in\b\.?|\"|''|'(?!')|ft\b\.?|feet|foot|m\b)"
_SIDE: Final = rf"(?:[wdhl]\s?)?{_NUMBER}(?:-{_NUMBER})?\s*(?:{_UNIT})?\s*(?:[wdhl]\b)?"
_SIZE: Final = re.compile(
    rf"(?<![\w.,/])(?P<sides>{_SIDE}(?:\s*(?:x|/)\s*(?:{_SIDE}))*?)\s*(?P<unit>{_UNIT})(?![a-z0-9])"
)
_HINT: Final = re.compile(rf"\d\s*-?\s*(?:[wdhl]\s*)?{_UNIT}")
_SPLIT: Final = re.compile(r"\s*x\s*|(?<=[\d\"'m])-(?=\d)(?!\d+/)|/(?=\d{2,})(?!\d+/)|\s*/\s+")
_VALUE: Final = re.compile(rf"({_NUMBER})\s*({_UNIT})?")
_MIXED: Final = re.compile(r"(\d+)[ -](\d+)/(\d+)|(\d+)/(\d+)")
_TOLERANCE: Final = 0.045
_SLACK: Final = 1.6


def figure(text: str) -> float | None:
    """A number as it is written: `28 3/4`, `28-3/4`, `5.5`; `153/4`, where a blank was lost, is 15 3/4."""
    text = text.strip()
    mixed = _MIXED.fullmatch(text)
    if mixed is None:
        try:
            return float(text.replace(",", "."))
        except ValueError:
            return None
    if mixed[1]:
        return int(mixed[1]) + int(mixed[2]) / (int(mixed[3]) or 1)
    above, below = mixed[4], int(mixed[5]) or 1
    if int(above) < below or len(above) < 2:
        return int(above) / below
    tail = 2 if len(above) > 2 and below > 9 else 1
    return int(above[:-tail] or 0) + int(above[-tail:]) / below


def sizes(text: str) -> tuple[tuple[Size, ...], str]:
    """The sizes that a folded title states, and the title without them."""
    if not _HINT.search(text):
        return (), text
    found: list[Size] = []

    def taken(match: re.Match[str]) -> str:
        made = _sides(match["sides"], match["unit"])
        if made is None:
            return match[0]
        found.append(made)
        return " "

    rest = _SIZE.sub(taken, text)
    return tuple(found), rest


def _sides(text: str, unit: str) -> Size | None:
    pieces = [piece for piece in _SPLIT.split(text) if piece]
    if unit == "'" and len(pieces) == 1:
        unit = '"'  # one figure with one stroke is mostly inches whose second stroke was lost
    made: list[float] = []
    for piece in pieces:
        match = _VALUE.match(piece.strip(" wdhl"))
        value = figure(match[1]) if match else None
        if match is None or value is None:
            return None
        made.append(round(value * _CM[(match[2] or unit).strip()], 2))
    return tuple(made) if made and all(side > 0 for side in made) else None


def length(text: str, unit: str) -> tuple[float, float] | None:
    """A column's length in centimetres, and its bare figure; None if it states none."""
    text = text.strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        read = parse_length(text, unit or None).value
        return None if read is None else (round(read["hundredths_in"] * 0.0254, 2), float(read["given"]["value"]))
    factor = _CM.get(unit.strip().lower() or "cm", 1.0)
    return (round(value * factor, 2), value) if value > 0 else None


def close(one: float, other: float) -> bool:
    """Whether two lengths agree as well as rounding between units allows."""
    return abs(one - other) <= max(0.7, 0.012 * max(one, other))


def beyond(one: float, other: float) -> bool:
    """Whether two lengths differ by more than any rounding: over 4.5% and over 1.6 cm."""
    return abs(one - other) > max(_SLACK, _TOLERANCE * max(one, other))


def same_size(one: Sequence[Size], other: Sequence[Size]) -> bool | None:
    """Whether two titles' sizes agree in any order of the sides; None if they have no like ones to compare."""
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
