"""Limits of every cell from any connector: a cell beyond them is treated as absent, never truncated.

A truncated price, measure or key would be another value, and no product keeps a longer text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from connectors.sdk.context import Limits
from domain.ingestion.model import Row

Tell = Callable[[str, int | None, str | None], None]
"""Receives the reason, the row's line and the column's header of an omitted cell."""

_DIGITS = 200
_BITS = 660
"""Bits of a whole number of 200 digits, rounded down."""
_USUAL = 2**63
_SMALL_ITEMS = 50 + 50 * 20
_SMALL_CHARS = 50 * 20 * 500
_DEPTH = 32
_NESTED = 8
"""Characters of a list or an object, as a multiple of those of a text."""
_LONGEST_HEADER = 1_000


def named(headers: Sequence[str], tell: Tell) -> tuple[str, ...]:
    """Return the headers, truncating those that are too long; no known column has such a long name."""
    if max(map(len, headers), default=0) <= _LONGEST_HEADER:
        return tuple(headers)
    for place, header in enumerate(headers, start=1):
        if len(header) > _LONGEST_HEADER:
            tell(f"The header of column {place} is longer than {_LONGEST_HEADER:,} characters; it is cut.", None, None)
    return tuple(header[:_LONGEST_HEADER] for header in headers)


def bounded(rows: Iterable[Row], headers: Sequence[str], limits: Limits, tell: Tell) -> Iterator[Row]:
    """Yield the rows, with None for each cell beyond `limits.cell_chars` or `limits.cell_items`."""
    most = limits.cell_chars
    inside = 2 if limits.cell_items >= _SMALL_ITEMS and limits.cell_chars * _NESTED >= _SMALL_CHARS else 0
    for row in rows:
        try:
            # If all texts together are short enough, each of them is; this takes one check a row.
            fits = len("".join(row[1])) <= most  # type: ignore[arg-type]  # other cells raise TypeError
        except TypeError:
            fits = _all_small(row[1], most, inside)
        yield row if fits else _fitted(row, headers, limits, tell)


def _all_small(cells: Iterable[Any], most: int, inside: int) -> bool:
    """Return whether all cells are clearly small: texts, usual numbers, blanks, and short lists and objects of these.

    An accepted list or object has at most 50 objects of 10 names and texts of 500 characters; `inside` is the number of
    permitted levels.
    """
    for cell in cells:
        kind = cell.__class__
        if kind is str:
            small = len(cell) <= most
        elif kind is int:
            small = -_USUAL < cell < _USUAL
        elif kind is list:
            small = inside > 1 and len(cell) <= 50 and _all_small(cell, 500, 1)
        elif kind is dict:
            small = inside > 0 and len(cell) <= 10 and _all_small(chain(cell, cell.values()), 500, 0)
        else:
            small = cell is None or kind is bool
        if not small:
            return False
    return True


def _fitted(row: Row, headers: Sequence[str], limits: Limits, tell: Tell) -> Row:
    line, cells = row
    faults = [
        (place, fault)
        for place, cell in enumerate(cells)
        if cell is not None
        and not (cell.__class__ is str and len(cell) <= limits.cell_chars)
        and (fault := _fault(cell, limits))
    ]
    if not faults:
        return row
    kept = list(cells)
    for place, fault in faults:
        kept[place] = None
        tell(f"The cell {fault}; it is left out.", line, headers[place] if place < len(headers) else None)
    return line, kept


def _fault(cell: Any, limits: Limits) -> str | None:
    """Return why a cell is beyond its limits, or None."""
    if cell.__class__ is bool:
        return None
    if isinstance(cell, str):
        return f"is longer than {limits.cell_chars:,} characters" if len(cell) > limits.cell_chars else None
    if isinstance(cell, (list, tuple, dict)):
        return _nested_fault(cell, limits)
    return _number_fault(cell)


def _number_fault(cell: Any) -> str | None:
    if isinstance(cell, int):
        far = cell.bit_length() > _BITS
    elif isinstance(cell, Decimal):
        far = abs(cell.adjusted()) > _DIGITS or len(cell.as_tuple().digits) > _DIGITS
    else:
        far = False
    return f"is a number of more than {_DIGITS} digits" if far else None


def _nested_fault(cell: Any, limits: Limits) -> str | None:
    """Return why a list or an object is beyond its limits, or None; values at all levels are counted together."""
    items, characters = limits.cell_items, limits.cell_chars * _NESTED
    level = [cell]
    for _ in range(_DEPTH):
        items -= sum(map(len, level))
        if items < 0:
            return f"holds more than {limits.cell_items:,} items"
        inner = [item for value in level for item in _contents(value)]
        characters -= sum(len(item) for item in inner if isinstance(item, str))
        if characters < 0:
            return f"holds more than {limits.cell_chars * _NESTED:,} characters"
        if fault := next(filter(None, map(_number_fault, inner)), None):
            return f"holds what {fault}"
        level = [item for item in inner if isinstance(item, (list, tuple, dict))]
        if not level:
            return None
    return f"is nested more than {_DEPTH} levels deep"


def _contents(value: Any) -> Iterable[Any]:
    """Return the values of a list, or the names and values of an object."""
    return chain(value, value.values()) if isinstance(value, dict) else value
