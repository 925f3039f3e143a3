"""Pieces of a set whose sizes stand in one text, and the parts of the set that they are."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from domain.catalogue.data import Component
from domain.ingestion.values.dimensions import Spread
from domain.ingestion.values.labels import words_in
from domain.ingestion.values.parsed import quoted
from domain.ingestion.values.sides import side_of

_LONGEST: Final = 500
_SUBTITLE: Final = 120
_SEVERAL: Final = re.compile(
    r"(?<![\w.])\d{1,2}[ -]?(?:pcs?|pieces?)\b|[^\W\d_]\s\+\s?[^\W\d_]"
    r"|\b(?:bedroom|bed|dining|dinette|table|patio|living room|sofa|conversation|bistro|outdoor|vanity|desk) set\b",
    re.I,
)
_WHOLE: Final = re.compile(r"sectional|modular|bunk|mattress|panels?\b|wall unit", re.I)
"""Sets whose pieces stand together and have one size."""
_BED_SET: Final = re.compile(r"\bbed(?:room)? set\b", re.I)
_BED_SIZE: Final = re.compile(r"\b(?:twin|full|queen|king|single|double)\b", re.I)
_LABEL: Final = re.compile(r"\s*+([^\W\d_][^\W\d_ /&-]{0,20}(?:[ /&-][^\W\d_]{1,20}){0,3})\s*+:\s*+(?=[\d(.])")
_ANY_LABEL: Final = re.compile(r"[^\W\d_]\s*+:\s*+[\d(.]")
_SIZE_WORD: Final = re.compile(r"\s+(?:size|dimensions?|dims?|measurements?)$", re.I)
_ABOUT_SIZE: Final = re.compile(
    r"\b(?:size|dim\w*|measure\w*|overall|product|total|assembled|item|seat|seating|arm|reclin\w+|extend\w+|maße)\b",
    re.I,
)
_NO_PIECE: Final = re.compile(r"\b(?:size|dimensions?|dims?|measurements?)$", re.I)
_PIECES: Final = re.compile(r"(?<![\w.])(\d{1,2})[ -]?(?:pcs?|pieces?)\b", re.I)
_CODES: Final = {
    "sofa": ("SF", "SOFA"),
    "loveseat": ("LV", "LOVESEAT"),
    "chair": ("CH", "CHAIR", "SC", "AC"),
    "side chair": ("SC",),
    "arm chair": ("AC",),
    "counter height chair": ("PC",),
    "ottoman": ("OT", "OTTOMAN"),
    "bench": ("BN", "BENCH"),
    "table": ("T", "TABLE", "PT", "RT", "RPT"),
    "dining table": ("T", "TABLE"),
    "coffee table": ("C", "COFFEE"),
    "end table": ("E", "END"),
    "nightstand": ("N", "NS"),
    "night stand": ("N", "NS"),
    "dresser": ("D", "DRESSER"),
    "mirror": ("M", "MIRROR"),
    "chest": ("C", "CHEST"),
}
"""How vendors end the codes of pieces."""
_IDLE: Final = re.compile(r"\d+PK|\d+|PM|M|R|L|VN|PK")


def pieces_named(title: str) -> int | None:
    """How many pieces a set's title counts (`7 Pc. Dining Set`), or None."""
    found = {int(match) for match in _PIECES.findall(title[:_LONGEST])}
    return found.pop() if len(found) == 1 else None


def with_subtitle(title: str | None, description: str | None) -> str:
    """What names an item: its title, and a description that is one short line, as sheets write beside a series' name."""
    first = title or ""
    if not description or len(description) > _SUBTITLE or "\n" in description or description in first:
        return first
    return f"{first}, {description}" if first else description


def of_several(title: str) -> bool:
    """Whether a title names several pieces that stand apart (`7 Pc. Dining Set`, `Sofa + Loveseat`)."""
    return _names_several(title[:_LONGEST])


@lru_cache(maxsize=4096)
def _names_several(title: str) -> bool:
    return _SEVERAL.search(title) is not None and _WHOLE.search(title) is None


def sized_as_bed(title: str) -> bool:
    """Whether the size of a set is that of its bed, whose length runs away from the beholder."""
    shown = title[:_LONGEST]
    return _BED_SET.search(shown) is not None and _BED_SIZE.search(shown) is not None


def lone_piece(text: str) -> str | None:
    """The piece that a size is labelled with, when it is the only one (`BED: 85" L x 63" W`); None for other labels."""
    match = _LABEL.match(text)
    if match is None or len(_ANY_LABEL.findall(text.split("(", maxsplit=1)[0][:_LONGEST])) != 1:
        return None
    name = _SIZE_WORD.sub("", match[1].strip())
    return None if side_of(name) or _ABOUT_SIZE.search(name) else name


def named_piece(spread: Spread, name: str) -> Spread:
    """A size that is one piece's of a set."""
    piece: Component = {"name": name, "dimensions": spread.dimensions}
    return Spread({}, (piece, *spread.components))


def with_sizes(parts: Sequence[Component], pieces: Sequence[Component]) -> tuple[list[Component], list[Component]]:
    """The parts with the sizes of the pieces that they are, and the pieces that are no single part."""
    sized: list[Component] = list(parts)
    left: list[Component] = []
    for piece in pieces:
        owner = _owner(piece["name"], sized)
        if owner is None or "dimensions" not in piece:
            left.append({"name": piece["name"], "dimensions": piece.get("dimensions", {})})
        else:
            sized[owner] = {"name": piece["name"], **sized[owner], "dimensions": piece["dimensions"]}
    return sized, left


def counted(pieces: Sequence[Component], title: str) -> tuple[list[Component], str | None]:
    """Pieces named with their sizes, without labels that are no pieces; and what is to be told of them.

    A piece named once is there once, unless the title counts more pieces: then how many there are of each is not known.
    """
    kept = [piece for piece in pieces if not _NO_PIECE.search(piece["name"])]
    if len(kept) < len(pieces):
        return kept, f"A size of {quoted(title)} is labelled, but not as a piece; it is left out."
    number = pieces_named(title)
    if number is None or sum(piece.get("quantity", 1) for piece in kept) >= number or len(kept) < 2:
        return kept, None
    if any(piece.get("quantity", 1) > 1 for piece in kept):
        return kept, f"{quoted(title)} counts {number} pieces, and its sizes name fewer."
    bare: list[Component] = [{"name": piece["name"], "dimensions": piece["dimensions"]} for piece in kept]
    return (
        bare,
        f"{quoted(title)} counts {number} pieces, and its sizes name {len(kept)}; how many of each is left out.",
    )


def _owner(name: str, parts: Sequence[Component]) -> int | None:
    """The one part whose code ends in a piece's name, or in what vendors write for it."""
    words = " ".join(words_in(_SIZE_WORD.sub("", name)))
    for endings in (
        (name.upper().replace(" ", "-"),),
        _CODES.get(words, ()) or _CODES.get(words.removesuffix("s"), ()),
    ):
        owners = [place for place, part in enumerate(parts) if _ends(part, endings) and "dimensions" not in part]
        if len(owners) == 1:
            return owners[0]
    return None


def _ends(part: Component, endings: Sequence[Any]) -> bool:
    code = part.get("sku", "").upper()
    pieces = code.split("-")
    while len(pieces) > 2 and _IDLE.fullmatch(pieces[-1]):
        pieces.pop()
    return len(pieces) > 1 and (pieces[-1] in endings or any(code.endswith(f"-{ending}") for ending in endings))
