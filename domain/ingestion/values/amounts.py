"""Numbers as people write measures: fractions, mixed numbers, decimals with either mark; read exactly."""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

_QUARTERS: Final = {
    "½": " 1/2",
    "¼": " 1/4",
    "¾": " 3/4",
    "⅛": " 1/8",
    "⅜": " 3/8",
    "⅝": " 5/8",
    "⅞": " 7/8",
    "⁄": "/",
    "″": '"',
    "”": '"',
    "“": '"',
    "„": '"',
    "‟": '"',
    "〃": '"',
    "’": "'",
    "‘": "'",
    "′": "'",
    "´": "'",
    "`": "'",
    "ʹ": "'",
    "×": "x",
    "✕": "x",
    "✖": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "‐": "-",
    "\u2011": "-",
    "\xa0": " ",
    "\u2009": " ",
    "\u202f": " ",
    "Ø": " dia ",
    "ø": " dia ",
    "⌀": " dia ",
    "∅": " dia ",
}
_FOLDS: Final = str.maketrans(_QUARTERS)
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_DOUBLE: Final = re.compile(r"''|\"(?:\s?\")+")

_AMOUNT: Final = re.compile(
    r"""(?P<whole>\d{1,9})(?:\s*-\s*|\s+|/)(?P<num>\d{1,2})\s?/\s?(?P<den>2|4|8|16|32|64)(?![\d/])
      | (?P<over>\d{1,9})/(?P<under>2|4|8|16|32|64)(?![\d/])
      | (?P<grouped>\d{1,3}(?:,\d{3})+(?:\.\d{1,9})?)(?!\d)
      | (?P<european>\d{1,3}(?:\.\d{3})+,\d{1,9})(?!\d)
      | (?P<comma>\d{1,12},\d{1,2})(?!\d)
      | (?P<plain>\d{1,15}(?:\.\d{0,18})?|\.\d{1,18})(?!\d)""",
    re.X,
)


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact number and where it ended in the text."""

    value: Decimal
    end: int


@lru_cache(maxsize=16384)
def folded(text: str) -> str:
    """`text` with typographic marks, fractions and signs made plain ASCII, so that one grammar reads them all."""
    return _DOUBLE.sub('"', _CONTROL.sub("", text.translate(_FOLDS)))


def _lost_blank(over: str, under: int) -> Decimal:
    """`181/8` is 18 1/8 whose blank was lost: the last digit is the numerator when that makes a proper fraction."""
    value = Decimal(over)
    if value <= under or len(over) == 1:
        return value / under
    for digits in (2, 1):
        numerator = int(over[-digits:])
        if len(over) > digits and numerator % 2 and numerator < under and over[-digits] != "0":
            return Decimal(over[:-digits]) + Decimal(numerator) / under
    return value / under


def _exact(match: re.Match[str]) -> Decimal:
    if match["whole"]:
        return Decimal(match["whole"]) + Decimal(match["num"]) / Decimal(match["den"])
    if match["over"]:
        return _lost_blank(match["over"], int(match["under"]))
    if match["european"]:
        return Decimal(match["european"].replace(".", "").replace(",", "."))
    if match["comma"]:
        return Decimal(match["comma"].replace(",", "."))
    return Decimal((match["grouped"] or match["plain"]).replace(",", "").rstrip("."))


def amount_at(text: str, position: int) -> Amount | None:
    """The number that starts at `position` of a folded text, or None. Denominators are powers of two: all is exact."""
    match = _AMOUNT.match(text, position)
    return None if match is None else Amount(_exact(match), match.end())
