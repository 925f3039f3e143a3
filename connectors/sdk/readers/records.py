"""Turns nested records into a table: dotted columns, one row a variant, headers by a bounded first look."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.tables import Cell, Report, Row, Table

LOOK = 200
_DEPTH = 6
_VARIANTS = "variants"

Record = tuple[int, dict[str, Any]]


def table_of(records: Iterator[Record], ctx: Context, *, variants_path: str | None = None) -> Table:
    """One table of the records. Raises BadData when there are none.

    Objects in a record become dotted columns (`brand.name`), arrays of plain values stay lists, arrays of objects stay
    as they are. The array of objects at `variants_path` (None: `variants`, when a record has one) gives a row for each
    of its elements, the record's own columns repeated. Headers are those of the first 200 records, in order of
    appearance; what comes later is reported once for each name and left out.
    """
    look = list(islice(records, LOOK))
    if not look:
        raise BadData("the feed holds no records")
    path = (variants_path or _VARIANTS).split(".")
    if variants_path is None and not any(_variants(record, path) for _, record in look):
        path = []
    headers: dict[str, None] = {}
    for _, record in look:
        for row in flat_rows(record, path):
            headers.update(dict.fromkeys(row))
    if len(headers) > ctx.limits.columns:
        raise BadData(f"the feed has {len(headers)} columns; at most {ctx.limits.columns} are read")
    names = tuple(headers)
    return Table(sheet=None, headers=names, rows=_rows(chain(look, records), names, path, ctx))


def _rows(records: Iterator[Record], headers: tuple[str, ...], path: list[str], ctx: Context) -> Iterator[Row]:
    known = set(headers)
    for number, record in records:
        for row in flat_rows(record, path):
            if not row.keys() <= known:
                for name in row.keys() - known:
                    ctx.report(Report(f"the column first occurs after {LOOK} records; it is left out", number, name))
                known.update(row)
            yield number, [row.get(name) for name in headers]


def flat_rows(record: dict[str, Any], path: list[str]) -> list[dict[str, Cell]]:
    """A record's rows, each a mapping of dotted name to cell; `path` names the variants, [] for none."""
    variants = _variants(record, path) if path else []
    prefix = ".".join(path)
    if not variants:
        return [flat(record)]
    own = flat(record, leave_out=prefix)
    return [{**own, **flat(variant, prefix=f"{prefix}.")} for variant in variants]


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
    """The record's plain values and lists by dotted name; deeper than six levels an object stays an object."""
    row: dict[str, Cell] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if name == leave_out:
            continue
        if isinstance(value, dict) and value and depth < _DEPTH:
            row.update(flat(value, prefix=f"{name}.", leave_out=leave_out, depth=depth + 1))
        else:
            row[name] = None if value == {} else value
    return row
