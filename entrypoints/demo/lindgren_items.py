"""The rows of one piece of Lindgren & Falk furniture: its finishes, fabrics and sizes, its boxes, prices and stock."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.chance import happens, number, one_of, some_of
from entrypoints.demo.data import load
from entrypoints.demo.figures import DIMENSION_STYLES, Size, article_number, dollars, inches
from entrypoints.demo.lindgren_columns import Row
from entrypoints.demo.pictures.names import LINDGREN, picture_of, room_of

DATA: Final = load("lindgren")
_COPY: Final = DATA["copy"]
_GROUPS: Final = {name: group for group, names in _COPY["subcategories"].items() for name in names}


@dataclass(frozen=True, slots=True)
class Piece:
    """One kind of furniture. `form` tells how its size is written; `parts` are item numbers without the collection.

    `per_carton` above 1: sold by the piece, packed by so many. `cartons` is how many boxes one comes in.
    """

    number: str
    name: str
    category: str
    subcategory: str
    size: Size
    weight: float
    cost: float
    form: str = "box"
    seat: float = 0.0
    cartons: int = 1
    per_carton: int = 1
    parts: tuple[str, ...] = ()
    kit: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """What all pieces of a collection share. `scale` and `price` are against the usual piece."""

    code: str
    name: str
    style: str
    scale: float
    price: float
    origin: str


@dataclass(frozen=True, slots=True)
class Look:
    """One finish or fabric: what ends the item number, and what the sheet says of it."""

    code: str
    finish: str = ""
    colour: str = ""
    materials: str = ""


def rows_of(line: Line, piece: Piece, looks: tuple[Look, ...]) -> Iterator[Row]:
    """Every variant of a piece; beds come in five sizes, sectionals facing left and right."""
    for look in looks:
        if piece.form == "bed":
            for letters, size, box, factor in DATA["pieces"]["bed_sizes"]:
                bed = _row(line, piece, look, box, factor, letters)
                yield bed | {col.SIZE: size, col.DIMENSIONS: _bed_text(box)}
        elif piece.form == "sectional":
            for letters, facing in (("L", "Left Chaise"), ("R", "Right Chaise")):
                yield _row(line, piece, look, piece.size, 1.0, letters) | {col.CONFIGURATION: facing}
        else:
            yield _row(line, piece, look, piece.size, 1.0, "")


def stock_of(item: str, warehouse: str) -> int:
    """How many pieces of an item a warehouse holds."""
    return max(0, number(70, "stock", item, warehouse) - 12)


def arrival_of(item: str, warehouse: str) -> str:
    """When more of an item arrives; blank when nothing is on its way."""
    awaited = stock_of(item, warehouse) < 8 or happens(10, "awaited", item, warehouse)
    return (
        one_of(DATA["arrivals"], "arrival", item, warehouse)
        if awaited and happens(80, "known", item, warehouse)
        else ""
    )


def offered(row: Row, cost: float) -> Row:
    """The row with its prices and stock."""
    item, style = row[col.ITEM], number(3, "money", row[col.HANDLE])
    retail = round(cost * 2.2 / 10) * 10 - 1
    east, west = stock_of(item, "EAST"), stock_of(item, "WEST")
    return row | {
        col.COST: dollars(cost, style),
        col.MAP: dollars(round(retail * 0.85) - 0.01, style) if happens(80, "map", item) else "N/A",
        col.MSRP: dollars(retail, style),
        col.EAST: "20+" if east >= 20 else str(east),
        col.WEST: "20+" if west >= 20 else str(west),
        col.ETA_EAST: arrival_of(item, "EAST"),
        col.ETA_WEST: arrival_of(item, "WEST"),
        col.LEAD: one_of(("3", "5", "5-7", "7", "10"), "lead", row[col.HANDLE]),
    }


def described(row: Row, style: str) -> Row:
    """The row with its texts, pictures and declarations."""
    handle, category = row[col.HANDLE], row[col.CATEGORY]
    item = row[col.ITEM].lower()
    return row | {
        col.BRAND: DATA["brand"],
        col.COPY: selling_text(handle, row[col.NAME], (category, row[col.SUBCATEGORY]), row[col.COLLECTION]),
        col.FEATURES: selling_points(handle, row[col.SUBCATEGORY]),
        col.UPC: article_number(number(10**9, "upc", item)) if happens(82, "coded", item) else "",
        col.IMAGE_1: picture_of(LINDGREN, handle, row.get(col.FINISH) or row.get(col.COLOR, "")),
        col.IMAGE_2: room_of(LINDGREN, handle) or "-",
        col.PROP_65: one_of(("Y", "N", "N", ""), "prop", handle),
        col.FREIGHT: DATA["freight_classes"].get(category, "100"),
        col.STATUS: "Discontinued" if happens(2, "gone", item) else "Closeout" if happens(3, "low", item) else "Active",
        col.GROUP: f"{style[:3].upper()}{number(9, 'group', handle) + 1}",
    }


def selling_text(handle: str, name: str, place: tuple[str, str], collection: str) -> str:
    """Three sentences about a product; `place` is its category and subcategory."""
    category, subcategory = place
    group = _GROUPS.get(subcategory, "storage")
    small = group in ("lighting", "decor", "rugs")
    openings = "soft_openings" if group == "soft" else "small_openings" if small else "openings"
    parts = [one_of(_COPY[kind], "copy", handle, at) for at, kind in enumerate((openings, "middles", "endings"))]
    room = "room" if small else category.lower()
    return " ".join(parts).format(name=name.split(" (", maxsplit=1)[0], room=room, collection=collection)


def selling_points(handle: str, subcategory: str) -> str:
    """Three points in one cell, parted by semicolons."""
    return "; ".join(some_of(_COPY["points"][_GROUPS.get(subcategory, "storage")], 3, "points", handle))


def _row(line: Line, piece: Piece, look: Look, size: Size, factor: float, letters: str) -> Row:
    ends = "-".join(filter(None, (look.code, letters)))
    row = {
        col.ITEM: f"LF-{line.code}{piece.number}-{ends}",
        col.HANDLE: f"{line.name} {piece.name}".split(" (")[0].lower().replace(" ", "-"),
        col.NAME: f"{line.name} {piece.name}",
        col.KIND: {"set": "Set", "part": "Part"}.get(piece.form, "Single Item"),
        col.CATEGORY: piece.category,
        col.SUBCATEGORY: piece.subcategory,
        col.COLLECTION: line.name,
        col.FINISH: look.finish,
        col.COLOR: look.colour,
        col.MATERIALS: look.materials,
        col.ORIGIN: line.origin,
        col.ASSEMBLY: "" if piece.form == "set" else "K/D" if piece.kit else "No",
        col.PARTS: ", ".join(_part(line, look, part) for part in piece.parts),
    }
    if piece.form != "set":
        scaled = (size[0] * line.scale, size[1] * line.scale, size[2] * line.scale)
        row |= _measures(line, piece, scaled, factor)
    return offered(described(row, line.style), round(piece.cost * line.price * factor))


def _part(line: Line, look: Look, part: str) -> str:
    count, _, name = part.rpartition("x ")
    base, _, letters = name.partition("-")
    code = "-".join(filter(None, (f"LF-{line.code}{base}", look.code, letters)))
    return f"{code} (x{count.strip()})" if count else code


def _measures(line: Line, piece: Piece, size: Size, factor: float) -> Row:
    weight = piece.weight * line.scale * factor
    measures = {
        col.DIMENSIONS: _dimension_text(line, piece, size),
        col.SEAT_HEIGHT: inches(piece.seat) if piece.seat and piece.form != "sofa" else "",
        col.WEIGHT: f"{weight:.1f}",
        col.CARTONS: str(piece.cartons),
    }
    return measures if piece.cartons > 1 else measures | _carton(piece, size, weight)


def _carton(piece: Piece, size: Size, weight: float) -> Row:
    """The one box; flat when the piece is assembled at home, else a little larger than the piece."""
    long, wide, high = sorted((side + 3 for side in size), reverse=True)
    if piece.kit and piece.form != "round":
        high = max(5.0, high * 0.3)
    cube = long * wide * high * piece.per_carton / 1728
    return {
        col.SHIP_LENGTH: inches(long),
        col.SHIP_WIDTH: inches(wide),
        col.SHIP_HEIGHT: inches(high * piece.per_carton),
        col.SHIP_WEIGHT: f"{weight * piece.per_carton + 9:.1f}",
        col.CUBE: f"{cube:.2f}",
    }


def _bed_text(size: Size) -> str:
    return f'{inches(size[0])}"W x {inches(size[1])}"L x {inches(size[2])}"H'


def _dimension_text(line: Line, piece: Piece, size: Size) -> str:
    width, depth, height = size
    if piece.form == "round":
        return f'{inches(width)}"DIA x {inches(height)}"H'
    if piece.form == "extension":
        return f'{inches(width)}-{inches(width + 20)}"W x {inches(depth)}"D x {inches(height)}"H'
    if piece.form == "nest":
        return (
            f'Large: {inches(width)}"DIA x {inches(height)}"H; Small: {inches(width - 8)}"DIA x {inches(height - 2)}"H'
        )
    text = one_of(DIMENSION_STYLES, "form", line.code)(size)
    if piece.form in ("sofa", "sectional"):
        return f'{text} (SEAT HT: {inches(piece.seat)}", SEAT DP: {inches(22.5 * line.scale)}")'
    return text
