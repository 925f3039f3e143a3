"""Where in a feed an entry stands that was left out: found by reading the rows once more, a column at a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from domain.catalogue.trimming import Excess
from domain.ingestion.columns.plan import ReadPlan, read_row
from domain.ingestion.drafts.draft import ProductDraft, RowDraft
from domain.ingestion.model import Group


def place_of(excess: Excess, group: Group, plan: ReadPlan) -> tuple[int, str | None]:
    """Line and column of the first entry left out of a product's list; the first line, where no cell states it by itself."""
    for line, cells in group.rows:
        column = column_of(excess, line, cells, plan)
        if column is not None:
            return line, column
    return group.rows[0][0], None


def column_of(excess: Excess, line: int, cells: Sequence[Any], plan: ReadPlan) -> str | None:
    """The column of one row that states the entry; None where none does by itself."""
    for reader in plan.readers:
        row = RowDraft(ProductDraft(None), line)
        read_row(replace(plan, readers=(reader,)), cells, row)
        if _states(row, excess):
            return plan.headers[reader[0]] if reader[0] < len(plan.headers) else None
    return None


def _states(row: RowDraft, excess: Excess) -> bool:
    product, first = row.product, excess.first
    match excess.field:
        case "tags":
            return first in product.tags
        case "features":
            return first in product.features
        case "category_path":
            return first in product.category_path()
        case "prop65_chemicals":
            return first in product.compliance.get("prop65_chemicals", ())
        case "media":
            return first["url"] in (*row.media_urls, *row.variant_media)
        case "materials":
            return first in (row.materials or ())
        case "axes":
            return first[0] in (row.axes or ()) or first[1] in (row.option_values or {}).values()
        case "components":
            return first in (row.components or ())
    return excess.field in ("cartons", "rug.size_text") and bool(row.cartons or row.rug or row.spread)
