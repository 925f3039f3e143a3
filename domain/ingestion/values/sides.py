"""Which side of a piece a letter, a word or a place in the string means."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

LETTERS: Final[dict[str, str]] = {
    "w": "width",
    "d": "depth",
    "h": "height",
    "l": "length",
    "b": "width",
    "t": "depth",
    "p": "depth",
    "dia": "diameter",
    "diam": "diameter",
}
WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("width", "wide", "widths", "breite", "breit", "ancho", "anchura", "largeur", "wd", "wth"), "width"
    ),
    **dict.fromkeys(("depth", "deep", "tiefe", "tief", "fondo", "profundidad", "profondeur", "diepte", "dp"), "depth"),
    **dict.fromkeys(("height", "high", "tall", "ht", "hgt", "höhe", "hohe", "hoehe", "hoch"), "height"),
    **dict.fromkeys(("alto", "altura", "hauteur", "hoogte"), "height"),
    **dict.fromkeys(("length", "long", "länge", "lange", "laenge", "largo", "longitud", "longueur"), "length"),
    **dict.fromkeys(("lengte", "len", "lgth"), "length"),
    **dict.fromkeys(("diameter", "durchmesser", "diámetro", "diametro", "diamètre"), "diameter"),
}
EXTRA: Final[dict[str, str]] = {
    **dict.fromkeys(("seat height", "seat ht", "seat hgt", "seat h", "sitzhöhe", "sitzhohe"), "seat_height"),
    **dict.fromkeys(("altura del asiento", "altura asiento", "seatheight", "sh", "height seat"), "seat_height"),
    **dict.fromkeys(("seat depth", "seat dp", "seat dpt", "seat d", "sitztiefe", "seatdepth"), "seat_depth"),
    **dict.fromkeys(("profundidad del asiento", "profundidad asiento", "depth seat"), "seat_depth"),
    **dict.fromkeys(("arm height", "arm ht", "armrest height", "armrest ht", "arm rest height"), "arm_height"),
    **dict.fromkeys(("armlehnenhöhe", "altura del brazo", "altura brazo", "armheight"), "arm_height"),
    **dict.fromkeys(("clearance", "free height under furniture", "floor clearance", "leg clearance"), "clearance"),
    **dict.fromkeys(("ground clearance", "under bed clearance", "underbed clearance", "bodenfreiheit"), "clearance"),
    **dict.fromkeys(("clearance from floor", "clearance height"), "clearance"),
}
_QUALIFIED: Final[dict[str, str]] = {
    f"{qualifier} {word}": side
    for qualifier in ("overall", "product", "total", "min", "minimum", "assembled", "max", "maximum", "item", "gesamt")
    for word, side in WORDS.items()
}
_LABELS: Final[dict[str, str]] = {
    **WORDS,
    **EXTRA,
    **_QUALIFIED,
    **{letter: side for letter, side in LETTERS.items() if letter != "p"},
    "height including back cushions": "height",
    "height incl back cushions": "height",
    "length including chaise": "length",
}
_GLUED: Final = (
    ("overallwidth", "width"),
    ("overalldepth", "depth"),
    ("overallheight", "height"),
    ("overalllength", "length"),
    ("overalldiameter", "diameter"),
    ("seatheightfloor", "seat_height"),
    ("seatdepthfront", "seat_depth"),
    ("armheightfloor", "arm_height"),
    ("clearancefromfloor", "clearance"),
)
BED: Final = "bed"
RUG: Final = "rug"
PILLOW: Final = "pillow"
_LONGEST: Final = 500
_NO_BED: Final = re.compile(
    r"sofa[ -]?bed|day[ -]?bed|bedroom|bed ?side|bed bench|\bset\b|headboard|footboard|\brails?\b|night ?stand|dresser"
    r"|\bbench\b|bedding|bed ?spread|\bparts?\b|topper|protector|cover|pillow|sheets?\b|\bpet\b|\bdog\b|\bcat\b",
    re.I,
)
_BED: Final = re.compile(r"\bbeds?\b|\bmattress(?:es)?\b|\bbed ?frames?\b|\bbetten?\b|\bmatratzen?\b|\bcamas?\b", re.I)
_RUG: Final = re.compile(r"\brugs?\b|\bteppich|\balfombra|\bcarpets?\b|\brunner rug\b", re.I)
_PILLOW: Final = re.compile(r"\bpillows?\b|\bcushions?\b|\bkissen\b|\bcoj[ií]n", re.I)


def words_of(label: str) -> str:
    """`label` as lower-case words with single blanks: what labels are compared by."""
    return re.sub(r"[\W\d_]+", " ", unicodedata.normalize("NFC", label.lower())).strip()


@lru_cache(maxsize=8192)
def side_of(label: str) -> str | None:
    """The side that a label names (`Height`, `SEAT HT`), `length` included; None for parts and other things."""
    words = words_of(label)
    if words in _LABELS:
        return _LABELS[words]
    glued = words.replace(" ", "")
    return next((side for prefix, side in _GLUED if glued.startswith(prefix)), None)


@lru_cache(maxsize=16384)
def kind_of(category: str, title: str) -> str:
    """`bed`, `rug`, `pillow` or blank: kinds whose sides are named otherwise. The category decides, then the title."""
    category, title = category[:_LONGEST], title[:_LONGEST]
    leaf = re.split(r"\s*[>|/]\s*", category)[-1] if category else ""
    for text in (leaf, category, title):
        if _RUG.search(text):
            return RUG
        if _BED.search(text) and not _NO_BED.search(text):
            return BED
        if _PILLOW.search(text) and text is not title:
            return PILLOW
        if text is leaf and leaf:
            # A leaf that names another kind ("Headboards" below "Beds") has the last word.
            category = category if _NO_BED.search(leaf) is None else leaf
    return ""
