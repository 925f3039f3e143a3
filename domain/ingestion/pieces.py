"""Sizes of the pieces of a set, sizes in titles, and labelled facts in texts.

A size of a set can name its pieces, which become parts of the set. A size in a title is compared with the columns. A labelled
fact in a text (`Materials: Oak, Steel`) is used if no column states it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from domain.catalogue.data import Component, VariantData
from domain.ingestion.data import expressions, load, meanings
from domain.ingestion.drafts import ProductDraft, RowDraft
from domain.ingestion.values.dimensions import Spread, parse_dimensions
from domain.ingestion.values.labels import BED, PILLOW, RUG, TRADE, kind_of, side_of, words_in
from domain.ingestion.values.quantities import measured, parse_length, parse_weight, unit_named
from domain.ingestion.values.rugs import parse_construction
from domain.ingestion.values.text import Parsed, line_of_text, quoted
from domain.ingestion.values.words import parse_materials

_LONGEST = 500
_SUBTITLE = 120
(_SEVERAL, _WHOLE, _BED_SIZE, _ABOUT_SIZE, _UPRIGHT, _LYING, _OTHERS, _VAGUE, _RULE) = (
    expressions("pieces")[name] for name in "several whole bed_size about_size upright lying others vague rule".split()
)
_BED_SET = re.compile(r"(?i)\bbed(?:room)? set\b")
_LABEL = re.compile(r"\s*+([^\W\d_][^\W\d_ /&-]{0,20}(?:[ /&-][^\W\d_]{1,20}){0,3})\s*+:\s*+(?=[\d(.])")
_ANY_LABEL = re.compile(r"[^\W\d_]\s*+:\s*+[\d(.]")
_SIZE_WORD = re.compile(r"(?i)\s+(?:size|dimensions?|dims?|measurements?)$")
_NO_PIECE = re.compile(r"(?i)\b(?:size|dimensions?|dims?|measurements?)$")
_PIECES = re.compile(r"(?i)(?<![\w.])(\d{1,2})[ -]?(?:pcs?|pieces?)\b")
_CODES: Final[Mapping[str, Sequence[str]]] = load("pieces")["codes"]
_IDLE = re.compile(r"\d+PK|\d+|PM|M|R|L|VN|PK")


def pieces_named(title: str) -> int | None:
    """Return the number of pieces in a set's title (`7 Pc. Dining Set`), or None."""
    found = {int(match) for match in _PIECES.findall(title[:_LONGEST])}
    return found.pop() if len(found) == 1 else None


def with_subtitle(title: str | None, description: str | None) -> str:
    """Return the title, extended by the description if that is one short line, as in sheets with names of series."""
    first = title or ""
    if not description or len(description) > _SUBTITLE or "\n" in description or description in first:
        return first
    return f"{first}, {description}" if first else description


def title_of(product: ProductDraft, variant: VariantData) -> str:
    """Return the title of a variant, else that of its product, with the subtitle."""
    return with_subtitle(variant.get("title") or product.data.get("title"), product.data.get("description"))


@lru_cache(maxsize=4096)
def of_several(title: str) -> bool:
    """Return whether a title names several separate pieces (`7 Pc. Dining Set`, `Sofa + Loveseat`)."""
    shown = title[:_LONGEST]
    return _SEVERAL.search(shown) is not None and _WHOLE.search(shown) is None


def sized_as_bed(title: str) -> bool:
    """Return whether the size of a set is that of its bed, whose length is its depth."""
    shown = title[:_LONGEST]
    return _BED_SET.search(shown) is not None and _BED_SIZE.search(shown) is not None


def lone_piece(text: str) -> str | None:
    """Return the piece that a size is labelled with if it is the only label (`BED: 85" L x 63" W`), else None."""
    match = _LABEL.match(text)
    if match is None or len(_ANY_LABEL.findall(text.split("(", maxsplit=1)[0][:_LONGEST])) != 1:
        return None
    name = _SIZE_WORD.sub("", match[1].strip())
    return None if side_of(name) or _ABOUT_SIZE.search(name) else name


