"""Which side of a piece a letter, a word or a place in the string means."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.values.parsed import Fault, quoted
from domain.kernel.problems import ProblemKind

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
_ENDWISE: Final = (BED, RUG)
"""Kinds whose length runs away from the beholder."""
_BOX: Final = ("width", "depth", "height")


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
    leaf = re.split(r"[>|/]\s*+", category)[-1].rstrip() if category else ""
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


@dataclass(frozen=True, slots=True)
class Sided:
    """A length and the axis written beside it, None when there is none."""

    length: Length
    side: str | None


@dataclass(frozen=True, slots=True)
class Sides:
    """The sides found and what was doubtful."""

    dimensions: Dimensions
    faults: tuple[Fault, ...] = ()


def _length_side(sides: Sequence[str | None], kind: str) -> str:
    """What L means: the long side is the width unless a width and no depth say that it runs front to back."""
    if "width" in sides and "depth" in sides:
        return "height" if "height" not in sides else "width"
    if "depth" in sides:
        return "width"
    return "depth" if kind in _ENDWISE and "width" in sides else "width"


def _lettered(items: Sequence[Sided], kind: str) -> tuple[dict[str, Length], list[Length]]:
    """Sides whose letter settles them, and the lengths whose letter came twice."""
    sides = [item.side for item in items]
    placed: dict[str, Length] = {}
    doubled: list[Length] = []
    long_side = _length_side(sides, kind)
    # L beside W and no D takes the width away from W; on beds and rugs L runs front to back and W stays.
    moved = "length" in sides and "width" in sides and "depth" not in sides and long_side == "width"
    for item in items:
        side = item.side
        if side is None:
            continue
        target = long_side if side == "length" else "depth" if side == "width" and moved else side
        if target in placed:
            doubled.append(item.length)
        else:
            placed[target] = item.length
    return placed, doubled


def _free(placed: dict[str, Length]) -> list[str]:
    taken = {"width", "depth"} if "diameter" in placed else set()
    return [side for side in _BOX if side not in placed and side not in taken]


def _unlettered(count: int, kind: str) -> tuple[str, ...]:
    if count == 2:
        return ("width", "height") if kind == PILLOW else ("width", "depth")
    return _BOX if count == 3 else ()


def _by_place(items: Sequence[Sided], text: str, kind: str, order: str, trade_order: bool) -> Sides:
    names = tuple(
        {"w": "width", "b": "width", "d": "depth", "t": "depth", "h": "height", "l": "length"}[c] for c in order
    )
    if len(names) == len(items):
        return place([Sided(item.length, name) for item, name in zip(items, names, strict=True)], text, kind)
    names = _unlettered(len(items), kind)
    if not names:
        return Sides({}, (Fault(ProblemKind.UNREADABLE, f"{quoted(text)} does not say which side is meant."),))
    doubt = (Fault(ProblemKind.CONFLICT, f"{quoted(text)} names no sides; read as {' x '.join(names)}."),)
    sides: Dimensions = {}
    for name, item in zip(names, items, strict=True):
        sides[name] = item.length  # type: ignore[literal-required]
    return Sides(sides, () if trade_order or len(items) == 2 else doubt)


def place(items: Sequence[Sided], text: str, kind: str = "", order: str = "", trade_order: bool = True) -> Sides:
    """The sides of a sequence of lengths.

    `order` is a stated order of letters (`BHT`), `kind` that of `kind_of`, `trade_order` that lengths without letters
    follow the trade's W x D x H in the usual way of writing. A letter that comes twice, or a length left without a
    side, is a conflict.
    """
    if all(item.side is None for item in items):
        return _by_place(items, text, kind, order, trade_order)
    placed, doubled = _lettered(items, kind)
    left = doubled + [item.length for item in items if item.side is None]
    free = _free(placed)
    faults: list[Fault] = []
    if doubled:
        faults.append(Fault(ProblemKind.CONFLICT, f"{quoted(text)} names one side twice."))
    if left and len(free) == 1 and len(left) == 1:
        placed[free[0]] = left[0]
    elif left and not doubled:
        faults.append(Fault(ProblemKind.CONFLICT, f"{quoted(text)} has a length without a side."))
    sides: Dimensions = placed  # type: ignore[assignment]
    return Sides(sides, tuple(faults))
