"""JSON of exports (docs/exports.md)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from adapters.api_json.resource import Body, JsonResource
from domain.exports.model import ExportKind, ExportStatus, NewExport
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

_SINCE = timestamp("Only products changed at or after this time, including changes of their variants and offers.")
_FILTERS: Final[Schema] = response_object(
    None,
    {"updated_since": _SINCE},
    optional=("updated_since",),
    description="The filters with which the export was requested.",
)
_NEW_FILTERS: Final[Schema] = strict_object(
    {"updated_since": _SINCE},
    description="Filters of an export of kind `products`. Without filters it contains all products.",
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


_KIND = with_title("export_kind", enum(*ExportKind))
EXPORT = JsonResource[LinkedExport](
    "export",
    {
        "id": _create_attribute_field("id", id_schema("exp")),
        "kind": Field(_KIND, lambda linked, _: linked.export.kind, create=_KIND, required=True),
        "status": _create_attribute_field("status", with_title("export_status", enum(*ExportStatus))),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "filters": Field(
            _FILTERS, lambda linked, _: to_json_value(linked.export.filters), create=_NEW_FILTERS, rendered=True
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


def _decode_new_export(value: Any) -> NewExport:
    filters = dict(value.get("filters", {}))
    if "updated_since" in filters:
        filters["updated_since"] = parse_time(filters["updated_since"])
    return msgspec.convert({**value, "filters": filters}, NewExport)


NEW_EXPORT = Body(EXPORT.build_create_body(NewExport).schema, _decode_new_export)
"""Body that requests an export."""


def render_export(linked: LinkedExport, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """Render an export as the data of an event."""
    return EXPORT.render(linked, RenderContext(tenant, now))
