"""From the measures of one sequence to the named sides of a piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.values.parsed import Fault, quoted
from domain.ingestion.values.sides import BED, PILLOW, RUG

_ENDWISE: Final = (BED, RUG)
"""Kinds whose length runs away from the beholder."""
_BOX: Final = ("width", "depth", "height")


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


def _by_place(items: Sequence[Sided], text: str, kind: str, order: str, told: bool) -> Sides:
    names = tuple(
        {"w": "width", "b": "width", "d": "depth", "t": "depth", "h": "height", "l": "length"}[c] for c in order
    )
    if len(names) == len(items):
        return place([Sided(item.length, name) for item, name in zip(items, names, strict=True)], text, kind)
    names = _unlettered(len(items), kind)
    if not names:
        return Sides({}, (Fault("unreadable", f"{quoted(text)} does not say which side is meant."),))
    doubt = (Fault("conflict", f"{quoted(text)} names no sides; read as {' x '.join(names)}."),)
    sides: Dimensions = {}
    for name, item in zip(names, items, strict=True):
        sides[name] = item.length  # type: ignore[literal-required]
    return Sides(sides, () if told or len(items) == 2 else doubt)


def place(items: Sequence[Sided], text: str, kind: str = "", order: str = "", told: bool = True) -> Sides:
    """The sides of a sequence of lengths.

    `order` is a stated order of letters (`BHT`), `kind` that of `axes.kind_of`, `told` that lengths without letters
    follow the trade's W x D x H in the usual way of writing. A letter that comes twice, or a length left without a
    side, is told as conflict.
    """
    if all(item.side is None for item in items):
        return _by_place(items, text, kind, order, told)
    placed, doubled = _lettered(items, kind)
    left = doubled + [item.length for item in items if item.side is None]
    free = _free(placed)
    faults: list[Fault] = []
    if doubled:
        faults.append(Fault("conflict", f"{quoted(text)} names one side twice."))
    if left and len(free) == 1 and len(left) == 1:
        placed[free[0]] = left[0]
    elif left and not doubled:
        faults.append(Fault("conflict", f"{quoted(text)} has a length without a side."))
    sides: Dimensions = placed  # type: ignore[assignment]
    return Sides(sides, tuple(faults))
