"""Sizes of the pieces of furniture in a set, sizes in titles, and labelled values in descriptions and features.

A size in a row of a set can name a piece of the set, which becomes a component. A size in a title is compared with the columns. A
labelled value in a text (`Materials: Oak, Steel`) is used if no column contains one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from domain.catalogue.data import BundleComponent, VariantData
from domain.ingestion.data import invert_table, load_patterns, load_toml
from domain.ingestion.drafts import ProductDraft, RowDraft
from domain.ingestion.values.dimensions import ParsedSize, parse_dimensions
from domain.ingestion.values.labels import (
    BED,
    PILLOW,
    RUG,
    TRADE_ORDER,
    determine_size_kind,
    find_dimension_of_label,
    split_into_plain_words,
)
from domain.ingestion.values.quantities import build_measure, parse_length, parse_length_unit, parse_weight
from domain.ingestion.values.rugs import parse_construction
from domain.ingestion.values.text import ParseResult, parse_line, quote_text
from domain.ingestion.values.words import parse_materials

_MAX_TITLE_CHARS = 500
_MAX_SUBTITLE_CHARS = 120
(_SEVERAL, _WHOLE, _BED_SIZE, _SIZE_WORDS, _UPRIGHT, _HORIZONTAL, _OTHER_THINGS, _VAGUE, _REGULATION) = (
    load_patterns("pieces")[name]
    for name in "several whole bed_size size_words upright horizontal other_things vague regulation".split()
)
_BED_SET = re.compile(r"(?i)\bbed(?:room)? set\b")
_LABEL = re.compile(r"\s*+([^\W\d_][^\W\d_ /&-]{0,20}(?:[ /&-][^\W\d_]{1,20}){0,3})\s*+:\s*+(?=[\d(.])")
_ANY_LABEL = re.compile(r"[^\W\d_]\s*+:\s*+[\d(.]")
_SIZE_WORD = re.compile(r"(?i)\s+(?:size|dimensions?|dims?|measurements?)$")
_NO_PIECE = re.compile(r"(?i)\b(?:size|dimensions?|dims?|measurements?)$")
_PIECES = re.compile(r"(?i)(?<![\w.])(\d{1,2})[ -]?(?:pcs?|pieces?)\b")
_ABBREVIATIONS: Final[Mapping[str, Sequence[str]]] = load_toml("pieces")["codes"]
_CODE_SUFFIX = re.compile(r"\d+PK|\d+|PM|M|R|L|VN|PK")


def parse_piece_count(title: str) -> int | None:
    """Return the number of pieces of a set according to a title (`7 Pc. Dining Set`), or None."""
    found = {int(match) for match in _PIECES.findall(title[:_MAX_TITLE_CHARS])}
    return found.pop() if len(found) == 1 else None


def append_short_description(title: str | None, description: str | None) -> str:
    """Return the title, followed by the description if the description is one short line.

    In some price lists the title is only the name of a series, and the description names the item.
    """
    first = title or ""
    if not description or len(description) > _MAX_SUBTITLE_CHARS or "\n" in description or description in first:
        return first
    return f"{first}, {description}" if first else description


def build_item_title(product: ProductDraft, variant: VariantData) -> str:
    """Return the title of a variant, or else of its product, followed by the product's description if that is one short line."""
    return append_short_description(variant.get("title") or product.data.get("title"), product.data.get("description"))


@lru_cache(maxsize=4096)
def names_several_pieces(title: str) -> bool:
    """Return whether a title names several separate pieces (`7 Pc. Dining Set`, `Sofa + Loveseat`)."""
    title_start = title[:_MAX_TITLE_CHARS]
    return _SEVERAL.search(title_start) is not None and _WHOLE.search(title_start) is None


def is_bedroom_set_with_bed_size(title: str) -> bool:
    """Return whether a title names a bedroom set with a bed size (`Queen Bed Set`), so that a size in the row is the size of the bed."""
    title_start = title[:_MAX_TITLE_CHARS]
    return _BED_SET.search(title_start) is not None and _BED_SIZE.search(title_start) is not None


