"""Conversion of nested records to a table: dotted columns, one row a variant, headers from the first records."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ..context import MIB, Context
from ..errors import BadData
from ..tables import Cell, Report, Row, Table

LOOK = 200
_LOOK_SIZE = 4 * MIB
_MOST_ROWS = 5_000
_REPEATED = 64 * MIB
_FEW = 50
_DEPTH = 6
_VARIANTS = "variants"

Record = tuple[int, dict[str, Any]]


def table_of(
    records: Iterator[Record], ctx: Context, *, variants_path: str | None = None, always: Iterable[str] = ()
) -> Table:
    """One table of the records. Raises BadData when there are none.

    Objects in a record become dotted columns (`brand.name`), arrays of plain values stay lists, arrays of objects stay
    as they are. The array of objects at `variants_path` (None: `variants`, when a record has one) gives a row for each
    of its elements (the first 5,000, and fewer where the record's own columns are long), the record's own columns
    repeated. Headers are those of the first 200 records (or fewer, when they are large), in order of appearance; what
    comes later is reported once for each name and left out. `always` are headers to have in any case, ahead of them.
    """
    look = list(_first(records))
    if not look:
        raise BadData("the feed holds no records")
    path = (variants_path or _VARIANTS).split(".")
    if variants_path is None and not any(_variants(record, path) for _, record in look):
        path = []
    headers: dict[str, None] = dict.fromkeys(always)
    for _, record in look:
        for row in flat_rows(record, path):
            headers.update(dict.fromkeys(row))
            if len(headers) > ctx.limits.columns:
                raise BadData(f"the feed has {len(headers)} columns; at most {ctx.limits.columns} are read")
    names = tuple(headers)
    return Table(sheet=None, headers=names, rows=_rows(chain(look, records), names, path, ctx))


def _first(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the first records, which define the columns: at most 200, and about 4 MiB."""
    left = _LOOK_SIZE
    for place, record in enumerate(records, start=1):
        yield record
        left -= size_of(record[1])
        if left < 0 or place == LOOK:
            return


def size_of(value: Any) -> int:
    """Return the approximate size of a value: its characters, and eight for every value in it."""
    size, pending = 0, [value]
    while pending:
        inner = pending.pop()
        size += 8
        if isinstance(inner, str):
            size += len(inner)
        elif isinstance(inner, dict):
            size += sum(map(len, inner))
            pending.extend(inner.values())
        elif isinstance(inner, list):
            pending.extend(inner)
    return size


def _rows(records: Iterator[Record], headers: tuple[str, ...], path: list[str], ctx: Context) -> Iterator[Row]:
    known = set(headers)
    most = len(headers) + ctx.limits.columns
    for number, record in records:
        count = 0
        for row in flat_rows(record, path):
            if len(known) < most and not row.keys() <= known:
                for name in row.keys() - known:
                    ctx.report(Report(f"the column first occurs after {LOOK} records; it is left out", number, name))
                known.update(row)
            count += 1
            yield number, [row.get(name) for name in headers]
        if count > _FEW and count < (given := len(_variants(record, path))):
            ctx.report(Report(f"of {given:,} variants only the first {count:,} are read", number))


def flat_rows(record: dict[str, Any], path: list[str]) -> Iterator[dict[str, Cell]]:
    """Yield a record's rows, each a mapping of dotted name to cell; `path` leads to the variants, [] for none."""
    variants = _variants(record, path) if path else []
    prefix = ".".join(path)
    if not variants:
        yield flat(record)
        return
    own = flat(record, leave_out=prefix)
    for variant in variants[: _most(own, len(variants))]:
        yield {**own, **flat(variant, prefix=f"{prefix}.")}


def _most(own: Mapping[str, Cell], count: int) -> int:
    """Return how many of `count` rows a record may give, as each repeats the record's own cells."""
    return count if count <= _FEW else max(_FEW + 1, min(_MOST_ROWS, _REPEATED // size_of(own)))


def _variants(record: Mapping[str, Any], path: list[str]) -> list[dict[str, Any]]:
    value: Any = record
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return []
    return [element for element in value if isinstance(element, dict)]


def flat(
    record: Mapping[str, Any], *, prefix: str = "", leave_out: str | None = None, depth: int = 1
) -> dict[str, Cell]:
    """Return the record's plain values and lists by dotted name; objects deeper than six levels stay objects."""
    row: dict[str, Cell] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if name == leave_out:
            continue
        if isinstance(value, dict) and value and depth < _DEPTH:
            row.update(flat(value, prefix=f"{name}.", leave_out=leave_out, depth=depth + 1))
        else:
            row[name] = None if value == {} else "" if value is None else value  # null states that the value is absent
    return row
