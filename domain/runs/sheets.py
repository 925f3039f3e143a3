"""Settings for reading a source's tables, and salts: parts of row fingerprints that change if these settings change."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

from domain.catalogue.model import Stream
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, UnmappedReason
from domain.ingestion.snapshot_results import MappedTable, TableSummary
from domain.runs.model import MAX_LISTED_COLUMNS, RunColumn
from domain.sources.model import Source

_MAX_LISTED = 12
"""Maximum number of headers, and of sheets, in one message."""
_LATER_SETTINGS = frozenset({"media_base_url", "length_unit", "weight_unit"})
"""Settings that are not part of salts if unset: they were added later, and existing salts must not change."""
MISSING_DATA_DETAILS = {
    "key": "No column was recognised as the item's key.",
    "stock": "No column was recognised as stock or a price.",
}
"""The description of each kind of missing data (see `HeaderMapping.missing`)."""
READING_VERSION = b"4"
"""Part of every salt. Increment it to make each source's next run normalise all rows again."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table of a feed.

    Attributes:
        name: Name of the table, if it has one.
        plan: How its columns are read; None for pushed records.
        salt: Part of its rows' fingerprints, derived from the mapping and the settings.
        locations: Stock locations that have columns. None if a column contains the location of each row, or if the
            table has no stock by location.
    """

    name: str | None
    plan: ReadPlan | None
    salt: bytes
    locations: frozenset[str] | None = None


def create_feed_settings(source: Source, stream: Stream) -> FeedSettings:
    """Return the settings for reading values of the source's stream, from the source's configuration."""
    config = source.config
    currency = config.get("currency")
    return FeedSettings(
        currency=str(currency).lower() if currency else None,
        decimal=str(config.get("decimal", "auto")),
        warehouse=config.get("warehouse"),
        price_code=config.get("price_code"),
        stream=stream.value,  # a plain string, because its repr is part of salts
        media_base_url=config.get("media_base_url"),
        length_unit=config.get("default_length_unit"),
        weight_unit=config.get("default_weight_unit"),
    )


def compute_settings_digest(source: Source, stream: Stream) -> str:
    """Return a digest of the source's settings that affect how a snapshot of the stream is read."""
    settings = repr((source.connector, sorted(source.config.items(), key=str), stream.value))
    return blake2b(settings.encode(), digest_size=12).hexdigest()


def compute_salt(mapping: HeaderMapping | None, settings: FeedSettings) -> bytes:
    """Return the salt of a table's row fingerprints, which depends on the column mapping and the settings."""
    columns = [_describe_column(column) for column in mapping.columns] if mapping else []
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    encoded_settings = ", ".join(
        f"{name}={value!r}" for name, value in values.items() if value is not None or name not in _LATER_SETTINGS
    )
    # text without class names, because a changed salt makes every source normalise all rows again
    return blake2b(f"({READING_VERSION!r}, {columns!r}, Context({encoded_settings}))".encode(), digest_size=16).digest()


def _describe_column(column: Column) -> tuple[Any, ...]:
    """Return the parts of a column on which the result of reading depends; later parts are omitted if they are empty."""
    later = [sorted(column.values.items()), sorted(column.ignored_problems)]
    described = (column.position, column.column, column.field, sorted(column.settings.items()))
    return (*described, *later) if any(later) else described


def find_column_locations(mapping: HeaderMapping, plan: ReadPlan) -> frozenset[str] | None:
    """Return the stock locations for which the table has columns.

    Returns None if a column contains the location of each row, or if the table has no stock by location.
    """
    if not plan.covers_locations or any(column.field == "location" for column in mapping.columns):
        return None
    named = {str(column.settings["location"]) for column in mapping.columns if "location" in column.settings}
    return frozenset({*named, plan.default_location})


def is_stock_sheet(mapping: HeaderMapping) -> bool:
    """Return whether the table has columns for stock, but none for titles or descriptions."""
    fields = {column.field for column in mapping.columns}
    return bool(fields & {"quantity", "availability"}) and not fields & {"title", "description", "variant_title"}


def describe_unkeyed_tables(tables: Sequence[MappedTable], stream: Stream) -> str:
    """Return an error message that no table has the required columns: a key and, for a stock stream, stock or prices.

    The message contains the names and headers of the first tables.
    """
    table_names = ", ".join(table.sheet[:30] if table.sheet else "the file" for table in tables[:_MAX_LISTED])
    headers = "; ".join(_format_headers(table) for table in tables[:3])
    if stream == Stream.STOCK:
        reason = (
            f"No stock can be read from {table_names or 'the file'}. Each table requires a recognised column for the "
            f"item's SKU, key, GTIN or MPN, and one for stock or prices."
        )
    else:
        reason = f"No column of {table_names or 'the file'} was recognised as the item's SKU, key, GTIN or MPN."
    return f"{reason} Headers: {headers}."


def _format_headers(table: MappedTable) -> str:
    """Return the first headers of a table, shortened and joined by commas."""
    headers = [header[:30] for header in table.mapping.headers]
    more = f" and {len(headers) - _MAX_LISTED} more" if len(headers) > _MAX_LISTED else ""
    return ", ".join(headers[:_MAX_LISTED]) + more


def describe_columns(tables: TableSummary) -> tuple[RunColumn, ...]:
    """Return the feed's first MAX_LISTED_COLUMNS columns with their fields, in order."""
    descriptions: list[RunColumn] = []
    for table in tables.listed_tables:
        sheet = table.sheet[:200] if table.sheet else None
        fields: dict[int, RunColumn] = {}
        for column in table.mapping.columns:
            header = column.column[:200]
            field = None if column.is_alternative else column.field
            reason = UnmappedReason.AMBIGUOUS if column.is_alternative else None
            fields[column.position] = RunColumn(header, column.position, sheet, field, reason)
        for unmapped in table.mapping.unmapped:
            header = unmapped.column[:200]
            fields[unmapped.position] = RunColumn(header, unmapped.position, sheet, None, unmapped.reason)
        descriptions += [fields[position] for position in sorted(fields)]
        if len(descriptions) >= MAX_LISTED_COLUMNS:
            break
    return tuple(descriptions[:MAX_LISTED_COLUMNS])
