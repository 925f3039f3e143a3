"""Draws what stores things: nightstands, dressers, cabinets, consoles, shelves, baskets."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from entrypoints.demo.pictures.canvas import Canvas, Span
from entrypoints.demo.pictures.colours import ACCENTS, GLASS, LINENS, Colour, darker, lighter
from entrypoints.demo.pictures.subject import Subject

_METALS: Final = ((178, 146, 84), (66, 62, 60), (176, 174, 170))
_GAP: Final = 0.55
"""Inches between two fronts."""
_THICK: Final = 1.2
"""Inches of a board."""


def _on_legs(sheet: Canvas, of: Subject, x: Span, top: float) -> float:
    """What the case stands on, as its collection's furniture does; the height at which the case begins."""
    depth, tone = sheet.depth, darker(of.colour, 0.25)
    kind = of.styled(("tapered", "plinth", "frame", "block"), "legs")
    high = min(of.between(4.5, 7.0, "legs"), top * 0.22)
    if kind == "plinth":
        sheet.box((x[0] + 1.2, x[1] - 1.2), (0, 2.6), (1.2, depth), tone)
        return 2.4
    if kind == "frame":
        metal = of.styled(_METALS[:2], "frame")
        for z in (depth - 1, 0.4):
            for side in (x[0] + 1.5, x[1] - 1.5):
                sheet.leg((side, 0, z), (side, high, z), (1.0, 1.0), metal)
        sheet.box((x[0] + 1, x[1] - 1), (high - 1, high), (0.4, 1.4), metal)
        return high
    thick, slant = ((1.1, 2.2), 1.6) if kind == "tapered" else ((2.4, 2.4), 0.0)
    for z in (depth - 1.5, 0.5):
        for side, way in ((x[0] + 2.6, -1), (x[1] - 2.6, 1)):
            sheet.leg((side + slant * way, 0, z), (side, high + 0.5, z), thick, tone)
    return high


def _carcass(sheet: Canvas, of: Subject) -> tuple[Span, Span]:
    """The box itself on its legs; where its fronts go."""
    half, top = sheet.width / 2, sheet.height
    sheet.shadow((-half, half), (0, sheet.depth))
    low = _on_legs(sheet, of, (-half, half), top)
    sheet.box((-half, half), (low, top), (0, sheet.depth), of.colour)
    if of.styled((True, False), "overhang"):
        over = 0.7
        sheet.box((-half - over, half + over), (top - 1.4, top), (-over, sheet.depth), lighter(of.colour, 0.06))
        top -= 1.4
    inset = 1.0
    return (-half + inset, half - inset), (low + inset, top - inset)


def _front(sheet: Canvas, of: Subject, x: Span, y: Span, *, framed: bool = False) -> None:
    """A drawer's or door's front with a hint of grain; framed: with a sunk panel."""
    seam, tone = darker(of.colour, 0.32), lighter(of.colour, 0.07)
    sheet.plate((x[0] - 0.22, x[1] + 0.22), (y[0] - 0.28, y[1] + 0.15), 0, seam, radius=0.3)
    sheet.plate(x, y, 0, tone, radius=0.3)
    for at in range(2):
        height = y[0] + (y[1] - y[0]) * (0.28 + 0.4 * at + of.between(-0.1, 0.1, "grain", x, y, at))
        start, end = of.between(0.04, 0.3, "from", x, y, at), of.between(0.55, 0.95, "to", x, y, at)
        long = x[1] - x[0]
        sheet.line([(x[0] + long * start, height, 0), (x[0] + long * end, height, 0)], darker(tone, 0.07), 0.16)
    if framed:
        rim = min(2.6, (x[1] - x[0]) * 0.16, (y[1] - y[0]) * 0.22)
        sheet.plate((x[0] + rim, x[1] - rim), (y[0] + rim, y[1] - rim), 0, darker(tone, 0.10))
        sheet.plate((x[0] + rim, x[1] - rim), (y[0] + rim, y[1] - rim - 0.35), 0, lighter(of.colour, 0.03))


