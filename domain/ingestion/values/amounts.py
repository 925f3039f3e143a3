"""Numbers as people write measures: fractions, mixed numbers, decimals with either mark; read exactly.

    amount   := mixed | fraction | grouped | decimal
    mixed    := digits ("-" | blank | "/") fraction          17 1/2, 17-1/2, 17/1/2
    fraction := digits "/" (2|4|8|16|32|64), 1/5, 1/10 …     proper; `181/8` has lost its blank
    grouped  := 1,234.5 | 1.234,5 | 1.234.567
    decimal  := digits [("." | ",") digits]

One mark before three digits (`1,250`, `1.250`) has two readings; the unit decides (`lengths`, `weights`).
"""

import re
import unicodedata
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
    "⌀": " dia ",
    "∅": " dia ",
}
_FOLDS: Final = str.maketrans(_QUARTERS)
_BRACKETS: Final = str.maketrans({**dict(zip("[]{}", "()()", strict=True)), "`": "'", "\xa0": " "})
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_DOUBLE: Final = re.compile(r"(?:''|\")(?:\s?(?:''|\"))*+")
_ESCAPED: Final = re.compile(r"_x00[0-9a-fA-F]{2}_")
"""Control characters as a spreadsheet's file spells them."""
_ROUND: Final = re.compile(r"(?<![^\W\d_])[Øø](?![^\W\d_xX])|(?<=[\d\"'mM])[Øø](?![^\W\d_xX])")
"""The sign of a diameter, not the letter of `Højde`."""

_CYRILLIC_JOIN: Final = re.compile(
    r"(?:(?<=[\d\s\"'мМ)])|(?<=\b[ШГВДшгвд])|(?<=[хХ][ШГВДшгвд]))[хХ](?=\s|\d|[ШГВДшгвд](?:[хХ\s),;:./\d]|$))"
)
"""The Cyrillic letter that looks like the sign between two sides, where it stands for that."""

_DENOMINATORS: Final = "2|4|5|8|10|16|20|32|64"
_AMOUNT: Final = re.compile(
    rf"""(?P<whole>\d{{1,9}})(?:\s*-\s*|\s+|/)(?P<num>\d{{1,2}})\s?/\s?(?P<den>{_DENOMINATORS})(?![\d/])
      | (?P<over>\d{{1,9}})/(?P<under>2|4|8|16|32|64)(?![\d/])
      | (?P<grouped>\d{{1,3}}(?:,\d{{3}})+(?:\.\d{{1,9}})?)(?![\d,])
      | (?P<european>\d{{1,3}}(?:\.\d{{3}})+,\d{{1,9}})(?!\d)
      | (?P<dotted>\d{{1,3}}(?:\.\d{{3}}){{2,}})(?![\d.])
      | (?P<comma>(?<!\d,)\d{{1,12}},\d{{1,2}})(?!\d|,\d)
      | (?P<plain>\d{{1,15}}(?:\.\d{{0,18}})?|\.\d{{1,18}})(?!\d)""",
    re.X,
)
_THREE: Final = re.compile(r"\d{1,3}[.,]\d{3}")


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact number and where it ended in the text; `other` is what it is if its one mark means the other thing."""

    value: Decimal
    end: int
    other: Decimal | None = None


@lru_cache(maxsize=16384)
def folded(text: str) -> str:
    """`text` with typographic marks, fractions and signs made plain ASCII, so that one grammar reads them all."""
    if text.isascii():
        flat = text
    else:
        flat = unicodedata.normalize("NFC", text).translate(_FOLDS)
        flat = _ROUND.sub(" dia ", flat) if "ø" in flat or "Ø" in flat else flat
        flat = _CYRILLIC_JOIN.sub("x", flat) if "х" in flat or "Х" in flat else flat
    if "_x" in flat:
        flat = _ESCAPED.sub("", flat)
    return _DOUBLE.sub('"', _CONTROL.sub("", flat.translate(_BRACKETS)))


def _lost_blank(over: str, under: int) -> Decimal | None:
    """`181/8` is 18 1/8 whose blank was lost: the last digits are the numerator when that makes a proper fraction.

    None where it makes none: `60/32` is no fraction of a carpenter's.
    """
    value = Decimal(over)
    if value <= under or len(over) == 1:
        return value / under
    for digits in (2, 1):
        numerator = int(over[-digits:])
        if len(over) > digits and numerator % 2 and numerator < under and over[-digits] != "0":
            return Decimal(over[:-digits]) + Decimal(numerator) / under
    return None


def _exact(match: re.Match[str]) -> Decimal | None:
    if match["whole"]:
        num, den = Decimal(match["num"]), Decimal(match["den"])
        return Decimal(match["whole"]) + num / den if 0 < num < den else None
    if match["over"]:
        return _lost_blank(match["over"], int(match["under"]))
    if match["european"] or match["dotted"]:
        return Decimal((match["european"] or match["dotted"]).replace(".", "").replace(",", "."))
    if match["comma"]:
        return Decimal(match["comma"].replace(",", "."))
    return Decimal((match["grouped"] or match["plain"]).replace(",", "").rstrip("."))


_SIMPLE: Final = re.compile(r"\d{1,15}(?:\.\d{0,18})?(?!\d)")


def amount_at(text: str, position: int) -> Amount | None:
    """The number that starts at `position` of a folded text, or None. All denominators divide a power of ten: all is exact."""
    match = _AMOUNT.match(text, position)
    if match is None:
        return None
    value = _exact(match)
    if value is None:
        # No proper fraction: the number before the slash or blank stands by itself.
        match = _SIMPLE.match(text, position)
        return None if match is None else Amount(Decimal(match[0].rstrip(".")), match.end())
    end = match.end()
    if end - position > 3 and _THREE.fullmatch(text, position, end):
        marks = text[position:end]
        other = marks.replace(",", ".") if "," in marks else marks.replace(".", "")
        return Amount(value, end, Decimal(other))
    return Amount(value, end)
