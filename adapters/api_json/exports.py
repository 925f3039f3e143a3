"""JSON of exports (docs/exports.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, get_args, get_type_hints

import msgspec

from adapters.api_json.resource import Body, JsonResource
from domain.catalogue.model import ProductFilter, ProductSort
from domain.exports.columns import COLUMNS, DEFAULT_COLUMNS
from domain.exports.layout import ExportFormat, ExportLocale, RowLevel, UnitSystem
from domain.exports.model import MAX_COLUMNS, MAX_IDS, ExportKind, ExportStatus, NewExport
from domain.exports.usecases.service import LinkedExport
from domain.kernel.json_values import to_json_value
from domain.kernel.resource import Field, RenderContext, computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_schema,
    integer,
    parse_time,
    response_object,
    strict_object,
    text,
    timestamp,
    url,
    with_title,
)
from domain.kernel.tenancy import Tenant

MAX_RENDERED_IDS = 100
"""Maximum number of IDs of the filter `id` in responses and events."""
_SINCE = timestamp("Only products changed at or after this time, including changes of their variants and offers.")
_FILTER_NAMES = tuple(field.name for field in fields(ProductFilter) if field.name not in ("words", "is_inexact"))
"""Filters that requests can set."""


def _build_filter_schema(hint: Any) -> Schema:
    """Return the schema of a filter in responses, by the type of its field."""
    types = {hint, *get_args(hint)}
    if datetime in types:
        return _SINCE
    if int in types:
        return integer(4900)
    return array(text("oak")) if Sequence[str] in types else text("oak", max_length=10_000)


_FILTERS: Final[Schema] = response_object(
    None,
    {
        **{
            name: _build_filter_schema(hint)
            for name, hint in get_type_hints(ProductFilter).items()
            if name in _FILTER_NAMES
        },
        "id_count": integer(
            250,
            minimum=1,
            description=f"Number of IDs in the request. Present if `id` has only the first {MAX_RENDERED_IDS}.",
        ),
    },
    optional=(*_FILTER_NAMES, "id_count"),
    description="The filters with which the export was requested.",
)
_FILE = response_object(
    None,
    {
        "dataset": text("products", max_length=100, description="The list that the file contains, one item per line."),
        "rows": integer(1204, minimum=0, description="Number of lines."),
        "bytes": integer(310_220, minimum=0, description="Size of the compressed file."),
        "url": url("https://joinery.example/objects/exports/…")
        | {"description": "Omitted in events, and for callers who are not permitted to read the file's data."},
    },
    optional=("url",),
)


def _create_attribute_field(name: str, schema: Schema, *, is_optional: bool = False) -> Field:
    return Field(schema, lambda linked, _: getattr(linked.export, name), optional=is_optional)


def _render_files(linked: LinkedExport, _: RenderContext) -> list[dict[str, Any]]:
    files = linked.export.files if linked.export.status == ExportStatus.SUCCEEDED else ()
    links: list[dict[str, str]] = [{"url": url} for url in linked.urls] or [{}] * len(files)
    return [
        {"dataset": file.dataset, "rows": file.rows, "bytes": file.bytes, **link}
        for file, link in zip(files, links, strict=True)
    ]


def _render_filters(linked: LinkedExport, _: RenderContext) -> dict[str, Any]:
    filters: dict[str, Any] = to_json_value(linked.export.filters)
    ids = filters.get("id", ())
    if len(ids) > MAX_RENDERED_IDS:
        filters |= {"id": ids[:MAX_RENDERED_IDS], "id_count": len(ids)}
    return filters


def _create_layout_field(name: str, schema: Schema) -> Field:
    """Return a property of the layout, which responses contain if the file has another format than JSON Lines."""

    def get(linked: LinkedExport, _: RenderContext) -> Any:
        layout = linked.export.layout
        return getattr(layout, name) if layout.format != ExportFormat.JSONL else None

    return Field(schema, get, optional=True, create=schema)


_FORMAT = with_title("export_format", enum(*ExportFormat)) | {
    "description": "Format of the file of products. Default `jsonl`. Only for `products`."
}
_COLUMN_NAMES = array(
    enum("title", *(name for name in COLUMNS if name != "title")),
    min_items=1,
    max_items=MAX_COLUMNS,
    description=f"Columns of `csv` and `xlsx` in their order. Default {', '.join(DEFAULT_COLUMNS)}.",
) | {"uniqueItems": True}
_KIND = with_title("export_kind", enum(*ExportKind))
EXPORT = JsonResource[LinkedExport](
    "export",
    {
        "id": _create_attribute_field("id", id_schema("exp")),
        "kind": Field(_KIND, lambda linked, _: linked.export.kind, create=_KIND, required=True),
        "status": _create_attribute_field("status", with_title("export_status", enum(*ExportStatus))),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "filters": Field(_FILTERS, _render_filters, rendered=True),
        "format": Field(_FORMAT, lambda linked, _: linked.export.layout.format, create=_FORMAT),
        "columns": optional(
            Field(
                array(text("title", max_length=100)),
                lambda linked, _: list(linked.export.layout.columns) or None,
                create=_COLUMN_NAMES,
            )
        ),
        "locale": _create_layout_field(
            "locale",
            with_title("export_locale", enum(*ExportLocale))
            | {
                "description": "Language of headings, and format of numbers and dates, of `csv` and `xlsx`. Without it, headings are names of columns."
            },
        ),
        "row_by": _create_layout_field(
            "row_by",
            with_title("export_row_by", enum(RowLevel.VARIANT, RowLevel.PRODUCT, RowLevel.OFFER))
            | {"description": "What `csv` and `xlsx` have one row for. Default `variant`."},
        ),
        "units": _create_layout_field(
            "units",
            with_title("unit_system", enum(*UnitSystem))
            | {"description": "Units of sizes and weights. Default `metric`."},
        ),
        "sort": optional(
            Field(
                text("title", max_length=100),
                lambda linked, _: (
                    None if linked.export.layout.sort == ProductSort.NEWEST else linked.export.layout.sort
                ),
                create=enum(*ProductSort)
                | {
                    "description": "Order of the products, as in the list. With the default `newest`, JSON Lines without other filters than `updated_since` are unordered."
                },
            )
        ),
        "link_template": _create_layout_field(
            "link_template",
            text(
                "https://shop.example/products/{handle}",
                max_length=1_000,
                description="Address of a variant's page in your shop, for `google_merchant_xml`.",
            ),
        ),
        "schedule": optional(
            _create_attribute_field(
                "schedule",
                text("sxp_01J8ZQ5T3V7XK2M9RB4CDW", max_length=100, description="The scheduled export that created it."),
            )
        ),
        "rows": _create_attribute_field(
            "rows",
            integer(
                1204,
                minimum=0,
                description="Number of lines in all files except the manifest; while the export runs, the number so far.",
            ),
        ),
        "files": Field(
            array(
                _FILE,
                description="The files. Present from the export's success until it expires. Links are valid for an hour; read the export again for new ones.",
            ),
            _render_files,
            rendered=True,
        ),
        "changes_cursor": optional(
            _create_attribute_field(
                "changes_cursor",
                text(
                    "AbCdEf",
                    max_length=1024,
                    description="The change feed's cursor at the time of the export's snapshot: events after it are not in the export. "
                    "Present after success.",
                ),
            )
        ),
        "error": optional(
            _create_attribute_field(
                "error",
                text("The export could not be written.", max_length=2_000, description="Why the export failed."),
            )
        ),
        "created_at": _create_attribute_field("created_at", timestamp()),
        "completed_at": optional(
            _create_attribute_field("completed_at", timestamp("When the export succeeded or failed."))
        ),
        "expires_at": optional(_create_attribute_field("expires_at", timestamp("When the files are deleted."))),
    },
    path="/v1/exports/{id}",
)


def build_new_export_body(filters: Mapping[str, Mapping[str, Any]]) -> Body[NewExport]:
    """Return the body that requests an export.

    Args:
        filters: Schemas of the filters of the list of products; those that are no field of ProductFilter are ignored.
    """
    ids = filters["id"]
    known = {name: dict(schema) for name, schema in filters.items() if name in _FILTER_NAMES} | {
        "updated_since": _SINCE,
        "id": array(
            ids["items"], min_items=1, max_items=MAX_IDS, description=f"Products with one of these IDs, 1 to {MAX_IDS}."
        ),
    }
    description = (
        "Filters of an export of kind `products`, as in the list of products. Without filters it contains all products."
    )
    fields = {name: field.create for name, field in EXPORT.fields.items() if field.create is not None}
    fields["filters"] = strict_object(known, description=description)
    times = [name for name, schema in known.items() if schema.get("format") == "date-time"]

    def decode(value: Any) -> NewExport:
        given = dict(value.get("filters", {}))
        given |= {name: parse_time(given[name]) for name in times if name in given}
        return msgspec.convert({**value, "filters": given}, NewExport)

    return Body(with_title("export_create", strict_object(fields, ("kind",))), decode)


def render_export(linked: LinkedExport, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """Render an export as the data of an event."""
    return EXPORT.render(linked, RenderContext(tenant, now))
