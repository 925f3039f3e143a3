"""Limits of the size of each header and cell that a connector returns.

A cell above the limits is treated as absent, and not truncated: a truncated price, measure or key would be a different
value, and no product keeps a longer text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from connectors.sdk.context import Limits
from domain.ingestion.model import Row

CellReporter = Callable[[str, int | None, str | None], None]
"""Function that reports an omitted cell, by the reason, the line of the row and the header of the column."""

_MAX_DIGITS = 200
_MAX_BITS = 660
"""Maximum bits of a whole number, an approximation of _MAX_DIGITS decimal digits."""
_MAX_USUAL_NUMBER = 2**63
_SMALL_ITEMS = 50 + 50 * 20
_SMALL_CHARS = 50 * 20 * 500
_MAX_DEPTH = 32
_NESTED_FACTOR = 8
"""Maximum characters of all texts in a list or an object, as a multiple of `limits.cell_chars`."""
_MAX_HEADER_CHARS = 1_000


def truncate_headers(headers: Sequence[str], report: CellReporter) -> tuple[str, ...]:
    """Return the headers, with those longer than 1,000 characters truncated and reported."""
    if max(map(len, headers), default=0) <= _MAX_HEADER_CHARS:
        return tuple(headers)
    for number, header in enumerate(headers, start=1):
        if len(header) > _MAX_HEADER_CHARS:
            report(
                f"The header of column {number} is longer than {_MAX_HEADER_CHARS:,} characters; it is truncated.",
                None,
                None,
            )
    return tuple(header[:_MAX_HEADER_CHARS] for header in headers)


def omit_oversized_cells(
    rows: Iterable[Row], headers: Sequence[str], limits: Limits, report: CellReporter
) -> Iterator[Row]:
    """Yield the rows, with each cell above `limits.cell_chars` or `limits.cell_items` reported and replaced by None."""
    max_chars = limits.cell_chars
    levels = 2 if limits.cell_items >= _SMALL_ITEMS and limits.cell_chars * _NESTED_FACTOR >= _SMALL_CHARS else 0
    for row in rows:
        try:
            # If all texts together are short enough, each of them is; this takes one check a row.
            fits = len("".join(row[1])) <= max_chars  # type: ignore[arg-type]  # other cells raise TypeError
        except TypeError:
            fits = _are_all_small(row[1], max_chars, levels)
        yield row if fits else _bound_row(row, headers, limits, report)


def _are_all_small(cells: Iterable[Any], max_chars: int, levels: int) -> bool:
    """Return whether a quick test shows that all cells are within the limits; False means that each must be checked.

    Short texts, whole numbers below 2^63, None and booleans pass the test. Lists of at most 50 elements and objects of
    at most 10 members pass if their contents pass, with texts of at most 500 characters.

    Args:
        cells: Cells of a row, or the contents of a cell.
        max_chars: Maximum characters of a text.
        levels: Permitted nesting: 2 for lists of objects, 1 for objects only, 0 for neither lists nor objects.
    """
    for cell in cells:
        kind = cell.__class__
        if kind is str:
            small = len(cell) <= max_chars
        elif kind is int:
            small = -_MAX_USUAL_NUMBER < cell < _MAX_USUAL_NUMBER
        elif kind is list:
            small = levels > 1 and len(cell) <= 50 and _are_all_small(cell, 500, 1)
        elif kind is dict:
            small = levels > 0 and len(cell) <= 10 and _are_all_small(chain(cell, cell.values()), 500, 0)
        else:
            small = cell is None or kind is bool
        if not small:
            return False
    return True


def _bound_row(row: Row, headers: Sequence[str], limits: Limits, report: CellReporter) -> Row:
    line, cells = row
    faults = [
        (index, fault)
        for index, cell in enumerate(cells)
        if cell is not None
        and not (cell.__class__ is str and len(cell) <= limits.cell_chars)
        and (fault := _find_fault(cell, limits))
    ]
    if not faults:
        return row
    bounded = list(cells)
    for index, fault in faults:
        bounded[index] = None
        report(f"The cell {fault}; it is ignored.", line, headers[index] if index < len(headers) else None)
    return line, bounded


def _find_fault(cell: Any, limits: Limits) -> str | None:
    """Return how a cell exceeds the limits, such as "is longer than 1,000 characters"; None for a cell within them."""
    if cell.__class__ is bool:
        return None
    if isinstance(cell, str):
        return f"is longer than {limits.cell_chars:,} characters" if len(cell) > limits.cell_chars else None
    if isinstance(cell, (list, tuple, dict)):
        return _find_nested_fault(cell, limits)
    return _find_number_fault(cell)


def _find_number_fault(cell: Any) -> str | None:
    if isinstance(cell, int):
        is_too_long = cell.bit_length() > _MAX_BITS
    elif isinstance(cell, Decimal):
        is_too_long = abs(cell.adjusted()) > _MAX_DIGITS or len(cell.as_tuple().digits) > _MAX_DIGITS
    else:
        is_too_long = False
    return f"is a number with more than {_MAX_DIGITS} digits" if is_too_long else None


def _find_nested_fault(cell: Any, limits: Limits) -> str | None:
    """Return how a list or an object exceeds the limits, as `_find_fault` does; None for one within them."""
    items, characters = limits.cell_items, limits.cell_chars * _NESTED_FACTOR
    level = [cell]
    for _ in range(_MAX_DEPTH):
        items -= sum(map(len, level))
        if items < 0:
            return f"contains more than {limits.cell_items:,} items"
        inner = [item for value in level for item in _iterate_contents(value)]
        characters -= sum(len(item) for item in inner if isinstance(item, str))
        if characters < 0:
            return f"contains more than {limits.cell_chars * _NESTED_FACTOR:,} characters"
        if fault := next(filter(None, map(_find_number_fault, inner)), None):
            return f"contains a value that {fault}"
        level = [item for item in inner if isinstance(item, (list, tuple, dict))]
        if not level:
            return None
    return f"is nested more than {_MAX_DEPTH} levels deep"


def _iterate_contents(value: Any) -> Iterable[Any]:
    """Return an iterable over the elements of a list, or over the names and values of an object."""
    return chain(value, value.values()) if isinstance(value, dict) else value
