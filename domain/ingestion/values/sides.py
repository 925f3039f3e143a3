"""Which side of a piece a letter, a word or a place in the string means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.values.labels import label_of
from domain.ingestion.values.parsed import Fault, quoted
from domain.kernel.problems import ProblemKind

TRADE: Final = "trade"
"""The order of figures without letters where width x depth x height needs no telling."""
BED: Final = "bed"
RUG: Final = "rug"
PILLOW: Final = "pillow"
_LONGEST: Final = 500
_NO_BED: Final = re.compile(
    r"sofa[ -]?bed|day[ -]?bed|bedroom|bed ?side|bed bench|\bset\b|headboard|footboard|\brails?\b|night ?stand|dresser"
    r"|\bbench\b|bedding|bed ?spread|\bparts?\b|topper|protector|cover|pillow|sheets?\b|\bpet\b|\bdog\b|\bcat\b",
    re.I,
)
_BED: Final = re.compile(r"\bbeds?\b|\bmattress(?:es)?\b|\bbed ?frames?\b|\bbetten?\b|\bmatratzen?\b|\bcamas?\b", re.I)
_RUG: Final = re.compile(r"\brugs?\b|\bteppich|\balfombra|\bcarpets?\b|\brunner rug\b", re.I)
_PILLOW: Final = re.compile(r"\bpillows?\b|\bcushions?\b|\bkissen\b|\bcoj[ií]n", re.I)
_ENDWISE: Final = (BED, RUG)
"""Kinds whose length runs away from the beholder."""
_BOX: Final = ("width", "depth", "height")


def side_of(label: str) -> str | None:
    """The side that a label names (`Height`, `SEAT HT`), `length` included; None for parts and other things."""
    found = label_of(label)
    return found.side if found.role in ("side", "largest") else None


@lru_cache(maxsize=16384)
def kind_of(category: str, title: str) -> str:
    """`bed`, `rug`, `pillow` or blank: kinds whose sides are named otherwise. The category decides, then the title."""
    category, title = category[:_LONGEST], title[:_LONGEST]
    leaf = re.split(r"[>|/]\s*+", category)[-1].rstrip() if category else ""
    for text in (leaf, category, title):
        if _RUG.search(text):
            return RUG
        if _BED.search(text) and not _NO_BED.search(text):
            return BED
        if _PILLOW.search(text) and text is not title:
            return PILLOW
        if text is leaf and leaf:
            # A leaf that names another kind ("Headboards" below "Beds") has the last word.
            category = category if _NO_BED.search(leaf) is None else leaf
    return ""


_FURNITURE: Final = re.compile(
    r"night ?stand|dresser|chest|mirror|table|chair|bench|desk|stool|ottoman|sofa|loveseat|wardrobe|cabinet|headboard|footboard",
    re.I,
)


_BED_SIZES: Final = re.compile(
    r"(?:(?:e\.?|cal\.?|california|eastern)\s?)?(?:king|queen|full|double|twin|single)(?:[ -]?(?:xl|size|bed))?", re.I
)


@lru_cache(maxsize=4096)
def kind_of_part(name: str, kind: str) -> str:
    """The kind of a set's piece by its name; a name that says no thing (`KING`) leaves the set's own kind."""
    if _BED_SIZES.fullmatch(name.strip()):
        return BED
    return kind_of(name, "") or ("" if kind == BED and _FURNITURE.search(name[:_LONGEST]) else kind)


@dataclass(frozen=True, slots=True)
class Sided:
    """A length and the axis written beside it, None when there is none."""

    length: Length
    side: str | None


@dataclass(frozen=True, slots=True)
class Sides:
    """The sides found and what was doubtful."""

    dimensions: Dimensions
    faults: tuple[Fault, ...] = ()


def _length_side(sides: Sequence[str | None], kind: str) -> str:
    """What L means: the long side is the width unless a width and no depth say that it runs front to back."""
    if "width" in sides and "depth" in sides:
        return "height" if "height" not in sides else "width"
    if "depth" in sides:
        return "width"
    return "depth" if kind in _ENDWISE and "width" in sides else "width"


def _lettered(items: Sequence[Sided], kind: str) -> tuple[dict[str, Length], list[Length]]:
    """Sides whose letter settles them, and the lengths whose letter came twice."""
    sides = [item.side for item in items]
    placed: dict[str, Length] = {}
    doubled: list[Length] = []
    long_side = _length_side(sides, kind)
    if {"length", "width", "depth", "height"} <= set(sides):
        # W, D and H win; the length that is left over is told.
        items = [item for item in items if item.side != "length"]
    # L beside W and no D takes the width away from W; on beds and rugs L runs front to back and W stays.
    moved = "length" in sides and "width" in sides and "depth" not in sides and long_side == "width"
    for item in items:
        side = item.side
        if side is None:
            continue
        target = long_side if side == "length" else "depth" if side == "width" and moved else side
        if target in placed:
            doubled.append(item.length)
        else:
            placed[target] = item.length
    return placed, doubled


def _free(placed: dict[str, Length]) -> list[str]:
    taken = {"width", "depth"} if "diameter" in placed else set()
    return [side for side in _BOX if side not in placed and side not in taken]


def _unlettered(count: int, kind: str) -> tuple[str, ...]:
    if count == 2:
        return ("width", "height") if kind == PILLOW else ("width", "depth")
    return _BOX if count == 3 else ()


_ORDERED: Final = {
    "w": "width",
    "b": "width",
    "d": "depth",
    "t": "depth",
    "p": "depth",
    "h": "height",
    "l": "length",
    "o": "diameter",
}
"""Letters of a stated order; `o` is the sign of a diameter."""


def _by_place(items: Sequence[Sided], text: str, kind: str, order: str, trade_order: bool) -> Sides:
    names = tuple(_ORDERED[letter] for letter in order if letter in _ORDERED)
    if len(names) == len(items) == len(order):
        return place([Sided(item.length, name) for item, name in zip(items, names, strict=True)], text, kind)
    trade_order = trade_order and order == TRADE
    names = _unlettered(len(items), kind)
    if not names:
        return Sides({}, (Fault(ProblemKind.UNREADABLE, f"{quoted(text)} does not say which side is meant."),))
    doubt = (Fault(ProblemKind.CONFLICT, f"{quoted(text)} names no sides; read as {' x '.join(names)}."),)
    sides: Dimensions = {}
    for name, item in zip(names, items, strict=True):
        sides[name] = item.length  # type: ignore[literal-required]
    cube = len({item.length["hundredths_in"] for item in items}) == 1
    return Sides(sides, () if trade_order or cube or len(items) == 2 else doubt)


def _stands_where_it_should(items: Sequence[Sided], placed: dict[str, Length]) -> bool:
    """Whether one of three figures is named and stands where the trade's order has it."""
    named = [at for at, item in enumerate(items) if item.side is not None]
    return len(named) == 1 and list(placed) == [_BOX[named[0]]]


