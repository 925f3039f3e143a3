"""The JSON of mappings (docs/mapping.md)."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.wire.resource import Body, Resource, into
from domain.ingestion.columns.settings import LONGEST
from domain.ingestion.model import Column, MappingTier, UnmappedReason
from domain.kernel.resource import computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_of,
    integer,
    map_of,
    named,
    nullable,
    number,
    record,
    strict_object,
    text,
    timestamp,
)
from domain.mappings.model import Confirmation, MappingStatus, SourceMapping
from domain.mappings.proposing import MOST_COLUMNS, SAMPLE_ROWS

POSITION = integer(0, least=0, description="The column's place in the table, counted from 0.")
FIELD = text("sku", longest=200, description="What the column means (docs/mapping.md#fields).")
COLUMN = record(
    None,
    {
        "column": text("Item No.", shortest=0, description="The header, exactly as the file has it."),
        "position": POSITION,
        "prefix": boolean(False, "One of a numbered family: Image 1, Image 2."),
        "field": FIELD,
        "settings": map_of({}, {"unit": "in"}, "How its values are read: unit, location, currency and the like."),
        "tier": enum(*MappingTier) | {"description": "What that rests on."},
        "confidence": number(1.0, "How sure it is, from 0 to 1."),
    },
)
UNMAPPED = named(
    "unmapped_column",
    record(
        None,
        {"column": text("Internal note", shortest=0), "position": POSITION, "reason": enum(*UnmappedReason)},
    ),
)


def _column(column: Column) -> Mapping[str, Any]:
    return {
        "column": column.column,
        "position": column.position,
        "prefix": column.prefix,
        "field": column.field,
        "settings": dict(column.settings),
        "tier": column.tier,
        "confidence": column.confidence,
    }


MAPPING = Resource[SourceMapping](
    "mapping",
    {
        "id": id_of("map"),
        "source": id_of("src"),
        "status": enum(*MappingStatus),
        "headers": array(text("Item No.", shortest=0), most=MOST_COLUMNS),
        "samples": array(
            array(text("LM-1001", shortest=0), most=MOST_COLUMNS),
            most=SAMPLE_ROWS,
            description="The first rows below the headers; long cells are shortened.",
        ),
        "columns": computed(
            array(COLUMN, most=MOST_COLUMNS, description="The columns that are read."),
            lambda mapping, _: [_column(column) for column in mapping.columns],
        ),
        "unmapped": computed(
            array(UNMAPPED, most=MOST_COLUMNS, description="The columns that are not read, and why."),
            lambda mapping, _: [
                {"column": one.column, "position": one.position, "reason": one.reason} for one in mapping.unmapped
            ],
        ),
        "confirmed_at": optional(timestamp("When a person last confirmed it.")),
        "created_at": timestamp(),
        "updated_at": timestamp(),
    },
    path="/v1/mappings/{id}",
    title="source_mapping",
)
EDIT: Final[Schema] = strict_object(
    {
        "position": integer(0, least=0, most=MOST_COLUMNS, description="Needed where several columns have one header."),
        "column": text("Item No.", shortest=0, longest=1 << 16, description="The exact header, or beside a position."),
        "field": nullable(FIELD) | {"description": "Null for a column that is not to be read."},
        "settings": {
            "type": "object",
            "description": "Replaces the column's settings; left out, they stay while the field does.",
            "additionalProperties": text("in", longest=LONGEST),
            "maxProperties": 10,
            "examples": [{}],
        },
    },
    ("field",),
    "What one column means.",
)
CONFIRM = Body(
    strict_object(
        {"columns": array(EDIT, most=MOST_COLUMNS, description="Changes; all other columns are confirmed as they are.")}
    ),
    into(Confirmation),
    required=False,
    limit=1 << 20,
)
