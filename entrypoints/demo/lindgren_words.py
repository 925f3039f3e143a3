"""What the invented maker Lindgren & Falk offers its furniture in: collections, finishes, fabrics, rugs, lamps."""

from dataclasses import dataclass
from typing import Final

BRAND: Final = "Lindgren & Falk"


@dataclass(frozen=True, slots=True)
class Finish:
    """A wood's tone; `code` ends the item numbers."""

    code: str
    name: str


@dataclass(frozen=True, slots=True)
class WoodCollection:
    """Case goods of one look. `families` are those of `lindgren_pieces`; `scale` makes everything a little larger."""

    code: str
    name: str
    families: str
    materials: str
    finishes: tuple[str, ...]
    style: str
    scale: float
    price: float
    origin: str


FINISHES: Final = {
    finish.code: finish
    for finish in (
        Finish("UO", "Umber Oak"),
        Finish("SN", "Sand"),
        Finish("HN", "Honey Ash"),
        Finish("CH", "Charred Pine"),
        Finish("WG", "Weathered Gray"),
        Finish("CV", "Cloud White"),
        Finish("WN", "Natural Walnut"),
        Finish("EB", "Ebony"),
        Finish("CL", "CafÃ© au Lait"),
        Finish("FG", "Fjord Green/Natural"),
    )
}
"""One of them went through two encodings on its way, as such sheets do."""

WOODS: Final = (
    WoodCollection(
        "AP", "Alder Point", "bcu", "Solid Alder, Alder Veneer, Others", ("UO", "SN"), "coastal", 1.0, 1.0, "Vietnam"
    ),
    WoodCollection(
        "BH", "Brennholm", "bdc", "Solid Oak, Oak Veneer", ("UO", "WG", "EB"), "rustic", 1.02, 1.15, "Poland"
    ),
    WoodCollection(
        "CM",
        "Castlemoor",
        "bc",
        "Rubberwood, Mahogany Veneer, Others",
        ("EB", "WN"),
        "traditional",
        1.04,
        1.3,
        "Malaysia",
    ),
    WoodCollection("DN", "Dunmarsh", "dc", "Reclaimed Pine, Iron", ("CH", "WG"), "industrial", 1.0, 0.95, "Indonesia"),
    WoodCollection(
        "EL", "Elsbeck", "bcu", "Solid Ash, Ash Veneer", ("HN", "CV", "SN"), "scandinavian", 0.97, 1.05, "Poland"
    ),
    WoodCollection("FG", "Farrowgate", "dc", "Solid Acacia", ("WN", "UO"), "farmhouse", 1.01, 1.0, "Vietnam"),
    WoodCollection(
        "GR", "Grennavik", "bdc", "Solid Birch, Birch Plywood", ("HN", "CV"), "scandinavian", 0.98, 0.9, "Estonia"
    ),
    WoodCollection(
        "HL",
        "Hollinsby",
        "cu",
        "Poplar Solids, Cherry Veneer, Others",
        ("WN", "EB"),
        "traditional",
        1.03,
        1.2,
        "Vietnam",
    ),
    WoodCollection("IV", "Ivarsund", "bdc", "Solid Pine, MDF", ("CV", "SN", "FG"), "cottage", 0.99, 0.8, "Malaysia"),
    WoodCollection(
        "JR", "Juniper Row", "du", "Solid Mango Wood, Brass", ("HN", "WN"), "mid-century", 1.0, 1.1, "India"
    ),
    WoodCollection("KV", "Kestervale", "bc", "Solid Walnut, Walnut Veneer", ("WN",), "mid-century", 1.02, 1.45, "USA"),
    WoodCollection("LH", "Larkhallow", "dcu", "Oak Solids, Steel", ("UO", "CH"), "industrial", 1.0, 1.05, "Indonesia"),
    WoodCollection(
        "MS", "Marsund", "bdc", "Solid Beech, Beech Veneer, Others", ("SN", "CL"), "modern", 1.0, 1.0, "Romania"
    ),
    WoodCollection("NW", "Norwick Bay", "cu", "Paulownia, Fir Veneer", ("WG", "CV"), "coastal", 0.98, 0.75, "Vietnam"),
    WoodCollection(
        "OB", "Ostermoor", "dc", "Solid Teak, Stone Composite", ("WN", "CH"), "modern", 1.05, 1.6, "Indonesia"
    ),
    WoodCollection(
        "PW", "Pellwood", "bdc", "Rubberwood, Oak Veneer", ("UO", "HN", "CV"), "transitional", 1.0, 0.85, "Malaysia"
    ),
)


@dataclass(frozen=True, slots=True)
class SoftCollection:
    """Upholstery of one look; `fabrics` are names of FABRICS."""

    code: str
    name: str
    fabrics: tuple[str, ...]
    style: str
    scale: float
    price: float
    origin: str


