"""Draws lamps, mirrors and rugs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from entrypoints.demo.pictures.canvas import Canvas, Span
from entrypoints.demo.pictures.colours import GLASS, LINENS, Colour, darker, lighter, mixed
from entrypoints.demo.pictures.subject import Subject

_LIGHT: Final[Colour] = (255, 240, 206)


def _shade(sheet: Canvas, of: Subject, y: Span, z: float, radius: float) -> None:
    """A lampshade of linen, lit from inside."""
    tone = mixed(lighter(of.one_of(LINENS, "shade"), 0.2), _LIGHT, 0.55)
    narrow = of.one_of((0.62, 0.78, 0.95), "shade form")
    sheet.drum(0, y, z, (radius, radius * narrow), tone)
    sheet.disc(0, y[0] + 0.2, z, radius * 0.93, lighter(_LIGHT, 0.4))
    for height, reach in ((y[0], radius), (y[1], radius * narrow)):
        sheet.line([(-reach, height, z), (reach, height, z)], darker(tone, 0.14), 0.35)


def table_lamp(sheet: Canvas, of: Subject) -> None:
    """A foot of ceramic or metal below a shade."""
    half, top, z = sheet.width / 2, sheet.height, sheet.depth / 2
    line, wide = top * of.between(0.54, 0.62, "line"), half * of.between(0.42, 0.62, "belly")
    sheet.shadow((-half * 0.6, half * 0.6), (z - half * 0.4, z + half * 0.4), round_=True)
    sheet.drum(0, (0, 0.9), z, (half * 0.46, half * 0.42), darker(of.colour, 0.12))
    kind = of.one_of(("belly", "column", "stacked"), "foot")
    if kind == "belly":
        sheet.drum(0, (0.9, line * 0.5), z, (wide * 0.62, wide), of.colour)
        sheet.drum(0, (line * 0.5, line * 0.86), z, (wide, wide * 0.2), of.colour)
    elif kind == "column":
        sheet.drum(0, (0.9, line * 0.86), z, (wide * 0.42, wide * 0.34), of.colour)
    else:
        for low, high in ((0.06, 0.32), (0.32, 0.6), (0.6, 0.86)):
            middle = (low + high) / 2
            sheet.drum(0, (line * low, line * middle), z, (wide * 0.34, wide * 0.72), of.colour)
            sheet.drum(0, (line * middle, line * high), z, (wide * 0.72, wide * 0.34), of.colour)
    sheet.leg((0, line * 0.8, z), (0, line + 2, z), (0.8, 0.8), (150, 136, 104))
    _shade(sheet, of, (line, top), z, half)


def floor_lamp(sheet: Canvas, of: Subject) -> None:
    """A shade on a pole or on three legs."""
    half, top, z = sheet.width / 2, sheet.height, sheet.depth / 2
    line = top * of.between(0.76, 0.81, "line")
    sheet.shadow((-half * 0.7, half * 0.7), (z - half * 0.5, z + half * 0.5), round_=True)
    if of.happens(45, "tripod"):
        for foot, back in ((0.1, 0.7), (-0.85, -0.4), (0.85, -0.4)):
            sheet.leg(
                (half * foot, 0, z + half * back),
                (0, line * 0.94, z),
                (0.9, 1.3),
                darker(of.colour, max(0.0, back * 0.3)),
            )
    else:
        sheet.drum(0, (0, 1.0), z, (half * 0.6, half * 0.56), of.colour)
        sheet.leg((0, 1, z), (0, line, z), (0.9, 0.9), of.colour)
    sheet.leg((0, line * 0.9, z), (0, line + 2, z), (0.8, 0.8), of.colour)
    _shade(sheet, of, (line, top), z, half * 0.92)


def pendant(sheet: Canvas, of: Subject) -> None:
    """A lamp that hangs from above."""
    half, z = sheet.width / 2, sheet.depth / 2
    low, top = 2.0, sheet.height
    sheet.leg((0, top - 1, z), (0, top + 60, z), (0.35, 0.35), (70, 66, 62))
    kind = of.one_of(("dome", "cone", "globe"), "form")
    if kind == "globe":
        sheet.drum(0, (top - 2.2, top), z, (2.2, 1.6), of.colour)
        for part, tone in ((0.62, _LIGHT), (0.5, lighter(_LIGHT, 0.35)), (0.3, lighter(_LIGHT, 0.7))):
            reach = half * part
            middle = top - 1.5 - half * 0.62
            sheet.oval((-reach, reach), (middle - reach, middle + reach), z, tone)
        return
    rings = 14
    for at in range(rings):
        start, end = at / rings, (at + 1) / rings
        wide = [half * ((1 - part**2) ** 0.5 if kind == "dome" else 1 - 0.82 * part) + 0.8 for part in (start, end)]
        span = (low + (top - low) * start, low + (top - low) * end)
        sheet.drum(0, span, z, (wide[0], wide[1]), darker(of.colour, 0.05 * (at % 2)))
    sheet.oval((-half * 0.8, half * 0.8), (low - 1.3, low + 0.7), z, _LIGHT)
    sheet.oval((-half * 0.3, half * 0.3), (low - 0.9, low + 0.4), z, lighter(_LIGHT, 0.7))


def mirror(sheet: Canvas, of: Subject, *, form: str) -> None:
    """A frame around glass that shows the light: square, round, arched or leaning on the floor."""
    half, top = sheet.width / 2, sheet.height
    rim, square = of.between(1.0, 2.2, "rim"), of.between(0.5, 2.5, "corner")
    radius = {"round": half, "arch": half, "square": square}.get(form, 1.2)
    x, y = (-half, half), (0.0, top)
    if form == "floor":
        sheet.shadow(x, (0, 6), strength=0.3)
        if of.happens(50, "arched"):
            radius = half * 0.8
    sheet.wall_shadow(x, y, 0, radius)
    for inset, tone in (
        (0.0, darker(of.colour, 0.1)),
        (rim * 0.35, lighter(of.colour, 0.08)),
        (rim, darker(of.colour, 0.3)),
    ):
        _outline(
            sheet, (x[0] + inset, x[1] - inset), (y[0] + inset, y[1] - inset), tone, max(0.4, radius - inset), form
        )
    inset = rim + 0.3
    glass = (x[0] + inset, x[1] - inset), (y[0] + inset, y[1] - inset)
    _outline(sheet, *glass, GLASS, max(0.4, radius - inset), form)
    _gleam(sheet, glass[0], glass[1])


def _outline(sheet: Canvas, x: Span, y: Span, tone: Colour, radius: float, form: str) -> None:
    sheet.plate(x, y, 0, tone, radius=radius)
    if form == "arch" or (form == "floor" and radius > 2):
        sheet.plate(x, (y[0], (y[0] + y[1]) / 2), 0, tone, radius=0.6)


def _gleam(sheet: Canvas, x: Span, y: Span) -> None:
    """Two slanting bands of light, well inside the glass."""
    wide, high = x[1] - x[0], y[1] - y[0]
    for start, part in ((0.24, 0.14), (0.46, 0.05)):
        left = x[0] + wide * start
        low, tall = y[0] + high * 0.26, y[0] + high * 0.74
        lean = min(wide * 0.2, high * 0.3)
        sheet.face(
            [
                (left, low, 0),
                (left + wide * part, low, 0),
                (left + wide * part + lean, tall, 0),
                (left + lean, tall, 0),
            ],
            lighter(GLASS, 0.45),
        )


def rug(sheet: Canvas, of: Subject) -> None:
    """A rug on the floor with a pattern of its design: bands, diamonds, a border, lines."""
    half, depth = sheet.width / 2, sheet.depth
    sheet.shadow((-half, half), (0, depth), strength=0.22)
    other = darker(of.colour, 0.22) if sum(of.colour) > 400 else lighter(of.colour, 0.35)
    if of.styled((True, False), "fringe"):
        for at in range(41):
            z = depth * at / 40
            for side in (-1, 1):
                sheet.line([(side * half, 0.1, z), (side * (half + 2.6), 0.1, z)], lighter(of.colour, 0.3), 0.35)
    _flat(sheet, (-half, half), (0, depth), darker(of.colour, 0.1))
    _flat(sheet, (-half, half), (0.5, depth), of.colour)
    {"bands": _bands, "diamonds": _diamonds, "border": _border, "lines": _lines}[
        of.styled(("bands", "diamonds", "border", "lines"), "pattern")
    ](sheet, of, other)


def _flat(sheet: Canvas, x: Span, z: Span, tone: Colour) -> None:
    sheet.face([(x[0], 0.3, z[0]), (x[1], 0.3, z[0]), (x[1], 0.3, z[1]), (x[0], 0.3, z[1])], tone)


def _bands(sheet: Canvas, of: Subject, other: Colour) -> None:
    half, depth = sheet.width / 2, sheet.depth
    for place, part in ((-0.94, 0.05), (-0.82, 0.12), (-0.62, 0.03), (0.62, 0.03), (0.82, 0.12), (0.94, 0.05)):
        _flat(sheet, (half * (place - part / 2), half * (place + part / 2)), (0, depth), other)
    del of


def _diamonds(sheet: Canvas, of: Subject, other: Colour) -> None:
    half, depth = sheet.width / 2, sheet.depth
    across, deep = of.styled((4, 5, 6), "across"), 3
    wide, long = 2 * half / across, depth / deep
    for column in range(across):
        for row in range(deep):
            x, z = -half + wide * (column + 0.5), long * (row + 0.5)
            for size, tone in ((0.42, other), (0.26, of.colour), (0.12, other)):
                sheet.face(
                    [
                        (x - wide * size, 0.3, z),
                        (x, 0.3, z - long * size),
                        (x + wide * size, 0.3, z),
                        (x, 0.3, z + long * size),
                    ],
                    tone,
                )


def _border(sheet: Canvas, of: Subject, other: Colour) -> None:
    half, depth = sheet.width / 2, sheet.depth
    inner = half
    for inset, tone in ((3.0, other), (5.0, of.colour), (7.0, other), (7.8, lighter(of.colour, 0.12))):
        inner = half - inset
        _flat(sheet, (-inner, inner), (inset, depth - inset), tone)
    for size, tone in ((0.5, other), (0.4, lighter(of.colour, 0.12)), (0.24, other)):
        sheet.disc(0, 0.3, depth / 2, min(inner, depth / 2) * size, tone)


def _lines(sheet: Canvas, of: Subject, other: Colour) -> None:
    half, depth = sheet.width / 2, sheet.depth
    count = 9
    for at in range(1, count):
        z = depth * at / count
        bend = depth * of.between(-0.05, 0.05, "bend", at)
        points = [(half * part / 4, 0.3, min(depth - 1, max(1, z + bend * (part % 2)))) for part in range(-4, 5)]
        sheet.line(
            [(-half + 0.5, 0.3, z), *points[1:-1], (half - 0.5, 0.3, z)], other, of.one_of((0.5, 0.9, 0.5), "thick", at)
        )


Drawing = Callable[[Canvas, Subject], None]
DRAWN: Final[Mapping[str, Drawing]] = {
    "Table Lamp": table_lamp,
    "Floor Lamp": floor_lamp,
    "Pendant": pendant,
    "Pendant Light": pendant,
    "Dresser Mirror": partial(mirror, form="square"),
    "Round Wall Mirror": partial(mirror, form="round"),
    "Floor Mirror": partial(mirror, form="floor"),
    "Arched Wall Mirror": partial(mirror, form="arch"),
    "Rug": rug,
    "Handwoven Wool Rug": rug,
}
