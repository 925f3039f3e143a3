"""Draws what things are put on: tables, parts of them, desks."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from entrypoints.demo.pictures.canvas import Canvas, Span
from entrypoints.demo.pictures.colours import ACCENTS, LINENS, Colour, darker, lighter
from entrypoints.demo.pictures.subject import Subject

_IRON: Final[Colour] = (66, 62, 60)
_TOP: Final = 1.5


def top_of(sheet: Canvas, of: Subject, x: Span, y: float, z: Span, thick: float = _TOP) -> None:
    """A table's top with a hint of grain."""
    sheet.box(x, (y - thick, y), z, of.colour)
    light = lighter(of.colour, 0.22)
    for at in range(4):
        depth = z[0] + (z[1] - z[0]) * (0.15 + 0.22 * at)
        start, end = of.between(0.03, 0.3, "grain", at), of.between(0.6, 0.97, "grain to", at)
        wide = x[1] - x[0]
        sheet.line([(x[0] + wide * start, y, depth), (x[0] + wide * end, y, depth)], darker(light, 0.06), 0.2)


def _legs(sheet: Canvas, of: Subject, x: Span, y: float, z: Span) -> None:
    """Four legs or two trestles below a top, as the collection has them."""
    kind = of.styled(("tapered", "square", "splayed", "trestle", "hairpin"), "table legs")
    size = max(1.4, min(3.2, (x[1] - x[0]) * 0.04))
    if kind == "trestle" and x[1] - x[0] > 40:
        _trestles(sheet, of, x, y, z, size)
        return
    inset = size * 0.8
    tone = _IRON if kind == "hairpin" else of.colour
    thick = {
        "tapered": (size * 0.55, size * 1.15),
        "splayed": (size * 0.5, size),
        "hairpin": (size * 0.3, size * 0.3),
    }.get(kind, (size, size))
    out = {"splayed": size * 1.3, "hairpin": size * 0.5}.get(kind, 0.0)
    for depth, dark in ((z[1] - inset, 0.28), (z[0] + inset * 0.5, 0.06)):
        for side, way in ((x[0] + inset, -1), (x[1] - inset, 1)):
            sheet.leg((side + out * way, 0, depth), (side - out * way * 0.4, y, depth), thick, darker(tone, dark))


def _trestles(sheet: Canvas, of: Subject, x: Span, y: float, z: Span, size: float) -> None:
    reach = (x[1] - x[0]) * 0.16
    middle = (z[0] + z[1]) / 2
    sheet.box(
        (x[0] + reach, x[1] - reach), (y * 0.34, y * 0.34 + size), (middle, middle + size), darker(of.colour, 0.3)
    )
    for side in (x[0] + reach, x[1] - reach):
        sheet.box((side - size, side + size), (0, size), (z[0] + 1, z[1] - 1), darker(of.colour, 0.16))
        sheet.box((side - size * 0.8, side + size * 0.8), (size * 0.8, y), (middle - 2, middle + 2), of.colour)


def table(sheet: Canvas, of: Subject, *, shelf: bool = False, leaves: bool = False, drawers: int = 0) -> None:
    """A table of four corners; with a shelf below, a seam for leaves, drawers below the top."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    x, z = (-half, half), (0.0, depth)
    sheet.shadow(x, z, strength=0.26)
    _legs(sheet, of, x, top - _TOP, z)
    if shelf and of.happens(60, "shelf"):
        inset = 2.0
        top_of(sheet, of, (x[0] + inset, x[1] - inset), top * 0.26, (1.5, depth - 1.5), 1.0)
    apron = max(2.2, min(5.0, top * 0.13)) if drawers or of.styled((True, True, False), "apron") else 0
    if apron:
        sheet.box((x[0] + 1.6, x[1] - 1.6), (top - _TOP - apron, top - _TOP), (1.0, depth - 1), darker(of.colour, 0.10))
    for at in range(drawers):
        wide = (sheet.width - 6) / drawers
        left = x[0] + 3 + wide * at
        span, rows = (left + 0.4, left + wide - 0.4), (top - _TOP - apron + 0.5, top - _TOP - 0.4)
        sheet.plate(span, rows, 1.0, lighter(of.colour, 0.05), radius=0.3, edge=darker(of.colour, 0.3))
        middle = (span[0] + span[1]) / 2
        sheet.oval((middle - 0.7, middle + 0.7), (rows[0] + apron * 0.3, rows[0] + apron * 0.3 + 1.4), 0, _IRON)
    top_of(sheet, of, x, top, z)
    if leaves:
        for place in (-0.14, 0.14):
            sheet.line([(sheet.width * place, top, 0), (sheet.width * place, top, depth)], darker(of.colour, 0.25), 0.3)
    if of.happens(45, "vase") and not drawers:
        vase(
            sheet,
            of,
            sheet.width * of.between(-0.2, 0.2, "vase"),
            top,
            depth * 0.5,
            max(4.0, min(9.0, sheet.width * 0.13)),
        )


def vase(sheet: Canvas, of: Subject, x: float, y: float, z: float, high: float) -> None:
    """A vase with a few twigs."""
    tone, green = of.one_of((*LINENS, *ACCENTS), "vase tone"), (104, 122, 92)
    for at, lean in enumerate((-0.55, -0.15, 0.3, 0.6)):
        tip = (x + high * lean, y + high * of.between(1.7, 2.3, "twig", at), z)
        sheet.line([(x, y + high * 0.8, z), (x + high * lean * 0.4, y + high * 1.4, z), tip], darker(green, 0.2), 0.25)
        for part in (0.55, 0.8, 1.0):
            leaf = (x + (tip[0] - x) * part, y + high * 0.8 + (tip[1] - y - high * 0.8) * part)
            size = high * 0.11
            sheet.oval(
                (leaf[0] - size, leaf[0] + size),
                (leaf[1] - size * 0.6, leaf[1] + size * 0.6),
                z,
                lighter(green, part * 0.2),
            )
    sheet.drum(x, (y, y + high * 0.55), z, (high * 0.22, high * 0.36), tone)
    sheet.drum(x, (y + high * 0.55, y + high), z, (high * 0.36, high * 0.16), tone)


def top_alone(sheet: Canvas, of: Subject) -> None:
    """A table's top without its base, on two low blocks."""
    half, depth = sheet.width / 2, sheet.depth
    sheet.shadow((-half, half), (0, depth), strength=0.3)
    for side in (-half * 0.6, half * 0.6):
        sheet.box((side - 1.5, side + 1.5), (0, 1.5), (2, depth - 2), (206, 196, 182))
    top_of(sheet, of, (-half, half), 1.5 + 2.2, (0, depth), 2.2)


