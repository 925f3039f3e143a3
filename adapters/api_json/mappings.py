"""JSON of column mappings (docs/mapping.md)."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.api_json.resource import Body, JsonResource, create_decoder
from domain.ingestion.columns.plan import MAX_VALUE_CHARS
from domain.ingestion.columns.settings import MAX_SETTING_CHARS
from domain.ingestion.model import Column, MappingTier, UnmappedReason
from domain.kernel.problems import ProblemKind
from domain.kernel.resource import computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_schema,
    integer,
    map_schema,
    nullable,
    number,
    response_object,
    strict_object,
    text,
    timestamp,
    with_title,
)
from domain.mappings.model import MAX_REPLACEMENTS, MappingConfirmation, MappingStatus, SourceMapping
from domain.mappings.proposal_log import MAX_COLUMNS, MAX_SAMPLE_ROWS

POSITION = integer(0, minimum=0, description="The column's position in the table, from 0.")
FIELD = text(
    "sku",
    max_length=200,
    description="The field that the column is mapped to. All fields are listed at /docs/guides/mapping#fields.",
)
COLUMN = response_object(
    None,
    {
        "column": text("Item No.", min_length=0, description="The header exactly as in the file."),
        "position": POSITION,
        "prefix": boolean(False, "Whether the column is one of a numbered series, such as Image 1 and Image 2."),
        "field": FIELD,
        "settings": map_schema(
            {}, {"unit": "in"}, "Settings for reading the values, such as their unit, location or currency."
        ),
        "tier": enum(*MappingTier) | {"description": "How the field was determined."},
        "confidence": number(1.0, "Confidence in the field, from 0 to 1."),
        "values": map_schema(
            {"type": "string"},
            {"auf Anfrage": ""},
            "Replacements of cells by the text that is read instead, regardless of case; an empty text is a blank cell.",
        ),
        "ignored_problems": array(
            enum(*ProblemKind), description="Kinds of problems with cells of the column that are not reported."
        ),
    },
)
UNMAPPED = with_title(
    "unmapped_column",
    response_object(
        None,
        {"column": text("Internal note", min_length=0), "position": POSITION, "reason": enum(*UnmappedReason)},
    ),
)


def _render_column(column: Column) -> Mapping[str, Any]:
    return {
        "column": column.column,
        "position": column.position,
        "prefix": column.prefix,
        "field": column.field,
        "settings": dict(column.settings),
        "tier": column.tier,
        "confidence": column.confidence,
        "values": dict(column.values),
        "ignored_problems": list(column.ignored_problems),
    }


MAPPING = JsonResource[SourceMapping](
    "mapping",
    {
        "id": id_schema("map"),
        "source": id_schema("src"),
        "status": enum(*MappingStatus),
        "headers": array(text("Item No.", min_length=0), max_items=MAX_COLUMNS),
        "samples": array(
            array(text("LM-1001", min_length=0), max_items=MAX_COLUMNS),
            max_items=MAX_SAMPLE_ROWS,
            description="The first rows below the headers; long cells are shortened.",
        ),
        "columns": computed(
            array(COLUMN, max_items=MAX_COLUMNS, description="The columns that are imported."),
            lambda mapping, _: [_render_column(column) for column in mapping.columns],
        ),
        "unmapped": computed(
            array(UNMAPPED, max_items=MAX_COLUMNS, description="The columns that are not imported, with the reasons."),
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
COLUMN_EDIT_SCHEMA: Final[Schema] = strict_object(
    {
        "position": integer(
            0, minimum=0, maximum=MAX_COLUMNS, description="Required if several columns have the same header."
        ),
        "column": text(
            "Item No.",
            min_length=0,
            max_length=1 << 16,
            description="The exact header; optional if `position` is given.",
        ),
        "field": nullable(FIELD) | {"description": "Null excludes the column from the import."},
        "settings": {
            "type": "object",
            "description": "Replaces the column's settings. If omitted, the settings remain unless the field changes.",
            "additionalProperties": text("in", max_length=MAX_SETTING_CHARS),
            "maxProperties": 10,
            "examples": [{}],
        },
        "values": {
            "type": "object",
            "description": "Replaces the column's replacements of cells. If omitted, they remain unless the field changes.",
            "propertyNames": {"minLength": 1, "maxLength": MAX_VALUE_CHARS},
            "additionalProperties": {"type": "string", "maxLength": MAX_VALUE_CHARS},
            "maxProperties": MAX_REPLACEMENTS,
            "examples": [{"auf Anfrage": ""}],
        },
        "ignored_problems": array(
            enum(*ProblemKind),
            description="Kinds of problems that are not reported. If omitted, they remain unless the field changes.",
        ),
    },
    ("field",),
    "The mapping of one column.",
)
CONFIRMATION_BODY = Body(
    strict_object(
        {
            "columns": array(
                COLUMN_EDIT_SCHEMA,
                max_items=MAX_COLUMNS,
                description="Changed columns; all others are confirmed unchanged.",
            )
        }
    ),
    create_decoder(MappingConfirmation),
    is_required=False,
    max_bytes=1 << 20,
)