FABRICS: Final = {
    "boucle": ("100% Polyester Boucle", (("OAT", "Oat"), ("MOS", "Moss"), ("CLY", "Clay"))),
    "linen": ("Linen-like Polyester, Kiln-Dried Hardwood", (("FLX", "Flax"), ("DSK", "Dusk Blue"), ("PBL", "Pebble"))),
    "velvet": ("100% Polyester Velvet, Kiln-Dried Hardwood", (("PIN", "Pine"), ("RST", "Rust"), ("INK", "Ink"))),
    "leather": ("Top Grain Leather, Leather Match", (("TOB", "Tobacco"), ("COG", "Cognac"))),
    "chenille": ("Chenille, Sinuous Spring, Others", (("SLV", "Silver/Warm Gray"), ("SND", "Sand"))),
}

SOFTS: Final = (
    SoftCollection("AD", "Adderley", ("linen", "velvet"), "transitional", 1.0, 1.0, "Mexico"),
    SoftCollection("BK", "Birkendal", ("boucle",), "scandinavian", 0.97, 1.1, "Poland"),
    SoftCollection("CR", "Corrowby", ("leather",), "traditional", 1.03, 1.9, "USA"),
    SoftCollection("DV", "Duneview", ("linen", "chenille"), "coastal", 1.04, 0.95, "Vietnam"),
    SoftCollection("EM", "Emberly", ("velvet",), "glam", 0.98, 1.2, "Mexico"),
    SoftCollection("FN", "Fennick Green", ("chenille", "boucle"), "modern", 1.02, 1.05, "USA"),
    SoftCollection("GL", "Gullholm", ("boucle", "linen"), "modern", 1.0, 1.25, "Vietnam"),
    SoftCollection("HV", "Havnby", ("leather", "velvet"), "mid-century", 0.99, 1.5, "Mexico"),
    SoftCollection("IL", "Islay Moor", ("chenille",), "cottage", 1.0, 0.85, "China"),
    SoftCollection("KR", "Kirrin", ("linen",), "farmhouse", 1.01, 0.9, "China"),
)

RUGS: Final = (
    ("Aldermist", "Hand Tufted", "100% Wool", "0.5"),
    ("Bryndle", "Power Loomed", "Polypropylene, Polyester", "0.38"),
    ("Coverack", "Flatweave", "80% Wool, 20% Cotton", "0.25"),
    ("Dovrefell", "Hand Knotted", "100% New Zealand Wool", "0.44"),
    ("Eskdale", "Power Loomed", "100% Polypropylene", "0.25"),
    ("Fenlight", "Machine Made", "Recycled Polyester", "1/4"),
    ("Garrach", "Hand Woven", "Jute, Cotton", "0.5"),
    ("Holmsea", "Braided", "100% Jute", "3/8"),
    ("Inverleaf", "Hand Hooked", "100% Wool", "1/2"),
    ("Jorvale", "Hand Loomed", "Viscose, Wool", "0.38"),
    ("Kelmarsh", "Printed", "100% Polyester", "0.13"),
    ("Lochmere", "Hand Tufted", "Wool, Viscose", "5/8"),
)
"""Design, construction, fibre, pile height in inches."""

RUG_COLOURS: Final = (("IVO", "Ivory"), ("SLT", "Slate/Multi"), ("TER", "Terracotta"))
RUG_SIZES: Final = (
    ("2' X 3'", "0203", "2x3", 6.0),
    ("2'6\" X 8'", "2680", "Runner", 20.0),
    ("5'3\" X 7'6\"", "5376", "5x8", 39.4),
    ("6'7\" RND", "67RD", "7' Round", 43.3),
    ("7'10\" X 10'", "7A10", "8x10", 78.3),
    ("9' X 12'", "0912", "9x12", 108.0),
)
"""Size as the sheet has it, end of the item number, size in words, square feet."""

ACCENTS: Final = (
    ("610", "Table Lamp", "Lighting", "Table Lamps", (15, 15, 27.5), 7.5, 58.0, "Ceramic, Linen Shade"),
    ("615", "Floor Lamp", "Lighting", "Floor Lamps", (18, 18, 62.25), 14.0, 96.0, "Steel, Linen Shade"),
    ("620", "Pendant", "Lighting", "Pendants", (20, 20, 12.5), 6.5, 74.0, "Woven Rattan, Steel"),
    ("650", "Round Wall Mirror", "Decor", "Mirrors", (36, 1.5, 36), 21.0, 112.0, "Mirrored Glass, Iron"),
    ("655", "Floor Mirror", "Decor", "Mirrors", (32, 1.5, 72), 44.0, 178.0, "Mirrored Glass, Ash"),
    ("670", "Storage Basket Set", "Decor", "Storage", (18, 14, 16), 6.0, 39.0, "Seagrass"),
)
"""Number, name, category, subcategory, size, pounds, cost, materials."""

ACCENT_LINES: Final = (
    ("TV", "Tavish", (("BRS", "Aged Brass"), ("BLK", "Matte Black"))),
    ("UL", "Ullin", (("NKL", "Brushed Nickel"), ("BRZ", "Bronze"))),
    ("VB", "Vellby", (("WHT", "Chalk White"), ("NAT", "Natural"))),
    ("WR", "Wrenfield", (("BLK", "Matte Black"), ("GLD", "Soft Gold"))),
)
