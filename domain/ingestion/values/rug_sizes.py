"""What a size of a rug is: a shape and its sides, in the bounds of what rugs have."""

from dataclasses import dataclass
from typing import Final

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.values.parsed import Parsed, refused
from domain.kernel.problems import ProblemKind

_RUNNER_WIDTH: Final = 4200
_SMALLEST: Final = 1500
_LARGEST: Final = 47_300
"""Hundredths of an inch: what is smaller on all sides is no rug, nor what is longer than twelve metres."""
_NOMINALS: Final = {
    (w, d): nominal
    for nominal, pairs in (
        ("2' x 3'", ((20, 30), (26, 36), (24, 36))),
        ("3' x 5'", ((39, 60), (31, 59), (36, 60))),
        ("4' x 6'", ((47, 67), (48, 72))),
        ("5' x 7'", ((63, 84), (60, 86), (60, 84))),
        ("5' x 8'", ((63, 90), (61, 90), (63, 92), (60, 96))),
        ("6' x 9'", ((79, 114), (78, 114), (72, 108))),
        ("8' x 10'", ((94, 120), (93, 120), (94, 118), (91, 130), (96, 120))),
        ("9' x 12'", ((110, 144), (106, 144), (108, 144))),
        ("10' x 14'", ((120, 156), (118, 154), (120, 168))),
        ("12' x 15'", ((140, 176), (144, 180))),
        ("2' x 8'", ((27, 90), (27, 96), (30, 96), (31, 96), (24, 96))),
        ("2'6\" x 10'", ((31, 120), (30, 120))),
    )
    for w, d in pairs
}


@dataclass(frozen=True, slots=True)
class RugSize:
    """A rug's shape and sides (`width` and `depth`, or `diameter`), with its nominal size where the trade has one."""

    shape: str
    dimensions: Dimensions
    nominal: str | None = None


def sized(first: Length, second: Length, shape: str | None) -> RugSize:
    """The size of two sides, as they stand; what is not named is told by their lengths."""
    width, long_side = first["hundredths_in"], second["hundredths_in"]
    equal = width == long_side
    if shape in ("round", "octagon") and equal and shape == "round":
        return RugSize("round", {"diameter": first})
    short, tall = min(width, long_side), max(width, long_side)
    found = shape or (
        "square" if equal else "runner" if short <= _RUNNER_WIDTH and 2 * tall >= 5 * short else "rectangle"
    )
    nominal = _NOMINALS.get((short // 100, tall // 100)) if short % 100 == 0 == tall % 100 else None
    return RugSize(found, {"width": first, "depth": second}, nominal if found in ("rectangle", "runner") else None)


def one_side(side: Length, shape: str) -> RugSize:
    """The size of a rug that is as long as it is wide."""
    return RugSize(shape, {"diameter": side} if shape == "round" else {"width": side, "depth": side})


def likely(read: Parsed[RugSize], text: str) -> Parsed[RugSize]:
    """A size that no rug has was read in another unit than it was meant in."""
    sides: list[Length] = list(read.value.dimensions.values()) if read.value else []  # type: ignore[arg-type]  # lengths all
    figures = [side["hundredths_in"] for side in sides]
    if figures and (max(figures) < _SMALLEST or max(figures) > _LARGEST):
        return refused(
            ProblemKind.CONFLICT, text, "is no size that a rug has, as its unit is written or that of its column"
        )
    return read