def sized_piece(title: str, text: str, kind: str) -> tuple[str | None, str]:
    """Return the piece of a set that a size names, or None, and the kind that determines its sides."""
    if not of_several(title):
        return None, kind
    name = lone_piece(text)
    return name, kind_of("", name) if name else BED if sized_as_bed(title) else kind


def named_piece(spread: Spread, name: str) -> Spread:
    """Return the spread with its dimensions as those of a named piece of a set."""
    piece: Component = {"name": name, "dimensions": spread.dimensions}
    return Spread({}, (piece, *spread.components))


def with_sizes(parts: Sequence[Component], pieces: Sequence[Component]) -> tuple[list[Component], list[Component]]:
    """Return the parts with the sizes of the pieces that they are, and the pieces that are not exactly one part."""
    sized: list[Component] = list(parts)
    unassigned: list[Component] = []
    for piece in pieces:
        owner = _owner(piece["name"], sized)
        size = piece.get("dimensions")
        if owner is None or size is None:
            unassigned.append({"name": piece["name"], "dimensions": size or {}})
        else:
            sized[owner] = {"name": piece["name"], **sized[owner], "dimensions": size}
    return sized, unassigned


def counted(pieces: Sequence[Component], title: str) -> tuple[list[Component], str | None]:
    """Return the pieces without labels that do not name a piece, and the detail of a problem or None.

    Each piece counts once. If the title states more pieces than are named, the quantities are left out.
    """
    kept = [piece for piece in pieces if not _NO_PIECE.search(piece["name"])]
    if len(kept) < len(pieces):
        return kept, f"A size of {quoted(title)} has a label that does not name a piece; it is left out."
    number = pieces_named(title)
    if number is None or sum(piece.get("quantity", 1) for piece in kept) >= number or len(kept) < 2:
        return kept, None
    if any(piece.get("quantity", 1) > 1 for piece in kept):
        return kept, f"{quoted(title)} counts {number} pieces, but its sizes name fewer."
    bare: list[Component] = [{"name": piece["name"], "dimensions": piece["dimensions"]} for piece in kept]
    detail = f"{quoted(title)} counts {number} pieces, but its sizes name {len(kept)}; the quantities are left out."
    return bare, detail


def _owner(name: str, parts: Sequence[Component]) -> int | None:
    """Return the index of the only part whose code ends in the piece's name or in its abbreviation, or None."""
    words = " ".join(words_in(_SIZE_WORD.sub("", name)))
    written = _CODES.get(words, ()) or _CODES.get(words.removesuffix("s"), ())
    for endings in ((name.upper().replace(" ", "-"),), written):
        owners = [at for at, part in enumerate(parts) if "dimensions" not in part and _ends(part, endings)]
        if len(owners) == 1:
            return owners[0]
    return None


def _ends(part: Component, endings: Sequence[str]) -> bool:
    code = part.get("sku", "").upper()
    pieces = code.split("-")
    while len(pieces) > 2 and _IDLE.fullmatch(pieces[-1]):
        pieces.pop()
    return len(pieces) > 1 and (pieces[-1] in endings or code.endswith(tuple(f"-{ending}" for ending in endings)))


# A size in a title.

_NUMBER = r"\d{1,4}(?:[.,]\d{1,2})?"
_SIZE = re.compile(rf"(?i)(?<![\w/.,×-]){_NUMBER}(?:\s?[x×]\s?{_NUMBER}){{1,2}}\s?(?:cm|mm|in|inch|inches|\")(?![\w/])")
_DIGIT = re.compile(r"\d")
_CROSS = re.compile(r"(?i)\d\s?[x×]\s?\d")
_LAST = re.compile(rf"(?i),\s?({_NUMBER})\s?(mm|cm)$")
_OFF = 60
"""Tolerance for rounding, in hundredths of an inch."""


