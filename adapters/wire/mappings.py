"""JSON of column mappings (docs/mapping.md)."""

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

POSITION = integer(0, least=0, description="The column's position in the table, from 0.")
FIELD = text("sku", longest=200, description="The field that the column is mapped to (docs/mapping.md#fields).")
COLUMN = record(
    None,
    {
        "column": text("Item No.", shortest=0, description="The header exactly as in the file."),
        "position": POSITION,
        "prefix": boolean(False, "The column is one of a numbered series, such as Image 1 and Image 2."),
        "field": FIELD,
        "settings": map_of({}, {"unit": "in"}, "How the values are read, such as unit, location or currency."),
        "tier": enum(*MappingTier) | {"description": "How the field was determined."},
        "confidence": number(1.0, "Confidence in the field, from 0 to 1."),
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
            array(COLUMN, most=MOST_COLUMNS, description="The columns that are imported."),
            lambda mapping, _: [_column(column) for column in mapping.columns],
        ),
        "unmapped": computed(
            array(UNMAPPED, most=MOST_COLUMNS, description="The columns that are not imported, with the reasons."),
            lambda mapping, _: [
                {"column": column.column, "position": column.position, "reason": column.reason}
                for column in mapping.unmapped
            ],
        ),
        "confirmed_at": optional(timestamp("When a user last confirmed the mapping.")),
        "created_at": timestamp(),
        "updated_at": timestamp(),
    },
    path="/v1/mappings/{id}",
    title="source_mapping",
)
EDIT: Final[Schema] = strict_object(
    {
        "position": integer(
            0, least=0, most=MOST_COLUMNS, description="Required if several columns have the same header."
        ),
        "column": text(
            "Item No.", shortest=0, longest=1 << 16, description="The exact header; optional if `position` is given."
        ),
        "field": nullable(FIELD) | {"description": "Null excludes the column from the import."},
        "settings": {
            "type": "object",
            "description": "Replaces the column's settings. If omitted, they are kept unless the field changes.",
            "additionalProperties": text("in", longest=LONGEST),
            "maxProperties": 10,
            "examples": [{}],
        },
    },
    ("field",),
    "The mapping of one column.",
)
CONFIRM = Body(
    strict_object(
        {"columns": array(EDIT, most=MOST_COLUMNS, description="Changed columns; all others are confirmed unchanged.")}
    ),
    into(Confirmation),
    required=False,
    limit=1 << 20,
)
