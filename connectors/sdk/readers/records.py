"""Conversion of nested records to a table with dotted column names and one row per variant."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ..context import MIB, Context
from ..errors import BadData
from ..tables import Cell, Report, Row, Table

SAMPLE_RECORDS = 200
_SAMPLE_SIZE = 4 * MIB
_MAX_ROWS = 5_000
_MAX_REPEATED_SIZE = 64 * MIB
_MIN_ROWS = 50
_MAX_DEPTH = 6
_VARIANTS_NAME = "variants"

Record = tuple[int, dict[str, Any]]


def build_records_table(
    records: Iterator[Record], ctx: Context, *, variants_path: str | None = None, fixed_headers: Iterable[str] = ()
) -> Table:
    """Return one table of the records. Raises BadData if there are no records.

    Members of nested objects become columns with dotted names (`brand.name`). Arrays become cells. The headers are the
    columns of the first 200 records (fewer if they are large) in order of appearance. A column that first occurs later
    is reported once and ignored.

    Args:
        records: The records with their numbers.
        ctx: The environment of the connector.
        variants_path: Dotted path of the array whose elements become rows. Each row repeats the other columns of the
            record; a record has at most 5,000 rows, fewer if these columns are long. None means `variants`.
        fixed_headers: Headers of the first columns, which the table has even if no record has them.
    """
    sample = list(_take_sample(records))
    if not sample:
        raise BadData("the feed contains no records")
    path = (variants_path or _VARIANTS_NAME).split(".")
    if variants_path is None and not any(_find_variants(record, path) for _, record in sample):
        path = []
    headers: dict[str, None] = dict.fromkeys(fixed_headers)
    for _, record in sample:
        for row in flatten_rows(record, path):
            headers.update(dict.fromkeys(row))
            if len(headers) > ctx.limits.columns:
                raise BadData(
                    f"the feed has at least {len(headers)} columns; at most {ctx.limits.columns} are supported"
                )
    names = tuple(headers)
    return Table(sheet=None, headers=names, rows=_iterate_rows(chain(sample, records), names, path, ctx))


def _take_sample(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records that determine the table's columns: the first 200, or fewer if they exceed about 4 MiB."""
    left = _SAMPLE_SIZE
    for count, record in enumerate(records, start=1):
        yield record
        left -= estimate_size(record[1])
        if left < 0 or count == SAMPLE_RECORDS:
            return


def estimate_size(value: Any) -> int:
    """Return the approximate size of a JSON value: the number of characters, plus eight for each value at any level."""
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


def _iterate_rows(records: Iterator[Record], headers: tuple[str, ...], path: list[str], ctx: Context) -> Iterator[Row]:
    known = set(headers)
    max_known = len(headers) + ctx.limits.columns
    for number, record in records:
        count = 0
        for row in flatten_rows(record, path):
            if len(known) < max_known and not row.keys() <= known:
                for name in row.keys() - known:
                    ctx.report(
                        Report(f"the column first occurs after {SAMPLE_RECORDS} records; it is ignored", number, name)
                    )
                known.update(row)
            count += 1
            yield number, [row.get(name) for name in headers]
        if count > _MIN_ROWS and count < (variants := len(_find_variants(record, path))):
            ctx.report(Report(f"only the first {count:,} of {variants:,} variants are read", number))


def flatten_rows(record: dict[str, Any], path: list[str]) -> Iterator[dict[str, Cell]]:
    """Yield the rows of a record as mappings of dotted names to cells, one per variant, or one for the whole record.

    `path` leads to the array of variants in the record. An empty path means that records have no variants.
    """
    variants = _find_variants(record, path) if path else []
    prefix = ".".join(path)
    if not variants:
        yield flatten_record(record)
        return
    repeated = flatten_record(record, excluded_name=prefix)
    for variant in variants[: _compute_max_rows(repeated, len(variants))]:
        yield {**repeated, **flatten_record(variant, prefix=f"{prefix}.")}


def _compute_max_rows(repeated: Mapping[str, Cell], count: int) -> int:
    """Return the maximum number of rows of a record with `count` variants.

    The larger the cells `repeated`, which each row repeats, the lower the maximum.
    """
    if count <= _MIN_ROWS:
        return count
    return max(_MIN_ROWS + 1, min(_MAX_ROWS, _MAX_REPEATED_SIZE // estimate_size(repeated)))


def _find_variants(record: Mapping[str, Any], path: list[str]) -> list[dict[str, Any]]:
    value: Any = record
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return []
    return [element for element in value if isinstance(element, dict)]


def flatten_record(
    record: Mapping[str, Any], *, prefix: str = "", excluded_name: str | None = None, depth: int = 1
) -> dict[str, Cell]:
    """Return the values and lists in a record by dotted name; objects nested deeper than six levels stay objects.

    `prefix` starts each name, the member named `excluded_name` is omitted, and `depth` is the current level of nesting.
    """
    row: dict[str, Cell] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if name == excluded_name:
            continue
        if isinstance(value, dict) and value and depth < _MAX_DEPTH:
            row.update(flatten_record(value, prefix=f"{name}.", excluded_name=excluded_name, depth=depth + 1))
        else:
            row[name] = None if value == {} else "" if value is None else value  # null states that the value is absent
    return row
