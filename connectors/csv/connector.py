"""Connector for files, fetched from a URL, uploaded or mailed, in any supported format."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors.csv import delimited, workbook
from connectors.csv.archives import plain
from connectors.csv.sniffing import sniff
from connectors.sdk.context import Context
from connectors.sdk.credentials import CREDENTIALS, sign, without_query
from connectors.sdk.errors import BadData
from connectors.sdk.pulling import pull
from connectors.sdk.readers import json_records, merchant, schema_org, xml_records
from connectors.sdk.readers.records import Record, table_of
from connectors.sdk.readers.x12_items import tables as x12_tables
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched
from connectors.sdk.tables import Table

_ACCEPT = "text/csv, application/json, application/xml, */*;q=0.8"
_PATH = {"type": "string", "minLength": 1, "maxLength": 200}


class FileConnector:
    """Connector that fetches one file and parses it by its detected format (docs/connectors.md#files)."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Fetch config.url, or config.stock_url for the stock stream if set, by a conditional request."""
        url = _url(ctx)
        signed, headers = sign(url, ctx.credentials)
        shown = without_query(signed, frozenset({str((ctx.credentials or {}).get("query"))})) if signed != url else None
        return pull(ctx, signed, {"Accept": _ACCEPT, **headers}, shown_url=shown)

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield the tables by the file's detected format, unpacked if necessary; config.format decides if that is ambiguous."""
        with plain(path, ctx.limits) as file:
            yield from _tables(ctx, file, sniff(file, ctx.config.get("format")))


def _tables(ctx: Context, path: Path, kind: str) -> Iterator[Table]:
    if kind in {"xlsx", "xlsb", "xls", "ods"}:
        return workbook.tables(ctx, path, kind)
    if kind == "csv":
        return (merchant.known(table, ctx) for table in delimited.tables(ctx, path))
    if kind == "x12":
        return x12_tables(ctx, path)
    if kind == "html" or (kind in {"json", "jsonl"} and ctx.config.get("format") == "json_ld"):
        return schema_org.document(ctx, path, web_page=kind == "html")
    return _records(ctx, path, kind)


def _records(ctx: Context, path: Path, kind: str) -> Iterator[Table]:
    records_path = ctx.config.get("records_path")
    if kind == "xml":
        records = xml_records.records(path, records_path, ctx.limits)
        google = merchant.is_announced(path, ctx.config)
        yield merchant.table(records, ctx) if google else _plain_table(records, ctx)
        return
    reader = json_records.lines if kind == "jsonl" else json_records.document
    yield _plain_table(reader(path, records_path, ctx.limits), ctx)


def _plain_table(records: Iterator[Record], ctx: Context) -> Table:
    return table_of(records, ctx, variants_path=ctx.config.get("variants_path"))


def _url(ctx: Context) -> str:
    url = ctx.config.get("url")
    if ctx.stream == "stock":
        url = ctx.config.get("stock_url", url)
    if not isinstance(url, str) or not urlsplit(url).hostname:
        raise BadData("the source's settings name no URL to pull (config.url)")
    return url


def _settings() -> dict[str, Any]:
    own = {
        "url": {**URL, "description": "The address of the file."},
        "stock_url": {**URL, "description": "The address of the file for the stock stream, if it differs."},
        "records_path": {
            **_PATH,
            "description": "The dotted path of the records in JSON, or the element name of an XML record.",
        },
        "variants_path": {**_PATH, "description": "The dotted path of the variants in a record."},
    }
    return config_schema(own)


SPEC = ConnectorSpec(
    name="csv",
    title="Files: CSV, Excel, OpenDocument, JSON, XML, Google Merchant, JSON-LD, X12 832 and 846",
    kinds=frozenset({"url", "file", "mail"}),
    streams=frozenset({"catalogue", "stock"}),
    fetches=True,
    config_schema=_settings(),
    credentials_schema=CREDENTIALS,
    open=FileConnector,
    addresses=frozenset({"url", "stock_url"}),
    stock_setting="stock_url",
    harmless=HARMLESS | {"records_path", "variants_path"},
)
