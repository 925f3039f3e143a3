"""Connector for JSON services: its settings, the fetch of all pages, and the conversion of records to a table."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from connectors.api.pager import ApiPager
from connectors.api.paging import PAGING_SCHEMA
from connectors.sdk.context import Context
from connectors.sdk.credentials import CREDENTIALS
from connectors.sdk.errors import BadData
from connectors.sdk.readers import json_records
from connectors.sdk.readers.records import build_records_table
from connectors.sdk.settings import NEUTRAL_SETTINGS, URL, build_config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched
from connectors.sdk.tables import Table

_PATH = {"type": "string", "minLength": 1, "maxLength": 200}
_RESERVED = re.sub(
    "[a-z]",
    lambda letter: f"[{letter[0].upper()}{letter[0]}]",
    "^(authorization|cookie|host|connection|content-.*|transfer-.*|accept-encoding)$",
)
"""Pattern of headers that a source cannot set, in any case: JSON Schema has no flag for it."""

API_SETTINGS: Mapping[str, Any] = {
    "url": {**URL, "description": "The URL of the first or only page."},
    "stock_url": {**URL, "description": "The URL for the stock stream, if different."},
    "records_path": {**_PATH, "description": "The dotted path of the records in a page."},
    "variants_path": {**_PATH, "description": "The dotted path of the variants in a record."},
    "paging": {**PAGING_SCHEMA, "description": "The service's paging method."},
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
        """Fetch all pages as a snapshot with one JSON document per line."""
        pager = ApiPager(ctx)
        first = await pager.fetch_first_page()
        yield Fetched(
            status=first.status,
            chunks=pager.iterate_lines(first),
            final_url=pager.redact_url(first.final_url),
            content_type="application/jsonl",
            filename="records.jsonl",
        )

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield the only table of the snapshot, with the records of all pages. Raises BadData."""
        if path.stat().st_size == 0:
            raise BadData("the file is empty")
        records_path = ctx.config.get("records_path")
        reader = json_records.iterate_lines if ctx.config.get("format") == "jsonl" else json_records.iterate_pages_file
        records = reader(path, records_path, ctx.limits, ctx.report)
        yield build_records_table(records, ctx, variants_path=ctx.config.get("variants_path"))


SPEC = ConnectorSpec(
    name="api",
    title="JSON service",
    kinds=frozenset({"api", "url"}),
    streams=frozenset({"catalogue", "stock"}),
    can_fetch=True,
    config_schema=build_config_schema(API_SETTINGS, required=("url",)),
    credentials_schema=CREDENTIALS,
    open=ApiConnector,
    address_settings=frozenset({"url", "stock_url"}),
    stock_setting="stock_url",
    neutral_settings=NEUTRAL_SETTINGS | {"records_path", "variants_path", "paging"},
)
