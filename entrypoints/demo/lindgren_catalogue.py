"""Everything that Lindgren & Falk sells: its wood and upholstered collections, rugs, lamps and mirrors."""

from collections.abc import Iterator
from functools import cache

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.chance import number
from entrypoints.demo.lindgren_columns import Row
from entrypoints.demo.lindgren_items import Line, Look, described, offered, rows_of
from entrypoints.demo.lindgren_pieces import FAMILIES, SEATING, Piece
from entrypoints.demo.lindgren_words import (
    ACCENT_LINES,
    ACCENTS,
    FABRICS,
    FINISHES,
    RUG_COLOURS,
    RUG_SIZES,
    RUGS,
    SOFTS,
    WOODS,
)


@cache
def sound_rows() -> tuple[Row, ...]:
    """All rows as the maker means them, before anything goes wrong with the sheet."""
    return (*_woods(), *_softs(), *_rugs(), *_accents())


def _woods() -> Iterator[Row]:
    for wood in WOODS:
        line = Line(wood.code, wood.name, wood.style, wood.scale, wood.price, wood.origin)
        looks = tuple(
            Look(code, finish=FINISHES[code].name, materials=wood.materials)
            for code in wood.finishes
            if code in FINISHES
        )
        for family in wood.families:
            for piece in FAMILIES[family]:
                yield from rows_of(line, piece, looks)


def _softs() -> Iterator[Row]:
    for soft in SOFTS:
        line = Line(soft.code, soft.name, soft.style, soft.scale, soft.price, soft.origin)
        looks = tuple(
            Look(code, colour=colour, materials=FABRICS[fabric][0])
            for fabric in soft.fabrics
            for code, colour in FABRICS[fabric][1]
        )
        for piece in SEATING:
            yield from rows_of(line, piece, looks)


def _accents() -> Iterator[Row]:
    for code, name, tones in ACCENT_LINES:
        line = Line(code, name, "modern", 1.0, 1.0, "India")
        for item, kind, category, subcategory, size, weight, cost, materials in ACCENTS:
            form = "round" if size[0] == size[1] else "box"
            piece = Piece(item, kind, category, subcategory, size, weight, cost, form=form, kit=False)
            yield from rows_of(line, piece, tuple(Look(tone, finish=said, materials=materials) for tone, said in tones))


def _rugs() -> Iterator[Row]:
    for design, construction, fibre, pile in RUGS:
        for colour_code, colour in RUG_COLOURS:
            handle = f"{design}-{colour.split('/', maxsplit=1)[0]}-rug".lower()
            for size, tail, words, square_feet in RUG_SIZES:
                row = {
                    col.ITEM: f"LF-R{design[:4].upper()}-{colour_code}-{tail}",
                    col.HANDLE: handle,
                    col.NAME: f"{design} {construction} Rug, {colour.split('/', maxsplit=1)[0]}",
                    col.KIND: "Single Item",
                    col.CATEGORY: "Rugs",
                    col.SUBCATEGORY: "Area Rugs",
                    col.COLLECTION: design,
                    col.COLOR: colour,
                    col.MATERIALS: fibre,
                    col.SIZE: words,
                    col.RUG_SIZE: size,
                    col.CONSTRUCTION: construction,
                    col.PILE: pile,
                    col.WEIGHT: f"{square_feet * 0.55:.1f}",
                    col.ASSEMBLY: "No",
                    col.ORIGIN: "India",
                }
                cost = round(square_feet * (3.2 + number(60, "rug", design) / 10) + 9)
                yield offered(described(row, "rug"), cost)
