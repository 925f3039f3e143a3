"""Everything that Lindgren & Falk sells: its wood and upholstered collections, rugs, lamps and mirrors."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.chance import number
from entrypoints.demo.lindgren_columns import Row
from entrypoints.demo.lindgren_items import DATA, Line, Look, Piece, described, offered, rows_of

_COLLECTIONS: Final = DATA["collections"]
_PIECES: Final = DATA["pieces"]


@cache
def sound_rows() -> tuple[Row, ...]:
    """All rows as the maker means them, before anything goes wrong with the sheet."""
    return (*_woods(), *_softs(), *_rugs(), *_accents())


def _line(collection: Mapping[str, Any]) -> Line:
    return Line(**{field.name: collection[field.name] for field in fields(Line)})


def _woods() -> Iterator[Row]:
    for wood in _COLLECTIONS["wood"]:
        finishes, materials = DATA["finishes"], wood["materials"]
        looks = tuple(Look(code, finish=finishes[code], materials=materials) for code in wood["finishes"])
        for family in wood["families"]:
            for piece in _PIECES[family]:
                yield from rows_of(_line(wood), Piece(**piece), looks)


def _softs() -> Iterator[Row]:
    for soft in _COLLECTIONS["soft"]:
        fabrics = [DATA["fabrics"][name] for name in soft["fabrics"]]
        looks = tuple(
            Look(code, colour=colour, materials=fabric["materials"])
            for fabric in fabrics
            for code, colour in fabric["colours"]
        )
        for piece in _PIECES["seating"]:
            yield from rows_of(_line(soft), Piece(**piece), looks)


def _accents() -> Iterator[Row]:
    for accent in _COLLECTIONS["accent"]:
        line = Line(accent["code"], accent["name"], "modern", 1.0, 1.0, "India")
        for entry in _PIECES["accent"]:
            form = "round" if entry["size"][0] == entry["size"][1] else "box"
            piece = Piece(**{name: entry[name] for name in entry if name != "materials"}, form=form, kit=False)
            looks = tuple(Look(code, finish=tone, materials=entry["materials"]) for code, tone in accent["tones"])
            yield from rows_of(line, piece, looks)


def _rugs() -> Iterator[Row]:
    for design, construction, fibre, pile in DATA["rugs"]["designs"]:
        for colour_code, colour in DATA["rugs"]["colours"]:
            handle = f"{design}-{colour.split('/', maxsplit=1)[0]}-rug".lower()
            for size, tail, words, square_feet in DATA["rugs"]["sizes"]:
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
