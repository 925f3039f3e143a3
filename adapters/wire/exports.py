"""JSON of exports (docs/exports.md)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from adapters.wire.resource import Body, Resource
from domain.exports.model import ExportKind, ExportStatus, NewExport
from domain.exports.usecases.service import LinkedExport
from domain.kernel.plain import plain
from domain.kernel.resource import Field, View, computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_of,
    integer,
    moment_of,
    named,
    record,
    strict_object,
    text,
    timestamp,
    url,
)
from domain.kernel.tenancy import Tenant

_SINCE = timestamp("Only products changed at or after this time, including changes of their variants and offers.")
_FILTERS: Final[Schema] = record(
    None, {"updated_since": _SINCE}, optional=("updated_since",), description="The requested filters."
)
_NEW_FILTERS: Final[Schema] = strict_object(
    {"updated_since": _SINCE},
    description="Filters of an export of kind `products`. Without filters it contains all products.",
)
_FILE = record(
    None,
    {
        "dataset": text("products", longest=100, description="The list that the file contains, one item per line."),
        "rows": integer(1204, least=0, description="Number of lines."),
        "bytes": integer(310_220, least=0, description="Size of the compressed file."),
        "url": url("https://joinery.example/objects/exports/…")
        | {"description": "Omitted in events, and for callers who are not permitted to read the file's data."},
    },
    optional=("url",),
)


def _attribute(name: str, schema: Schema, *, maybe: bool = False) -> Field:
    return Field(schema, lambda linked, _: getattr(linked.export, name), optional=maybe)


def _files(linked: LinkedExport, _: View) -> list[dict[str, Any]]:
    files = linked.export.files if linked.export.status == ExportStatus.SUCCEEDED else ()
    links: list[dict[str, str]] = [{"url": url} for url in linked.urls] or [{}] * len(files)
    return [
        {"dataset": file.dataset, "rows": file.rows, "bytes": file.bytes, **link}
        for file, link in zip(files, links, strict=True)
    ]


_KIND = named("export_kind", enum(*ExportKind))
EXPORT = Resource[LinkedExport](
    "export",
    {
        "id": _attribute("id", id_of("exp")),
        "kind": Field(_KIND, lambda linked, _: linked.export.kind, create=_KIND, required=True),
        "status": _attribute("status", named("export_status", enum(*ExportStatus))),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "filters": Field(_FILTERS, lambda linked, _: plain(linked.export.filters), create=_NEW_FILTERS, rendered=True),
        "rows": _attribute(
            "rows",
            integer(
                1204,
                least=0,
                description="Number of lines in all files except the manifest; while the export runs, the number so far.",
            ),
        ),
        "files": Field(
            array(
                _FILE,
                description="The files, from success until expiry. Links are valid for an hour. Read the export again for new links.",
            ),
            _files,
            rendered=True,
        ),
        "changes_cursor": optional(
            _attribute(
                "changes_cursor",
                text(
                    "AbCdEf",
                    longest=1024,
                    description="The change feed's cursor at the time of the export's snapshot: events after it are not in the export. "
                    "Present after success.",
                ),
            )
        ),
        "error": optional(
            _attribute(
                "error", text("The export could not be written.", longest=2_000, description="Why the export failed.")
            )
        ),
        "created_at": _attribute("created_at", timestamp()),
        "completed_at": optional(_attribute("completed_at", timestamp("When the export succeeded or failed."))),
        "expires_at": optional(_attribute("expires_at", timestamp("When the files are deleted."))),
    },
    path="/v1/exports/{id}",
)


def _new_export(value: Any) -> NewExport:
    filters = dict(value.get("filters", {}))
    if "updated_since" in filters:
        filters["updated_since"] = moment_of(filters["updated_since"])
    return msgspec.convert({**value, "filters": filters}, NewExport)


NEW_EXPORT = Body(EXPORT.create(NewExport).schema, _new_export)
"""Body that requests an export."""


def described(linked: LinkedExport, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """Render the export for events."""
    return EXPORT.render(linked, View(tenant, now))
