"""Settings for reading a source's tables, and the salts of row fingerprints."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b

from domain.catalogue.model import Stream
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.model import FeedSettings, HeaderMapping, UnmappedReason
from domain.ingestion.reading import ReadTable, ReadTables
from domain.runs.model import KEPT_COLUMNS, RunColumn
from domain.sources.model import Source

_MAX_LISTED = 12
"""Maximum number of headers, and of sheets, in one message."""
_ADDED = frozenset({"media_base_url"})
"""Settings added later: left out of fingerprints when unset, so that existing sources are not normalised again."""
READING_VERSION = b"3"
"""Part of every fingerprint; incrementing it makes each source's next run normalise all rows."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table of the feed: its name, its column mapping, and the salt of its rows' fingerprints.

    `places` are the locations that its columns can state offers at; None where the rows themselves name them.
    """

    name: str | None
    plan: ReadPlan | None
    salt: bytes
    places: frozenset[str] | None = None


def context_of(source: Source, stream: Stream) -> FeedSettings:
    """Return the settings for reading the source's values."""
    config = source.config
    currency = config.get("currency")
    return FeedSettings(
        currency=str(currency).lower() if currency else None,
        decimal=str(config.get("decimal", "auto")),
        warehouse=config.get("warehouse"),
        price_code=config.get("price_code"),
        stream=stream.value,  # a plain string, because its repr is part of salts
        media_base_url=config.get("media_base_url"),
    )


def settings_digest(source: Source, stream: Stream) -> str:
    """Return a digest of all settings that affect how a snapshot is read."""
    settings = repr((source.connector, sorted(source.config.items(), key=str), stream.value))
    return blake2b(settings.encode(), digest_size=12).hexdigest()


def salt_of(mapping: HeaderMapping | None, context: FeedSettings) -> bytes:
    """Return the salt of row fingerprints, which changes with the mapping or the settings."""
    columns = [(c.position, c.column, c.field, sorted(c.settings.items())) for c in mapping.columns] if mapping else []
    told = {field.name: getattr(context, field.name) for field in fields(context)}
    settings = ", ".join(f"{name}={value!r}" for name, value in told.items() if value is not None or name not in _ADDED)
    # text without class names: a changed salt makes every row of every source be normalised again
    return blake2b(f"({READING_VERSION!r}, {columns!r}, Context({settings}))".encode(), digest_size=16).digest()


def places_of(mapping: HeaderMapping, plan: ReadPlan) -> frozenset[str] | None:
    """Return the locations that the columns name; None if a column names each row's location, or the sheet states no stock by location."""
    if not plan.covers_locations or any(column.field == "location" for column in mapping.columns):
        return None
    named = {str(column.settings["location"]) for column in mapping.columns if "location" in column.settings}
    return frozenset({*named, plan.location})


def is_stock_sheet(mapping: HeaderMapping) -> bool:
    """Return whether the columns state stock and give the items no name."""
    fields = {column.field for column in mapping.columns}
    return bool(fields & {"quantity", "availability"}) and not fields & {"title", "description", "variant_title"}


def unkeyed(tables: Sequence[ReadTable], stream: Stream) -> str:
    """Return the error message that lists the headers of tables without a key column."""
    wanted = " with a price or quantity." if stream == Stream.STOCK else "."
    places = ", ".join(table.sheet[:30] if table.sheet else "the file" for table in tables[:_MAX_LISTED])
    seen = "; ".join(_headers(table) for table in tables[:3])
    return (
        f"No column of {places or 'the file'} could be read as the item's SKU, key, GTIN or MPN{wanted} Seen: {seen}."
    )


def _headers(table: ReadTable) -> str:
    """Return the first headers of a table, shortened."""
    headers = [header[:30] for header in table.mapping.headers]
    more = f" and {len(headers) - _MAX_LISTED} more" if len(headers) > _MAX_LISTED else ""
    return ", ".join(headers[:_MAX_LISTED]) + more


def columns_of(tables: ReadTables) -> tuple[RunColumn, ...]:
    """Return the first KEPT_COLUMNS columns with their fields, sheet by sheet in the feed's order."""
    told: list[RunColumn] = []
    for table in tables.first:
        sheet = table.sheet[:200] if table.sheet else None
        fields: dict[int, RunColumn] = {}
        for column in table.mapping.columns:
            header = column.column[:200]
            read = None if column.is_alternative else column.field
            reason = UnmappedReason.AMBIGUOUS if column.is_alternative else None
            fields[column.position] = RunColumn(header, column.position, sheet, read, reason)
        for left_out in table.mapping.unmapped:
            header = left_out.column[:200]
            fields[left_out.position] = RunColumn(header, left_out.position, sheet, None, left_out.reason)
        told += [fields[position] for position in sorted(fields)]
        if len(told) >= KEPT_COLUMNS:
            break
    return tuple(told[:KEPT_COLUMNS])
