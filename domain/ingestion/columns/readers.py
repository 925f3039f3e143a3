"""What reading a column means: one function for each cell, made from the column and the settings of its source."""

from collections.abc import Callable
from typing import Any, TypeAlias

from domain.ingestion.drafts.draft import RowDraft
from domain.ingestion.model import Column, FeedSettings

CellReader: TypeAlias = Callable[[RowDraft, str, Any], None]
"""Reads one cell into a row's draft: the draft, the cell's text (never blank) and the cell itself."""
ReaderFactory: TypeAlias = Callable[[Column, FeedSettings], CellReader]


def decimal_mark(column: Column, settings: FeedSettings) -> Callable[[Any], str]:
    """The decimal mark of a cell: the column's or the source's; a number of a spreadsheet or of JSON has its point."""
    mark = column.setting("decimal") or settings.decimal
    return lambda cell: mark if cell.__class__ is str else "dot"
