"""Connector for JSON services: fetches pages as the paging settings describe, and flattens their records."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from connectors.api.paging import PAGING
from connectors.api.walking import Walk
from connectors.sdk.context import Context
from connectors.sdk.credentials import CREDENTIALS
from connectors.sdk.errors import BadData
from connectors.sdk.readers import json_records
from connectors.sdk.readers.records import table_of
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched
from connectors.sdk.tables import Table

_PATH = {"type": "string", "minLength": 1, "maxLength": 200}
_RESERVED = "^([Aa]uthorization|[Cc]ookie|[Hh]ost|[Cc]onnection|[Cc]ontent-.*|[Tt]ransfer-.*|[Aa]ccept-[Ee]ncoding)$"

OWN: Mapping[str, Any] = {
    "url": {**URL, "description": "The address of the first or only page."},
    "stock_url": {**URL, "description": "The address for the stock stream, if it differs."},
    "records_path": {**_PATH, "description": "The dotted path of the records in a page."},
    "variants_path": {**_PATH, "description": "The dotted path of the variants in a record."},
    "paging": {**PAGING, "description": "How the service divides its response into pages."},
    "headers": {
        "type": "object",
        "description": "Headers to send with each request.",
        "maxProperties": 20,
        "propertyNames": {
            "pattern": "^[A-Za-z0-9-]{1,100}$",
            "x-words": "1 to 100 letters, digits and hyphens",
            "not": {"pattern": _RESERVED},
        },
        "additionalProperties": {
            "type": "string",
            "maxLength": 1000,
            "pattern": "^[^\\r\\n]*$",
            "x-words": "text on one line",
        },
    },
}


class ApiConnector:
    """Connector that fetches the pages of a JSON service and parses their records."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch the pages, one JSON document a line."""
        walk = Walk(ctx)
        first = await walk.first()
        yield Fetched(
            status=first.status,
            chunks=walk.lines(first),
            final_url=walk.shown(first.final_url),
            content_type="application/jsonl",
            filename="records.jsonl",
        )

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield one table of the records on all pages. Raises BadData."""
        if path.stat().st_size == 0:
            raise BadData("the file is empty")
        records_path = ctx.config.get("records_path")
        reader = json_records.lines if ctx.config.get("format") == "jsonl" else json_records.pages
        records = reader(path, records_path, ctx.limits, ctx.report)
        yield table_of(records, ctx, variants_path=ctx.config.get("variants_path"))


SPEC = ConnectorSpec(
    name="api",
    title="JSON service",
    kinds=frozenset({"api", "url"}),
    streams=frozenset({"catalogue", "stock"}),
    fetches=True,
    config_schema=config_schema(OWN, required=("url",)),
    credentials_schema=CREDENTIALS,
    open=ApiConnector,
    addresses=frozenset({"url", "stock_url"}),
    stock_setting="stock_url",
    harmless=HARMLESS | {"records_path", "variants_path", "paging"},
)
