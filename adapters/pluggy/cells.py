"""Bounds every cell that a connector hands over, whoever wrote it: what is beyond is taken as absent, never cut.

Half a price, a measure or a key would be another one; a text that is longer than any a product keeps says nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from connectors.sdk.context import Limits
from domain.ingestion.model import Row

Tell = Callable[[str, int | None, str | None], None]
"""Told of what is left out: why, the row's line and the column's header."""

_DIGITS = 200
_BITS = 660
"""The room that whole numbers of 200 digits, rounded down, have."""
_USUAL = 2**63
_SMALL_ITEMS = 50 + 50 * 20
_SMALL_CHARS = 50 * 20 * 500
_DEPTH = 32
_NESTED = 8
"""How many times the characters of a text a list or an object may hold."""
_LONGEST_HEADER = 1_000


def named(headers: Sequence[str], tell: Tell) -> tuple[str, ...]:
    """The headers, over-long ones cut; no column is known by so long a name, so nothing is read otherwise for it."""
    if max(map(len, headers), default=0) <= _LONGEST_HEADER:
        return tuple(headers)
    for place, header in enumerate(headers, start=1):
        if len(header) > _LONGEST_HEADER:
            tell(f"The header of column {place} is longer than {_LONGEST_HEADER:,} characters; it is cut.", None, None)
    return tuple(header[:_LONGEST_HEADER] for header in headers)


def bounded(rows: Iterable[Row], headers: Sequence[str], limits: Limits, tell: Tell) -> Iterator[Row]:
    """The rows, each cell within `limits.cell_chars` and `limits.cell_items` or None."""
    most = limits.cell_chars
    inside = 2 if limits.cell_items >= _SMALL_ITEMS and limits.cell_chars * _NESTED >= _SMALL_CHARS else 0
    for row in rows:
        try:
            # Texts that are short enough taken together are so each by itself, which costs one look a row.
            fits = len("".join(row[1])) <= most  # type: ignore[arg-type]  # cells that are no text are told by TypeError
        except TypeError:
            fits = _all_small(row[1], most, inside)
        yield row if fits else _fitted(row, headers, limits, tell)


def _all_small(cells: Iterable[Any], most: int, inside: int) -> bool:
    """Whether nothing needs a closer look: texts, usual numbers, blanks, and short lists and objects of such.

    A list or an object that passes has at most 50 objects of 10 names and texts of 500 characters; `inside` is how many
    levels of them may be there.
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
    """Why a cell is beyond its bounds, or None."""
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
    """The same for a list or an object: its items and texts at every level are counted together."""
    items, characters = limits.cell_items, limits.cell_chars * _NESTED
    level = [cell]
    for _ in range(_DEPTH):
        items -= sum(map(len, level))
        if items < 0:
            return f"holds more than {limits.cell_items:,} items"
        held = [item for value in level for item in _held(value)]
        characters -= sum(len(item) for item in held if isinstance(item, str))
        if characters < 0:
            return f"holds more than {limits.cell_chars * _NESTED:,} characters"
        if fault := next(filter(None, map(_number_fault, held)), None):
            return f"holds what {fault}"
        level = [item for item in held if isinstance(item, (list, tuple, dict))]
        if not level:
            return None
    return f"is nested more than {_DEPTH} levels deep"


def _held(value: Any) -> Iterable[Any]:
    """What a list holds; the names and the values of an object."""
    return chain(value, value.values()) if isinstance(value, dict) else value