def _handle(sheet: Canvas, of: Subject, x: float, y: float, wide: float, *, upright: bool = False) -> None:
    metal = of.styled(_METALS, "metal")
    kind = of.styled(("knob", "bar", "cup"), "handle")
    if kind == "knob":
        apart = (-wide * 0.25, wide * 0.25) if wide > 22 and not upright else (0.0,)
        for off in apart:
            sheet.oval((x + off - 0.75, x + off + 0.75), (y - 0.85, y + 0.65), -0.5, darker(metal, 0.3))
            sheet.oval((x + off - 0.7, x + off + 0.7), (y - 0.7, y + 0.7), -0.8, metal)
        return
    long = min(5.0, wide * 0.35) / 2
    across, up = ((0.35, long) if upright else (long, 0.35)) if kind == "bar" or upright else (long * 0.8, 0.8)
    sheet.plate((x - across, x + across), (y - up - 0.3, y + up - 0.3), 0, darker(of.colour, 0.3), radius=0.4)
    sheet.plate((x - across, x + across), (y - up, y + up), -0.5, metal, radius=0.4 if kind == "bar" else 0.8)


def _drawers(sheet: Canvas, of: Subject, x: Span, y: Span, rows: Sequence[int]) -> None:
    """Rows of drawers, the lowest first; a number is how many stand side by side."""
    parts = [1.0 + 0.16 * (len(rows) - at) for at in range(len(rows))]
    bottom, unit = y[0], (y[1] - y[0]) / sum(parts)
    for count, part in zip(rows, parts, strict=True):
        wide = (x[1] - x[0]) / count
        low, high = bottom + _GAP / 2, bottom + unit * part - _GAP / 2
        for at in range(count):
            left, right = x[0] + wide * at + _GAP / 2, x[0] + wide * (at + 1) - _GAP / 2
            _front(sheet, of, (left, right), (low, high), framed=of.styled((True, False, False), "framed"))
            _handle(sheet, of, (left + right) / 2, low + (high - low) * 0.56, right - left)
        bottom += unit * part


def _doors(sheet: Canvas, of: Subject, x: Span, y: Span, count: int) -> None:
    wide = (x[1] - x[0]) / count
    for at in range(count):
        left, right = x[0] + wide * at + _GAP / 2, x[0] + wide * (at + 1) - _GAP / 2
        _front(
            sheet, of, (left, right), (y[0] + _GAP / 2, y[1] - _GAP / 2), framed=of.styled((True, True, False), "door")
        )
        inner = right - 1.9 if at % 2 == 0 and count > 1 else left + 1.9
        _handle(sheet, of, inner, y[0] + (y[1] - y[0]) * 0.58, wide, upright=True)


def _open(sheet: Canvas, of: Subject, x: Span, y: Span, back: float, *, filled: bool = True) -> None:
    """An open compartment: its back wall in shade, floor and right wall; perhaps things in it."""
    dark = darker(of.colour, 0.42)
    sheet.plate(x, y, 0, dark)
    sheet.face([(x[0], y[0], 0), (x[1], y[0], 0), (x[1], y[0], back), (x[0], y[0], back)], darker(of.colour, 0.22))
    sheet.plate((x[0], x[1]), (y[0] + 0.6, y[1]), back, darker(of.colour, 0.36))
    if filled:
        _things(sheet, of, x, y)


def _things(sheet: Canvas, of: Subject, x: Span, y: Span) -> None:
    """Books, a vase, a box: what people put on shelves."""
    room, high = x[1] - x[0], y[1] - y[0]
    kind = of.one_of(("books", "vase", "box", "books", "none"), "things", x, y)
    start = x[0] + room * of.between(0.08, 0.35, "at", x, y)
    if kind == "books":
        for at in range(of.one_of((4, 5, 6), "count", x, y)):
            tall, wide = high * of.between(0.5, 0.76, "tall", x, y, at), of.between(0.9, 1.7, "wide", x, y, at)
            if start + wide > x[1] - 1:
                return
            tone = of.one_of((*ACCENTS, *LINENS), "book", x, y, at)
            sheet.plate((start, start + wide - 0.12), (y[0] + 0.3, y[0] + tall), 2, tone)
            start += wide
    elif kind == "vase":
        tone, wide = of.one_of((*LINENS, *ACCENTS), "vase", x, y), min(5.0, room * 0.22, high * 0.5)
        sheet.drum(start + wide / 2, (y[0] + 0.4, y[0] + high * 0.42), 3, (wide / 2, wide * 0.3), tone)
    elif kind == "box":
        tone, wide = of.one_of(LINENS, "box", x, y), min(room * 0.5, 11)
        sheet.box((start, start + wide), (y[0] + 0.3, y[0] + high * 0.5), (1.5, 6), darker(tone, 0.1))


