"""A size in an item's own title, held against what its columns say."""

import re
from typing import Any, Final

from domain.catalogue.data import Dimensions
from domain.ingestion.drafts.draft import RowDraft, kind_of_product
from domain.ingestion.drafts.pieces import of_several, with_subtitle
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.parsed import Fault, quoted
from domain.ingestion.values.quantities import length, unit_named
from domain.ingestion.values.sides import BED, PILLOW, RUG
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 500
_NUMBER: Final = r"\d{1,4}(?:[.,]\d{1,2})?"
_SIZE: Final = re.compile(
    rf"(?<![\w/.,×-]){_NUMBER}(?:\s?[x×]\s?{_NUMBER}){{1,2}}\s?(?:cm|mm|in|inch|inches|\")(?![\w/])", re.I
)
_UPRIGHT: Final = re.compile(
    r"mirror|door|panel|headboard|screen|curtain|blind|window|art\b|painting|poster|print|board|front|frame|wall|clock|cabinet",
    re.I,
)
_LYING: Final = re.compile(
    r"table(?!.{0,9}lamp)|desk|bench|\bmats?\b|mattress|worktop|rug|carpet|blanket|throw|towel", re.I
)
_DIGIT: Final = re.compile(r"\d")
_CROSS: Final = re.compile(r"\d\s?[x×]\s?\d", re.I)
_LAST: Final = re.compile(rf",\s?({_NUMBER})\s?(mm|cm)$", re.I)
_OTHERS: Final = re.compile(
    r"\b(?:for|fits?|up to|holds?|and|with|per|frame|cover|insert|pictures?|photos?|tv|opening|inner|leaf|leaves)\b"
    r"|w/|[&+]",
    re.I,
)
"""Words beside which a size may be another thing's, or one piece's of several."""
_OFF: Final = 60
"""Hundredths of an inch by which figures may differ for rounding."""


def settle(row: RowDraft, columns: Dimensions) -> Dimensions:
    """The columns' sides with what the item's own title says of them.

    Columns win. But where they say no more than a part of what the title says, on another side, the title is the fuller
    statement and is kept; and sides whose unit was only presumed are in the unit that the title gives them.
    """
    title = _own_title(row)
    if title is None or not _DIGIT.search(title):
        return columns
    if row.presumed:
        columns = _in_titles_unit(row, title, columns)
    found = _SIZE.search(title) if _CROSS.search(title) else None
    if found is None or _OTHERS.search(title) or of_several(title):
        return columns
    kind = kind_of_product(row)
    spread = parse_dimensions(found[0], None, kind).value
    if spread is None or kind in (RUG, PILLOW):
        return columns
    titled: dict[str, Any] = dict(spread.dimensions)
    if kind != BED and set(titled) == {"width", "depth"} and not _is_deep(title, titled, dict(columns)):
        if columns and not _stated_all(titled, dict(columns)):
            _tell(row, f"{quoted(found[0])} in the title does not say which sides it means; the columns are kept.")
        return columns
    return _fuller(row, found[0], dict(columns), titled, is_bed=kind == BED)


def _own_title(row: RowDraft) -> str | None:
    """The title of this very item: of a product with several variants, only the variant's."""
    data = row.product.data
    title = row.variant.get("title") or (None if row.product.grouped else data.get("title"))
    return with_subtitle(title, None if row.product.grouped else data.get("description"))[:_LONGEST] or None


def _in_titles_unit(row: RowDraft, title: str, columns: Dimensions) -> Dimensions:
    """Sides without a unit of their own, in the unit of a title that ends in one size (`Knob, 28 mm`)."""
    match = _LAST.search(title)
    unit = unit_named(match[2]) if match else None
    sides: dict[str, Any] = dict(columns)
    presumed = [side for side in row.presumed if side in sides and sides[side]["given"]["unit"] != unit]
    if match is None or unit is None or not presumed:
        return columns
    figure = float(match[1].replace(",", "."))
    if any(float(sides[side]["given"]["value"]) > 2 * figure for side in presumed):
        return columns
    return {**sides, **{side: length(sides[side]["given"]["value"], unit) for side in presumed}}  # type: ignore[typeddict-item]


def _fuller(row: RowDraft, text: str, columns: dict[str, Any], titled: dict[str, Any], *, is_bed: bool) -> Dimensions:
    for side in [side for side in titled if side not in columns and _is_others(titled[side], titled, columns)]:
        del titled[side]
    figures = [side["hundredths_in"] for side in titled.values()]
    shared = [columns[side]["hundredths_in"] for side in titled if side in columns]
    stated = [side["hundredths_in"] for side in columns.values()]
    if all(_near(figure, stated) for figure in figures):
        return columns  # type: ignore[return-value]
    if all(_near(figure, figures) for figure in shared):
        if any(
            not _near(titled[side]["hundredths_in"], [columns[side]["hundredths_in"]])
            for side in titled
            if side in columns
        ):
            _tell(
                row,
                f"{quoted(text)} in the title says more than the columns, which differ; the title's sides are kept.",
            )
        return {**columns, **titled}  # type: ignore[typeddict-item]
    if not is_bed:
        # Of a bed a title names the size of the mattress.
        _tell(row, f"{quoted(text)} in the title is not what the columns say; these are kept.")
    return columns  # type: ignore[return-value]


def _is_deep(title: str, titled: dict[str, Any], columns: dict[str, Any]) -> bool:
    """Whether the second of two figures runs front to back, as a table's does, and not up.

    The title's kind says so, a depth of the columns, a width that is the second figure, or a height that is neither.
    """
    first, second = titled["width"]["hundredths_in"], titled["depth"]["hundredths_in"]
    given = {side: length["hundredths_in"] for side, length in columns.items()}
    if "depth" in given:
        return _near(given["depth"], [first, second])
    if _UPRIGHT.search(title):
        return False
    if "width" in given and _near(given["width"], [second]):
        return True
    return _LYING.search(title) is not None or ("height" in given and not _near(given["height"], [first, second]))


def _is_others(found: Any, titled: dict[str, Any], columns: dict[str, Any]) -> bool:
    """Whether a figure of the title is that of a side which only the columns name (`Tray table, 45x53 cm`, 53 cm high)."""
    sides = [side for side, given in columns.items() if _near(found["hundredths_in"], [given["hundredths_in"]])]
    return bool(sides) and not any(side in titled for side in sides)


def _stated_all(titled: dict[str, Any], columns: dict[str, Any]) -> bool:
    stated = [side["hundredths_in"] for side in columns.values()]
    return all(_near(side["hundredths_in"], stated) for side in titled.values())


def _near(figure: int, others: list[int]) -> bool:
    return any(abs(figure - other) <= max(_OFF, other // 50) for other in others)


def _tell(row: RowDraft, detail: str) -> None:
    row.report("dimensions", None, (Fault(ProblemKind.CONFLICT, detail),))
