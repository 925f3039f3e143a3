"""Draws beds, and a bed with the nightstands that are sold with it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from entrypoints.demo.pictures import cases
from entrypoints.demo.pictures.canvas import Canvas
from entrypoints.demo.pictures.colours import ACCENTS, LINENS, WOODS, darker, lighter
from entrypoints.demo.pictures.subject import Subject

_PALE: Final = 560


def _covered_head(sheet: Canvas, of: Subject, half: float, top: float, z: float) -> None:
    """The headboard of fabric, with channels, with buttons, or plain."""
    sheet.soft((-half, half), (5, top), (z, z + 4), of.colour, of.styled((1.5, 4.0, 9.0), "head round"))
    kind = of.one_of(("channels", "buttons", "plain"), "head")
    for at in range(1, 7):
        x = -half + 2 * half * at / 7
        if kind == "channels":
            sheet.line([(x, 24, z), (x, top - 1.5, z)], darker(of.colour, 0.16), 0.5)
        elif kind == "buttons":
            for y in (top - 7, top - 15):
                sheet.oval((x - 0.7, x + 0.7), (y - 0.7, y + 0.7), z, darker(of.colour, 0.26))


def _head(sheet: Canvas, of: Subject, half: float, top: float, z: float) -> None:
    """The headboard of wood: panels, slats, cane in a frame, or a plain board."""
    kind = of.styled(("panels", "slats", "board", "frame"), "head")
    if kind == "slats":
        for at in range(11):
            x = -half + 3 + (2 * half - 6) * at / 10
            sheet.leg((x, 10, z), (x, top - 2, z), (1.6, 1.6), darker(of.colour, 0.08))
    else:
        sheet.box((-half + 1, half - 1), (8, top - 1.5), (z, z + 2), of.colour)
    for at in range(3 if kind == "panels" else 0):
        wide = (2 * half - 8) / 3
        panel = (-half + 4.6 + wide * at, -half + 3.4 + wide * (at + 1))
        sheet.plate(panel, (12, top - 5), z, darker(of.colour, 0.13))
        sheet.plate(panel, (12, top - 5.6), z, lighter(of.colour, 0.05))
    if kind == "frame":
        sheet.plate((-half + 4, half - 4), (12, top - 5), z, of.styled(LINENS, "cane"), edge=darker(of.colour, 0.2))
    for side in (-half + 1.2, half - 1.2):
        sheet.leg((side, 0, z), (side, top, z), (2.6, 2.6), darker(of.colour, 0.06))
    sheet.box((-half - 0.5, half + 0.5), (top - 3, top), (z - 0.5, z + 2.5), lighter(of.colour, 0.04))


def _bedding(sheet: Canvas, of: Subject, half: float, base: float) -> None:
    """Mattress, pillows, cover and a blanket across its end."""
    long, linen = sheet.depth - 4, of.one_of(LINENS, "linen")
    if sum(of.colour) > _PALE:
        linen = lighter(darker(linen, 0.28), 0.12)  # else a pale bed and its cover are one
    throw, high = of.one_of(ACCENTS, "throw"), base + 8.5
    sheet.soft((-half, half), (base, high), (2, long), (240, 237, 230), 2.2)
    count = 2 if half > 24 else 1
    for row, (size, tone) in enumerate(((0.98, lighter(linen, 0.3)), (0.78, of.one_of((*LINENS, throw), "pillow")))):
        wide = 2 * half / count
        for at in range(count):
            x = -half + wide * (at + 0.5)
            reach, z = wide * 0.44 * size, long - 9 - 7 * row
            sheet.soft((x - reach, x + reach), (high - 0.5, high + 12 * size), (z, z + 4), tone, 4.0)
    end = long * 0.66
    sheet.soft((-half - 0.9, half + 0.9), (base - 2, high + 1.6), (1, end), linen, 2.6)
    sheet.face(
        [
            (-half - 0.8, high + 1.6, end - 7),
            (half + 0.8, high + 1.6, end - 7),
            (half + 0.8, high + 1.7, end),
            (-half - 0.8, high + 1.7, end),
        ],
        lighter(linen, 0.4),
    )
    near, far = 6.0, of.between(18, 30, "throw")
    if of.happens(70, "throw there"):
        sheet.face(
            [
                (-half - 0.9, high + 1.7, near),
                (half + 0.9, high + 1.7, near),
                (half + 0.9, high + 1.7, far),
                (-half - 0.9, high + 1.7, far),
            ],
            throw,
        )


def bed(sheet: Canvas, of: Subject, *, covered: bool = False, foot: bool = True) -> None:
    """A made bed; with a low board at its foot, or a flat platform."""
    half, top, long = 64.5 / 2 if sheet.width > 90 else sheet.width / 2, sheet.height, sheet.depth
    sheet.shadow((-half, half), (0, long), strength=0.34)
    (_covered_head if covered else _head)(sheet, of, half, top, long - 3)
    wood = of.styled(WOODS, "feet") if covered else of.colour
    for side in (-half + 3, half - 3):
        sheet.leg((side, 0, 1.5), (side, 8, 1.5), (1.8, 2.6), darker(wood, 0.1))
    rail = (6.0, 13.0) if foot or covered else (7.0, 11.0)
    sheet.box((-half, half), rail, (0.5, long - 2), darker(of.colour, 0.05))
    _bedding(sheet, of, half - 1.4, rail[1] - 1)
    if foot and not covered:
        tall = of.styled((15.0, 17.0, 13.5), "foot")
        sheet.box((-half, half), (5, tall), (-1, 0.5), of.colour)
        if of.styled((True, False), "foot panel"):
            sheet.plate((-half + 4, half - 4), (7, tall - 2), -1, darker(of.colour, 0.12))
            sheet.plate((-half + 4, half - 4), (7, tall - 2.5), -1, lighter(of.colour, 0.04))
        for side in (-half + 1, half - 1):
            sheet.leg((side, 0, -1), (side, tall + 1, -1), (2.2, 2.8), of.colour)
    elif covered:
        sheet.soft((-half, half), (5, 14), (-1, 1), of.colour, 1.8)


def bedroom_set(sheet: Canvas, of: Subject) -> None:
    """A bed between two nightstands."""
    for side in (-1, 1):
        cases.chest(sheet.part((24, 17, 26), x=side * 47.0, z=66), of, rows=(1, 1))
    bed(sheet, of)


Drawing = Callable[[Canvas, Subject], None]
DRAWN: Final[Mapping[str, Drawing]] = {
    "Panel Bed": bed,
    "Platform Bed": partial(bed, foot=False),
    "Upholstered Bed": partial(bed, covered=True),
    "4-Piece Queen Bedroom Set": bedroom_set,
}