def chest(sheet: Canvas, of: Subject, *, rows: Sequence[int]) -> None:
    """Drawers from below to above, so many in each row."""
    x, y = _carcass(sheet, of)
    _drawers(sheet, of, x, y, rows)


def nightstand(sheet: Canvas, of: Subject) -> None:
    """Two drawers, or one below an open shelf."""
    x, y = _carcass(sheet, of)
    if of.happens(55, "open"):
        middle = y[0] + (y[1] - y[0]) * 0.55
        _drawers(sheet, of, x, (y[0], middle), (1,))
        _open(sheet, of, (x[0] + 0.4, x[1] - 0.4), (middle + 0.8, y[1]), sheet.depth * 0.7)
    else:
        _drawers(sheet, of, x, y, of.one_of(((1, 1), (1, 1, 1)), "rows"))


def cabinet(sheet: Canvas, of: Subject, *, doors: int) -> None:
    """Doors, at times with drawers above."""
    x, y = _carcass(sheet, of)
    if of.happens(50, "drawers"):
        line = y[1] - (y[1] - y[0]) * 0.24
        _drawers(sheet, of, x, (line, y[1]), (min(doors, 3),))
        y = (y[0], line)
    _doors(sheet, of, x, y, doors)


def console(sheet: Canvas, of: Subject) -> None:
    """A low long case: doors at both sides of an open middle."""
    x, y = _carcass(sheet, of)
    side = (x[1] - x[0]) * of.between(0.28, 0.34, "side")
    for span in ((x[0], x[0] + side), (x[1] - side, x[1])):
        _doors(sheet, of, span, y, 1 if sheet.width < 60 else 2)
    inner, middle = (x[0] + side + 0.5, x[1] - side - 0.5), (y[0] + y[1]) / 2
    for low, high in ((y[0], middle - 0.5), (middle + 0.5, y[1])):
        _open(sheet, of, inner, (low, high), sheet.depth * 0.7, filled=high > middle + 1 or of.happens(50, "lower"))


def display(sheet: Canvas, of: Subject) -> None:
    """Glass doors above, doors below."""
    x, y = _carcass(sheet, of)
    line, middle = y[0] + (y[1] - y[0]) * 0.34, (x[0] + x[1]) / 2
    _doors(sheet, of, x, (y[0], line), 2)
    shelves = 4
    high = (y[1] - line) / shelves
    for at in range(shelves):
        _open(sheet, of, (x[0] + 1, x[1] - 1), (line + 0.6 + high * at, line + high * (at + 1)), sheet.depth * 0.7)
    for left, right in ((x[0], middle), (middle, x[1])):
        sheet.line([(left + 3, line + 4, 0), (right - 4, y[1] - 4, 0)], lighter(GLASS, 0.3), 0.3)
        for span, rows in (
            ((left, right), (line, line + 1.8)), ((left, right), (y[1] - 1.8, y[1])),
            ((left, left + 1.6), (line, y[1])), ((right - 1.6, right), (line, y[1])),
        ):  # fmt: skip
            sheet.plate(span, rows, 0, lighter(of.colour, 0.06))
    for off in (-1.0, 1.0):
        _handle(sheet, of, middle + off, line + (y[1] - line) * 0.4, 18, upright=True)
    sheet.line([(middle, line, 0), (middle, y[1], 0)], darker(of.colour, 0.4), 0.25)


