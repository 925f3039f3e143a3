"""Draws what is covered with fabric or leather: sofas, lounge chairs, ottomans; and chairs for outdoors."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from entrypoints.demo.pictures.canvas import Canvas, Span
from entrypoints.demo.pictures.colours import ACCENTS, LINENS, WOODS, Colour, darker, lighter
from entrypoints.demo.pictures.subject import Subject


def _feet(sheet: Canvas, of: Subject, x: Span, z: Span, high: float) -> None:
    tone = of.styled(WOODS, "feet")
    thick = of.styled(((1.1, 2.0), (2.4, 2.4), (1.6, 1.6)), "feet form")
    for depth, dark in ((z[1] - 2, 0.3), (z[0] + 1.5, 0.0)):
        for side in (x[0] + 2.6, x[1] - 2.6):
            sheet.leg((side, 0, depth), (side, high + 1, depth), thick, darker(tone, dark))


def _pillow(sheet: Canvas, of: Subject, x: float, y: float, z: float, size: float) -> None:
    tone = of.one_of((*ACCENTS, *LINENS), "pillow", x)
    if max(abs(a - b) for a, b in zip(tone, of.colour, strict=True)) < 30:
        tone = darker(tone, 0.3) if sum(tone) > 420 else lighter(tone, 0.4)
    sheet.soft((x - size / 2, x + size / 2), (y, y + size * 0.82), (z, z + 3), tone, size * 0.24)
    if of.happens(50, "stripes", x):
        for part in (0.28, 0.5, 0.72):
            at = x - size / 2 + size * part
            sheet.line([(at, y + size * 0.1, z), (at, y + size * 0.72, z)], lighter(tone, 0.35), 0.35)


def sofa(sheet: Canvas, of: Subject, *, seats: int, chaise: bool = False) -> None:
    """So many seats between two arms; with a chaise one seat reaches far to the front."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    arm = min(half * 0.3, of.styled((4.5, 6.5, 8.0), "arm") * (0.8 if seats == 1 else 1))
    feet, seat = of.styled((2.2, 4.5, 6.0), "feet height"), top * 0.52
    tall = top * of.styled((0.62, 0.70, 0.78), "arm height")
    front = depth - 38 if chaise else 0.0
    round_ = of.styled((1.4, 2.4, 3.4), "round")
    sheet.shadow((-half, half), (front, depth), strength=0.36)
    _feet(sheet, of, (-half, half), (front, depth), feet)
    sheet.soft(
        (-half + arm * 0.5, half - arm * 0.5), (feet, top - 1.6), (depth - 6, depth), darker(of.colour, 0.07), round_
    )
    _cushions(sheet, of, (-half + arm, half - arm), (seat - 0.5, top), (depth - 14, depth - 7), seats, round_)
    sheet.box((-half + arm * 0.6, half - arm * 0.6), (feet, seat - 4), (front + 1, depth - 6), darker(of.colour, 0.12))
    long = of.one_of((0, seats - 1), "chaise") if chaise else -1
    _seats(sheet, of, (-half + arm, half - arm), (seat - 6, seat), (front, depth - 12), seats, long)
    for side in (-1, 1):
        inner, outer = side * (half - arm), side * half
        near = 0.0 if chaise and (long == 0) == (side < 0) else front
        sheet.soft(
            (min(inner, outer), max(inner, outer)), (feet, tall), (near + 0.5, depth - 0.5), of.colour, round_ * 0.9
        )
    if seats > 1:
        size = min(15.0, top * 0.42)
        for side in of.one_of(((-1,), (1,), (-1, 1), (-1, 1)), "pillows"):
            _pillow(sheet, of, side * (half - arm - size * 0.62), seat, depth - 17, size)


def _cushions(sheet: Canvas, of: Subject, x: Span, y: Span, z: Span, count: int, round_: float) -> None:
    wide = (x[1] - x[0]) / count
    for at in range(count):
        span = (x[0] + wide * at + 0.15, x[0] + wide * (at + 1) - 0.15)
        sheet.soft(span, y, z, lighter(of.colour, 0.03), round_ * 1.2)
        if of.styled((True, False, False), "tufted"):
            for part in (0.3, 0.7):
                place = span[0] + (span[1] - span[0]) * part
                height = y[0] + (y[1] - y[0]) * 0.62
                sheet.oval((place - 0.5, place + 0.5), (height - 0.5, height + 0.5), z[0], darker(of.colour, 0.28))


def _seats(sheet: Canvas, of: Subject, x: Span, y: Span, z: Span, count: int, long: int) -> None:
    """The seat cushions; the one of number `long` reaches to the very front and to the floor's edge."""
    wide = (x[1] - x[0]) / count
    for at in range(count):
        span = (x[0] + wide * at + 0.12, x[0] + wide * (at + 1) - 0.12)
        if at != long:
            sheet.soft(span, y, z, of.colour, 1.6)
    if long >= 0:
        span = (x[0] + wide * long, x[0] + wide * (long + 1))
        sheet.shadow(span, (0, z[0] + 8), strength=0.22)
        for side in (span[0] + 2, span[1] - 2):
            sheet.leg((side, 0, 1.5), (side, 5, 1.5), (1.4, 2.0), of.styled(WOODS, "feet"))
        sheet.box((span[0] + 0.3, span[1] - 0.3), (4, y[0] + 0.6), (0.4, z[1]), darker(of.colour, 0.12))
        sheet.soft(span, y, (0, z[1]), of.colour, 1.6)