def with_title(row: RowDraft, columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sides of the columns, combined with the size in the item's own title.

    The columns take precedence. If they state only some of the title's sides, the title is kept. Sides with a presumed unit
    get the unit of the title. In a product with several variants, only the title of the variant is used.
    """
    data = {} if row.product.grouped else row.product.data
    title = with_subtitle(row.variant.get("title") or data.get("title"), data.get("description"))[:_LONGEST]
    if not _DIGIT.search(title):
        return columns
    if row.presumed:
        columns = _in_titles_unit(row, title, columns)
    found = _SIZE.search(title) if _CROSS.search(title) else None
    kind = row.kind()
    if found is None or _OTHERS.search(title) or of_several(title) or kind in (RUG, PILLOW):
        return columns
    spread = parse_dimensions(found[0], None, kind).value
    if spread is None:
        return columns
    titled: Mapping[str, Any] = dict(spread.dimensions)
    stated = _figures(columns)
    if kind != BED and set(titled) == {"width", "depth"} and not _is_deep(title, _figures(titled), stated):
        if columns and not all(_near(figure, stated.values()) for figure in _figures(titled).values()):
            row.conflict(
                "dimensions",
                f"{quoted(found[0])} in the title does not name its sides; the columns are kept.",
            )
        return columns
    return _fuller(row, found[0], columns, titled, is_bed=kind == BED)


def _in_titles_unit(row: RowDraft, title: str, columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sides with a presumed unit in the unit of a title that ends in one size (`Knob, 28 mm`)."""
    match = _LAST.search(title)
    unit = unit_named(match[2]) if match else None
    given = {side: columns[side]["given"] for side in row.presumed if side in columns}
    presumed = {side: each["value"] for side, each in given.items() if each["unit"] != unit}
    if (
        match is None
        or unit is None
        or any(float(value) > 2 * float(match[1].replace(",", ".")) for value in presumed.values())
    ):
        return columns
    return {**columns, **{side: measured(value, unit) for side, value in presumed.items()}}


def _figures(sides: Mapping[str, Any]) -> dict[str, int]:
    return {side: found["hundredths_in"] for side, found in sides.items()}


def _fuller(
    row: RowDraft, text: str, columns: Mapping[str, Any], titled: Mapping[str, Any], *, is_bed: bool
) -> Mapping[str, Any]:
    stated, figures = _figures(columns), _figures(titled)
    for side in [side for side in figures if side not in stated]:
        # A figure can belong to a side that only the columns name (`Tray table, 45x53 cm`, 53 cm high).
        same = [other for other, figure in stated.items() if _near(figures[side], [figure])]
        if same and figures.keys().isdisjoint(same):
            del figures[side]
    if all(_near(figure, stated.values()) for figure in figures.values()):
        return columns
    shared = {side: figure for side, figure in stated.items() if side in figures}
    if all(_near(figure, figures.values()) for figure in shared.values()):
        if any(not _near(figures[side], [figure]) for side, figure in shared.items()):
            detail = "in the title is more complete than the columns and differs from them; the title's sides are kept."
            row.conflict("dimensions", f"{quoted(text)} {detail}")
        return {**columns, **{side: titled[side] for side in figures}}
    if not is_bed:
        # The title of a bed states the size of the mattress.
        row.conflict("dimensions", f"{quoted(text)} in the title contradicts the columns; the columns are kept.")
    return columns


def _is_deep(title: str, titled: Mapping[str, int], stated: Mapping[str, int]) -> bool:
    """Return whether the second of two figures is a depth, as of a table, and not a height.

    Evidence is the depth in the columns, the kind in the title, a width equal to the second figure, or a different height.
    """
    figures = titled["width"], titled["depth"]
    if "depth" in stated:
        return _near(stated["depth"], figures)
    if _UPRIGHT.search(title):
        return False
    if "width" in stated and _near(stated["width"], figures[1:]):
        return True
    return _LYING.search(title) is not None or ("height" in stated and not _near(stated["height"], figures))


def _near(figure: int, others: Iterable[int]) -> bool:
    return any(abs(figure - other) <= max(_OFF, other // 50) for other in others)


# Facts in texts.

_FIELDS = meanings(load("pieces")["labels"])
_LINE = re.compile(rf"(?im)^[-•* ]{{0,3}}({'|'.join(sorted(_FIELDS, key=len, reverse=True))})[ ]{{0,2}}:(.{{1,400}})$")
_MOST = 65_536
_HIGHEST_PILE = 400
"""Maximum height of a pile in hundredths of an inch; a higher one is in another unit than stated."""
_LONGEST_RULE = 400
_WORDS = 5
"""Maximum number of words in a feature that can state a construction (`100% Hand Tufted`)."""


def is_rule(text: str) -> bool:
    """Return whether a text among the materials is a regulation that the item meets."""
    return _RULE.search(text[:_LONGEST_RULE]) is not None


def describe(product: ProductDraft) -> None:
    """Add facts from the product's texts that its variants do not state, in place; repeated labels are ignored.

    Materials apply to every variant; other facts are used only if there is one variant.
    """
    given: dict[str, set[str]] = {}
    for text in (product.data.get("description", ""), *product.features):
        for label, value in _LINE.findall(text[:_MOST]) if ":" in text else ():
            given.setdefault(_FIELDS[label.lower()], set()).add(value.strip(" ."))
    found = {name: values.pop() for name, values in given.items() if len(values) == 1}
    if not found and not product.features:
        return
    is_rug = kind_of(" > ".join(product.category_path()), product.data.get("title", "")) == RUG
    for variant in product.variants.values():
        if is_rug:
            _weave(variant.data, found, product.features)
        for name, text in found.items():
            if len(product.variants) == 1 or name == "materials":
                _take(variant.data, name, text, product, is_rug=is_rug)


def _sound(parsed: Parsed[Any]) -> Any:
    return None if parsed.faults else parsed.value


def _take(data: VariantData, name: str, text: str, product: ProductDraft, *, is_rug: bool) -> None:
    if name in data or _VAGUE.search(text):
        return
    if name == "materials" and (kept := [each for each in _sound(parse_materials(text)) or () if not is_rule(each)]):
        data["materials"] = kept
    elif name == "colour" and (colour := _sound(line_of_text(text))):
        data["colour"] = colour
    elif name == "weight" and (weight := _sound(parse_weight(text))):
        data["weight"] = weight
    elif name == "dimensions" and not is_rug:
        _take_size(data, text, product)


def _take_size(data: VariantData, text: str, product: ProductDraft) -> None:
    title = title_of(product, data)
    several = of_several(title)
    piece, kind = sized_piece(title, text, kind_of(" > ".join(product.category_path()), title))
    spread: Spread | None = _sound(parse_dimensions(text, None, kind, TRADE))
    if spread is None or any("dimensions" in part for part in data.get("components", ())):
        return
    # Names of pieces start with a letter; others are fragments of the text before.
    all_named = spread.components and all(part["name"][:1].isalpha() for part in spread.components)
    if several and piece is None and (spread.dimensions or not all_named):
        return  # a size in a set of several pieces that does not name its piece
    if piece is not None and spread.dimensions:
        spread = named_piece(spread, piece)
    if spread.dimensions:
        data["dimensions"] = spread.dimensions
    pieces, detail = counted(spread.components, title)
    if pieces and detail is None and several and "components" not in data:
        data["components"] = pieces


def _weave(data: VariantData, found: Mapping[str, str], features: Iterable[str]) -> None:
    """Add construction and pile height of a rug from labels, or from short features if they agree."""
    rug: Any = dict(data.get("rug", {}))
    height = _sound(parse_length(found.get("pile_height", "")))
    if height and height["hundredths_in"] <= _HIGHEST_PILE:
        rug.setdefault("pile_height", height)
    short = [found["construction"]] if "construction" in found else [f for f in features if len(f.split()) <= _WORDS]
    made = {value for text in short if (value := _sound(parse_construction(text)))}
    if len(made) == 1:
        rug.setdefault("construction", made.pop())
    if rug:
        data["rug"] = rug