def place(items: Sequence[Sided], text: str, kind: str = "", order: str = "", trade_order: bool = True) -> Sides:
    """The sides of a sequence of lengths.

    `order` is a stated order of letters (`BHT`), `kind` that of `kind_of`, `trade_order` that lengths without letters
    follow the trade's W x D x H in the usual way of writing. A letter that comes twice, or a length left without a
    side, is a conflict.
    """
    if all(item.side is None for item in items):
        return _by_place(items, text, kind, order, trade_order)
    placed, doubled = _lettered(items, kind)
    left = doubled + [item.length for item in items if item.side is None]
    free = _free(placed)
    faults: list[Fault] = []
    if {"length", "width", "depth"} <= {item.side for item in items}:
        faults.append(Fault(ProblemKind.CONFLICT, f"{quoted(text)} names a length beside width and depth."))
    if doubled:
        faults.append(Fault(ProblemKind.CONFLICT, f"{quoted(text)} names one side twice."))
    if not doubled and len(items) == 3 and _stands_where_it_should(items, placed):
        # `265 x 158 x H 84`: the others stand in the trade's order around the one that is named.
        sure = items[2].side is not None
        placed.update(zip(free, left, strict=True))
        if not sure:
            faults.append(Fault(ProblemKind.CONFLICT, f"{quoted(text)} names one side; read as {' x '.join(_BOX)}."))
    elif left and len(free) == 1 and len(left) == 1:
        placed[free[0]] = left[0]
    elif len(items) == 2 and items[0].side is None and set(placed) == {"height"}:
        placed["width"] = left[0]
        faults.append(Fault(ProblemKind.CONFLICT, f"{quoted(text)} names one side; read as width x height."))
    elif left and not doubled:
        faults.append(Fault(ProblemKind.CONFLICT, f"{quoted(text)} has a length without a side."))
    sides: Dimensions = placed  # type: ignore[assignment]
    return Sides(sides, tuple(faults))