def swivel(sheet: Canvas, of: Subject) -> None:
    """A round chair on a plate that turns."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    middle = depth / 2
    sheet.shadow((-half, half), (0, depth), round_=True)
    sheet.drum(0, (0, 1.4), middle, (half * 0.62, half * 0.62), of.styled(WOODS, "plate"))
    sheet.soft((-half, half), (2, top), (middle, depth), darker(of.colour, 0.1), half * 0.42)
    sheet.soft(
        (-half * 0.74, half * 0.74),
        (top * 0.46, top * 0.93),
        (middle - 2, middle + 4),
        lighter(of.colour, 0.04),
        half * 0.3,
    )
    sheet.soft((-half * 0.78, half * 0.78), (top * 0.30, top * 0.54), (1, middle + 3), lighter(of.colour, 0.02), 3)
    for side in (-1, 1):
        inner, outer = side * half * 0.72, side * half
        sheet.soft((min(inner, outer), max(inner, outer)), (2, top * 0.66), (2, middle + 6), of.colour, half * 0.13)
    sheet.soft((-half * 0.80, half * 0.80), (2, top * 0.32), (0.5, 4), darker(of.colour, 0.05), 2)


def recliner(sheet: Canvas, of: Subject) -> None:
    """A wide chair with its foot rest out."""
    sofa(sheet, of, seats=1)
    half = sheet.width / 2
    sheet.soft(
        (-half * 0.58, half * 0.58), (sheet.height * 0.3, sheet.height * 0.42), (-12, 2), lighter(of.colour, 0.04), 2.2
    )


def ottoman(sheet: Canvas, of: Subject) -> None:
    """A cushion on feet."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    feet = of.styled((2.0, 4.0, 5.5), "feet height")
    sheet.shadow((-half, half), (0, depth))
    _feet(sheet, of, (-half, half), (0, depth), feet)
    sheet.soft((-half + 0.4, half - 0.4), (feet, top - 4.5), (0.3, depth), darker(of.colour, 0.08), 1.4)
    sheet.soft((-half, half), (top - 5, top), (0, depth), of.colour, 2.2)
    if of.happens(50, "tufts"):
        for x in (-half * 0.5, 0.0, half * 0.5):
            sheet.disc(x, top, depth * 0.5, 0.55, darker(of.colour, 0.3))


def lounge(sheet: Canvas, of: Subject, *, cushion: tuple[Colour, ...] = ()) -> None:
    """An open frame of wood with two cushions; of the colour is the frame where cushions have their own."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    frame = of.colour if cushion else of.one_of(WOODS, "frame")
    cover = of.one_of(cushion, "cushion") if cushion else of.colour
    seat, arm = top * 0.46, top * 0.68
    sheet.shadow((-half, half), (0, depth), strength=0.28)
    for side in (-half + 1, half - 1):
        sheet.leg((side, 0, depth - 2), (side, arm, depth - 4), (1.4, 1.6), darker(frame, 0.25))
    if of.happens(50, "slats"):
        for at in range(5):
            y = seat + (top - seat) * (0.15 + 0.18 * at)
            sheet.plate((-half + 1.5, half - 1.5), (y, y + 1.4), depth - 1, darker(frame, 0.2))
    sheet.soft((-half + 2, half - 2), (seat - 1, top), (depth - 7, depth - 2), cover, 2.8)
    sheet.box((-half + 1, half - 1), (seat - 6.2, seat - 4.4), (1, depth - 2), frame)
    sheet.soft((-half + 1.8, half - 1.8), (seat - 4.6, seat + 0.4), (0.5, depth - 6), lighter(cover, 0.03), 1.9)
    for side in (-half + 1, half - 1):
        sheet.leg((side * 1.03, 0, 2), (side, arm, 2), (1.3, 1.8), frame)
        sheet.box((side - 1.3, side + 1.3), (arm - 1, arm + 0.4), (0.5, depth - 2), lighter(frame, 0.06))


Drawing = Callable[[Canvas, Subject], None]
_OUTDOORS: Final[tuple[Colour, ...]] = ((232, 226, 212), (206, 204, 196), (176, 186, 178))
DRAWN: Final[Mapping[str, Drawing]] = {
    "Sofa": partial(sofa, seats=3),
    "Three-Seat Sofa": partial(sofa, seats=3),
    "Loveseat": partial(sofa, seats=2),
    "Lounge Chair": partial(sofa, seats=1),
    "Armchair": partial(sofa, seats=1),
    "Leather Lounge Chair": lounge,
    "Outdoor Lounge Chair": partial(lounge, cushion=_OUTDOORS),
    "Swivel Chair": swivel,
    "Power Recliner": recliner,
    "Ottoman": ottoman,
    "Chaise Sectional": partial(sofa, seats=3, chaise=True),
    "Sectional with Chaise": partial(sofa, seats=3, chaise=True),
}