def base_alone(sheet: Canvas, of: Subject) -> None:
    """A table's base without its top."""
    half, top, depth = sheet.width / 2, sheet.height, sheet.depth
    sheet.shadow((-half, half), (0, depth), strength=0.2)
    _legs(sheet, of, (-half, half), top, (0, depth))
    rail = 3.0
    sheet.box((-half + 1, half - 1), (top - rail, top), (depth - 2, depth - 1), darker(of.colour, 0.25))
    for side in (-half + 1, half - 2.2):
        sheet.box((side, side + 1.2), (top - rail, top), (1, depth - 1), darker(of.colour, 0.1))
    sheet.box((-half + 1, half - 1), (top - rail, top), (0.6, 1.6), of.colour)


def round_table(sheet: Canvas, of: Subject, *, x: float = 0.0, z: float | None = None, scale: float = 1.0) -> None:
    """A round top on a foot or on three legs."""
    depth = sheet.depth / 2 if z is None else z
    radius, top = sheet.width / 2 * scale, sheet.height * (0.5 + scale / 2)
    sheet.shadow((x - radius, x + radius), (depth - radius, depth + radius), round_=True, strength=0.28)
    kind = of.styled(("foot", "legs", "drum"), "round")
    if kind == "foot":
        sheet.drum(x, (0, 1.0), depth, (radius * 0.6, radius * 0.55), darker(of.colour, 0.1))
        sheet.drum(x, (1.0, top - 1), depth, (radius * 0.14, radius * 0.1), darker(of.colour, 0.1))
    elif kind == "drum":
        sheet.drum(x, (0, top - 1), depth, (radius * 0.7, radius * 0.78), darker(of.colour, 0.08))
    else:
        for off, back in ((0.0, 0.7), (-0.8, -0.3), (0.8, -0.3)):
            place = depth + radius * back
            sheet.leg(
                (x + radius * off, 0, place),
                (x + radius * off * 0.7, top - 1, place),
                (1.0, 1.5),
                darker(of.colour, 0.15),
            )
    sheet.drum(x, (top - 1.2, top), depth, (radius, radius), of.colour)


def nest(sheet: Canvas, of: Subject) -> None:
    """Two round tables, the smaller one before the larger."""
    round_table(sheet, of, x=-sheet.width * 0.08, z=sheet.depth * 0.62, scale=0.86)
    round_table(sheet, of, x=sheet.width * 0.3, z=sheet.depth * 0.1, scale=0.6)


def desk(sheet: Canvas, of: Subject) -> None:
    """A desk with drawers below its top; at times a lamp and books on it."""
    table(sheet, of, drawers=of.one_of((1, 2, 3), "drawers"))
    if of.happens(60, "books"):
        left, y = -sheet.width * 0.36, sheet.height
        for at in range(3):
            tone = of.one_of(ACCENTS, "book", at)
            sheet.box((left + at * 0.5, left + 9 - at * 0.4), (y, y + 1.3), (6, 13), tone)
            y += 1.3


Drawing = Callable[[Canvas, Subject], None]
DRAWN: Final[Mapping[str, Drawing]] = {
    "Dining Table": table,
    "Extension Dining Table": partial(table, leaves=True),
    "Dining Table Top": top_alone,
    "Dining Table Base": base_alone,
    "Coffee Table": partial(table, shelf=True),
    "End Table": partial(table, shelf=True, drawers=1),
    "Console Table": partial(table, shelf=True, drawers=2),
    "Round Accent Table": round_table,
    "Side Table": round_table,
    "Nesting Tables": nest,
    "Writing Desk": desk,
    "Desk": desk,
}
