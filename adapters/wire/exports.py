"""The JSON of exports (docs/exports.md)."""

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

_SINCE = timestamp("Products changed at or after this moment; a variant or offer change counts.")
_FILTERS: Final[Schema] = record(
    None, {"updated_since": _SINCE}, optional=("updated_since",), description="Which products were asked for."
)
_ASKED: Final[Schema] = strict_object(
    {"updated_since": _SINCE}, description="Which products; all of them when it is left out. Of kind `products` alone."
)
_FILE = record(
    None,
    {
        "dataset": text("products", longest=100, description="What is in it, one a line."),
        "rows": integer(1204, least=0, description="Lines."),
        "bytes": integer(310_220, least=0, description="The file's size as it is downloaded, packed."),
        "url": url("https://joinery.example/objects/exports/…")
        | {"description": "Left out in events, and for whoever may not read what is in the file."},
    },
    optional=("url",),
)


def _of(name: str, schema: Schema, *, maybe: bool = False) -> Field:
    return Field(schema, lambda linked, _: getattr(linked.export, name), optional=maybe)


def _files(linked: LinkedExport, _: View) -> list[dict[str, Any]]:
    shown = linked.export.files if linked.export.status == ExportStatus.SUCCEEDED else ()
    links: list[dict[str, str]] = [{"url": url} for url in linked.urls] or [{}] * len(shown)
    return [
        {"dataset": file.dataset, "rows": file.rows, "bytes": file.bytes, **link}
        for file, link in zip(shown, links, strict=True)
    ]


_KIND = named("export_kind", enum(*ExportKind))
EXPORT = Resource[LinkedExport](
    "export",
    {
        "id": _of("id", id_of("exp")),
        "kind": Field(_KIND, lambda linked, _: linked.export.kind, create=_KIND, required=True),
        "status": _of("status", named("export_status", enum(*ExportStatus))),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "filters": Field(_FILTERS, lambda linked, _: plain(linked.export.filters), create=_ASKED, rendered=True),
        "rows": _of(
            "rows", integer(1204, least=0, description="Lines of all files but the manifest; while it runs, so far.")
        ),
        "files": Field(
            array(
                _FILE,
                description="What there is to download, once it succeeded and until it expires. Links work for an hour; read the export again for new ones.",
            ),
            _files,
            rendered=True,
        ),
        "changes_cursor": optional(
            _of(
                "changes_cursor",
                text(
                    "AbCdEf",
                    longest=1024,
                    description="The position of the change feed at the moment that the export shows: what is told behind it is "
                    "what came after. Present once it succeeded.",
                ),
            )
        ),
        "error": optional(
            _of("error", text("The export could not be written.", longest=2_000, description="Why it failed."))
        ),
        "created_at": _of("created_at", timestamp()),
        "completed_at": optional(_of("completed_at", timestamp("When it succeeded or failed."))),
        "expires_at": optional(_of("expires_at", timestamp("When its files are deleted, or were."))),
    },
    path="/v1/exports/{id}",
)


def _asked(value: Any) -> NewExport:
    filters = dict(value.get("filters", {}))
    if "updated_since" in filters:
        filters["updated_since"] = moment_of(filters["updated_since"])
    return msgspec.convert({**value, "filters": filters}, NewExport)


NEW_EXPORT = Body(EXPORT.create(NewExport).schema, _asked)
"""The body that asks for an export."""


def described(linked: LinkedExport, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """The export as the resource that events carry."""
    return EXPORT.render(linked, View(tenant, now))