def find_only_labelled_piece(text: str) -> str | None:
    """Return the name before a size if it is the only label in the text and names a piece (`BED: 85" L x 63" W`), or None."""
    match = _LABEL.match(text)
    if match is None or len(_ANY_LABEL.findall(text.split("(", maxsplit=1)[0][:_MAX_TITLE_CHARS])) != 1:
        return None
    name = _SIZE_WORD.sub("", match[1].strip())
    return None if find_dimension_of_label(name) or _SIZE_WORDS.search(name) else name


def find_sized_piece(title: str, text: str, kind: str) -> tuple[str | None, str]:
    """Determine to which piece of a set a size belongs.

    Args:
        title: The title of the set or of a single item.
        text: The text of the size.
        kind: The kind of the item (`labels.determine_size_kind`).

    Returns:
        The name of the piece or None, and the kind of furniture by which the letters of the size are interpreted.
    """
    if not names_several_pieces(title):
        return None, kind
    name = find_only_labelled_piece(text)
    return name, determine_size_kind("", name) if name else BED if is_bedroom_set_with_bed_size(title) else kind


def move_size_to_component(size: ParsedSize, piece_name: str) -> ParsedSize:
    """Return the size with its dimensions moved from the set to a component with this name."""
    piece: BundleComponent = {"name": piece_name, "dimensions": size.dimensions}
    return ParsedSize({}, (piece, *size.components))


def assign_sizes_to_parts(
    parts: Sequence[BundleComponent], named_pieces: Sequence[BundleComponent]
) -> tuple[list[BundleComponent], list[BundleComponent]]:
    """Assign the sizes of named pieces to the parts of a set.

    Args:
        parts: The parts of the set, which have codes and no names.
        named_pieces: The pieces that a size text names, with their dimensions.

    Returns:
        The parts with sizes, and the pieces whose name matches no part or several parts.
    """
    sized: list[BundleComponent] = list(parts)
    unassigned: list[BundleComponent] = []
    for piece in named_pieces:
        owner = _find_part_by_name(piece["name"], sized)
        size = piece.get("dimensions")
        if owner is None or size is None:
            unassigned.append({"name": piece["name"], "dimensions": size or {}})
        else:
            sized[owner] = {"name": piece["name"], **sized[owner], "dimensions": size}
    return sized, unassigned


def reconcile_piece_count(
    named_pieces: Sequence[BundleComponent], title: str
) -> tuple[list[BundleComponent], str | None]:
    """Adjust the pieces that a size text names to the number of pieces in the title of the set.

    Labels that do not name a piece are removed. If the title states more pieces than are named, the quantities are removed.

    Args:
        named_pieces: The pieces that the size text names.
        title: The title of the set.

    Returns:
        The pieces to use, and the detail of a problem or None.
    """
    kept = [piece for piece in named_pieces if not _NO_PIECE.search(piece["name"])]
    if len(kept) < len(named_pieces):
        return kept, f"A size of {quote_text(title)} has a label that does not name a piece. The size was left out."
    number = parse_piece_count(title)
    if number is None or sum(piece.get("quantity", 1) for piece in kept) >= number or len(kept) < 2:
        return kept, None
    if any(piece.get("quantity", 1) > 1 for piece in kept):
        return kept, (
            f"{quote_text(title)} states {number} pieces, but sizes are given for fewer. "
            "The quantities of the pieces were kept."
        )
    without_quantities: list[BundleComponent] = [
        {"name": piece["name"], "dimensions": piece["dimensions"]} for piece in kept
    ]
    detail = (
        f"{quote_text(title)} states {number} pieces, but sizes are given for {len(kept)}. "
        "The quantities of the pieces were left out."
    )
    return without_quantities, detail


def _find_part_by_name(name: str, parts: Sequence[BundleComponent]) -> int | None:
    """Return the index of the part whose code ends in the name of a piece or an abbreviation of the name.

    Parts that already have a size are skipped. The result is None if no part matches, or several.
    """
    words = " ".join(split_into_plain_words(_SIZE_WORD.sub("", name)))
    abbreviations = _ABBREVIATIONS.get(words, ()) or _ABBREVIATIONS.get(words.removesuffix("s"), ())
    for endings in ((name.upper().replace(" ", "-"),), abbreviations):
        indexes = [at for at, part in enumerate(parts) if "dimensions" not in part and _has_code_ending(part, endings)]
        if len(indexes) == 1:
            return indexes[0]
    return None


