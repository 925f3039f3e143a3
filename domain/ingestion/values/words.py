"""Words with a fixed meaning: yes and no, states, freight classes; and lists: materials, tags, levels, codes of parts."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Component
from domain.ingestion.values.parsed import NOTHING, Parsed, overlong, refused, unreadable
from domain.ingestion.values.stock import word_meaning
from domain.ingestion.values.text import stated, unescaped
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 5000
_YES: Final = frozenset(
    "yes y true 1 x ja j si sí oui required ✓ ✔ compliant certified wahr verdadero included yep t".split()
)
_NO: Final = frozenset("no n false 0 nein non not f falsch falso never".split()) | {"not required", "none required"}
FREIGHT_CLASSES: Final = frozenset("50 55 60 65 70 77.5 85 92.5 100 110 125 150 175 200 250 300 400 500".split())
_FILLER: Final = frozenset(("other", "others", "etc", "etc.", "misc", "and others", "sonstige", "otros"))
_LIST: Final = re.compile(r"[,;|\n]\s*+")
_TAGS: Final = re.compile(r"[,|\n]\s*+")
_DIGIT_COMMA: Final = re.compile(r"(?<=\d),(?=\d)")
_PART_SPLIT: Final = re.compile(r"[,;|\n]\s*+|\s\+\s++|\s&\s++")
_PART: Final = re.compile(
    r"(?:(\d{1,3})\s*[x×*]\s+)?(\S+?)(?:\s*(?:\(\s*[x×]?\s*(\d{1,3})\s*\)|\s[x×*]\s?(\d{1,3})))?", re.I
)
_SHORTEST_CODE: Final = 3
"""Digits of a code that has nothing else: fewer are somebody's way of writing a quantity."""
_TIGHT_COMMA: Final = re.compile(r"(?<!\d),(?=[^\s\d])")
_LOOSE: Final = re.compile(r"[|•\n\r]|;\s")
_TIGHT: Final = re.compile(rf"{_LOOSE.pattern}|,(?=[^\s\d])|(?<!\d),(?=\S)")
_ASSEMBLY_YES: Final = re.compile(
    r"k/?d\b|knock(?:ed)?[ -]?down|^full|^partial|some assembly|assembly required|rta", re.I
)
_ASSEMBLY_NO: Final = re.compile(r"^none$|no assembly|fully assembled|^assembled|set up|^arrives assembled", re.I)
# Blanks before a separator stay with the level, which is trimmed: looked for in the pattern they cost their number squared.
_PATH: Final = re.compile(r"[>»|]\s*+|\s/\s++|\n")
_ACTIVE: Final = frozenset(
    "active inactive current new live published enabled disabled open available sellable normal regular ok "
    "draft standard aktiv activo visible hidden unlisted publish private pending instock closeout clearance "
    "a y yes true".split()
)
_GONE: Final = frozenset(("archived", "archive", "inactive discontinued", "end of life", "eol", "deleted"))
_WARNING: Final = re.compile(r"cancer|reproductive|p65warnings|proposition 65|prop\.? ?65", re.I)


@lru_cache(maxsize=4096)
def parse_boolean(text: str) -> Parsed[bool]:
    """Yes or no in the languages vendors write. Problem: unreadable."""
    given = stated(text)
    low = text.strip().lower() if given is None else given.lower().strip(" .!")
    if low in _YES:
        return Parsed(True)
    if low in _NO:
        return Parsed(False)
    return NOTHING if given is None else unreadable(text, "is neither yes nor no")


@lru_cache(maxsize=4096)
def parse_assembly(text: str) -> Parsed[bool]:
    """Whether the buyer has to assemble. Problem: unreadable."""
    given = text.strip()
    if _ASSEMBLY_NO.search(given):
        return Parsed(False)
    return Parsed(True) if _ASSEMBLY_YES.search(given) else parse_boolean(text)


@lru_cache(maxsize=1024)
def parse_freight_class(text: str) -> Parsed[str]:
    """One of the eighteen freight classes. Problems: unreadable, out_of_range."""
    given = stated(text)
    if given is None or given == "0":
        return NOTHING
    match = re.fullmatch(r"(?:class|fc|ltl)?\s*:?\s*(\d{2,3}(?:[.,]\d+)?)", given, re.I)
    if match is None:
        return unreadable(text, "is no freight class")
    found = match[1].replace(",", ".")
    found = found.rstrip("0").rstrip(".") if "." in found else found
    return (
        Parsed(found)
        if found in FREIGHT_CLASSES
        else refused(ProblemKind.OUT_OF_RANGE, text, "is none of the freight classes")
    )


def _listed(given: str, split: re.Pattern[str], filler: frozenset[str]) -> tuple[str, ...]:
    pieces = (piece.strip(" .;,") for piece in split.split(_DIGIT_COMMA.sub("\x00", given)))
    kept = (piece.replace("\x00", ",") for piece in pieces if piece and piece.lower() not in filler)
    return tuple({piece.lower(): piece for piece in reversed(list(kept))}.values())[::-1]


