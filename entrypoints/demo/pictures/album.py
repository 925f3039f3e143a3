"""Which pictures there are, and what each of them shows: those that the feeds name, and no others."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.figures import Size
from entrypoints.demo.lindgren_catalogue import sound_rows
from entrypoints.demo.lindgren_columns import Row
from entrypoints.demo.lindgren_items import DATA
from entrypoints.demo.pictures.colours import colour_of
from entrypoints.demo.pictures.names import HOME
from entrypoints.demo.pictures.subject import Subject
from entrypoints.demo.quillmere_products import KINDS, PER_KIND, Product, own_products

_RUG: Final = "Rug"
_FAMILIES: Final = ("bedroom", "dining", "living", "office", "seating", "accent")
_AS_SHOWN: Final[Mapping[str, Size]] = {
    _RUG: (96, 60, 0.5),
    "Handwoven Wool Rug": (96, 60, 0.5),
    "4-Piece Queen Bedroom Set": (118, 86, 54),
    "5-Piece Dining Set": (114, 64, 38),
    "Dining Table Top": (76, 40, 3.7),
}
"""Sizes of what is drawn otherwise than it is measured: rugs lie across, sets stand side by side."""


@cache
def album() -> Mapping[str, Subject]:
    """What each picture shows, by its path (`/quillmere/pictures/tamsin-desk.jpg`)."""
    shown: dict[str, Subject] = {}
    for address, subject in (*_of_lindgren(), *_of_quillmere()):
        shown.setdefault(address.removeprefix(HOME), subject)
    return shown


def _of_lindgren() -> Iterator[tuple[str, Subject]]:
    sizes = {entry["name"].split(" (")[0]: entry["size"] for family in _FAMILIES for entry in DATA["pieces"][family]}
    for row in sound_rows():
        piece = _piece(row)
        size = _AS_SHOWN.get(piece) or sizes[piece]
        style = row[col.COLLECTION]
        colour = colour_of(row.get(col.FINISH) or row.get(col.COLOR, ""))
        yield row[col.IMAGE_1], Subject(piece, size, colour, row[col.HANDLE], style)
        if row[col.IMAGE_2].startswith(HOME):
            yield row[col.IMAGE_2], Subject(piece, size, colour, row[col.HANDLE], style, room=True)


def _piece(row: Row) -> str:
    """The name without its collection and without how many are in a carton."""
    return (
        _RUG if row[col.CATEGORY] == "Rugs" else row[col.NAME].removeprefix(row[col.COLLECTION]).split(" (")[0].strip()
    )


def _of_quillmere() -> Iterator[tuple[str, Subject]]:
    for serial, product in enumerate(own_products()):
        kind = KINDS[serial // PER_KIND]
        size = _AS_SHOWN.get(kind.title, kind.size)
        colour = colour_of(_first_colour(product))
        for at, image in enumerate(product["images"]):
            yield image["src"], Subject(kind.title, size, colour, product["handle"], product["handle"], room=at > 0)


def _first_colour(product: Product) -> str:
    first = product["options"][0]
    return str(first["values"][0]) if first["name"] == "Color" else ""
