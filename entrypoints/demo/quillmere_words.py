"""What the invented shop Quillmere Home sells: kinds of furniture, the names it gives them, and their options."""

from dataclasses import dataclass
from typing import Final

from entrypoints.demo.figures import Size

VENDOR: Final = "Quillmere Home"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of product. `sizes` are names with what they cost against the first; colours come from PALETTES."""

    letters: str
    title: str
    product_type: str
    size: Size
    grams: int
    price: int
    palette: str
    sizes: tuple[tuple[str, float], ...] = ()
    tags: tuple[str, ...] = ()


PALETTES: Final = {
    "fabric": ("Oat", "Slate Blue", "Fern", "Clay", "Charcoal", "Ecru"),
    "leather": ("Saddle", "Chestnut", "Ink Black"),
    "wood": ("Natural Oak", "Smoked Oak", "Walnut", "Black Ash"),
    "metal": ("Matte Black", "Brass", "White"),
    "outdoor": ("Teak/Sand", "Graphite"),
    "rug": ("Ivory", "Sage", "Rust", "Navy/Cream"),
    "glass": (),
}
_BEDS: Final = (("Full", 1.0), ("Queen", 1.14), ("King", 1.35))
_TABLES: Final = (('60"', 1.0), ('72"', 1.2), ('84"', 1.4))
_RUGS: Final = (("5' x 8'", 1.0), ("8' x 10'", 1.9), ("9' x 12'", 2.6))
_PACKS: Final = (("Single", 1.0), ("Set of 2", 1.9))

KINDS: Final = (
    Kind("SO", "Three-Seat Sofa", "Sofas", (84.5, 37, 33), 58_900, 1390, "fabric", tags=("living room", "seating")),
    Kind("LS", "Loveseat", "Sofas", (61, 37, 33), 46_200, 1090, "fabric", tags=("living room", "small space")),
    Kind("SC", "Sectional with Chaise", "Sectionals", (106, 64, 33), 96_500, 2290, "fabric", tags=("living room",)),
    Kind("AC", "Armchair", "Chairs", (31.5, 33, 31), 21_300, 640, "fabric", tags=("living room", "seating")),
    Kind(
        "LC", "Leather Lounge Chair", "Chairs", (29, 32.5, 30), 19_800, 890, "leather", tags=("living room", "leather")
    ),
    Kind("OT", "Ottoman", "Ottomans", (26, 20, 17.5), 9_100, 240, "fabric", tags=("living room",)),
    Kind("BD", "Platform Bed", "Beds", (63.5, 84, 42), 61_000, 990, "wood", _BEDS, ("bedroom",)),
    Kind("UB", "Upholstered Bed", "Beds", (66, 88, 48), 54_400, 1150, "fabric", _BEDS, ("bedroom", "upholstered")),
    Kind("NS", "Nightstand", "Nightstands", (20, 16, 24), 14_500, 290, "wood", tags=("bedroom", "storage")),
    Kind("DR", "Six-Drawer Dresser", "Dressers", (58, 18.5, 33), 66_700, 1040, "wood", tags=("bedroom", "storage")),
    Kind("DT", "Dining Table", "Dining Tables", (60, 36, 29.5), 48_600, 920, "wood", _TABLES, ("dining room",)),
    Kind("DC", "Dining Chair", "Dining Chairs", (19, 21.5, 32), 6_400, 210, "wood", _PACKS, ("dining room", "seating")),
    Kind("BS", "Counter Stool", "Stools", (17, 19, 36), 6_900, 230, "metal", _PACKS, ("kitchen", "seating")),
    Kind("CT", "Coffee Table", "Coffee Tables", (46, 24, 16), 24_800, 480, "wood", tags=("living room", "tables")),
    Kind("ST", "Side Table", "Side Tables", (18, 18, 22), 8_200, 190, "metal", tags=("living room", "tables")),
    Kind("BK", "Tall Bookshelf", "Bookcases", (34, 13, 74), 38_100, 590, "wood", tags=("living room", "storage")),
    Kind("MC", "Media Console", "Media Consoles", (66, 16.5, 22), 46_900, 840, "wood", tags=("living room", "storage")),
    Kind("DK", "Desk", "Desks", (50, 24, 30), 27_600, 520, "wood", tags=("office",)),
    Kind("FL", "Floor Lamp", "Floor Lamps", (16, 16, 60), 6_200, 240, "metal", tags=("lighting",)),
    Kind("PL", "Pendant Light", "Pendants", (18, 18, 11), 3_100, 190, "metal", tags=("lighting",)),
    Kind("RG", "Handwoven Wool Rug", "Rugs", (60, 96, 0.25), 9_800, 340, "rug", _RUGS, ("rugs",)),
    Kind("MR", "Arched Wall Mirror", "Mirrors", (28, 1.25, 42), 11_400, 260, "glass", tags=("decor",)),
    Kind(
        "OC", "Outdoor Lounge Chair", "Outdoor Chairs", (30, 33, 29), 16_700, 560, "outdoor", tags=("outdoor", "teak")
    ),
)

NAMES: Final = (
    "Tamsin", "Orrin", "Bramble", "Isolde", "Merrow", "Calder", "Winslet", "Fennimore", "Odette", "Thaxter", "Lunette",
    "Garrow", "Sorrel", "Percival", "Ansley", "Dorrit", "Hesper", "Ivo", "Juno", "Kittering", "Linnet", "Marlais",
    "Nesbit", "Ottoline", "Pruett", "Quince", "Roswitha", "Selwyn", "Tolliver", "Umbra", "Verity", "Wexcombe", "Yarrow",
)  # fmt: skip
PER_KIND: Final = 13
RESOLD: Final = 30
"""How many of Lindgren & Falk's products the shop sells as well: the same things under other titles."""

SENTENCES: Final = (
    "Made to order in our partner workshop and finished by hand.",
    "A shape we return to again and again, now in new tones.",
    "Small enough for an apartment, sturdy enough for a family.",
    "Simple lines, thoughtful proportions and materials that age well.",
    "The piece our own designers take home most often.",
)