@lru_cache(maxsize=16384)
def parse_materials(text: str) -> Parsed[tuple[str, ...]]:
    """A list of materials in the vendor's words, without fillers such as `Others`. A slash parts materials as well."""
    given = stated(text)
    if given is None:
        return NOTHING
    parted = re.sub(r"(?<![\s\d/])\s*+/\s*+(?=[^\W\d])", ", ", given) if "w/" not in given.lower() else given
    return Parsed(_listed(parted, _LIST, _FILLER) or None)


@lru_cache(maxsize=16384)
def parse_tags(text: str) -> Parsed[tuple[str, ...]]:
    """A list of tags, in order, each once."""
    given = stated(text)
    return NOTHING if given is None else Parsed(_listed(given, _TAGS, frozenset()) or None)


@lru_cache(maxsize=16384)
def parse_features(text: str) -> Parsed[tuple[str, ...]]:
    """Selling points: one, or several parted by `|`, bullets or line breaks; commas belong to the sentence."""
    given = stated(text)
    if given is None:
        return NOTHING
    # Commas without a blank part a list whose own commas have one: `Walnut,Solid Wood, Others,Felt-lined drawer`.
    split = _TIGHT if len(_TIGHT_COMMA.findall(text)) > 1 else _LOOSE
    pieces = (piece.strip(" -*\t") for piece in split.split(text))
    kept = [cleaned for piece in pieces if (cleaned := stated(piece))]
    return Parsed(tuple(dict.fromkeys(kept)) or None)


@lru_cache(maxsize=16384)
def parse_components(text: str) -> Parsed[tuple[Component, ...]]:
    """The parts of a set by their codes (`AB-1, AB-2 (x2)`); a code named twice counts twice. Problem: unreadable."""
    if len(text) > _LONGEST:
        return overlong(text, _LONGEST)
    given = stated(text)
    if given is None:
        return NOTHING
    counts: dict[str, int] = {}
    for piece in filter(None, _PART_SPLIT.split(given)):
        match = _PART.fullmatch(piece.strip())
        if match is None or (match[2].isdecimal() and len(match[2]) < _SHORTEST_CODE):
            return unreadable(text, "is no list of codes")
        counts[match[2]] = counts.get(match[2], 0) + (int(match[1] or match[3] or match[4] or 1) or 1)
    return Parsed(tuple({"sku": sku, "quantity": quantity} for sku, quantity in counts.items()) or None)


@lru_cache(maxsize=4096)
def parse_number(text: str) -> Parsed[Decimal]:
    """A plain number. Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", given):
        return Parsed(Decimal(given))
    return unreadable(text, "is no number")


@lru_cache(maxsize=4096)
def parse_count(text: str) -> Parsed[int]:
    """A whole number from 1. Problems: unreadable, out_of_range."""
    given = stated(text)
    if given is None or given == "0":
        return NOTHING
    match = re.fullmatch(
        r"(\d{1,6})(?:\.0+)?\s*(?:boxes|box|cartons?|ctns?|packages?|pcs?|pieces?|stück|pakete?)?", given, re.I
    )
    if match is None:
        return refused(
            ProblemKind.OUT_OF_RANGE if given.startswith("-") else ProblemKind.UNREADABLE, text, "is no count"
        )
    return Parsed(int(match[1])) if int(match[1]) else NOTHING


@lru_cache(maxsize=16384)
def category_levels(text: str) -> tuple[str, ...]:
    """The levels of a category path, top first."""
    if stated(text) is None:
        return ()
    return tuple(level for piece in _PATH.split(unescaped(text)) if (level := stated(piece)))


@lru_cache(maxsize=4096)
def parse_sturdy(text: str) -> Parsed[bool]:
    """Whether a piece meets the STURDY rule; of ASTM F2057 only the 2023 edition does. Problem: unreadable."""
    if edition := re.search(r"f2057\s*[-–]\s*(\d{2,4})", text, re.I):
        return Parsed(True) if edition[1][-2:] == "23" else unreadable(text, "names an edition that STURDY left behind")
    return parse_boolean(text)


@lru_cache(maxsize=1024)
def parse_tsca(text: str) -> Parsed[bool]:
    """Whether a piece meets TSCA Title VI; a CARB code by itself says nothing about it. Problem: unreadable."""
    if re.fullmatch(r"\s*[0-5](?:\.0)?\s*", text):
        return unreadable(text, "is a CARB code, which does not say whether TSCA Title VI is met")
    return parse_boolean(text)


@lru_cache(maxsize=4096)
def parse_warning(text: str) -> Parsed[bool]:
    """Whether a Proposition 65 warning is due: yes, no, or the warning's own words."""
    return Parsed(True) if _WARNING.search(text) else parse_boolean(text)


@lru_cache(maxsize=4096)
def parse_brick(text: str) -> Parsed[str]:
    """A GPC brick code of eight digits. Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    match = re.search(r"(?<!\d)(\d{8})(?!\d)", given)
    return Parsed(match[1]) if match else unreadable(text, "is no GPC brick code")


@lru_cache(maxsize=4096)
def parse_status(text: str) -> Parsed[bool]:
    """Whether a status says that the item is discontinued. Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    low = given.lower()
    meaning = word_meaning(low)
    if low in _GONE or (meaning is not None and meaning.availability == "discontinued"):
        return Parsed(True)
    return Parsed(False) if low in _ACTIVE or meaning else unreadable(text, "is no status that is known")