def _has_code_ending(part: BundleComponent, endings: Sequence[str]) -> bool:
    """Return whether the code of a part ends in one of the texts, not counting suffixes of the code such as `-2PK`."""
    code = part.get("sku", "").upper()
    pieces = code.split("-")
    while len(pieces) > 2 and _CODE_SUFFIX.fullmatch(pieces[-1]):
        pieces.pop()
    return len(pieces) > 1 and (pieces[-1] in endings or code.endswith(tuple(f"-{ending}" for ending in endings)))


# A size in a title.

_NUMBER = r"\d{1,4}(?:[.,]\d{1,2})?"
_SIZE = re.compile(
    rf"(?i)(?:(?<![\w/.,×-]){_NUMBER}(?:\s?[x×]\s?{_NUMBER}){{1,2}}|(?:ø|\bdia(?:m(?:eter)?)?\.?)\s?{_NUMBER})"
    r"\s?(?:cm|mm|in|inch|inches|\")(?![\w/])"
)
_DIGIT = re.compile(r"\d")
_SIZE_SIGN = re.compile(r"(?i)\d\s?[x×]\s?\d|ø|\bdia")
_FINAL_LENGTH = re.compile(rf"(?i),\s?({_NUMBER})\s?(mm|cm)$")
_MIN_ROUNDING_TOLERANCE = 60
"""Maximum difference of two lengths up to 30 inches that count as equal, in hundredths of an inch.

For greater lengths, the maximum difference is 1/50 of the length.
"""


