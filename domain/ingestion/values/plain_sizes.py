"""The commonest way to write a size, read at once: what it gives is what the whole grammar of `dimensions` gives.

    size := number unit axis join number unit axis [join number unit axis]     30 1/2"W X 20"D X 40"H, 80W x 60D x 40H cm

Axes are W, D, H and L, each once; the unit stands on each figure or once behind the last. All else is left to the grammar.
"""

import re
from decimal import Decimal
from typing import Final

from domain.catalogue.data import Dimensions
from domain.ingestion.values.labels import LETTERS
from domain.ingestion.values.lengths import length, unit_named
from domain.ingestion.values.sides import Sided, place

_NUMBER: Final = r"([1-9]\d{0,3}(?:\.\d{1,2})?)(?: ([1-9]\d?)/(2|4|8|16))?"
_FIGURE: Final = rf'{_NUMBER} ?("|in|cm|mm)? ?([WDHL])'
_SIZE: Final = re.compile(
    rf'{_FIGURE} ?[xX] ?{_FIGURE}(?: ?[xX] ?{_FIGURE})?(?: ("|in|cm|mm))?',
)
_LONGEST: Final = 60


def _value(whole: str, over: str | None, under: str | None) -> Decimal | None:
    """The number of a match, None where it is written as nobody means it (`17.5 1/2`, `5 9/8`)."""
    if over is None or under is None:
        return Decimal(whole)
    if "." in whole or int(over) >= int(under):
        return None
    return Decimal(whole) + Decimal(over) / Decimal(under)


def plain_size(text: str, kind: str) -> Dimensions | None:
    """The sides of a size that is written the commonest way and leaves no doubt; None for all others."""
    match = _SIZE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    groups = match.groups()
    figures = [groups[at : at + 5] for at in (0, 5, 10) if groups[at + 4] is not None]
    axes = {figure[4] for figure in figures}
    units = {figure[3] for figure in figures} | ({groups[15]} if groups[15] else set())
    behind = groups[15] is not None
    if len(axes) != len(figures) or (None in units) != behind or len(units) != 1 + behind:
        return None
    unit = unit_named(next(filter(None, units)))
    values = [_value(*figure[:3]) for figure in figures]
    if unit is None or None in values:
        return None
    items = [Sided(length(value, unit), LETTERS[figure[4].lower()]) for value, figure in zip(values, figures, strict=True) if value]  # fmt: skip
    sides = place(items, text, kind)
    return None if sides.faults else sides.dimensions
