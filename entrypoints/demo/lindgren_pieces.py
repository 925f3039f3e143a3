"""The pieces that Lindgren & Falk builds in its collections: what they are called, their size, weight and cost."""

from dataclasses import dataclass, field
from typing import Final

from entrypoints.demo.figures import Size


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
    parts: tuple[str, ...] = field(default=())
    kit: bool = True


_BED, _DIN, _LIV, _OFF = "Bedroom", "Dining Room", "Living Room", "Home Office"

BEDROOM: Final = (
    Piece("210", "Panel Bed", _BED, "Beds", (64.5, 86, 54), 148, 388, form="bed", cartons=3),
    Piece("230", "Nightstand", _BED, "Nightstands", (26, 17.5, 27.25), 58, 142, kit=False),
    Piece("240", "Seven-Drawer Dresser", _BED, "Dressers", (64, 18.5, 37.75), 176, 418, kit=False),
    Piece("245", "Dresser Mirror", _BED, "Mirrors", (42, 1.5, 36), 34, 118),
    Piece("250", "Five-Drawer Chest", _BED, "Chests", (38.5, 18.5, 52), 148, 356, kit=False),
    Piece("260", "Upholstered Bedroom Bench", _BED, "Benches", (50.25, 18, 19), 38, 134, seat=19),
    Piece("290-4PC", "4-Piece Queen Bedroom Set", _BED, "Bedroom Sets", (0, 0, 0), 0, 1040, form="set",
          parts=("210-Q", "230", "240", "245")),
)  # fmt: skip

DINING: Final = (
    Piece("300", "Dining Table", _DIN, "Dining Tables", (76, 40, 30), 152, 398, cartons=2, parts=("300T", "300B")),
    Piece("300T", "Dining Table Top", _DIN, "Table Parts", (76, 40, 1.75), 98, 252, form="part"),
    Piece("300B", "Dining Table Base", _DIN, "Table Parts", (60, 30, 28.25), 54, 146, form="part"),
    Piece("305", "Extension Dining Table", _DIN, "Dining Tables", (72, 40, 30.25), 186, 472, form="extension", cartons=2),
    Piece("320", "Side Chair (2PC/CTN)", _DIN, "Dining Chairs", (19.25, 22.5, 38), 17, 88, form="seat", seat=18.5, per_carton=2),
    Piece("325", "Arm Chair", _DIN, "Dining Chairs", (23.5, 23, 38.5), 23, 122, form="seat", seat=18.5),
    Piece("330", "Dining Bench", _DIN, "Dining Benches", (54, 15.5, 18.25), 34, 128, form="seat", seat=18.25),
    Piece("340", "Counter Stool (2PC/CTN)", _DIN, "Stools", (17.75, 20.5, 37.5), 19, 94, form="seat", seat=24.5, per_carton=2),
    Piece("345", "Bar Stool (2PC/CTN)", _DIN, "Stools", (17.75, 20.5, 43.5), 21, 98, form="seat", seat=30.25, per_carton=2),
    Piece("360", "Sideboard", _DIN, "Sideboards", (68.5, 18.125, 34), 164, 436, kit=False),
    Piece("370", "Display Cabinet", _DIN, "Cabinets", (44.25, 16.5, 78), 212, 548, cartons=2),
    Piece("390-5PC", "5-Piece Dining Set", _DIN, "Dining Sets", (0, 0, 0), 0, 742, form="set", parts=("300", "4 x 320")),
)  # fmt: skip

LIVING: Final = (
    Piece("400", "Coffee Table", _LIV, "Coffee Tables", (48, 26, 18), 64, 168),
    Piece("410", "End Table", _LIV, "End Tables", (22, 24, 24.5), 36, 108),
    Piece("420", "Console Table", _LIV, "Console Tables", (54.5, 15.875, 31), 58, 176),
    Piece("425", "Round Accent Table", _LIV, "End Tables", (20, 20, 24), 22, 84, form="round"),
    Piece("430", "TV Console", _LIV, "TV Stands", (70.5, 17.75, 26), 128, 324),
    Piece("440", "Open Bookcase", _LIV, "Bookcases", (36, 14, 72), 94, 246),
    Piece("450", "Two-Door Accent Cabinet", _LIV, "Cabinets", (36.5, 15.5, 33.125), 82, 232, kit=False),
    Piece("460", "Nesting Tables", _LIV, "Coffee Tables", (30, 30, 17), 44, 156, form="nest"),
)

OFFICE: Final = (
    Piece("500", "Writing Desk", _OFF, "Desks", (54, 24, 30), 72, 212),
    Piece("510", "Lateral File", _OFF, "File Cabinets", (32, 20, 30), 96, 238, kit=False),
    Piece("520", "Desk Hutch", _OFF, "Desks", (50, 12, 38.5), 58, 164),
    Piece("530", "Credenza", _OFF, "Desks", (66, 20, 30), 142, 348, cartons=2),
)

SEATING: Final = (
    Piece("700", "Sofa", _LIV, "Sofas", (86.25, 38, 35), 142, 468, form="sofa", seat=19, kit=False),
    Piece("710", "Loveseat", _LIV, "Loveseats", (63.5, 38, 35), 112, 384, form="sofa", seat=19, kit=False),
    Piece("720", "Lounge Chair", _LIV, "Accent Chairs", (34, 36.5, 34), 62, 228, form="sofa", seat=18.5, kit=False),
    Piece("725", "Swivel Chair", _LIV, "Accent Chairs", (31.5, 33, 30.5), 58, 246, form="sofa", seat=17.75, kit=False),
    Piece("730", "Ottoman", _LIV, "Ottomans", (30, 24, 18.25), 28, 112, kit=False),
    Piece("740", "Chaise Sectional", _LIV, "Sectionals", (112, 66, 35), 236, 812, form="sectional", seat=19, cartons=2, kit=False),
    Piece("750", "Power Recliner", _LIV, "Recliners", (38, 40.5, 41), 98, 392, form="sofa", seat=20, kit=False),
)  # fmt: skip

FAMILIES: Final = {"b": BEDROOM, "d": DINING, "c": LIVING, "u": OFFICE}

BED_SIZES: Final = (
    ("T", "Twin", (43.5, 81, 48), 0.72),
    ("F", "Full", (58.5, 81, 50), 0.86),
    ("Q", "Queen", (64.5, 86, 54), 1.0),
    ("EK", "E.King", (80.5, 86, 54), 1.22),
    ("CK", "Cal.King", (76.5, 90, 54), 1.22),
)
"""Letters, name, size and what it costs against a queen."""
