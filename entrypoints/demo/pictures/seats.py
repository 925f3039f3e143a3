"""Draws chairs of wood and metal, stools, benches, and a dining table with its chairs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from entrypoints.demo.pictures import tables
from entrypoints.demo.pictures.canvas import Canvas
from entrypoints.demo.pictures.colours import LINENS, Colour, darker, lighter
from entrypoints.demo.pictures.subject import Subject

_CUSHIONS: Final[tuple[Colour, ...]] = (*LINENS, (150, 140, 126), (104, 112, 120))


def _back(sheet: Canvas, of: Subject, half: float, seat: float, top: float, z: float) -> None:
    """Two posts and what is between them: a ladder, spindles, a board or a cushion."""
    tone, kind = darker(of.colour, 0.10), of.styled(("ladder", "spindles", "board", "cushion", "cross"), "chair back")
    rail = max(2.2, (top - seat) * 0.16)
    inner = (-half + 1, half - 1)
    if kind == "ladder":
        for at in range(3):
            y = seat + (top - seat) * (0.30 + 0.24 * at)
            sheet.plate(inner, (y, y + rail * 0.7), z, tone, radius=0.8)
    elif kind == "spindles":
        for at in range(5):
            x = inner[0] + (inner[1] - inner[0]) * (at + 0.5) / 5
            sheet.leg((x, seat, z), (x, top - 1, z), (0.7, 0.7), tone)
    elif kind == "board":
        sheet.plate(inner, (seat + (top - seat) * 0.36, top - rail * 0.4), z, tone, radius=2.5)
    elif kind == "cushion":
        sheet.soft(
            inner, (seat + (top - seat) * 0.2, top - 0.5), (z - 1.2, z + 1), of.styled(_CUSHIONS, "cushion"), 2.0
        )
    else:
        low = seat + (top - seat) * 0.22
        sheet.line([(inner[0], low, z), (inner[1], top - rail, z)], tone, 1.1)
        sheet.line([(inner[1], low, z), (inner[0], top - rail, z)], tone, 1.1)
        sheet.plate(inner, (low - 1, low), z, tone)
    sheet.plate((-half + 0.2, half - 0.2), (top - rail, top), z, lighter(tone, 0.06), radius=1.2)


def chair(sheet: Canvas, of: Subject, *, seat: float = 18.5, arms: bool = False, rung: bool = False) -> None:
    """A chair of four legs with a back; a stool where the seat is high."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    sheet.shadow((-half, half), (0, depth), strength=0.26)
    wide = (1.0, 1.7) if of.styled((True, False), "chair legs") else (1.5, 1.5)
    for side in (-half + 1, half - 1):
        sheet.leg((side, 0, depth), (side * 0.98, top - 0.6, depth - 0.5), (1.1, 1.3), darker(of.colour, 0.2))
    _back(sheet, of, half - 0.4, seat, top, depth - 0.5)
    if rung:
        for z, tone in ((depth, 0.3), (1.5, 0.1)):
            sheet.leg((-half + 1, seat * 0.32, z), (-half + 1, seat * 0.32 + 0.9, z), (1, 1), darker(of.colour, tone))
            sheet.box((-half + 1, half - 1), (seat * 0.32, seat * 0.32 + 0.9), (z, z + 0.6), darker(of.colour, tone))
    for side in (-half + 1.2, half - 1.2):
        sheet.leg((side * 1.03, 0, 1.2), (side, seat - 1, 1.2), wide, of.colour)
    sheet.box((-half, half), (seat - 2.2, seat - 0.6), (0, depth - 1), of.colour)
    if of.styled((True, True, False), "seat cushion"):
        sheet.soft(
            (-half + 0.3, half - 0.3),
            (seat - 0.9, seat + 1.3),
            (0.2, depth - 1.6),
            of.styled(_CUSHIONS, "cushion"),
            1.2,
        )
    if arms:
        for side in (-half + 0.2, half - 0.2):
            sheet.leg((side, seat - 1, 2.5), (side, seat + 7.5, 2.5), (1.1, 1.1), of.colour)
            sheet.box((side - 1.1, side + 1.1), (seat + 7, seat + 8.2), (1, depth - 0.6), lighter(of.colour, 0.05))


def bench(sheet: Canvas, of: Subject, *, covered: bool) -> None:
    """A bench of wood, or one with a cushion."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    sheet.shadow((-half, half), (0, depth), strength=0.28)
    slant = of.styled((0.0, 1.8), "bench legs")
    for z, dark in ((depth - 1.5, 0.28), (1.0, 0.04)):
        for side, way in ((-half + 2.5, -1), (half - 2.5, 1)):
            sheet.leg((side + slant * way, 0, z), (side, top - 2, z), (1.3, 2.0), darker(of.colour, dark))
    thick = 1.8
    if covered:
        sheet.box((-half, half), (top - 5.4, top - 4), (0, depth), of.colour)
        sheet.soft((-half, half), (top - 4.4, top), (0, depth), of.one_of(LINENS, "cushion"), 1.6)
        for at in range(1, 4):
            x = -half + sheet.width * at / 4
            sheet.line([(x, top - 4.2, 0), (x, top - 0.4, 0), (x, top, depth)], (206, 196, 182), 0.2)
    else:
        tables.top_of(sheet, of, (-half, half), top, (0, depth), thick)


def dining_set(sheet: Canvas, of: Subject) -> None:
    """A table with chairs behind it and before it."""
    half, depth = 38.0, 40.0
    sheet.shadow((-half, half), (0, depth), strength=0.3)
    tone = of.styled(_CUSHIONS, "cushion")
    for x in (-19.0, 19.0):
        _set_chair(sheet, of, x, depth + 4, tone)
    tables.table(sheet.part((2 * half, depth, 30)), of)
    for x in (-half - 10, half + 10):
        _set_chair(sheet, of, x, 12, tone)


def _set_chair(sheet: Canvas, of: Subject, x: float, z: float, cushion: Colour) -> None:
    half = 9.0
    for side in (x - half + 1, x + half - 1):
        sheet.leg((side, 0, z + 16), (side, 38, z + 16), (1.2, 1.3), darker(of.colour, 0.24))
    sheet.plate((x - half, x + half), (28, 38), z + 16, darker(of.colour, 0.08), radius=2)
    for side in (x - half + 1, x + half - 1):
        sheet.leg((side, 0, z), (side, 17, z), (1.2, 1.6), of.colour)
    sheet.box((x - half, x + half), (15.6, 17.4), (z, z + 17), of.colour)
    sheet.soft((x - half + 0.3, x + half - 0.3), (17, 19), (z, z + 16), cushion, 1.0)


Drawing = Callable[[Canvas, Subject], None]
DRAWN: Final[Mapping[str, Drawing]] = {
    "Side Chair": chair,
    "Dining Chair": partial(chair, seat=17.5),
    "Arm Chair": partial(chair, arms=True),
    "Counter Stool": partial(chair, seat=24.5, rung=True),
    "Bar Stool": partial(chair, seat=30.25, rung=True),
    "Dining Bench": partial(bench, covered=False),
    "Upholstered Bedroom Bench": partial(bench, covered=True),
    "5-Piece Dining Set": dining_set,
}
