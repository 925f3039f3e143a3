"""Which side of a piece a letter, a word or a place in the string means."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.values.labels import LETTERS, label_of
from domain.ingestion.values.parsed import Fault, Parsed, conflict, unreadable

TRADE: Final = "trade"
"""The order of figures without letters where width x depth x height needs no telling."""
BED: Final = "bed"
RUG: Final = "rug"
PILLOW: Final = "pillow"
_LONGEST: Final = 500
_NO_BED: Final = re.compile(
    r"(?i)sofa[ -]?bed|day[ -]?bed|bedroom|bed ?side|bed bench|\bset\b|headboard|footboard|\brails?\b|night ?stand|dresser"
    r"|\bbench\b|bedding|bed ?spread|\bparts?\b|topper|protector|cover|pillow|sheets?\b|\bpet\b|\bdog\b|\bcat\b"
)
_BED: Final = re.compile(r"(?i)\bbeds?\b|\bmattress(?:es)?\b|\bbed ?frames?\b|\bbetten?\b|\bmatratzen?\b|\bcamas?\b")
_RUG: Final = re.compile(r"(?i)\brugs?\b|\bteppich|\balfombra|\bcarpets?\b|\brunner rug\b")
_PILLOW: Final = re.compile(r"(?i)\bpillows?\b|\bcushions?\b|\bkissen\b|\bcoj[ií]n")
_FURNITURE: Final = re.compile(
    r"(?i)night ?stand|dresser|chest|mirror|table|chair|bench|desk|stool|ottoman|sofa|loveseat|wardrobe|cabinet|headboard|footboard"
)
_BED_SIZES: Final = re.compile(
    r"(?i)(?:(?:e\.?|cal\.?|california|eastern)\s?)?(?:king|queen|full|double|twin|single)(?:[ -]?(?:xl|size|bed))?"
)
_BOX: Final = ("width", "depth", "height")
_ORDERED: Final = {**LETTERS, "o": "diameter"}
"""Letters of a stated order; `o` is the sign of a diameter."""


def side_of(label: str) -> str | None:
    """The side that a label names (`Height`, `SEAT HT`), `length` included; None for parts and other things."""
    found = label_of(label)
    return found.side if found.role in ("side", "largest") else None


@lru_cache(maxsize=16384)
def kind_of(category: str, title: str) -> str:
    """`bed`, `rug`, `pillow` or blank: kinds whose sides are named otherwise. The category decides, then the title."""
    category, title = category[:_LONGEST], title[:_LONGEST]
    leaf = re.split(r"[>|/]\s*+", category)[-1].rstrip()
    for text in (leaf, category, title):
        if _RUG.search(text):
            return RUG
        if _BED.search(text) and not _NO_BED.search(text):
            return BED
        if _PILLOW.search(text) and text is not title:
            return PILLOW
    return ""


@lru_cache(maxsize=4096)
def kind_of_part(name: str, kind: str) -> str:
    """The kind of a set's piece by its name; a name that says no thing (`KING`) leaves the set's own kind."""
    if _BED_SIZES.fullmatch(name.strip()):
        return BED
    return kind_of(name, "") or ("" if kind == BED and _FURNITURE.search(name[:_LONGEST]) else kind)


Sided = tuple[Length, str | None]
"""A length and the axis written beside it, None when there is none."""


def _lettered(items: Sequence[Sided], kind: str) -> tuple[dict[str, Length], list[Length]]:
    """Sides whose letter settles them, and the lengths whose letter came twice.

    L is the width unless a width and no depth say that it runs front to back; beside both it is the height, if that is free.
    """
    sides = {side for _, side in items}
    runs_back = kind in (BED, RUG) and "width" in sides
    # L beside W and no D takes the width away from W; on beds and rugs L runs front to back and W stays.
    moved = {"length", "width"} <= sides and "depth" not in sides and not runs_back
    long_side = "depth" if runs_back and "depth" not in sides else "width"
    if {"width", "depth"} <= sides:
        long_side = "" if "height" in sides else "height"
    placed: dict[str, Length] = {}
    doubled: list[Length] = []
    for length, side in items:
        target = long_side if side == "length" else "depth" if side == "width" and moved else side
        if target in placed:
            doubled.append(length)
        elif target:
            placed[target] = length  # W, D and H win; a length beside all of them is told
    return placed, doubled


def _unlettered(items: Sequence[Sided], text: str, kind: str, order: str, *, is_usual: bool) -> Parsed[Dimensions]:
    """Sides by their place, in the stated order or the trade's."""
    names: Sequence[str | None] = [_ORDERED.get(letter) for letter in order]
    if order and None not in names and len(names) == len(items):
        return place([(length, name) for (length, _), name in zip(items, names, strict=True)], text, kind)
    if len(items) not in (2, 3):
        return unreadable(text, "does not say which side is meant")
    names = ("width", "height") if kind == PILLOW and len(items) == 2 else _BOX[: len(items)]
    sides: Any = {name: length for name, (length, _) in zip(names, items, strict=True)}
    is_cube = len({length["hundredths_in"] for length, _ in items}) == 1
    if len(items) == 2 or is_cube or (is_usual and order == TRADE):
        return Parsed(sides)
    return Parsed(sides, (conflict(text, f"names no sides; read as {' x '.join(_BOX)}"),))


def place(
    items: Sequence[Sided], text: str, kind: str = "", order: str = "", is_usual: bool = True
) -> Parsed[Dimensions]:
    """The sides of a sequence of lengths.

    A letter that comes twice, or a length left without a side, is a conflict.

    Args:
        items: The lengths, with the sides that stand beside them.
        text: The cell, for the sentences.
        kind: What `kind_of` says of the piece.
        order: A stated order of letters (`bht`), or `TRADE`.
        is_usual: Whether lengths without letters are written in the trade's usual way.
    """
    if all(side is None for _, side in items):
        return _unlettered(items, text, kind, order, is_usual=is_usual)
    placed, doubled = _lettered(items, kind)
    left = doubled + [length for length, side in items if side is None]
    taken = ("width", "depth") if "diameter" in placed else ()
    free = [side for side in _BOX if side not in placed and side not in taken]
    named = [at for at, (_, side) in enumerate(items) if side is not None]
    faults: list[Fault] = []
    if {"length", "width", "depth"} <= {side for _, side in items}:
        faults.append(conflict(text, "names a length beside width and depth"))
    if doubled:
        faults.append(conflict(text, "names one side twice"))
    if not doubled and len(items) == 3 and len(named) == 1 and list(placed) == [_BOX[named[0]]]:
        # `265 x 158 x H 84`: the others stand in the trade's order around the one that is named.
        placed.update(zip(free, left, strict=True))
        if named[0] != 2:
            faults.append(conflict(text, f"names one side; read as {' x '.join(_BOX)}"))
    elif len(free) == len(left) == 1:
        placed[free[0]] = left[0]
    elif len(items) == 2 and named == [1] and set(placed) == {"height"}:
        placed["width"] = left[0]
        faults.append(conflict(text, "names one side; read as width x height"))
    elif left and not doubled:
        faults.append(conflict(text, "has a length without a side"))
    sides: Any = placed
    return Parsed(sides, tuple(faults))