def shelves(sheet: Canvas, of: Subject) -> None:
    """Boards between two sides, with things on them."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    sheet.shadow((-half, half), (0, depth))
    count = of.one_of((5, 5, 6), "shelves")
    backed = of.styled((True, False), "back")
    low = 3.0
    step = (top - low) / count
    if backed:
        sheet.plate((-half, half), (low, top), depth, darker(of.colour, 0.36))
    else:
        for side in (-half + 0.7, half - 0.7):
            sheet.leg((side, 0, depth), (side, top, depth), (_THICK, _THICK), darker(of.colour, 0.4))
    sheet.face([(half, 0, 0), (half, top, 0), (half, top, depth), (half, 0, depth)], darker(of.colour, 0.3))
    sheet.face([(-half, 0, 0), (-half, top, 0), (-half, top, depth), (-half, 0, depth)], darker(of.colour, 0.16))
    for at in range(count):
        line = low + step * at
        sheet.box((-half, half), (line, line + _THICK), (0, depth), of.colour)
        _things(sheet, of, (-half + 1.5, 0), (line + _THICK - 0.3, line + step))
        _things(sheet, of, (1.0, half - 1.5), (line + _THICK - 0.3, line + step))
    sheet.box((-half, half), (top - _THICK, top), (0, depth), of.colour)
    for side in (-half + _THICK / 2, half - _THICK / 2):
        sheet.leg((side, 0, 0), (side, top, 0), (_THICK, _THICK), lighter(of.colour, 0.05))


def hutch(sheet: Canvas, of: Subject) -> None:
    """What stands on a desk: open compartments beside and above each other."""
    half, top, back = sheet.width / 2, sheet.height, sheet.depth * 0.75
    sheet.shadow((-half, half), (0, sheet.depth))
    sheet.box((-half, half), (0, top), (0, sheet.depth), of.colour)
    columns, line = 3, top * of.between(0.42, 0.55, "line")
    wide = (sheet.width - _THICK) / columns
    for at in range(columns):
        x = (-half + _THICK + wide * at, -half + wide * (at + 1))
        _open(sheet, of, x, (line + _THICK, top - _THICK), back)
    _open(sheet, of, (-half + _THICK, half - _THICK), (0.2, line), back, filled=False)


def baskets(sheet: Canvas, of: Subject) -> None:
    """Two woven baskets, the smaller one in front."""
    tone: Colour = of.colour if sum(of.colour) > 240 else lighter(of.colour, 0.2)
    for x, wide, high, z in ((-2.5, 0.36, 1.0, 8.0), (4.6, 0.25, 0.66, 1.0)):
        radius, top = sheet.width * wide, sheet.height * high
        sheet.shadow((x - radius, x + radius), (z - radius * 0.7, z + radius * 0.7), round_=True)
        sheet.drum(x, (0, top), z, (radius * 0.86, radius), tone)
        for row in range(1, 9):
            y = top * row / 9
            reach = radius * (0.86 + 0.14 * row / 9)
            sheet.line([(x - reach, y, z), (x, y - 0.45, z), (x + reach, y, z)], darker(tone, 0.16), 0.22)
        sheet.disc(x, top, z, radius, lighter(tone, 0.18))
        sheet.disc(x, top, z, radius * 0.88, darker(tone, 0.5))


Drawing = Callable[[Canvas, Subject], None]
DRAWN: Final[Mapping[str, Drawing]] = {
    "Nightstand": nightstand,
    "Seven-Drawer Dresser": partial(chest, rows=(2, 2, 3)),
    "Six-Drawer Dresser": partial(chest, rows=(2, 2, 2)),
    "Five-Drawer Chest": partial(chest, rows=(1, 1, 1, 1, 1)),
    "Lateral File": partial(chest, rows=(1, 1)),
    "Sideboard": partial(cabinet, doors=4),
    "Two-Door Accent Cabinet": partial(cabinet, doors=2),
    "Credenza": console,
    "TV Console": console,
    "Media Console": console,
    "Display Cabinet": display,
    "Open Bookcase": shelves,
    "Tall Bookshelf": shelves,
    "Desk Hutch": hutch,
    "Storage Basket Set": baskets,
}