def merge_title_size(row: RowDraft, column_dimensions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the dimensions from the columns of a row, combined with the size in the title.

    The columns take precedence, unless they contain only some of the dimensions in the title. Dimensions with a
    presumed unit get the unit in the title. In a product that can have several variants, only the title of the variant
    is used.

    Args:
        row: The draft of the row.
        column_dimensions: The lengths from the columns, by dimension.
    """
    data = {} if row.product.is_grouped else row.product.data
    title = append_short_description(row.variant.get("title") or data.get("title"), data.get("description"))[
        :_MAX_TITLE_CHARS
    ]
    if not _DIGIT.search(title):
        return column_dimensions
    if row.presumed_unit_dimensions:
        column_dimensions = _apply_title_unit(row, title, column_dimensions)
    found = _SIZE.search(title) if _SIZE_SIGN.search(title) else None
    kind = row.determine_kind()
    if found is None or _OTHER_THINGS.search(title) or names_several_pieces(title) or kind in (RUG, PILLOW):
        return column_dimensions
    size = parse_dimensions(found[0], None, kind).value
    if size is None:
        return column_dimensions
    title_dimensions: Mapping[str, Any] = dict(size.dimensions)
    column_lengths = _map_hundredths_by_dimension(column_dimensions)
    if (
        kind != BED
        and set(title_dimensions) == {"width", "depth"}
        and not _is_second_number_depth(title, _map_hundredths_by_dimension(title_dimensions), column_lengths)
    ):
        if column_dimensions and not all(
            _equals_any(figure, column_lengths.values())
            for figure in _map_hundredths_by_dimension(title_dimensions).values()
        ):
            row.report_conflict(
                "dimensions",
                f"{quote_text(found[0])} in the title does not name its dimensions; the dimensions in the columns are kept.",
            )
        return column_dimensions
    return _merge_more_complete_size(row, found[0], column_dimensions, title_dimensions, is_bed=kind == BED)


def _apply_title_unit(row: RowDraft, title: str, column_dimensions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace presumed units of dimensions by the unit of the length at the end of the title (`Knob, 28 mm`), if there is one."""
    match = _FINAL_LENGTH.search(title)
    unit = parse_length_unit(match[2]) if match else None
    measures = {
        name: column_dimensions[name]["given"] for name in row.presumed_unit_dimensions if name in column_dimensions
    }
    presumed = {name: measure["value"] for name, measure in measures.items() if measure["unit"] != unit}
    if (
        match is None
        or unit is None
        or any(float(value) > 2 * float(match[1].replace(",", ".")) for value in presumed.values())
    ):
        return column_dimensions
    return {**column_dimensions, **{name: build_measure(value, unit) for name, value in presumed.items()}}


def _map_hundredths_by_dimension(dimensions: Mapping[str, Any]) -> dict[str, int]:
    return {name: length["hundredths_in"] for name, length in dimensions.items()}


def _merge_more_complete_size(
    row: RowDraft,
    size_text: str,
    column_dimensions: Mapping[str, Any],
    title_dimensions: Mapping[str, Any],
    *,
    is_bed: bool,
) -> Mapping[str, Any]:
    """Return the dimensions from the columns, completed from the title if the title has more and agrees with the columns.

    Args:
        row: The draft of the row, for problems.
        size_text: The text of the size in the title.
        column_dimensions: The lengths from the columns, by dimension.
        title_dimensions: The lengths from the title, by dimension.
        is_bed: Whether the item is a bed; the size in its title is that of the mattress, so a difference is not reported.
    """
    column_lengths, title_lengths = (
        _map_hundredths_by_dimension(column_dimensions),
        _map_hundredths_by_dimension(title_dimensions),
    )
    for name in [name for name in title_lengths if name not in column_lengths]:
        # A figure can belong to a dimension that only the columns name (`Tray table, 45x53 cm`, 53 cm high).
        equal_names = [other for other, figure in column_lengths.items() if _equals_any(title_lengths[name], [figure])]
        if equal_names and title_lengths.keys().isdisjoint(equal_names):
            del title_lengths[name]
    if all(_equals_any(figure, column_lengths.values()) for figure in title_lengths.values()):
        return column_dimensions
    shared = {name: figure for name, figure in column_lengths.items() if name in title_lengths}
    if all(_equals_any(figure, title_lengths.values()) for figure in shared.values()):
        if any(not _equals_any(title_lengths[name], [figure]) for name, figure in shared.items()):
            detail = "in the title is more complete than the columns and differs from them; the dimensions in the title are kept."
            row.report_conflict("dimensions", f"{quote_text(size_text)} {detail}")
        return {**column_dimensions, **{name: title_dimensions[name] for name in title_lengths}}
    if not is_bed:
        # The title of a bed states the size of the mattress.
        row.report_conflict(
            "dimensions",
            f"{quote_text(size_text)} in the title contradicts the columns; the dimensions in the columns are kept.",
        )
    return column_dimensions


def _is_second_number_depth(title: str, title_lengths: Mapping[str, int], column_lengths: Mapping[str, int]) -> bool:
    """Return whether the second of two numbers in a title (`Table 120 x 80 cm`) is the depth; otherwise it can be the height.

    It is the depth if one of the numbers equals the depth in the columns. Without a depth in the columns, it is the depth if it equals the
    width in the columns, the title names flat furniture such as a table, or neither number equals the height in the columns.

    Args:
        title: The title.
        title_lengths: The two numbers as `width` and `depth`, in hundredths of an inch.
        column_lengths: The lengths from the columns by dimension, in hundredths of an inch.
    """
    figures = title_lengths["width"], title_lengths["depth"]
    if "depth" in column_lengths:
        return _equals_any(column_lengths["depth"], figures)
    if _UPRIGHT.search(title):
        return False
    if "width" in column_lengths and _equals_any(column_lengths["width"], figures[1:]):
        return True
    return _HORIZONTAL.search(title) is not None or (
        "height" in column_lengths and not _equals_any(column_lengths["height"], figures)
    )


def _equals_any(length: int, other_lengths: Iterable[int]) -> bool:
    """Return whether a length equals one of the others apart from rounding; all are in hundredths of an inch."""
    return any(abs(length - other) <= max(_MIN_ROUNDING_TOLERANCE, other // 50) for other in other_lengths)


# Labelled values in texts.

_FIELDS = invert_table(load_toml("pieces")["labels"])
_LINE = re.compile(rf"(?im)^[-•* ]{{0,3}}({'|'.join(sorted(_FIELDS, key=len, reverse=True))})[ ]{{0,2}}:(.{{1,400}})$")
_MAX_TEXT_CHARS = 65_536
_MAX_PILE_HEIGHT = 400
"""Maximum pile height of a rug in hundredths of an inch; a greater height is ignored."""
_MAX_RULE_CHARS = 400
_MAX_FEATURE_WORDS = 5
"""Maximum number of words in a feature that can state a construction (`100% Hand Tufted`)."""


def names_regulation(text: str) -> bool:
    """Return whether a text in a list of materials names a regulation, such as a flammability standard, and not a material."""
    return _REGULATION.search(text[:_MAX_RULE_CHARS]) is not None


def add_labelled_values(product: ProductDraft) -> None:
    """Add labelled values from the description and features of a product (`Colour: Oak`) to variants that lack them, in place.

    Labels that occur with different values are ignored. Materials apply to every variant; other values only to an only variant.
    """
    values_by_field: dict[str, set[str]] = {}
    for text in (product.data.get("description", ""), *product.features):
        for label, value in _LINE.findall(text[:_MAX_TEXT_CHARS]) if ":" in text else ():
            values_by_field.setdefault(_FIELDS[label.lower()], set()).add(value.strip(" ."))
    found = {name: values.pop() for name, values in values_by_field.items() if len(values) == 1}
    if not found and not product.features:
        return
    is_rug = determine_size_kind(" > ".join(product.find_category_path()), product.data.get("title", "")) == RUG
    for variant in product.variants.values():
        if is_rug:
            _add_rug_facts(variant.data, found, product.features)
        for name, text in found.items():
            if len(product.variants) == 1 or name == "materials":
                _add_labelled_value(variant.data, name, text, product, is_rug=is_rug)


def _get_faultless_value(parsed: ParseResult[Any]) -> Any:
    """Return the value of a parse result, or None if it has faults."""
    return None if parsed.faults else parsed.value


def _add_labelled_value(data: VariantData, field: str, text: str, product: ProductDraft, *, is_rug: bool) -> None:
    """Add a labelled value to the data of a variant, unless the data already has the field or the text is vague.

    Args:
        data: The data of the variant, which is changed.
        field: The field.
        text: The text after the label.
        product: The draft of the product.
        is_rug: Whether the product is a rug, whose size is not read.
    """
    if field in data or _VAGUE.search(text):
        return
    if field == "materials" and (
        materials := [each for each in _get_faultless_value(parse_materials(text)) or () if not names_regulation(each)]
    ):
        data["materials"] = materials
    elif field == "colour" and (colour := _get_faultless_value(parse_line(text))):
        data["colour"] = colour
    elif field == "weight" and (weight := _get_faultless_value(parse_weight(text))):
        data["weight"] = weight
    elif field == "dimensions" and not is_rug:
        _add_size(data, text, product)


def _add_size(data: VariantData, text: str, product: ProductDraft) -> None:
    """Add a size from a text to the data of a variant, as dimensions of the variant or as components of a set."""
    title = build_item_title(product, data)
    several = names_several_pieces(title)
    piece, kind = find_sized_piece(title, text, determine_size_kind(" > ".join(product.find_category_path()), title))
    size: ParsedSize | None = _get_faultless_value(parse_dimensions(text, None, kind, TRADE_ORDER))
    if size is None or any("dimensions" in part for part in data.get("components", ())):
        return
    # Names of pieces start with a letter; others are fragments of the text before.
    all_named = size.components and all(part["name"][:1].isalpha() for part in size.components)
    if several and piece is None and (size.dimensions or not all_named):
        return  # a size in a set of several pieces that does not name its piece
    if piece is not None and size.dimensions:
        size = move_size_to_component(size, piece)
    if size.dimensions:
        data["dimensions"] = size.dimensions
    pieces, detail = reconcile_piece_count(size.components, title)
    if pieces and detail is None and several and "components" not in data:
        data["components"] = pieces


def _add_rug_facts(data: VariantData, value_by_field: Mapping[str, str], features: Iterable[str]) -> None:
    """Add the construction and the pile height of a rug to the data of a variant, in place.

    Args:
        data: The data of the variant.
        value_by_field: The labelled values by field.
        features: The features, which are searched for a construction if no label names one.
    """
    rug: Any = dict(data.get("rug", {}))
    height = _get_faultless_value(parse_length(value_by_field.get("pile_height", "")))
    if height and height["hundredths_in"] <= _MAX_PILE_HEIGHT:
        rug.setdefault("pile_height", height)
    candidates = (
        [value_by_field["construction"]]
        if "construction" in value_by_field
        else [f for f in features if len(f.split()) <= _MAX_FEATURE_WORDS]
    )
    constructions = {value for text in candidates if (value := _get_faultless_value(parse_construction(text)))}
    if len(constructions) == 1:
        rug.setdefault("construction", constructions.pop())
    if rug:
        data["rug"] = rug
